"""Looking at the outbox in SQLite, and a person's acts on it.

It owns no rule: `states` says what an act means for a batch.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from bankclient.store.outbox.model import DROPPED, Destination, Lane, Limits, Loss, Overview, Progress, Tally
from bankclient.store.outbox.rows import BatchWriter, batches, documents_of, find, lane_id, lose, text_of
from bankclient.store.outbox.schedule import is_leased, next_due
from bankclient.store.outbox.states import Event, State

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection

    from bankclient.store.database import Database
    from bankclient.store.outbox.model import Batch, Document

__all__ = ["SqliteQueue"]


def _random_id() -> str:
    return str(uuid.uuid4())


class SqliteQueue:
    """`Queue` on the tables of a `Database`. `new_id` draws operation ids, which the server wants to be UUIDs."""

    def __init__(
        self, database: Database, *, limits: Limits | None = None, new_id: Callable[[], str] = _random_id
    ) -> None:
        self._database = database
        self._limits = limits or Limits()
        self._new_id = new_id

    def overview(self, *, now: float) -> Overview:
        with self._database.read() as tx:
            tallies = tx.execute("SELECT state, count(*), sum(items), sum(size) FROM batches GROUP BY state")
            states = {State(state): Tally(*numbers) for state, *numbers in tallies}
            lanes = tx.execute("SELECT * FROM lanes ORDER BY url, key").fetchall()
            losses = tx.execute("SELECT reason, items, bytes, at FROM losses ORDER BY reason").fetchall()
            return Overview(states, tuple(_lane(tx, row, now) for row in lanes), tuple(Loss(*row) for row in losses))

    def batches(
        self,
        *,
        states: Collection[State] | None = None,
        destination: Destination | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> tuple[Batch, ...]:
        wanted = list(State) if states is None else list(states)
        where, parameters = f"b.state IN ({', '.join('?' * len(wanted))}) AND b.id > ?", [*wanted, after]
        if destination is not None:
            where, parameters = f"{where} AND l.url = ? AND l.key = ?", [*parameters, destination.url, destination.key]
        with self._database.read() as tx:
            return tuple(batches(tx, f"{where} ORDER BY b.id LIMIT ?", [*parameters, limit]))

    def batch(self, batch_id: int) -> Batch | None:
        with self._database.read() as tx:
            return find(tx, "b.id = ?", (batch_id,))

    def batch_of_item(self, item: int) -> Batch | None:
        with self._database.read() as tx:
            return find(tx, "b.id = (SELECT batch FROM items WHERE id = ?)", (item,))

    def batch_of_operation(self, url: str, operation_id: str) -> Batch | None:
        with self._database.read() as tx:
            return find(tx, "b.operation_id = ? AND l.url = ?", (operation_id, url))

    def text(self, batch_id: int) -> bytes | None:
        with self._database.read() as tx:
            return text_of(tx, batch_id)

    def documents(self, batch_id: int) -> tuple[Document, ...]:
        with self._database.read() as tx:
            return documents_of(tx, batch_id)

    def revive(self, batch_id: int, *, now: float) -> bool:
        with self._database.write() as tx:
            batch = find(tx, "b.id = ? AND b.state <> ?", (batch_id, State.STORED))
            if batch is None or (batch.state is State.DEAD and _is_overtaken(tx, batch)):
                return False
            tx.execute("UPDATE lanes SET until = 0 WHERE id = (SELECT lane FROM batches WHERE id = ?)", (batch_id,))
            if not batch.handed_out:
                progress = Progress() if batch.state is State.DEAD else batch.progress
                BatchWriter(tx, self._new_id, now).move(batch, Event.REVIVE, progress=progress, why=batch.why)
            return True

    def hurry(self, destination: Destination, *, now: float) -> None:
        with self._database.write() as tx:
            lane = lane_id(tx, destination)
            tx.execute("UPDATE lanes SET until = 0 WHERE id = ? AND NOT asked", (lane,))
            for steps in ("'discard', 'send'", "'retry', 'poll'"):
                query = f"UPDATE batches SET until = 0 WHERE lane = ? AND step IN ({steps}) AND until > ?"  # noqa: S608 - constants
                tx.execute(query, (lane, now))

    def drop(self, batch_id: int, *, now: float) -> bool:
        with self._database.write() as tx:
            batch = find(tx, "b.id = ? AND b.state <> ?", (batch_id, State.STORED))
            if batch is not None:
                BatchWriter(tx, self._new_id, now).move(batch, Event.DROP, why=DROPPED)
            return batch is not None

    def rekey(self, url: str, old: str, new: str, *, now: float) -> int:
        with self._database.write() as tx:
            source = lane_id(tx, Destination(url, old))
            if source is None or old == new:
                return 0
            writer = BatchWriter(tx, self._new_id, now)
            for batch in batches(tx, "b.lane = ? AND b.state = ?", (source, State.SENDING)):
                writer.move(batch, Event.LAPSE, why=batch.why)
            tx.execute("INSERT INTO lanes (url, key) VALUES (?, ?) ON CONFLICT DO NOTHING", (url, new))
            target = lane_id(tx, Destination(url, new))
            tx.execute("UPDATE items SET lane = ? WHERE lane = ?", (target, source))
            moved = tx.execute("UPDATE batches SET lane = ?, ticket = NULL WHERE lane = ?", (target, source)).rowcount
            tx.execute("DELETE FROM lanes WHERE id = ?", (source,))
            return moved

    def lose(self, reason: str, *, items: int, size: int, now: float) -> None:
        with self._database.write() as tx:
            lose(tx, reason, items, size, now)


def _is_overtaken(tx: sqlite3.Connection, batch: Batch) -> bool:
    """Say whether a later batch has written one of its documents, or is about to."""
    later = tx.execute(
        "SELECT 1 FROM items mine JOIN items other ON other.bank = mine.bank AND other.document = mine.document"
        " AND other.lane = mine.lane AND other.batch > mine.batch JOIN batches b ON b.id = other.batch"
        " WHERE mine.batch = ? AND b.state <> ? LIMIT 1",
        (batch.id, State.DEAD),
    )
    return later.fetchone() is not None


def _lane(tx: sqlite3.Connection, row: sqlite3.Row, now: float) -> Lane:
    queued = tx.execute(
        "SELECT count(*), coalesce(sum(items), 0), coalesce(sum(size), 0), min(added) FROM batches"
        " WHERE lane = ? AND state NOT IN (?, ?)",
        (row["id"], State.STORED, State.DEAD),
    ).fetchone()
    return Lane(
        destination=Destination(row["url"], row["key"]),
        queued=Tally(*queued[:3]),
        oldest=queued[3],
        next_try=next_due(tx, row, now),
        until=row["until"],
        is_asked=bool(row["asked"]),
        why=row["why"],
        since=row["since"],
        leased=is_leased(row, now),
        stored_at=row["stored_at"],
        error=row["error"],
        error_at=row["error_at"],
    )
