"""The records behind the outbox in memory: batches with their text, what is due of them, and how one moves.

What `rows` and `schedule` of `bankclient.store.outbox` are to the tables. It owns no rule of its own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bankclient.store.outbox import Batch, Destination, Kind, Lease, Loss, Progress, State, Step
from bankclient.store.outbox.answers import LONGEST_WAIT
from bankclient.store.outbox.model import FORGOTTEN, SEAL_SECONDS
from bankclient.store.outbox.sealing import Item, read_items, request_body
from bankclient.store.outbox.states import Effect, Event, move

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

__all__ = ["LaneRecord", "Record", "Records"]


@dataclass(slots=True)
class Record:
    """A batch with its items by number, and the request's bytes once it is sealed."""

    batch: Batch
    items: dict[int, Item]
    body: bytes | None = None
    ticket: int | None = None
    forgotten: set[str] = field(default_factory=set[str])
    """The documents that were forgotten when the server might have them already."""

    @property
    def unfinished(self) -> bool:
        """Neither stored nor dead."""
        return self.batch.state not in {State.STORED, State.DEAD}

    @property
    def document_ids(self) -> set[str]:
        """The documents that it writes, but for those whose id the server chooses."""
        return {item.document for item in self.items.values() if item.document is not None}


def _no_proofs() -> Counter[Kind]:
    return Counter()


@dataclass(slots=True)
class LaneRecord:
    """A destination: its pause, its lease and what it has proved."""

    until: float = 0.0
    why: str = ""
    since: float | None = None
    holds: int = 0
    is_asked: bool = False
    lease: Lease | None = None
    holder: str | None = None
    lease_until: float = 0.0
    stored_at: float | None = None
    error: str = ""
    error_at: float | None = None
    proofs: Counter[Kind] = field(default_factory=_no_proofs)

    def is_leased(self, now: float) -> bool:
        """Say whether somebody's lease still runs."""
        return self.lease is not None and now < self.lease_until <= now + LONGEST_WAIT


class Records:
    """All that one outbox holds. `new_id` draws operation ids."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.new_id = new_id
        self.rows: dict[int, Record] = {}
        self.lanes: dict[Destination, LaneRecord] = {}
        self.forgotten: dict[tuple[str, str, str], float] = {}
        self.losses: dict[str, Loss] = {}
        self._tick = 0

    def take_ticks(self, count: int = 1) -> int:
        """Take so many numbers of the counter and return the first."""
        self._tick += count
        return self._tick - count + 1

    def ordered(self, destination: Destination | None = None) -> list[Record]:
        """Return the batches, of one destination or of all, as they were acknowledged."""
        rows = [self.rows[number] for number in sorted(self.rows)]
        return [row for row in rows if destination in {None, row.batch.address.destination}]

    def lose(self, reason: str, items: int, size: int, now: float) -> None:
        """Count what was given up."""
        before = self.losses.get(reason, Loss(reason, 0, 0, now))
        self.losses[reason] = Loss(reason, before.items + items, before.size + size, now)

    def due(self, destination: Destination, now: float) -> Record | None:
        """Return the batch whose next step is due first."""
        due = [row for row in self.ordered(destination) if row.ticket is None and row.batch.until <= now]
        to_send = [row for row in due if row.batch.step in {Step.DISCARD, Step.SEND} and self._is_free(row)]
        if to_send:
            return min(to_send, key=lambda row: (row.batch.progress.unanswered // 3, row.batch.id))
        to_ask = [row for row in due if row.batch.step in {Step.RETRY, Step.POLL}]
        return min(to_ask, key=lambda row: (row.batch.until, row.batch.id), default=None)

    def next_due(self, destination: Destination, now: float) -> float | None:
        """Return when something can be done for the destination next."""
        times: list[float] = []
        for row in self.ordered(destination):
            if row.ticket is not None:
                times.append(0.0)
            elif row.batch.state is State.OPEN:
                times.append(min(row.batch.until, now + SEAL_SECONDS))
            elif row.batch.step is not None and self._is_free(row):
                times.append(row.batch.until)
        if not times:
            return None
        lane = self.lanes[destination]
        due = min(max(min(times), lane.until, now), now + LONGEST_WAIT)
        return max(due, lane.lease_until) if lane.is_leased(now) else due

    def _is_free(self, row: Record) -> bool:
        """Say whether its step may be done now: sending waits for earlier batches that share a document."""
        batch = row.batch
        return batch.step in {Step.RETRY, Step.POLL} or not any(
            earlier.batch.id < batch.id
            and earlier.unfinished
            and earlier.batch.address.bank == batch.address.bank
            and earlier.document_ids & row.document_ids
            for earlier in self.ordered(batch.address.destination)
        )

    def hand_out(self, row: Record, ticket: int | None) -> None:
        """Note who works on the batch, `None` for nobody."""
        row.ticket = ticket
        row.batch = replace(row.batch, handed_out=ticket is not None)

    def take_back(self, row: Record, now: float) -> None:
        """Let go of a batch that an earlier holder of the lease had out."""
        if row.batch.state is State.SENDING:
            self.move(row, Event.LAPSE, now, why=row.batch.why)
        self.hand_out(row, None)

    def move(
        self,
        row: Record,
        event: Event,
        now: float,
        *,
        progress: Progress | None = None,
        until: float = 0.0,
        why: str = "",
    ) -> None:
        """Do what the table of states says of `event`."""
        batch = row.batch
        to = move(batch.state, event)
        if to.state is None:
            self.lose(why, batch.items, batch.size, now)
            del self.rows[batch.id]
            return
        step, obsolete = (batch.step, batch.obsolete) if to.keeps_step else (to.step, None)
        if Effect.DISCARD in to.effects and batch.accepted is not None:
            step, obsolete = Step.DISCARD, batch.server_operation or batch.operation_id
        if Effect.PROVE in to.effects:
            proofs = self.lanes[batch.address.destination].proofs
            proofs[batch.kind] = max(proofs[batch.kind], batch.accepted or 0)
        bodies = self.bodies(row) if {Effect.SEAL_ANEW, Effect.SPLIT} & to.effects else {}
        self.hand_out(row, None)
        row.batch = replace(
            row.batch,
            state=to.state,
            step=step,
            obsolete=obsolete,
            until=until,
            why=why,
            changed=now,
            progress=progress or batch.progress,
        )
        if Effect.CLEAR_TEXT in to.effects:
            row.body = None
        if Effect.SPLIT in to.effects:
            later = sorted(row.items)[(len(row.items) + 1) // 2 :]
            half = replace(row.batch, id=later[0], progress=Progress())
            items = {number: row.items.pop(number) for number in later}
            self.rows[later[0]] = Record(half, items, forgotten=row.forgotten)
            self._seal(row, bodies, now)
            self._seal(self.rows[later[0]], bodies, now)
        elif Effect.SEAL_ANEW in to.effects:
            self._seal(row, bodies, now)

    def bodies(self, row: Record) -> dict[int, bytes]:
        """Return the JSON of each item, by number; none of a caller's request, which is one piece."""
        if row.batch.state is State.OPEN:
            return {number: item.body for number, item in row.items.items()}
        if row.batch.kind is Kind.CALLER:
            return {}
        return dict(zip(sorted(row.items), read_items(row.body or b""), strict=True))

    def keep_only(self, row: Record, kept: Collection[int], bodies: Mapping[int, bytes], now: float) -> bool:
        """Let go of all items but `kept`, counted as forgotten; return whether anything of the batch is left."""
        gone = [number for number in row.items if number not in kept]
        if gone:
            self.lose(FORGOTTEN, len(gone), sum(len(bodies[number]) for number in gone), now)
        for number in gone:
            del row.items[number]
        if not row.items:
            del self.rows[row.batch.id]
            return False
        row.batch = replace(row.batch, items=len(row.items), size=sum(len(bodies[number]) for number in row.items))
        return True

    def fix(self, row: Record, bodies: Mapping[int, bytes], operation_id: str) -> None:
        """Fix the bytes of what is left under that id."""
        row.body = request_body((bodies[number] for number in sorted(row.items)), operation_id)
        row.batch = replace(row.batch, operation_id=operation_id)

    def _seal(self, row: Record, bodies: Mapping[int, bytes], now: float) -> None:
        row.batch = replace(row.batch, sent=0, accepted=None, server_operation=None)
        if row.batch.kind is Kind.CALLER:
            return
        kept = [number for number, item in row.items.items() if item.document not in row.forgotten]
        if self.keep_only(row, kept, bodies, now):
            self.fix(row, bodies, self.new_id())
