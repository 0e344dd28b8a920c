"""Filing backwards: from a document and its memories to the items that would make them again.

A bank keeps a document's text and its chunks, not the items that they came from. Several items of one document stand in
its text one a line; where each began shows in the chunks, for an item begins a chunk. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bankclient.embedded.filing import says_nothing
from bankclient.embedded.moments import read_moment, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    _Chunked = Callable[[str], Sequence[str]]

__all__ = ["Curated", "SavedDocument", "SavedItem", "StoredDocument", "StoredMemory", "unfiled"]

_DELETED = "deleted before the export"


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
    """What makes a document again: its items in their order, then what was done to its memories."""

    document_id: str
    created_at: str
    items: tuple[SavedItem, ...]
    curated: tuple[Curated, ...] = ()


def unfiled(document: StoredDocument, chunked: _Chunked) -> SavedDocument:
    """Return what makes `document` again; `chunked` cuts a text as its bank does.

    A memory that was deleted while its text was not is among the invalidated ones, or it would come back. There are no
    items where neither the text nor a memory is left.
    """
    parts = _parts(document, chunked)
    items = tuple(_item(document, text, own) for text, own in parts)
    curated = [
        _curated(memory, item)
        for item, (_, own) in zip(items, parts, strict=True)
        for memory in own
        if memory.is_edited or memory.is_invalidated
    ]
    texts = [text for text, _ in parts]
    if _fits(texts, document.memories, chunked):
        left = {memory.index for memory in document.memories}
        curated += [
            Curated(index, chunk, is_invalidated=True, reason=_DELETED)
            for index, chunk in _made(texts, chunked).items()
            if index not in left and not says_nothing(chunk)
        ]
    return SavedDocument(document.document_id, document.created_at, items, tuple(curated))


_Part = tuple[str, "Sequence[StoredMemory]"]


def _parts(document: StoredDocument, chunked: _Chunked) -> list[_Part]:
    """Return the text of each item with its memories; of one item if that makes the same memories."""
    text, memories = document.text, document.memories
    if text is None:
        return [(memory.chunk, [memory]) for memory in memories]
    if _are_alike(memories) and _fits([text], memories, chunked):
        return [(text, memories)]
    return _cut(text, memories) or [(text, memories)]


def _made(texts: Iterable[str], chunked: _Chunked) -> dict[int, str]:
    return dict(enumerate(chunk for text in texts for chunk in chunked(text)))


def _fits(texts: Iterable[str], memories: Sequence[StoredMemory], chunked: _Chunked) -> bool:
    made = _made(texts, chunked)
    return all(made.get(memory.index, "").strip() == memory.chunk.strip() for memory in memories)


def _labels(memory: StoredMemory) -> str | None:
    """Return what an item gives to each of its memories; None where that may have changed since."""
    if memory.is_edited or memory.is_invalidated:
        return None
    described = (memory.context, memory.mentioned_at, memory.tags, memory.entities)
    return repr((described, sorted(memory.metadata.items()), memory.observation_scopes))


def _are_alike(memories: Sequence[StoredMemory]) -> bool:
    return len({_labels(memory) for memory in memories} - {None}) <= 1


def _cut(text: str, memories: Sequence[StoredMemory]) -> list[_Part] | None:
    """Return the text cut where one chunk ends with its line and the next begins; None where that does not work out.

    A long item whose own cut lies at the end of a line is two here. They have the same labels, and together make the
    same text and the same memories. Text between chunks that do not follow each other made none.
    """
    parts: list[_Part] = []
    own: list[StoredMemory] = []
    start = at = 0
    before = -1
    for memory in memories:
        begin = text.find(memory.chunk, at)
        gap, silent = text[at:begin], memory.index - before - 1
        if begin < 0 or (gap.strip() and not silent):
            return None
        if own and _is_boundary(gap, [own[-1], memory]):
            head, between, tail = _apart(gap, silent)
            parts += [(text[start:at] + head, own), *((each, ()) for each in between)]
            start, own = begin - len(tail), []
        elif not own and "\n" in gap and gap.strip():
            _, between, tail = _apart(f"\n{gap}", silent)
            parts += [(each, ()) for each in between]
            start = begin - len(tail)
        own.append(memory)
        at, before = begin + len(memory.chunk), memory.index
    rest = text[at:]
    if own and "\n" in rest and rest.strip():
        head, between, _ = _apart(f"{rest}\n", rest.count("\n"))
        return [*parts, (text[start:at] + head, own), *((each, ()) for each in between)]
    return [*parts, (text[start:], own)]


def _is_boundary(gap: str, around: Sequence[StoredMemory]) -> bool:
    return "\n" in gap and (gap == "\n" or bool(gap.strip()) or not _are_alike(around))


def _apart(gap: str, silent: int) -> tuple[str, list[str], str]:
    """Return the end of the item before the gap, the items that are the gap, and the beginning of the item after it."""
    head, *lines = gap.split("\n")
    tail = lines.pop()
    if not any(line.strip() for line in lines):
        return "\n".join([head, *lines]), [], tail
    each_is_one = len(lines) <= silent and all(line.strip() for line in lines)
    return head, lines if each_is_one else ["\n".join(lines)], tail


def _item(document: StoredDocument, text: str, memories: Sequence[StoredMemory]) -> SavedItem:
    # An edit changes what an item said of its memory, but not the tags and metadata; those change with the document's,
    # where the memory is not invalidated.
    described = next((memory for memory in memories if not memory.is_edited), None)
    valid = [memory for memory in memories if not memory.is_invalidated] if _are_alike(memories) else []
    labelled = valid[0] if valid else document
    params = document.params
    named: Sequence[Mapping[str, str]] = params.get("entities", ())
    kinds = {entity["text"].casefold(): entity["type"] for entity in named}
    names = tuple(entity["text"] for entity in named) if described is None else described.entities
    said: str | None = params.get("event_date", document.created_at)
    return SavedItem(
        content=text,
        timestamp=(said and stored(read_moment(said))) if described is None else described.mentioned_at,
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
