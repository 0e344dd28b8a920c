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
from benchmarks.measure import compare, figure, timed
from benchmarks.server import ten_memories

if TYPE_CHECKING:
    from benchmarks.measure import Figure

__all__ = ["import_cost", "recall_async", "recall_sync"]

_CALLS = 1000
_QUERY = "which port did we pick"
_BODY = {"query": _QUERY, "budget": "mid", "max_tokens": 1024, "prefer_observations": True}


def recall_sync() -> Figure:
    """Compare the sync client with an `httpx.Client`."""
    with ten_memories() as url, BankClient(settings=Settings(api_url=url)) as client, httpx.Client() as bare:
        path = f"{url}/v1/default/banks/b/memories/recall"
        times = compare(
            lambda: timed(lambda: client.recall(_QUERY, bank="b")),
            lambda: timed(lambda: bare.post(path, json=_BODY).json()),
            _CALLS,
        )
    return figure("recall of 10 memories, sync", "httpx.Client", *times, target=1.3)


def recall_async() -> Figure:
    """Compare the async client with an `httpx.AsyncClient`."""

    async def measure(url: str) -> tuple[list[float], list[float]]:
        path = f"{url}/v1/default/banks/b/memories/recall"
        pairs: list[tuple[float, float]] = []
        async with AsyncBankClient(settings=Settings(api_url=url)) as client, httpx.AsyncClient() as bare:
            for _ in range(_CALLS + 1):
                began = time.perf_counter()
                await client.recall(_QUERY, bank="b")
                between = time.perf_counter()
                (await bare.post(path, json=_BODY)).json()
                pairs.append((between - began, time.perf_counter() - between))
        return [ours for ours, _ in pairs[1:]], [theirs for _, theirs in pairs[1:]]

    with ten_memories() as url:
        times = asyncio.run(measure(url))
    return figure("recall of 10 memories, async", "httpx.AsyncClient", *times, target=1.3)


def import_cost() -> Figure:
    """Compare a process that imports bankclient with one that does nothing."""

    def run(code: str) -> float:
        return timed(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    return figure(
        "import bankclient, whole process",
        "python -c pass",
        *compare(lambda: run("import bankclient"), lambda: run("pass"), 40),
        target=1.2,
    )
