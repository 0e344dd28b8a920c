"""A flusher on a store of its own, with a server in memory and a clock that stands still."""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.flusher import Flusher, Keyring, connect
from bankclient.settings import Settings
from bankclient.store.database import Database
from bankclient.store.outbox import Address, Batch, Destination, SqliteOutbox, State
from bankclient.testing.clock import ManualClock
from bankclient.testing.fake_hindsight import FakeHindsight, FaultyTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bankclient.client import AsyncBankClient
    from bankclient.flusher.watching import Watcher

URL = "http://hindsight.invalid"


@dataclass
class Rig:
    """A store, a server that is reached in process, and what a test does with both."""

    database: Database
    fake: FakeHindsight
    clock: ManualClock
    settings: Settings
    home: Address
    keyring: Keyring
    outbox: SqliteOutbox
    watcher: Watcher | None = None
    numbers: list[int] = field(default_factory=list[int])

    @property
    def destination(self) -> Destination:
        """Return where things go unless a test says otherwise."""
        return self.home.destination

    def fact(self, text: str, address: Address | None = None, **fields: Any) -> int:  # noqa: ANN401 - any of an item's
        """Queue a fact; return its item's number."""
        added = self.outbox.add_fact(address or self.home, {"content": text, **fields}, now=self.clock.now())
        assert added.item is not None
        return added.item

    def piece(self, text: str, document: str | None = None, address: Address | None = None) -> int:
        """Queue a piece of a session; return its batch's id."""
        fields = {"content": text, "document_id": document or f"s.{text}"}
        added = self.outbox.add_session(address or self.home, fields, now=self.clock.now())
        assert added.item is not None
        return added.item

    def request(self, *items: dict[str, Any]) -> int:
        """Queue a caller's own request; return its batch's id."""
        operation = str(uuid.uuid4())
        body = json.dumps({"items": items, "async": True, "operation_id": operation}).encode()
        added = self.outbox.add_request(self.home, items, body=body, operation_id=operation, now=self.clock.now())
        assert added.item is not None
        return added.item

    def flusher(self, **options: Any) -> Flusher:  # noqa: ANN401 - any of a flusher's
        """Return a flusher on the clock."""
        return Flusher(
            self.outbox,
            self.keyring,
            **{
                "together": self.database.write,
                "watcher": self.watcher,
                "clock": self.clock.now,
                "monotonic": self.clock.now,
                "sleep": self.clock.sleep_async,
                "jitter": lambda: 0.0,
                **options,
            },
        )

    def flush(self, timeout: float = 60.0, **options: Any) -> None:  # noqa: ANN401 - any of `flush`
        """Seal what is open, and flush."""
        self.outbox.seal(now=self.clock.now(), everything=True)
        asyncio.run(self.flusher().flush(timeout=timeout, **options))

    def batch(self, number: int) -> Batch:
        """Return the batch of that id."""
        batch = self.outbox.batch(number)
        assert batch is not None
        return batch

    def states(self) -> dict[State, int]:
        """Return how many items are in each state."""
        return {state: tally.items for state, tally in self.outbox.overview(now=self.clock.now()).states.items()}

    def settings_for(self, url: str = URL, token: str | None = None) -> Settings:
        """Return settings that name a server and its key."""
        return Settings(api_url=url, api_token=token, state_dir=self.settings.state_dir)


@pytest.fixture
def fake() -> FakeHindsight:
    """Give a server in memory."""
    return FakeHindsight()


@pytest.fixture
def reach(fake: FakeHindsight) -> Callable[[Settings], AsyncBankClient]:
    """Give the maker of clients that reach the server in memory, whatever their URL."""
    return partial(connect, transport=FaultyTransport(fake))


@pytest.fixture
def rig(tmp_path: Path, fake: FakeHindsight, reach: Callable[[Settings], AsyncBankClient]) -> Iterator[Rig]:
    """Give a flusher's surroundings."""
    settings = Settings(api_url=URL, state_dir=tmp_path / "state")
    keyring = Keyring(settings, connect=reach)
    home = Address(keyring.destination(settings), "bank", ("project:a",))
    with closing(Database(settings.state_dir / "store.db")) as database:
        yield Rig(database, fake, ManualClock(1.5e9), settings, home, keyring, SqliteOutbox(database))
