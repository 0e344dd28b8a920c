"""What is forgotten in time, and that little is looked at to find what is wanted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bankclient.store.database import Database
from bankclient.store.outbox import SqliteOutbox
from bankclient.store.sessions import Sessions
from bankclient.store.sessions.upkeep import EVENT_SECONDS, SESSION_SECONDS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    import pytest

    from tests.store.sessions.conftest import Agent

    Said = Callable[[], list[list[str]]]


def _count(database: Database, table: str) -> int:
    with database.read() as tx:
        return int(tx.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 - a table of ours


def test_old_events_are_forgotten(agent: Agent, database: Database) -> None:
    """After a month nobody delivers one again; a day's work is not looked through at each sweep."""
    agent.exchange(1)
    agent.sessions.sweep(now=agent.now)
    agent.now += EVENT_SECONDS + 1
    agent.start()
    assert _count(database, "events") == 3
    agent.sessions.sweep(now=agent.now)
    assert _count(database, "events") == 1
    agent.now += EVENT_SECONDS + 1
    Sessions(database, agent.sessions._outbox).sweep(now=agent.now)
    assert _count(database, "events") == 0


def test_a_session_long_gone_is_forgotten(agent: Agent, database: Database, said: Said) -> None:
    """With its turns, once nothing of it is open; when it is resumed all the same, nothing of it is said again."""
    other = agent.other("s2", project=replace(agent.project, name=None))
    for one in (agent, other):
        one.exchange(1)
        one.end()
    agent.now += SESSION_SECONDS + 1
    agent.sessions.sweep(now=agent.now)
    assert [session.key.id for session in agent.sessions.sessions()] == ["s2"]  # it waits for a project
    assert (_count(database, "turns"), _count(database, "messages")) == (1, 2)
    agent.start("resume")
    agent.exchange(2)
    agent.end()
    assert said() == [["q1", "a1"], ["q2", "a2"]]


def test_message_keys_are_bounded(agent: Agent, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go."""
    monkeypatch.setattr("bankclient.store.sessions.upkeep.KEPT_KEYS", 3)
    agent.exchange(1)
    agent.exchange(2)
    agent.sessions.sweep(now=agent.now)
    with database.read() as tx:
        assert [row["number"] for row in tx.execute("SELECT number FROM message_keys ORDER BY number")] == [2, 3, 4]


def test_nothing_is_looked_for_by_reading_all(agent: Agent, database: Database) -> None:
    """Events, lines and turns are found by an index, however many there are; sessions and filings are few."""
    asked: set[str] = set()

    class Traced(Database):
        def _prepare(self, connection: sqlite3.Connection) -> None:
            super()._prepare(connection)
            connection.set_trace_callback(asked.add)

    traced = Traced(database.path)
    agent.sessions = Sessions(traced, SqliteOutbox(traced))
    agent.start()
    agent.exchange(0, heard=False)
    for number in range(1, 5):
        agent.exchange(number)
    agent.prompt("q5")
    agent.answer("a5", line=False)
    agent.end()
    agent.now += 3
    agent.sessions.next_due(now=agent.now)
    agent.sessions.sweep(now=agent.now)
    agent.sessions.sessions()
    traced.close()
    verbs = ("SELECT", "UPDATE", "DELETE", "INSERT")
    tables = ("sessions", "turns", "messages", "events", "message_keys", "filings", "passed")
    with database.write() as tx:
        plans = {
            statement: [row["detail"] for row in tx.execute(f"EXPLAIN QUERY PLAN {statement}")]
            for statement in asked
            if statement.startswith(verbs) and any(table in statement for table in tables)
        }
    scanned = {
        step.split()[1]
        for statement, steps in plans.items()
        if "DELETE FROM events" not in statement  # once a day
        for step in steps
        if step.startswith("SCAN")
    }
    assert len(plans) > 30
    assert scanned <= {"(subquery-2)", "CONSTANT", "filings", "sessions"}
