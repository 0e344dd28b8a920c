"""The manual clock."""

from __future__ import annotations

import asyncio
import math

import pytest

from bankclient.testing.clock import ManualClock


def test_time_passes_only_when_told() -> None:
    """`now` moves by what was advanced and slept, and by nothing else."""
    clock = ManualClock(10.0)
    assert (clock.now(), clock.now()) == (10.0, 10.0)
    clock.advance(2.5)
    clock.sleep(0.5)
    assert clock.now() == 13.0
    clock.advance(-3.0)
    assert (clock.now(), clock.slept) == (10.0, [0.5])


@pytest.mark.parametrize("seconds", [-0.1, math.nan])
def test_an_impossible_sleep_is_refused(seconds: float) -> None:
    """A sleep that the standard library refuses is refused here, so that a policy cannot hide behind the double."""
    clock = ManualClock()
    with pytest.raises(ValueError, match="cannot sleep"):
        clock.sleep(seconds)
    assert clock.slept == []


@pytest.mark.anyio
async def test_an_async_sleep_lets_other_tasks_run() -> None:
    """The async double records like the other, and a cancellation reaches it."""
    clock = ManualClock(0.0)

    async def sleep_for_ever() -> None:
        while True:
            await clock.sleep_async(1.0)

    task = asyncio.create_task(sleep_for_ever())
    while clock.now() < 3.0:
        await clock.sleep_async(0.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [seconds for seconds in clock.slept if seconds] == [1.0, 1.0, 1.0]
