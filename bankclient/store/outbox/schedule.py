"""What is due for a destination, and when the next thing will be.

Queries only, in the transaction of the caller. Clocks step: a time further away than the longest wait counts as that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.store.outbox.answers import LONGEST_WAIT
from bankclient.store.outbox.states import State, Step

if TYPE_CHECKING:
    import sqlite3

__all__ = ["SEAL_SECONDS", "due_batch", "is_leased", "next_due", "shorten_waits"]

SEAL_SECONDS = 5.0
"""A batch of facts takes in further ones for so long."""

# Batches that share a document go one at a time. Their ids are the order of acknowledgement: an item whose document is
# queued already always begins a batch of its own.
_FREE = """NOT EXISTS (
    SELECT 1 FROM items mine
    JOIN items other ON other.bank = mine.bank AND other.document = mine.document AND other.lane = mine.lane
        AND other.batch < mine.batch
    JOIN batches earlier ON earlier.id = other.batch
    WHERE mine.batch = b.id AND earlier.state NOT IN ('stored', 'dead'))"""

# What has often had no answer may itself be the cause: after three tries it lets the others go first.
_SENDS = f"lane = ? AND step = ? AND ticket IS NULL AND {_FREE}", "unanswered / 3, id"
_ASKS = "lane = ? AND step = ? AND ticket IS NULL", "until"
_STEPS = ((Step.DISCARD, *_SENDS), (Step.SEND, *_SENDS), (Step.RETRY, *_ASKS), (Step.POLL, *_ASKS))
"""In this order, each with its condition and the order within: what the server has not got comes first."""


def due_batch(tx: sqlite3.Connection, lane: int, now: float) -> int | None:
    """Return the batch whose next step is due first, `None` if none is."""
    for step, where, order in _STEPS:
        query = f"SELECT id FROM batches b WHERE {where} AND until <= ? ORDER BY {order} LIMIT 1"  # noqa: S608 - no value is put in
        if (row := tx.execute(query, (lane, step, now)).fetchone()) is not None:
            return int(row["id"])
    return None


def is_leased(lane: sqlite3.Row, now: float) -> bool:
    """Say whether somebody's lease of the lane (its row) still runs."""
    return lane["lease"] is not None and now < lane["lease_until"] <= now + LONGEST_WAIT


def next_due(tx: sqlite3.Connection, lane: sqlite3.Row, now: float) -> float | None:
    """Return when something can be done for the lane (its row) next, `None` if nothing is queued for it."""
    times: list[float] = []
    for step, where, _ in _STEPS:
        query = f"SELECT until FROM batches b WHERE {where} ORDER BY until LIMIT 1"  # noqa: S608 - no value is put in
        if (row := tx.execute(query, (lane["id"], step)).fetchone()) is not None:
            times.append(row["until"])
    query = "SELECT until FROM batches WHERE state = ? AND lane = ? ORDER BY until LIMIT 1"
    if (row := tx.execute(query, (State.OPEN, lane["id"])).fetchone()) is not None:
        times.append(min(row["until"], now + SEAL_SECONDS))
    if tx.execute("SELECT 1 FROM batches WHERE lane = ? AND ticket IS NOT NULL", (lane["id"],)).fetchone() is not None:
        times.append(0.0)  # it comes back by its answer, or when the lease of who has it is over
    if not times:
        return None
    due = min(max(min(times), lane["until"]), now + LONGEST_WAIT)
    return float(max(due, lane["lease_until"]) if is_leased(lane, now) else due)


def shorten_waits(tx: sqlite3.Connection, lane: int, now: float) -> None:
    """Let no wait of the lane be longer than the longest: an earlier one was measured by a clock that has stepped."""
    latest = now + LONGEST_WAIT
    tx.execute("UPDATE lanes SET until = ? WHERE id = ? AND until > ?", (latest, lane, latest))
    for step in Step:
        tx.execute(
            "UPDATE batches SET until = ? WHERE lane = ? AND step = ? AND until > ?", (latest, lane, step, latest)
        )
