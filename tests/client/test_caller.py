"""Sending calls: retries, breaker, deadlines, degradation and errors, on a scripted transport and a manual clock.

Each test runs with the sync and the async caller: what differs between them is only how they wait.
"""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from bankclient.api import calls
from bankclient.client.aio.caller import AsyncCaller
from bankclient.client.exchange import Core
from bankclient.client.sync.caller import Caller
from bankclient.client.transport import NoAnswer, Request, Response, UnreadableReply
from bankclient.errors import (
    BadRequest,
    BreakerOpen,
    CallError,
    Conflict,
    ConnectFailed,
    ConnectionLost,
    InvalidInput,
    NotFound,
    RateLimited,
    Refused,
    ServerBusy,
    ServerError,
    TimedOut,
    Unauthorized,
    UnexpectedReply,
)
from bankclient.testing.clock import ManualClock

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from bankclient.api.call import Call
    from bankclient.client.transport import AsyncStreamedResponse, StreamedResponse

T = TypeVar("T")
Outcome = Response | BaseException | float
"""What one send does: answer, fail, or (a number) take so many seconds and then end in a timeout."""

FOUND = Response(200, {"content-type": "application/json"}, b'{"results": []}')
STORED = Response(200, {"content-type": "application/json"}, b'{"success": true, "items_count": 1}')
ACCEPTED = Response(
    200,
    {"content-type": "application/json"},
    b'{"success": true, "async": true, "operation_id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"}',
)
RECALL = calls.recall("b", "which port")
SYNC_RETAIN = calls.retain("b", "the port is 4711")
SAFE_RETAIN = calls.retain(
    "b", "the port is 4711", background=True, operation_id="6ba7b810-9dad-11d1-80b4-00c04fd430c8"
)


def refused(status: int, detail: object = "no", **headers: str) -> Response:
    """Return an answer of the server's own that is no success."""
    body = json.dumps({"detail": detail}).encode()
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, {"content-type": "application/json"} | fields, body)


def gateway(status: int) -> Response:
    """Return the HTML of something in front of the server."""
    return Response(status, {"content-type": "text/html; charset=utf-8"}, b"<html>secret-token</html>")


def version(text: str) -> Response:
    """Return a server's answer about its version."""
    return Response(200, {"content-type": "application/json"}, json.dumps({"api_version": text}).encode())


LOST = NoAnswer(ConnectionLost, "the connection broke: ReadError")
NOBODY = NoAnswer(ConnectFailed, "no connection: ConnectError: refused")


class ScriptedTransport:
    """Does one of its outcomes for each send, in order; both transports' seams at once."""

    def __init__(self, clock: ManualClock, outcomes: list[Outcome]) -> None:
        self.clock = clock
        self.outcomes = outcomes
        self.sent: list[tuple[Request, float]] = []

    def play(self, request: Request, limit: float) -> Response:
        """Do the next outcome."""
        self.sent.append((request, limit))
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, float):
            self.clock.advance(min(outcome, limit))
            raise NoAnswer(TimedOut, "no answer in time (TimeoutError)")
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


class SyncTransport(ScriptedTransport):
    """The sync seam."""

    def send(self, request: Request, limit: float) -> Response:
        """Do the next outcome."""
        return self.play(request, limit)

    def stream(self, request: Request, limit: float) -> AbstractContextManager[StreamedResponse]:
        """Nothing here streams."""
        raise AssertionError(request, limit)

    def close(self) -> None:
        """Nothing is open."""


class AsyncTransport(ScriptedTransport):
    """The async seam."""

    async def send(self, request: Request, limit: float) -> Response:
        """Do the next outcome."""
        return self.play(request, limit)

    def stream(self, request: Request, limit: float) -> AbstractAsyncContextManager[AsyncStreamedResponse]:
        """Nothing here streams."""
        raise AssertionError(request, limit)

    async def close(self) -> None:
        """Nothing is open."""


class Harness:
    """A caller on a manual clock, sync or async behind one face."""

    def __init__(self, kind: str) -> None:
        self.clock = ManualClock(0.0)
        self.outcomes: list[Outcome] = []
        self.core = Core(
            base_url="http://memory.invalid:8888",
            limits={"request": 30.0, "recall": 30.0, "retain": 60.0, "reflect": 120.0},
            headers={"authorization": "Bearer secret-token"},
            secrets=("secret-token",),
            now=self.clock.now,
            wall_clock=lambda: 784111740.0,
            jitter=lambda: 0.0,
        )
        self.sync = SyncTransport(self.clock, self.outcomes)
        self.aio = AsyncTransport(self.clock, self.outcomes)
        self.kind = kind
        self.callers = {
            "sync": Caller(self.core, self.sync, sleep=self.clock.sleep),
            "async": AsyncCaller(self.core, self.aio, sleep=self.clock.sleep_async),
        }

    @property
    def sent(self) -> list[tuple[Request, float]]:
        """What was sent so far, each with the time it was given."""
        return self.sync.sent if self.kind == "sync" else self.aio.sent

    def call(self, call: Call[T], *outcomes: Outcome, timeout: float | None = None) -> T:
        """Send a call that meets these outcomes."""
        self.outcomes[:] = outcomes
        caller: Any = self.callers[self.kind]
        sent = caller.call(call, timeout=timeout)
        answer: T = asyncio.run(sent) if self.kind == "async" else sent
        return answer

    def fails(self, call: Call[T], *outcomes: Outcome, timeout: float | None = None) -> CallError:
        """Send a call that is to fail, and return its error."""
        with pytest.raises(CallError) as caught:
            self.call(call, *outcomes, timeout=timeout)
        return caught.value

    def refusal(self, *outcomes: Outcome) -> Refused:
        """Send a recall that is to be refused."""
        error = self.fails(RECALL, *outcomes)
        assert isinstance(error, Refused)
        return error


@pytest.fixture(params=["sync", "async"])
def harness(request: pytest.FixtureRequest) -> Harness:
    """Give each caller in turn."""
    return Harness(request.param)


@pytest.mark.parametrize(
    "passing", [LOST, NOBODY, refused(429), gateway(502), refused(503), gateway(504), refused(500)], ids=repr
)
def test_a_read_meets_a_passing_failure_and_is_answered(harness: Harness, passing: Outcome) -> None:
    """The second attempt brings the answer, after a short wait and with less time left."""
    assert harness.call(RECALL, passing, FOUND).results == ()
    assert len(harness.sent) == 2
    assert harness.clock.slept == pytest.approx([0.1])
    assert harness.sent[1][1] == pytest.approx(29.9)


def test_an_identified_write_is_sent_again_as_the_same_bytes(harness: Harness) -> None:
    """The server knows the operation id, so the second copy is the first."""
    harness.call(SAFE_RETAIN, LOST, version("1.1.0"), refused(503), ACCEPTED)
    writes = [request for request, _ in harness.sent if request.method == "POST"]
    assert len({request.body for request in writes}) == 1
    assert len(writes) == 3


@pytest.mark.parametrize("answer", [[version("0.8.5")], [version("odd")], [NOBODY] * 4])
def test_an_identified_write_is_not_repeated_where_the_server_may_not_know_its_identity(
    harness: Harness, answer: list[Outcome]
) -> None:
    """Before the second send the version is asked for; without a good answer the first failure stands."""
    error = harness.fails(SAFE_RETAIN, LOST, *answer, ACCEPTED)
    assert isinstance(error, ConnectionLost)
    assert [request.method for request, _ in harness.sent].count("POST") == 1
    assert harness.outcomes == [ACCEPTED]


def test_an_append_asks_for_the_version_first(harness: Harness) -> None:
    """A server before 0.5.0 would replace the whole document and say nothing."""
    append = calls.retain("b", "more", document_id="d", update_mode="append")
    with pytest.raises(ValueError, match="append"):
        harness.call(append, version("0.4.22"), STORED)
    assert [request.method for request, _ in harness.sent] == ["GET"]


@pytest.mark.parametrize("passing", [LOST, NOBODY, refused(503, retry_after="1"), gateway(502)], ids=repr)
def test_a_write_without_identity_is_sent_once(harness: Harness, passing: Outcome) -> None:
    """Its first copy may have been stored, whatever was seen of it."""
    harness.fails(SYNC_RETAIN, passing, STORED)
    assert len(harness.sent) == 1


def test_what_was_tried_before_is_kept_on_the_error(harness: Harness) -> None:
    """The last failure is raised; the earlier ones hang on it, oldest first."""
    error = harness.fails(RECALL, LOST, refused(503), NOBODY, gateway(502))
    assert isinstance(error, ServerError)
    assert [type(earlier) for earlier in error.earlier] == [ConnectionLost, ServerBusy, ConnectFailed]
    assert "attempt 4" in str(error)


def test_retry_after_is_respected(harness: Harness) -> None:
    """In seconds and as a date."""
    harness.call(RECALL, refused(503, retry_after="2"), FOUND)
    harness.clock.advance(10)
    harness.call(RECALL, refused(429, retry_after="Sun, 06 Nov 1994 08:49:05 GMT"), FOUND)
    assert harness.clock.slept == pytest.approx([2.0, 5.0])


def test_a_retry_after_beyond_the_deadline_is_not_slept_out(harness: Harness) -> None:
    """The error comes at once, and says when to come back."""
    error = harness.refusal(refused(503, retry_after="3600"))
    assert isinstance(error, ServerBusy)
    assert error.retry_after == 3600
    assert harness.clock.slept == []


def test_the_limit_holds_for_all_attempts_together(harness: Harness) -> None:
    """What one attempt used is not there for the next."""
    error = harness.fails(RECALL, refused(503, retry_after="4"), 100.0, timeout=5.0)
    assert isinstance(error, TimedOut)
    assert harness.sent[1][1] == pytest.approx(1.0)
    assert harness.clock.now() == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("call", "limit"),
    [(RECALL, 30.0), (SYNC_RETAIN, 60.0), (calls.reflect("b", "why"), 120.0), (calls.version(), 30.0)],
)
def test_each_operation_has_its_own_limit(harness: Harness, call: Call[object], limit: float) -> None:
    """A slow reflect works while a recall gives up early."""
    harness.fails(call, 1000.0)
    assert harness.sent[0][1] == limit


def test_a_timeout_says_what_ran_out(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    """Operation, bank, server, elapsed and limit: many libraries' timeouts print as nothing."""
    with caplog.at_level(logging.DEBUG, "bankclient.client"):
        error = harness.fails(RECALL, 1000.0, timeout=2.5)
    text = str(error)
    assert all(part in text for part in ("recall", "'b'", "http://memory.invalid:8888", "2.50 s", "2.5 s allowed"))
    assert "no answer in time" in caplog.text


def test_after_a_call_without_answer_the_next_ones_fail_at_once(harness: Harness) -> None:
    """Nobody waits for a server that was silent a moment ago; then one call probes."""
    harness.fails(RECALL, *[NOBODY] * 4)
    sent = len(harness.sent)
    error = harness.fails(SYNC_RETAIN)
    assert isinstance(error, BreakerOpen)
    assert "next probe is due in" in str(error)
    assert len(harness.sent) == sent
    harness.clock.advance(1.0)
    assert harness.call(RECALL, FOUND).results == ()
    assert harness.call(SYNC_RETAIN, STORED).success


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422])
def test_a_refusal_does_not_open_the_breaker(harness: Harness, status: int) -> None:
    """It is an answer."""
    harness.fails(RECALL, refused(status))
    assert harness.call(RECALL, FOUND).results == ()


def test_a_callers_own_short_limit_does_not_open_the_breaker(harness: Harness) -> None:
    """Running out of less time than the setting allows proves nothing about the server."""
    harness.fails(RECALL, 1000.0, timeout=0.1)
    assert harness.call(RECALL, FOUND).results == ()


def test_a_busy_server_is_left_alone_for_its_own_kind_of_call(harness: Harness) -> None:
    """The next recall waits for the time that the server named; a retain goes through."""
    harness.refusal(refused(503, retry_after="60"))
    assert harness.call(SYNC_RETAIN, STORED).success
    error = harness.refusal()
    assert isinstance(error, ServerBusy)
    assert error.retry_after == pytest.approx(60)
    harness.clock.advance(50)
    assert harness.call(RECALL, FOUND).results == ()
    assert harness.clock.slept == pytest.approx([10.0])


def test_a_cancelled_probe_leaves_the_next_one_to_others(harness: Harness) -> None:
    """A caller that goes away takes no permit with it."""
    harness.fails(RECALL, *[NOBODY] * 4)
    harness.clock.advance(1.0)
    with pytest.raises(KeyboardInterrupt):
        harness.call(RECALL, KeyboardInterrupt())
    assert harness.call(RECALL, FOUND).results == ()


def test_a_programming_error_passes_as_it_is(harness: Harness) -> None:
    """It is nobody's outage."""
    with pytest.raises(ZeroDivisionError):
        harness.call(RECALL, ZeroDivisionError())


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest),
        (401, Unauthorized),
        (402, Unauthorized),
        (403, Unauthorized),
        (404, NotFound),
        (405, BadRequest),
        (409, Conflict),
        (410, BadRequest),
        (413, BadRequest),
        (422, BadRequest),
        (429, RateLimited),
        (500, ServerError),
        (501, ServerError),
        (503, ServerBusy),
    ],
)
def test_each_refusal_has_its_error_with_the_servers_sentence(
    harness: Harness, status: int, kind: type[Refused]
) -> None:
    """Status and detail are kept for the caller to act on."""
    error = harness.refusal(*[refused(status, "Bank 'b' not found")] * 4)
    assert type(error) is kind
    assert (error.status, error.detail, error.from_server) == (status, "Bank 'b' not found", True)


def test_a_missing_bank_is_told_from_a_missing_route(harness: Harness) -> None:
    """Both are a 404; only one means that nothing was retained yet."""
    missing = harness.refusal(refused(404, "Bank 'b' not found"))
    route = harness.refusal(refused(404, "Not Found"))
    page = harness.refusal(gateway(404))
    assert [isinstance(e, NotFound) and e.is_missing_bank for e in (missing, route, page)] == [True, False, False]


def test_the_servers_echo_of_the_input_stays_out_of_the_error(harness: Harness) -> None:
    """A validation error repeats what was sent, up to the whole body: only where and what is wrong is taken."""
    row = {
        "type": "string_type",
        "loc": ["body", "items", 0, "content"],
        "msg": "Input should be a valid string",
        "input": "my-private-text",
        "ctx": {"error": "my-private-text"},
    }
    error = harness.refusal(refused(422, [row]))
    assert error.detail == "body.items.0.content: Input should be a valid string"
    assert "my-private-text" not in repr(error) + str(error)


@pytest.mark.parametrize("detail", [{"violations": [{"rule": "r"}]}, 7, None, [7, {"msg": "m"}, {"loc": 3}]], ids=repr)
def test_odd_shapes_of_detail_become_text(harness: Harness, detail: object) -> None:
    """Whatever stands there, the error is made."""
    assert isinstance(harness.refusal(refused(422, detail)).detail, str)


def test_a_long_detail_is_cut(harness: Harness) -> None:
    """It may be a traceback, or an echo of ten megabytes."""
    assert len(harness.refusal(refused(400, "x" * 100_000)).detail) < 600


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"{}", b"null", b"\xff", b"", b"[" * 100_000])
def test_a_refusal_in_no_known_shape_is_not_the_servers(harness: Harness, body: bytes) -> None:
    """A gateway's 400 says nothing about what was sent."""
    error = harness.refusal(Response(400, {"content-type": "text/plain"}, body))
    assert not error.from_server
    assert error.detail == ""


@pytest.mark.parametrize("status", [200, 400, 401, 404])
def test_html_is_named_as_such_and_its_mend(harness: Harness, status: int) -> None:
    """A login page or the wrong port: the URL is what to look at."""
    error = harness.refusal(gateway(status))
    assert "text/html" in str(error)
    assert "URL" in str(error)
    assert not error.from_server


def test_a_redirection_is_named_and_not_followed(harness: Harness) -> None:
    """The key stays with the server that it was meant for."""
    error = harness.refusal(Response(307, {"location": "https://elsewhere.invalid/?k=secret-token"}, b""))
    assert isinstance(error, UnexpectedReply)
    assert "https://elsewhere.invalid/?k=***" in str(error)
    assert len(harness.sent) == 1


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"results": 7}', b"", b"\xff\xfe", b"NaN", b"<html>"])
def test_a_success_that_breaks_the_contract_is_one_named_error(harness: Harness, body: bytes) -> None:
    """It says that the answer could not be read, and is not repeated."""
    error = harness.refusal(Response(200, {"content-type": "application/json"}, body))
    assert isinstance(error, UnexpectedReply)
    assert len(harness.sent) == 1


def test_an_unreadable_body_is_an_unexpected_reply(harness: Harness) -> None:
    """Too large, or broken compression."""
    error = harness.refusal(UnreadableReply(200, "the reply is larger than 64 MiB"))
    assert isinstance(error, UnexpectedReply)
    assert "64 MiB" in str(error)


def test_an_unhealthy_servers_503_is_an_answer_and_a_gateways_is_not(harness: Harness) -> None:
    """`/health` reports a broken database in its own shape."""
    sick = Response(503, {"content-type": "application/json"}, b'{"status": "unhealthy", "database": "error"}')
    assert harness.call(calls.health(), sick).status == "unhealthy"
    assert isinstance(harness.fails(calls.health(), *[gateway(503)] * 4), ServerBusy)


def test_no_error_shows_the_key(harness: Harness) -> None:
    """Not where a server or a library echoes it, in no form of the error."""
    for outcome in (
        refused(401, "bad key secret-token"),
        NoAnswer(ConnectionLost, "illegal header secret-token"),
        Response(302, {"location": "/?secret-token"}, b""),
    ):
        error = harness.fails(SYNC_RETAIN, outcome)
        assert "secret-token" not in str(error) + repr(error) + repr(vars(error))
        harness.clock.advance(60)


def test_the_core_does_not_show_the_key_either(harness: Harness) -> None:
    """Its repr may end up in a traceback."""
    assert "secret-token" not in repr(harness.core)


@pytest.mark.parametrize(
    "outcome",
    [
        refused(400, "x" * 480 + ' se"cret-token ' + "y" * 100),
        refused(400, {"why": 'se"cret-token'}),
        Response(400, {"content-type": 'se"cret-token'}, b""),
        Response(200, {"content-type": 'se"cret-token'}, b""),
        Response(302, {"location": "http://x/?se%22cret-token"}, b""),
    ],
    ids=repr,
)
def test_no_spelling_of_the_key_is_shown(harness: Harness, outcome: Response) -> None:
    """Escaped in JSON or in a URL, or where the sentence is cut."""
    harness.core.secrets = ('se\\"cret-token', "se%22cret-token", 'se"cret-token')
    error = harness.fails(RECALL, outcome)
    assert "cret-token" not in str(error) + repr(vars(error))
    assert 'se"c' not in str(error)


def test_a_request_does_not_show_the_key(harness: Harness) -> None:
    """A transport of somebody's own may log it."""
    harness.call(RECALL, FOUND)
    assert "secret-token" not in repr(harness.sent)


@pytest.mark.parametrize("timeout", [float("nan"), float("inf"), 0, -1, True, "5", 10**400])
def test_a_timeout_that_is_no_time_is_refused(harness: Harness, timeout: Any) -> None:  # noqa: ANN401 - the point
    """Before anything is sent."""
    with pytest.raises(InvalidInput, match="timeout"):
        harness.call(RECALL, timeout=timeout)
    assert harness.sent == []


def test_asking_for_the_version_is_inside_the_limit(harness: Harness) -> None:
    """What the question took is not there for the call."""
    call = calls.recall("b", "which port", tag_groups=[{"tags": ["a"]}])
    error = harness.fails(call, 100.0, timeout=2.0)
    assert isinstance(error, TimedOut)
    assert harness.clock.now() == pytest.approx(2.0)


@pytest.mark.parametrize("retry_after", ["86400", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_no_retry_after_holds_calls_back_for_longer_than_ten_minutes(harness: Harness, retry_after: str) -> None:
    """One answer must not switch memory off for a day."""
    harness.refusal(*[refused(503, retry_after=retry_after)] * 4)
    harness.clock.advance(601)
    assert harness.call(RECALL, FOUND).results == ()


def test_a_connection_that_broke_while_idle_opens_no_breaker(harness: Harness) -> None:
    """The write is lost, and said to be; the server is not taken for gone."""
    harness.fails(SYNC_RETAIN, NoAnswer(ConnectionLost, "an idle connection had been closed", says_nothing=True))
    assert harness.call(SYNC_RETAIN, STORED).success


def test_an_extra_call_that_fails_opens_no_breaker(harness: Harness) -> None:
    """It was not what the caller asked for."""
    caller: Any = harness.callers[harness.kind]
    harness.outcomes[:] = [NOBODY] * 4

    def send() -> object:
        sent = caller.call(RECALL, extra=True)
        return asyncio.run(sent) if harness.kind == "async" else sent

    with pytest.raises(ConnectFailed):
        send()
    assert not harness.core.breaker.is_open()


def test_errors_survive_pickling(harness: Harness) -> None:
    """Process pools carry them across."""
    error = harness.refusal(refused(503, retry_after="60"))
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (str(copy), vars(copy)) == (str(error), vars(error))


# --- Degraded ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def degraded(harness: Harness) -> Harness:
    """Give a caller that answers empty while the server is away."""
    harness.core.degrade = True
    return harness


@pytest.mark.parametrize(
    "away", [[NOBODY] * 4, [LOST] * 4, [1000.0], [gateway(502)] * 4, [refused(503, retry_after="600")], [gateway(200)]]
)
def test_a_degraded_client_answers_empty_while_the_server_is_away(degraded: Harness, away: list[Outcome]) -> None:
    """Marked, so that nobody takes it for "nothing found"."""
    answer = degraded.call(RECALL, *away)
    assert (answer.results, answer.degraded) == ((), True)


def test_a_degraded_write_is_not_taken_for_a_stored_one(degraded: Harness) -> None:
    """It says no success."""
    answer = degraded.call(SYNC_RETAIN, NOBODY)
    assert (answer.success, answer.degraded) == (False, True)


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 500])
def test_a_degraded_client_still_raises_for_a_refusal(degraded: Harness, status: int) -> None:
    """A wrong key or a bad request does not pass by waiting."""
    with pytest.raises(Refused):
        degraded.call(RECALL, *[refused(status)] * 2)


def outage_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the log says above debug level."""
    return [record.getMessage() for record in caplog.records if record.levelno > logging.DEBUG]


def test_an_outage_is_two_lines_in_the_log(degraded: Harness, caplog: pytest.LogCaptureFixture) -> None:
    """One when it begins, with type, operation, elapsed and limit; one when it ends. Not one for each call."""
    with caplog.at_level(logging.DEBUG, "bankclient.client"):
        degraded.call(RECALL, *[NOBODY] * 4)
        for _ in range(30):
            degraded.call(SYNC_RETAIN, NOBODY)
            degraded.call(RECALL, *[NOBODY] * 4)
            degraded.clock.advance(0.3)
        degraded.clock.advance(60)
        degraded.call(RECALL, FOUND)
        degraded.call(SYNC_RETAIN, STORED)
    began, ended = outage_lines(caplog)
    assert all(part in began for part in ("away", "ConnectFailed", "recall", "0.70 s", "30.0 s allowed"))
    assert "back" in ended


def test_a_busy_kind_of_call_is_an_outage_of_its_own(degraded: Harness, caplog: pytest.LogCaptureFixture) -> None:
    """Other calls that are answered do not end it, so the log does not flap."""
    with caplog.at_level(logging.INFO, "bankclient.client"):
        degraded.call(RECALL, refused(503, retry_after="60"))
        for _ in range(5):
            degraded.call(calls.version(), Response(200, {}, b'{"api_version": "1.1.0"}'))
            assert degraded.call(RECALL).degraded
        degraded.clock.advance(60)
        degraded.call(RECALL, FOUND)
    assert len(outage_lines(caplog)) == 2


# --- Capabilities -----------------------------------------------------------------------------------------------------


def test_a_read_that_an_old_server_would_widen_is_refused(harness: Harness) -> None:
    """A server before 0.4.18 ignores `tag_groups` and finds everybody's memories; the version is asked once."""
    call = calls.recall("b", "which port", tag_groups=[{"tags": ["a"]}])
    with pytest.raises(ValueError, match="tag_groups"):
        harness.call(call, refused(404, "Not Found"), version("0.4.17"))
    with pytest.raises(ValueError, match="tag_groups"):
        harness.call(call)
    assert [request.url.removeprefix("http://memory.invalid:8888") for request, _ in harness.sent] == [
        "/v1/version",
        "/version",
    ]


def test_a_read_that_a_new_server_understands_is_sent(harness: Harness) -> None:
    """One question for the version, then the call, then calls alone."""
    call = calls.recall("b", "which port", tag_groups=[{"tags": ["a"]}])
    harness.call(call, version("1.1.0"), FOUND)
    harness.call(call, FOUND)
    assert len(harness.sent) == 3


def test_no_version_is_asked_for_in_front_of_a_write(harness: Harness) -> None:
    """A write must not fail for want of an answer to something else."""
    harness.call(SAFE_RETAIN, ACCEPTED)
    assert len(harness.sent) == 1


def test_a_write_to_a_server_known_to_be_old_loses_its_identity(harness: Harness) -> None:
    """It ignores operation ids, so that a repeat would be a second copy."""
    caller: Any = harness.callers[harness.kind]
    harness.outcomes[:] = [version("0.4.22")]
    asked = caller.capabilities()
    capabilities = asyncio.run(asked) if harness.kind == "async" else asked
    assert not capabilities.operation_ids
    harness.fails(SAFE_RETAIN, LOST, ACCEPTED)
    assert len(harness.sent) == 2


def test_an_unknown_version_of_a_degraded_client_is_asked_again(degraded: Harness) -> None:
    """What could not be asked is not kept."""
    caller: Any = degraded.callers[degraded.kind]

    def ask(*outcomes: Outcome) -> str:
        degraded.outcomes[:] = outcomes
        asked = caller.capabilities()
        version: str = (asyncio.run(asked) if degraded.kind == "async" else asked).version
        return version

    assert ask(*[NOBODY] * 4) == ""
    degraded.clock.advance(2)
    assert ask(version("1.1.0")) == "1.1.0"
