"""The outbox in SQLite: keeping what is to be sent, and handing it out step by step.

It owns the order of things within a transaction. What an answer means is `answers`' to say, where it leads `states`'.

What a crash between any two commits leaves: an item not yet sealed is open; a sealed one has its id and bytes; one
that was handed out is `sending`, and the next lease hands it out again under the same id, which the server knows; an
answer that was not kept is asked for again. So nothing is lost, and a repeat is one the server takes for the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bankclient.errors import InvalidInput, OutboxFull
from bankclient.store.outbox.answers import Evidence, decide
from bankclient.store.outbox.intake import Intake
from bankclient.store.outbox.model import BATCH_FACTS, REFUSED, SEAL_SECONDS, Added, Forgotten, Job, Kind, Lease
from bankclient.store.outbox.queue import SqliteQueue
from bankclient.store.outbox.rows import (
    BatchWriter,
    batches,
    documents_of,
    find,
    lane_id,
    lose,
    next_tick,
    text_of,
)
from bankclient.store.outbox.schedule import due_batch, is_leased, next_due, shorten_waits
from bankclient.store.outbox.sealing import Fact, Item, request_body
from bankclient.store.outbox.states import Event, State, Step

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from bankclient.store.outbox.answers import Answer, Decision
    from bankclient.store.outbox.model import Address, Destination

__all__ = ["SqliteOutbox"]


class SqliteOutbox(SqliteQueue):
    """`Outbox` on the tables of a `Database`.

    Each method is one transaction, or part of the one that its thread has open: what a caller writes beside it in
    `database.write()` becomes durable with it.
    """

    def add_fact(self, address: Address, fields: Mapping[str, Any], *, now: float, restore: bool = False) -> Added:
        fact = Fact.of(address, fields)
        url, document = address.destination.url, fact.document
        with self._database.write() as tx:
            if restore:
                _restore(tx, url, address.bank, document)
            elif (at := _forgotten(tx, url, address.bank, document)) is not None:
                return Added(None, fresh=False, forgotten_at=at)
            intake = Intake(tx, address, now)
            queued = intake.queued(document)
            if queued.wanted is not None and not fact.named:
                return Added(queued.wanted, fresh=False)
            if not (full := self._full(tx, 1, len(fact.item.body), now)):
                return Added(intake.gather(fact.item, alone=queued.at_all), fresh=True)
        raise OutboxFull(full)

    def add_session(self, address: Address, fields: Mapping[str, Any], *, now: float) -> Added:
        item = Item.of({**fields, "tags": [*address.tags]})
        if item.document is None:
            raise InvalidInput("a piece of a session needs a `document_id`")
        operation_id, size = self._new_id(), len(item.body)
        body = request_body([item.body], operation_id)
        with self._database.write() as tx:
            if not (full := self._full(tx, 1, size, now)):
                intake = Intake(tx, address, now)
                number = intake.seal(Kind.SESSION, [item], body=body, size=size, operation_id=operation_id)
                return Added(number, fresh=True)
        raise OutboxFull(full)

    def add_request(
        self, address: Address, items: Sequence[Mapping[str, Any]], *, body: bytes, operation_id: str, now: float
    ) -> Added:
        if not items:
            raise InvalidInput("a request without items stores nothing; there is nothing to queue")
        encoded, size = [Item.of(fields) for fields in items], len(body)
        with self._database.write() as tx:
            known = find(tx, "b.operation_id = ? AND l.url = ?", (operation_id, address.destination.url))
            if known is not None:
                return Added(known.id, fresh=False)
            if not (full := self._full(tx, len(items), size, now)):
                intake = Intake(tx, address, now)
                number = intake.seal(Kind.CALLER, encoded, body=body, size=size, operation_id=operation_id)
                return Added(number, fresh=True)
        raise OutboxFull(full)

    def seal(self, *, now: float, everything: bool = False) -> int:
        with self._database.write() as tx:
            due = batches(
                tx,
                "b.state = 'open' AND (? OR b.items >= ? OR b.until <= ? OR b.until > ?)",
                (everything, BATCH_FACTS, now, now + SEAL_SECONDS),
            )
            writer = BatchWriter(tx, self._new_id, now)
            for batch in sorted(due, key=lambda batch: batch.id):
                writer.move(batch, Event.SEAL)
            return len(due)

    def next_due(self, destination: Destination, *, now: float) -> float | None:
        with self._database.read() as tx:
            row = tx.execute(
                "SELECT * FROM lanes WHERE url = ? AND key = ?", (destination.url, destination.key)
            ).fetchone()
            return None if row is None else next_due(tx, row, now)

    def lease(self, destination: Destination, *, holder: str, seconds: float, now: float) -> Lease | None:
        with self._database.write() as tx:
            lane = lane_id(tx, destination)
            if lane is None:
                return None
            row = tx.execute("SELECT * FROM lanes WHERE id = ?", (lane,)).fetchone()
            if row["holder"] != holder and is_leased(row, now):
                return None
            lease = Lease(destination, f"{holder} {next_tick(tx)}", seconds)
            tx.execute(
                "UPDATE lanes SET lease = ?, holder = ?, lease_until = ? WHERE id = ?",
                (lease.token, holder, now + seconds, lane),
            )
            self._take_back(tx, lane, now)
            shorten_waits(tx, lane, now)
            self._prune(tx)
            return lease

    def renew(self, lease: Lease, *, now: float) -> bool:
        with self._database.write() as tx:
            return _renew(tx, lease, now)

    def release(self, lease: Lease) -> None:
        with self._database.write() as tx:
            tx.execute(
                "UPDATE lanes SET lease = NULL, holder = NULL, lease_until = 0 WHERE lease = ?",
                (lease.token,),
            )

    def claim(self, lease: Lease, *, now: float) -> Job | None:
        with self._database.write() as tx:
            lane = tx.execute("SELECT id, until FROM lanes WHERE lease = ?", (lease.token,)).fetchone()
            if lane is None or lane["until"] > now:
                return None
            found = due_batch(tx, lane["id"], now)
            batch = None if found is None else find(tx, "b.id = ?", (found,))
            if batch is None or (step := batch.step) is None:
                return None
            _renew(tx, lease, now)
            ticket = next_tick(tx)
            if step is Step.SEND:
                writer = BatchWriter(tx, self._new_id, now)
                writer.move(batch, Event.CLAIM, why=batch.why, ticket=ticket, sent=batch.sent + 1)
            else:
                tx.execute("UPDATE batches SET ticket = ? WHERE id = ?", (ticket, batch.id))
            (handed_out,) = batches(tx, "b.id = ?", (batch.id,))
            body = (text_of(tx, batch.id) or b"") if step is Step.SEND else b""
            return Job(handed_out, ticket, step, body, documents_of(tx, batch.id) if step is Step.POLL else ())

    def settle(self, job: Job, answer: Answer, *, now: float, jitter: float) -> Decision | None:
        with self._database.write() as tx:
            batch = find(tx, "b.id = ? AND b.ticket = ?", (job.batch.id, job.ticket))
            if batch is None:
                return None
            lane = tx.execute(
                "SELECT l.id, l.holds, coalesce(p.tick, 0) AS proved FROM batches b JOIN lanes l ON l.id = b.lane"
                " LEFT JOIN proofs p ON p.lane = l.id AND p.kind = b.kind WHERE b.id = ?",
                (batch.id,),
            ).fetchone()
            documents = documents_of(tx, batch.id) if job.step is Step.POLL else ()
            evidence = Evidence(next_tick(tx), lane["proved"], lane["holds"], documents)
            decision = decide(batch, answer, evidence, now=now, jitter=jitter)
            accepted = {"server_operation": decision.server_operation, "accepted": evidence.tick}
            BatchWriter(tx, self._new_id, now).move(
                batch,
                decision.event,
                progress=decision.progress,
                until=now + decision.wait if decision.wait else 0.0,
                why=decision.why,
                **(accepted if decision.event is Event.ACCEPT else {}),
            )
            _settle_lane(tx, lane["id"], decision, now)
            return decision

    def forget(self, url: str, bank: str, document: str, *, now: float) -> Forgotten:
        with self._database.write() as tx:
            tx.execute("INSERT OR REPLACE INTO forgotten VALUES (?, ?, ?, ?)", (url, bank, document, now))
            found = batches(
                tx,
                "b.id IN (SELECT batch FROM items WHERE bank = ? AND document = ?) AND l.url = ? AND b.kind <> ?"
                " AND b.state <> ?",
                (bank, document, url, Kind.CALLER, State.STORED),
            )
            writer = BatchWriter(tx, self._new_id, now)
            # A dead one will not be sent, and what was never handed out is nowhere but here.
            here = [batch for batch in found if batch.state is State.DEAD or not batch.sent]
            dropped = sum(writer.without(batch, document) for batch in here)
            for batch in found:
                tx.execute("UPDATE items SET forgotten = 1 WHERE batch = ? AND document = ?", (batch.id, document))
            return Forgotten(dropped, len(found) - len(here))

    def forgotten(self, url: str, bank: str, document: str) -> float | None:
        with self._database.read() as tx:
            return _forgotten(tx, url, bank, document)

    def restore(self, url: str, bank: str, document: str) -> bool:
        with self._database.write() as tx:
            return _restore(tx, url, bank, document)

    def _full(self, tx: sqlite3.Connection, items: int, size: int, now: float) -> str:
        """Say, and count, why so much more cannot be taken; empty if it can."""
        held = tx.execute("SELECT items, bytes FROM counters").fetchone()
        if held["items"] + items <= self._limits.items and held["bytes"] + size <= self._limits.size:
            return ""
        lose(tx, REFUSED, items, size, now)
        return (
            f"the outbox holds {held['items']} items ({held['bytes']} bytes), which is its bound; `bankclient queue`"
            " says why they wait"
        )

    def _take_back(self, tx: sqlite3.Connection, lane: int, now: float) -> None:
        """Let go of what earlier holders of the lease had out."""
        writer = BatchWriter(tx, self._new_id, now)
        for batch in batches(tx, "b.lane = ? AND b.ticket IS NOT NULL AND b.state = ?", (lane, State.SENDING)):
            writer.move(batch, Event.LAPSE, why=batch.why)
        tx.execute("UPDATE batches SET ticket = NULL WHERE lane = ? AND ticket IS NOT NULL", (lane,))

    def _prune(self, tx: sqlite3.Connection) -> None:
        """Keep so many lines of account of what was stored."""
        tx.execute(
            "DELETE FROM batches WHERE id IN"
            " (SELECT id FROM batches WHERE state = 'stored' ORDER BY id DESC LIMIT -1 OFFSET ?)",
            (self._limits.kept,),
        )


def _renew(tx: sqlite3.Connection, lease: Lease, now: float) -> bool:
    until = now + lease.seconds
    return tx.execute("UPDATE lanes SET lease_until = ? WHERE lease = ?", (until, lease.token)).rowcount > 0


def _settle_lane(tx: sqlite3.Connection, lane: int, decision: Decision, now: float) -> None:
    if decision.hold is None:
        # A pause that has begun since this step was handed out goes on.
        ended = (
            "UPDATE lanes SET until = 0, why = '', since = NULL, holds = 0, asked = 0"
            " WHERE id = ? AND holds > 0 AND until <= ?"
        )
        tx.execute(ended, (lane, now))
    else:
        tx.execute(
            "UPDATE lanes SET until = ?, why = ?, since = coalesce(since, ?), holds = holds + 1, asked = ?"
            " WHERE id = ?",
            (now + decision.hold, decision.why, now, decision.is_asked, lane),
        )
    if decision.event is Event.COMPLETE:
        tx.execute("UPDATE lanes SET stored_at = ? WHERE id = ?", (now, lane))
    elif decision.why:
        tx.execute("UPDATE lanes SET error = ?, error_at = ? WHERE id = ?", (decision.why, now, lane))


def _forgotten(tx: sqlite3.Connection, url: str, bank: str, document: str) -> float | None:
    row = tx.execute("SELECT at FROM forgotten WHERE url = ? AND bank = ? AND document = ?", (url, bank, document))
    found = row.fetchone()
    return None if found is None else float(found["at"])


def _restore(tx: sqlite3.Connection, url: str, bank: str, document: str) -> bool:
    gone = tx.execute("DELETE FROM forgotten WHERE url = ? AND bank = ? AND document = ?", (url, bank, document))
    return gone.rowcount > 0
