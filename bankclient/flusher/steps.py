"""One step of a job over the network, and its outcome as an answer to the outbox.

It knows the calls of the API and what each reply and each error means for a queued batch. It knows no queue, lease or
clock, and repeats nothing: the outbox says when a step is taken again.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from uuid import UUID

from bankclient.api import Call, Capabilities, Repeat, calls, segment
from bankclient.api.models.base import reader
from bankclient.api.models.retain import RetainResult
from bankclient.errors import (
    BadRequest,
    BreakerOpen,
    CallError,
    Disabled,
    InvalidInput,
    RateLimited,
    ServerBusy,
    ServerError,
    Unauthorized,
    Unavailable,
    UnexpectedReply,
)
from bankclient.errors import Conflict as ConflictReply
from bankclient.errors import NotFound as NotFoundReply
from bankclient.store.outbox import Kind, Step
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
    from collections.abc import Awaitable, Callable

    from bankclient.api.models.documents import Document
    from bankclient.store.outbox import Job

__all__ = ["Client", "Sender", "answer_to"]

T = TypeVar("T")
_log = logging.getLogger("bankclient.flusher")

_REFUSING: Final = frozenset({400, 413, 422})
_GATEWAY: Final = frozenset({502, 504})
_NO_ROUTE: Final = "Not Found"
"""What the server says of a path that it does not have; of a thing that is not there it says which."""


class Client(Protocol):
    """What sends a call: `AsyncBankClient`, or a stand-in."""

    async def call(self, call: Call[T], *, timeout: float | None = None) -> T:
        """Return the parsed answer; raise `CallError`."""
        ...


class Sender:
    """Takes the steps of one destination's jobs; `failed` is told of each error as it came."""

    def __init__(self, client: Client, failed: Callable[[Job, CallError], None]) -> None:
        self._client = client
        self._failed = failed
        self._capabilities: Capabilities | None = None
        self._faults: set[type[Exception]] = set()

    async def take(self, job: Job) -> Answer:
        """Do the job's step, and return what is to be settled; nothing but a cancellation is raised."""
        steps: dict[Step, Callable[[Job], Awaitable[Answer]]] = {
            Step.DISCARD: self._discard,
            Step.SEND: self._send,
            Step.RETRY: self._retry,
            Step.POLL: self._poll,
        }
        try:
            return await steps[job.step](job)
        except CallError as error:
            self._failed(job, error)
            return answer_to(error)
        except InvalidInput as error:  # a bank or an id that cannot be in a request, from a file of another version
            return Refused(str(error))
        except Exception as error:  # noqa: BLE001 - one batch at which our code fails must not hold up the others
            level = logging.DEBUG if type(error) in self._faults else logging.ERROR
            self._faults.add(type(error))
            _log.log(level, "a fault in bankclient, at %s of batch %d", job.step, job.batch.id, exc_info=error)
            return Unexpected(f"a fault in bankclient ({type(error).__name__}); the log says more")

    async def _ask(self, call: Call[T]) -> T:
        return await self._client.call(replace(call, repeat=Repeat.NEVER))

    async def _send(self, job: Job) -> Answer:
        if job.batch.kind is Kind.CALLER and (reason := await self._unfit(job)):
            return Conflict(reason)
        bank = job.batch.address.bank
        name = segment(bank, "the bank's name")
        call = Call(
            operation="retain",
            method="POST",
            path=f"/v1/default/banks/{name}/memories",
            parse=_read_operation,
            empty=str,
            body=job.body,
            time_limit="retain",
            bank=bank,
        )
        return Accepted(await self._ask(call))

    async def _unfit(self, job: Job) -> str:
        """Say why a caller's own request may not be sent (again) to this server; empty if it may.

        Our own batches may always: each of their items replaces a document of its own. Of others, an old server, which
        knows no operation ids, would store a second copy; and one that knows no `append` would replace.
        """
        items: list[dict[str, Any]] = json.loads(job.body)["items"]
        appends = any(item.get("update_mode") == "append" for item in items)
        replaces = not appends and all(item.get("document_id") for item in items)
        if not appends and (replaces or job.batch.sent == 1):
            return ""
        able = await self._able()
        server = f"the server ({able.version or 'of unknown version'})"
        if appends and not able.append:
            return f"{server} would replace the document that this appends to"
        if job.batch.sent > 1 and not able.operation_ids:
            return f"perhaps stored: {server} knows no operation ids, and would store a second copy"
        return ""

    async def _discard(self, job: Job) -> Answer:
        try:
            await self._ask(calls.delete_operation(job.batch.address.bank, job.operation))
        except NotFoundReply as error:
            # A server without this route keeps no record that a new operation could meet.
            if _is_route(error) and (await self._able()).delete_operation:
                raise
        return Discarded()

    async def _retry(self, job: Job) -> Answer:
        try:
            await self._ask(calls.retry_operation(job.batch.address.bank, job.operation))
        except NotFoundReply as error:
            if _is_route(error) and (await self._able()).retry_operation:
                raise
            return NotFound({})
        return Accepted(job.operation)

    async def _poll(self, job: Job) -> Answer:
        operation = await self._ask(calls.get_operation(job.batch.address.bank, job.operation))
        match operation.status:
            case "completed":
                return Completed(await self._delete_forgotten(job))
            case "failed":
                return Failed(operation.failure or "its operation failed on the server, which does not say why")
            case "cancelled":
                return Cancelled()
            case "not_found":
                return await self._look_up(job)
            case _:
                return Pending()

    async def _delete_forgotten(self, job: Job) -> frozenset[str]:
        forgotten = frozenset(document.id for document in job.documents if document.forgotten and document.id)
        for document in forgotten:
            try:
                await self._ask(calls.delete_document(job.batch.address.bank, document))
            except NotFoundReply as error:  # it is gone already
                if _is_route(error):
                    raise
        return forgotten

    async def _look_up(self, job: Job) -> NotFound:
        """Return what the server has of the job's documents, whose operation it does not know."""
        await self._delete_forgotten(job)
        bank = job.batch.address.bank
        # Before its documents: one is left where a bank is deleted while the server (1.1.0) still writes to it.
        if not await self._has(bank):
            return NotFound(None)
        hashes: dict[str, str | None] = {}
        for document in job.documents:
            if document.id and not document.forgotten and (found := await self._document(bank, document.id)):
                hashes[document.id] = found.content_hash
        return NotFound(hashes)

    async def _document(self, bank: str, name: str) -> Document | None:
        try:
            return await self._ask(calls.get_document(bank, name))
        except NotFoundReply as error:
            if _is_route(error):
                raise
            return None
        except InvalidInput:  # an id that cannot be asked for counts as missing: its text is sent again, and replaces
            return None

    async def _has(self, bank: str) -> bool:
        """Return whether the bank is there; reading a document does not tell."""
        try:
            await self._ask(calls.list_documents(bank, limit=1))
        except NotFoundReply as error:
            if error.is_missing_bank:
                return False
            raise
        if (await self._able()).missing_bank_is_404:
            return True
        banks = await self._ask(calls.list_banks())  # such a server lists them all
        return any(each.bank_id == bank for each in banks.items)

    async def _able(self) -> Capabilities:
        """Return what the server's version can do, asked once; one that does not tell its version can nothing."""
        if self._capabilities is None:
            self._capabilities = Capabilities.of(await self._version())
        return self._capabilities

    async def _version(self) -> str:
        for call in (calls.version(), calls.version(path="/version")):
            try:
                return (await self._ask(call)).api_version
            except NotFoundReply:
                continue
        return ""


def answer_to(error: CallError) -> Answer:
    """Return what an error says of the batch or the destination that was being worked for."""
    reason = error.reason
    match error:
        case ServerBusy() | RateLimited():
            answer: Answer = Busy(reason, error.retry_after)
        case BreakerOpen() | Disabled():  # not tried at all
            answer = Busy(reason)
        case Unavailable():
            answer = NoAnswer(reason)
        case ServerError() if error.status in _GATEWAY:  # nobody answered behind it
            answer = NoAnswer(reason)
        case Unauthorized() | UnexpectedReply():
            answer = Closed(reason)
        case NotFoundReply() if _is_route(error):
            answer = Closed(reason)
        case ConflictReply() if error.from_server:
            answer = Conflict(reason)
        case BadRequest() if error.from_server and error.status in _REFUSING:
            answer = Refused(reason)
        case _:
            answer = Unexpected(reason)
    return answer


def _is_route(error: NotFoundReply) -> bool:
    """Say whether it is the path that is not there, in place of the thing that was asked for."""
    return not error.from_server or error.detail == _NO_ROUTE


_READ = reader(RetainResult)


def _read_operation(raw: bytes) -> str:
    """Return the operation that a retain was accepted as; raise `ValueError` where it names none."""
    operations = _READ(raw).operation_ids
    if not operations:
        raise ValueError("not the answer to a background retain: it names no operation")
    return str(UUID(operations[0]))
