"""The model of a server is what the real one is, as far as an outbox can tell: each rule is tried on both."""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

import httpx
import pytest

from bankclient.store.outbox import Address, Batch, Destination, Document, Job, Kind, Progress, State, Step
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
)
from bankclient.store.outbox.sealing import Item, request_body
from bankclient.testing.model_server import ModelServer, OperationState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class _Server(Protocol):
    """What the rules are tried on."""

    def retain(self, bank: str, operation_id: str, *items: Mapping[str, str]) -> str:
        """Send a retain; return `accepted` once its operation has ended, or `conflict`."""
        ...

    def status(self, bank: str, operation_id: str) -> str:
        """Return how the operation stands."""
        ...

    def discard(self, bank: str, operation_id: str) -> None:
        """Delete the operation."""
        ...

    def hashes(self, bank: str) -> Mapping[str, str | None] | None:
        """Return the hash of each document by its id, `None` for no bank."""
        ...

    def delete_bank(self, bank: str) -> None:
        """Delete the bank."""
        ...


def _job(step: Step, bank: str, operation_id: str, *, documents: tuple[Document, ...] = (), body: bytes = b"") -> Job:
    batch = Batch(
        id=1,
        kind=Kind.FACT,
        address=Address(Destination("http://one.invalid", "k"), bank),
        state=State.ACCEPTED,
        step=step,
        operation_id=operation_id,
        server_operation=None,
        obsolete=None,
        items=1,
        size=1,
        added=0.0,
        changed=0.0,
        until=0.0,
        why="",
        sent=1,
        accepted=1,
        handed_out=True,
        progress=Progress(),
    )
    return Job(batch, 1, step, body, documents)


class _Model:
    """The model, worked at once."""

    def __init__(self) -> None:
        self.server = ModelServer()

    def retain(self, bank: str, operation_id: str, *items: Mapping[str, str]) -> str:
        body = request_body([Item.of(item).body for item in items], operation_id)
        answer = self.server.answer(_job(Step.SEND, bank, operation_id, body=body))
        self.server.work()
        return "accepted" if answer == Accepted(operation_id) else "conflict"

    def status(self, bank: str, operation_id: str) -> str:
        answer = self.server.answer(_job(Step.POLL, bank, operation_id))
        return "not_found" if isinstance(answer, NotFound) else type(answer).__name__.lower()

    def discard(self, bank: str, operation_id: str) -> None:
        self.server.answer(_job(Step.DISCARD, bank, operation_id))

    def hashes(self, bank: str) -> Mapping[str, str | None] | None:
        answer = self.server.answer(_job(Step.POLL, bank, str(uuid.uuid4())))
        assert isinstance(answer, NotFound)
        return answer.hashes

    def delete_bank(self, bank: str) -> None:
        self.server.delete_bank(bank)


class _Real:
    """A real server over HTTP; each look is a round trip, so that nothing needs to sleep."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=f"{url}/v1/default/banks", timeout=60.0, trust_env=False)

    def retain(self, bank: str, operation_id: str, *items: Mapping[str, str]) -> str:
        body = request_body([Item.of(item).body for item in items], operation_id)
        answer = self.http.post(f"/{bank}/memories", content=body, headers={"content-type": "application/json"})
        if answer.status_code == 409:
            return "conflict"
        assert answer.json()["operation_id"] == operation_id
        before = datetime.now(UTC) + timedelta(seconds=60)
        while datetime.now(UTC) < before and self.status(bank, operation_id) in {"pending", "processing"}:
            pass
        return "accepted"

    def status(self, bank: str, operation_id: str) -> str:
        return str(self.http.get(f"/{bank}/operations/{operation_id}").json()["status"])

    def discard(self, bank: str, operation_id: str) -> None:
        assert self.http.delete(f"/{bank}/operations/{operation_id}/delete").status_code in {200, 404}

    def hashes(self, bank: str) -> Mapping[str, str | None] | None:
        answer = self.http.get(f"/{bank}/documents")
        return (
            None if answer.status_code == 404 else {item["id"]: item["content_hash"] for item in answer.json()["items"]}
        )

    def delete_bank(self, bank: str) -> None:
        self.http.delete(f"/{bank}").raise_for_status()


@pytest.fixture(params=["model", pytest.param("real", marks=pytest.mark.real)])
def server(request: pytest.FixtureRequest) -> Iterator[_Server]:
    """Give the model, and a real server."""
    if request.param == "model":
        yield _Model()
    else:
        real = _Real(request.getfixturevalue("real_url"))
        yield real
        real.http.close()


@pytest.fixture
def own_bank(server: _Server) -> Iterator[str]:
    """Give the name of a bank that is nobody else's; it is deleted afterwards."""
    name = f"test-{uuid.uuid4().hex}"
    yield name
    server.delete_bank(name)


def _id() -> str:
    return str(uuid.uuid4())


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_known_id_is_the_first_operation(server: _Server, own_bank: str) -> None:
    """The same id again is accepted and changes nothing, whatever comes with it."""
    operation_id = _id()
    for text in ("first", "first", "other"):
        assert server.retain(own_bank, operation_id, {"content": text, "document_id": "a"}) == "accepted"
    assert server.status(own_bank, operation_id) == "completed"
    assert server.hashes(own_bank) == {"a": _hash("first")}


def test_an_id_of_another_bank_is_a_conflict(server: _Server, own_bank: str) -> None:
    """Ids are the server's, not the bank's; asked for in the wrong bank, an operation is not found."""
    operation_id, other = _id(), f"{own_bank}-other"
    server.retain(own_bank, operation_id, {"content": "x", "document_id": "a"})
    assert server.retain(other, operation_id, {"content": "x", "document_id": "a"}) == "conflict"
    assert server.status(other, operation_id) == "not_found"
    server.discard(other, operation_id)
    assert server.status(own_bank, operation_id) == "completed"


def test_a_document_is_replaced_as_a_whole(server: _Server, own_bank: str) -> None:
    """Another operation with the same document leaves its own text, known by its hash."""
    for text in ("one", "two", "żółw \u2028 and more"):
        server.retain(own_bank, _id(), {"content": text, "document_id": "a"})
        assert server.hashes(own_bank) == {"a": _hash(text)}


def test_a_text_without_a_document_id_is_a_document_each_time(server: _Server, own_bank: str) -> None:
    """Sent under two ids it is there twice: that is what an id is for."""
    server.retain(own_bank, _id(), {"content": "loose"})
    if isinstance(server, _Model):
        assert server.server.banks[own_bank].loose["loose"] == 1
    else:
        assert list((server.hashes(own_bank) or {}).values()) == [_hash("loose")]
    server.retain(own_bank, _id(), {"content": "loose"})
    if isinstance(server, _Model):
        assert server.server.banks[own_bank].loose["loose"] == 2
    else:
        assert list((server.hashes(own_bank) or {}).values()) == [_hash("loose")] * 2


def test_a_deleted_operation_frees_its_id(server: _Server, own_bank: str) -> None:
    """It is not found any more, and what then comes under the id is stored."""
    operation_id = _id()
    server.retain(own_bank, operation_id, {"content": "one", "document_id": "a"})
    server.discard(own_bank, operation_id)
    assert server.status(own_bank, operation_id) == "not_found"
    server.retain(own_bank, operation_id, {"content": "two", "document_id": "a"})
    assert server.hashes(own_bank) == {"a": _hash("two")}


def test_a_deleted_bank_takes_its_operations_along(server: _Server, own_bank: str) -> None:
    """Nothing of it is found; the next retain makes it anew."""
    operation_id = _id()
    server.retain(own_bank, operation_id, {"content": "one", "document_id": "a"})
    server.delete_bank(own_bank)
    assert server.status(own_bank, operation_id) == "not_found"
    assert server.hashes(own_bank) is None
    server.retain(own_bank, operation_id, {"content": "two", "document_id": "b"})
    assert server.hashes(own_bank) == {"b": _hash("two")}


# What a test makes happen on the model alone


def _taken(server: ModelServer, text: str = "x") -> None:
    body = request_body([Item.of({"content": text, "document_id": "a"}).body], "op")
    assert server.retain("bank", body) == Accepted("op")


def _poll(server: ModelServer, *documents: Document) -> Answer:
    return server.answer(_job(Step.POLL, "bank", "op", documents=documents))


def test_an_operation_is_pending_until_it_is_worked() -> None:
    """Nothing is written, nothing can be deleted, before `work`."""
    server = ModelServer()
    _taken(server)
    assert _poll(server) == Pending()
    assert isinstance(server.answer(_job(Step.DISCARD, "bank", "op")), Conflict)
    assert server.banks["bank"].documents == {}
    server.work()
    assert _poll(server) == Completed()
    assert isinstance(server.answer(_job(Step.RETRY, "bank", "op")), Conflict)
    assert server.banks["bank"].writes == [("a", "x")]


def test_a_failing_text_fails_until_it_is_mended_and_retried() -> None:
    """Its operation can be retried as often as one wants, and deleted."""
    server = ModelServer()
    server.failing.add("x")
    _taken(server)
    server.work()
    assert isinstance(_poll(server), Failed)
    server.failing.clear()
    assert server.answer(_job(Step.RETRY, "bank", "op")) == Accepted("op")
    server.work()
    assert _poll(server) == Completed()
    assert server.answer(_job(Step.DISCARD, "bank", "op")) == Discarded()
    assert server.answer(_job(Step.RETRY, "bank", "op")) == NotFound({})


def test_an_operation_can_be_ended_from_outside() -> None:
    """Cancelled or failed, it has written nothing; one that is over stays as it is."""
    server = ModelServer()
    _taken(server)
    server.end("op", OperationState.CANCELLED)
    server.end("op", OperationState.FAILED)
    server.work()
    assert _poll(server) == Cancelled()
    assert server.banks["bank"].documents == {}
    server.lose("op")
    assert _poll(server) == NotFound({})


def test_a_forgotten_document_is_deleted_by_who_asks() -> None:
    """A sender deletes it once the operation has completed, and says so."""
    server = ModelServer()
    _taken(server)
    server.work()
    assert _poll(server, Document("a", None, forgotten=True)) == Completed(frozenset({"a"}))
    assert server.banks["bank"].documents == {}
