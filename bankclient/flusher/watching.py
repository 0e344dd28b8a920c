"""Telling what becomes of what is queued: the seam for whoever shows it, and the one that logs it.

It knows jobs, answers and decisions as values, and nothing of how they came about.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Protocol

from bankclient.flusher.steps import answer_to
from bankclient.store.outbox.answers import Busy, Closed, NoAnswer
from bankclient.store.outbox.states import Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.errors import CallError
    from bankclient.store.outbox import Destination, Job, Lane
    from bankclient.store.outbox.answers import Answer, Decision

__all__ = ["LogWatcher", "Watcher"]

_log = logging.getLogger("bankclient.flusher")


class Watcher(Protocol):
    """Is told what a flusher does, in its event loop; its methods must be quick."""

    def failed(self, job: Job, error: CallError) -> None:
        """Take in that a step had no answer, or not the one asked for; what follows from it is told by `settled`."""
        ...

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

    def failed(self, job: Job, error: CallError) -> None:
        """Log what went wrong: once where it may be the whole destination's matter, else for those who debug."""
        is_news = job.batch.address.destination not in self._outages
        level = logging.WARNING if is_news and isinstance(answer_to(error), NoAnswer | Closed | Busy) else logging.DEBUG
        _log.log(level, "what is queued waits: %s: %s", type(error).__name__, error)

    def settled(self, job: Job, answer: Answer, decision: Decision) -> None:
        """Log what is news."""
        del answer
        batch, destination = job.batch, job.batch.address.destination
        if decision.hold is not None:
            self._outages.setdefault(destination, self._now())
        elif (began := self._outages.pop(destination, None)) is not None:
            _log.warning("what is queued for %s is sent again, after %.1f s", destination.url, self._now() - began)
        if decision.event is Event.KILL:
            _log.warning(
                "%d items for bank %r at %s are given up: %s; `bankclient queue` shows them",
                batch.items,
                batch.address.bank,
                destination.url,
                decision.why,
            )

    def keyless(self, lane: Lane) -> None:
        """Log it the first time."""
        if lane.destination not in self._keyless:
            self._keyless.add(lane.destination)
            _log.warning(
                "%d items for %s wait for its key, which is not known here", lane.queued.items, lane.destination.url
            )
