"""The outbox in memory: the twin of the one in SQLite, held to the same tests, for tests of whoever uses one.

It owns no rule of its own: states, answers and bytes are those of `bankclient.store.outbox`. It is for one thread, and
forgets all with its process.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bankclient.errors import InvalidInput, OutboxFull
from bankclient.store.outbox import (
    Added,
    Address,
    Batch,
    Destination,
    Document,
    Forgotten,
    Job,
    Kind,
    Lane,
    Lease,
    Limits,
    Overview,
    Progress,
    State,
    Step,
    Tally,
)
from bankclient.store.outbox.answers import LONGEST_WAIT, Evidence, decide
from bankclient.store.outbox.model import BATCH_FACTS, DROPPED, REFUSED, SEAL_SECONDS
from bankclient.store.outbox.sealing import Fact, Item, request_body
from bankclient.store.outbox.states import Event
from bankclient.testing.outbox_records import LaneRecord, Record, Records

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from bankclient.store.outbox.answers import Answer, Decision

__all__ = ["MemoryOutbox"]


class MemoryOutbox:
    """`Outbox` in memory. `new_id` draws operation ids."""

    def __init__(self, *, limits: Limits | None = None, new_id: Callable[[], str] | None = None) -> None:
        self._limits = limits or Limits()
        self._kept = Records(new_id or (lambda: str(uuid.uuid4())))

    def add_fact(self, address: Address, fields: Mapping[str, Any], *, now: float, restore: bool = False) -> Added:
        fact = Fact.of(address, fields)
        item, document = fact.item, fact.document
        if restore:
            self.restore(address.destination.url, address.bank, document)
        elif (at := self.forgotten(address.destination.url, address.bank, document)) is not None:
            return Added(None, fresh=False, forgotten_at=at)
        self._kept.lanes.setdefault(address.destination, LaneRecord())
        rows = [row for row in self._kept.ordered(address.destination) if row.batch.address.bank == address.bank]
        queued = [row for row in rows if row.unfinished and document in row.document_ids]
        wanted = [
            number
            for row in queued
            for number, other in row.items.items()
            if other.document == document and document not in row.forgotten
        ]
        if wanted and not fact.named:
            return Added(max(wanted), fresh=False)
        self._check_room(1, len(item.body), now)
        number = self._kept.take_ticks()
        newest = [row for row in rows if row.batch.state is State.OPEN and row.batch.address == address][-1:]
        if queued or not newest or newest[0].batch.items >= BATCH_FACTS:
            batch = replace(_new_batch(number, Kind.FACT, address, now), until=now + SEAL_SECONDS)
            newest = [self._kept.rows.setdefault(number, Record(batch, {}))]
        row = newest[0]
        row.items[number] = item
        row.batch = replace(row.batch, items=row.batch.items + 1, size=row.batch.size + len(item.body))
        return Added(number, fresh=True)

    def add_session(self, address: Address, fields: Mapping[str, Any], *, now: float) -> Added:
        item = Item.of({**fields, "tags": [*address.tags]})
        if item.document is None:
            raise InvalidInput("a piece of a session needs a `document_id`")
        operation_id, size = self._kept.new_id(), len(item.body)
        self._check_room(1, size, now)
        batch = replace(_new_batch(0, Kind.SESSION, address, now), operation_id=operation_id, items=1, size=size)
        return self._add_sealed(batch, [item], request_body([item.body], operation_id))

    def add_request(
        self, address: Address, items: Sequence[Mapping[str, Any]], *, body: bytes, operation_id: str, now: float
    ) -> Added:
        if not items:
            raise InvalidInput("a request without items stores nothing; there is nothing to queue")
        encoded, size = [Item.of(fields) for fields in items], len(body)
        if (known := self.batch_of_operation(address.destination.url, operation_id)) is not None:
            return Added(known.id, fresh=False)
        self._check_room(len(items), size, now)
        batch = _new_batch(0, Kind.CALLER, address, now)
        return self._add_sealed(replace(batch, operation_id=operation_id, items=len(items), size=size), encoded, body)

    def seal(self, *, now: float, everything: bool = False) -> int:
        def is_due(batch: Batch) -> bool:
            return everything or batch.items >= BATCH_FACTS or not now < batch.until <= now + SEAL_SECONDS

        due = [row for row in self._kept.ordered() if row.batch.state is State.OPEN and is_due(row.batch)]
        for row in due:
            self._kept.move(row, Event.SEAL, now)
        return len(due)

    def next_due(self, destination: Destination, *, now: float) -> float | None:
        return self._kept.next_due(destination, now)

    def lease(self, destination: Destination, *, holder: str, seconds: float, now: float) -> Lease | None:
        lane = self._kept.lanes.get(destination)
        if lane is None or (lane.holder != holder and lane.is_leased(now)):
            return None
        lane.lease = Lease(destination, f"{holder} {self._kept.take_ticks()}", seconds)
        lane.holder, lane.lease_until = holder, now + seconds
        latest = now + LONGEST_WAIT
        lane.until = min(lane.until, latest)
        for row in self._kept.ordered(destination):
            self._kept.take_back(row, now)
            if row.batch.step is not None:
                row.batch = replace(row.batch, until=min(row.batch.until, latest))
        stored = [row.batch.id for row in self._kept.ordered() if row.batch.state is State.STORED]
        for number in stored[: max(0, len(stored) - self._limits.kept)]:
            del self._kept.rows[number]
        return lane.lease

    def renew(self, lease: Lease, *, now: float) -> bool:
        lane = self._lane_of(lease)
        if lane is not None:
            lane.lease_until = now + lease.seconds
        return lane is not None

    def release(self, lease: Lease) -> None:
        if (lane := self._lane_of(lease)) is not None:
            lane.lease, lane.holder, lane.lease_until = None, None, 0.0

    def claim(self, lease: Lease, *, now: float) -> Job | None:
        lane = self._lane_of(lease)
        row = None if lane is None or lane.until > now else self._kept.due(lease.destination, now)
        if row is None or row.batch.step is None:
            return None
        self.renew(lease, now=now)
        step, ticket = row.batch.step, self._kept.take_ticks()
        if step is Step.SEND:
            self._kept.move(row, Event.CLAIM, now, why=row.batch.why)
            row.batch = replace(row.batch, sent=row.batch.sent + 1)
        self._kept.hand_out(row, ticket)
        body = (row.body or b"") if step is Step.SEND else b""
        return Job(row.batch, ticket, step, body, self.documents(row.batch.id) if step is Step.POLL else ())

    def settle(self, job: Job, answer: Answer, *, now: float, jitter: float) -> Decision | None:
        row = self._kept.rows.get(job.batch.id)
        if row is None or row.ticket != job.ticket:
            return None
        lane = self._kept.lanes[row.batch.address.destination]
        documents = self.documents(row.batch.id) if job.step is Step.POLL else ()
        evidence = Evidence(self._kept.take_ticks(), lane.proofs[row.batch.kind], lane.holds, documents)
        decision = decide(row.batch, answer, evidence, now=now, jitter=jitter)
        if decision.event is Event.ACCEPT:
            row.batch = replace(row.batch, server_operation=decision.server_operation, accepted=evidence.tick)
        until = now + decision.wait if decision.wait else 0.0
        self._kept.move(row, decision.event, now, progress=decision.progress, until=until, why=decision.why)
        if decision.hold is not None:
            lane.until, lane.why, lane.holds = now + decision.hold, decision.why, lane.holds + 1
            lane.is_asked = decision.is_asked
            lane.since = now if lane.since is None else lane.since
        elif lane.holds and lane.until <= now:
            lane.until, lane.why, lane.since, lane.holds, lane.is_asked = 0.0, "", None, 0, False
        if decision.event is Event.COMPLETE:
            lane.stored_at = now
        elif decision.why:
            lane.error, lane.error_at = decision.why, now
        return decision

    def forget(self, url: str, bank: str, document: str, *, now: float) -> Forgotten:
        self._kept.forgotten[url, bank, document] = now
        dropped = in_flight = 0
        for row in self._kept.ordered():
            batch = row.batch
            here = (batch.address.destination.url, batch.address.bank) == (url, bank) and document in row.document_ids
            if not here or batch.kind is Kind.CALLER or batch.state is State.STORED:
                continue
            if batch.sent and batch.state is not State.DEAD:
                row.forgotten.add(document)
                in_flight += 1
                continue
            kept = [number for number, item in row.items.items() if item.document != document]
            dropped += len(row.items) - len(kept)
            bodies = self._kept.bodies(row)
            if self._kept.keep_only(row, kept, bodies, now) and batch.operation_id is not None:
                self._kept.fix(row, bodies, batch.operation_id)
        return Forgotten(dropped, in_flight)

    def forgotten(self, url: str, bank: str, document: str) -> float | None:
        return self._kept.forgotten.get((url, bank, document))

    def restore(self, url: str, bank: str, document: str) -> bool:
        return self._kept.forgotten.pop((url, bank, document), None) is not None

    def overview(self, *, now: float) -> Overview:
        rows, kept = self._kept.ordered(), self._kept
        states = {row.batch.state for row in rows}
        lanes: list[Lane] = []
        for destination, lane in sorted(kept.lanes.items(), key=lambda pair: (pair[0].url, pair[0].key)):
            queued = [row.batch for row in kept.ordered(destination) if row.unfinished]
            lanes.append(
                Lane(
                    destination=destination,
                    queued=_tally(queued),
                    oldest=min((batch.added for batch in queued), default=None),
                    next_try=kept.next_due(destination, now),
                    until=lane.until,
                    is_asked=lane.is_asked,
                    why=lane.why,
                    since=lane.since,
                    leased=lane.is_leased(now),
                    stored_at=lane.stored_at,
                    error=lane.error,
                    error_at=lane.error_at,
                )
            )
        return Overview(
            {state: _tally(row.batch for row in rows if row.batch.state is state) for state in states},
            tuple(lanes),
            tuple(kept.losses[reason] for reason in sorted(kept.losses)),
        )

    def batches(
        self,
        *,
        states: Collection[State] | None = None,
        destination: Destination | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> tuple[Batch, ...]:
        found = [row.batch for row in self._kept.ordered(destination) if row.batch.id > after]
        return tuple([batch for batch in found if states is None or batch.state in states][:limit])

    def batch(self, batch_id: int) -> Batch | None:
        row = self._kept.rows.get(batch_id)
        return None if row is None else row.batch

    def batch_of_item(self, item: int) -> Batch | None:
        return next((row.batch for row in self._kept.rows.values() if item in row.items), None)

    def batch_of_operation(self, url: str, operation_id: str) -> Batch | None:
        batches = [row.batch for row in self._kept.rows.values() if row.batch.operation_id == operation_id]
        return next((batch for batch in batches if batch.address.destination.url == url), None)

    def text(self, batch_id: int) -> bytes | None:
        row = self._kept.rows.get(batch_id)
        if row is None or row.batch.state is not State.OPEN:
            return None if row is None else row.body
        return request_body((item.body for item in row.items.values()), "")

    def documents(self, batch_id: int) -> tuple[Document, ...]:
        row = self._kept.rows.get(batch_id)
        if row is None:
            return ()
        items = [item for _, item in sorted(row.items.items())]
        return tuple(Document(item.document, item.content_hash, item.document in row.forgotten) for item in items)

    def revive(self, batch_id: int, *, now: float) -> bool:
        row = self._kept.rows.get(batch_id)
        if row is None or row.batch.state is State.STORED or self._is_overtaken(row):
            return False
        self._kept.lanes[row.batch.address.destination].until = 0.0
        if row.ticket is None:
            progress = Progress() if row.batch.state is State.DEAD else row.batch.progress
            self._kept.move(row, Event.REVIVE, now, progress=progress, why=row.batch.why)
        return True

    def hurry(self, destination: Destination, *, now: float) -> None:
        lane = self._kept.lanes.get(destination)
        if lane is not None and not lane.is_asked:
            lane.until = 0.0
        for row in self._kept.ordered(destination):
            if row.batch.step is not None and row.batch.until > now:
                row.batch = replace(row.batch, until=0.0)

    def drop(self, batch_id: int, *, now: float) -> bool:
        row = self._kept.rows.get(batch_id)
        if row is None or row.batch.state is State.STORED:
            return False
        self._kept.move(row, Event.DROP, now, why=DROPPED)
        return True

    def rekey(self, url: str, old: str, new: str, *, now: float) -> int:
        source, target = Destination(url, old), Destination(url, new)
        if source not in self._kept.lanes or old == new:
            return 0
        self._kept.lanes.setdefault(target, LaneRecord())
        moved = self._kept.ordered(source)
        for row in moved:
            self._kept.take_back(row, now)
            row.batch = replace(row.batch, address=replace(row.batch.address, destination=target))
        del self._kept.lanes[source]
        return len(moved)

    def lose(self, reason: str, *, items: int, size: int, now: float) -> None:
        self._kept.lose(reason, items, size, now)

    def _lane_of(self, lease: Lease) -> LaneRecord | None:
        lane = self._kept.lanes.get(lease.destination)
        return lane if lane is not None and lane.lease == lease else None

    def _is_overtaken(self, row: Record) -> bool:
        batch = row.batch
        return batch.state is State.DEAD and any(
            later.batch.id > batch.id
            and later.batch.state is not State.DEAD
            and later.batch.address.bank == batch.address.bank
            and later.document_ids & row.document_ids
            for later in self._kept.ordered(batch.address.destination)
        )

    def _check_room(self, items: int, size: int, now: float) -> None:
        held = _tally(row.batch for row in self._kept.ordered() if row.batch.state is not State.STORED)
        if held.items + items > self._limits.items or held.size + size > self._limits.size:
            self._kept.lose(REFUSED, items, size, now)
            raise OutboxFull(f"the outbox holds {held.items} items ({held.size} bytes), which is its bound")

    def _add_sealed(self, batch: Batch, items: Sequence[Item], body: bytes) -> Added:
        self._kept.lanes.setdefault(batch.address.destination, LaneRecord())
        number = self._kept.take_ticks(len(items))
        sealed = replace(batch, id=number, state=State.SEALED, step=Step.SEND)
        self._kept.rows[number] = Record(sealed, dict(enumerate(items, number)), body)
        return Added(number, fresh=True)


def _tally(batches: Iterable[Batch]) -> Tally:
    counted = list(batches)
    return Tally(len(counted), sum(batch.items for batch in counted), sum(batch.size for batch in counted))


def _new_batch(number: int, kind: Kind, address: Address, now: float) -> Batch:
    return Batch(
        id=number,
        kind=kind,
        address=address,
        state=State.OPEN,
        step=None,
        operation_id=None,
        server_operation=None,
        obsolete=None,
        items=0,
        size=0,
        added=now,
        changed=now,
        until=0.0,
        why="",
        sent=0,
        accepted=None,
        handed_out=False,
        progress=Progress(),
    )
