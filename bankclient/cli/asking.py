"""Asking a person before something is done that cannot be undone."""

from __future__ import annotations

import sys

from bankclient.cli import output
from bankclient.errors import InvalidInput

__all__ = ["agreed"]


def agreed(question: str, *, yes: bool) -> bool:
    """Return whether the person wants it: `yes` was said on the command line, or is typed now.

    Raises `InvalidInput` where nobody is there to be asked.
    """
    if yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise InvalidInput(f"{question} Nobody is there to answer; say it with --yes")
    output.note(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
