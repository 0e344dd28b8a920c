"""Being told to stop: the signals that end a command, as one exception, raised once.

It knows no command; what there is to clean up is in the `finally` of whoever runs inside.
"""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

__all__ = ["stoppable"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)  # as a shell has it for a program that the signal ended

    before = {each: signal.signal(each, stop) for each in heeded}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
