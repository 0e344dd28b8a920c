"""What an event changes: its session, and the turn of which it tells. The commit of this is its acknowledgement.

Owns which events begin and end a session, whose project counts, who is a subagent, and which turns are captured. It
reads no transcript; each function acts in the transaction of its caller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from bankclient.store.sessions.model import PassedOver, Recorded
from bankclient.store.sessions.rows import (
    add_message,
    digest,
    filing_number,
    find_session,
    find_turn,
    is_full,
    key_of,
    parent_of,
    pass_over,
    path_bytes,
    project_of,
)
from bankclient.text import clean_text
from bankclient.turns.cadence import stand_in
from bankclient.turns.frame import iso_time
from bankclient.turns.intake import kept_text
from bankclient.turns.speech import person_words

if TYPE_CHECKING:
    import sqlite3

    from bankclient.project import Project
    from bankclient.store.sessions.model import Filing, SessionKey, Terms
    from bankclient.turns.event import Event

__all__ = ["Arrival", "record"]

_SAME_PROMPT = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event with what its caller says of it, and what may be kept of its texts."""

    event: Event
    key: SessionKey
    filing: Filing
    project: Project
    terms: Terms
    parent: str | None
    """The id of the session that started this one, by the caller's environment."""
    now: float

    @classmethod
    def of(
        cls,
        event: Event,
        key: SessionKey,
        filing: Filing,
        project: Project,
        terms: Terms,
        *,
        parent: str | None,
        now: float,
    ) -> Arrival:
        """Return the event with its texts cleaned. Raises `InvalidInput` where it could be filed nowhere."""
        filing.address(project)
        return cls(
            replace(
                event,
                session_id=key.id,
                turn_id=clean_text(event.turn_id) if event.turn_id else None,
                at=iso_time(event.at) or datetime.fromtimestamp(now, UTC).isoformat(),
                prompt=kept_text(person_words(event.prompt or ""), redacting=terms.redact),
                last_answer=kept_text(event.last_answer or "", redacting=terms.redact),
            ),
            key,
            filing,
            project,
            terms,
            parent,
            now,
        )

    @property
    def begins(self) -> bool:
        """Whether the event says that a session begins (anew): a compaction's start goes on with the same."""
        return self.event.kind == "session_start" and self.event.source != "compact"


def record(tx: sqlite3.Connection, arrival: Arrival, *, nonce: str, finds_file: bool = True) -> Recorded:
    """Take the event in, once; `nonce` is for a session that is new, `finds_file` says that its transcript is there."""
    event = arrival.event
    values = (digest(event.event_id), arrival.now)
    fresh = tx.execute("INSERT OR IGNORE INTO events VALUES (?, ?)", values).rowcount > 0
    row = find_session(tx, arrival.key)
    if event.kind == "session_end" and not finds_file and _ends_nothing(row, event.transcript_path):
        fresh = False
    if fresh:
        row = row or _begin(tx, arrival, nonce=nonce)
        if event.is_subagent:
            tx.execute("UPDATE sessions SET seen = ? WHERE id = ?", (arrival.now, row["id"]))
        else:
            captures = arrival.terms.retain and row["parent"] is None and event.kind in {"prompt", "stop"}
            row = _touch(tx, row, arrival, captures=captures)
            if captures:
                _hear(tx, row, arrival)
    return _recorded(tx, row, arrival, fresh=fresh)


def _ends_nothing(row: sqlite3.Row | None, path: str | None) -> bool:
    """Whether a session's end without a transcript is none: it follows no start of its run.

    A resume in a folder where the session is not found sends one, which names a file that never was.
    """
    return row is None or not row["open"] or (path is not None and row["transcript"] not in {None, path_bytes(path)})


def _begin(tx: sqlite3.Connection, arrival: Arrival, *, nonce: str) -> sqlite3.Row:
    """Add the session's row; whose subagent it is, is decided here and kept."""
    key, now = arrival.key, arrival.now
    parent = _parent(tx, arrival.parent)
    tx.execute(
        "INSERT INTO sessions (agent, name, realm, nonce, began, seen, grew, parent_agent, parent)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (key.agent, key.id, key.project, nonce, now, now, now, parent and parent.agent, parent and parent.id),
    )
    return _row(tx, key)


def _row(tx: sqlite3.Connection, key: SessionKey) -> sqlite3.Row:
    row = find_session(tx, key)
    assert row is not None  # noqa: S101 - it was just written
    return row


def _parent(tx: sqlite3.Connection, name: str | None) -> SessionKey | None:
    """Return the root of the open session `name`; the variable outlives sessions, in a terminal that they started."""
    if not name:
        return None
    row = tx.execute(
        "SELECT * FROM sessions WHERE name = ? AND open AND realm = '' ORDER BY seen DESC LIMIT 1", (clean_text(name),)
    ).fetchone()
    return None if row is None else parent_of(row) or key_of(row)


def _touch(tx: sqlite3.Connection, row: sqlite3.Row, arrival: Arrival, *, captures: bool) -> sqlite3.Row:
    """Let the session be as its newest event says; return its row as it is then."""
    event, terms, now = arrival.event, arrival.terms, arrival.now
    begins = arrival.begins or (event.kind == "prompt" and not row["open"])
    is_open = begins or (bool(row["open"]) and event.kind != "session_end")
    project = arrival.project if begins or row["project"] is None else project_of(row)
    if project.name is not None and row["project"] is None:
        # What was said while nobody knew where it belongs: this is where.
        tx.execute(
            "UPDATE turns SET project = ? WHERE session = ? AND project IS NULL",
            (project.name, row["id"]),
        )
    touched: sqlite3.Row = tx.execute(
        "UPDATE sessions SET version = version + 1, open = ?, began = ?, seen = ?, grew = ?, project = ?, root = ?,"
        " how = ?, transcript = coalesce(?, transcript), retain = ?, every = ?, overlap = ?, context = ?, due = ?"
        " WHERE id = ? RETURNING *",
        (
            is_open,
            now if begins else row["began"],
            now,
            now if captures else row["grew"],
            project.name,
            path_bytes(str(project.root)) if project.root else None,
            clean_text(project.how),
            path_bytes(event.transcript_path),
            terms.retain,
            terms.every,
            terms.overlap,
            clean_text(terms.context),
            now,
            row["id"],
        ),
    ).fetchone()
    return touched


def _hear(tx: sqlite3.Connection, row: sqlite3.Row, arrival: Arrival) -> None:
    """Let the event's turn be captured, and keep what the event tells of it."""
    event = arrival.event
    turn = _turn(tx, row, arrival)
    if event.kind == "stop":
        tx.execute("UPDATE turns SET stopped = ? WHERE id = ?", (arrival.now, turn))
    told = stand_in(event, 0)
    if told is not None and is_full(row):
        pass_over(tx, row["id"], {PassedOver.FULL: 1})
    elif told is not None:
        add_message(tx, turn, told)


def _turn(tx: sqlite3.Connection, row: sqlite3.Row, arrival: Arrival) -> int:
    """Return the turn of a prompt or stop, made if this is the first that is heard of it."""
    event, session = arrival.event, row["id"]
    if event.turn_id is None and event.kind == "stop":
        # Agents that name no turns: what stops is what was prompted last.
        newest = tx.execute(
            "SELECT id, stopped FROM turns WHERE session = ? ORDER BY id DESC LIMIT 1", (session,)
        ).fetchone()
        if newest is not None and newest["stopped"] is None:
            return int(newest["id"])
    name = event.turn_id or f"{event.session_id}:{clean_text(event.event_id)}"
    found = find_turn(tx, session, name)
    if found is not None:
        return int(found["id"])
    added = tx.execute(
        "INSERT INTO turns (session, name, named, filing, project, redact) VALUES (?, ?, ?, ?, ?, ?)",
        (
            session,
            name,
            event.turn_id is not None,
            filing_number(tx, arrival.filing),
            row["project"],
            arrival.terms.redact,
        ),
    )
    _go_back(tx, row, arrival, name)
    return int(added.lastrowid or 0)


def _go_back(tx: sqlite3.Connection, row: sqlite3.Row, arrival: Arrival, name: str) -> None:
    """Have the transcript read again from where the turn begins, if its lines came before its first event."""
    passed = tx.execute("SELECT * FROM passed_turns WHERE session = ? ORDER BY offset", (row["id"],)).fetchall()
    if arrival.event.turn_id is not None:
        passed = [turn for turn in passed if turn["name"] == name]
    else:
        passed = [turn for turn in passed if turn is passed[-1] or _near(turn["at"], arrival.event.at)]
    if passed:
        tx.execute(
            "UPDATE sessions SET cursor = ?, version = version + 1 WHERE id = ?", (passed[0]["cursor"], row["id"])
        )
        tx.execute("DELETE FROM passed_turns WHERE session = ? AND offset >= ?", (row["id"], passed[0]["offset"]))


def _near(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return False
    first, second = (datetime.fromisoformat(text) for text in (one, other))
    return first.tzinfo is not None and second.tzinfo is not None and abs(first - second) <= _SAME_PROMPT


def _recorded(tx: sqlite3.Connection, row: sqlite3.Row | None, arrival: Arrival, *, fresh: bool) -> Recorded:
    parent = None if row is None else parent_of(row)
    counting = find_session(tx, parent) if parent is not None else row
    project = arrival.project if counting is None else project_of(counting)
    return Recorded(arrival.key, fresh, project, parent)
