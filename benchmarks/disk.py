"""The yardstick of everything that acknowledges: one insert that is on the disk when it returns."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

__all__ = ["fsynced_inserts"]


@contextlib.contextmanager
def fsynced_inserts(path: Path) -> Generator[Callable[[bytes], None]]:
    """Give what puts bytes into a file of its own: SQLite, one table, one insert a transaction, fsynced."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as bare:
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            bare.execute(f"PRAGMA {pragma}")
        bare.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")

        def insert(body: bytes) -> None:
            bare.execute("INSERT INTO rows (body) VALUES (?)", (body,))

        yield insert
