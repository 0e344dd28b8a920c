"""The two faces of the outbox, which the SQLite one and its twin in memory both have.

`Queue` is what a person's commands need, `Outbox` adds what keeps and sends. No method touches the network or a clock.
All raise `StoreError` where the disk fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from bankclient.store.outbox.answers import Answer, Decision
    from bankclient.store.outbox.model import (
        Added,
        Address,
        Batch,
        Destination,
        Document,
        Forgotten,
        Job,
        Lease,
        Overview,
    )
    from bankclient.store.outbox.states import State

__all__ = ["Outbox", "Queue"]


class Queue(Protocol):
    """Looking at what is queued, and a person's acts on it."""

    def overview(self, *, now: float) -> Overview:
        """Return how much stands where, what each destination pauses for, and what was lost."""
        ...

    def batches(
        self,
        *,
        states: Collection[State] | None = None,
        destination: Destination | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> tuple[Batch, ...]:
        """Return batches in order of acknowledgement, `None` for all; `after` is the last id of the page before."""
        ...

    def batch(self, batch_id: int) -> Batch | None:
        """Return the batch, `None` if there is none of that id (any more)."""
        ...

    def batch_of_item(self, item: int) -> Batch | None:
        """Return the batch that the item `Added.item` is in by now, `None` if it is gone."""
        ...

    def batch_of_operation(self, url: str, operation_id: str) -> Batch | None:
        """Return the batch that is sent to the server at `url` under this id."""
        ...

    def text(self, batch_id: int) -> bytes | None:
        """Return the request's bytes, for an open batch as they would be; `None` once they are gone."""
        ...

    def documents(self, batch_id: int) -> tuple[Document, ...]:
        """Return what the batch writes, in order."""
        ...

    def revive(self, batch_id: int, *, now: float) -> bool:
        """Have the batch tried at once, a dead one under a new id; return whether it will be.

        The pause of its destination ends too. A failed operation is deleted on the server first. A dead batch stays so
        where a later one has written the same document, or is queued to: it would bring the old text back.
        """
        ...

    def hurry(self, destination: Destination, *, now: float) -> None:
        """Have everything that waits for the destination tried at once; a pause that its server asked for stays."""
        ...

    def drop(self, batch_id: int, *, now: float) -> bool:
        """Take the batch out for good, counted as lost; return whether there was one. What is stored stays."""
        ...

    def rekey(self, url: str, old: str, new: str, *, now: float) -> int:
        """Move what is queued for `url` from one key's fingerprint to another's; return how many batches moved.

        Only a person may want this. What was being sent under the old key is sent again under the same id.
        """
        ...

    def lose(self, reason: str, *, items: int, size: int, now: float) -> None:
        """Count what was given up before it came here."""
        ...


class Outbox(Queue, Protocol):
    """Keeping what is to be sent, and handing it out step by step."""

    def add_fact(self, address: Address, fields: Mapping[str, Any], *, now: float, restore: bool = False) -> Added:
        """Take in an explicit fact, the fields of the API's `MemoryItem`; return when it is on the disk.

        Without a `document_id` it gets one of its text, bank and tags, and is queued once at a time. One that was
        forgotten is not taken, unless a person restores it. Raises `InvalidInput` without text, and `OutboxFull`.
        """
        ...

    def add_session(self, address: Address, fields: Mapping[str, Any], *, now: float) -> Added:
        """Take in a piece of a session, one document (`document_id` is needed), sealed. Raises `OutboxFull`."""
        ...

    def add_request(
        self, address: Address, items: Sequence[Mapping[str, Any]], *, body: bytes, operation_id: str, now: float
    ) -> Added:
        """Take in a caller's own asynchronous retain request, its bytes as they are.

        `operation_id` is the one in the body, written as the server writes it. One that is known already for that
        server is not taken again. Raises `OutboxFull`.
        """
        ...

    def seal(self, *, now: float, everything: bool = False) -> int:
        """Seal the batches of facts that are full or old enough, or every one; return how many."""
        ...

    def next_due(self, destination: Destination, *, now: float) -> float | None:
        """Return when something can be done for the destination next, `None` if nothing is queued for it."""
        ...

    def lease(self, destination: Destination, *, holder: str, seconds: float, now: float) -> Lease | None:
        """Return the right to send for the destination, `None` while another holder has it.

        Only who holds its key may ask. `holder` names one sender: a lease of the same name is taken over, so the name
        must be of one that lives once. What was being sent under an earlier lease is to be sent again.
        """
        ...

    def renew(self, lease: Lease, *, now: float) -> bool:
        """Let the lease run for its seconds anew; return whether it still stands."""
        ...

    def release(self, lease: Lease) -> None:
        """Give the lease back, if it still stands."""
        ...

    def claim(self, lease: Lease, *, now: float) -> Job | None:
        """Return the next step that is due for the destination, `None` if there is none or the lease is lost.

        The lease is renewed. Batches come as they were acknowledged, one at a time of those that share a document.
        """
        ...

    def settle(self, job: Job, answer: Answer, *, now: float, jitter: float) -> Decision | None:
        """Keep what follows from the answer to a job; return it, or `None` where the job is no longer the holder's.

        `jitter` is a number from 0 to 1.
        """
        ...

    def forget(self, url: str, bank: str, document: str, *, now: float) -> Forgotten:
        """Note that a person forgot the document, and take it out of the queue; callers' requests are left as they are.

        Deleting it on the server is the caller's work; what may be on its way there is deleted when it has arrived.
        """
        ...

    def forgotten(self, url: str, bank: str, document: str) -> float | None:
        """Return when the document was forgotten, `None` if it was not."""
        ...

    def restore(self, url: str, bank: str, document: str) -> bool:
        """Let the document be taken in again; return whether it was forgotten."""
        ...
