"""Random schedules of what is kept, sent, lost, doubled and broken off; in the end each thing is there once."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
import tempfile
import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bankclient.flusher import Flusher, Keyring, connect
from bankclient.settings import Settings
from bankclient.store.database import Database
from bankclient.store.outbox import Address, SqliteOutbox, State
from bankclient.testing.answers import Reply, Reset, gateway_page
from bankclient.testing.clock import ManualClock
from bankclient.testing.fake_hindsight import FakeHindsight, FaultyTransport, lost_reply, turned_away, twice
from bankclient.testing.model_server import ModelBank

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from bankclient.testing.answers import Answer
    from bankclient.testing.fake_hindsight import Fault

URL = "http://hindsight.invalid"


def broken_off(act: Callable[[], Reply]) -> Answer:
    """Let the flushing process end before it hears the answer."""
    act()
    raise asyncio.CancelledError


def never_sent(act: Callable[[], Reply]) -> Answer:
    """Let the flushing process end before it has sent anything."""
    del act
    raise asyncio.CancelledError


FAULTS: list[Fault] = [
    lost_reply,
    twice,
    broken_off,
    never_sent,
    turned_away(Reset()),
    turned_away(gateway_page()),
    turned_away(gateway_page(200)),
    turned_away(Reply(401, json={"detail": "no"})),
    turned_away(Reply(409, json={"detail": "is already in use"})),
    turned_away(Reply(429, json={"detail": "slowly"}, headers={"retry-after": "7"})),
    turned_away(Reply(500, json={"detail": "no"})),
    turned_away(Reply(503, json={"detail": "full"})),
]
KINDS = st.sampled_from(["retain", "get_operation", "retry_operation", "delete_operation", "get_document"])
ACTS = st.one_of(
    st.tuples(st.just("piece"), st.integers(0, 1)),
    st.tuples(st.just("fact"), st.integers(0, 1)),
    st.tuples(st.just("document"), st.integers(0, 1)),
    st.tuples(st.just("request"), st.integers(0, 1)),
    st.tuples(st.just("faults"), st.lists(st.tuples(KINDS, st.sampled_from(FAULTS)), min_size=1, max_size=4)),
    st.tuples(st.just("flush"), st.sampled_from([0.0, 5.0, 60.0])),
    st.tuples(st.just("clock"), st.sampled_from([0.4, 3.0, 700.0, -50.0, -90_000.0])),
    st.tuples(st.just("failing"), st.booleans()),
    st.tuples(st.just("busy"), st.booleans()),
    st.tuples(st.just("restart"), st.none()),
)


class Fast(Database):
    """A store that does not wait for the disk: no power fails here."""

    def _prepare(self, connection: sqlite3.Connection) -> None:
        super()._prepare(connection)
        connection.execute("PRAGMA synchronous = OFF")


class World:
    """A store with two keys, a server, and what was acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fake = FakeHindsight()
        self.clock = ManualClock(1.5e9)
        self.numbers = itertools.count(1)
        self.kept: dict[str, list[str]] = {}
        self.loose: list[str] = []
        self.begin()

    def begin(self) -> None:
        """Begin a process."""
        self.database = Fast(self.folder / "store.db")
        self.outbox = SqliteOutbox(self.database)
        keys = [Settings(api_url=URL, api_token=token, state_dir=self.folder) for token in ("one", "two")]
        self.keyring = Keyring(keys[0], connect=partial(connect, transport=FaultyTransport(self.fake)))
        # One bank for both keys; documents of each have names of their own.
        self.homes = [Address(self.keyring.add(key), "bank", (f"project:{number}",)) for number, key in enumerate(keys)]

    def keep(self, kind: str, key: int) -> None:
        """Have something acknowledged."""
        text, home, now = f"text {next(self.numbers)}", self.homes[key], self.clock.now()
        document = f"{key}-shared" if kind == "document" else f"{key}-{text}"
        fields = {"content": text, "document_id": document}
        if kind == "request":
            operation = str(uuid.uuid4())
            body = b'{"items":[{"content":"%b"}],"async":true,"operation_id":"%b"}' % (
                text.encode(),
                operation.encode(),
            )
            self.outbox.add_request(home, [{"content": text}], body=body, operation_id=operation, now=now)
            self.loose.append(text)
            return
        if kind == "piece":
            self.outbox.add_session(home, fields, now=now)
        else:
            self.outbox.add_fact(home, fields, now=now)
        self.kept.setdefault(document, []).append(text)

    def flush(self, patience: float, timeout: float = 300.0) -> None:
        """Flush as one process does, which may be broken off."""
        self.outbox.seal(now=self.clock.now(), everything=True)
        flusher = Flusher(
            self.outbox,
            self.keyring,
            together=self.database.write,
            clock=self.clock.now,
            monotonic=self.clock.now,
            sleep=self.clock.sleep_async,
            jitter=lambda: 0.5,
        )
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(flusher.flush(timeout=timeout, patience=patience))

    def act(self, name: str, what: object) -> None:
        """Do one thing of a schedule."""
        match name, what:
            case (("piece" | "fact" | "document" | "request"), int(key)):
                self.keep(name, key)
            case "faults", list(faults):
                for kind, fault in faults:
                    self.fake.fail(kind, fault)
            case "flush", float(patience):
                self.flush(patience)
            case "clock", float(seconds):
                self.clock.advance(seconds)
            case "failing", bool(fails):
                self.fake.model.failing = {f"text {number}" for number in range(1, 50, 3)} if fails else set()
            case "busy", bool(is_busy):
                self.fake.is_busy = is_busy
            case _:
                self.database.close()
                self.begin()

    def finish(self) -> None:
        """Let everything be well again, and flush until nothing is left."""
        self.fake.faults.clear()
        self.fake.model.failing.clear()
        self.fake.is_busy = False
        for _ in range(50):
            self.flush(700, timeout=10_000)
            if {batch.state for batch in self.outbox.batches(limit=1000)} <= {State.STORED, State.DEAD}:
                return
            self.clock.advance(700)
        raise AssertionError(self.outbox.overview(now=self.clock.now()))


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ACTS, min_size=10, max_size=30))
def test_every_schedule_ends_well(acts: list[tuple[str, object]]) -> None:
    """Each acknowledged text is there once, a document has its newest, and each was written in order.

    Only a second 409 in a row gives up anything, and says so.
    """
    world = World(Path(tempfile.mkdtemp()))
    try:
        for name, what in acts:
            world.act(name, what)
        world.finish()
        dead = world.outbox.batches(states=[State.DEAD], limit=1000)
    finally:
        world.database.close()
        shutil.rmtree(world.folder)
    assert all("is already in use" in batch.why for batch in dead)
    bank = world.fake.model.banks.get("bank", ModelBank())
    missing = 0
    for document, texts in world.kept.items():
        written = [text for name, text in bank.writes if name == document]
        assert written == [text for text in texts if text in written]
        missing += len(texts) - len(written)
    assert all(bank.loose[text] <= 1 for text in world.loose)
    missing += sum(text not in bank.loose for text in world.loose)
    assert missing == sum(batch.items for batch in dead)
