"""Filing items: they become documents, documents chunks, and each chunk one memory.

Owns what a retain writes into `documents`, `memories` and the index. It knows nothing of requests and operations.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3  # noqa: TC003 - functions are annotated with it
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bankclient.embedded.banks import settings_of, wrote
from bankclient.embedded.chunking import chunks
from bankclient.embedded.index import IndexRow, add_to_index, drop_from_index, index_row
from bankclient.embedded.moments import stored
from bankclient.embedded.tags import stored_tags
from bankclient.embedded.wire import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from bankclient.embedded.items import Item

__all__ = ["Filed", "file_items", "new_id", "says_nothing", "text_key"]

_FIND_DOCUMENTS = """
    SELECT id, document_id, text FROM documents WHERE bank = ? AND document_id IN (SELECT value FROM json_each(?))
"""
_ADD_DOCUMENT = """
    INSERT INTO documents (text, text_length, content_hash, tags, metadata, retain_params, observation_scopes,
        updated_at, id, bank, document_id, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_CHANGE_DOCUMENT = """
    UPDATE documents SET text = ?, text_length = ?, content_hash = ?, tags = ?, metadata = ?, retain_params = ?,
        observation_scopes = ?, updated_at = ? WHERE id = ?
"""
_ADD_MEMORY = """
    INSERT INTO memories (id, memory_id, bank, document, chunk_index, chunk_hash, text, text_key, context, fact_type,
        mentioned_at, created_at, updated_at, tags, metadata, entities, observation_scopes)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'world', ?, ?, ?, ?, ?, ?, ?)
"""
_KEEP_MEMORY = "UPDATE memories SET tags = ?, metadata = ?, updated_at = ?, retained = retained + 1 WHERE id = ?"

_PUNCTUATION = frozenset(".,;:!?-–—…\"'`´•·*_ \t\r\n")  # noqa: RUF001 - the dashes are meant

_encode = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class Filed:
    """What became of the items: the ids of their documents, and how many memories are new."""

    document_ids: tuple[str, ...]
    new_memories: int


def file_items(db: sqlite3.Connection, bank: int, items: Sequence[Item], now: datetime) -> Filed:
    """File `items`, those of one document in their order.

    Items without a document id share one generated document if none of them has an id; else each has its own.
    Raises `Problem` 400 for an append to a bank that keeps no texts.
    """
    shared = None if any(item.document_id for item in items) else new_id()
    documents: dict[str, list[Item]] = {}
    for item in items:
        documents.setdefault(item.document_id or shared or new_id(), []).append(item)
    known = {row["document_id"]: row for row in db.execute(_FIND_DOCUMENTS, (bank, _encode(list(documents))))}
    filing = _Filing(db, bank, now)
    for document_id, own in documents.items():
        row = known.get(document_id)
        if row is None:
            filing.add(document_id, own)
        else:
            filing.change(row, own)
    filing.finish()
    wrote(db, bank, now)
    return Filed(tuple(documents), len(filing.memories))


def new_id() -> str:
    """Return a random UUID (version 4) as text; the standard library's takes four times as long."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def text_key(text: str) -> bytes:
    """Return a short digest that finds the same text again."""
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


class _Filing:
    """One transaction's filing; new rows are gathered and written together at the end."""

    def __init__(self, db: sqlite3.Connection, bank: int, now: datetime) -> None:
        self._db = db
        self._bank = bank
        self._now = stored(now)
        self._moments = {now: self._now}
        settings = settings_of(db, bank)
        self._size: int = settings["retain_chunk_size"]
        self._structured: int | None = settings["retain_structured_chunk_size"]
        self._keeps_text: bool = settings["store_document_text"]
        last = db.execute("SELECT (SELECT max(id) FROM documents), (SELECT max(id) FROM memories)").fetchone()
        self._last_document: int = last[0] or 0
        self._last_memory: int = last[1] or 0
        self._documents: list[tuple[object, ...]] = []
        self._indexed: list[IndexRow] = []
        self.memories: list[tuple[object, ...]] = []

    def add(self, document_id: str, items: Sequence[Item]) -> None:
        """File the items of a document that is new."""
        self._check_append(items)
        self._last_document += 1
        identity = (self._last_document, self._bank, document_id, self._now)
        self._documents.append((*self._content(items), *identity))
        for index, item, chunk in self._chunks(items):
            self._add_memory(self._last_document, index, _digest(chunk), item, chunk)

    def change(self, row: sqlite3.Row, items: list[Item]) -> None:
        """Make a document that exists hold `items`; an append puts its old text in front of them.

        A chunk that stands unchanged at its place keeps its memory, with its id, context and time, and takes the tags
        and metadata of this call. The document's other memories go. A memory that was invalidated or edited stays so
        as long as its chunk does.
        """
        appended = self._check_append(items)
        if appended is not None:
            items = [replace(appended, content=row["text"] or ""), *items]
        content = self._content(items)
        self._db.execute(_CHANGE_DOCUMENT, (*content, row["id"]))
        tags, metadata = stored_tags(tag for item in items for tag in item.tags), _encode(items[0].metadata)
        before = {
            old["chunk_index"]: old
            for old in self._db.execute(
                "SELECT id, chunk_index, chunk_hash, invalidated_at FROM memories WHERE document = ?", (row["id"],)
            )
        }
        for index, item, chunk in self._chunks(items):
            digest = _digest(chunk)
            old = before.get(index)
            if old is None or old["chunk_hash"] != digest:
                self._add_memory(row["id"], index, digest, item, chunk)
                continue
            del before[index]
            if old["invalidated_at"] is None:
                self._db.execute(_KEEP_MEMORY, (tags, metadata, self._now, old["id"]))
        gone = [old["id"] for old in before.values()]
        drop_from_index(self._db, self._bank, gone)
        self._db.executemany("DELETE FROM memories WHERE id = ?", [(memory,) for memory in gone])

    def finish(self) -> None:
        """Write what was gathered."""
        self._db.executemany(_ADD_DOCUMENT, self._documents)
        self._db.executemany(_ADD_MEMORY, self.memories)
        add_to_index(self._db, self._bank, self._indexed)

    def _check_append(self, items: Sequence[Item]) -> Item | None:
        appended = next((item for item in items if item.append), None)
        if appended is not None and not self._keeps_text:
            raise Problem(
                400,
                "update_mode='append' is not supported when document text storage is disabled: the existing "
                "document text is not stored and cannot be appended to. Use update_mode='replace' instead.",
            )
        return appended

    def _chunks(self, items: Sequence[Item]) -> Iterator[tuple[int, Item, str]]:
        """Yield the chunks that become memories, with their places among all of the document's."""
        whole = ((item, chunk) for item in items for chunk in chunks(item.content, self._size, self._structured))
        return ((index, item, chunk) for index, (item, chunk) in enumerate(whole) if not says_nothing(chunk))

    def _content(self, items: Sequence[Item]) -> tuple[object, ...]:
        """Return the columns that a retain sets; what describes the document is its first item's."""
        first = items[0]
        text = first.content if len(items) == 1 else "\n".join(item.content for item in items)
        tags = stored_tags(first.tags if len(items) == 1 else (tag for item in items for tag in item.tags))
        described = (_json(first.metadata), _json(first.params), _json(first.observation_scopes))
        digest = hashlib.sha256(text.encode()).hexdigest()
        return (text if self._keeps_text else None, len(text), digest, tags, *described, self._now)

    def _add_memory(self, document: int, index: int, digest: bytes, item: Item, chunk: str) -> None:
        self._last_memory += 1
        identity = (self._last_memory, new_id(), self._bank, document, index, digest, chunk, text_key(chunk))
        times = (self._moment(item.mentioned_at), self._now, self._now)
        metadata, entities = _json(item.metadata) or "{}", _json(item.entities) or "[]"
        labels = (stored_tags(item.tags), metadata, entities, _json(item.observation_scopes))
        self.memories.append((*identity, item.context, *times, *labels))
        self._indexed.append(index_row(self._last_memory, chunk, item.context, item.entities))

    def _moment(self, moment: datetime | None) -> str | None:
        if moment is None:
            return None
        return self._moments.get(moment) or stored(moment)


def _digest(chunk: str) -> bytes:
    return hashlib.sha256(chunk.encode()).digest()


def says_nothing(chunk: str) -> bool:
    """Say whether a chunk is punctuation alone, which the server keeps in the document but makes no memory of."""
    text = chunk.strip()
    if text[:1].isalnum():
        return False
    return all(letter in _PUNCTUATION for letter in text) or (len(text) < 3 and not any(map(str.isalnum, text)))  # noqa: PLR2004 - the server's bound


def _json(value: object) -> str | None:
    """Return a value as stored: empty ones as none at all."""
    return _encode(value) if value else None
