"""The file: who may read it, what a crash or another process does to it, and what is said when it cannot be used."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.embedded import EmbeddedServer, Reply
from bankclient.embedded.database import Database, StorageError
from bankclient.embedded.schema import MIGRATIONS, VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BANK = "/v1/default/banks/bank"
_JSON = {"content-type": "application/json"}


def retain(server: EmbeddedServer, *texts: str, **fields: object) -> Reply:
    """Retain texts and return the reply."""
    body = {"items": [{"content": text} for text in texts], **fields}
    return server.answer("POST", f"{_BANK}/memories", json.dumps(body).encode(), _JSON)


def texts(server: EmbeddedServer) -> set[str]:
    """Return the texts of all memories."""
    reply = server.answer("GET", f"{_BANK}/memories/list?limit=100000")
    assert reply.status == 200, reply.body
    return {item["text"] for item in json.loads(reply.body)["items"]}


def detail(reply: Reply) -> str:
    """Return what an error says."""
    text: str = json.loads(reply.body)["detail"]
    return text


def test_nothing_is_made_before_the_first_request(path: Path) -> None:
    """A server that is only built touches no disk."""
    EmbeddedServer(path).close()
    assert not path.parent.exists()


def test_file_and_folder_are_their_owners_alone(path: Path) -> None:
    """The folder is 0700, the file and what SQLite puts beside it 0600, whatever the umask."""
    before = os.umask(0)
    try:
        with EmbeddedServer(path) as server:
            retain(server, "Secret.")
            modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert modes == {path.name: 0o600, f"{path.name}-wal": 0o600, f"{path.name}-shm": 0o600}


def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    """A folder of the person's own is not ours to close."""
    tmp_path.chmod(0o755)
    with EmbeddedServer(tmp_path / "bank.sqlite3") as server:
        retain(server, "x")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_what_was_retained_is_there_after_reopening(path: Path) -> None:
    """The file is the bank."""
    with EmbeddedServer(path) as server:
        retain(server, "One.", "Two.")
    with EmbeddedServer(path) as server:
        assert texts(server) == {"One.", "Two."}


def test_a_planted_link_or_folder_is_refused(path: Path) -> None:
    """What is not a plain file at the path is named, not followed."""
    path.parent.mkdir()
    target = path.parent / "elsewhere"
    path.symlink_to(target)
    with EmbeddedServer(path) as server:
        reply = retain(server, "x")
    assert (reply.status, detail(reply)) == (500, f"{path} is not a plain file; move it away")
    assert not target.exists()


def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(path: Path) -> None:
    """Not one byte changes, nothing appears beside it, and the answer says what to do."""
    path.parent.mkdir()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE future (x)")
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    before = path.read_bytes()
    with EmbeddedServer(path) as server:
        for reply in (retain(server, "x"), server.answer("GET", f"{_BANK}/stats")):
            assert reply.status == 500
            assert "was written by a newer bankclient" in detail(reply)
            assert "upgrade bankclient" in detail(reply)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_newer_version_in_the_log_is_refused_too(path: Path) -> None:
    """A newer bankclient that is running has its migration in the log still."""
    path.parent.mkdir()
    newer = sqlite3.connect(path, isolation_level=None)
    newer.execute("PRAGMA journal_mode = WAL")
    newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()
    with EmbeddedServer(path) as server:
        assert "newer bankclient" in detail(retain(server, "x"))
    assert path.read_bytes() == before
    newer.close()


def test_migrations_are_counted_in_the_file(server: EmbeddedServer, path: Path) -> None:
    """The version is the number of migrations, and the file says so."""
    retain(server, "x")
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] == VERSION == len(MIGRATIONS)
        assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    db.close()


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_file_that_is_no_database_is_named(path: Path, content: bytes) -> None:
    """It is a 500 that names the file, and the file is left alone."""
    path.parent.mkdir()
    path.write_bytes(content)
    with EmbeddedServer(path) as server:
        reply = retain(server, "x")
    assert reply.status == 500
    assert str(path) in detail(reply)
    assert path.read_bytes() == content


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file in the way of the folder is said, with the path."""
    (tmp_path / "file").write_text("")
    with EmbeddedServer(tmp_path / "file" / "bank.sqlite3") as server:
        reply = server.answer("GET", "/health")
        assert reply.status == 503
        assert json.loads(reply.body)["status"] == "unhealthy"
        assert str(tmp_path / "file") in detail(retain(server, "x"))


def test_a_full_disk_is_named_and_nothing_is_half_written(server: EmbeddedServer, path: Path) -> None:
    """The retain that does not fit is refused whole; reading goes on, and so does writing once there is room."""
    retain(server, "Before.")
    (connection,) = server._database._idle
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    reply = retain(server, *(f"Long text number {n} " * 50 for n in range(50)))
    assert reply.status == 500
    assert detail(reply).startswith(f"the embedded bank {path} cannot grow: its disk is full")
    assert texts(server) == {"Before."}
    connection.execute("PRAGMA max_page_count = 1073741823")
    assert retain(server, "After.").status == 200
    assert texts(server) == {"Before.", "After."}


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """Give a folder of a user for whom permissions count, and be that user."""
    # Reachable for that user, unlike pytest's own folders.
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    root = os.geteuid() == 0
    if root:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
    yield folder
    if root:
        os.seteuid(0)
    for entry in (*folder.iterdir(), folder):
        entry.chmod(0o700)
    for entry in folder.iterdir():
        entry.unlink()
    folder.rmdir()


def test_a_read_only_file_is_named_when_it_is_written(unprivileged: Path) -> None:
    """Reading goes on, writing is a 500 that says what to change."""
    path = unprivileged / "bank.sqlite3"
    with EmbeddedServer(path) as server:
        retain(server, "Before.")
    path.chmod(0o400)
    with EmbeddedServer(path) as server:
        assert texts(server) == {"Before."}
        reply = retain(server, "After.")
        assert reply.status == 500
        assert detail(reply).startswith(f"the embedded bank {path} is read-only; make the file and its folder writable")


def test_a_read_only_folder_is_named(unprivileged: Path) -> None:
    """A bank cannot be made there, and the answer says where."""
    unprivileged.chmod(0o500)
    path = unprivileged / "bank.sqlite3"
    with EmbeddedServer(path) as server:
        reply = retain(server, "x")
    assert reply.status == 500
    assert detail(reply) == f"the embedded bank {path} cannot be made: Permission denied"


def test_a_closed_server_says_so(server: EmbeddedServer) -> None:
    """A request after close is a 500, not a traceback, and not a new connection."""
    retain(server, "x")
    server.close()
    reply = retain(server, "y")
    assert reply.status == 500
    assert detail(reply).endswith("is closed")


def test_a_failed_request_leaves_nothing(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails in the middle of a transaction is undone, and is a 500 with its reason."""
    retain(server, "Before.")

    def broken(*_: object) -> None:
        raise RuntimeError("out of order")

    with monkeypatch.context() as patch:
        patch.setattr("bankclient.embedded.filing.add_to_index", broken)
        reply = retain(server, "Lost.")
    assert (reply.status, detail(reply)) == (500, "RuntimeError: out of order")
    assert texts(server) == {"Before."}
    assert retain(server, "After.").status == 200


def test_threads_share_a_server(server: EmbeddedServer) -> None:
    """Writes and reads from many threads all succeed, and all writes are there."""

    def work(number: int) -> int:
        status = retain(server, f"Thread text {number}.").status
        server.answer("POST", f"{_BANK}/memories/recall", b'{"query":"thread"}', _JSON)
        return status

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(40))) == {200}
    assert len(texts(server)) == 40


def test_another_writer_is_waited_for_and_then_named(path: Path) -> None:
    """Where the other process does not finish, the answer is 503 with a time to come back."""
    database = Database(path, busy_seconds=0.01)
    with database.write() as db:
        db.execute("SELECT 1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageError, match="is being written by another process") as caught, database.write():
        pass
    assert caught.value.busy
    with EmbeddedServer(path) as server:
        server._database = database
        reply = retain(server, "x")
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert server.answer("GET", "/health").status == 200
    other.execute("ROLLBACK")
    other.close()


def test_a_forked_child_opens_the_file_anew(server: EmbeddedServer) -> None:
    """Parent and child both go on, and each sees what the other wrote."""
    retain(server, "Parent before.")
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        good = retain(server, "Child.").status == 200 and "Parent before." in texts(server)
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    retain(server, "Parent after.")
    assert texts(server) == {"Parent before.", "Child.", "Parent after."}


def test_a_child_keeps_what_it_wrote_when_its_parent_closes_first(server: EmbeddedServer) -> None:
    """SQLite's locks are those of a process: a connection that came along by a fork would let the log be deleted."""
    retain(server, "Parent before.")
    opened, closed = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        texts(server)
        os.write(opened[1], b"x")
        os.read(closed[0], 1)
        os._exit(0 if retain(server, "Child.").status == 200 else 1)
    os.read(opened[0], 1)
    server.close()
    os.write(closed[1], b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for end in (*opened, *closed):
        os.close(end)
    with EmbeddedServer(server.path) as again:
        assert texts(again) == {"Parent before.", "Child."}


_WRITER = """
import json, pathlib, sys, uuid
from bankclient.embedded import EmbeddedServer
server = EmbeddedServer(pathlib.Path(sys.argv[1]))
first, count = int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for number in range(first, first + count):
    operation_id = str(uuid.UUID(int=number, version=4))
    body = {"items": [{"content": f"Text {number}.", "document_id": str(number)}], "async": True,
            "operation_id": operation_id}
    reply = server.answer("POST", "/v1/default/banks/bank/memories", json.dumps(body).encode(),
                          {"content-type": "application/json"})
    assert reply.status == 200, reply.body
    print(number, flush=True)
"""


def writer(path: Path, first: int, count: int) -> subprocess.Popen[str]:
    """Start a process that, once told to go, retains numbered texts and prints the number of each acknowledged."""
    command = [sys.executable, "-c", _WRITER, str(path), str(first), str(count)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    """Tell a writer to go."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize("after", [1, 7, 23])
def test_what_was_acknowledged_survives_kill_9(path: Path, after: int) -> None:
    """The bank opens, what was acknowledged is there once with its operation, and the index agrees with the table."""
    process = writer(path, 0, 10_000)
    go(process)
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(after)]
    process.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in process.communicate()[0].splitlines() if line.strip().isdigit()]
    with EmbeddedServer(path) as server:
        stored = texts(server)
        assert {f"Text {number}." for number in acknowledged} <= stored
        assert len(stored) <= len(acknowledged) + 1
        reply = server.answer("GET", f"{_BANK}/operations?type=batch_retain&limit=1")
        assert json.loads(reply.body)["total"] == len(stored)
        assert retain(server, "After the crash.").status == 200
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        db.execute("INSERT INTO search_1 (search_1) VALUES ('integrity-check')")
        assert db.execute("SELECT count(*) FROM search_1").fetchone()[0] == len(stored) + 1
    db.close()


def test_processes_share_a_file_from_its_first_moment(path: Path) -> None:
    """Four processes begin at once on a file that is not there, and all that they retain is there."""
    processes = [writer(path, first, 15) for first in (0, 100, 200, 300)]
    for process in processes:
        go(process)
    outputs = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    with EmbeddedServer(path) as server:
        assert texts(server) == {f"Text {number}." for output in outputs for number in output}
        assert len(texts(server)) == 60


def test_one_process_sees_what_another_wrote(server: EmbeddedServer, path: Path) -> None:
    """Two servers on one file are one bank, for reading, writing, deleting and banks made and dropped."""
    with EmbeddedServer(path) as other:
        retain(server, "The ferry leaves.")
        assert texts(other) == {"The ferry leaves."}
        recall = other.answer("POST", f"{_BANK}/memories/recall", b'{"query":"ferry"}', _JSON)
        assert len(json.loads(recall.body)["results"]) == 1
        other.answer("DELETE", _BANK)
        assert server.answer("GET", f"{_BANK}/stats").status == 404
        retain(server, "The ferry returns.")
        assert texts(other) == {"The ferry returns."}


def test_deleting_a_bank_leaves_nothing_behind(server: EmbeddedServer, path: Path, call: Callable[..., Any]) -> None:
    """Rows and index go with the bank, those of another bank stay."""
    retain(server, "Gone.", **{"async": True})
    server.answer("POST", "/v1/default/banks/other/memories", b'{"items":[{"content":"Stays."}]}', _JSON)
    assert call("DELETE", "")[0] == 200
    with sqlite3.connect(path) as db:
        tables = ("banks", "documents", "memories", "operations")
        counts = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}  # noqa: S608 - those
        indexes = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'")]
    db.close()
    assert counts == {"banks": 1, "documents": 1, "memories": 1, "operations": 0}
    assert indexes == ["search_2"]


def test_the_number_of_connections_is_that_of_requests_at_once(server: EmbeddedServer) -> None:
    """One after another they share one, whatever thread they come from."""
    for _ in range(5):
        thread = threading.Thread(target=retain, args=(server, "x"))
        thread.start()
        thread.join()
    assert len(server._database._idle) == 1
