"""Flushing to a real server: replays, failures that last, a bank that goes, a poison, and a server that is killed."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from bankclient.client.http import AsyncHttpTransport, Route
from bankclient.client.transport import NoAnswer
from bankclient.errors import ConnectionLost
from bankclient.flusher import Flusher, Keyring, connect
from bankclient.settings import Settings
from bankclient.store.database import STORE_FILE, Database
from bankclient.store.outbox import Address, SqliteOutbox, State
from bankclient.testing.answers import Reply
from bankclient.testing.hindsight import HindsightServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bankclient.client.transport import Request, Response
    from bankclient.store.outbox import Batch
    from bankclient.testing.scripted import ScriptedRequest

pytestmark = pytest.mark.real


class Lossy(AsyncHttpTransport):
    """Sends to the server, twice if `doubles`, and drops its next `losses` answers to retains."""

    def __init__(self, url: str, *, losses: int = 0, doubles: bool = False) -> None:
        super().__init__(Route.to(url))
        self.losses = losses
        self.doubles = doubles

    async def send(self, request: Request, limit: float) -> Response:
        """Return the answer, or lose it."""
        answer = await super().send(request, limit)
        if request.method == "POST" and self.doubles:
            answer = await super().send(request, limit)
        if request.method == "POST" and self.losses:
            self.losses -= 1
            raise NoAnswer(ConnectionLost, "the answer was lost")
        return answer


@dataclass
class Sending:
    """A store whose things go to one bank of one server."""

    database: Database
    settings: Settings
    bank: str
    transport: Lossy

    @property
    def outbox(self) -> SqliteOutbox:
        """Return the outbox."""
        return SqliteOutbox(self.database)

    @property
    def home(self) -> Address:
        """Return where things go."""
        return Address(Keyring(self.settings).destination(self.settings), self.bank, ("project:a",))

    def flush(self, timeout: float = 60.0, patience: float = 60.0, **options: Any) -> None:  # noqa: ANN401 - as `flush` has it
        """Flush all."""
        keyring = Keyring(self.settings, connect=lambda settings: connect(settings, transport=self.transport))

        async def work() -> None:
            flusher = Flusher(self.outbox, keyring, together=self.database.write, lease_seconds=1.0)
            await flusher.flush(timeout=timeout, patience=patience, **options)
            await keyring.close()

        self.outbox.seal(now=time.time(), everything=True)
        asyncio.run(work())

    def fact(self, text: str, **fields: Any) -> int:  # noqa: ANN401 - any of an item's
        """Queue a fact; return its item's number."""
        added = self.outbox.add_fact(self.home, {"content": text, **fields}, now=time.time())
        assert added.item is not None
        return added.item

    def pieces(self, *texts: str) -> None:
        """Queue pieces of a session."""
        with self.database.write():
            for text in texts:
                fields = {"content": text, "document_id": f"s.{text}"}
                self.outbox.add_session(self.home, fields, now=time.time())

    def batch(self, item: int) -> Batch:
        """Return the batch that the item is in."""
        batch = self.outbox.batch_of_item(item)
        assert batch is not None
        return batch

    def held(self, what: str = "memories/list") -> list[dict[str, Any]]:
        """Return the memories of the bank, or what else is listed there."""
        answer = httpx.get(f"{self.settings.api_url}/v1/default/banks/{self.bank}/{what}", params={"limit": 1000})
        answer.raise_for_status()
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    def texts(self) -> list[str]:
        """Return the texts of the memories."""
        return sorted(item["text"] for item in self.held())


@pytest.fixture
def sending(real_url: str, bank: str, tmp_path: Path) -> Iterator[Sending]:
    """Give a store for the server that all tests share."""
    settings = Settings(api_url=real_url, state_dir=tmp_path)
    with closing(Database(tmp_path / STORE_FILE)) as database:
        yield Sending(database, settings, bank, Lossy(real_url))


class Failing(HindsightServer):
    """A server whose embeddings fail or are held up while it is told so, and which fails a task at its first failure.

    `working` is set when a text is being worked on.
    """

    is_failing = False

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as the original has it
        super().__init__(*arguments, **options)
        self.working, self.may_go_on = threading.Event(), threading.Event()
        self.may_go_on.set()

    @contextlib.contextmanager
    def holding_up(self) -> Iterator[None]:
        """Let the work on each text take as long as the block does."""
        self.working.clear()
        self.may_go_on.clear()
        try:
            yield
        finally:
            self.may_go_on.set()

    def _embed(self, request: ScriptedRequest) -> Reply:
        self.working.set()
        self.may_go_on.wait(60)
        return Reply(400, json={"error": {"message": "no model"}}) if self.is_failing else super()._embed(request)


@pytest.fixture(scope="module")
def own_server(hindsight_python: str) -> Iterator[Failing]:
    """Give a server of our own, to fail and to kill."""
    environment = {
        "HINDSIGHT_API_WORKER_MAX_RETRIES": "0",
        "HINDSIGHT_API_WORKER_MAX_SLOTS": "3",  # two of which it keeps for its own work
        "HINDSIGHT_API_WORKER_TASK_RETRY_BACKOFF_SECONDS": "1",
    }
    with Failing(hindsight_python, environment=environment) as server:
        yield server


@pytest.fixture
def own(own_server: Failing, tmp_path: Path) -> Iterator[Sending]:
    """Give a store for it."""
    settings = Settings(api_url=own_server.url, state_dir=tmp_path)
    with closing(Database(tmp_path / STORE_FILE)) as database:
        yield Sending(database, settings, f"test-{uuid.uuid4().hex}", Lossy(own_server.url))


@pytest.mark.parametrize("trouble", [{"losses": 2}, {"doubles": True}])
def test_what_is_sent_again_is_there_once(sending: Sending, trouble: dict[str, Any]) -> None:
    """A lost answer and a doubled request leave one copy of everything."""
    sending.transport = Lossy(sending.settings.api_url, **trouble)
    sending.pieces("piece one", "piece two")
    for text in ("fact one", "fact two"):
        sending.fact(text)
    sending.flush()
    assert {batch.state for batch in sending.outbox.batches()} == {State.STORED}
    assert sending.texts() == ["fact one", "fact two", "piece one", "piece two"]
    assert len(sending.held("documents?tags=project:a")) == 4
    assert max(batch.sent for batch in sending.outbox.batches()) == (3 if "losses" in trouble else 1)


def test_one_poison_item_among_good_ones(sending: Sending) -> None:
    """The server refuses a batch for one item's sake; all others are stored in the same flush, and it is named."""
    poison = sending.fact("poison", metadata={"a": 1})
    for number in range(9):
        sending.fact(f"good {number}")
    sending.flush(patience=0)
    assert sending.texts() == [f"good {number}" for number in range(9)]
    batch = sending.batch(poison)
    assert (batch.state, batch.items) == (State.WAITING, 1)
    assert batch.why.startswith("answered 422: body.items.0.metadata.a: ")
    assert "poison" not in batch.why
    sending.outbox.hurry(sending.home.destination, now=time.time())
    sending.flush(patience=0)
    assert sending.batch(poison).state is State.DEAD


def test_what_was_forgotten_on_its_way_is_gone(sending: Sending) -> None:
    """It is deleted once it has arrived, and its neighbours stay."""
    sending.fact("keep this")
    forgotten = sending.fact("forget this", document_id="secret")
    sending.flush(until=lambda: sending.batch(forgotten).state is State.ACCEPTED)
    sending.outbox.forget(sending.settings.api_url, sending.bank, "secret", now=time.time())
    sending.flush()
    assert sending.texts() == ["keep this"]


def test_an_operation_that_fails_while_a_newer_one_of_its_document_waits(own: Sending, own_server: Failing) -> None:
    """While the model is away the server is asked to try again; then the older text is stored, then the newer."""
    own_server.is_failing = True
    old = own.fact("the old text", document_id="notes")
    own.flush(timeout=30, patience=0)
    new = own.fact("the new text", document_id="notes")
    for _ in range(2):
        own.outbox.hurry(own.home.destination, now=time.time())
        own.flush(timeout=30, patience=0)
    assert own.batch(old).progress.failures >= 3
    assert own.batch(new).state is State.SEALED
    own_server.is_failing = False
    own.outbox.hurry(own.home.destination, now=time.time())
    own.flush()
    assert [own.batch(number).state for number in (old, new)] == [State.STORED] * 2
    assert own.texts() == ["the new text"]
    assert own.batch(old).sent == 1


def delete_bank(sending: Sending) -> None:
    """Delete the bank, as a person does."""
    httpx.delete(f"{sending.settings.api_url}/v1/default/banks/{sending.bank}", timeout=30).raise_for_status()


def test_a_bank_that_is_deleted_between_accept_and_confirm(own: Sending, own_server: Failing) -> None:
    """It stays deleted, and what was meant for it is given up with that reason."""
    with own_server.holding_up():
        blocker = {"async": True, "items": [{"content": "another's text, at which the server's one worker sits"}]}
        httpx.post(f"{own_server.url}/v1/default/banks/{own.bank}-other/memories", json=blocker).raise_for_status()
        assert own_server.working.wait(30)
        own.pieces("one")
        (batch,) = own.outbox.batches()
        own.flush(until=lambda: own.batch(batch.id).state is State.ACCEPTED)
        assert own.batch(batch.id).state is State.ACCEPTED
        delete_bank(own)
    own.flush()
    assert (own.batch(batch.id).state, own.batch(batch.id).why) == (State.DEAD, "bank deleted")
    banks = httpx.get(f"{own_server.url}/v1/default/banks", params={"limit": 1000}).json()["banks"]
    assert own.bank not in {each["bank_id"] for each in banks}


def test_a_bank_that_is_deleted_while_the_server_writes_to_it(own: Sending, own_server: Failing) -> None:
    """The server leaves a document without a bank, in which nobody finds it: the bank is what counts."""
    own.pieces("one")
    (batch,) = own.outbox.batches()
    with own_server.holding_up():
        own.flush(until=lambda: own.batch(batch.id).state is State.ACCEPTED)
        assert own_server.working.wait(30)
        delete_bank(own)
    own.flush()
    assert (own.batch(batch.id).state, own.batch(batch.id).why) == (State.DEAD, "bank deleted")


def test_a_server_that_is_killed_and_comes_back(own: Sending, own_server: Failing) -> None:
    """Killed in the middle of a flush and started again: each text is there once."""
    texts = [f"text {number:03}" for number in range(60)]
    own.pieces(*texts)
    half = threading.Event()

    def is_half() -> bool:
        if len(own.outbox.batches(states=[State.SEALED], limit=1000)) < 30:
            half.set()
        return False

    flushing = threading.Thread(target=lambda: own.flush(timeout=240, patience=240, until=is_half))
    flushing.start()
    assert half.wait(60)
    own_server.kill()
    own_server.start()
    flushing.join()
    assert {batch.state for batch in own.outbox.batches(limit=1000)} == {State.STORED}
    assert own.texts() == texts
    assert sorted(document["id"] for document in own.held("documents?tags=project:a")) == [
        f"s.{text}" for text in texts
    ]
