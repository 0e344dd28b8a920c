"""A recall of ten memories through each client, beside the same call in bare httpx; and what an import costs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import Any

import httpx

from bankclient import AsyncBankClient, BankClient
from bankclient.settings import Settings
from bankclient.testing.answers import Reply
from bankclient.testing.scripted import ScriptedServer
from benchmarks.measure import Figure, compare, figure, timed

__all__ = ["import_cost", "recall_async", "recall_sync"]

_CALLS = 50
_ROUNDS = 40
_BODY: dict[str, Any] = {"query": "which port did we pick", "budget": "mid", "max_tokens": 1024}


def _memory(number: int) -> dict[str, object]:
    return {
        "id": f"6ba7b810-9dad-11d1-80b4-00c04fd430{number:02x}",
        "text": f"The service listens on port {4700 + number}, decided after the second review of the deployment.",
        "type": "world",
        "entities": None,
        "context": "claude-code",
        "occurred_start": None,
        "occurred_end": None,
        "mentioned_at": "2026-01-02T03:04:05.678901+00:00",
        "document_id": f"session-{number}",
        "metadata": {"turn": str(number)},
        "chunk_id": f"bank_session-{number}_0",
        "tags": ["project:general"],
        "source_fact_ids": None,
        "scores": {"final": 0.5, "reranker": None, "semantic": 0.4, "keyword": 0.2},
        "attachments": None,
    }


_REPLY = Reply(
    json={
        "results": [_memory(number) for number in range(10)],
        "trace": None,
        "entities": None,
        "chunks": None,
        "source_facts": None,
        "source_facts_truncated": None,
    }
)


def recall_sync() -> Figure:
    """Compare the sync client with an `httpx.Client`."""
    with ScriptedServer(handler=lambda _: _REPLY) as server:
        url = f"{server.url}/v1/default/banks/b/memories/recall"
        with BankClient(settings=Settings(api_url=server.url)) as client, httpx.Client() as bare:
            times = compare(
                lambda: timed(lambda: [client.recall("which port did we pick", bank="b") for _ in range(_CALLS)]),
                lambda: timed(lambda: [bare.post(url, json=_BODY).json() for _ in range(_CALLS)]),
                _ROUNDS,
            )
    return figure("recall of 10 memories, sync", "httpx.Client", *times, target=1.3)


def recall_async() -> Figure:
    """Compare the async client with an `httpx.AsyncClient`."""

    async def measure(server: ScriptedServer) -> tuple[list[float], list[float]]:
        url = f"{server.url}/v1/default/banks/b/memories/recall"
        ours: list[float] = []
        theirs: list[float] = []
        async with AsyncBankClient(settings=Settings(api_url=server.url)) as client, httpx.AsyncClient() as bare:
            for _ in range(_ROUNDS + 1):
                began = time.perf_counter()
                for _ in range(_CALLS):
                    await client.recall("which port did we pick", bank="b")
                between = time.perf_counter()
                for _ in range(_CALLS):
                    (await bare.post(url, json=_BODY)).json()
                ours.append(between - began)
                theirs.append(time.perf_counter() - between)
        return ours[1:], theirs[1:]

    with ScriptedServer(handler=lambda _: _REPLY) as server:
        times = asyncio.run(measure(server))
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
