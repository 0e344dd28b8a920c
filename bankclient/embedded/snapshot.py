"""Everything in the bank's file as it stood at one moment, document by document, for taking it elsewhere.

It reads in one transaction, so writers go on and are not seen, and never holds more than one document. What the rows
mean to whoever retains them again is `unfiling`'s business.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3  # noqa: TC003 - functions are annotated with it
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bankclient.embedded.banks import settings_of
from bankclient.embedded.chunking import chunks
from bankclient.embedded.database import Database, StorageError
from bankclient.embedded.unfiling import SavedDocument, StoredDocument, StoredMemory, unfiled
from bankclient.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["SavedBank", "Snapshot", "open_snapshot"]

_BANKS = """
    SELECT b.*, (SELECT count(*) FROM documents d WHERE d.bank = b.id) AS documents,
        (SELECT count(*) FROM memories m WHERE m.bank = b.id) AS memories
    FROM banks b ORDER BY b.id
"""


@dataclass(frozen=True, slots=True)
class SavedBank:
    """A bank: how it is set, and how much is in it, invalidated memories included."""

    bank_id: str
    name: str
    config: Mapping[str, Any]
    documents: int
    memories: int


@contextlib.contextmanager
def open_snapshot(path: Path) -> Generator[Snapshot]:
    """Give what the file holds now; raises `StoreError` where there is none, or it cannot be read."""
    if not path.exists():
        raise StoreError(f"there is no embedded bank yet: {path} does not exist; the first retain makes it")
    database = Database(path)
    try:
        with database.read() as db:
            yield Snapshot(db)
    except StorageError as error:
        raise StoreError(str(error), busy=error.busy) from error
    finally:
        database.close()


class Snapshot:
    """What the file held when this was opened."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        rows = db.execute(_BANKS).fetchall()
        self._ids: dict[str, int] = {row["bank_id"]: row["id"] for row in rows}
        self.banks: tuple[SavedBank, ...] = tuple(
            SavedBank(row["bank_id"], row["name"], json.loads(row["config"]), row["documents"], row["memories"])
            for row in rows
        )

    def documents(self, bank_id: str) -> Iterator[SavedDocument]:
        """Yield the documents of a bank of this snapshot, in the order in which they were first retained."""
        bank = self._ids[bank_id]
        settings = settings_of(self._db, bank)
        cut = partial(
            chunks, size=settings["retain_chunk_size"], structured_size=settings["retain_structured_chunk_size"]
        )
        # Sorted as ids: sorting the rows would hold all the texts at once.
        for (document,) in self._db.execute("SELECT id FROM documents WHERE bank = ? ORDER BY id", (bank,)):
            row = self._db.execute("SELECT * FROM documents WHERE id = ?", (document,)).fetchone()
            memories = self._db.execute("SELECT * FROM memories WHERE document = ? ORDER BY chunk_index", (document,))
            yield unfiled(_document(row, memories.fetchall()), lambda text: list(cut(text)))


def _document(row: sqlite3.Row, memories: Sequence[sqlite3.Row]) -> StoredDocument:
    return StoredDocument(
        document_id=row["document_id"],
        text=row["text"],
        tags=tuple(json.loads(row["tags"])),
        metadata=_loaded(row["metadata"]) or {},
        params=_loaded(row["retain_params"]) or {},
        observation_scopes=_loaded(row["observation_scopes"]),
        created_at=row["created_at"],
        memories=tuple(_memory(memory) for memory in memories),
    )


def _memory(row: sqlite3.Row) -> StoredMemory:
    return StoredMemory(
        index=row["chunk_index"],
        chunk=row["text"] if row["chunk_text"] is None else row["chunk_text"],
        text=row["text"],
        context=row["context"],
        fact_type=row["fact_type"],
        occurred_start=row["occurred_start"],
        occurred_end=row["occurred_end"],
        mentioned_at=row["mentioned_at"],
        is_edited=row["edited_at"] is not None,
        is_invalidated=row["invalidated_at"] is not None,
        reason=row["invalidation_reason"],
        tags=tuple(json.loads(row["tags"])),
        metadata=json.loads(row["metadata"]),
        entities=tuple(json.loads(row["entities"])),
        observation_scopes=_loaded(row["observation_scopes"]),
    )


def _loaded(text: str | None) -> Any:  # noqa: ANN401 - any JSON value
    return None if text is None else json.loads(text)
