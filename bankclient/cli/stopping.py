"""Being told to stop: the signals that end a command, as one exception, raised once.

It knows no command; what there is to clean up is in the `finally` of whoever runs inside.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from types import FrameType

__all__ = ["run_stoppable", "stoppable"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_stoppable(work: Coroutine[object, object, None]) -> None:
    """Run a coroutine until it ends or one of the signals cancels it; then raise as `stoppable` does.

    An exception that a signal raised in the middle of a loop could land in any of its tasks, and be nobody's.
    """
    stopped: list[signal.Signals] = []

    async def watch() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)

        def stop(each: signal.Signals) -> None:
            if not stopped:  # a second one must not cut short what cleans up
                task.cancel()
            stopped.append(each)

        for each in _SIGNALS:
            if signal.getsignal(each) is not signal.SIG_IGN:
                loop.add_signal_handler(each, stop, each)
        try:
            await task
        except asyncio.CancelledError:
            if not stopped:
                raise

    asyncio.run(watch())
    if stopped:
        _raise_for(stopped[0])


@contextlib.contextmanager
def stoppable() -> Generator[None]:
    """Let Ctrl-C, SIGTERM and a closed terminal each raise in the block: `KeyboardInterrupt`, or `SystemExit`.

    Only the first does. Those after it are passed over until the block is left, so that they cannot cut short what
    cleans up. A signal that this process was started to ignore, as by nohup, stays ignored.
    """
    heeded = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        for each in heeded:
            signal.signal(each, signal.SIG_IGN)
        _raise_for(number)

    before = {each: signal.signal(each, stop) for each in heeded}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _raise_for(number: int) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)  # as a shell has it for a program that the signal ended
