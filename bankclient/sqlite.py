"""What every SQLite file of ours has in common: how it is connected to, and what SQLite's errors mean to a person.

It owns no file, table or transaction; those belong to whoever keeps something.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Problem", "connect", "problem_of"]


class Problem(NamedTuple):
    """What is wrong with a file, as the end of a sentence with the mend; `busy` where trying again may be enough."""

    words: str
    busy: bool = False


_PROBLEMS = {
    sqlite3.SQLITE_BUSY: Problem("is being written by another process; try again", busy=True),
    sqlite3.SQLITE_LOCKED: Problem("is being written by another thread; try again", busy=True),
    sqlite3.SQLITE_FULL: Problem("cannot grow: its disk is full; free some space"),
    sqlite3.SQLITE_READONLY: Problem("is read-only; make the file and its folder writable for this user"),
    sqlite3.SQLITE_PERM: Problem("may not be used by this user; look at its permissions"),
    sqlite3.SQLITE_AUTH: Problem("may not be used by this user; look at its permissions"),
    sqlite3.SQLITE_CANTOPEN: Problem("cannot be opened; look at the file and its folder"),
    sqlite3.SQLITE_IOERR: Problem("cannot be read or written: the disk reports an error; look at the disk"),
    sqlite3.SQLITE_CORRUPT: Problem("is damaged; move it away (a new one is begun) or put back a copy of it"),
    sqlite3.SQLITE_NOTADB: Problem("is not an SQLite database; move it away"),
}


def connect(path: Path, mode: Literal["ro", "rw"], *, busy_seconds: float) -> sqlite3.Connection:
    """Return a connection without transactions of its own, usable by one thread at a time, whichever that is.

    The file must be there. Another process's write is waited for up to `busy_seconds`.
    """
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.row_factory = sqlite3.Row
    return connection


def problem_of(error: sqlite3.DatabaseError) -> Problem | None:
    """Return what the disk or another process did, `None` for an error of our own SQL."""
    return _PROBLEMS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
