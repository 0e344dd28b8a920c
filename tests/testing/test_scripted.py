"""The scripted server, its answers and the black hole."""

from __future__ import annotations

import http.client
import socket
import threading
from typing import TYPE_CHECKING

import httpx
import pytest

from bankclient.testing.answers import (
    Answer,
    Cut,
    Drip,
    Flood,
    Held,
    Raw,
    Reply,
    Reset,
    Silence,
    gateway_page,
)
from bankclient.testing.scripted import ScriptedRequest, ScriptedServer, black_hole

if TYPE_CHECKING:
    from collections.abc import Iterator

FOREVER = 30.0


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    """Give a plain HTTP client."""
    with httpx.Client(timeout=FOREVER) as client:
        yield client


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_request_is_recorded_as_it_arrived(client: httpx.Client, host: str) -> None:
    """Method, target, path, query, headers, body and connection are on record, on both address families."""
    with ScriptedServer(Reply(json={"ok": True}), host=host) as server:
        reply = client.post(f"{server.url}/a%2Fb?q=%C5%BC&q=", json={"n": 1}, headers={"X-One": "1"})
    assert reply.json() == {"ok": True}
    (request,) = server.requests
    assert (request.method, request.target, request.path) == ("POST", "/a%2Fb?q=%C5%BC&q=", "/a%2Fb")
    assert request.query == [("q", "ż"), ("q", "")]
    assert (request.headers["x-one"], request.headers["content-type"]) == ("1", "application/json")
    assert (request.json(), request.connection) == ({"n": 1}, 1)


def test_a_chunked_request_body_is_put_together(client: httpx.Client) -> None:
    """A body that is sent in chunks is recorded as one, with or without trailers behind it."""
    with ScriptedServer(Reply(204), Reply(204)) as server:
        client.post(server.url, content=iter([b"one ", b"two"]))
        with socket.create_connection(("127.0.0.1", server.port), timeout=FOREVER) as peer:
            peer.sendall(b"PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\none\r\n0\r\nsum: 1\r\n\r\n")
            assert peer.recv(100).startswith(b"HTTP/1.1 204 ")
    assert [request.body for request in server.requests] == [b"one two", b"one"]


def test_a_header_that_comes_twice_is_one_list(client: httpx.Client) -> None:
    """Repeated headers are joined by a comma, as HTTP allows."""
    with ScriptedServer(Reply()) as server:
        client.get(server.url, headers=[("X-Tag", "a"), ("X-Tag", "b")])
    assert server.requests[0].headers["x-tag"] == "a, b"


def test_expect_100_continue_is_honoured() -> None:
    """A peer that asks before it sends its body is told to go on."""
    with ScriptedServer(Reply()) as server, socket.create_connection(("127.0.0.1", server.port)) as peer:
        peer.sendall(b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert peer.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        peer.sendall(b"ok")
        assert peer.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
    assert server.requests[0].body == b"ok"


def test_the_script_is_followed_then_the_handler_then_the_end(client: httpx.Client) -> None:
    """Answers come in their order, later ones can be added, and an empty script says so in a 500."""
    with ScriptedServer(Reply(201)) as server:
        server.then(Reply(202))
        statuses = [client.get(server.url).status_code for _ in range(2)]
        assert statuses == [201, 202]
        over = client.get(server.url)
        assert (over.status_code, "no answer left" in over.text) == (500, True)
    with ScriptedServer(Reply(201), handler=lambda request: Reply(json=request.target)) as server:
        assert client.get(server.url).status_code == 201
        assert client.get(f"{server.url}/x").json() == "/x"


def test_a_connection_is_kept_closed_or_dropped_as_told(client: httpx.Client) -> None:
    """`keep` reuses the connection, `close` announces its end, `drop` ends it without a word."""
    with ScriptedServer(Reply(), Reply(connection="close"), Reply(connection="drop"), Reply()) as server:
        replies = [client.get(server.url) for _ in range(2)]
        assert ["connection" in reply.headers for reply in replies] == [False, True]
        assert "connection" not in client.get(server.url).headers
        server.wait_for(lambda server: server.open_connections == 0)
        client.get(server.url)
        assert [request.connection for request in server.requests] == [1, 1, 2, 3]
        assert server.accepted == 3


def test_a_reply_can_be_chunked_and_have_any_status_and_header(client: httpx.Client) -> None:
    """A chunked reply has no length; odd statuses and headers of the caller's own pass."""
    with ScriptedServer(
        Reply(599, body=b"abc", headers={"Retry-After": "2"}, chunked=True), Reply(chunked=True)
    ) as server:
        reply = client.get(server.url)
        assert (reply.status_code, reply.content, reply.headers["retry-after"]) == (599, b"abc", "2")
        assert "content-length" not in reply.headers
        assert client.get(server.url).content == b""


def test_a_gateway_page_is_html(client: httpx.Client) -> None:
    """The page of a gateway is a 502 in HTML."""
    with ScriptedServer(gateway_page()) as server:
        reply = client.get(server.url)
    assert (reply.status_code, reply.headers["content-type"]) == (502, "text/html")
    assert b"<html>" in reply.content


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Cut(Reply(json="0123456789"), sent=0), httpx.RemoteProtocolError),
        (Cut(Reply(json="0123456789")), httpx.RemoteProtocolError),
        (Raw(b"\x15\x03\x01 this is no HTTP\r\n\r\n"), httpx.RemoteProtocolError),
        (Raw(), httpx.RemoteProtocolError),
        (Raw(b"HTTP/1.1 200 OK\r\ncontent-le"), httpx.RemoteProtocolError),
        (Reset(), httpx.ReadError),
        (Reset(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"), httpx.ReadError),
    ],
    ids=repr,
)
def test_a_fault_breaks_one_request_and_the_next_is_well(
    client: httpx.Client, answer: Answer, error: type[Exception]
) -> None:
    """Each way of failing reaches the client as what it is, and harms no later connection."""
    with ScriptedServer(answer, Reply(json=1)) as server:
        with pytest.raises(error):
            client.get(server.url)
        assert client.get(server.url).json() == 1


def test_half_a_body_is_what_arrives() -> None:
    """A cut reply has its whole length in the head and half of its bytes behind it."""
    with ScriptedServer(Cut(Reply(body=b"0123456789"))) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("GET", "/")
        reply = connection.getresponse()
        with pytest.raises(http.client.IncompleteRead) as caught:
            reply.read()
        connection.close()
    assert (reply.headers["content-length"], caught.value.partial) == ("10", b"01234")


@pytest.mark.parametrize("head", [False, True])
def test_a_drip_arrives_whole_and_defeats_a_limit_per_read(client: httpx.Client, head: bool) -> None:
    """Pieces that come faster than the client's limit for one read are all waited for."""
    with ScriptedServer(Drip(Reply(body=b"0123456789"), every=0.001, size=3, head=head)) as server:
        assert client.get(server.url).content == b"0123456789"


@pytest.mark.parametrize("answer", [Silence(), Drip(Reply(body=b"ab"), every=3600.0), Flood()], ids=repr)
def test_an_endless_answer_ends_when_the_peer_goes(answer: Answer) -> None:
    """The server notices that its peer has gone, however long it would have waited or sent."""
    with ScriptedServer(answer) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as peer:
            peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
            server.wait_for(lambda server: len(server.requests) == 1)
            assert server.open_connections == 1
        server.wait_for(lambda server: server.open_connections == 0)


@pytest.mark.parametrize(
    "answer",
    [Silence(), Drip(Reply(body=b"ab"), every=3600.0), Flood(), Held(threading.Event(), Reply())],
    ids=["Silence", "Drip", "Flood", "Held"],
)
def test_closing_the_server_cuts_what_is_under_way(answer: Answer) -> None:
    """`close` ends every thread of the server's while a peer still waits, and frees the port."""
    server = ScriptedServer(answer)
    with socket.create_connection(("127.0.0.1", server.port)) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
        server.wait_for(lambda server: len(server.requests) == 1)
        before = threading.active_count()
        server.close()
        assert threading.active_count() == before - 2
    socket.create_server(("127.0.0.1", server.port)).close()
    server.close()


def test_a_held_answer_waits_for_its_event(client: httpx.Client) -> None:
    """Nothing is sent until the event is set; then the answer inside is played."""
    until = threading.Event()
    with ScriptedServer(Held(until, Reply(json="late"))) as server:
        with pytest.raises(httpx.ReadTimeout):
            client.get(server.url, timeout=0.05)
        server.then(Held(until, Reply(json="late")))
        until.set()
        assert client.get(server.url).json() == "late"


def test_a_request_that_comes_while_another_is_answered_waits_its_turn() -> None:
    """Pipelined requests are kept and answered in their order, and a close is still seen behind them."""
    until = threading.Event()
    request = b"GET /%d HTTP/1.1\r\n\r\n"
    with ScriptedServer(Held(until, Reply()), Reply(), Silence()) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=FOREVER) as peer:
            peer.sendall(request % 1)
            server.wait_for(lambda server: len(server.requests) == 1)
            peer.sendall(request % 2 + request % 3)
            until.set()
            server.wait_for(lambda server: len(server.requests) == 3)
            peer.sendall(request % 4)
        server.wait_for(lambda server: server.open_connections == 0)
        assert [request.target for request in server.requests] == ["/1", "/2", "/3"]


@pytest.mark.parametrize("size", [2, 3, 200_000])
def test_a_flood_of_a_size_is_json_of_that_size(client: httpx.Client, size: int) -> None:
    """A flood with an end is a JSON string of so many bytes, and the connection is kept."""
    with ScriptedServer(Flood(size), Reply()) as server:
        reply = client.get(server.url)
        assert len(reply.content) == size
        assert isinstance(reply.json(), str)
        client.get(server.url)
        assert server.accepted == 1


def test_a_handler_that_raises_fails_the_test_that_wrote_it(client: httpx.Client) -> None:
    """The client gets a 500, and `close` raises the handler's own error."""

    def handler(request: ScriptedRequest) -> Answer:
        raise LookupError(request.target)

    with pytest.raises(LookupError, match="/x"), ScriptedServer(handler=handler) as server:
        assert client.get(f"{server.url}/x").status_code == 500


def test_the_tests_own_failure_comes_before_the_handlers(client: httpx.Client) -> None:
    """Where the block has failed already, its error is the one that is seen."""

    def handler(request: ScriptedRequest) -> Answer:
        raise LookupError(request.target)

    with pytest.raises(ValueError, match="mine"), ScriptedServer(handler=handler) as server:  # noqa: PT012 - the exit must not raise
        client.get(server.url)
        raise ValueError("mine")


def test_waiting_for_what_does_not_happen_says_what_did() -> None:
    """`wait_for` gives up in time and counts what it has seen."""
    with (
        ScriptedServer() as server,
        pytest.raises(TimeoutError, match=r"had 0 connections \(0 open\) and 0 requests"),
    ):
        server.wait_for(lambda server: server.accepted > 0, timeout=0.01)


@pytest.mark.parametrize(
    "noise",
    [
        b"\x16\x03\x01\x02\x00",
        b"a b\r\n",
        b"GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        b"PUT / HTTP/1.1\r\ncontent-length: 3\r\n\r\nab",
        b"PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nz\r\n",
    ],
)
def test_a_peer_that_does_not_speak_http_is_cut(noise: bytes) -> None:
    """Noise closes its own connection and records no request."""
    with ScriptedServer() as server, socket.create_connection(("127.0.0.1", server.port), timeout=FOREVER) as peer:
        peer.sendall(noise)
        peer.shutdown(socket.SHUT_WR)
        assert peer.recv(100) == b""
        assert server.requests == ()


def test_connecting_to_the_black_hole_hangs() -> None:
    """The address neither takes nor refuses a connection."""
    with black_hole() as url, httpx.Client(timeout=0.2) as client, pytest.raises(httpx.ConnectTimeout):
        client.get(url)
