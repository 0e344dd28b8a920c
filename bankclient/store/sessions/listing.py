"""A conversation that a program hands over itself, as a list of `{role, content}`: all of it is captured.

Owns which items are new, and how they become turns of a session. The call is the event, the commit its acknowledgement.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from bankclient.store.sessions.model import PassedOver
from bankclient.store.sessions.rows import add_key, add_message, filing_number, find_turn, pass_over
from bankclient.turns.frame import iso_time
from bankclient.turns.intake import kept_messages
from bankclient.turns.transcript.plain import Seen, read_messages

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from bankclient.store.sessions.model import Filing, SessionKey, Terms
    from bankclient.turns.event import Message
    from bankclient.turns.transcript.dialect import Record

__all__ = ["Listing", "keep_list", "read_list"]


@dataclass(frozen=True, slots=True)
class Listing:
    """What is new in a list: the messages, cleaned, how many others there were and why, and what was seen by now."""

    messages: Sequence[Message]
    turnless: int
    emptied: int
    seen: str


def read_list(
    row: sqlite3.Row | None, items: Sequence[Record], key: SessionKey, *, nonce: str, whole: bool, redact: bool
) -> Listing:
    """Return what is new in `items`; `whole` says that they are the whole conversation, not the new part of it."""
    seen = Seen() if row is None or not row["cursor"] else _seen(row["cursor"])
    messages, now_seen = read_messages(items, seen, session_id=key.id, nonce=nonce, whole=whole)
    spoken = [replace(message, at=iso_time(message.at)) for message in messages if message.turn_id is not None]
    kept = kept_messages(spoken, redacting=redact)
    return Listing(kept, len(messages) - len(spoken), len(spoken) - len(kept), json.dumps(asdict(now_seen)))


def keep_list(
    tx: sqlite3.Connection, row: sqlite3.Row, listing: Listing, filing: Filing, terms: Terms, *, now: float
) -> int:
    """Keep the messages, each in its turn, and what was seen; return how many. A session that retains none sees them.

    The turn that is the last then has stopped: the program says so by handing it over.
    """
    kept = listing.messages if terms.retain and row["parent"] is None else ()
    turn: int | None = None
    for message in kept:
        turn = _turn(tx, row, message.turn_id or "", filing, terms)
        if add_key(tx, row["agent"], message.key):
            add_message(tx, turn, message, generation=row["generation"])
    tx.execute("UPDATE turns SET stopped = ? WHERE id = ?", (now, turn))
    pass_over(tx, row["id"], {PassedOver.TURNLESS: listing.turnless, PassedOver.NOTHING_KEPT: listing.emptied})
    tx.execute(
        "UPDATE sessions SET version = version + 1, cursor = ?, grew = ?, held = held + ? WHERE id = ?",
        (listing.seen, now, sum(len(message.text) for message in kept), row["id"]),
    )
    return len(kept)


def _turn(tx: sqlite3.Connection, row: sqlite3.Row, name: str, filing: Filing, terms: Terms) -> int:
    if (found := find_turn(tx, row["id"], name)) is not None:
        return int(found["id"])
    added = tx.execute(
        "INSERT INTO turns (session, name, named, filing, project, redact) VALUES (?, ?, TRUE, ?, ?, ?)",
        (row["id"], name, filing_number(tx, filing), row["project"], terms.redact),
    )
    return int(added.lastrowid or 0)


def _seen(text: str) -> Seen:
    fields: dict[str, Any] = json.loads(text)
    return Seen(fields["count"], fields["digest"], tuple(fields["recent"]), fields["turn_id"])
