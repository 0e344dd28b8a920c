"""What is due for a destination, and when the next thing will be.

Queries only, in the transaction of the caller. Clocks step: a time further away than the longest wait counts as that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.store.outbox.answers import LONGEST_WAIT
from bankclient.store.outbox.model import SEAL_SECONDS

if TYPE_CHECKING:
    import sqlite3

__all__ = ["due_batch", "is_leased", "next_due", "shorten_waits"]

# Batches that share a document go one at a time. Their ids are the order of acknowledgement: an item whose document is
# queued already always begins a batch of its own.
_TO_SEND = """FROM batches b WHERE lane = ? AND step IN ('discard', 'send') AND ticket IS NULL AND NOT EXISTS (
    SELECT 1 FROM items mine
    JOIN items earlier ON earlier.bank = mine.bank AND earlier.document = mine.document AND earlier.lane = mine.lane
        AND earlier.batch < mine.batch AND earlier.queued
    WHERE mine.batch = b.id)"""
_TO_ASK = "FROM batches WHERE lane = ? AND step IN ('retry', 'poll') AND ticket IS NULL"

_DUE = (
    # What has often had no answer may itself be the cause: after three tries it lets the others go first.
    f"SELECT id {_TO_SEND} AND until <= ? ORDER BY unanswered / 3, id LIMIT 1",
    f"SELECT id {_TO_ASK} AND until <= ? ORDER BY until, id LIMIT 1",
)
"""In this order: what the server has not got comes first."""
_EARLIEST = tuple(f"SELECT min(until) AS until {rows}" for rows in (_TO_SEND, _TO_ASK))
_SEAL = "SELECT min(until) AS until FROM batches WHERE lane = ? AND state = 'open'"


def due_batch(tx: sqlite3.Connection, lane: int, now: float) -> int | None:
    """Return the batch whose next step is due first, `None` if none is."""
    for query in _DUE:
        if (row := tx.execute(query, (lane, now)).fetchone()) is not None:
            return int(row["id"])
    return None


def is_leased(lane: sqlite3.Row, now: float) -> bool:
    """Say whether somebody's lease of the lane (its row) still runs."""
    return lane["lease"] is not None and now < lane["lease_until"] <= now + LONGEST_WAIT


def next_due(tx: sqlite3.Connection, lane: sqlite3.Row, now: float) -> float | None:
    """Return when something can be done for the lane (its row) next, `None` if nothing is queued for it."""
    handed_out = tx.execute("SELECT 1 FROM batches WHERE lane = ? AND ticket IS NOT NULL", (lane["id"],)).fetchone()
    if handed_out is not None or due_batch(tx, lane["id"], now) is not None:
        # What is handed out comes back by its answer, or when the lease of who has it is over.
        times = [now]
    else:
        rows = [tx.execute(query, (lane["id"],)).fetchone() for query in _EARLIEST]
        times = [row["until"] for row in rows if row["until"] is not None]
        if (seal := tx.execute(_SEAL, (lane["id"],)).fetchone()["until"]) is not None:
            times.append(min(seal, now + SEAL_SECONDS))
    if not times:
        return None
    due = min(max(min(times), lane["until"], now), now + LONGEST_WAIT)
    return float(max(due, lane["lease_until"]) if is_leased(lane, now) else due)


def shorten_waits(tx: sqlite3.Connection, lane: int, now: float) -> None:
    """Let no wait of the lane be longer than the longest: an earlier one was measured by a clock that has stepped."""
    latest = now + LONGEST_WAIT
    tx.execute("UPDATE lanes SET until = ? WHERE id = ? AND until > ?", (latest, lane, latest))
    for steps in ("'discard', 'send'", "'retry', 'poll'"):
        query = f"UPDATE batches SET until = ? WHERE lane = ? AND step IN ({steps}) AND until > ?"  # noqa: S608 - constants
        tx.execute(query, (latest, lane, latest))
