"""Filing items: they become documents, documents chunks, and each chunk one memory.

Owns what a retain writes into `documents`, `memories` and the index. It knows nothing of requests and operations.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3  # noqa: TC003 - functions are annotated with it
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bankclient.embedded.banks import settings_of, wrote
from bankclient.embedded.chunking import chunks
from bankclient.embedded.index import IndexRow, add_to_index, drop_from_index, index_row
from bankclient.embedded.moments import stored
from bankclient.embedded.tags import stored_tags
from bankclient.embedded.wire import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from bankclient.embedded.items import Item

__all__ = ["Filed", "file_items", "text_key"]

_ADD = """
    INSERT INTO memories (id, memory_id, bank, document, chunk_index, chunk_hash, text, text_key, context, fact_type,
        mentioned_at, created_at, updated_at, tags, metadata, entities, observation_scopes)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'world', ?, ?, ?, ?, ?, ?, ?)
"""
_KEEP = "UPDATE memories SET tags = ?, metadata = ?, updated_at = ?, retained = retained + 1 WHERE id = ?"


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
    shared = None if any(item.document_id for item in items) else str(uuid.uuid4())
    documents: dict[str, list[Item]] = {}
    for item in items:
        documents.setdefault(item.document_id or shared or str(uuid.uuid4()), []).append(item)
    filing = _Filing(db, bank, now)
    for document_id, own in documents.items():
        filing.document(document_id, own)
    filing.finish()
    wrote(db, bank, now)
    return Filed(tuple(documents), len(filing.added))


def text_key(text: str) -> bytes:
    """Return a short digest that finds the same text again."""
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


class _Filing:
    """One transaction's filing; new rows are gathered and written together at the end."""

    def __init__(self, db: sqlite3.Connection, bank: int, now: datetime) -> None:
        self._db = db
        self._bank = bank
        self._now = stored(now)
        settings = settings_of(db, bank)
        self._size: int = settings["retain_chunk_size"]
        self._structured: int | None = settings["retain_structured_chunk_size"]
        self._keeps_text: bool = settings["store_document_text"]
        self._next_id: int = db.execute("SELECT coalesce(max(id), 0) + 1 FROM memories").fetchone()[0]
        self.added: list[tuple[object, ...]] = []
        self._indexed: list[IndexRow] = []

    def document(self, document_id: str, items: list[Item]) -> None:
        """Make the document hold `items`.

        A chunk that stands unchanged at its place keeps its memory, with its id, context and time, and takes the tags
        and metadata of this call. The document's other memories go. A memory that was invalidated or edited stays so as
        long as its chunk does.
        """
        row = self._db.execute(
            "SELECT id, text FROM documents WHERE bank = ? AND document_id = ?", (self._bank, document_id)
        ).fetchone()
        appended = next((item for item in items if item.append), None)
        if appended is not None:
            if not self._keeps_text:
                raise Problem(
                    400,
                    "update_mode='append' is not supported when document text storage is disabled: the existing document "
                    "text is not stored and cannot be appended to. Use update_mode='replace' instead.",
                )
            if row is not None:
                items = [replace(appended, content=row["text"] or ""), *items]
        tags = stored_tags(tag for item in items for tag in item.tags)
        document = self._save_document(row, document_id, items, tags)
        before = {} if row is None else self._memories_of(document)
        for index, (item, chunk) in enumerate(self._chunks(items)):
            digest = hashlib.sha256(chunk.encode()).digest()
            old = before.get(index)
            if old is None or old["chunk_hash"] != digest:
                self._add(document, index, digest, item, chunk)
                continue
            del before[index]
            if old["invalidated_at"] is None:
                metadata = json.dumps(items[0].metadata, ensure_ascii=False)
                self._db.execute(_KEEP, (tags, metadata, self._now, old["id"]))
        gone = [old["id"] for old in before.values()]
        drop_from_index(self._db, self._bank, gone)
        self._db.executemany("DELETE FROM memories WHERE id = ?", [(memory,) for memory in gone])

    def finish(self) -> None:
        """Write what was gathered."""
        self._db.executemany(_ADD, self.added)
        add_to_index(self._db, self._bank, self._indexed)

    def _chunks(self, items: Sequence[Item]) -> list[tuple[Item, str]]:
        return [(item, chunk) for item in items for chunk in chunks(item.content, self._size, self._structured)]

    def _memories_of(self, document: int) -> dict[int, sqlite3.Row]:
        rows = self._db.execute(
            "SELECT id, chunk_index, chunk_hash, invalidated_at FROM memories WHERE document = ?", (document,)
        )
        return {row["chunk_index"]: row for row in rows}

    def _save_document(
        self, row: Mapping[str, int] | sqlite3.Row | None, document_id: str, items: Sequence[Item], tags: str
    ) -> int:
        text = "\n".join(item.content for item in items)
        first = items[0]
        values = {
            "text": text if self._keeps_text else None,
            "text_length": len(text),
            "content_hash": hashlib.sha256(text.encode()).hexdigest(),
            "tags": tags,
            "metadata": _json(first.metadata),
            "retain_params": _json(first.params),
            "observation_scopes": _json(first.observation_scopes),
            "updated_at": self._now,
        }
        if row is not None:
            names = ", ".join(f"{name} = :{name}" for name in values)
            self._db.execute(f"UPDATE documents SET {names} WHERE id = :id", {**values, "id": row["id"]})  # noqa: S608 - our own names
            return row["id"]
        values |= {"bank": self._bank, "document_id": document_id, "created_at": self._now}
        names = ", ".join(values)
        marks = ", ".join(f":{name}" for name in values)
        saved = self._db.execute(f"INSERT INTO documents ({names}) VALUES ({marks}) RETURNING id", values)  # noqa: S608 - our own names
        return int(saved.fetchone()["id"])

    def _add(self, document: int, index: int, digest: bytes, item: Item, chunk: str) -> None:
        mentioned_at = None if item.mentioned_at is None else stored(item.mentioned_at)
        entities = json.dumps(item.entities, ensure_ascii=False)
        metadata = json.dumps(item.metadata, ensure_ascii=False)
        identity = (self._next_id, str(uuid.uuid4()), self._bank, document, index, digest, chunk, text_key(chunk))
        times = (mentioned_at, self._now, self._now)
        labels = (stored_tags(item.tags), metadata, entities, _json(item.observation_scopes))
        self.added.append((*identity, item.context, *times, *labels))
        self._indexed.append(index_row(self._next_id, chunk, item.context, item.entities))
        self._next_id += 1


def _json(value: object) -> str | None:
    """Return a value as stored: empty ones as none at all."""
    return json.dumps(value, ensure_ascii=False) if value else None
