"""A server as far as an outbox can tell: operations known by their ids, documents replaced as a whole.

Pure and deterministic. It does only what it is asked to: `answer` takes a step of an outbox and returns the answer a
sender would get, `work` lets the operations that were taken run. What it has is there to be looked at.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bankclient.store.outbox import Step
from bankclient.store.outbox.answers import (
    Accepted,
    Answer,
    Cancelled,
    Completed,
    Conflict,
    Discarded,
    Failed,
    NotFound,
    Pending,
    Refused,
)

if TYPE_CHECKING:
    from bankclient.store.outbox import Job

__all__ = ["ModelBank", "ModelServer", "OperationState"]


class OperationState(enum.Enum):
    """How an operation stands."""

    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(slots=True)
class _Operation:
    bank: str
    items: list[dict[str, Any]]
    state: OperationState = OperationState.PENDING


def _no_texts() -> Counter[str]:
    return Counter()


@dataclass(slots=True)
class ModelBank:
    """What a bank holds: each document's text, each text that has no document id, and all writes in order."""

    documents: dict[str, str] = field(default_factory=dict[str, str])
    loose: Counter[str] = field(default_factory=_no_texts)
    writes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


class ModelServer:
    """A server with the identity rules of the real one.

    An operation id that it knows is the first operation, whatever comes with it, and is a conflict in another bank. A
    text in `poison` is refused, one in `failing` makes its operation fail; both may be changed at any time.
    """

    def __init__(self) -> None:
        self.banks: dict[str, ModelBank] = {}
        self.operations: dict[str, _Operation] = {}
        self.poison: set[str] = set()
        self.failing: set[str] = set()

    def answer(self, job: Job) -> Answer:
        """Do what a sender does for the job, and return what it would settle it with."""
        bank = job.batch.address.bank
        match job.step:
            case Step.SEND:
                return self.retain(bank, job.body)
            case Step.POLL:
                return self._poll(job, bank)
            case Step.RETRY:
                return self._retry(bank, job.operation)
            case Step.DISCARD:
                return self._discard(bank, job.operation)

    def retain(self, bank: str, body: bytes) -> Answer:
        """Take an asynchronous retain request."""
        request = json.loads(body)
        known = self.operations.get(request["operation_id"])
        if known is not None:
            in_use = "the operation id is in use in another bank"
            return Accepted(request["operation_id"]) if known.bank == bank else Conflict(in_use)
        if any(item["content"] in self.poison for item in request["items"]):
            return Refused("an item cannot be taken")
        self.banks.setdefault(bank, ModelBank())
        self.operations[request["operation_id"]] = _Operation(bank, request["items"])
        return Accepted(request["operation_id"])

    def work(self) -> None:
        """Let every pending operation run, in the order in which they were taken."""
        for operation in self.operations.values():
            if operation.state is not OperationState.PENDING:
                continue
            if any(item["content"] in self.failing for item in operation.items):
                operation.state = OperationState.FAILED
                continue
            bank = self.banks[operation.bank]
            for item in operation.items:
                self._write(bank, item.get("document_id"), item["content"])
            operation.state = OperationState.COMPLETED

    def end(self, operation_id: str, state: OperationState) -> None:
        """Have a pending operation end so, without having written anything."""
        if self.operations[operation_id].state is OperationState.PENDING:
            self.operations[operation_id].state = state

    def lose(self, operation_id: str) -> None:
        """Know the operation no more, as after a clean-up of old rows."""
        del self.operations[operation_id]

    def delete_document(self, bank: str, document: str) -> None:
        """Delete the document, if it is there."""
        if bank in self.banks:
            self.banks[bank].documents.pop(document, None)

    def delete_bank(self, bank: str) -> None:
        """Delete the bank with all its documents and operations."""
        self.banks.pop(bank, None)
        self.operations = {name: known for name, known in self.operations.items() if known.bank != bank}

    def _write(self, bank: ModelBank, document: str | None, text: str) -> None:
        if document is None:
            bank.loose[text] += 1
        else:
            bank.documents[document] = text
            bank.writes.append((document, text))

    def _poll(self, job: Job, bank: str) -> Answer:
        operation = self._operation(bank, job.operation)
        if operation is not None and operation.state is OperationState.PENDING:
            return Pending()
        if operation is not None and operation.state is OperationState.FAILED:
            return Failed("the operation failed")
        if operation is not None and operation.state is OperationState.CANCELLED:
            return Cancelled()
        forgotten = frozenset(document.id or "" for document in job.documents if document.forgotten)
        for document in forgotten:
            self.delete_document(bank, document)
        if operation is not None:
            return Completed(forgotten)
        if bank not in self.banks:
            return NotFound(None)
        texts = self.banks[bank].documents
        return NotFound({name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()})

    def _retry(self, bank: str, operation_id: str) -> Answer:
        operation = self._operation(bank, operation_id)
        if operation is None:
            return NotFound({})
        if operation.state is OperationState.COMPLETED:
            return Conflict("a completed operation is not retried")
        operation.state = OperationState.PENDING
        return Accepted(operation_id)

    def _discard(self, bank: str, operation_id: str) -> Answer:
        operation = self._operation(bank, operation_id)
        if operation is not None and operation.state is OperationState.PENDING:
            return Conflict("a pending operation is not deleted")
        if operation is not None:
            del self.operations[operation_id]
        return Discarded()

    def _operation(self, bank: str, operation_id: str) -> _Operation | None:
        """Return an operation of that bank; of another's there is nothing to be seen."""
        operation = self.operations.get(operation_id)
        return operation if operation is not None and operation.bank == bank else None
