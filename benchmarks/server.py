"""A server in a process of its own that answers every request with ten memories, always at once.

`python -m benchmarks.server` prints its URL and serves until its standard input ends.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING

from bankclient.testing.answers import Reply
from bankclient.testing.scripted import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["ten_memories"]


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


@contextlib.contextmanager
def ten_memories() -> Generator[str, None, None]:
    """Give the URL of such a server. Its own process keeps its work out of the client's."""
    command = [sys.executable, "-m", "benchmarks.server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        yield server.stdout.readline().strip()
        server.stdin.close()


if __name__ == "__main__":
    with ScriptedServer(handler=lambda _: _REPLY) as scripted:
        print(scripted.url, flush=True)
        sys.stdin.read()
