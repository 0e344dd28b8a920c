"""A clock that moves only when it is told to, for tests of waits, limits and ages.

It owns one number. It knows nothing of what reads it.
"""

from __future__ import annotations

import asyncio

__all__ = ["ManualClock"]


class ManualClock:
    """Seconds that pass by `advance`, `sleep` and `sleep_async` alone.

    Hand over `clock.now` where `time.monotonic` or `time.time` would be, `clock.sleep` for `time.sleep` and
    `clock.sleep_async` for `asyncio.sleep`. `slept` holds what was slept, in order.
    """

    def __init__(self, start: float = 1_000.0) -> None:
        self._now = start
        self.slept: list[float] = []

    def now(self) -> float:
        """Return the time, in seconds."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass; a negative number steps the clock back, as a wall clock may."""
        self._now += seconds

    def sleep(self, seconds: float) -> None:
        """Record the sleep and let its time pass at once; raises `ValueError` where `time.sleep` would."""
        if not seconds >= 0:
            raise ValueError(f"cannot sleep for {seconds} s")
        self.slept.append(seconds)
        self._now += seconds

    async def sleep_async(self, seconds: float) -> None:
        """Do as `sleep` does, and let other tasks run once, so that a cancellation arrives here."""
        self.sleep(seconds)
        await asyncio.sleep(0)
