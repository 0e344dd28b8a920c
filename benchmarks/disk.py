"""The yardstick of everything that acknowledges: one insert that is on the disk when it returns."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

__all__ = ["fsynced_inserts"]

_LOG_BYTES = 8 << 20
"""More than the log ever holds: SQLite begins it anew after 1,000 pages."""


@contextlib.contextmanager
def fsynced_inserts(path: Path) -> Generator[Callable[[bytes], None]]:
    """Give what puts bytes into a file of its own: SQLite, one table, one insert a transaction, fsynced."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as bare:
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            bare.execute(f"PRAGMA {pragma}")
        bare.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")

        # As long as its log grows, a commit takes the file system more time than it does ever after.
        bare.execute("INSERT INTO rows (body) VALUES (zeroblob(?))", (_LOG_BYTES,))
        bare.execute("DELETE FROM rows")

        def insert(body: bytes) -> None:
            bare.execute("INSERT INTO rows (body) VALUES (?)", (body,))

        yield insert
