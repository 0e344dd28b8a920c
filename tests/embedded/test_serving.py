"""The embedded bank at an address: when it answers, whom, and how it ends."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
from typing import TYPE_CHECKING

import httpx
import pytest

from bankclient.embedded import serving
from bankclient.embedded.serving import BankServer
from bankclient.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from pathlib import Path

RETAIN = json.dumps({"items": [{"content": "a fact", "document_id": "d"}]}).encode()


def listens(url: str) -> bool:
    """Return whether anything accepts connections at `url`."""
    at = httpx.URL(url)
    try:
        socket.create_connection((at.host, at.port or 0)).close()
    except ConnectionRefusedError:
        return False
    return True


def send(url: str, *, body: bytes, length: int) -> socket.socket:
    """Send a retain with a body that may be shorter than it says; return the open connection."""
    at = httpx.URL(url)
    peer = socket.create_connection((at.host, at.port or 0))
    head = f"POST /v1/default/banks/b/memories HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n"
    peer.sendall(f"{head}content-type: application/json\r\n\r\n".encode() + body)
    return peer


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_it_answers_from_start_to_stop_and_again(path: Path, host: str) -> None:
    """Between start and stop it answers at its URL; afterwards nothing listens there, until it is started again."""
    server = BankServer(path, host=host)
    urls: set[str] = set()
    for _ in range(2):
        server.start()
        urls.add(server.url)
        assert httpx.get(f"{server.url}/version").json()["embedded"] is True
        assert server.stop()
        assert not listens(server.url)
    assert len(urls) == 1


def test_an_answer_is_sent_at_once(path: Path) -> None:
    """No connection waits for the client to acknowledge the first half of an answer."""
    with BankServer(path) as server, httpx.Client() as client:
        client.get(f"{server.url}/version")
        assert server._server is not None
        (connection,) = server._server.server_state.connections
        peer = connection.transport.get_extra_info("socket")
        assert peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8888"}, 200),
        ({"host": "127.0.0.1"}, 200),
        ({"host": "[::1]:8888"}, 200),
        ({"origin": "http://localhost:3000"}, 200),
        ({"host": "memories.example"}, 403),
        ({"host": "localhost.memories.example:8888"}, 403),
        ({"host": "127.0.0.1.memories.example"}, 403),
        ({"host": "192.0.2.1"}, 403),
        ({"host": ""}, 403),
        ({"host": "[nonsense"}, 403),
        ({"origin": "https://memories.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_no_web_page_is_answered(path: Path, headers: dict[str, str], status: int) -> None:
    """A browser names the page's host or origin; where that is not this machine, the memories stay here."""
    with BankServer(path) as server:
        answer = httpx.get(f"{server.url}/v1/default/banks", headers=headers)
    assert answer.status_code == status
    assert ("banks" in answer.json()) == (status == 200)


def test_a_port_that_is_taken_is_named_with_the_mend(path: Path) -> None:
    """The port is in the message, and which to take instead."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"^port {port} on 127\.0\.0\.1 is taken: .* \(0 is any free one\)$"):
            BankServer(path, port=port).start()


def test_an_address_that_is_not_this_machine_s_is_named(path: Path) -> None:
    """What the system says of it stands in the message."""
    with pytest.raises(ConfigError, match=r"^nothing can listen on 192\.0\.2\.1, port 0: .*; choose another address$"):
        BankServer(path, host="192.0.2.1").start()


def test_a_file_that_cannot_be_used_is_said_before_anything_listens(path: Path) -> None:
    """A file of a newer version is an error at once, not at the first request."""
    path.parent.mkdir(mode=0o700)
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(StoreError, match="written by a newer bankclient"):
        BankServer(path, port=1).start()


def test_what_is_being_answered_is_finished(path: Path) -> None:
    """A stop waits for a request that was taken; who does not want to wait is told that it goes on."""
    with BankServer(path) as server:
        httpx.put(f"{server.url}/v1/default/banks/b", json={})
        lock = sqlite3.connect(path, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        with send(server.url, body=RETAIN, length=len(RETAIN)) as peer:
            # Sent later and answered: so what was sent before has been read.
            assert httpx.get(f"{server.url}/health").status_code == 200
            assert not server.stop(within=0)
            lock.close()
            assert peer.recv(65536).startswith(b"HTTP/1.1 200")
        assert server.stop()


def test_half_a_request_does_not_hold_up_the_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that stops in the middle of its request is cut off, and nothing of it is stored."""
    monkeypatch.setattr(serving, "_FINISH_SECONDS", 0)
    with BankServer(path) as server, send(server.url, body=RETAIN[:-1], length=len(RETAIN)) as peer:
        assert httpx.get(f"{server.url}/health").status_code == 200
        assert server.stop()
        assert not peer.makefile("rb").read().startswith(b"HTTP/1.1 2")
        server.start()
        assert httpx.get(f"{server.url}/v1/default/banks").json()["banks"] == []


def test_waiting_ends_with_the_server(path: Path) -> None:
    """Whoever waits goes on when the server was stopped."""
    server = BankServer(path)
    server.wait()
    server.start()
    waiting = threading.Thread(target=server.wait)
    waiting.start()
    server.stop()
    waiting.join(30)
    assert not waiting.is_alive()
