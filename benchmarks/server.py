"""Servers in processes of their own, so that their work is not counted as the client's; they answer at once.

`python -m benchmarks.server memories` answers every request with ten memories, `… operations` takes every retain and
has completed it when it is asked. Each prints its URL and serves until its standard input ends.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bankclient.testing.answers import Reply
from bankclient.testing.scripted import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from bankclient.testing.scripted import ScriptedRequest

__all__ = ["operations", "ten_memories"]

_ROOT = Path(__file__).parent.parent


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


_MEMORIES = Reply(
    json={
        "results": [_memory(number) for number in range(10)],
        "trace": None,
        "entities": None,
        "chunks": None,
        "source_facts": None,
        "source_facts_truncated": None,
    }
)


def _operation(request: ScriptedRequest) -> Reply:
    """Answer a background retain as accepted under the caller's id, and the question for an operation as completed."""
    if request.method == "POST":
        sent = request.json()
        taken = {"success": True, "bank_id": "b", "items_count": len(sent["items"]), "async": True}
        return Reply(json=taken | {"operation_id": sent["operation_id"], "operation_ids": None, "usage": None})
    return Reply(json={"operation_id": request.path.rpartition("/")[2], "status": "completed"})


_HANDLERS: dict[str, Callable[[ScriptedRequest], Reply]] = {"memories": lambda _: _MEMORIES, "operations": _operation}


def ten_memories() -> contextlib.AbstractContextManager[str]:
    """Give the URL of a server that answers ten memories."""
    return _running("memories")


def operations() -> contextlib.AbstractContextManager[str]:
    """Give the URL of a server that stores whatever it is sent."""
    return _running("operations")


@contextlib.contextmanager
def _running(kind: str) -> Generator[str]:
    command = [sys.executable, "-m", "benchmarks.server", kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        yield server.stdout.readline().strip()
        server.stdin.close()


if __name__ == "__main__":
    with ScriptedServer(handler=_HANDLERS[sys.argv[1]]) as scripted:
        print(scripted.url, flush=True)
        sys.stdin.read()
