"""A bank's search index as rows: putting memories in, taking them out.

The index holds valid memories only, so a search needs no further filter. Owns the virtual tables `search_N`; ranking
stands in `search`.
"""

from __future__ import annotations

import sqlite3  # noqa: TC003 - functions are annotated with it
from typing import TYPE_CHECKING

from bankclient.embedded.schema import drop_index, index_table, make_index
from bankclient.embedded.search import index_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["add_to_index", "clear_index", "drop_from_index", "index_row"]

IndexRow = tuple[int, str, str]


def index_row(memory: int, text: str, context: str, entities: Sequence[str]) -> IndexRow:
    """Return what the index holds of one memory: its row id, and the terms of its two columns."""
    about = index_terms(" ".join([context, *entities])) if context or entities else ""
    return memory, index_terms(text), about


def add_to_index(db: sqlite3.Connection, bank: int, rows: Iterable[IndexRow]) -> None:
    """Put memories into the bank's index."""
    statement = f"INSERT INTO {index_table(bank)} (rowid, text, about) VALUES (?, ?, ?)"  # noqa: S608 - our own name
    db.executemany(statement, rows)


def clear_index(db: sqlite3.Connection, bank: int) -> None:
    """Take all memories out of the bank's index, by making it anew."""
    db.execute(drop_index(bank))
    db.execute(make_index(bank))


def drop_from_index(db: sqlite3.Connection, bank: int, memories: Iterable[int]) -> None:
    """Take memories out of the bank's index; one that is not in it is passed over."""
    statement = f"DELETE FROM {index_table(bank)} WHERE rowid = ?"  # noqa: S608 - our own name
    db.executemany(statement, [(memory,) for memory in memories])
