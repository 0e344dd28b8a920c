"""The file: who may read it, what survives, and what a person is told when the disk fails."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from bankclient.errors import StoreError, StoreTooNew
from bankclient.store.database import Database
from bankclient.store.schema import MAJOR, MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store lies."""
    return tmp_path / "state" / "store.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    """Give a store with a table of the test's own."""
    with closing(Database(path)) as opened:
        with opened.write() as tx:
            tx.execute("CREATE TABLE notes (text TEXT)")
        yield opened


def _note(database: Database, text: str) -> None:
    with database.write() as tx:
        tx.execute("INSERT INTO notes VALUES (?)", (text,))


def _note_and_fail(database: Database, text: str) -> None:
    with database.write():
        _note(database, text)
        raise ZeroDivisionError


def _notes(database: Database) -> list[str]:
    with database.read() as tx:
        return [row["text"] for row in tx.execute("SELECT text FROM notes ORDER BY rowid")]


def _in_child(work: Callable[[], None]) -> int:
    """Run `work` in a forked child; return its exit code (1 if it raised)."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - whatever happens, the child must not go on as a test run
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_files_are_private_from_the_first_byte(path: Path) -> None:
    """Folder 0700, file, log and index 0600, whatever the umask."""
    before = os.umask(0)
    try:
        with closing(Database(path)) as database, database.write() as tx:
            tx.execute("CREATE TABLE notes (text TEXT)")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}


def test_an_open_file_of_ours_is_tightened(path: Path, database: Database) -> None:
    """A store that others may read is closed to them when it is opened."""
    database.close()
    path.chmod(0o644)
    with closing(Database(path)) as again, again.read():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_planted_symlink_is_refused(path: Path, tmp_path: Path) -> None:
    """What a symlink points to is neither written nor taken for our store."""
    path.parent.mkdir(mode=0o700)
    victim = tmp_path / "victim"
    path.symlink_to(victim)
    with closing(Database(path)) as database, pytest.raises(StoreError, match="symlink"), database.read():
        pass
    assert not victim.exists()


def test_a_planted_folder_is_refused(path: Path, tmp_path: Path) -> None:
    """A state folder that is a symlink is refused with the mend, as the store's own error."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path.parent.symlink_to(elsewhere)
    with closing(Database(path)) as database, pytest.raises(StoreError, match="remove it"), database.read():
        pass
    assert list(elsewhere.iterdir()) == []


def test_a_commit_is_fsynced_into_a_log(database: Database) -> None:
    """Every connection writes ahead, and waits for the disk at each commit."""
    with database.read() as tx:
        pragmas = {name: tx.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")}
    assert pragmas == {"journal_mode": "wal", "synchronous": 2}


def test_what_is_deleted_is_overwritten(path: Path, database: Database) -> None:
    """A text that is gone from its table is not found in the file either."""
    _note(database, "a text to be gone " * 1000)
    with database.write() as tx:
        tx.execute("DELETE FROM notes")
    database.close()
    assert b"a text to be gone" not in path.read_bytes()


def test_a_block_that_raises_leaves_nothing(database: Database) -> None:
    """What was written before the error is undone."""
    with pytest.raises(ZeroDivisionError):
        _note_and_fail(database, "half")
    assert _notes(database) == []


def test_blocks_inside_a_block_become_durable_with_it(path: Path, database: Database) -> None:
    """Parts of one piece of work are seen by others together, or not at all."""
    with closing(Database(path)) as other:
        with database.write():
            _note(database, "one")
            _note(database, "two")
            assert _notes(database) == ["one", "two"]
            assert _notes(other) == []
        assert _notes(other) == ["one", "two"]
        with pytest.raises(ZeroDivisionError):
            _note_and_fail(database, "three")
        assert _notes(other) == ["one", "two"]


def test_a_block_inside_that_fails_undoes_itself_alone(database: Database) -> None:
    """Who catches the error of a part may keep the rest."""
    with database.write():
        _note(database, "kept")
        with pytest.raises(ZeroDivisionError):
            _note_and_fail(database, "undone")
    assert _notes(database) == ["kept"]


def test_a_write_inside_a_read_is_a_mistake(database: Database) -> None:
    """It would act on what another process may have changed since, so it is refused at once."""
    with database.read(), pytest.raises(RuntimeError, match="inside a read"), database.write():
        pass


def test_a_read_sees_one_state(path: Path, database: Database) -> None:
    """What another process commits meanwhile is not seen half way."""
    with closing(Database(path)) as other, database.read() as tx:
        before = tx.execute("SELECT count(*) FROM notes").fetchone()[0]
        _note(other, "meanwhile")
        assert tx.execute("SELECT count(*) FROM notes").fetchone()[0] == before == 0
    assert _notes(database) == ["meanwhile"]


def test_threads_write_all_they_have(database: Database) -> None:
    """Eight threads at once neither lose a line nor see an error."""
    start = threading.Barrier(8)
    errors: list[BaseException] = []

    def write(name: int) -> None:
        start.wait()
        try:
            for number in range(20):
                _note(database, f"{name}-{number}")
                _notes(database)
        except BaseException as error:  # noqa: BLE001 - told to the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(_notes(database)) == sorted(f"{name}-{number}" for name in range(8) for number in range(20))


def test_processes_that_open_it_first_together_agree(path: Path) -> None:
    """Of several processes that find no file, one makes the tables and all can use them."""
    program = (
        "import sys; from pathlib import Path; from bankclient.store.database import Database\n"
        "sys.stdin.read(1)\n"
        "with Database(Path(sys.argv[1])).write() as tx:\n"
        "    tx.execute('UPDATE counters SET tick = tick + 1')\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", program, str(path)], stdin=subprocess.PIPE)
        for _ in range(4)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"x")
        child.stdin.close()
    assert [child.wait() for child in children] == [0, 0, 0, 0]
    with closing(Database(path)) as database, database.read() as tx:
        assert tx.execute("SELECT tick FROM counters").fetchone()[0] == 4


def test_parent_and_child_keep_what_each_writes(path: Path, database: Database) -> None:
    """After a fork, both write; nothing is lost though the parent closes the file first."""
    _note(database, "before")
    parent_done, tell_child = os.pipe()

    def child() -> None:
        _notes(database)
        os.read(parent_done, 1)
        _note(database, "child")

    pid = os.fork()
    if pid == 0:
        try:
            child()
        except BaseException:  # noqa: BLE001 - whatever happens, the child must not go on as a test run
            os._exit(1)
        os._exit(0)
    _note(database, "parent")
    database.close()
    os.write(tell_child, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(parent_done)
    os.close(tell_child)
    with closing(Database(path)) as again:
        assert _notes(again) == ["before", "parent", "child"]


def test_a_fork_waits_for_another_threads_transaction(database: Database) -> None:
    """A child forked while a thread writes can still use the store, and the thread's commit stands."""
    inside, go_on = threading.Event(), threading.Event()

    def write() -> None:
        with database.write() as tx:
            tx.execute("INSERT INTO notes VALUES ('thread')")
            inside.set()
            go_on.wait()

    thread = threading.Thread(target=write)
    thread.start()
    inside.wait()
    # The thread is let go on by the fork itself: this hook runs before the store's own, as the later registered.
    os.register_at_fork(before=go_on.set)
    assert _in_child(lambda: _note(database, "child")) == 0
    thread.join()
    assert sorted(_notes(database)) == ["child", "thread"]


def test_a_child_forked_inside_a_transaction_is_told(database: Database) -> None:
    """SQLite's locks do not follow a fork, so the child may not use the store, and is told instead of harming it."""

    def child() -> None:
        with pytest.raises(StoreError, match="start a process anew"):
            _notes(database)

    with database.write() as tx:
        tx.execute("INSERT INTO notes VALUES ('parent')")
        assert _in_child(child) == 0
    assert _notes(database) == ["parent"]


def test_a_killed_process_leaves_what_it_committed(path: Path, database: Database) -> None:
    """A kill -9 inside a transaction undoes that one, and no earlier one."""

    def child() -> None:
        _note(database, "committed")
        with database.write() as tx:
            tx.execute("INSERT INTO notes VALUES ('not committed')")
            os.kill(os.getpid(), signal.SIGKILL)

    assert _in_child(child) == -signal.SIGKILL
    with closing(Database(path)) as again:
        assert _notes(again) == ["committed"]


def test_a_full_disk_is_one_clear_line(path: Path) -> None:
    """The write is undone whole, the error says that the disk is full, and what was there can be read."""

    class Small(Database):
        def _prepare(self, connection: sqlite3.Connection) -> None:
            super()._prepare(connection)
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages + 4}")

    with closing(Small(path)) as database:
        with database.write() as tx:
            tx.execute("CREATE TABLE notes (text TEXT)")
        _note(database, "small")
        with pytest.raises(StoreError, match=r"store\.db cannot grow: its disk is full; free some space"):
            _note(database, "large" * 20_000)
        assert _notes(database) == ["small"]
        _note(database, "small again")
        assert _notes(database) == ["small", "small again"]


def test_a_read_only_file_is_one_clear_line(path: Path, database: Database) -> None:
    """A write to it says so; what is in it can be read."""
    _note(database, "before")

    class ReadOnly(Database):
        def _connect(self, mode: str) -> sqlite3.Connection:
            del mode
            return super()._connect("ro")

    with closing(ReadOnly(path)) as frozen:
        with pytest.raises(StoreError, match="read-only; make the file and its folder writable"):
            _note(frozen, "after")
        assert _notes(frozen) == ["before"]


def test_a_file_that_cannot_be_made_is_one_clear_line(path: Path) -> None:
    """The system's own reason is told, with the path."""
    with (
        closing(Database(path.with_name("x" * 300))) as database,
        pytest.raises(StoreError, match=r"cannot be made: File name too long"),
        database.read(),
    ):
        pass


@pytest.mark.parametrize("junk", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_file_that_is_no_database_is_one_clear_line(path: Path, junk: bytes) -> None:
    """It is named with the mend, and not touched."""
    path.parent.mkdir(mode=0o700)
    path.write_bytes(junk)
    with closing(Database(path)) as database, pytest.raises(StoreError, match="move it away"), database.write():
        pass
    assert path.read_bytes() == junk


def test_a_damaged_file_is_one_clear_line(path: Path, database: Database) -> None:
    """Damage inside the file is named where it is met."""
    _note(database, "text" * 10_000)
    database.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with closing(Database(path)) as again, pytest.raises(StoreError, match="is damaged; move it away"):
        _notes(again)


def test_a_locked_file_is_busy_and_says_so(path: Path, database: Database) -> None:
    """Where another process holds the file past the bound, trying again may be enough."""
    with (
        closing(Database(path, busy_seconds=0.0)) as other,
        database.write(),
        pytest.raises(StoreError, match="another process") as caught,
    ):
        _note(other, "now")
    assert caught.value.busy


def test_a_mistake_in_our_own_sql_passes(database: Database) -> None:
    """A bug is not dressed up as a fault of the disk."""
    with pytest.raises(sqlite3.OperationalError), database.read() as tx:
        tx.execute("SELECT nonsense")
    with pytest.raises(sqlite3.IntegrityError), database.write() as tx:
        tx.execute("INSERT INTO counters VALUES (NULL, 0, 0)")


def test_a_closed_store_is_refused(database: Database) -> None:
    """After `close`, use is an error that says so; closing again is none."""
    database.close()
    database.close()
    with pytest.raises(StoreError, match="was closed"):
        _notes(database)


def test_closing_in_use_closes_when_it_is_given_back(path: Path, database: Database) -> None:
    """A transaction that is under way when another thread closes the store still becomes durable."""
    with database.write() as tx:
        tx.execute("INSERT INTO notes VALUES ('late')")
        database.close()
    assert [file.name for file in path.parent.iterdir()] == ["store.db"]
    with closing(Database(path)) as again:
        assert _notes(again) == ["late"]


def _set_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"PRAGMA user_version = {version}")


def _logical(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as raw:
        return list(raw.iterdump())


def test_a_fresh_file_has_the_version_of_its_migrations(database: Database) -> None:
    """The version counts the migrations within the major version."""
    with database.read() as tx:
        assert tx.execute("PRAGMA user_version").fetchone()[0] == MAJOR * 1000 + len(MIGRATIONS)


def test_a_newer_major_version_is_refused_untouched(path: Path, database: Database) -> None:
    """Not a byte of the file or of its log changes, and the mend is to upgrade."""
    database.close()
    # Killed, so that a log stays beside the file that any writing connection would move into it.
    killed = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
        f" c.execute('PRAGMA user_version = {(MAJOR + 1) * 1000}'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", killed, str(path)], check=False)
    log = path.with_name("store.db-wal")
    before = path.read_bytes(), log.read_bytes()
    assert before[1]
    with closing(Database(path)) as again:
        for block in (again.read, again.write):
            with pytest.raises(StoreTooNew, match="upgrade bankclient"), block():
                pass
    assert (path.read_bytes(), log.read_bytes()) == before


def test_a_newer_minor_version_is_used_as_it_is(path: Path, database: Database) -> None:
    """Within a major version files only gain tables, so an older program goes on with one that has more."""
    database.close()
    _set_version(path, MAJOR * 1000 + len(MIGRATIONS) + 7)
    with closing(Database(path)) as again:
        _note(again, "older program")
        with again.read() as tx:
            assert tx.execute("PRAGMA user_version").fetchone()[0] == MAJOR * 1000 + len(MIGRATIONS) + 7
        assert _notes(again) == ["older program"]


def test_migrating_from_each_version_gives_the_same_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that grew with the program equals one that was made now, and keeps its rows."""
    more = (
        *MIGRATIONS,
        ("CREATE TABLE later (x)", "INSERT INTO later VALUES (1)"),
        ("ALTER TABLE later ADD COLUMN y",),
    )
    monkeypatch.setattr("bankclient.store.database.MIGRATIONS", more)
    for known in range(len(more) + 1):
        grown = path.with_name(f"grown-{known}.db")
        for migrations in (more[:known], more):
            monkeypatch.setattr("bankclient.store.database.MIGRATIONS", migrations)
            monkeypatch.setattr("bankclient.store.database._VERSION", MAJOR * 1000 + len(migrations))
            with closing(Database(grown)) as database, database.write():
                pass
    fresh = _logical(path.with_name("grown-0.db"))
    assert all(_logical(path.with_name(f"grown-{known}.db")) == fresh for known in range(len(more) + 1))
    assert any("later" in line for line in fresh)


def test_a_migration_that_fails_leaves_the_old_file(
    path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of an upgrade is one transaction."""
    _note(database, "before")
    database.close()
    before = _logical(path)
    broken = (*MIGRATIONS, ("CREATE TABLE later (x)",), ("not SQL",))
    monkeypatch.setattr("bankclient.store.database.MIGRATIONS", broken)
    monkeypatch.setattr("bankclient.store.database._VERSION", MAJOR * 1000 + len(broken))
    with closing(Database(path)) as again, pytest.raises(sqlite3.OperationalError), again.read():
        pass
    assert _logical(path) == before
