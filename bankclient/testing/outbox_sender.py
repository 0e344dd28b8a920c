"""A sender without a network: it works an outbox off with the answers that a test gives it.

It owns a clock that stands still unless it is moved, and remembers what was sent.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bankclient.store.outbox import Step
from bankclient.store.outbox.answers import Accepted, Answer, Completed, Discarded

if TYPE_CHECKING:
    from bankclient.store.outbox import Address, Batch, Destination, Job, Lease, Outbox

__all__ = ["ScriptedSender"]


class ScriptedSender:
    """Takes items into `outbox` for `home`, and sends what is due for that destination.

    `now` is its clock, which a test sets; `sent` has the texts of each request that was handed out to be sent. What is
    not as a test says raises `AssertionError`.
    """

    def __init__(self, outbox: Outbox, home: Address, *, now: float = 1_000_000.0) -> None:
        self.outbox = outbox
        self.home = home
        self.destination: Destination = home.destination
        self.now = now
        self.holder = "sender"
        self.sent: list[list[str]] = []

    def fact(self, text: str, address: Address | None = None, **fields: Any) -> int:  # noqa: ANN401 - any of an item's
        """Queue an explicit fact; return its item's number."""
        return _number(self.outbox.add_fact(address or self.home, {"content": text, **fields}, now=self.now).item)

    def session(self, document: str, text: str = "text", address: Address | None = None) -> int:
        """Queue a piece of a session; return its item's number."""
        fields = {"content": text, "document_id": document}
        return _number(self.outbox.add_session(address or self.home, fields, now=self.now).item)

    def request(self, operation_id: str, *documents: str | None, address: Address | None = None) -> int:
        """Queue a caller's request that writes these documents; return its first item's number."""
        items = [{"content": f"text of {name}", **({"document_id": name} if name else {})} for name in documents]
        body = json.dumps({"items": items, "async": True, "operation_id": operation_id}).encode()
        added = self.outbox.add_request(address or self.home, items, body=body, operation_id=operation_id, now=self.now)
        return _number(added.item)

    def seal(self) -> int:
        """Seal everything; return how many batches were open."""
        return self.outbox.seal(now=self.now, everything=True)

    def batch(self, number: int) -> Batch:
        """Return the batch of that id."""
        batch = self.outbox.batch(number)
        if batch is None:
            raise AssertionError(f"there is no batch {number}")
        return batch

    def lease(self) -> Lease:
        """Lease the destination for twenty seconds."""
        lease = self.outbox.lease(self.destination, holder=self.holder, seconds=20.0, now=self.now)
        if lease is None:
            raise AssertionError(f"{self.destination} cannot be leased")
        return lease

    def claim(self, step: Step | None = None) -> Job:
        """Take the next step that is due, of the kind named, under a lease that stays."""
        job = self.outbox.claim(self.lease(), now=self.now)
        if job is None or step not in {None, job.step}:
            raise AssertionError(f"what is due is {job}, not {step or 'something'}")
        if job.step is Step.SEND:
            self.sent.append([item["content"] for item in json.loads(job.body)["items"]])
        return job

    def nothing_due(self) -> bool:
        """Say whether there is no step to take now."""
        lease = self.lease()
        job = self.outbox.claim(lease, now=self.now)
        self.outbox.release(lease)
        return job is None

    def settle(self, job: Job, answer: Answer) -> Batch:
        """Settle the job and give the lease back; return the batch as it is then."""
        if self.outbox.settle(job, answer, now=self.now, jitter=0.0) is None:
            raise AssertionError(f"{job} is no longer to be settled")
        self.outbox.release(self.lease())
        return self.batch(job.batch.id)

    def step(self, answer: Answer, step: Step | None = None) -> Batch:
        """Take the next step and have it answered so."""
        return self.settle(self.claim(step), answer)

    def send(self) -> Batch:
        """Have the next batch accepted under its own id."""
        job = self.claim(Step.SEND)
        return self.settle(job, Accepted(job.operation))

    def store(self) -> Batch:
        """Have the next batch accepted, and a second later seen completed."""
        self.send()
        self.now += 1
        return self.step(Completed(), Step.POLL)

    def store_all(self) -> None:
        """Answer as a server without troubles would, until nothing is queued."""
        self.seal()
        good: dict[Step, Answer] = {Step.DISCARD: Discarded(), Step.POLL: Completed()}
        while (due := self.outbox.next_due(self.destination, now=self.now)) is not None:
            self.now = max(self.now, due)
            job = self.claim()
            self.settle(job, good.get(job.step) or Accepted(job.operation))


def _number(item: int | None) -> int:
    if item is None:
        raise AssertionError("it was not taken in, as it was forgotten")
    return item
