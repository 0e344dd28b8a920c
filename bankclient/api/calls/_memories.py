"""Single memories: list, read, correct, take out of recall and back, clear. Recall is in `_recall`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from bankclient.api.call import Call, Repeat
from bankclient.api.calls import _values as values
from bankclient.api.calls._bank import bank_call, not_done, page_fields
from bankclient.api.calls._filters import filter_needs, tag_filter
from bankclient.api.models.base import Done, Page, reader
from bankclient.api.models.memories import Memory, MemoryHistory
from bankclient.api.models.words import ConsolidationState, MemoryState, MemoryTimeField
from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from bankclient.api.models.words import FactType, TagsMatch

__all__ = [
    "clear_memories",
    "get_memory",
    "get_memory_history",
    "invalidate_memory",
    "list_memories",
    "patch_memory",
    "restore_memory",
]

_READ_PAGE, _READ_MEMORY = reader(Page[Memory]), reader(Memory)
_READ_HISTORY, _READ_DONE = reader(MemoryHistory), reader(Done)
_consolidation_state, _state = values.word(ConsolidationState), values.word(MemoryState)
_time_field, _stated_type = values.word(MemoryTimeField), values.word(Literal["world", "experience"])


def list_memories(
    bank: str,
    *,
    q: str | None = None,
    fact_type: FactType | None = None,
    tags: Iterable[str] | str = (),
    tags_match: TagsMatch | None = None,
    document_id: str | None = None,
    entity_id: UUID | str | None = None,
    state: MemoryState | None = None,
    consolidation_state: ConsolidationState | None = None,
    time_field: MemoryTimeField | None = None,
    start_date: datetime | str | None = None,
    end_date: datetime | str | None = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Call[Page[Memory]]:
    """List memories, newest first, those whose text or context holds `q`; invalidated ones only where asked for.

    `start_date` (inclusive) and `end_date` (exclusive) bound `time_field`, by which the list is then ordered too. As in
    recall, `tags_match` is `any` unless given, which also finds untagged memories.
    """
    filters = tag_filter(tags, tags_match)
    return bank_call(
        "list_memories",
        "GET",
        bank,
        "memories",
        "list",
        read=_READ_PAGE,
        empty=lambda: Page[Memory](items=(), degraded=True),
        query={
            "q": values.maybe(values.text, q, "q"),
            "type": values.maybe(values.fact_type, fact_type, "fact_type"),
            **filters,
            "document_id": values.maybe(values.document_id, document_id, "document_id"),
            "entity_id": values.maybe(values.uuid_text, entity_id, "entity_id"),
            "state": values.maybe(_state, state, "state"),
            "consolidation_state": values.maybe(_consolidation_state, consolidation_state, "consolidation_state"),
            "time_field": values.maybe(_time_field, time_field, "time_field"),
            "start_date": values.maybe(values.moment, start_date, "start_date"),
            "end_date": values.maybe(values.moment, end_date, "end_date"),
            **page_fields(limit, offset),
        },
        repeat=Repeat.READ,
        needs=filter_needs(filters),
    )


def get_memory(bank: str, memory_id: UUID | str) -> Call[Memory]:
    """Read one memory, also an invalidated one."""
    return _memory_call("get_memory", "GET", bank, memory_id, repeat=Repeat.READ)


def patch_memory(
    bank: str,
    memory_id: UUID | str,
    *,
    text: str | None = None,
    context: str | None = None,
    occurred_start: datetime | str | None = None,
    occurred_end: datetime | str | None = None,
    mentioned_at: datetime | str | None = None,
    fact_type: Literal["world", "experience"] | None = None,
    entities: Iterable[str] | str | None = None,
    resolve_entities: bool | None = None,
    state: MemoryState | None = None,
    reason: str | None = None,
) -> Call[Memory]:
    """Correct a fact (not an observation, which is derived). `None` leaves a field as it is.

    An empty text takes away a context or a time, an empty list the entities. Tags and metadata of one memory cannot be
    changed: those are its document's. The server has this from 0.8.2; it answers 400 to an edit of an invalidated one.
    """
    body = values.given(
        text=values.maybe(values.identifier, text, "text"),
        context=values.maybe(values.text, context, "context"),
        occurred_start=values.maybe(_moment_or_none, occurred_start, "occurred_start"),
        occurred_end=values.maybe(_moment_or_none, occurred_end, "occurred_end"),
        mentioned_at=values.maybe(_moment_or_none, mentioned_at, "mentioned_at"),
        fact_type=values.maybe(_stated_type, fact_type, "fact_type"),
        entities=values.maybe(values.texts, entities, "entities"),
        state=values.maybe(_state, state, "state"),
    )
    if not body:
        raise InvalidInput("there is nothing to change in the memory: give a text, a time, a state, …")
    body |= values.given(
        resolve_entities=values.maybe(values.switch, resolve_entities, "resolve_entities"),
        reason=values.maybe(values.text, reason, "reason"),
    )
    return _memory_call("patch_memory", "PATCH", bank, memory_id, repeat=Repeat.IDENTIFIED, body=body)


def invalidate_memory(bank: str, memory_id: UUID | str, *, reason: str | None = None) -> Call[Memory]:
    """Take a fact out of recall and default lists. The server deletes no single memory; this can be taken back."""
    return patch_memory(bank, memory_id, state="invalidated", reason=reason)


def restore_memory(bank: str, memory_id: UUID | str) -> Call[Memory]:
    """Bring an invalidated fact back; retaining its text again would not."""
    return patch_memory(bank, memory_id, state="valid")


def get_memory_history(bank: str, memory_id: UUID | str) -> Call[MemoryHistory]:
    """Read how an observation came to be, newest change first; a fact has no history."""
    return bank_call(
        "get_memory_history",
        "GET",
        bank,
        "memories",
        values.uuid_text(memory_id, "memory_id"),
        "history",
        read=_READ_HISTORY,
        empty=lambda: MemoryHistory(changes=(), degraded=True),
        repeat=Repeat.READ,
    )


def clear_memories(bank: str, *, fact_type: FactType | None = None) -> Call[Done]:
    """Delete all memories of a type, or, without one, all memories *and all documents* of the bank."""
    return bank_call(
        "clear_memories",
        "DELETE",
        bank,
        "memories",
        read=_READ_DONE,
        empty=not_done,
        query={"type": values.maybe(values.fact_type, fact_type, "fact_type")},
        repeat=Repeat.IDENTIFIED,
    )


def _memory_call(
    operation: str,
    method: str,
    bank: str,
    memory_id: UUID | str,
    *,
    repeat: Repeat,
    body: dict[str, Any] | None = None,
) -> Call[Memory]:
    known_as = values.uuid_text(memory_id, "memory_id")
    return bank_call(
        operation,
        method,
        bank,
        "memories",
        known_as,
        read=_READ_MEMORY,
        empty=lambda: Memory(id=known_as, degraded=True),
        body=body,
        repeat=repeat,
    )


def _moment_or_none(value: object, what: str) -> str:
    """Return a time, or the empty text that takes one away."""
    return "" if value == "" else values.moment(value, what)
