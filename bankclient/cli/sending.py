"""Counting what becomes of what is sent, for a person who waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.store.outbox.states import Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.errors import CallError
    from bankclient.store.outbox import Destination, Job, Lane
    from bankclient.store.outbox.answers import Answer, Decision

__all__ = ["Tally"]


class Tally:
    """A watcher that counts items; `then` is called after each step.

    `why` is the last reason for giving one up, `errors` has the last error of each destination.
    """

    def __init__(self) -> None:
        self.stored = 0
        self.given_up = 0
        self.why = ""
        self.errors: dict[Destination, CallError] = {}
        self.then: Callable[[], None] = lambda: None

    def failed(self, job: Job, error: CallError) -> None:
        """Keep the error, which says more than the outbox does."""
        self.errors[job.batch.address.destination] = error

    def settled(self, job: Job, answer: Answer, decision: Decision) -> None:
        """Count what has come to its end."""
        del answer
        if decision.event is Event.COMPLETE:
            self.stored += job.batch.items
        elif decision.event is Event.KILL:
            self.given_up += job.batch.items
            self.why = decision.why
        self.then()

    def keyless(self, lane: Lane) -> None:
        """Pass it over: it is told in the end, with all that waits."""
