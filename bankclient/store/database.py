"""The file: opening, migrating, transactions, and what SQLite's errors mean.

The one owner of connections. They are pooled, so threads share them one at a time, and closed before a fork, so parent
and child share none. This module knows no table beyond the version; what cannot be done it says as `StoreError`.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
from typing import TYPE_CHECKING, Literal

from bankclient.errors import ConfigError, StoreError, StoreTooNew
from bankclient.forking import around_fork
from bankclient.paths import private_folder
from bankclient.sqlite import connect, problem_of
from bankclient.store.schema import MAJOR, MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

__all__ = ["STORE_FILE", "Database"]

STORE_FILE = "store.sqlite3"
"""The store's file in the state folder."""

_BUSY_SECONDS = 5.0
_FILE_MODE = 0o600
_MAJOR_STEP = 1000
"""`user_version` is the major version times this, plus the number of migrations done within it."""
_VERSION = MAJOR * _MAJOR_STEP + len(MIGRATIONS)

_PRAGMAS = (
    "foreign_keys = ON",
    "secure_delete = ON",  # a text that goes is overwritten, not only forgotten
    "synchronous = FULL",  # a commit is an acknowledgement: it is on the disk when it returns
)


class _OfThread(threading.local):
    """The connection that this thread has out, and whether it may write."""

    connection: sqlite3.Connection | None = None
    writes = False


class Database:
    """One SQLite file, opened at first use; safe to share between threads and across `fork`.

    `read()` and `write()` are the only ways in. Inside a `write()` both join it: what the parts of a work write
    becomes durable together, when the outermost block ends, or not at all. Who forks inside a block has a child
    that cannot use the store.
    """

    def __init__(self, path: Path, *, busy_seconds: float = _BUSY_SECONDS) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._unusable = ""
        self._fresh_pool()
        around_fork(before=self._before_fork, in_parent=self._after_fork_in_parent, in_child=self._after_fork_in_child)

    def _fresh_pool(self) -> None:
        self._of_thread = _OfThread()
        self._idle: list[sqlite3.Connection] = []
        self._lent = 0
        self._pool = threading.Condition()
        self._writing = threading.Lock()  # our own threads queue here, which is fairer than SQLite's polling
        self._checked = False

    @contextlib.contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """Yield a connection that sees one unchanging state of the file. Raises `StoreError`."""
        with self._translated():
            if (connection := self._of_thread.connection) is not None:
                yield connection
                return
            with self._taken("BEGIN") as connection:
                yield connection

    @contextlib.contextmanager
    def write(self) -> Generator[sqlite3.Connection]:
        """Yield a connection whose changes are on the disk when the outermost block ends, or undone if it raises.

        Raises `StoreError`.
        """
        with self._translated():
            if (connection := self._of_thread.connection) is None:
                with self._writing, self._taken("BEGIN IMMEDIATE", writes=True) as connection:
                    yield connection
            elif self._of_thread.writes:
                with _savepoint(connection):
                    yield connection
            else:
                raise RuntimeError("a write inside a read would act on what may have changed; open the write first")

    def close(self) -> None:
        """Close what is idle now, and what is in use when it is given back. No later use is possible."""
        self._unusable = f"the store {self.path} was closed"
        with self._pool:
            self._close_idle()

    @contextlib.contextmanager
    def _taken(self, begin: str, *, writes: bool = False) -> Generator[sqlite3.Connection]:
        mine = self._of_thread
        with self._lend() as connection:
            connection.execute(begin)
            mine.connection, mine.writes = connection, writes
            try:
                yield connection
                self._commit(connection)
            except BaseException:
                # SQLite has already rolled back after some errors (a full disk); else the transaction is still open.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                mine.connection, mine.writes = None, False

    def _commit(self, connection: sqlite3.Connection) -> None:
        connection.execute("COMMIT")

    @contextlib.contextmanager
    def _lend(self) -> Generator[sqlite3.Connection]:
        with self._pool:
            self._check_usable()
            connection = self._idle.pop() if self._idle else self._open()
            self._lent += 1
        try:
            yield connection
        finally:
            with self._pool:
                self._idle.append(connection)
                self._lent -= 1
                if self._unusable:
                    self._close_idle()
                self._pool.notify_all()

    def _check_usable(self) -> None:
        if self._unusable:
            raise StoreError(self._unusable)

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _open(self) -> sqlite3.Connection:
        if not self._checked:
            self._check_file()
            # Read-only, because closing a writing connection moves the log into a file that may not be ours to touch.
            with contextlib.closing(self._connect("ro")) as connection:
                self._version(connection)
            self._checked = True
        connection = self._connect("rw")
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_file(self) -> None:
        """Make folder and file for their owner alone where they are missing; refuse what is not ours."""
        try:
            private_folder(self.path.parent)
        except ConfigError as error:
            raise StoreError(str(error)) from error
        try:
            # Only a new file is opened here: to close any descriptor of an open database drops SQLite's locks on it.
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, _FILE_MODE))
        except FileExistsError:
            found = self.path.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise StoreError(f"the store {self.path} is a symlink, or another user's; move it away") from None
            if stat.S_IMODE(found.st_mode) & ~_FILE_MODE:
                self.path.chmod(_FILE_MODE)
        except OSError as error:
            raise StoreError(f"the store {self.path} cannot be made: {error.strerror}") from error

    def _connect(self, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
        return connect(self.path, mode, busy_seconds=self._busy_seconds)

    def _version(self, connection: sqlite3.Connection) -> int:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version >= (MAJOR + 1) * _MAJOR_STEP:
            raise StoreTooNew(
                f"the store {self.path} was written by a newer bankclient (file version {version // _MAJOR_STEP},"
                f" this one knows {MAJOR}) and was left as it is; upgrade bankclient"
            )
        return version

    def _prepare(self, connection: sqlite3.Connection) -> None:
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        if self._version(connection) >= _VERSION:  # a later minor version only added to it
            return
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Asked again under the lock: another process may have been first.
            done = max(0, self._version(connection) - MAJOR * _MAJOR_STEP)
            for migration in MIGRATIONS[done:]:
                for statement in migration:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {max(_VERSION, MAJOR * _MAJOR_STEP + done):d}")
            self._commit(connection)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _translated(self) -> Generator[None]:
        """Say as `StoreError` what the disk or another process did; errors of our own code pass."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            problem = problem_of(error)
            if problem is None:
                raise
            raise StoreError(f"the store {self.path} {problem.words} ({error})", busy=problem.busy) from error

    def _before_fork(self) -> None:
        """Close every connection, and keep new ones from being made until the fork is done.

        SQLite keeps its locks in tables of the process, which a child inherits without having the locks: its commits
        would go to a log that the parent deletes. A transaction of another thread is waited for.
        """
        self._pool.acquire()
        mine = self._of_thread.connection is not None
        self._pool.wait_for(lambda: self._lent == mine, timeout=self._busy_seconds)
        self._close_idle()

    def _after_fork_in_parent(self) -> None:
        self._pool.release()

    def _after_fork_in_child(self) -> None:
        if self._lent:
            self._unusable = f"the store {self.path} was in use when this process was forked; start a process anew"
        self._fresh_pool()


@contextlib.contextmanager
def _savepoint(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("SAVEPOINT joined")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO joined")
            connection.execute("RELEASE joined")
        raise
    connection.execute("RELEASE joined")
