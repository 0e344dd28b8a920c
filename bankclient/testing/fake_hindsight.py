"""A Hindsight server in memory, as far as retaining goes: over HTTP or in process, with faults where a test wants them.

It owns the routes and the shapes of its replies; what it stores, and by which identities, is `ModelServer`'s. It does
not search, and it answers every retain in the background.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import deque
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote, urlsplit

from bankclient.api import Capabilities
from bankclient.client.transport import NoAnswer, Response
from bankclient.errors import ConnectionLost
from bankclient.store.outbox.answers import Accepted, Refused
from bankclient.testing.answers import Reply, Reset
from bankclient.testing.model_server import ModelServer, OperationState
from bankclient.testing.scripted import ScriptedRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from bankclient.client.transport import AsyncStreamedResponse, Request
    from bankclient.testing.answers import Answer

__all__ = ["FakeHindsight", "Fault", "FaultyTransport", "lost_reply", "turned_away", "twice"]

Fault: TypeAlias = "Callable[[Callable[[], Reply]], Answer]"
"""What happens to one request: it is given what the server would do with it, and returns what is answered."""

_BANKS = "/v1/default/banks"


def lost_reply(act: Callable[[], Reply]) -> Answer:
    """Let the server do it, and nobody hear."""
    act()
    return Reset()


def twice(act: Callable[[], Reply]) -> Answer:
    """Let the request arrive twice."""
    act()
    return act()


def turned_away(answer: Answer) -> Fault:
    """Return the fault of something in front of the server, which answers so in its place."""
    return lambda _act: answer


class FakeHindsight:
    """Answers requests from `model`, or as the next of `faults` wants it.

    `answer` is a handler for `ScriptedServer`; `FaultyTransport` brings it into a client. `faults` are used up by the
    requests of one kind: their keys are the operations' names (`retain`, `get_operation`, …). `requests` has the kind
    and the body of each request. While `is_busy`, operations stay pending; else they are done when they are asked for.
    A `key` is demanded; `version` is what the server says it is, and before 0.8.6 it knows no ids of operations.
    """

    def __init__(self, *, version: str = "1.1.0", key: str | None = None) -> None:
        self.model = ModelServer()
        self.faults: dict[str, deque[Fault]] = {}
        self.requests: list[tuple[str, Any]] = []
        self.is_busy = False
        self.version = version
        self.key = key

    def fail(self, kind: str, *faults: Fault) -> None:
        """Let the next requests of that kind go so, in order."""
        self.faults.setdefault(kind, deque()).extend(faults)

    def answer(self, request: ScriptedRequest) -> Answer:
        """Return what is answered to the request."""
        kind, bank, name = _kind_of(request)
        self.requests.append((kind, request.json() if request.body else name))

        def act() -> Reply:
            if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
                return _problem(401, "Authentication failed: Invalid API key")
            return self._reply(kind, bank, name, request)

        waiting = self.faults.get(kind)
        return waiting.popleft()(act) if waiting else act()

    def texts(self, bank: str) -> list[str]:
        """Return what the bank holds: the text of each document, and each text without one as often as it is there."""
        held = self.model.banks.get(bank)
        return [] if held is None else sorted([*held.documents.values(), *held.loose.elements()])

    def count(self, kind: str) -> int:
        """Return how many requests of a kind came."""
        return sum(each == kind for each, _ in self.requests)

    def _reply(self, kind: str, bank: str, name: str, request: ScriptedRequest) -> Reply:
        match kind:
            case "version" if request.path == "/version" or Capabilities.of(self.version).bank_pages:
                reply = Reply(json={"api_version": self.version, "features": {}})
            case "list_banks":
                reply = Reply(json={"banks": [{"bank_id": each} for each in self.model.banks]})
            case "retain":
                reply = self._retain(bank, request.json())
            case "get_operation" | "retry_operation" | "delete_operation":
                reply = self._operation(kind, bank, name)
            case "list_documents" | "get_document" | "delete_document":
                reply = self._document(kind, bank, name)
            case _:
                reply = _problem(404, "Not Found")
        return reply

    def _retain(self, bank: str, body: dict[str, Any]) -> Reply:
        documents = [item["document_id"] for item in body["items"] if item.get("document_id")]
        if len(set(documents)) < len(documents):
            return _problem(400, "the same document_id twice in one request")
        if not Capabilities.of(self.version).operation_ids:
            body = body | {"operation_id": str(uuid.uuid4())}
        match self.model.retain(bank, json.dumps(body).encode()):
            case Accepted(operation):
                return Reply(json={"success": True, "async": True, "bank_id": bank, "operation_id": operation})
            case Refused(reason):
                return Reply(422, json={"detail": [{"loc": ["body"], "msg": reason, "input": body}]})
            case _:
                return _problem(409, f"operation_id {body['operation_id']} is already in use")

    def _operation(self, kind: str, bank: str, name: str) -> Reply:
        if not self.is_busy:
            self.model.work()
        known = self.model.operations.get(name)
        state = None if known is None or known.bank != bank else known.state
        if kind == "get_operation":
            status = "not_found" if state is None else state.value
            why = "Traceback\nRuntimeError: it failed" if state is OperationState.FAILED else None
            return Reply(json={"operation_id": name, "status": status, "error_message": why})
        if state is None or known is None:
            return _problem(404, f"Operation {name} not found for bank {bank}")
        if kind == "retry_operation" and state is not OperationState.COMPLETED:
            known.state = OperationState.PENDING
        elif kind == "delete_operation" and state is not OperationState.PENDING:
            self.model.lose(name)
        else:
            return _problem(409, f"operation {name} is {state.value}")
        return Reply(json={"success": True})

    def _document(self, kind: str, bank: str, name: str) -> Reply:
        held = self.model.banks.get(bank)
        if kind == "list_documents":
            if held is None and Capabilities.of(self.version).missing_bank_is_404:
                return _problem(404, f"Bank {bank!r} not found")
            return Reply(json={"items": [{"id": each} for each in (held.documents if held else ())]})
        if held is None or name not in held.documents:
            return _problem(404, "Document not found")
        if kind == "delete_document":
            self.model.delete_document(bank, name)
            return Reply(json={"success": True})
        digest = hashlib.sha256(held.documents[name].encode()).hexdigest()
        return Reply(json={"id": name, "content_hash": digest})


class FaultyTransport:
    """Brings `server` into an `AsyncBankClient`, in process; an answer that is no reply is a broken connection."""

    def __init__(self, server: FakeHindsight) -> None:
        self._server = server

    async def send(self, request: Request, limit: float) -> Response:
        """Return the server's answer at once."""
        del limit
        parts = urlsplit(request.url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        answer = self._server.answer(ScriptedRequest(request.method, target, request.headers, request.body or b"", 0))
        if not isinstance(answer, Reply):
            raise NoAnswer(ConnectionLost, "the connection broke")
        head, body = answer.encode()
        lines = head.decode("latin-1").splitlines()[1:]
        headers = dict(line.split(": ", 1) for line in lines if line)
        return Response(answer.status, headers, body)

    def stream(self, request: Request, limit: float) -> AbstractAsyncContextManager[AsyncStreamedResponse]:
        """Refuse: nothing that is queued is streamed."""
        raise NotImplementedError

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def _kind_of(request: ScriptedRequest) -> tuple[str, str, str]:
    """Return the operation's name, the bank and the thing in it that a request is about."""
    if request.path in {"/version", "/v1/version"}:
        return "version", "", ""
    if not request.path.startswith(_BANKS):
        return "unknown", "", ""
    bank, resource, name, verb = ([unquote(each) for each in request.path[len(_BANKS) + 1 :].split("/")] + [""] * 4)[:4]
    kinds = {
        ("GET", "", False, ""): "list_banks",
        ("POST", "memories", False, ""): "retain",
        ("GET", "operations", True, ""): "get_operation",
        ("POST", "operations", True, "retry"): "retry_operation",
        ("DELETE", "operations", True, "delete"): "delete_operation",
        ("GET", "documents", False, ""): "list_documents",
        ("GET", "documents", True, ""): "get_document",
        ("DELETE", "documents", True, ""): "delete_document",
    }
    return kinds.get((request.method, resource, bool(name), verb), "unknown"), bank, name


def _problem(status: int, detail: str) -> Reply:
    return Reply(status, json={"detail": detail})
