"""One step over the network: what each reply and each failure means for the batch and its destination."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.client import AsyncBankClient
from bankclient.client.transport import NoAnswer as NoReply
from bankclient.client.transport import Response, UnreadableReply
from bankclient.errors import BreakerOpen, CallError, ConnectFailed, ConnectionLost, Context, Disabled, TimedOut
from bankclient.flusher.steps import Sender, answer_to
from bankclient.settings import Settings
from bankclient.store.outbox import Address, Batch, Destination, Document, Job, Kind, Progress, State, Step
from bankclient.store.outbox.answers import (
    Accepted,
    Answer,
    Busy,
    Cancelled,
    Closed,
    Completed,
    Conflict,
    Discarded,
    Failed,
    NoAnswer,
    NotFound,
    Pending,
    Refused,
    Unexpected,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bankclient.client.transport import Request
    from bankclient.flusher.steps import Client

OPERATION = str(uuid.UUID(int=7))
BANK = "a bank/.."
BANK_PATH = "/v1/default/banks/a%20bank%2F.."
ITEMS = [{"content": "x", "document_id": "notes"}]


class Scripted:
    """Answers the requests of one step in turn, and keeps them."""

    def __init__(self, *replies: object) -> None:
        self.replies = list(replies)
        self.asked: list[str] = []
        self.limits: list[float] = []
        self.errors: list[CallError] = []

    def failed(self, job: Job, error: CallError) -> None:
        """Keep what a step is told to have failed with."""
        assert job.batch.id == 1
        self.errors.append(error)

    async def send(self, request: Request, limit: float) -> Response:
        """Return the next reply, or raise it."""
        self.asked.append(f"{request.method} {request.url.removeprefix('http://hindsight.invalid')}")
        self.limits.append(limit)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        assert isinstance(reply, Response)
        return reply

    def stream(self, request: Request, limit: float) -> Any:  # noqa: ANN401 - never called
        """Refuse."""
        raise NotImplementedError

    async def close(self) -> None:
        """Do nothing."""


def reply(status: int, body: object = None, **headers: str) -> Response:
    """Return a reply with JSON, or with a text of another kind."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, str):
        return Response(status, {"content-type": "text/html", **named}, body.encode())
    return Response(status, {"content-type": "application/json", **named}, json.dumps(body).encode())


def detail(status: int, text: object, **headers: str) -> Response:
    """Return a refusal in the server's own shape."""
    return reply(status, {"detail": text}, **headers)


def version(number: str) -> Response:
    """Return the answer to the question for the version."""
    return reply(200, {"api_version": number})


def operation(status: str, **fields: object) -> Response:
    """Return how an operation stands."""
    return reply(200, {"operation_id": OPERATION, "status": status, **fields})


ACCEPTED = reply(200, {"success": True, "async": True, "operation_id": OPERATION})
NO_ROUTE = detail(404, "Not Found")
NO_OPERATION = detail(404, f"Operation {OPERATION} not found for bank x")
NO_DOCUMENT = detail(404, "Document not found")
NO_BANK = detail(404, f"Bank '{BANK}' not found")
PAGE = "<html>sign in</html>"


@pytest.fixture
def take(tmp_path: Path) -> Callable[..., tuple[Answer, Scripted]]:
    """Give a function that takes a step against scripted replies."""

    def take(job: Job, *replies: object) -> tuple[Answer, Scripted]:
        transport = Scripted(*replies)
        settings = Settings(api_url="http://hindsight.invalid", state_dir=tmp_path)
        client = AsyncBankClient(settings=settings, transport=transport)
        answer = asyncio.run(Sender(client, transport.failed).take(job))
        assert transport.replies == []
        return answer, transport

    return take


def job(
    step: Step,
    *documents: Document,
    kind: Kind = Kind.FACT,
    items: list[dict[str, Any]] = ITEMS,
    sent: int = 1,
    bank: str = "bank",
) -> Job:
    """Return a job at that step."""
    batch = Batch(
        id=1,
        kind=kind,
        address=Address(Destination("http://hindsight.invalid", "key"), bank),
        state=State.SENDING if step is Step.SEND else State.ACCEPTED,
        step=None if step is Step.SEND else step,
        operation_id=OPERATION,
        server_operation=None,
        obsolete=None,
        items=len(items),
        size=1,
        added=0,
        changed=0,
        until=0,
        why="",
        sent=sent,
        accepted=None,
        handed_out=True,
        progress=Progress(),
    )
    body = json.dumps({"items": items, "async": True, "operation_id": OPERATION}).encode()
    return Job(batch, 1, step, body, documents)


SEND = job(Step.SEND)


def test_a_batch_is_sent_as_it_is(tmp_path: Path) -> None:
    """The bytes are those that were sealed, the bank is one escaped segment, the limit is that of a retain."""
    seen: list[Request] = []

    class Keeping(Scripted):
        async def send(self, request: Request, limit: float) -> Response:
            seen.append(request)
            return await super().send(request, limit)

    transport = Keeping(ACCEPTED)
    settings = Settings(api_url="http://hindsight.invalid/mem", retain_timeout_ms=7000, state_dir=tmp_path)
    sender = Sender(AsyncBankClient(settings=settings, transport=transport), transport.failed)
    answer = asyncio.run(sender.take(job(Step.SEND, bank="a bank/..")))
    assert answer == Accepted(OPERATION)
    assert seen[0].url == "http://hindsight.invalid/mem/v1/default/banks/a%20bank%2F../memories"
    assert seen[0].body == SEND.body
    assert 6 < transport.limits[0] <= 7


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (ACCEPTED, Accepted(OPERATION)),
        (reply(200, {"success": True, "operation_ids": [OPERATION.replace("-", "")]}), Accepted(OPERATION)),
        (reply(202, {"success": True, "operation_id": str(uuid.UUID(int=8))}), Accepted(str(uuid.UUID(int=8)))),
        # Nobody answered, or nobody behind a gateway.
        (NoReply(ConnectFailed, "no connection"), NoAnswer("no connection")),
        (NoReply(ConnectionLost, "broke"), NoAnswer("broke")),
        (NoReply(TimedOut, "late"), NoAnswer("late")),
        (reply(502, PAGE), NoAnswer("answered 502: a body that is not Hindsight's (text/html)")),
        (detail(504, "upstream timed out"), NoAnswer("answered 504: upstream timed out")),
        # An answer that is not one of the API.
        (reply(200, PAGE), Closed("answered with a body that is not Hindsight's (text/html)")),
        (reply(200, {"success": True}), Closed("in a form that this client cannot read")),
        (reply(200, {"success": True, "operation_id": "no uuid"}), Closed("in a form that this client cannot read")),
        (reply(200, [1]), Closed("in a form that this client cannot read")),
        (reply(204, ""), Closed("answered with a body that is not Hindsight's (text/html)")),
        (UnreadableReply(200, "too large"), Closed("too large")),
        (reply(302, PAGE, location="http://login.invalid/"), Closed("a redirection to http://login.invalid/")),
        (reply(307, PAGE, location="/v1/"), Closed("a redirection to /v1/")),
        # The destination takes nothing.
        (detail(401, "Invalid API key"), Closed("answered 401: Invalid API key")),
        (reply(401, PAGE), Closed("answered 401")),
        (detail(402, "pay"), Closed("answered 402: pay")),
        (detail(403, "no"), Closed("answered 403: no")),
        (reply(403, PAGE), Closed("answered 403")),
        (NO_ROUTE, Closed("answered 404: Not Found")),
        (reply(404, PAGE), Closed("answered 404")),
        (reply(404, {"error": "nothing here"}), Closed("answered 404")),
        # It is full.
        (detail(429, "slow down", retry_after="2"), Busy("answered 429: slow down", 2.0)),
        (reply(429, PAGE, retry_after="3600"), Busy("answered 429: a body that is not Hindsight's", 3600.0)),
        (detail(503, "full", retry_after="-1"), Busy("answered 503: full")),
        (detail(503, "full", retry_after="soon"), Busy("answered 503: full")),
        (reply(503, PAGE), Busy("answered 503")),
        # The server will not take this batch.
        (detail(400, "no such thing"), Refused("answered 400: no such thing")),
        (detail(413, "too large"), Refused("answered 413: too large")),
        (
            detail(422, [{"loc": ["body", "items", 0], "msg": "is bad", "input": "what was sent", "ctx": {"x": "y"}}]),
            Refused("answered 422: body.items.0: is bad"),
        ),
        (detail(409, "in use"), Conflict("answered 409: in use")),
        # What may be anything: this batch later.
        (reply(400, PAGE), Unexpected("answered 400: a body that is not Hindsight's")),
        (reply(413, {"error": "too large"}), Unexpected("answered 413")),
        (reply(422, ""), Unexpected("answered 422")),
        (reply(409, PAGE), Unexpected("answered 409")),
        (detail(404, "something is not there"), Unexpected("answered 404: something is not there")),
        (detail(405, "Method Not Allowed"), Unexpected("answered 405")),
        (detail(410, "gone"), Unexpected("answered 410")),
        (detail(500, "no embeddings"), Unexpected("answered 500: no embeddings")),
        (reply(500, "Internal Server Error"), Unexpected("answered 500")),
        (detail(507, "disk"), Unexpected("answered 507: disk")),
    ],
)
def test_answers_to_a_batch(take: Callable[..., tuple[Answer, Scripted]], given: object, expected: Answer) -> None:
    """Each is asked once, and read as the outbox's table wants it."""
    answer, transport = take(SEND, given)
    assert type(answer) is type(expected)
    assert transport.asked == ["POST /v1/default/banks/bank/memories"]
    assert [error.reason for error in transport.errors] == [
        reason for reason in [getattr(answer, "reason", None)] if reason is not None
    ]
    for name in ("operation_id", "retry_after"):
        assert getattr(answer, name, None) == getattr(expected, name, None)
    assert getattr(expected, "reason", "") in getattr(answer, "reason", "")
    assert "what was sent" not in getattr(answer, "reason", "")


def test_a_date_is_a_time_to_wait_too(take: Callable[..., tuple[Answer, Scripted]]) -> None:
    """Retry-After may be a date; one that has passed is no wait."""
    answer, _ = take(SEND, detail(503, "full", retry_after="Mon, 01 Jan 2024 00:00:00 GMT"))
    assert answer == Busy("answered 503: full", 0.0)


@pytest.mark.parametrize("kind", [BreakerOpen, Disabled])
def test_what_was_not_tried_is_no_fault_of_the_batch(kind: type[BreakerOpen | Disabled]) -> None:
    """Where the client did not even ask, the batch has not had a try."""
    assert answer_to(kind("not tried", Context("retain"))) == Busy("not tried")


def test_a_bank_that_no_request_can_name(take: Callable[..., tuple[Answer, Scripted]]) -> None:
    """Nothing is sent, and it counts as refused."""
    answer, transport = take(job(Step.POLL, bank="_x"))
    assert isinstance(answer, Refused)
    assert transport.asked == []


def test_a_fault_of_ours_is_the_matter_of_one_batch(caplog: pytest.LogCaptureFixture) -> None:
    """An error of our own code is logged with its trace, once, and leaves the batch to a later try."""

    class Broken:
        async def call(self, call: object, *, timeout: float | None = None) -> Any:  # noqa: ANN401 - never returns
            raise KeyError("secret", call, timeout)

    client: Client = Broken()
    sender = Sender(client, Scripted().failed)
    answers = [asyncio.run(sender.take(SEND)) for _ in range(3)]
    assert answers == [Unexpected("a fault in bankclient (KeyError); the log says more")] * 3
    assert caplog.messages == ["a fault in bankclient, at send of batch 1"]
    assert "Traceback" in caplog.text


# What an old server would take wrongly


LOOSE = [{"content": "x"}]
APPENDING = [{"content": "x", "document_id": "notes", "update_mode": "append"}]


@pytest.mark.parametrize(
    ("items", "sent", "number", "expected"),
    [
        (ITEMS, 5, None, Accepted(OPERATION)),
        (LOOSE, 1, None, Accepted(OPERATION)),
        (LOOSE, 2, "1.1.0", Accepted(OPERATION)),
        (LOOSE, 2, "0.8.5", Conflict("perhaps stored: the server (0.8.5) knows no operation ids")),
        (LOOSE, 2, "?", Conflict("perhaps stored: the server (?) knows no operation ids")),
        ([*ITEMS, *LOOSE], 2, "0.4.22", Conflict("perhaps stored: ")),
        (APPENDING, 1, "1.1.0", Accepted(OPERATION)),
        (APPENDING, 1, "0.4.22", Conflict("the server (0.4.22) would replace the document that this appends to")),
        (APPENDING, 2, "0.5.0", Conflict("perhaps stored: ")),
    ],
)
def test_a_callers_request_and_an_old_server(
    take: Callable[..., tuple[Answer, Scripted]],
    items: list[dict[str, Any]],
    sent: int,
    number: str | None,
    expected: Answer,
) -> None:
    """What would be stored twice, or otherwise than meant, is not sent; the version is asked for by a read before."""
    replies = [] if number is None else [version(number)]
    replies += [ACCEPTED] if isinstance(expected, Accepted) else []
    answer, transport = take(job(Step.SEND, kind=Kind.CALLER, items=items, sent=sent), *replies)
    assert type(answer) is type(expected)
    assert getattr(expected, "reason", "") in getattr(answer, "reason", "")
    assert ("GET /v1/version" in transport.asked) == (number is not None)


@pytest.mark.parametrize("kind", [Kind.FACT, Kind.SESSION])
def test_our_own_batches_may_always_be_sent_again(take: Callable[..., tuple[Answer, Scripted]], kind: Kind) -> None:
    """Each of their items replaces a document of its own, so no version matters."""
    answer, transport = take(job(Step.SEND, kind=kind, sent=9), ACCEPTED)
    assert answer == Accepted(OPERATION)
    assert len(transport.asked) == 1


def test_a_server_that_does_not_answer_for_its_version(take: Callable[..., tuple[Answer, Scripted]]) -> None:
    """Then nothing is sent, and it is the server that is away."""
    loose = job(Step.SEND, kind=Kind.CALLER, items=LOOSE, sent=2)
    answer, _ = take(loose, NoReply(ConnectFailed, "no connection"))
    assert answer == NoAnswer("no connection")
    answer, _ = take(loose, NO_ROUTE, version("0.9.1"), ACCEPTED)
    assert answer == Accepted(OPERATION)
    answer, _ = take(loose, NO_ROUTE, NO_ROUTE)
    assert isinstance(answer, Conflict)
    assert "the server (of unknown version)" in answer.reason


# The other steps


@pytest.mark.parametrize(
    ("step", "replies", "expected"),
    [
        (Step.DISCARD, [reply(200, {"success": True})], Discarded()),
        (Step.DISCARD, [NO_OPERATION], Discarded()),
        (Step.DISCARD, [NO_ROUTE, version("0.4.22")], Discarded()),
        (Step.DISCARD, [NO_ROUTE, version("1.1.0")], Closed("answered 404: Not Found")),
        (Step.DISCARD, [detail(409, "is pending")], Conflict("answered 409: is pending")),
        (Step.DISCARD, [detail(401, "no")], Closed("answered 401: no")),
        (Step.RETRY, [reply(200, {"success": True})], Accepted(OPERATION)),
        (Step.RETRY, [NO_OPERATION], NotFound({})),
        (Step.RETRY, [NO_ROUTE, version("0.4.10")], NotFound({})),
        (Step.RETRY, [NO_ROUTE, version("1.1.0")], Closed("answered 404: Not Found")),
        (Step.RETRY, [detail(409, "is completed")], Conflict("answered 409: is completed")),
        (Step.POLL, [operation("pending")], Pending()),
        (Step.POLL, [operation("processing")], Pending()),
        (Step.POLL, [operation("a new word")], Pending()),
        (Step.POLL, [operation("completed")], Completed()),
        (Step.POLL, [operation("cancelled")], Cancelled()),
        (Step.POLL, [operation("failed", error_message="Traceback:\n  x\nValueError: no model")], None),
        (Step.POLL, [operation("failed")], Failed("its operation failed on the server, which does not say why")),
        (Step.POLL, [reply(200, PAGE)], Closed("answered with a body that is not Hindsight's")),
        (Step.POLL, [detail(500, "no database")], Unexpected("answered 500: no database")),
    ],
)
def test_answers_to_the_other_steps(
    take: Callable[..., tuple[Answer, Scripted]], step: Step, replies: list[Response], expected: Answer | None
) -> None:
    """A thing that is not there is told from a path that is not there."""
    answer, transport = take(job(step), *replies)
    expected = expected or Failed("ValueError: no model")
    assert type(answer) is type(expected)
    assert getattr(expected, "reason", "") in getattr(answer, "reason", "")
    paths = {
        Step.DISCARD: f"DELETE /v1/default/banks/bank/operations/{OPERATION}/delete",
        Step.RETRY: f"POST /v1/default/banks/bank/operations/{OPERATION}/retry",
        Step.POLL: f"GET /v1/default/banks/bank/operations/{OPERATION}",
    }
    assert transport.asked[0] == paths[step]


def test_another_id_than_ours_is_the_one_that_is_asked_for(take: Callable[..., tuple[Answer, Scripted]]) -> None:
    """An old server named its own operation; an obsolete one is named before both."""
    poll = job(Step.POLL)
    theirs = str(uuid.UUID(int=9))
    _, transport = take(replace(poll, batch=replace(poll.batch, server_operation=theirs)), operation("pending"))
    assert transport.asked == [f"GET /v1/default/banks/bank/operations/{theirs}"]


KEPT = Document("notes", "h1")
GONE = Document("secret", "h2", forgotten=True)
LISTED = reply(200, {"items": []})
IS_THERE = (LISTED, version("1.1.0"))
HAS_IT = reply(200, {"id": "notes", "content_hash": "h1"})


@pytest.mark.parametrize(
    ("documents", "replies", "expected"),
    [
        ([KEPT, GONE], [operation("completed"), reply(200, {"success": True})], Completed(frozenset({"secret"}))),
        ([KEPT, GONE], [operation("completed"), NO_DOCUMENT], Completed(frozenset({"secret"}))),
        ([KEPT, GONE], [operation("completed"), NO_ROUTE], Closed("")),
        ([KEPT, GONE], [operation("completed"), NoReply(ConnectionLost, "broke")], NoAnswer("broke")),
        ([KEPT, GONE], [operation("not_found"), NO_DOCUMENT, *IS_THERE, HAS_IT], NotFound({"notes": "h1"})),
        ([KEPT], [operation("not_found"), *IS_THERE, HAS_IT], NotFound({"notes": "h1"})),
        ([KEPT], [operation("not_found"), *IS_THERE, reply(200, {"id": "notes"})], NotFound({"notes": None})),
        ([KEPT], [operation("not_found"), *IS_THERE, NO_DOCUMENT], NotFound({})),
        ([KEPT], [operation("not_found"), NO_BANK], NotFound(None)),
        ([KEPT], [operation("not_found"), NO_ROUTE], Closed("")),
        ([KEPT], [operation("not_found"), *IS_THERE, NO_ROUTE], Closed("")),
        ([Document(None, "h1")], [operation("not_found"), NO_BANK], NotFound(None)),
        ([Document(None, "h1")], [operation("not_found"), *IS_THERE], NotFound({})),
        ([Document("x/chunks", "h1")], [operation("not_found"), *IS_THERE], NotFound({})),
        # A server before 0.10.1 lists nothing of a bank that is not there, and all banks at once.
        (
            [KEPT],
            [operation("not_found"), LISTED, NO_ROUTE, version("0.9.1"), reply(200, {"banks": []})],
            NotFound(None),
        ),
        (
            [KEPT],
            [
                operation("not_found"),
                LISTED,
                NO_ROUTE,
                version("0.9.1"),
                reply(200, {"banks": [{"bank_id": "bank"}]}),
                NO_DOCUMENT,
            ],
            NotFound({}),
        ),
    ],
)
def test_what_is_looked_up_when_an_operation_has_ended(
    take: Callable[..., tuple[Answer, Scripted]],
    documents: list[Document],
    replies: list[object],
    expected: Answer,
) -> None:
    """Forgotten documents are deleted; where the operation is unknown the bank is asked for, then the documents."""
    answer, _ = take(job(Step.POLL, *documents), *replies)
    if isinstance(expected, Closed):
        assert isinstance(answer, Closed)
    else:
        assert answer == expected


def test_the_hash_is_that_of_the_text(take: Callable[..., tuple[Answer, Scripted]]) -> None:
    """What the server tells is what the outbox compares with, as it is."""
    digest = hashlib.sha256(b"x").hexdigest()
    found = reply(200, {"id": "notes", "content_hash": digest})
    answer, _ = take(job(Step.POLL, KEPT), operation("not_found"), *IS_THERE, found)
    assert answer == NotFound({"notes": digest})
