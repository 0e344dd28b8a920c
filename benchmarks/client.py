"""A recall of ten memories through each client, beside the same call in bare httpx; and what an import costs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import httpx

from bankclient import AsyncBankClient, BankClient
from bankclient.settings import Settings
from benchmarks.measure import compare, cpu_timed, figure, timed
from benchmarks.server import ten_memories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.measure import Figure, Stopwatch

__all__ = ["import_cost", "recall_async", "recall_sync"]

_CALLS = 1500
_QUERY = "which port did we pick"
_BODY = {"query": _QUERY, "budget": "mid", "max_tokens": 1024, "prefer_observations": True}


def recall_sync(calls: int = _CALLS) -> Iterator[Figure]:
    """Compare a recall of 10 memories by the sync client with the same call in an `httpx.Client`."""
    with ten_memories() as url, BankClient(settings=Settings(api_url=url)) as client, httpx.Client() as bare:
        path = f"{url}/v1/default/banks/b/memories/recall"

        def measure(stopwatch: Stopwatch) -> list[list[float]]:
            return compare(
                calls,
                lambda: stopwatch(lambda: client.recall(_QUERY, bank="b")),
                lambda: stopwatch(lambda: bare.post(path, json=_BODY).json()),
            )

        for name, stopwatch in (("", timed), (", processor time", cpu_timed)):
            yield figure(f"recall of 10 memories, sync{name}", "httpx.Client", *measure(stopwatch), target=1.3)


def recall_async(calls: int = _CALLS) -> Iterator[Figure]:
    """Compare a recall of 10 memories by the async client with the same call in an `httpx.AsyncClient`."""
    with ten_memories() as url:
        for name, clock in (("", time.perf_counter), (", processor time", time.process_time)):
            times = asyncio.run(_recall_async(url, calls, clock))
            yield figure(f"recall of 10 memories, async{name}", "httpx.AsyncClient", *times, target=1.3)


async def _recall_async(url: str, calls: int, clock: Callable[[], float]) -> tuple[list[float], list[float]]:
    """Return the times of both clients, taken in turn after one round that does not count."""
    ours: list[float] = []
    reference: list[float] = []
    path = f"{url}/v1/default/banks/b/memories/recall"
    async with AsyncBankClient(settings=Settings(api_url=url)) as client, httpx.AsyncClient() as bare:

        async def recall() -> None:
            began = clock()
            await client.recall(_QUERY, bank="b")
            ours.append(clock() - began)

        async def post() -> None:
            began = clock()
            (await bare.post(path, json=_BODY)).json()
            reference.append(clock() - began)

        for number in range(calls + 1):
            for each in (recall, post) if number % 2 else (post, recall):
                await each()
    return ours[1:], reference[1:]


def import_cost(rounds: int = 40) -> Iterator[Figure]:
    """Compare a process that imports bankclient with one that does nothing."""

    def run(code: str) -> float:
        return timed(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    yield figure(
        "import bankclient, whole process",
        "python -c pass",
        *compare(rounds, lambda: run("import bankclient"), lambda: run("pass")),
        target=1.2,
    )
