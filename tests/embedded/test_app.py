"""The embedded bank behind ASGI: off the event loop, bytes as they came, closed at shutdown."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from bankclient.embedded import EmbeddedServer, Reply
from bankclient.embedded.app import create_app

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.anyio


class Recorder(EmbeddedServer):
    """Keeps what it was asked and in which thread."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked: list[tuple[str, str, bytes, dict[str, str]]] = []
        self.threads: set[int] = set()

    def answer(  # noqa: D102 - as its parent has it
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Reply:
        self.threads.add(threading.get_ident())
        self.asked.append((method, target, body, dict(headers or {})))
        return super().answer(method, target, body, headers or {})


@pytest.fixture
def recorder(path: Path) -> Any:  # noqa: ANN401 - a generator of recorders
    """Give a server that keeps what it was asked."""
    with Recorder(path) as recorder:
        yield recorder


def client(server: EmbeddedServer) -> httpx.AsyncClient:
    """Return a client of the application."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(create_app(server)), base_url="http://embedded")


async def test_a_request_is_answered_off_the_event_loop(recorder: Recorder) -> None:
    """SQLite is never waited for in the loop's thread."""
    async with client(recorder) as http:
        assert (await http.get("/v1/default/banks")).status_code == 200
    assert recorder.threads
    assert threading.get_ident() not in recorder.threads


async def test_path_query_body_and_headers_arrive_as_they_were_sent(recorder: Recorder) -> None:
    """Percent escapes are the server's to read, and the host is there for redirects."""
    async with client(recorder) as http:
        url = httpx.URL("http://embedded/v1/default/banks/a%20b%3F/memories?x=%C5%82&x=2")
        reply = await http.post(url, content=b'{"items": []}', headers={"content-type": "application/json"})
        assert reply.json()["bank_id"] == "a b?"
        moved = await http.get("/v1/default/banks/")
    method, target, body, headers = recorder.asked[0]
    assert (method, target, body) == ("POST", "/v1/default/banks/a%20b%3F/memories?x=%C5%82&x=2", b'{"items": []}')
    assert headers["content-type"] == "application/json"
    assert (moved.status_code, moved.headers["location"]) == (307, "http://embedded/v1/default/banks")


async def test_every_reply_says_who_answers(recorder: Recorder) -> None:
    """Also an error; and the version says it in its body."""
    async with client(recorder) as http:
        for path in ("/version", "/nope"):
            assert (await http.get(path)).headers["x-hindsight-server"] == "bankclient-embedded"
        assert (await http.get("/version")).json()["embedded"] is True


async def test_a_head_request_has_no_body(recorder: Recorder) -> None:
    """It is refused as on the server."""
    async with client(recorder) as http:
        reply = await http.head("/v1/default/banks")
    assert (reply.status_code, reply.content) == (405, b"")


async def test_shutdown_closes_the_file(recorder: Recorder) -> None:
    """The application's end is the server's."""
    messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[str] = []

    async def receive() -> Any:  # noqa: ANN401 - an ASGI message
        return messages.pop(0)

    async def send(message: Any) -> None:  # noqa: ANN401 - an ASGI message
        sent.append(message["type"])

    await create_app(recorder)({"type": "lifespan", "asgi": {"version": "3.0"}}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert b"is closed" in recorder.answer("GET", "/v1/default/banks").body


async def test_half_a_request_is_none(recorder: Recorder) -> None:
    """A client that goes away while it sends is not answered, and nothing is stored."""
    messages = [
        {"type": "http.request", "body": b'{"items": [', "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Any:  # noqa: ANN401 - an ASGI message
        return messages.pop(0)

    async def send(message: Any) -> None:  # noqa: ANN401 - an ASGI message
        raise AssertionError(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/default/banks/b/memories",
        "raw_path": b"/v1/default/banks/b/memories",
        "query_string": b"",
        "headers": [],
    }
    await create_app(recorder)(scope, receive, send)
    assert recorder.asked == []
