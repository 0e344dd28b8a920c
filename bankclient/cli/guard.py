"""The outermost guard: whatever happens, one line on stderr at most, and an exit code.

It knows no command; what is said of an error is in `failures`, which loads when there is one.
"""

from __future__ import annotations

import os
import sys
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["guarded"]

_INTERRUPTED = 128 + 2  # as a shell has it for a program that SIGINT ended
_READER_GONE = 128 + 13  # the same for SIGPIPE


def guarded(run: Callable[[], int]) -> int:
    """Return the exit code that `run` returns, or the one for how it failed."""
    _prepare_streams()
    try:
        code = run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BrokenPipeError:
        code = _READER_GONE
    except Exception as error:  # noqa: BLE001 - this is the one place that takes every error
        from bankclient.cli.failures import report  # noqa: PLC0415 - loads the error tree, and most runs need none

        code = report(error)
    _drop_unwritten()
    return code


def _prepare_streams() -> None:
    """Let output go nowhere where the caller closed it, and letters that its encoding lacks be replaced."""
    if sys.stdout is None:
        sys.stdout = StringIO()
    if sys.stderr is None:
        sys.stderr = StringIO()
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


def _drop_unwritten() -> None:
    """Let what cannot be written go, or the interpreter tries once more when it ends, and complains."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
