"""Telling what becomes of what is queued: the seam for whoever shows it, and the one that logs it.

It knows jobs, answers and decisions as values, and nothing of how they came about.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Protocol

from bankclient.store.outbox.states import Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.store.outbox import Destination, Job, Lane
    from bankclient.store.outbox.answers import Answer, Decision

__all__ = ["LogWatcher", "Watcher"]

_log = logging.getLogger("bankclient.flusher")


class Watcher(Protocol):
    """Is told what a flusher does; its methods must be quick, and `keyless` is called in another thread."""

    def settled(self, job: Job, answer: Answer, decision: Decision) -> None:
        """Take in what followed from a step."""
        ...

    def keyless(self, lane: Lane) -> None:
        """Take in that something is queued for a destination whose key is not known; said again at each look."""
        ...


class LogWatcher:
    """Logs one line when a destination begins to take nothing and one when it takes something again, and each loss."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._outages: dict[Destination, float] = {}
        self._keyless: set[Destination] = set()

    def settled(self, job: Job, answer: Answer, decision: Decision) -> None:
        """Log what is news."""
        batch, kind = job.batch, type(answer).__name__
        destination = batch.address.destination
        if decision.hold is not None:
            if destination not in self._outages:
                self._outages[destination] = self._now()
                _log.warning(
                    "what is queued for %s waits: %s at %s in bank %r: %s",
                    destination.url, kind, job.step, batch.address.bank, decision.why,
                )  # fmt: skip
        elif (began := self._outages.pop(destination, None)) is not None:
            _log.warning("what is queued for %s is sent again, after %.1f s", destination.url, self._now() - began)
        if decision.event is Event.KILL:
            _log.warning(
                "batch %d (%d items for bank %r at %s) is given up: %s; `bankclient queue` shows it",
                batch.id, batch.items, batch.address.bank, destination.url, decision.why,
            )  # fmt: skip

    def keyless(self, lane: Lane) -> None:
        """Log it the first time."""
        if lane.destination not in self._keyless:
            self._keyless.add(lane.destination)
            _log.warning(
                "%d items for %s wait for its key, which is not known here", lane.queued.items, lane.destination.url
            )
