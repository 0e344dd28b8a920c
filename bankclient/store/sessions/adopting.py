"""Lines that adopt what was told before they were there.

Owns the meeting of the two: an event tells the prompt or the answer of a turn at once, the transcript holds the same as
a line sooner or later. Together they are one message; whichever was sealed first is the one that counts. Texts are not
needed for it, their digests are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.store.sessions.rows import ADOPTED, LINE, TOLD
from bankclient.turns.cadence import adopter
from bankclient.turns.event import Message

if TYPE_CHECKING:
    import sqlite3

__all__ = ["adopt"]


def adopt(tx: sqlite3.Connection, session: sqlite3.Row) -> None:
    """Let each thing told in the session that has its line by now be one with it."""
    turns = tx.execute(
        "SELECT id FROM turns t WHERE session = ? AND EXISTS (SELECT * FROM messages m WHERE turn = t.id"
        " AND kind = 'told' AND (sealed IS NULL OR EXISTS"
        " (SELECT * FROM messages WHERE turn = m.turn AND kind = 'line' AND sealed IS NULL)))",
        (session["id"],),
    ).fetchall()
    for turn in turns:
        _adopt(tx, turn["id"])


def _adopt(tx: sqlite3.Connection, turn: int) -> None:
    rows = tx.execute("SELECT * FROM messages WHERE turn = ? ORDER BY generation, offset, number", (turn,)).fetchall()
    lines = [row for row in rows if row["kind"] == LINE]
    for told in rows:
        if told["kind"] != TOLD:
            continue
        # Never the turn's last line only because nothing follows: it may be what was said before the answer was lost.
        found = adopter(_by_words(told), [_by_words(row) for row in lines])
        if found is None:
            continue
        line = next(row for row in lines if row["number"] == found.ordinal)
        lines.remove(line)
        if told["sealed"] is None:
            tx.execute("DELETE FROM messages WHERE turn = ? AND number = ?", (turn, told["number"]))
            tx.execute("UPDATE messages SET kind = ? WHERE turn = ? AND number = ?", (ADOPTED, turn, line["number"]))
        else:
            tx.execute("UPDATE messages SET kind = ? WHERE turn = ? AND number = ?", (ADOPTED, turn, told["number"]))
            tx.execute(
                "UPDATE messages SET kind = ?, text = NULL, sealed = ? WHERE turn = ? AND number = ?",
                (ADOPTED, told["sealed"], turn, line["number"]),
            )


def _by_words(row: sqlite3.Row) -> Message:
    """Return a message that is as another one if its words are, and whose place is its row."""
    return Message(
        role=row["role"],
        text=row["words"].hex(),
        key=row["key"],
        ordinal=row["number"],
        turn_id=str(row["turn"]),
        final=bool(row["final"]),
    )
