"""Filing backwards: from a document and its memories to the items that would make them again.

A bank keeps a document's text and its chunks, not the items that they came from. Several items of one document stand in
its text one a line; where each began shows in the chunks, for an item begins a chunk. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Curated", "SavedDocument", "SavedItem", "StoredDocument", "StoredMemory", "unfiled"]


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory as it is stored; `chunk` is the piece of text that was retained, `text` what it says now."""

    index: int
    chunk: str
    text: str
    context: str
    fact_type: str
    occurred_start: str | None
    occurred_end: str | None
    mentioned_at: str | None
    is_edited: bool
    is_invalidated: bool
    reason: str | None
    tags: tuple[str, ...]
    metadata: Mapping[str, str]
    entities: tuple[str, ...]
    observation_scopes: str | list[list[str]] | None


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it is stored; `params` describes its first item, as the API shows it."""

    document_id: str
    text: str | None
    tags: tuple[str, ...]
    metadata: Mapping[str, str]
    params: Mapping[str, Any]
    observation_scopes: str | list[list[str]] | None
    created_at: str
    memories: tuple[StoredMemory, ...]


@dataclass(frozen=True, slots=True)
class SavedItem:
    """One item to retain. `timestamp` None is no time at all."""

    content: str
    timestamp: str | None
    context: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    entities: tuple[Mapping[str, str], ...] = ()
    resolve_entities: bool | None = None
    observation_scopes: str | list[list[str]] | None = None
    strategy: str | None = None


@dataclass(frozen=True, slots=True)
class Curated:
    """What somebody did to the memory of the `index`-th chunk: fields that were edited, or that it was invalidated."""

    index: int
    chunk: str
    edits: Mapping[str, object] = field(default_factory=dict[str, object])
    is_invalidated: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SavedDocument:
    """What makes a document again: its items in their order, then what was done to its memories.

    `is_cleared` says that of its memories some were deleted: only those of the chunks at `kept` are there.
    """

    document_id: str
    created_at: str
    items: tuple[SavedItem, ...]
    curated: tuple[Curated, ...] = ()
    is_cleared: bool = False
    kept: tuple[int, ...] = ()


def unfiled(document: StoredDocument, chunked: Callable[[str], Sequence[str]]) -> SavedDocument:
    """Return what makes `document` again; `chunked` cuts a text as its bank does.

    There are no items where neither the text nor a memory is left.
    """
    memories = document.memories
    is_cleared = document.text is not None and (
        not memories or [memory.index for memory in memories] != list(range(len(memories)))
    )
    parts = [(document.text or "", memories)] if is_cleared else _parts(document, chunked)
    items = tuple(_item(document, text, own, is_only=len(parts) == 1) for text, own in parts)
    curated = tuple(
        _curated(memory, item)
        for item, (_, own) in zip(items, parts, strict=True)
        for memory in own
        if memory.is_edited or memory.is_invalidated
    )
    kept = tuple(memory.index for memory in memories) if is_cleared else ()
    return SavedDocument(document.document_id, document.created_at, items, curated, is_cleared, kept)


_Part = tuple[str, "Sequence[StoredMemory]"]


def _parts(document: StoredDocument, chunked: Callable[[str], Sequence[str]]) -> list[_Part]:
    """Return the text of each item with its memories; of one item if that makes the same memories."""
    text, memories = document.text, document.memories
    if text is None:
        return [(memory.chunk, [memory]) for memory in memories]
    labels = {_labels(memory) for memory in memories} - {None}
    if len(labels) <= 1 and list(chunked(text)) == [memory.chunk for memory in memories]:
        return [(text, memories)]
    return _cut(text, memories) or [(text, memories)]


def _labels(memory: StoredMemory) -> str | None:
    """Return what an item gives to each of its memories; None where that may have changed since."""
    if memory.is_edited or memory.is_invalidated:
        return None
    described = (memory.context, memory.mentioned_at, memory.tags, memory.entities)
    return repr((described, sorted(memory.metadata.items()), memory.observation_scopes))


def _cut(text: str, memories: Sequence[StoredMemory]) -> list[_Part] | None:
    """Return the text cut where one chunk ends with its line and the next begins; None where that does not work out.

    A long item whose own cut lies at the end of a line is two here. They have the same labels, and together make the
    same text and the same memories.
    """
    parts: list[_Part] = []
    start = at = first = 0
    for number, memory in enumerate(memories):
        begin = text.find(memory.chunk, at)
        gap = text[at:begin]
        if begin < 0 or gap.strip():
            return None
        others = {_labels(memories[number - 1]), _labels(memory)} - {None}
        if number and (gap == "\n" or ("\n" in gap and len(others) > 1)):
            end = at + gap.rindex("\n")
            parts.append((text[start:end], memories[first:number]))
            start, first = end + 1, number
        at = begin + len(memory.chunk)
    return None if text[at:].strip() else [*parts, (text[start:], memories[first:])]


def _item(document: StoredDocument, text: str, memories: Sequence[StoredMemory], *, is_only: bool) -> SavedItem:
    # An edit changes what an item said of its memory, but not the tags and metadata. Those change with the document,
    # but not those of what is invalidated.
    described = next((memory for memory in memories if not memory.is_edited), None)
    labelled = document if is_only else next((each for each in memories if not each.is_invalidated), memories[0])
    params = document.params
    named: Sequence[Mapping[str, str]] = params.get("entities", ())
    kinds = {entity["text"].casefold(): entity["type"] for entity in named}
    names = tuple(entity["text"] for entity in named) if described is None else described.entities
    return SavedItem(
        content=text,
        timestamp=params.get("event_date", document.created_at) if described is None else described.mentioned_at,
        context=(params.get("context") if described is None else described.context) or None,
        tags=labelled.tags,
        metadata=labelled.metadata,
        entities=tuple({"text": name, "type": kinds.get(name.casefold(), "CONCEPT")} for name in names),
        resolve_entities=params.get("resolve_entities"),
        observation_scopes=labelled.observation_scopes,
        strategy=params.get("strategy"),
    )


def _curated(memory: StoredMemory, item: SavedItem) -> Curated:
    made = {
        "text": memory.chunk,
        "context": item.context or "",
        "fact_type": "world",
        "occurred_start": None,
        "occurred_end": None,
        "mentioned_at": item.timestamp,
        "entities": [entity["text"] for entity in item.entities],
    }
    now = {name: getattr(memory, name) for name in made} | {"entities": list(memory.entities)}
    # A date or context that was cleared is cleared by an empty text.
    edits = {name: "" if now[name] is None else now[name] for name in made if now[name] != made[name]}
    return Curated(memory.index, memory.chunk, edits if memory.is_edited else {}, memory.is_invalidated, memory.reason)
