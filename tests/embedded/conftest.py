"""An embedded bank for each test, and probes that reach it in process, over ASGI, and the real server beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.embedded import EmbeddedServer
from bankclient.testing.conformance import Answer, Probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the path of a bank's file that is not there yet, in a folder that is not there either."""
    return tmp_path / "state" / "bank.sqlite3"


@pytest.fixture
def server(path: Path) -> Iterator[EmbeddedServer]:
    """Give an embedded bank on a new file."""
    with EmbeddedServer(path) as server:
        yield server


@pytest.fixture
def probe(server: EmbeddedServer) -> Probe:
    """Give a probe of the embedded bank."""

    def send(method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        reply = server.answer(method, target, body, headers)
        return Answer(reply.status, reply.headers, reply.body)

    return Probe(send, "embedded", "bank", "other")


@pytest.fixture
def call(server: EmbeddedServer) -> Callable[..., Any]:
    """Give a function that sends JSON below the bank `bank` and returns status and JSON."""

    def call(method: str, below: str, body: object = None) -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        reply = server.answer(method, f"/v1/default/banks/bank{below}", content, {"content-type": "application/json"})
        return reply.status, json.loads(reply.body)

    return call
