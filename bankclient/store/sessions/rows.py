"""The rows of sessions, turns and messages: finding, adding, and reading them as values.

Each function acts in the transaction of its caller, and decides nothing.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bankclient.project import Project
from bankclient.store.outbox.model import Destination
from bankclient.store.sessions.model import Filing, PassedOver, Session, SessionKey
from bankclient.text import clean_text
from bankclient.turns.event import Message

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from bankclient.store.outbox.model import Address

__all__ = [
    "ADOPTED",
    "LINE",
    "OPEN_LIMIT",
    "TOLD",
    "OpenTurn",
    "Piece",
    "add_key",
    "add_message",
    "address_of",
    "digest",
    "filing_number",
    "find_session",
    "find_turn",
    "is_full",
    "key_of",
    "open_turns",
    "parent_of",
    "pass_over",
    "path_bytes",
    "path_text",
    "pieces_of",
    "project_of",
    "session_of",
    "words_digest",
]

TOLD: Final = "told"
LINE: Final = "line"
ADOPTED: Final = "adopted"

OPEN_LIMIT: Final = 64 << 20
"""Letters of one session that wait to be sealed, while the outbox takes no more or the project has no name."""

_DIGEST_BYTES = 16
_TOLD_GENERATION = -1
_SEALED_COUNTS = (
    "SELECT count(*) AS open, total(project IS NULL AND filing IN (SELECT id FROM filings WHERE scoping <> 'global'))"
    " AS unresolved FROM turns WHERE session = ? AND sealed IS NULL"
)


def digest(*parts: str) -> bytes:
    """Return the digest by which an id is known."""
    text = "\0".join(parts)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def words_digest(text: str) -> bytes:
    """Return the digest of a text's words: the same for the same words, whatever is between them."""
    return digest(" ".join(text.split()))


def path_bytes(path: str | None) -> bytes | None:
    """Return a path as it is kept, `None` where it is none of this system's."""
    try:
        return os.fsencode(path) if path else None
    except UnicodeEncodeError:  # half a surrogate pair that no file name decodes to
        return None


def path_text(path: bytes | None) -> str | None:
    """Return a path as it is opened."""
    return None if path is None else os.fsdecode(path)


def find_session(tx: sqlite3.Connection, key: SessionKey) -> sqlite3.Row | None:
    """Return the session's row, `None` where nothing of it was ever heard."""
    found: sqlite3.Row | None = tx.execute(
        "SELECT * FROM sessions WHERE agent = ? AND name = ? AND realm = ?", (key.agent, key.id, key.project)
    ).fetchone()
    return found


def key_of(row: sqlite3.Row) -> SessionKey:
    """Return the session's key."""
    return SessionKey(row["agent"], row["name"], row["realm"])


def parent_of(row: sqlite3.Row) -> SessionKey | None:
    """Return whose subagent the session is, `None` if nobody's."""
    return None if row["parent"] is None else SessionKey(row["parent_agent"], row["parent"])


def project_of(row: sqlite3.Row) -> Project:
    """Return the session's project as it stands."""
    root = None if row["root"] is None else Path(os.fsdecode(row["root"]))
    return Project(row["project"], root, row["how"])


def filing_number(tx: sqlite3.Connection, filing: Filing) -> int:
    """Return the number of the filing's row, made where there is none."""
    destination = filing.destination
    values = (destination.url, destination.key, filing.bank_id, filing.bank_id_prefix, filing.scoping)
    found = tx.execute(
        "SELECT id FROM filings WHERE url = ? AND key = ? AND bank = ? AND prefix IS ? AND scoping = ?", values
    ).fetchone()
    if found is not None:
        return int(found["id"])
    added = tx.execute("INSERT INTO filings (url, key, bank, prefix, scoping) VALUES (?, ?, ?, ?, ?)", values)
    return int(added.lastrowid or 0)


def find_turn(tx: sqlite3.Connection, session: int, name: str) -> sqlite3.Row | None:
    """Return the row of the session's turn of that name."""
    found: sqlite3.Row | None = tx.execute(
        "SELECT * FROM turns WHERE session = ? AND name = ?", (session, name)
    ).fetchone()
    return found


def add_key(tx: sqlite3.Connection, agent: str, key: str) -> bool:
    """Note that the message is kept; return whether it was not before, anywhere in the store."""
    added = tx.execute("INSERT OR IGNORE INTO message_keys (digest) VALUES (?)", (digest(agent, key),))
    return added.rowcount > 0


def add_message(tx: sqlite3.Connection, turn: int, message: Message, *, generation: int | None = None) -> None:
    """Add something that was said: a line of the so manieth file, or what an event told. Its turn is open (again)."""
    told = generation is None
    tx.execute(
        "INSERT INTO messages (turn, number, kind, role, text, words, key, at, final, generation, offset)"
        " VALUES (?, (SELECT 1 + coalesce(max(number), 0) FROM messages WHERE turn = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            turn,
            turn,
            TOLD if told else LINE,
            message.role,
            message.text,
            words_digest(message.text),
            clean_text(message.key),
            message.at,
            message.final,
            _TOLD_GENERATION if told else generation,
            message.ordinal,
        ),
    )
    tx.execute("UPDATE turns SET sealed = NULL WHERE id = ? AND sealed IS NOT NULL", (turn,))


def is_full(row: sqlite3.Row) -> bool:
    """Whether as much of the session is open as it may be: `OPEN_LIMIT` letters."""
    return bool(row["held"] >= OPEN_LIMIT)


def pass_over(tx: sqlite3.Connection, session: int, counts: Mapping[PassedOver, int]) -> None:
    """Count what was not kept."""
    tx.executemany(
        "INSERT INTO passed_over VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET messages = messages + excluded.messages",
        [(session, reason, count) for reason, count in counts.items() if count],
    )


@dataclass(frozen=True, slots=True)
class Piece:
    """A message's row; the text of a sealed one may be gone."""

    number: int
    kind: str
    sealed: bool
    message: Message
    place: tuple[int, int] | None
    """Which file it stands in, counted, and where; `None` for what an event told."""


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn of which something may be open, with all that is known of it; its lines as they stand in the file."""

    id: int
    name: str
    address: Address | None
    stopped: float | None
    pieces: tuple[Piece, ...]

    @property
    def begins_at(self) -> tuple[int, int] | None:
        """Where its first line stands, `None` without any."""
        return next((piece.place for piece in self.pieces if piece.place is not None), None)


def open_turns(tx: sqlite3.Connection, session: int) -> list[OpenTurn]:
    """Return the session's open turns as they were heard."""
    rows = tx.execute(
        "SELECT t.*, f.url, f.key, f.bank, f.prefix, f.scoping FROM turns t JOIN filings f ON f.id = t.filing"
        " WHERE t.session = ? AND t.sealed IS NULL ORDER BY t.id",
        (session,),
    ).fetchall()
    return [OpenTurn(row["id"], row["name"], address_of(row), row["stopped"], pieces_of(tx, row)) for row in rows]


def address_of(turn: sqlite3.Row) -> Address | None:
    """Return where a turn goes, of a row joined with its filing's."""
    filing = Filing(Destination(turn["url"], turn["key"]), turn["bank"], turn["prefix"], turn["scoping"])
    return filing.address(Project(turn["project"], None, ""))


def pieces_of(tx: sqlite3.Connection, turn: sqlite3.Row) -> tuple[Piece, ...]:
    """Return what is known of a turn: lines as they stand in the file, and what was told as it was heard."""
    rows = tx.execute("SELECT * FROM messages WHERE turn = ? ORDER BY generation, offset, number", (turn["id"],))
    return tuple(
        Piece(
            row["number"],
            row["kind"],
            row["sealed"] is not None,
            Message(
                role=row["role"],
                text=row["text"] or "",
                key=row["key"],
                ordinal=row["offset"],
                turn_id=turn["name"],
                at=row["at"],
                final=bool(row["final"]),
            ),
            None if row["generation"] == _TOLD_GENERATION else (row["generation"], row["offset"]),
        )
        for row in rows
    )


def session_of(tx: sqlite3.Connection, row: sqlite3.Row) -> Session:
    """Return the session as it stands."""
    counts = tx.execute(_SEALED_COUNTS, (row["id"],)).fetchone()
    passed = tx.execute(
        "SELECT reason, sum(messages) AS messages FROM (SELECT reason, messages FROM passed_over WHERE session = :id"
        " UNION ALL SELECT :unheard, messages FROM passed_turns WHERE session = :id) GROUP BY reason",
        {"id": row["id"], "unheard": PassedOver.UNHEARD},
    )
    return Session(
        key=key_of(row),
        open=bool(row["open"]),
        began=row["began"],
        seen=row["seen"],
        grew=row["grew"],
        project=project_of(row),
        parent=parent_of(row),
        transcript=path_text(row["transcript"]),
        turns_open=counts["open"],
        turns_unresolved=int(counts["unresolved"]),
        turns_sealed=row["turns"],
        due=row["due"],
        passed_over={row["reason"]: row["messages"] for row in passed},
    )
