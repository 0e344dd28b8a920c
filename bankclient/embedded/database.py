"""The file: opening, migrating, transactions, and what SQLite's errors mean.

Connections are pooled, so threads share them one at a time, and closed before a fork, so parent and child share none.
This module knows nothing of banks or HTTP; what it cannot do it says as `StorageError`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
import threading
from typing import TYPE_CHECKING, Literal

from bankclient.embedded.schema import MIGRATIONS, VERSION
from bankclient.errors import ConfigError
from bankclient.forking import around_fork
from bankclient.paths import private_folder
from bankclient.sqlite import connect, problem_of

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

__all__ = ["Database", "StorageError"]

_BUSY_SECONDS = 10.0


class StorageError(Exception):
    """The file cannot be used; the message names it and the mend. `busy` says that trying again may be enough."""

    def __init__(self, message: str, *, busy: bool = False) -> None:
        super().__init__(message)
        self.busy = busy


class Database:
    """One SQLite file, opened at first use; safe to share between threads and across `fork`."""

    def __init__(self, path: Path, *, busy_seconds: float = _BUSY_SECONDS) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._closed = False
        self._fresh_pool()
        around_fork(before=self._before_fork, in_parent=self._after_fork_in_parent, in_child=self._fresh_pool)

    def _fresh_pool(self) -> None:
        self._idle: list[sqlite3.Connection] = []
        self._lent = 0
        self._pool = threading.Condition()
        self._writing = threading.Lock()
        self._checked = False

    def _before_fork(self) -> None:
        """Close every connection, and keep new ones from being made until the fork is done.

        SQLite keeps its locks in tables of the process, which a child inherits without having the locks: its commits
        would go to a log that the parent deletes. What another thread has under way is waited for.
        """
        self._pool.acquire()
        self._pool.wait_for(lambda: self._lent == 0, timeout=self._busy_seconds)
        self._close_idle()

    def _after_fork_in_parent(self) -> None:
        self._pool.release()

    @contextlib.contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """Yield a connection that sees one unchanging state of the file. Raises `StorageError`."""
        with self._translated(), self._connection() as connection, _transaction(connection, "BEGIN"):
            yield connection

    @contextlib.contextmanager
    def write(self) -> Generator[sqlite3.Connection]:
        """Yield a connection in a transaction that is on the disk when the block ends, or undone if it raises.

        Raises `StorageError`.
        """
        with (
            self._translated(),
            self._writing,
            self._connection() as connection,
            _transaction(connection, "BEGIN IMMEDIATE"),
        ):
            yield connection

    def close(self) -> None:
        """Close what is idle now, and what is in use when it is given back."""
        self._closed = True
        with self._pool:
            self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @contextlib.contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        with self._pool:
            connection = self._idle.pop() if self._idle else self._open()
            self._lent += 1
        try:
            yield connection
        finally:
            with self._pool:
                self._lent -= 1
                # Still in a transaction: undoing it failed too, so nothing is known of its state.
                if self._closed or connection.in_transaction:
                    connection.close()
                else:
                    self._idle.append(connection)
                self._pool.notify_all()

    def _open(self) -> sqlite3.Connection:
        if self._closed:
            raise StorageError(f"the embedded bank {self.path} is closed")
        if self._checked:
            return self._prepared(self._connect("rw"))
        # Making a file and setting it up is not for two processes at a time.
        with self._folder_locked():
            self._check_file()
            # Asked through a read-only connection first: closing a writing one may move its log into the file.
            with contextlib.closing(self._connect("ro")) as connection:
                self._version(connection)
            connection = self._prepared(self._connect("rw"))
        self._checked = True
        return connection

    @contextlib.contextmanager
    def _folder_locked(self) -> Generator[None]:
        """Hold the folder, which is made private where it is missing, until the block ends."""
        folder = self.path.parent
        try:
            if not folder.exists():
                private_folder(folder)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except ConfigError as error:
            raise StorageError(str(error)) from error
        except OSError as error:
            raise StorageError(f"{folder} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _check_file(self) -> None:
        """Make the file, for its owner alone, where it is missing; refuse what is not ours."""
        try:
            # Only a new file is opened here: closing a second descriptor of an open database would drop its locks.
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            found = self.path.lstat()
            if not stat.S_ISREG(found.st_mode):
                raise StorageError(f"{self.path} is not a plain file; move it away") from None
            if found.st_uid != os.geteuid():
                raise StorageError(f"{self.path} belongs to another user; choose another HINDSIGHT_STATE_DIR") from None
        except OSError as error:
            raise StorageError(f"the embedded bank {self.path} cannot be made: {error.strerror}") from error

    def _connect(self, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
        return connect(self.path, mode, busy_seconds=self._busy_seconds)

    def _version(self, connection: sqlite3.Connection) -> int:
        """Return the file's version; refuse a newer one."""
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            raise StorageError(
                f"{self.path} was written by a newer bankclient (file version {version}, this one knows {VERSION}); "
                "it was left as it is: upgrade bankclient, or choose another HINDSIGHT_STATE_DIR"
            )
        return version

    def _prepared(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Return a new connection with its settings made and the file brought to this version, or close it."""
        try:
            for pragma in ("foreign_keys = ON", "synchronous = FULL", "cache_size = -16000", "temp_store = MEMORY"):
                connection.execute(f"PRAGMA {pragma}")
            if self._version(connection) < VERSION:
                connection.execute("PRAGMA journal_mode = WAL")
                with _transaction(connection, "BEGIN IMMEDIATE"):
                    for migration in MIGRATIONS[self._version(connection) :]:
                        for statement in migration:
                            connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {VERSION:d}")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _translated(self) -> Generator[None]:
        """Say as `StorageError` what the disk or another process did; errors of our own code pass."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            problem = problem_of(error)
            if problem is None:
                raise
            raise StorageError(f"the embedded bank {self.path} {problem.words} ({error})", busy=problem.busy) from error


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Generator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has already rolled back after some errors (a full disk); else the transaction is still open.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
