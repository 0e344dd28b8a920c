"""What a server's answer to a step means for the batch and for its destination.

Pure: an `Answer` and what is known go in, a `Decision` comes out; the time and the jitter are arguments. How an answer
is got from a reply of HTTP is the sender's work, and how a decision is kept is the outbox's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from bankclient.store.outbox.model import Batch, Document, Kind, Progress
from bankclient.store.outbox.states import Event, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "LONGEST_WAIT",
    "Accepted",
    "Answer",
    "Busy",
    "Cancelled",
    "Closed",
    "Completed",
    "Conflict",
    "Decision",
    "Discarded",
    "Evidence",
    "Failed",
    "NoAnswer",
    "NotFound",
    "Pending",
    "Refused",
    "Unexpected",
    "decide",
]

LONGEST_WAIT: Final = 600.0
"""No wait is longer than this, in seconds: neither one that a server asks for, nor one left by a clock that stepped."""

_FIRST_WAIT, _MAX_WAIT = 2.0, 300.0
_FIRST_POLL = 0.5  # the real server is done within 0.4 to 0.7 s when it is idle
_JITTER = 0.25  # at most so much of a wait is added to it
_RETRIES, _RETRY_SECONDS = 5, 86_400.0  # a failed operation is not given up before both
_DOUBLINGS = 20  # more would only overflow


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Refused, reset, unknown name, timeout: nobody answered. To any step."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unexpected:
    """An answer that no other class stands for (500, a gateway's 400). To any step."""

    reason: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The destination takes nothing: 401, 402, 403, 404 of a route, 3xx, HTML, no Hindsight at all. To any step."""

    reason: str


@dataclass(frozen=True, slots=True)
class Busy:
    """429 or 503, with the seconds that the server asks to wait, if it does. To any step."""

    reason: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """400, 413 or 422 with the server's own `detail`. To any step; never with the server's echo of the input."""

    reason: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """409: the operation's id is in use, or the operation is in another state. To any step."""

    reason: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """The server has the operation `operation_id` for it. To SEND and RETRY."""

    operation_id: str


@dataclass(frozen=True, slots=True)
class Discarded:
    """The obsolete operation is deleted, or was not there. To DISCARD."""


@dataclass(frozen=True, slots=True)
class Pending:
    """The operation has not ended. To POLL."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The operation completed, and these documents were deleted after it. To POLL."""

    deleted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Failed:
    """The operation failed. To POLL."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The operation was cancelled. To POLL."""


@dataclass(frozen=True, slots=True)
class NotFound:
    """The server knows no such operation. To POLL, with what was then looked up, and to RETRY.

    `hashes` has the `content_hash` of each document of the batch that the server has; `None`: the bank itself is gone.
    """

    hashes: Mapping[str, str | None] | None


Answer: TypeAlias = (
    NoAnswer
    | Unexpected
    | Closed
    | Busy
    | Refused
    | Conflict
    | Accepted
    | Discarded
    | Pending
    | Completed
    | Failed
    | Cancelled
    | NotFound
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the outbox knows beside the batch.

    `tick` numbers this answer; `proved` is the tick at which the newest stored batch of the same kind and destination
    had been accepted; `holds` counts the pauses of the destination since it last answered as wanted.
    """

    tick: int
    proved: int = 0
    holds: int = 0
    documents: tuple[Document, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from an answer: the event, how long the batch waits, and how long its destination does (seconds)."""

    event: Event
    progress: Progress
    why: str = ""
    wait: float = 0.0
    hold: float | None = None
    """`None`: the destination does not pause."""
    is_asked: bool = False
    """The server itself asked for that pause."""
    server_operation: str | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    """What an answer is judged by."""

    batch: Batch
    evidence: Evidence
    now: float
    jitter: float

    @property
    def progress(self) -> Progress:
        """The progress before this answer, which is one: what had none so far has had one now."""
        return replace(self.batch.progress, unanswered=0)

    @property
    def divisible(self) -> bool:
        return self.batch.items > 1 and self.batch.kind is not Kind.CALLER

    def wait(self, times: int, *, first: float = _FIRST_WAIT) -> float:
        """Return the wait after as many earlier ones: doubled each time up to a bound, the jitter on top."""
        return min(first * 2.0 ** min(times, _DOUBLINGS), _MAX_WAIT) * (1 + _JITTER * self.jitter)

    def later(self, reason: str) -> Decision:
        """Decide nothing: the same again, later."""
        tries = self.batch.progress.tries
        return Decision(Event.DEFER, replace(self.progress, tries=tries + 1), reason, self.wait(tries))


def decide(batch: Batch, answer: Answer, evidence: Evidence, *, now: float, jitter: float) -> Decision:
    """Return what follows from `answer` to the step of `batch` that was handed out.

    `jitter` is a number from 0 to 1. Raises `ValueError` for an answer that the step cannot have.
    """
    case = _Case(batch, evidence, now, jitter)
    match answer:
        case NoAnswer(reason):
            later = case.later(reason)
            unanswered = replace(later.progress, unanswered=batch.progress.unanswered + 1)
            return replace(later, progress=unanswered, hold=case.wait(evidence.holds))
        case Closed(reason) | Busy(reason, None):
            return Decision(Event.HOLD, case.progress, reason, hold=case.wait(evidence.holds))
        case Busy(reason, float() | int() as asked):
            hold = min(max(asked, 0.0), LONGEST_WAIT) + jitter
            return Decision(Event.HOLD, case.progress, reason, hold=hold, is_asked=True)
        case Unexpected(reason):
            return case.later(reason)
        case _:
            return _BY_STEP[batch.step or Step.SEND](case, answer)


def _to_discard(case: _Case, answer: Answer) -> Decision:
    match answer:
        case Discarded():
            return Decision(Event.DISCARDED, replace(case.progress, tries=0))
        case Refused(reason) | Conflict(reason):
            return case.later(reason)
        case _:
            raise _mismatch(case, answer)


def _to_send(case: _Case, answer: Answer) -> Decision:
    match answer:
        case Accepted(operation):
            return _accept(case, operation, wait=_FIRST_POLL)
        case Conflict(reason) if case.batch.kind is Kind.CALLER or case.progress.renamed:
            return Decision(Event.KILL, case.progress, reason)
        case Conflict(reason):
            return Decision(Event.RENAME, Progress(renamed=True), reason)
        case Refused(reason) if case.divisible:
            return Decision(Event.HALVE, Progress(), reason)
        case Refused(reason) if case.progress.refused is not None and case.evidence.proved > case.progress.refused:
            return Decision(Event.KILL, case.progress, reason)
        case Refused(reason):
            later = case.later(reason)
            return replace(later, progress=replace(later.progress, refused=case.evidence.tick))
        case _:
            raise _mismatch(case, answer)


def _to_retry(case: _Case, answer: Answer) -> Decision:
    match answer:
        case Accepted(operation):
            return _accept(case, operation, wait=_FIRST_POLL)
        case Conflict() | NotFound():
            # It is not in the state that it was seen in: look at it again.
            return _accept(case, case.batch.server_operation, wait=0.0)
        case Refused(reason):
            return case.later(reason)
        case _:
            raise _mismatch(case, answer)


def _to_poll(case: _Case, answer: Answer) -> Decision:
    match answer:
        case Pending():
            polls = case.progress.polls
            asked_again = replace(case.progress, tries=0, polls=polls + 1)
            return Decision(Event.DEFER, asked_again, wait=case.wait(polls, first=_FIRST_POLL))
        case Completed(deleted):
            return _completed(case, deleted)
        case Failed(reason):
            return _failed(case, reason)
        case Cancelled():
            return Decision(Event.KILL, case.progress, "its operation was cancelled on the server")
        case NotFound(hashes):
            return _not_found(case, hashes)
        case Refused(reason) | Conflict(reason):
            return case.later(reason)
        case _:
            raise _mismatch(case, answer)


_BY_STEP = {Step.DISCARD: _to_discard, Step.SEND: _to_send, Step.RETRY: _to_retry, Step.POLL: _to_poll}


def _mismatch(case: _Case, answer: Answer) -> ValueError:
    return ValueError(f"{type(answer).__name__} is no answer to the step {case.batch.step or Step.SEND}")


def _accept(case: _Case, operation: str | None, *, wait: float) -> Decision:
    taken = replace(case.progress, tries=0, polls=0)
    return Decision(Event.ACCEPT, taken, wait=wait, server_operation=operation)


def _completed(case: _Case, deleted: frozenset[str]) -> Decision:
    if any(document.forgotten and document.id not in deleted for document in case.evidence.documents):
        # Forgotten while this answer was under way: the next hand-out names it.
        return Decision(Event.DEFER, case.progress)
    return Decision(Event.COMPLETE, case.progress)


def _failed(case: _Case, reason: str) -> Decision:
    progress, evidence = case.progress, case.evidence
    since = case.now if progress.failing_since is None else progress.failing_since
    others_go = progress.failed is not None and evidence.proved > progress.failed
    if progress.failures > _RETRIES and case.now - since >= _RETRY_SECONDS and others_go:
        # Of several items, those that are well need not die with the one that is not.
        return Decision(Event.HALVE if case.divisible else Event.KILL, Progress(), reason)
    failing = replace(progress, failures=progress.failures + 1, failed=evidence.tick, failing_since=since)
    return Decision(Event.FAIL, failing, reason, case.wait(progress.failures))


def _not_found(case: _Case, hashes: Mapping[str, str | None] | None) -> Decision:
    if hashes is None:
        return Decision(Event.KILL, case.progress, "bank deleted")
    documents = case.evidence.documents
    kept = [document for document in documents if not document.forgotten]
    if any(document.id is None or document.content_hash is None for document in kept):
        return Decision(Event.KILL, case.progress, "perhaps stored: the server knows its operation no more")
    if all(hashes.get(document.id or "") == document.content_hash for document in kept):
        return _completed(case, frozenset(document.id or "" for document in documents) - hashes.keys())
    lost = replace(case.progress, lost=case.progress.lost + 1)
    why = "the server knew neither its operation nor its text"
    return Decision(Event.RESEND, lost, why, case.wait(case.progress.lost))
