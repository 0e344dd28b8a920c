"""What both clients do with one call, apart from waiting: ask the breaker, make the request, read the answer, judge.

Sync and async clients differ only in how they send and sleep; everything between is here, once. It holds the shared
`Core` of a client (base address, headers, limits, breaker) and one `Exchange` a call. It knows no httpx.
"""

from __future__ import annotations

import json
import logging
import random
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Generic, TypedDict, TypeVar, cast
from urllib.parse import urlencode

from tenacity import RetryCallState, stop_never

from bankclient.api.call import Repeat
from bankclient.client.policy import (
    Blocked,
    Breaker,
    Outcome,
    Permit,
    Wait,
    decide,
    is_away,
    outcome_of,
    parse_retry_after,
)
from bankclient.client.transport import NoAnswer, Request, Response, UnreadableReply
from bankclient.errors import (
    BreakerOpen,
    CallError,
    Context,
    Disabled,
    InvalidInput,
    Refused,
    ServerBusy,
    TimedOut,
    Unavailable,
    UnexpectedReply,
    refusal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenacity.stop import StopBaseT

    from bankclient.api.call import Call, TimeLimit

__all__ = ["Core", "Exchange"]

T = TypeVar("T")
_log = logging.getLogger("bankclient.client")
_LONGEST_DETAIL: Final = 500
_MOMENT: Final = 0.001  # the least time that a call is given, where no more is left
_OWN_LIMIT_SHARE: Final = 0.9  # what is left of the usual limit after a moment of ours is still the usual one
_LONGEST_TIMEOUT: Final = 10_000_000
_DEFAULT_BUSY_SECONDS: Final = 1.0
_BUSY_STATUSES: Final = frozenset({429, 503})


@dataclass(slots=True)
class Core:
    """What all calls of a client share: where it sends, as whom, within which limits (seconds), and how it judges."""

    base_url: str
    limits: Mapping[TimeLimit, float]
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Texts that must not appear in an error, should a server or gateway echo them."""
    breaker: Breaker = field(default_factory=Breaker)
    degrade: bool = False
    is_disabled: bool = False
    now: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    jitter: Callable[[], float] = random.random
    outages: dict[str, float] = field(default_factory=dict[str, float])
    """When each outage that was reported began: of the server (``), or of one kind of call."""

    def begin(self, call: Call[T], timeout: float | None, *, extra: bool = False) -> Exchange[T]:
        """Return the exchange of `call` within `timeout` seconds, or within its setting's limit where that is None.

        Raises `InvalidInput` for a timeout that is no time. An `extra`, which is sent beside what the caller asked for,
        says nothing to the breaker.
        """
        usual = self.limits[call.time_limit]
        limit = usual if timeout is None else _checked(timeout)
        return Exchange(self, call, limit, own_limit=limit < usual * _OWN_LIMIT_SHARE, began=self.now(), is_extra=extra)

    def left(self, kind: TimeLimit, timeout: float | None, began: float) -> float:
        """Return what is left of a limit that several calls share, for the second and later ones; never nothing."""
        limit = self.limits[kind] if timeout is None else timeout
        return max(limit - (self.now() - began), _MOMENT)

    def context(self, operation: str, bank: str | None, elapsed: float, limit: float) -> Context:
        """Return which call an error is about."""
        return Context(operation, self.base_url, bank, elapsed, limit)

    def mask(self, text: str) -> str:
        """Return `text` without the client's credentials."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


@dataclass(slots=True)
class Exchange(Generic[T]):
    """One call from its first attempt to its result."""

    core: Core
    call: Call[T]
    limit: float
    own_limit: bool
    began: float
    is_extra: bool = False
    _permit: Permit | None = None
    _pause: float = 0.0
    _earlier: list[CallError] = field(default_factory=list[CallError])

    def open(self) -> None:
        """Ask for leave to send, once; raise `Disabled`, `BreakerOpen`, or `ServerBusy` where there is none."""
        if self._permit is not None:
            return
        if self.core.is_disabled:
            raise Disabled(
                "memory is off for this caller: HINDSIGHT_DISABLED or a project rule says so", self._context()
            )
        answer = self.core.breaker.ask(self.call.operation, self.core.now())
        if isinstance(answer, Permit):
            self._permit = answer
            return
        raise self._blocked(answer)

    def _blocked(self, blocked: Blocked) -> CallError:
        if blocked.busy:
            reason = f"the server asked to be left alone for another {blocked.seconds:.1f} s"
            return ServerBusy(reason, self._context(), status=503, retry_after=blocked.seconds)
        reason = f"not tried: the server did not answer before; the next probe is due in {blocked.seconds:.1f} s"
        return BreakerOpen(reason, self._context())

    @property
    def last_error(self) -> CallError | None:
        """How the attempt before this one failed; `None` on the first."""
        return self._earlier[-1] if self._earlier else None

    def given_up(self, error: CallError) -> CallError:
        """Return `error` as the call's last: it turned out that the call may not be sent twice."""
        self.call = replace(self.call, repeat=Repeat.NEVER)
        return error

    def request(self) -> tuple[Request, float]:
        """Return the request and the seconds left for it; raise `TimedOut` where none are."""
        left = self.left()
        if left <= 0:
            raise self._failed(TimedOut, "the time allowed was over before an attempt could begin")
        call = self.call
        headers = dict(self.core.headers)
        if call.body is not None:
            headers["content-type"] = call.content_type
        return Request(call.method, self.url(), headers, call.body), left

    def url(self) -> str:
        """Return the absolute address of the call."""
        query = "?" + urlencode(self.call.query) if self.call.query else ""
        return self.core.base_url + self.call.path + query

    def read(self, response: Response) -> T:
        """Return the parsed answer; raise the `Refused` that fits it."""
        status = response.status
        is_success = 200 <= status < 300  # noqa: PLR2004 - the range of success
        if not is_success and status not in self.call.accept:
            raise self.refused(status, response.headers, response.body)
        try:
            return self.call.parse(response.body)
        except ValueError as error:
            if not is_success:
                raise self.refused(status, response.headers, response.body) from error
            reason = self.core.mask(_not_the_api(response.headers.get("content-type", ""), error))
            raise UnexpectedReply(
                reason, self._context(), status=status, from_server=False, earlier=self._earlier
            ) from error

    def unanswered(self, error: NoAnswer) -> Unavailable:
        """Return the error for an attempt that nobody answered, and note a timeout for the debug log."""
        failure = self._failed(error.kind, self.core.mask(error.reason))
        failure.says_nothing = error.says_nothing
        _log.debug("%s", failure)
        return failure

    def unreadable(self, error: UnreadableReply) -> UnexpectedReply:
        """Return the error for a reply whose body could not be taken."""
        return UnexpectedReply(
            self.core.mask(error.reason), self._context(), status=error.status, from_server=False, earlier=self._earlier
        )

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> Refused:
        """Return the error for a status that is not success, and hold back its kind of call where it says when."""
        detail = _detail(body, self.core.mask)
        retry_after = parse_retry_after(headers.get("retry-after"), self.core.wall_clock())
        if status in _BUSY_STATUSES:
            seconds = _DEFAULT_BUSY_SECONDS if retry_after is None else retry_after
            self.core.breaker.delay(self.call.operation, seconds, self.core.now())
        text = detail if detail is not None else self.core.mask(_kind_of_body(headers.get("content-type", "")))
        if 300 <= status < 400:  # noqa: PLR2004 - the range of redirections
            where = self.core.mask(headers.get("location", "nowhere"))[:_LONGEST_DETAIL]
            text = f"a redirection to {where}, which is not followed: set the server's URL to where it really is"
        return refusal(status)(
            f"answered {status}: {text}",
            self._context(),
            status=status,
            detail=detail or "",
            retry_after=retry_after,
            from_server=detail is not None,
            earlier=self._earlier,
        )

    def retry_options(self) -> _RetryOptions:
        """Return the options with which tenacity repeats the attempt as `policy.decide` says."""
        return {"retry": self._is_repeated, "wait": self._pause_before_next, "stop": stop_never, "reraise": True}

    def _is_repeated(self, state: RetryCallState) -> bool:
        error = None if state.outcome is None else state.outcome.exception()
        if not isinstance(error, CallError):
            return False
        decision = decide(error, self.call.repeat, left=self.left(), jitter=self.core.jitter())
        if isinstance(decision, Wait):
            self._earlier.append(error)
            self._pause = decision.seconds
            return True
        _log.debug("%s: not repeated: %s", error.context, decision.why)
        return False

    def _pause_before_next(self, _: RetryCallState) -> float:
        return self._pause

    def succeeded(self) -> None:
        """Report the server as answering, and say so where that ends an outage."""
        self._report(Outcome.ANSWERED)
        for cause in ("", self.call.operation):
            began = self.core.outages.pop(cause, None)
            if began is not None:
                _log.warning(
                    "memory is back: %s answered after an outage of %.1f s", self._context(), self.core.now() - began
                )

    def failed(self, error: CallError) -> T:
        """Report the failure; return the empty answer of a degraded client whose server is away, else raise."""
        outcome = self.settle(error)
        if not (self.core.degrade and is_away(error)):
            raise error
        # A server that is gone is one outage, whatever was asked of it; one that refuses a kind of call is that kind's.
        cause = self.call.operation if outcome is Outcome.ANSWERED else ""
        if cause not in self.core.outages:
            self.core.outages[cause] = self.began
            _log.warning("memory is away, going on without it: %s: %s", type(error).__name__, error)
        return self.call.empty()

    def settle(self, error: CallError) -> Outcome:
        """Report to the breaker what `error` says about the server, and return that."""
        outcome = outcome_of(error, own_limit=self.own_limit)
        self._report(outcome)
        return outcome

    def abandon(self) -> None:
        """Give the breaker's permit back: the caller went away, which says nothing about the server."""
        self._report(Outcome.UNKNOWN)

    def _report(self, outcome: Outcome) -> None:
        if self._permit is not None:
            said = Outcome.UNKNOWN if self.is_extra and outcome is Outcome.NO_ANSWER else outcome
            self.core.breaker.report(self._permit, said, self.core.now(), self.core.jitter())
            self._permit = None

    def left(self) -> float:
        """Return the seconds that the call still has."""
        return self.limit - (self.core.now() - self.began)

    def _context(self) -> Context:
        elapsed = self.core.now() - self.began
        return self.core.context(self.call.operation, self.call.bank, elapsed, self.limit)

    def _failed(self, kind: type[Unavailable], reason: str) -> Unavailable:
        return kind(reason, self._context(), earlier=self._earlier)


class _RetryOptions(TypedDict):
    """What `Exchange.retry_options` hands to tenacity."""

    retry: Callable[[RetryCallState], bool]
    wait: Callable[[RetryCallState], float]
    stop: StopBaseT
    reraise: bool


def _checked(timeout: object) -> float:
    """Return the time limit of a caller; it may come from arithmetic, or from a person."""
    if isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and 0 < timeout <= _LONGEST_TIMEOUT:
        return float(timeout)
    raise InvalidInput(f"timeout is {timeout!r:.40}: give seconds, above 0 and at most {_LONGEST_TIMEOUT}")


def _detail(body: bytes, mask: Callable[[str], str]) -> str | None:
    """Return the sentence in a refusal of Hindsight's own (`None`: the body is not of its shape).

    Validation errors come as a list whose `input` echoes what was sent, and `ctx` may too: only where and what is
    wrong is taken from them.
    """
    try:
        shape = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(shape, dict) or "detail" not in shape:
        return None
    detail: object = cast("dict[str, object]", shape)["detail"]
    if isinstance(detail, list):
        text = "; ".join(_validation_error(row) for row in cast("list[object]", detail))
    else:
        text = detail if isinstance(detail, str) else json.dumps(detail)
    text = mask(text)  # before it is cut: half a key would not be recognised
    return text if len(text) <= _LONGEST_DETAIL else text[:_LONGEST_DETAIL] + "…"


def _validation_error(row: object) -> str:
    if not isinstance(row, dict):
        return str(row)
    fields = cast("dict[str, object]", row)
    where = fields.get("loc")
    path = ".".join(str(step) for step in cast("list[object]", where)) if isinstance(where, list) else "request"
    return f"{path}: {fields.get('msg', 'invalid')}"


def _kind_of_body(content_type: str) -> str:
    kind = content_type.partition(";")[0].strip() or "no content type"
    return f"a body that is not Hindsight's ({kind}); is the server's URL right?"


def _not_the_api(content_type: str, error: ValueError) -> str:
    if "json" not in content_type:
        return f"answered with {_kind_of_body(content_type)}"
    first_line = str(error).split("\n", 1)[0]
    return f"answered in a form that this client cannot read ({first_line[:200]})"
