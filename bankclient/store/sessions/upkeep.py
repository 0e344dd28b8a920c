"""How long things are remembered: the bounds of what has no other end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

__all__ = ["KEPT_EVENTS", "KEPT_KEYS", "KEPT_SECONDS", "prune"]

KEPT_EVENTS: Final = 20_000
"""So many events are known when they are delivered again."""
KEPT_KEYS: Final = 500_000
"""So many messages are known when they are read again, as a fork repeats its parent's."""
KEPT_SECONDS: Final = 180 * 86_400.0
"""So long after its last event a session is known, if nothing of it is open."""


def prune(tx: sqlite3.Connection, now: float) -> None:
    """Forget what is older than that."""
    for table, keep in (("events", KEPT_EVENTS), ("message_keys", KEPT_KEYS)):
        tx.execute(f"DELETE FROM {table} WHERE number <= (SELECT max(number) FROM {table}) - ?", (keep,))  # noqa: S608 - table names are ours
    tx.execute(
        "DELETE FROM sessions WHERE seen < ? AND id NOT IN (SELECT session FROM turns WHERE sealed IS NULL)",
        (now - KEPT_SECONDS,),
    )
