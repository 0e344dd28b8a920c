"""The flusher: for how long sending and confirming an item keeps this process busy, whatever the server takes."""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from bankclient.flusher import Flusher, Keyring
from bankclient.settings import Settings
from bankclient.store.database import Database
from bankclient.store.fingerprint import KEYLESS
from bankclient.store.outbox import Address, Destination, Kind, SqliteOutbox, State
from benchmarks.corpus import memories
from benchmarks.measure import cpu_timed, figure
from benchmarks.server import operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.measure import Figure

__all__ = ["flush"]

_MILLISECOND = 0.001
_LIMIT = 600.0


def flush(rounds: int = 3, facts: int = 10_000, pieces: int = 1_000) -> Iterator[Figure]:
    """Compare the processor time of flushing one of 10,000 queued facts with a millisecond, and with bare requests.

    The server stores at once, in a process of its own. The bare requests are the same ones, as many, by an
    `httpx.AsyncClient`. Facts go 16 in a request; a piece of a session is a request of its own, and information.
    """
    with operations() as url:
        for name, kind, count, target in (
            ("a fact", Kind.FACT, facts, 1.0),
            ("a piece of a session", Kind.SESSION, pieces, None),
        ):
            times = [_flushed_and_bare(url, kind, count) for _ in range(rounds)]
            ours, bare = [each[0] / count for each in times], [each[1] / count for each in times]
            yield figure(f"flushing {name}", "a millisecond", ours, [_MILLISECOND] * rounds, target=target)
            yield figure(f"flushing {name}", "bare httpx", ours, bare)


def _flushed_and_bare(url: str, kind: Kind, count: int) -> tuple[float, float]:
    """Return the processor time of flushing so many items, and of sending the same requests without an outbox."""
    with tempfile.TemporaryDirectory() as folder, closing(Database(Path(folder) / "store")) as database:
        outbox = SqliteOutbox(database)
        keyring = Keyring(Settings(api_url=url, state_dir=Path(folder)))
        address = Address(Destination(url, KEYLESS), "b", ("project:general",))
        add = outbox.add_fact if kind is Kind.FACT else outbox.add_session
        with database.write():
            for item in memories(count):
                add(address, item, now=time.time())
        outbox.seal(now=time.time(), everything=True)
        bodies = [outbox.text(batch.id) or b"" for batch in outbox.batches(limit=count)]
        ours = cpu_timed(lambda: asyncio.run(_flush(Flusher(outbox, keyring, together=database.write))))
        states = outbox.overview(now=time.time()).states
    if states[State.STORED].items != count:
        raise RuntimeError(f"not everything was flushed: {states}")
    return ours, cpu_timed(lambda: asyncio.run(_send(url, bodies)))


async def _flush(flusher: Flusher) -> None:
    try:
        await flusher.flush(timeout=_LIMIT)
    finally:
        await flusher.keyring.close()


async def _send(url: str, bodies: list[bytes]) -> None:
    """Send what a flush sends: each batch, and the question whether it is stored."""
    bank = f"{url}/v1/default/banks/b"
    async with httpx.AsyncClient() as client:
        for body in bodies:
            accepted = await client.post(f"{bank}/memories", content=body, headers={"content-type": "application/json"})
            (await client.get(f"{bank}/operations/{accepted.json()['operation_id']}")).json()
