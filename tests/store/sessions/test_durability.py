"""What survives: kill -9 at any commit, a full disk, several at once."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from bankclient.errors import StoreError
from bankclient.store.database import Database
from bankclient.store.outbox import SqliteOutbox
from bankclient.store.sessions import Sessions

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

    from tests.store.sessions.conftest import Agent, Stored

    Documents = Callable[[], list[Stored]]
    Said = Callable[[], list[list[str]]]

_TURNS = 10


class _Killed(Database):
    """A store whose process dies by SIGKILL at one of its commits, before it or right behind it."""

    commits_left = 0
    behind = False

    def _commit(self, connection: sqlite3.Connection) -> None:
        self.commits_left -= 1
        if self.commits_left == 0 and not self.behind:
            os.kill(os.getpid(), signal.SIGKILL)
        super()._commit(connection)
        if self.commits_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def _work(agent: Agent, done: Path) -> None:
    """Have the turns of a session, each step noted when it is done, and gone on with after the last that was."""
    steps = int(done.read_text()) if done.exists() else 0

    def step(number: int, act: Callable[[], object]) -> None:
        if number >= steps:
            act()
            done.write_text(str(number + 1))

    for turn in range(_TURNS):
        agent.turn = f"p{turn}"
        prompt = agent.event("prompt", prompt=f"q{turn}", event_id=f"prompt-{turn}")
        stop = agent.event("stop", last_answer=f"a{turn}", event_id=f"stop-{turn}")
        step(6 * turn, lambda event=prompt: agent.deliver(event))  # type: ignore[misc]  # a default fixes the loop's value
        step(6 * turn + 1, lambda turn=turn: agent.line("user", f"q{turn}", uuid=f"uq{turn}"))  # type: ignore[misc]  # the same
        step(6 * turn + 2, agent.advance)
        step(6 * turn + 3, lambda turn=turn: agent.line("assistant", f"a{turn}", uuid=f"ua{turn}"))  # type: ignore[misc]  # the same
        step(6 * turn + 4, lambda event=stop: agent.deliver(event))  # type: ignore[misc]  # the same
        step(6 * turn + 5, agent.advance)
    agent.deliver(agent.event("session_end", event_id="end"))
    agent.advance()


@pytest.mark.parametrize("seed", range(6))
def test_a_kill_at_any_commit_loses_and_doubles_nothing(agent: Agent, tmp_path: Path, seed: int) -> None:
    """The agent goes on, its hooks deliver again what was not acknowledged, and each turn is sealed once, in order."""
    chance = random.Random(seed)  # noqa: S311 - a schedule, no secret
    path, done = tmp_path / "killed" / "store.db", tmp_path / "done"
    kills = 0
    while True:
        commits, behind = chance.randint(1, 12), chance.random() < 0.5
        child = os.fork()
        if child == 0:
            try:
                mortal = _Killed(path)
                mortal.commits_left, mortal.behind = commits, behind
                agent.sessions = Sessions(mortal, SqliteOutbox(mortal))
                _work(agent, done)
            except BaseException:  # noqa: BLE001 - whatever happens, the child must not go on as a test run
                os._exit(1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            break
        assert status == -signal.SIGKILL
        kills += 1
    assert kills > 3
    with closing(Database(path)) as database:
        outbox = SqliteOutbox(database)
        bodies = [json.loads(outbox.text(batch.id) or b"{}")["items"][0]["content"] for batch in outbox.batches()]
    texts = [line for body in bodies for line in body.split("\n") if line[:1] in {"q", "a"}]
    assert texts == [f"{role}{turn}" for turn in range(_TURNS) for role in "qa"]


class _Small(Database):
    """A store on a disk that has room for little more."""

    pages = 0

    def _prepare(self, connection: sqlite3.Connection) -> None:
        super()._prepare(connection)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + self.pages}")


@pytest.mark.parametrize("pages", [1, 2, 3, 4, 6, 9])
def test_a_full_disk_is_one_clear_error_and_nothing_half_written(
    agent: Agent, database: Database, documents: Documents, pages: int
) -> None:
    """Each event is taken whole or refused whole; what is in the file is read when the disk has room again."""
    agent.exchange(1)
    small = _Small(database.path)
    small.pages = pages
    agent.sessions = Sessions(small, SqliteOutbox(small))
    refused = 0
    for number in range(2, 9):
        agent.prompt(f"q{number}" + " words" * 500, heard=False)
        prompt = agent.event("prompt", prompt=f"q{number}" + " words" * 500)
        agent.answer(f"a{number}" + " words" * 500, heard=False)
        for event in (prompt, agent.event("stop", last_answer=f"a{number}")):
            try:
                agent.deliver(event)
                agent.advance()
            except StoreError as error:
                assert "its disk is full; free some space" in str(error)  # noqa: PT017 - which one fails first varies
                refused += 1
    small.close()
    assert refused
    agent.sessions = Sessions(database, SqliteOutbox(database))
    heard = {row[0] for row in _rows(database, "SELECT name FROM turns")}
    agent.end()
    texts = [text.partition(" ")[0] for document in documents() for text in document.said]
    assert texts == [f"{role}{number}" for number in range(1, 9) for role in "qa" if _name(agent, number) in heard]
    assert len(texts) == len(set(texts))


def _rows(database: Database, query: str) -> list[sqlite3.Row]:
    with database.read() as tx:
        return tx.execute(query).fetchall()


def _name(agent: Agent, number: int) -> str:
    """Return the name of the turn in which the file says `q{number}`."""
    for line in agent.path.read_bytes().splitlines():
        record = json.loads(line)
        if record["type"] == "user" and record["message"]["content"].split(" ")[0] == f"q{number}":
            return str(record["promptId"])
    raise LookupError(number)


def test_a_batch_and_its_marks_are_one(agent: Agent, database: Database, said: Said) -> None:
    """Where the outbox fails nothing is marked, and the next try has all of it."""

    class Failing(SqliteOutbox):
        def add_session(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]  # it never returns
            super().add_session(*args, **kwargs)  # type: ignore[arg-type]  # as they came
            raise ZeroDivisionError

    for number in range(1, 4):
        agent.prompt(f"q{number}")
        agent.answer(f"a{number}")
    agent.take_in()
    agent.sessions = Sessions(database, Failing(database))  # type: ignore[arg-type]  # it fails as no outbox does
    with pytest.raises(ZeroDivisionError):
        agent.advance()
    assert said() == []
    agent.sessions = Sessions(database, SqliteOutbox(database))
    agent.advance()
    assert said() == [["q1", "a1", "q2", "a2", "q3", "a3"]]


def test_several_at_once_do_each_thing_once(agent: Agent, database: Database, said: Said) -> None:
    """Threads and processes that read and seal the same session at the same time."""
    stores = [database, database, Database(database.path), Database(database.path)]
    errors: list[BaseException] = []
    start = threading.Barrier(len(stores) + 1)
    over = threading.Event()

    def sweep(store: Database) -> None:
        sessions = Sessions(store, SqliteOutbox(store))
        start.wait()
        try:
            while not over.is_set():
                sessions.seal(agent.key, now=agent.now)
        except BaseException as error:  # noqa: BLE001 - told to the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=sweep, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    start.wait()
    for number in range(12):
        agent.exchange(number)
    over.set()
    for thread in threads:
        thread.join()
    for store in stores[2:]:
        store.close()
    assert errors == []
    agent.end()
    assert [text for texts in said() for text in texts] == [f"{role}{number}" for number in range(12) for role in "qa"]
    assert [len(texts) for texts in said()] == [6, 6, 6, 6]
