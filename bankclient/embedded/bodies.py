"""The bodies that the endpoints take, as pydantic models.

Field names, defaults and class names are those of Hindsight 1.1.0, because they stand in the `loc` and `msg` of its 422
answers. Nothing here knows the storage.
"""

from __future__ import annotations

import json
import re
import uuid
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, Field, field_validator, model_validator

from bankclient.embedded.moments import parse_timestamp, stored
from bankclient.embedded.tags import TagGroup, TagsMatch

__all__ = [
    "BankFields",
    "Base64AttachmentSource",
    "Budget",
    "ChunkIncludeOptions",
    "ConfigUpdate",
    "DispositionTraits",
    "DocumentUpdate",
    "EntityIncludeOptions",
    "EntityInput",
    "FactsIncludeOptions",
    "FileContentBlock",
    "ImageContentBlock",
    "IncludeOptions",
    "MemoryItem",
    "MemoryUpdate",
    "MinScores",
    "RecallRequest",
    "ReflectIncludeOptions",
    "ReflectRequest",
    "RetainRequest",
    "SourceFactsIncludeOptions",
    "TemporalWindow",
    "TextContentBlock",
    "ToolCallsIncludeOptions",
]


class Budget(Enum):
    """How many candidates a recall looks at."""

    LOW = "low"
    MID = "mid"
    HIGH = "high"


# --- retain


class Base64AttachmentSource(BaseModel):
    """An attachment's bytes."""

    type: Literal["base64"]
    media_type: str
    data: str


class TextContentBlock(BaseModel):
    """A run of text."""

    type: Literal["text"]
    text: str


class ImageContentBlock(BaseModel):
    """An image, which the embedded bank refuses."""

    type: Literal["image"]
    source: Base64AttachmentSource


class FileContentBlock(BaseModel):
    """A file, which the embedded bank refuses."""

    type: Literal["file"]
    source: Base64AttachmentSource
    filename: str | None = None


ContentBlock = Annotated[TextContentBlock | ImageContentBlock | FileContentBlock, Field(discriminator="type")]


def _not_empty(content: str | list[ContentBlock]) -> str | list[ContentBlock]:
    texts = [content] if isinstance(content, str) else [b.text for b in content if isinstance(b, TextContentBlock)]
    attached = not isinstance(content, str) and len(texts) < len(content)
    if not attached and not any(text.strip() for text in texts):
        raise ValueError("content cannot be empty")
    return content


class EntityInput(BaseModel):
    """An entity that the caller names."""

    text: str
    type: str | None = None


class MemoryItem(BaseModel):
    """One item of a retain. `timestamp` is a moment, None for now, or "unset" for none."""

    content: Annotated[str | list[ContentBlock], AfterValidator(_not_empty)]
    timestamp: datetime | str | None = None
    context: str | None = None
    metadata: dict[str, str] | None = None
    document_id: str | None = None
    entities: list[EntityInput] | None = None
    resolve_entities: bool = True
    tags: list[str] | None = None
    observation_scopes: Literal["per_tag", "combined", "all_combinations", "shared"] | list[list[str]] | None = None
    strategy: str | None = None
    update_mode: Literal["replace", "append"] | None = None

    @field_validator("tags", mode="before")
    @classmethod
    def _wrap_tags(cls, value: object) -> object:
        """Take a lone string as one tag, and a string that holds a JSON array as that array."""
        if not isinstance(value, str):
            return value
        try:
            parsed: object = json.loads(value)
        except ValueError:
            return [value]
        return cast("list[object]", parsed) if isinstance(parsed, list) else [value]

    @field_validator("timestamp", mode="before")
    @classmethod
    def _read_timestamp(cls, value: object) -> object:
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise ValueError(f"timestamp must be a string or datetime, got {type(value).__name__}")  # noqa: TRY004 - pydantic reports only ValueError
        return "unset" if value.lower() == "unset" else parse_timestamp(value)


class RetainRequest(BaseModel):
    """The body of a retain."""

    items: list[MemoryItem]
    async_: bool = Field(default=False, alias="async")
    document_tags: list[str] | None = None
    operation_id: str | None = None

    @field_validator("operation_id")
    @classmethod
    def _normalise(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            return str(uuid.UUID(value))
        except ValueError as error:
            raise ValueError("operation_id must be a valid UUID") from error


# --- recall and reflect


class EntityIncludeOptions(BaseModel):
    """Whether the entities of the results come along."""

    max_tokens: int = 500


class ChunkIncludeOptions(BaseModel):
    """Whether the chunks of the results come along, and how much of them."""

    max_tokens: int = 8192


class SourceFactsIncludeOptions(BaseModel):
    """Whether the facts behind observations come along; this bank has no observations."""

    max_tokens: int = 4096
    max_tokens_per_observation: int = -1


class IncludeOptions(BaseModel):
    """What comes along with the results."""

    entities: EntityIncludeOptions | None = EntityIncludeOptions()
    chunks: ChunkIncludeOptions | None = None
    source_facts: SourceFactsIncludeOptions | None = None


class MinScores(BaseModel):
    """Floors for scores; only those of `keyword` and `final` can bind here."""

    semantic: float | None = None
    keyword: float | None = None
    reranker: float | None = None
    final: float | None = None


class TemporalWindow(BaseModel):
    """A span of time whose memories rank higher."""

    start: datetime
    end: datetime

    @model_validator(mode="after")
    def _ordered(self) -> TemporalWindow:
        if stored(self.end) < stored(self.start):
            raise ValueError("temporal_window.end must not be earlier than temporal_window.start")
        return self


def _exclusive(tags: list[str] | None, groups: list[TagGroup] | None) -> None:
    if tags is not None and groups is not None:
        raise ValueError("'tags' and 'tag_groups' are mutually exclusive. Use 'tag_groups' for compound filtering.")


class RecallRequest(BaseModel):
    """The body of a recall."""

    query: str
    types: list[str] | None = None
    prefer_observations: bool | None = None
    budget: Budget = Budget.MID
    max_tokens: int = 4096
    trace: bool = False
    query_timestamp: str | None = None
    include: IncludeOptions = Field(default_factory=IncludeOptions)
    tags: list[str] | None = None
    tags_match: TagsMatch = "any"
    tag_groups: list[TagGroup] | None = None
    min_scores: MinScores | None = None
    temporal_window: TemporalWindow | None = None

    @field_validator("query")
    @classmethod
    def _has_a_word(cls, value: str) -> str:
        if not re.search(r"\w", value):
            raise ValueError("query must contain at least one word character after normalization")
        return value

    @model_validator(mode="after")
    def _one_tag_filter(self) -> RecallRequest:
        _exclusive(self.tags, self.tag_groups)
        return self


class FactsIncludeOptions(BaseModel):
    """Whether the evidence comes along."""


class ToolCallsIncludeOptions(BaseModel):
    """Whether the trace of tool calls comes along."""

    output: bool = True


class ReflectIncludeOptions(BaseModel):
    """What comes along with the answer."""

    facts: FactsIncludeOptions | None = None
    tool_calls: ToolCallsIncludeOptions | None = None


class ReflectRequest(BaseModel):
    """The body of a reflect."""

    query: str
    budget: Budget = Budget.LOW
    context: str | None = None
    max_tokens: int = 4096
    include: ReflectIncludeOptions = Field(default_factory=ReflectIncludeOptions)
    response_schema: dict[str, Any] | None = None
    tags: list[str] | None = None
    tags_match: TagsMatch = "any"
    tag_groups: list[TagGroup] | None = None
    apply_all_directives: bool = False
    fact_types: list[Literal["world", "experience", "observation"]] | None = None
    exclude_mental_models: bool = False
    exclude_mental_model_ids: list[str] | None = None
    reflect_search_observations_max_tokens: int | None = Field(default=None, ge=1)
    reflect_search_observations_include_entities: bool | None = None

    @field_validator("fact_types")
    @classmethod
    def _some_type(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and not value:
            raise ValueError("fact_types must not be empty. Use null to include all fact types.")
        return value

    @field_validator("response_schema")
    @classmethod
    def _object_schema(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is None:
            return None
        if value.get("type", "object") != "object":
            raise ValueError('response_schema must be an object schema (its "type" must be "object")')
        if not isinstance(value.get("properties"), dict) or not value["properties"]:
            raise ValueError("response_schema must define a non-empty 'properties' object")
        return value

    @model_validator(mode="after")
    def _one_tag_filter(self) -> ReflectRequest:
        if not self.query.strip():
            raise ValueError("'query' must not be empty or whitespace-only.")
        _exclusive(self.tags, self.tag_groups)
        return self


# --- banks


class DispositionTraits(BaseModel):
    """Three traits of a bank, each from 1 to 5."""

    skepticism: int = Field(ge=1, le=5)
    literalism: int = Field(ge=1, le=5)
    empathy: int = Field(ge=1, le=5)


class BankFields(BaseModel):
    """The body that creates or changes a bank; absent fields keep what they had."""

    name: str | None = None
    disposition: DispositionTraits | None = None
    disposition_skepticism: int | None = Field(default=None, ge=1, le=5)
    disposition_literalism: int | None = Field(default=None, ge=1, le=5)
    disposition_empathy: int | None = Field(default=None, ge=1, le=5)
    mission: str | None = None
    background: str | None = None
    reflect_mission: str | None = None
    retain_mission: str | None = None
    retain_extraction_mode: str | None = None
    retain_custom_instructions: str | None = None
    retain_chunk_size: int | None = None
    retain_structured_chunk_size: int | None = None
    retain_max_attachments_per_chunk: int | None = None
    enable_observations: bool | None = None
    observations_mission: str | None = None
    enable_text_search: bool | None = None
    enable_temporal_retrieval: bool | None = None
    enable_graph_retrieval: bool | None = None
    enable_reranking: bool | None = None


class ConfigUpdate(BaseModel):
    """The body that changes a bank's configuration."""

    updates: dict[str, Any]


# --- memories and documents


class MemoryUpdate(BaseModel):
    """The body that edits, invalidates or restores a memory; '' clears a date or the context."""

    text: str | None = None
    context: str | None = None
    occurred_start: str | None = None
    occurred_end: str | None = None
    mentioned_at: str | None = None
    fact_type: str | None = None
    entities: list[str] | None = None
    resolve_entities: bool = True
    state: str | None = None
    reason: str | None = None

    @model_validator(mode="after")
    def _some_change(self) -> MemoryUpdate:
        if not self.edits and self.state is None:
            raise ValueError("Provide at least one field to update.")
        if self.state not in {None, "valid", "invalidated"}:
            raise ValueError("state must be 'valid' or 'invalidated'.")
        if self.fact_type not in {None, "world", "experience"}:
            raise ValueError("fact_type must be 'world' or 'experience'.")
        return self

    @property
    def edits(self) -> dict[str, Any]:
        """The fields that change what the memory says, by name."""
        names = ("text", "context", "occurred_start", "occurred_end", "mentioned_at", "fact_type", "entities")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class DocumentUpdate(BaseModel):
    """The body that changes a document."""

    tags: list[str] | None = None
    observation_scopes: Literal["per_tag", "combined", "all_combinations", "shared"] | list[list[str]] | None = None
