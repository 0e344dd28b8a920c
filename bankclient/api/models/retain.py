"""What is retained (`MemoryItem`) and what the server answers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from pydantic import AliasChoices, Field, ValidationInfo, field_validator

from bankclient.api.models.base import Part, Reply
from bankclient.api.models.fields import Count, Flag, Many, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from bankclient.api.models.words import ObservationScopes, UpdateMode

__all__ = ["MemoryItem", "RetainResult", "TokenUsage"]


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """One text to retain, with what belongs to it. `None` or nothing leaves a field to the server.

    `content` is a text, or content blocks (`{"type": "text", "text": …}`, images and files) for servers from 0.10.
    `timestamp` says when it was so: a datetime (naive means UTC), ISO 8601, `"unset"` for timeless; nothing is now.
    A document that is retained again gets the tags and metadata of the new call, also where that has none.
    """

    content: str | Sequence[Mapping[str, Any]]
    _: KW_ONLY
    document_id: str | None = None
    tags: Iterable[str] | str = ()
    timestamp: datetime | str | None = None
    context: str | None = None
    metadata: Mapping[str, str] | None = None
    entities: Iterable[str | Mapping[str, str | None]] | str = ()
    resolve_entities: bool | None = None
    observation_scopes: ObservationScopes | None = None
    strategy: str | None = None
    update_mode: UpdateMode | None = None


class TokenUsage(Part):
    """What a call cost in tokens of the server's language model."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    total_tokens: Count = 0
    cached_tokens: Count = 0
    thoughts_tokens: Count = 0


class RetainResult(Reply):
    """What was taken in. A synchronous retain has `usage`, an asynchronous one the operations to wait for.

    A repeated operation id is answered with the *first* operation's `items_count`: it proves nothing about this send.
    """

    success: Flag
    bank_id: Text = ""
    items_count: Count = 0
    is_async: Flag = Field(default=False, validation_alias=AliasChoices("async", "is_async"))
    operation_id: str | None = None
    operation_ids: Many[str] = Field(default=(), validate_default=True)
    """All operations: more than one where items of one request have different strategies."""
    usage: TokenUsage | None = None

    @field_validator("operation_ids")
    @classmethod
    def _hold_all(cls, given: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        first = info.data.get("operation_id")
        return given if given or first is None else (first,)
