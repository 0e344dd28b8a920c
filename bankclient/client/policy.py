"""What to do about a failed call, as values: repeat it when, or give up; and whether a server is worth asking at all.

This module owns the retry rules and the circuit breaker. It is pure: time and jitter are arguments, errors come in,
decisions go out. It knows no network and never waits itself.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Final

from bankclient.api.call import Repeat
from bankclient.errors import (
    BreakerOpen,
    CallError,
    Disabled,
    RateLimited,
    Refused,
    ServerBusy,
    ServerError,
    TimedOut,
    Unavailable,
    UnexpectedReply,
)

__all__ = [
    "MAX_ATTEMPTS",
    "Blocked",
    "Breaker",
    "Decision",
    "GiveUp",
    "Outcome",
    "Permit",
    "Wait",
    "decide",
    "is_away",
    "outcome_of",
    "parse_retry_after",
]

MAX_ATTEMPTS: Final = 4
_FIRST_WAIT: Final = 0.1
_GATEWAY_STATUSES: Final = frozenset({502, 504})


@dataclass(frozen=True, slots=True)
class Wait:
    """Send the same bytes again after `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Do not send again; `why` is a phrase for the debug log."""

    why: str


Decision = Wait | GiveUp


def decide(error: CallError, repeat: Repeat, *, left: float, jitter: float) -> Decision:
    """Return whether a call that failed with `error` is repeated.

    `error.earlier` counts the attempts before, `left` is the wall-clock time (seconds) the caller still has, `jitter`
    a number from 0 to 1. Reads and identified writes are repeated on no answer, 429, 502, 503 and 504; reads once more
    on 500, since this server answers a failing embedding provider with it. A `Retry-After` is kept to, or the call is
    given up where it reaches beyond `left`.
    """
    if repeat is Repeat.NEVER:
        return GiveUp("a write without identity is never repeated")
    if not _is_passing(error, repeat):
        return GiveUp("the answer would be the same")
    attempt = len(error.earlier) + 1
    if attempt >= MAX_ATTEMPTS:
        return GiveUp(f"{attempt} attempts failed")
    asked = error.retry_after if isinstance(error, Refused) else None
    # The server's wish is a lower bound; jitter keeps a crowd that was turned away together from coming back together.
    seconds = asked + jitter * _FIRST_WAIT if asked is not None else _FIRST_WAIT * 2 ** (attempt - 1) * (1 + jitter)
    if seconds >= left:
        return GiveUp(f"the next attempt is due in {seconds:.2f} s, and only {max(left, 0):.2f} s are left")
    return Wait(seconds)


def _is_passing(error: CallError, repeat: Repeat) -> bool:
    if isinstance(error, BreakerOpen | Disabled | UnexpectedReply):
        return False
    if isinstance(error, Unavailable | RateLimited | ServerBusy):
        return True
    if not isinstance(error, ServerError):
        return False
    if error.status in _GATEWAY_STATUSES:
        return True
    seen_before = any(isinstance(earlier, ServerError) and earlier.status == error.status for earlier in error.earlier)
    return repeat is Repeat.READ and error.status == 500 and not seen_before  # noqa: PLR2004 - an HTTP status


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds that a `Retry-After` header asks for, `None` where it says nothing usable.

    It may hold seconds or an HTTP date (`now` is the wall clock in seconds since the epoch); a date that has passed is
    0, a negative number or a word is nothing.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        seconds = float(text)
        return seconds if math.isfinite(seconds) else None
    try:
        moment = parsedate_to_datetime(text)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def is_away(error: CallError) -> bool:
    """Return whether `error` means that there is no server to talk to just now (a degraded client then answers empty).

    No answer, a gateway's 502 or 504, a 503 and a 429 are; a refusal of this call alone is not. An answer that is not
    Hindsight's (a login page, a broken body) counts: whatever sits there, the memory server does not.
    """
    if isinstance(error, Unavailable | ServerBusy | RateLimited | UnexpectedReply):
        return True
    return isinstance(error, ServerError) and error.status in _GATEWAY_STATUSES


class Outcome(enum.Enum):
    """What a finished call says about the server."""

    ANSWERED = "answered"
    NO_ANSWER = "no answer"
    UNKNOWN = "unknown"
    """Nothing: the caller cancelled, or gave it less time than the default."""


def outcome_of(error: CallError | None, *, own_limit: bool) -> Outcome:
    """Return what a call's end says about the server: no answer, 502 and 504 speak against it, all else for it.

    `own_limit`: the caller allowed less time than the setting does, so running out of it proves nothing.
    """
    if isinstance(error, BreakerOpen | Disabled):
        return Outcome.UNKNOWN
    if isinstance(error, Unavailable):
        proves_nothing = error.says_nothing or (own_limit and isinstance(error, TimedOut))
        return Outcome.UNKNOWN if proves_nothing else Outcome.NO_ANSWER
    if isinstance(error, ServerError) and error.status in _GATEWAY_STATUSES:
        return Outcome.NO_ANSWER
    return Outcome.ANSWERED


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to send one call; `is_probe` where the breaker waits for this one's outcome."""

    is_probe: bool = False


@dataclass(frozen=True, slots=True)
class Blocked:
    """No leave: try again in `seconds`; `busy` where the server asked for that time itself (503, 429)."""

    seconds: float
    busy: bool = False


@dataclass(slots=True)
class Breaker:
    """The circuit breaker of one server, shared by whoever talks to it; all times are seconds of one monotonic clock.

    Closed until a call gets no answer; then open, and calls are blocked at once until a probe is due; then half-open:
    one caller is let through, and its outcome closes or re-opens. A probe whose caller never reports (it was
    cancelled, or its process was killed) gives way after `probe_limit`. A 503 or 429 opens nothing: it delays calls of
    its own kind for the time that the server asked for. There is no lock: what two threads can get from a race is a
    second probe, and a lock could be inherited, held, by a forked child.
    """

    first_pause: float = 1.0
    longest_pause: float = 30.0
    probe_limit: float = 30.0
    longest_delay: float = 600.0
    _failures: int = 0
    _next_probe: float = 0.0
    _probe_since: float | None = None
    _delayed: dict[str, float] = field(default_factory=dict[str, float])

    def is_open(self) -> bool:
        """Return whether the last call that said anything about the server spoke against it."""
        return self._failures > 0

    def ask(self, kind: str, now: float) -> Permit | Blocked:
        """Return leave to send a call of `kind` (`recall`, `retain`, …), or how long there is none."""
        if self._failures:
            if self._probe_since is not None and now - self._probe_since < self.probe_limit:
                return Blocked(self.probe_limit - (now - self._probe_since))
            if now < self._next_probe:
                return Blocked(self._next_probe - now)
            self._probe_since = now
            return Permit(is_probe=True)
        until = self._delayed.get(kind, now)
        if until > now:
            return Blocked(until - now, busy=True)
        self._delayed.pop(kind, None)
        return Permit()

    def report(self, permit: Permit, outcome: Outcome, now: float, jitter: float = 0.0) -> None:
        """Take in what became of a permitted call.

        `jitter` (0 to 1) spreads the probes of several processes. Outcomes of calls that were under way when the
        breaker opened count too: an answer is an answer.
        """
        if permit.is_probe:
            self._probe_since = None
        if outcome is Outcome.UNKNOWN:
            return
        if outcome is Outcome.ANSWERED:
            self._failures = 0
        elif permit.is_probe or not self._failures:
            pause = min(self.first_pause * 2**self._failures, self.longest_pause)
            self._failures = min(self._failures + 1, 16)
            self._next_probe = now + pause * (1 + 0.2 * jitter)

    def delay(self, kind: str, seconds: float, now: float) -> None:
        """Hold back calls of `kind` for `seconds`, at most ten minutes, since the server said that it is full."""
        self._delayed[kind] = max(self._delayed.get(kind, 0.0), now + min(seconds, self.longest_delay))
