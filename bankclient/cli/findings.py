"""What the doctor found: one judgement a check, with the mend where there is something to mend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from bankclient.cli.failures import Failure

__all__ = ["Finding", "fine", "problem", "warning"]


class Finding(NamedTuple):
    """The judgement on one check."""

    check: str
    state: Literal["ok", "warning", "problem"]
    what: str
    mend: str = ""

    def __str__(self) -> str:
        return f"{self.what}; {self.mend}" if self.mend else self.what


def fine(check: str, what: str) -> Finding:
    """Return that a check found what it looked for."""
    return Finding(check, "ok", what)


def warning(check: str, what: str, mend: str = "") -> Finding:
    """Return that something works, and perhaps not as it was meant."""
    return Finding(check, "warning", what, mend)


def problem(check: str, failure: Failure) -> Finding:
    """Return that something does not work."""
    return Finding(check, "problem", *failure)
