"""A real process is killed before and after each commit; nothing acknowledged is lost, and nothing is doubled."""

from __future__ import annotations

import json
import os
import signal
from contextlib import closing
from typing import TYPE_CHECKING

from bankclient.store.database import Database
from bankclient.store.outbox import Address, Destination, Job, SqliteOutbox, State
from bankclient.store.outbox.sealing import fact_document
from bankclient.testing.model_server import ModelServer

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from bankclient.store.outbox.answers import Answer

_HERE = Address(Destination("http://one.invalid", "key-1"), "bank", ("project:a",))
_TO_FORGET = fact_document(_HERE, "to forget")


class _Quick(Database):
    """A store that does not wait for the disk: what a killed process has written, the system still has."""

    def _prepare(self, connection: sqlite3.Connection) -> None:
        super()._prepare(connection)
        connection.execute("PRAGMA synchronous = OFF")


class _Mortal(_Quick):
    """A store whose process is killed at its `die_at`th moment; there is one before and one after each commit."""

    def __init__(self, path: Path, *, die_at: int | None = None) -> None:
        super().__init__(path)
        self.die_at = die_at
        self.moments = 0

    def _commit(self, connection: sqlite3.Connection) -> None:
        self._moment()
        super()._commit(connection)
        self._moment()

    def _moment(self) -> None:
        self.moments += 1
        if self.moments == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)


class _Outside:
    """What outlives a process: what was acknowledged to a caller, and a server with what it was sent.

    Both are lines of a file, each there even if the process is killed in the next moment.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.server = ModelServer()
        self.server.poison.add("poison")
        for kind, *told in self._lines():
            if kind == "sent":
                self.server.retain(_HERE.bank, told[0].encode())
                self.server.work()
            elif kind == "deleted":
                self.server.delete_document(_HERE.bank, told[0])

    def acknowledged(self) -> list[str]:
        """Return the texts that a caller was told are kept, in order."""
        return [told[0] for kind, *told in self._lines() if kind == "acknowledged"]

    def acknowledge(self, text: str) -> None:
        """Tell a caller that its text is kept."""
        self._note("acknowledged", text)

    def answer(self, job: Job) -> Answer:
        """Let the server answer a step."""
        if job.body:
            self._note("sent", job.body.decode())
        for document in job.documents:
            if document.forgotten:
                self._note("deleted", document.id or "")
        answer = self.server.answer(job)
        self.server.work()
        return answer

    def _note(self, *line: str) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, json.dumps(line).encode() + b"\n")
        os.close(file)

    def _lines(self) -> list[list[str]]:
        return [json.loads(line) for line in self._path.read_bytes().splitlines()] if self._path.exists() else []


def _take_in(outbox: SqliteOutbox, database: Database, outside: _Outside, now: float) -> None:
    """Take in facts of which one is poison, a piece of a session, two versions of a document, a request."""
    for text in ("fact 1", "poison", "fact 2", "to forget"):
        outbox.add_fact(_HERE, {"content": text}, now=now)
        outside.acknowledge(text)
    with database.write():
        outbox.add_session(_HERE, {"content": "piece 1", "document_id": "s.1"}, now=now)
    outside.acknowledge("piece 1")
    for number in (1, 2):
        outbox.add_fact(_HERE, {"content": f"version {number}", "document_id": "notes"}, now=now)
        outside.acknowledge(f"version {number}")
    items = [{"content": "loose"}]
    body = json.dumps({"items": items, "async": True, "operation_id": "caller-1"}).encode()
    outbox.add_request(_HERE, items, body=body, operation_id="caller-1", now=now)
    outside.acknowledge("loose")


def _send(outbox: SqliteOutbox, outside: _Outside, now: float, *, steps: int) -> float:
    """Take so many steps at most, each when it is due; return what the time is then."""
    outbox.seal(now=now, everything=True)
    for _ in range(steps):
        due = outbox.next_due(_HERE.destination, now=now)
        if due is None:
            break
        now = max(now, due)
        lease = outbox.lease(_HERE.destination, holder="sender", seconds=20, now=now)
        job = None if lease is None else outbox.claim(lease, now=now)
        if lease is not None and job is not None:
            outbox.settle(job, outside.answer(job), now=now, jitter=0.0)
            outbox.release(lease)
    return now


def _live(database: Database, outside: _Outside) -> None:
    """Do a bit of everything, until all is stored or dead."""
    outbox = SqliteOutbox(database)
    _take_in(outbox, database, outside, 1_000_000.0)
    now = _send(outbox, outside, 1_000_000.0, steps=2)
    outbox.forget(_HERE.destination.url, _HERE.bank, _TO_FORGET, now=now)
    outside.acknowledge("forgotten")
    _send(outbox, outside, now, steps=200)


def _live_on(database: Database, outside: _Outside) -> list[State]:
    """Do what a dead process left, with one fact more; return how the batches ended."""
    outbox = SqliteOutbox(database)
    outbox.add_fact(_HERE, {"content": "fact 3"}, now=2_000_000.0)
    _send(outbox, outside, 2_000_000.0, steps=200)
    return [batch.state for batch in outbox.batches(limit=1000)]


def _moments(path: Path) -> int:
    """Return how many moments a whole life has."""
    with closing(_Mortal(path / "store.db")) as database:
        _live(database, _Outside(path / "outside"))
        return database.moments


def _killed_at(path: Path, moment: int) -> int:
    """Live in a process of its own that is killed at that moment; return the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            _live(_Mortal(path / "store.db", die_at=moment), _Outside(path / "outside"))
        finally:
            os._exit(1)  # not reached by one that is killed
    return os.WTERMSIG(os.waitpid(child, 0)[1])


def test_a_kill_at_any_commit_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Whatever a caller was told is kept is on the server once in the end, newest version last, poison set aside."""
    (tmp_path / "whole").mkdir(mode=0o700)
    moments = _moments(tmp_path / "whole")
    assert moments > 60
    for moment in range(1, moments + 1):
        place = tmp_path / str(moment)
        place.mkdir(mode=0o700)
        assert _killed_at(place, moment) == signal.SIGKILL
        with closing(_Quick(place / "store.db")) as database:
            outside = _Outside(place / "outside")
            ends = _live_on(database, outside)
            with database.read() as tx:
                assert tx.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        _look(outside, ends)


def _look(outside: _Outside, ends: list[State]) -> None:
    told = outside.acknowledged()
    bank = outside.server.banks[_HERE.bank]
    texts = list(bank.documents.values())
    for text in {"fact 1", "fact 2", "piece 1"} & set(told):
        assert texts.count(text) == 1
    assert max(bank.loose.values(), default=0) <= 1
    assert bank.loose["loose"] == 1 or "loose" not in told
    assert "poison" not in texts
    assert "forgotten" not in told or _TO_FORGET not in bank.documents
    versions = [text for document, text in bank.writes if document == "notes"]
    assert versions == sorted(versions)
    newest = max((text for text in told if text.startswith("version")), default=None)
    assert newest is None or versions[-1] >= newest
    assert "poison" not in told or ends.count(State.DEAD) == 1
    assert set(ends) <= {State.STORED, State.DEAD}
