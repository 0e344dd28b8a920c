"""Single memories, as they are listed and read; how they are recalled is in `recall`."""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import AliasChoices, Field, model_validator

from bankclient.api.models.base import Part, Reply
from bankclient.api.models.fields import Many, Metadata, Moment, Names, NullMeans, Text
from bankclient.api.models.recall import Attachment

__all__ = ["Memory", "MemoryChange", "MemoryHistory"]


class Memory(Reply):
    """A memory.

    A list and a single one come in different forms (`fact_type`, entities in one text; `type`, a list); both are read
    into this one. An entity whose own name holds a comma is several where the form was one text.
    """

    id: str
    text: Text = ""
    type: Text = Field(default="", validation_alias=AliasChoices("type", "fact_type"))
    """`world`, `experience` or `observation`; one that this version does not know is kept as it is."""
    context: Text = ""
    date: Moment = None
    document_id: str | None = None
    mentioned_at: Moment = None
    occurred_start: Moment = None
    occurred_end: Moment = None
    entities: Names = ()
    chunk_id: str | None = None
    proof_count: Annotated[int, NullMeans(lambda: 1)] = 1
    tags: Many[str] = ()
    metadata: Metadata = Field(default_factory=dict)
    state: Annotated[str, NullMeans(lambda: "valid")] = "valid"
    """`valid`, or `invalidated`: out of recall and of default lists, still readable here, and to be restored."""
    invalidation_reason: str | None = None
    invalidated_at: Moment = None
    edited_at: Moment = None
    updated_at: Moment = None
    consolidated_at: Moment = None
    consolidation_failed_at: Moment = None
    source_memory_ids: Many[str] = ()
    observation_scopes: str | tuple[tuple[str, ...], ...] | None = None
    attachments: Many[Attachment] = ()


class MemoryChange(Part):
    """What an observation said before a change."""

    previous_text: Text = ""
    previous_tags: Many[str] = ()
    previous_occurred_start: Moment = None
    previous_occurred_end: Moment = None
    previous_mentioned_at: Moment = None
    changed_at: Moment = None
    new_source_memory_ids: Many[str] = ()
    source_facts: Many[dict[str, Any]] = ()


class MemoryHistory(Reply):
    """How an observation came to be, newest change first; facts have no history, even after an edit."""

    changes: Many[MemoryChange]

    @model_validator(mode="before")
    @classmethod
    def _name_the_list(cls, given: object) -> object:
        return {"changes": cast("list[object]", given)} if isinstance(given, list) else given
