"""How long things are remembered: the bounds of what has no other end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

__all__ = ["EVENT_SECONDS", "KEPT_KEYS", "SESSION_SECONDS", "prune"]

EVENT_SECONDS: Final = 30 * 86_400.0
"""So long an event is known when it is delivered again."""
SESSION_SECONDS: Final = 180 * 86_400.0
"""So long after its last event a session is known, if nothing of it is open."""
KEPT_KEYS: Final = 500_000
"""So many messages are known when they are read again, as a fork repeats its parent's."""


def prune(tx: sqlite3.Connection, now: float) -> None:
    """Forget what is older than that."""
    tx.execute("DELETE FROM events WHERE at < ?", (now - EVENT_SECONDS,))
    tx.execute("DELETE FROM message_keys WHERE number <= (SELECT max(number) FROM message_keys) - ?", (KEPT_KEYS,))
    tx.execute(
        "DELETE FROM sessions WHERE seen < ?"
        " AND NOT EXISTS (SELECT * FROM turns WHERE session = sessions.id AND sealed IS NULL)",
        (now - SESSION_SECONDS,),
    )
