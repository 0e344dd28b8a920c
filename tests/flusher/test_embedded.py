"""Flushing into the embedded bank: no server, and still nothing lost and nothing twice, whoever is killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.embedded import EmbeddedServer
from bankclient.flusher import Flusher, Keyring
from bankclient.settings import Settings
from bankclient.store.database import STORE_FILE, Database
from bankclient.store.outbox import Address, Destination, SqliteOutbox, State

if TYPE_CHECKING:
    from pathlib import Path

HOME = Address(Destination("embedded", "keyless"), "bank", ("project:a",))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Give a state folder."""
    return tmp_path / "state"


def flush(database: Database, state: Path) -> None:
    """Flush, and close the bank."""
    keyring = Keyring(Settings(api_url="embedded", state_dir=state))

    async def work() -> None:
        await Flusher(SqliteOutbox(database), keyring, together=database.write).flush(timeout=60)
        await keyring.close()

    asyncio.run(work())


def held(state: Path, what: str) -> list[dict[str, Any]]:
    """Return the documents, or the memories, of the bank."""
    with EmbeddedServer(state / "embedded.sqlite3") as server:
        reply = server.answer("GET", f"/v1/default/banks/bank/{what}?limit=1000")
    items: list[dict[str, Any]] = json.loads(reply.body)["items"]
    return items


def test_what_is_queued_is_in_the_bank(state: Path) -> None:
    """Facts, pieces and a caller's request alike; a document that was forgotten on its way is not."""
    with closing(Database(state / STORE_FILE)) as database:
        outbox = SqliteOutbox(database)
        outbox.add_fact(HOME, {"content": "a fact"}, now=time.time())
        outbox.add_session(HOME, {"content": "a piece", "document_id": "s.1"}, now=time.time())
        outbox.seal(now=time.time(), everything=True)
        flush(database, state)
        assert [batch.state for batch in outbox.batches()] == [State.STORED] * 2
    assert sorted(item["text"] for item in held(state, "memories/list")) == ["a fact", "a piece"]
    assert {tag for item in held(state, "documents") for tag in item["tags"]} == {"project:a"}


@pytest.mark.parametrize("seed", range(2))
def test_being_killed_at_any_point(state: Path, seed: int) -> None:
    """Processes that flush and are killed leave a bank in which the last one completes what is missing."""
    texts = [f"text {number:03}" for number in range(40)]
    chance = random.Random(seed)  # noqa: S311 - which point is tried is no secret
    command = [sys.executable, "-W", "error", "-m", "bankclient", "flush"]
    with closing(Database(state / STORE_FILE)) as database:
        outbox = SqliteOutbox(database)
        with database.write():
            for text in texts:
                outbox.add_session(HOME, {"content": text, "document_id": f"s.{text}"}, now=time.time())
        for _ in range(4):
            enough = unsent(outbox) - chance.randrange(1, 10)
            with subprocess.Popen(command, env=environment(state)) as process:
                while unsent(outbox) > enough and process.poll() is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(0.01)
                process.kill()
            free(outbox)
        flush(database, state)
        assert {batch.state for batch in outbox.batches()} == {State.STORED}
    assert sorted(item["id"] for item in held(state, "documents")) == [f"s.{text}" for text in texts]
    assert sorted(item["text"] for item in held(state, "memories/list")) == texts


def unsent(outbox: SqliteOutbox) -> int:
    """Return how much is on its way or before it."""
    return len(outbox.batches(states=[State.SEALED, State.SENDING, State.WAITING]))


def free(outbox: SqliteOutbox) -> None:
    """Take the lease that was left behind, as somebody does whose clock is ahead, and give it back."""
    later = time.time() + 60
    if lease := outbox.lease(HOME.destination, holder="next", seconds=0, now=later):
        outbox.release(lease)


def environment(state: Path) -> dict[str, str]:
    """Return the environment of a command on the embedded bank."""
    return {**os.environ, "HINDSIGHT_API_URL": "embedded", "HINDSIGHT_STATE_DIR": str(state)}
