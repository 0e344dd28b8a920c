"""Retry decisions and the breaker: pure values in, pure values out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.api.call import Repeat
from bankclient.client.policy import (
    MAX_ATTEMPTS,
    Blocked,
    Breaker,
    GiveUp,
    Outcome,
    Permit,
    Wait,
    decide,
    is_away,
    outcome_of,
    parse_retry_after,
)
from bankclient.errors import (
    BadRequest,
    BreakerOpen,
    CallError,
    ConnectFailed,
    ConnectionLost,
    Context,
    Disabled,
    NotFound,
    RateLimited,
    Refused,
    ServerBusy,
    ServerError,
    TimedOut,
    Unauthorized,
    Unavailable,
    UnexpectedReply,
    refusal,
)

CONTEXT = Context("recall")


def unanswered(kind: type[Unavailable], *earlier: CallError) -> Unavailable:
    """Return an error without an answer."""
    return kind("nobody there", CONTEXT, earlier=earlier)


def answered(status: int, *earlier: CallError, retry_after: float | None = None) -> Refused:
    """Return the error that a status becomes."""
    return refusal(status)("no", CONTEXT, status=status, retry_after=retry_after, earlier=earlier)


PASSING = [unanswered(kind) for kind in (ConnectFailed, ConnectionLost, TimedOut)] + [
    answered(status) for status in (429, 502, 503, 504)
]
LASTING = [answered(status) for status in (301, 400, 401, 402, 403, 404, 405, 409, 410, 413, 422, 501)]


@pytest.mark.parametrize("repeat", [Repeat.READ, Repeat.IDENTIFIED])
@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_reads_and_identified_writes_are_repeated_on_passing_failures(error: CallError, repeat: Repeat) -> None:
    """No answer, 429, 502, 503 and 504 are tried again where a second copy can do no harm."""
    assert isinstance(decide(error, repeat, left=30, jitter=0), Wait)


@pytest.mark.parametrize("repeat", list(Repeat))
@pytest.mark.parametrize("error", LASTING, ids=repr)
def test_a_refusal_that_would_come_again_is_final(error: CallError, repeat: Repeat) -> None:
    """A 4xx (but 429) or a redirection is answered the same the next time."""
    assert isinstance(decide(error, repeat, left=30, jitter=0), GiveUp)


@pytest.mark.parametrize("error", [*PASSING, answered(500)], ids=repr)
def test_a_write_without_identity_is_never_repeated(error: CallError) -> None:
    """A second copy could be stored, whatever happened to the first."""
    assert isinstance(decide(error, Repeat.NEVER, left=30, jitter=0), GiveUp)


def test_a_500_is_repeated_once_and_for_reads_only() -> None:
    """The server answers 500 to a failing embedding provider, which may pass; a write may have been half done."""
    first = answered(500)
    assert isinstance(decide(first, Repeat.READ, left=30, jitter=0), Wait)
    assert isinstance(decide(answered(500, first), Repeat.READ, left=30, jitter=0), GiveUp)
    assert isinstance(decide(answered(500, answered(503)), Repeat.READ, left=30, jitter=0), Wait)
    assert isinstance(decide(first, Repeat.IDENTIFIED, left=30, jitter=0), GiveUp)


@pytest.mark.parametrize("kind", [BreakerOpen, Disabled])
def test_what_was_not_even_tried_is_not_waited_for(kind: type[Unavailable]) -> None:
    """The breaker exists so that nobody waits; a switch stays as it is."""
    assert isinstance(decide(unanswered(kind), Repeat.READ, left=30, jitter=0), GiveUp)
    assert outcome_of(unanswered(kind), own_limit=False) is Outcome.UNKNOWN


def test_an_unreadable_answer_is_final() -> None:
    """HTML under a 200 stays HTML."""
    error = UnexpectedReply("HTML", CONTEXT, status=200, from_server=False)
    assert isinstance(decide(error, Repeat.READ, left=30, jitter=0), GiveUp)


def test_waits_double_and_attempts_end() -> None:
    """0.1, 0.2, 0.4 s, and after the fourth attempt no more."""
    waits: list[float] = []
    earlier: list[CallError] = []
    for _ in range(MAX_ATTEMPTS):
        error = unanswered(ConnectFailed, *earlier)
        decision = decide(error, Repeat.READ, left=30, jitter=0)
        if isinstance(decision, Wait):
            waits.append(decision.seconds)
        else:
            assert "4 attempts" in decision.why
        earlier.append(error)
    assert waits == pytest.approx([0.1, 0.2, 0.4])


@given(
    left=st.floats(-1, 100),
    jitter=st.floats(0, 1),
    retry_after=st.none() | st.floats(0, 1e6),
    count=st.integers(0, MAX_ATTEMPTS),
)
def test_no_wait_reaches_beyond_the_time_left_or_undercuts_the_servers_wish(
    left: float, jitter: float, retry_after: float | None, count: int
) -> None:
    """Whatever the numbers, a wait ends before the deadline and not before the server's `Retry-After`."""
    earlier = [answered(503)] * count
    decision = decide(answered(503, *earlier, retry_after=retry_after), Repeat.READ, left=left, jitter=jitter)
    if isinstance(decision, Wait):
        assert decision.seconds < left
        assert retry_after is None or decision.seconds >= retry_after


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        (" 3600 ", 3600.0),
        ("1.5", 1.5),
        ("0", 0.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 37.0),
        ("Sun, 06 Nov 1994 08:48:00 GMT", 0.0),
        ("-1", None),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("inf", None),
        ("²", None),
        (None, None),
        ("Sun, 99 Nov 1994 08:49:37 GMT", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    """Seconds and HTTP dates are understood, a past date is now, all else is as if nothing had been said."""
    assert parse_retry_after(value, now=784111740.0) == seconds


@given(st.text())
def test_any_retry_after_is_a_duration_or_nothing(value: str) -> None:
    """A foreign header never raises and never yields a negative or endless wait."""
    seconds = parse_retry_after(value, now=0.0)
    assert seconds is None or 0 <= seconds < float("inf")


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (unanswered(ConnectFailed), True),
        (unanswered(BreakerOpen), True),
        (answered(429), True),
        (answered(502), True),
        (answered(503), True),
        (answered(504), True),
        (UnexpectedReply("HTML", CONTEXT, status=200), True),
        (answered(500), False),
        (answered(401), False),
        (answered(404), False),
        (answered(422), False),
    ],
    ids=repr,
)
def test_away_is_told_from_a_refusal(error: CallError, away: bool) -> None:
    """A degraded client answers empty only while there is no server to talk to."""
    assert is_away(error) is away


@pytest.mark.parametrize(
    ("error", "own_limit", "outcome"),
    [
        (None, False, Outcome.ANSWERED),
        (unanswered(TimedOut), False, Outcome.NO_ANSWER),
        (unanswered(TimedOut), True, Outcome.UNKNOWN),
        (unanswered(ConnectFailed), True, Outcome.NO_ANSWER),
        (unanswered(ConnectionLost), False, Outcome.NO_ANSWER),
        (unanswered(BreakerOpen), False, Outcome.UNKNOWN),
        (answered(502), False, Outcome.NO_ANSWER),
        (answered(504), True, Outcome.NO_ANSWER),
        (answered(503), False, Outcome.ANSWERED),
        (answered(500), False, Outcome.ANSWERED),
        (answered(404), False, Outcome.ANSWERED),
    ],
    ids=repr,
)
def test_only_silence_and_gateways_speak_against_the_server(
    error: CallError | None, own_limit: bool, outcome: Outcome
) -> None:
    """A 4xx, a 500 and a 503 are answers; the caller's own short limit proves nothing."""
    assert outcome_of(error, own_limit=own_limit) is outcome


def permit(breaker: Breaker, now: float, kind: str = "recall") -> Permit:
    """Ask and expect leave."""
    answer = breaker.ask(kind, now)
    assert isinstance(answer, Permit)
    return answer


def blocked(breaker: Breaker, now: float, kind: str = "recall") -> Blocked:
    """Ask and expect none."""
    answer = breaker.ask(kind, now)
    assert isinstance(answer, Blocked)
    return answer


def test_one_failure_opens_the_breaker_until_a_timed_probe() -> None:
    """After the first call without an answer others are blocked at once, then exactly one is let through."""
    breaker = Breaker()
    breaker.report(permit(breaker, 0.0), Outcome.NO_ANSWER, 0.0)
    assert breaker.is_open()
    assert blocked(breaker, 0.4).seconds == pytest.approx(0.6)
    assert permit(breaker, 1.0).is_probe
    assert not blocked(breaker, 1.1).busy


def test_a_probe_that_is_answered_closes_and_one_that_is_not_waits_twice_as_long() -> None:
    """Pauses double up to their bound, and one answer ends them."""
    breaker = Breaker(longest_pause=4.0)
    now = 0.0
    breaker.report(permit(breaker, now), Outcome.NO_ANSWER, now)
    for pause in (1.0, 2.0, 4.0, 4.0):
        assert blocked(breaker, now).seconds == pytest.approx(pause)
        now += pause
        breaker.report(permit(breaker, now), Outcome.NO_ANSWER, now)
    now += 4.0
    breaker.report(permit(breaker, now), Outcome.ANSWERED, now)
    assert not breaker.is_open()
    assert permit(breaker, now) == Permit()


def test_calls_under_way_when_it_opened_do_not_lengthen_the_pause() -> None:
    """Seventeen calls that fail together are one outage."""
    breaker = Breaker()
    permits = [permit(breaker, 0.0) for _ in range(17)]
    for each in permits:
        breaker.report(each, Outcome.NO_ANSWER, 0.0)
    assert blocked(breaker, 0.0).seconds == pytest.approx(1.0)


def test_a_cancelled_probe_gives_its_permit_back() -> None:
    """Half-open stays half-open: the next caller probes, at once."""
    breaker = Breaker()
    breaker.report(permit(breaker, 0.0), Outcome.NO_ANSWER, 0.0)
    breaker.report(permit(breaker, 1.0), Outcome.UNKNOWN, 1.1)
    assert permit(breaker, 1.1).is_probe


def test_a_probe_that_is_never_reported_gives_way() -> None:
    """A caller that died with the permit does not keep the breaker open for ever."""
    breaker = Breaker(probe_limit=30.0)
    breaker.report(permit(breaker, 0.0), Outcome.NO_ANSWER, 0.0)
    permit(breaker, 1.0)
    assert blocked(breaker, 30.9).seconds == pytest.approx(0.1)
    assert permit(breaker, 31.0).is_probe


def test_a_late_answer_of_an_ordinary_call_closes_too() -> None:
    """An answer is an answer, whoever asked."""
    breaker = Breaker()
    slow, quick = permit(breaker, 0.0), permit(breaker, 0.0)
    breaker.report(quick, Outcome.NO_ANSWER, 0.1)
    breaker.report(slow, Outcome.ANSWERED, 0.2)
    assert not breaker.is_open()


def test_a_busy_server_delays_its_own_kind_of_call_only() -> None:
    """A 503 for recall holds back recalls for as long as it said, and nothing else."""
    breaker = Breaker()
    breaker.delay("recall", 5.0, 0.0)
    assert blocked(breaker, 1.0) == Blocked(4.0, busy=True)
    assert permit(breaker, 1.0, "retain") == Permit()
    assert permit(breaker, 5.0) == Permit()
    assert not breaker.is_open()


def test_jitter_spreads_the_probes_of_several_processes() -> None:
    """The pause grows by up to a fifth."""
    breaker = Breaker()
    breaker.report(permit(breaker, 0.0), Outcome.NO_ANSWER, 0.0, jitter=1.0)
    assert blocked(breaker, 0.0).seconds == pytest.approx(1.2)


def test_each_status_becomes_its_own_error() -> None:
    """Callers catch by meaning; the number is kept beside it."""
    expected = {
        302: UnexpectedReply,
        400: BadRequest,
        401: Unauthorized,
        403: Unauthorized,
        404: NotFound,
        422: BadRequest,
        429: RateLimited,
        500: ServerError,
        503: ServerBusy,
    }
    assert {status: refusal(status) for status in expected} == expected
