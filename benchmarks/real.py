"""The embedded bank beside a real Hindsight server: the same items, the same queries, through the same client."""

from __future__ import annotations

import contextlib
import os
import tempfile
import uuid
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bankclient import BankClient
from bankclient.settings import Settings
from bankclient.testing.hindsight import HindsightServer
from benchmarks.corpus import SHAPES, memories, queries
from benchmarks.measure import NotRun, compare, figure, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from benchmarks.measure import Figure

__all__ = ["recall_beside_server"]

_BATCH = 1_000
_QUERIES = 12
_LOADING_SECONDS = 900.0


def recall_beside_server(size: int = 10_000, rounds: int = 48) -> Iterator[Figure]:
    """Compare a recall from the embedded bank with one from a real server that holds the same 10,000 memories.

    The server's embeddings are hashed words from a local stand-in, and it reranks without a model: a server with real
    models takes longer. BANKCLIENT_TEST_URL names a server that runs; one is started with BANKCLIENT_HINDSIGHT, the
    Python of an environment that has the extra `hindsight`.
    """
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(_bank(stack.enter_context(_server()), folder))
        embedded = stack.enter_context(_bank("embedded", folder))
        for client in (server, embedded):
            _load(client, size)
        for shape in SHAPES:
            times = compare(rounds, _recalling(embedded, shape), _recalling(server, shape))
            yield figure(f"recall of {shape}, {size:,} memories", "the real server", *times, target=1.0)


@contextlib.contextmanager
def _server() -> Generator[str]:
    """Give the URL of a real server."""
    if url := os.environ.get("BANKCLIENT_TEST_URL"):
        yield url
    elif python := os.environ.get("BANKCLIENT_HINDSIGHT"):
        with HindsightServer(python) as server:
            yield server.url
    else:
        raise NotRun(
            "needs a real Hindsight server: set BANKCLIENT_TEST_URL to the URL of one, or BANKCLIENT_HINDSIGHT to the"
            " Python of an environment that has the extra `hindsight`"
        )


@contextlib.contextmanager
def _bank(url: str, folder: str) -> Generator[BankClient]:
    """Give a client of a bank of its own, which is deleted afterwards."""
    bank = f"benchmark-{uuid.uuid4().hex}"
    settings = Settings(api_url=url, bank_id=bank, scoping="global", state_dir=Path(folder))
    with BankClient(settings=settings) as client:
        try:
            yield client
        finally:
            client.banks.delete(bank)


def _load(client: BankClient, size: int) -> None:
    """Retain so many items; those of a batch share a document, for a server takes each document apart by itself."""
    batches = [memories(min(_BATCH, size - start), start) for start in range(0, size, _BATCH)]
    accepted = [
        client.retain_many([item | {"document_id": None} for item in each], background=True) for each in batches
    ]
    for each in accepted:
        client.operations.wait(str(each.operation_id), timeout=_LOADING_SECONDS)
    held = client.banks.stats(refresh=True).total_nodes
    if held != size:
        raise RuntimeError(f"{client.settings.api_url} made {held} memories of {size} items")


def _shared(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "document_id"}


def _recalling(client: BankClient, shape: str) -> Callable[[], float]:
    """Return what asks the next of some queries, and returns how long that took."""
    asked = cycle(queries(shape, _QUERIES))
    return lambda: timed(lambda: client.recall(**next(asked)))
