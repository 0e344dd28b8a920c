"""The flusher: works the outbox off, destination by destination, and keeps what comes of it.

It owns the order of things: lease, claim, the network, settle, and when to look again. What a step is on the network is
`steps`' business, what an answer means the outbox's. No transaction is open while the network is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import random
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from bankclient.errors import StoreError
from bankclient.flusher.steps import Sender
from bankclient.flusher.watching import LogWatcher
from bankclient.store.outbox import State, Step
from bankclient.store.outbox.answers import LONGEST_WAIT, Busy, Closed, NoAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

    from bankclient.flusher.keyring import Keyring
    from bankclient.flusher.watching import Watcher
    from bankclient.store.outbox import Destination, Job, Lane, Lease, Outbox
    from bankclient.store.outbox.answers import Answer, Decision

__all__ = ["PATIENCE", "Flusher"]

P = ParamSpec("P")
T = TypeVar("T")
_log = logging.getLogger("bankclient.flusher")

PATIENCE: Final = 3.0
"""So long, in seconds, `flush` waits for a second try where a first one was turned away."""

_POLLS: Final = 16  # asked for at once; what is sent goes one at a time, so that nothing overtakes what was turned away
_LOOK_SECONDS: Final = 5.0  # other processes add to the outbox without a word
_GLANCE_SECONDS: Final = 0.5  # how often to look whether another process is done
_PAUSING: Final = (NoAnswer, Busy, Closed)
_MENDING_SECONDS: Final = 30.0  # after the store could not be used


class Flusher:
    """Sends what is in `outbox` to the destinations whose keys are in `keyring`; rows of others stay as they are.

    `together` opens a transaction that several calls of the outbox join (`Database.write`); it is entered in the thread
    that calls the outbox. `watcher` is told what became of each step; without one it is logged when an outage begins
    and ends. `clock` is the wall clock of the outbox, `monotonic` measures time limits.

    It may be used by several event loops, by several processes on one store, and after a fork.
    """

    def __init__(
        self,
        outbox: Outbox,
        keyring: Keyring,
        *,
        together: Callable[[], AbstractContextManager[object]] = nullcontext,
        watcher: Watcher | None = None,
        lease_seconds: float = 10.0,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.outbox = outbox
        self.keyring = keyring
        self.together = together
        self.watcher = watcher or LogWatcher()
        self.lease_seconds = lease_seconds
        self.clock = clock
        self.monotonic = monotonic
        self.sleep = sleep
        self.jitter = jitter
        self._runs: set[_Run] = set()

    async def run(self) -> None:
        """Send whatever comes, until this is cancelled; it then stops at once, and what is left stays on the disk.

        While the store cannot be used it waits and tries again, and logs that once.
        """
        failed = -math.inf
        while True:
            try:
                await self._run(_Goal())
            except StoreError as error:
                is_news = self.monotonic() - failed > 2 * _MENDING_SECONDS
                failed = self.monotonic()
                _log.log(logging.WARNING if is_news else logging.DEBUG, "what is queued is not sent for now: %s", error)
                await self.sleep(_MENDING_SECONDS)

    async def flush(
        self,
        *,
        timeout: float,
        patience: float = PATIENCE,
        until: Callable[[], bool] | None = None,
        only: Destination | None = None,
    ) -> None:
        """Send what is queued and see it stored, until nothing is left or `timeout` seconds have passed.

        What the server works on is waited for; what was turned away is tried again only where that is due within
        `patience` seconds. `until` is asked after each step, in a thread, and ends it sooner. `only` leaves all other
        destinations alone. Raises `StoreError`.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._run(_Goal(self.monotonic() + timeout, patience, until, only))

    def wake(self) -> None:
        """Have the outbox looked at now, since something came in; may be called from any thread."""
        for run in tuple(self._runs):
            run.wake()

    async def _run(self, goal: _Goal) -> None:
        run = _Run(self, goal)
        self._runs.add(run)
        try:
            await run.work()
        finally:
            self._runs.discard(run)
            await run.stop()


@dataclass(frozen=True, slots=True)
class _Goal:
    """When a run is over; as it stands, never."""

    deadline: float = math.inf
    patience: float = math.inf
    until: Callable[[], bool] | None = None
    only: Destination | None = None

    @property
    def is_finite(self) -> bool:
        return self.deadline != math.inf


@dataclass(frozen=True, slots=True)
class _Standing:
    """How a destination stands for this run: in how many seconds something can be done for it, and what for."""

    wait: float
    is_under_way: bool
    """The server, or another process, works on something of it: it will not be long."""


class _Run:
    """One run in one event loop: who holds leases, and what is being done under them."""

    def __init__(self, flusher: Flusher, goal: _Goal) -> None:
        self._flusher = flusher
        self._outbox = flusher.outbox
        self._goal = goal
        self._holder = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._passes: dict[Destination, asyncio.Task[None]] = {}
        self._senders: dict[Destination, Sender] = {}
        self._leases: dict[Destination, Lease] = {}
        self._overdue: set[Destination] = set()
        self._is_reached = False
        # One thread: the disk never holds up the event loop, and calls of the outbox stay in order.
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="bankclient-flusher")

    def wake(self) -> None:
        self._loop.call_soon_threadsafe(self._woken.set)

    async def work(self) -> None:
        """Go on until the goal is reached."""
        while True:
            self._woken.clear()
            standings, keyless = await self._on_disk(self._look)
            for lane in keyless:
                self._flusher.watcher.keyless(lane)
            if self._is_reached:
                return
            for destination, standing in standings.items():
                if not standing.wait:
                    self._passes[destination] = asyncio.create_task(self._pass(destination))
            pause = self._pause(standings)
            if pause is None and not self._passes:
                return
            await self._wait(pause)

    async def stop(self) -> None:
        """Stop at once; whatever is under way is done again by the next run."""
        for task in self._passes.values():
            task.cancel()
        try:
            await asyncio.gather(*self._passes.values(), return_exceptions=True)
        finally:  # whoever is in a hurry may cancel this too
            for destination in self._passes:
                self._disk.submit(self._give_back, destination)
            self._disk.shutdown()

    async def _on_disk(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._loop.run_in_executor(self._disk, partial(work, *args, **kwargs))

    # Looking

    def _look(self) -> tuple[dict[Destination, _Standing], list[Lane]]:
        """Seal what is due; return how each destination stands that is due or waits, and those without their key."""
        now = self._flusher.clock()
        self._outbox.seal(now=now)
        self._ask_goal()
        standings: dict[Destination, _Standing] = {}
        keyless: list[Lane] = []
        for lane in self._outbox.overview(now=now).lanes:
            if lane.next_try is None or lane.destination in self._passes:
                continue
            if self._goal.only not in {None, lane.destination}:
                continue
            if self._sender(lane.destination) is None:
                keyless.append(lane)
            else:
                standings[lane.destination] = self._standing(lane, now)
        return standings, keyless

    def _standing(self, lane: Lane, now: float) -> _Standing:
        wait = max((lane.next_try or now) - now, 0.0)
        if wait < LONGEST_WAIT:
            self._overdue.discard(lane.destination)
        elif lane.destination not in self._overdue:
            # A wait that a clock left behind, which has stepped since; whoever takes the lease shortens it.
            self._overdue.add(lane.destination)
            return _Standing(0.0, is_under_way=True)
        if lane.until > now:
            return _Standing(wait, is_under_way=False)
        if lane.leased:  # by another process, for we have no pass there
            return _Standing(min(wait, _GLANCE_SECONDS), is_under_way=True)
        accepted = self._outbox.batches(states={State.ACCEPTED}, destination=lane.destination, limit=1)
        return _Standing(wait, is_under_way=bool(accepted))

    def _sender(self, destination: Destination) -> Sender | None:
        if (sender := self._senders.get(destination)) is not None:
            return sender
        if (client := self._flusher.keyring.client(destination)) is None:
            return None
        return self._senders.setdefault(destination, Sender(client, self._flusher.watcher.failed))

    def _ask_goal(self) -> None:
        self._is_reached = self._is_reached or (self._goal.until is not None and self._goal.until())

    # Waiting

    def _pause(self, standings: dict[Destination, _Standing]) -> float | None:
        """Return in how many seconds something more can be done, `None` where nothing is to be waited for."""
        goal = self._goal
        left = goal.deadline - self._flusher.monotonic()
        waits = [
            standing.wait
            for standing in standings.values()
            if 0 < standing.wait < left and (standing.is_under_way or standing.wait <= goal.patience)
        ]
        if not goal.is_finite:
            waits.append(_LOOK_SECONDS)
        return min(waits, default=None)

    async def _wait(self, pause: float | None) -> None:
        """Wait until a pass has ended, the pause is over or somebody wakes us; raise what a pass raised."""
        others: set[asyncio.Future[Any]] = {asyncio.ensure_future(self._woken.wait())}
        if not self._passes:
            others.add(asyncio.ensure_future(self._flusher.sleep(pause or 0.0)))
        try:
            timeout = pause if self._passes else None
            await asyncio.wait({*self._passes.values(), *others}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for other in others:
                other.cancel()
        for destination, done in list(self._passes.items()):
            if done.done():
                done.result()
                del self._passes[destination]

    # Working

    async def _pass(self, destination: Destination) -> None:
        """Do what can be done for the destination now, under its lease."""
        watcher, sender = self._flusher.watcher, self._senders[destination]
        jobs: list[Job] = []
        if (lease := await self._on_disk(self._take_lease, destination)) is not None:
            _, jobs = await self._on_disk(self._turn, lease, [])
        while lease is not None and jobs and (answers := await self._take(lease, sender, jobs)):
            settled, jobs = await self._on_disk(self._turn, lease, answers)
            for outcome in settled:
                watcher.settled(*outcome)
        await self._on_disk(self._give_back, destination)

    def _take_lease(self, destination: Destination) -> Lease | None:
        flusher = self._flusher
        lease = self._outbox.lease(destination, holder=self._holder, seconds=flusher.lease_seconds, now=flusher.clock())
        if lease is not None:
            self._leases[destination] = lease
        return lease

    def _give_back(self, destination: Destination) -> None:
        if (lease := self._leases.pop(destination, None)) is not None:
            self._outbox.release(lease)

    def _turn(
        self, lease: Lease, answers: list[tuple[Job, Answer]]
    ) -> tuple[list[tuple[Job, Answer, Decision]], list[Job]]:
        """Settle the answers and claim what is due next: at most one step that writes, and it comes last.

        Of several answers that make the destination pause one counts, after the good ones: together they are one try.
        What is not settled is claimed again under the next lease.
        """
        flusher = self._flusher
        good = [pair for pair in answers if not isinstance(pair[1], _PAUSING)]
        pausing = [pair for pair in answers if isinstance(pair[1], _PAUSING)]
        jobs: list[Job] = []
        with flusher.together():
            now = flusher.clock()
            settled = [
                (job, answer, decision)
                for job, answer in [*good, *pausing[:1]]
                if (decision := self._outbox.settle(job, answer, now=now, jitter=flusher.jitter())) is not None
            ]
            if answers:
                self._ask_goal()
            while not self._is_reached and len(jobs) < _POLLS and (job := self._outbox.claim(lease, now=now)):
                jobs.append(job)
                if job.step is not Step.POLL:
                    break
        return settled, jobs

    async def _take(self, lease: Lease, sender: Sender, jobs: list[Job]) -> list[tuple[Job, Answer]]:
        """Return the answers to the jobs, keeping the lease meanwhile; none where it was lost."""
        tasks = [asyncio.create_task(sender.take(job)) for job in jobs]
        try:
            while (await asyncio.wait(tasks, timeout=lease.seconds / 3))[1]:
                if not await self._on_disk(self._outbox.renew, lease, now=self._flusher.clock()):
                    return []
            return [(job, task.result()) for job, task in zip(jobs, tasks, strict=True)]
        finally:
            if unfinished := [task for task in tasks if not task.done()]:
                for task in unfinished:
                    task.cancel()
                await asyncio.wait(unfinished)
