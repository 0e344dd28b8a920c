"""What is new in a transcript: which of it is kept, of which turn, and what is passed over and why.

Owns that choice. It is made on a snapshot of the session, outside of any write, since files and redaction take their
time; `store` keeps it whole, if the session is still as it was. Opens no file: an open transcript is handed in.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bankclient.store.sessions.adopting import adopt
from bankclient.store.sessions.model import PassedOver, Taken
from bankclient.store.sessions.rows import TOLD, add_key, add_message, digest, find_turn, is_full, pass_over
from bankclient.text import clean_text
from bankclient.turns.cadence import captured, heard_by_text
from bankclient.turns.event import Event
from bankclient.turns.frame import iso_time
from bankclient.turns.intake import kept_messages
from bankclient.turns.transcript.cursor import Cursor, mark_digest
from bankclient.turns.transcript.reader import read_new

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Container, Iterable, Mapping, Sequence

    from bankclient.store.sessions.transcripts import Transcript
    from bankclient.turns.event import Message
    from bankclient.turns.transcript.cursor import ReadAt
    from bankclient.turns.transcript.dialect import Dialect
    from bankclient.turns.transcript.reader import Reading

__all__ = ["Find", "HeardTurn", "Passed", "Snapshot", "known_keys", "look_through", "read", "snapshot", "store"]

_PASSED_TURNS = 64
"""So many turns that were passed over can be gone back to, should an event of theirs come late."""
_CHUNK = 500
"""Parameters of one statement; SQLite takes a little more."""


@dataclass(frozen=True, slots=True)
class HeardTurn:
    """A turn of which an event reached us; what it told is here only while the transcript's name for it is unknown."""

    id: int
    named: bool
    redact: bool
    prompt: str = ""
    answer: str = ""
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A session as a reading finds it: its row, its turns by name, whether it holds all that it may."""

    row: sqlite3.Row
    turns: Mapping[str, HeardTurn]
    full: bool


@dataclass(slots=True)
class Passed:
    """A turn that was passed over: where it begins, when, how much was said in it, and the cursor that goes there."""

    offset: int
    at: str | None
    messages: int = 0
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Find:
    """What a reading found, to be kept as a whole."""

    cursor: str
    moved: bool = False
    """Whether the file is another than the one that was read before."""
    unread: int = 0
    kept: Sequence[tuple[HeardTurn, Message]] = ()
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """The transcript's names of turns that had others."""
    passed: Mapping[str, Passed] = field(default_factory=dict[str, Passed])
    counts: Mapping[PassedOver, int] = field(default_factory=dict[PassedOver, int])


def snapshot(tx: sqlite3.Connection, row: sqlite3.Row) -> Snapshot:
    """Return the session as it stands."""
    turns = tx.execute("SELECT id, name, named, redact FROM turns WHERE session = ?", (row["id"],)).fetchall()
    return Snapshot(row, {turn["name"]: _heard(tx, turn) for turn in turns}, full=is_full(row))


def _heard(tx: sqlite3.Connection, turn: sqlite3.Row) -> HeardTurn:
    if turn["named"]:
        return HeardTurn(turn["id"], named=True, redact=bool(turn["redact"]))
    told = tx.execute(
        "SELECT role, text, at FROM messages WHERE turn = ? AND kind = ? AND sealed IS NULL ORDER BY number DESC",
        (turn["id"], TOLD),
    ).fetchall()
    texts = {row["role"]: row["text"] for row in told}
    at = told[-1]["at"] if told else None
    return HeardTurn(
        turn["id"],
        named=False,
        redact=bool(turn["redact"]),
        prompt=texts.get("user", ""),
        answer=texts.get("assistant", ""),
        at=at,
    )


def known_keys(tx: sqlite3.Connection, agent: str, messages: Iterable[Message]) -> set[str]:
    """Return the keys of those messages that are kept already, by whatever session."""
    keys = {digest(agent, message.key): message.key for message in messages}
    digests = list(keys)
    found: set[str] = set()
    for start in range(0, len(digests), _CHUNK):
        part = digests[start : start + _CHUNK]
        marks = ",".join("?" * len(part))
        rows = tx.execute(f"SELECT digest FROM message_keys WHERE digest IN ({marks})", part)  # noqa: S608 - only marks
        found.update(keys[row["digest"]] for row in rows)
    return found


def read(before: Snapshot, dialect: Dialect, transcript: Transcript) -> Reading:
    """Return what the transcript holds beyond what the session has read, as it is. Raises `OSError`."""
    row = before.row
    return read_new(
        dialect,
        row["name"],
        _cursor(row),
        transcript.read_at,
        transcript.size,
        session_over=not row["open"],
    )


def look_through(before: Snapshot, reading: Reading, known: Container[str], read_at: ReadAt) -> Find:
    """Return what of a reading is to be kept: messages of captured turns that are not `known`, cleaned.

    Of the others their number is kept, and where their turns begin. Raises `OSError`.
    """
    new = [_clean(message) for message in reading.messages if message.key not in known]
    names = _names(before, new)
    turns = dict(before.turns)
    for old, name in names.items():
        turns.setdefault(name, before.turns[old])  # of several events of one turn the first is kept, as `_name` does
    heard, _ = captured(new, turns)
    kept = [
        (turn, cleaned)
        for message in heard
        for turn in [turns[message.turn_id or ""]]
        for cleaned in kept_messages([message], redacting=turn.redact)
    ]
    passed = _passed((message for message in new if message.turn_id not in turns), read_at)
    counts = Counter[PassedOver]()
    counts[PassedOver.TURNLESS] = sum(message.turn_id is None for message in new)
    counts[PassedOver.NOTHING_KEPT] = len(heard) - len(kept)
    counts[PassedOver.NO_RECORD] = reading.garbage
    counts[PassedOver.TOO_LONG] = reading.too_long
    cursor = _cursor(before.row)
    return Find(
        cursor=reading.cursor.dumps(),
        moved=cursor.offset > 0 and reading.start.how != "same",
        unread=reading.start.offset if reading.start.how == "tail" else 0,
        kept=kept,
        names=names,
        passed=passed,
        counts=counts,
    )


def store(tx: sqlite3.Connection, before: Snapshot, find: Find | None, now: float) -> Taken | None:
    """Keep what was found, `None` for nothing to read; return `None` where the session has changed since.

    The messages and the cursor that passes them become durable together.
    """
    row = before.row
    current = tx.execute("SELECT version FROM sessions WHERE id = ?", (row["id"],)).fetchone()
    if current is None or current["version"] != row["version"]:
        return None
    taken = Taken() if find is None or find.cursor == row["cursor"] else _keep(tx, before, find, now)
    adopt(tx, row)
    return taken


def _keep(tx: sqlite3.Connection, before: Snapshot, find: Find, now: float) -> Taken:
    row = before.row
    session, generation = row["id"], row["generation"] + find.moved
    for old, name in find.names.items():
        _name(tx, session, before.turns[old].id, name)
    count = 0
    for turn, message in find.kept:
        # Asked again: another session may have kept it meanwhile.
        if add_key(tx, row["agent"], message.key):
            add_message(tx, turn.id, message, generation=generation)
            count += 1
    pass_over(tx, session, find.counts)
    for name, passed in find.passed.items():
        tx.execute(
            "INSERT INTO passed_turns VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET messages = messages + excluded.messages",
            (session, name, passed.cursor, passed.offset, passed.at, passed.messages),
        )
    _forget_places(tx, session)
    tx.execute(
        "UPDATE sessions SET version = version + 1, cursor = ?, generation = ?, grew = ?, held = held + ? WHERE id = ?",
        (find.cursor, generation, now, sum(len(message.text) for _, message in find.kept), session),
    )
    return Taken(count, find.unread)


def _name(tx: sqlite3.Connection, session: int, turn: int, name: str) -> None:
    """Give a turn the transcript's name; where there is one of that name, both are one."""
    same = find_turn(tx, session, name)
    if same is None:
        tx.execute("UPDATE turns SET name = ?, named = TRUE WHERE id = ?", (name, turn))
        return
    last = tx.execute(
        "SELECT coalesce(max(number), 0) AS number FROM messages WHERE turn = ?", (same["id"],)
    ).fetchone()
    tx.execute("UPDATE messages SET turn = ?, number = number + ? WHERE turn = ?", (same["id"], last["number"], turn))
    tx.execute(
        "UPDATE turns SET sealed = NULL, stopped = coalesce((SELECT stopped FROM turns WHERE id = ?), stopped)"
        " WHERE id = ?",
        (turn, same["id"]),
    )
    tx.execute("DELETE FROM turns WHERE id = ?", (turn,))


def _forget_places(tx: sqlite3.Connection, session: int) -> None:
    """Keep the places of the newest turns that were passed over, and of the others only that they were."""
    gone = tx.execute(
        "SELECT name, messages FROM passed_turns WHERE session = ? ORDER BY offset DESC LIMIT -1 OFFSET ?",
        (session, _PASSED_TURNS),
    ).fetchall()
    pass_over(tx, session, {PassedOver.UNHEARD: sum(row["messages"] for row in gone)})
    tx.executemany("DELETE FROM passed_turns WHERE session = ? AND name = ?", [(session, row["name"]) for row in gone])


def _cursor(row: sqlite3.Row) -> Cursor:
    return Cursor.loads(row["cursor"]) if row["cursor"] else Cursor()


def _clean(message: Message) -> Message:
    """Return a message with what is not its text fit for the disk; a time that says nothing is none."""
    turn_id = None if message.turn_id is None else clean_text(message.turn_id)
    return replace(message, turn_id=turn_id, at=iso_time(message.at))


def _names(before: Snapshot, new: Sequence[Message]) -> Mapping[str, str]:
    """Return the transcript's names for turns that have none yet, found by what was told of them, and when."""
    found: dict[str, str] = {}
    for redact in (True, False):
        turns = {name: turn for name, turn in before.turns.items() if not turn.named and turn.redact is redact}
        if not turns:
            continue
        said = kept_messages(new, redacting=redact)
        found |= heard_by_text(said, (_event(name, turn.at, turn.prompt) for name, turn in turns.items()))
        # An answer is found as a prompt is, by its words and when they were said.
        answers = [replace(message, role="user") for message in said if message.role == "assistant"]
        rest = {name: turn for name, turn in turns.items() if name not in found}
        found |= heard_by_text(answers, (_event(name, turn.at, turn.answer) for name, turn in rest.items()))
    return found


def _event(name: str, at: str | None, text: str) -> Event:
    return Event(kind="prompt", agent="", session_id="", event_id=name, at=at, prompt=text)


def _passed(messages: Iterable[Message], read_at: ReadAt) -> Mapping[str, Passed]:
    """Return the turns of messages that are passed over, each with the place where it begins."""
    turns: dict[str, Passed] = {}
    for message in messages:
        if message.turn_id is not None:
            turn = turns.setdefault(message.turn_id, Passed(message.ordinal, message.at))
            turn.messages += 1
    for name, turn in list(turns.items())[-_PASSED_TURNS:]:
        turn.cursor = Cursor(offset=turn.offset, before=mark_digest(read_at, turn.offset), turn_id=name).dumps()
    return turns
