"""The transports against a real socket: wall-clock limits, broken peers, sizes, connections. Sync and async alike."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import json
import os
import socket
import threading
import time
import warnings
from typing import TYPE_CHECKING, Protocol

import pytest
import respx

from bankclient.client import http as module
from bankclient.client.http import AsyncHttpTransport, HttpTransport, Route
from bankclient.client.transport import NoAnswer, Request, Response, UnreadableReply
from bankclient.errors import ConnectFailed, ConnectionLost, InvalidInput, TimedOut, Unavailable
from bankclient.testing.answers import Cut, Drip, Flood, Raw, Reply, Reset, Silence
from bankclient.testing.scripted import ScriptedServer, black_hole

if TYPE_CHECKING:
    from collections.abc import Iterator

HELLO = Reply(json={"hello": "there"})


class Sender(Protocol):
    """A transport behind a sync face."""

    def send(self, request: Request, limit: float) -> Response:
        """Send one request."""
        ...

    def stream(self, request: Request, limit: float) -> tuple[int, bytes]:
        """Stream one request; return its status and whole body."""
        ...


class SyncSender:
    """The sync transport."""

    def __init__(self, route: Route) -> None:
        self.transport = HttpTransport(route)

    def send(self, request: Request, limit: float) -> Response:
        """Send one request."""
        return self.transport.send(request, limit)

    def stream(self, request: Request, limit: float) -> tuple[int, bytes]:
        """Stream one request."""
        with self.transport.stream(request, limit) as answer:
            return answer.status, b"".join(answer.iter_bytes())

    def close(self) -> None:
        """Close it."""
        self.transport.close()


class AsyncSender:
    """The async transport on an event loop of its own."""

    def __init__(self, route: Route) -> None:
        self.transport = AsyncHttpTransport(route)
        self.runner = asyncio.Runner()

    def send(self, request: Request, limit: float) -> Response:
        """Send one request."""
        return self.runner.run(self.transport.send(request, limit))

    def stream(self, request: Request, limit: float) -> tuple[int, bytes]:
        """Stream one request."""

        async def read() -> tuple[int, bytes]:
            async with self.transport.stream(request, limit) as answer:
                return answer.status, b"".join([piece async for piece in answer.iter_bytes()])

        return self.runner.run(read())

    def close(self) -> None:
        """Close it and its loop."""
        self.runner.run(self.transport.close())
        self.runner.close()


@pytest.fixture(params=[SyncSender, AsyncSender])
def sender(request: pytest.FixtureRequest) -> Iterator[Sender]:
    """Give each transport in turn."""
    made: SyncSender | AsyncSender = request.param(Route())
    yield made
    made.close()


@pytest.fixture(params=[SyncSender, AsyncSender])
def sender_kind(request: pytest.FixtureRequest) -> type[SyncSender | AsyncSender]:
    """Give the class of each sender in turn."""
    kind: type[SyncSender | AsyncSender] = request.param
    return kind


def get(url: str, path: str = "/") -> Request:
    """Return a GET."""
    return Request("GET", url + path)


def failure(sender: Sender, request: Request, limit: float) -> tuple[NoAnswer, float]:
    """Send, expect nobody to answer, and return the failure and the seconds it took."""
    began = time.monotonic()
    with pytest.raises(NoAnswer) as caught:
        sender.send(request, limit)
    return caught.value, time.monotonic() - began


def test_a_request_arrives_as_it_was_described_and_the_answer_comes_back(sender: Sender) -> None:
    """Method, target, headers and body are sent as given; status, headers and body are returned."""
    with ScriptedServer(Reply(201, json={"a": 1}, headers={"X-Ignored-Params": "b"})) as server:
        answer = sender.send(Request("POST", server.url + "/a%2Fb?c=d%20e", {"x-own": "1"}, b"{}"), 5)
        (request,) = server.requests
    assert (request.method, request.target, request.body) == ("POST", "/a%2Fb?c=d%20e", b"{}")
    assert request.headers["x-own"] == "1"
    assert request.headers["user-agent"].startswith("bankclient/")
    assert (answer.status, json.loads(answer.body), answer.headers["x-ignored-params"]) == (201, {"a": 1}, "b")


def test_encoded_dots_reach_the_wire_as_they_are(sender: Sender) -> None:
    """No layer may normalise `%2E%2E` away: a bank named `..` must not climb to another endpoint."""
    with ScriptedServer(HELLO) as server:
        sender.send(get(server.url, "/v1/default/banks/%2E%2E/stats"), 5)
        assert server.requests[0].target == "/v1/default/banks/%2E%2E/stats"


def test_connections_are_reused(sender: Sender) -> None:
    """A new connection for each call would cost more than the call."""
    with ScriptedServer(HELLO, HELLO, HELLO) as server:
        for _ in range(3):
            sender.send(get(server.url), 5)
        assert server.accepted == 1


def test_a_connection_that_the_server_dropped_while_idle_is_replaced(sender: Sender) -> None:
    """The server closes without a word; the next request goes over a new connection."""
    with ScriptedServer(Reply(json=1, connection="drop"), HELLO) as server:
        sender.send(get(server.url), 5)
        server.wait_for(lambda it: it.open_connections == 0)
        assert sender.send(get(server.url), 5).status == 200


def test_unused_connections_are_given_up_before_the_server_does() -> None:
    """The real server closes after exactly 30 s of silence."""
    assert module.IDLE_LIMIT < 30


def test_compressed_answers_are_read(sender: Sender) -> None:
    """The server compresses from 1024 bytes on."""
    body = json.dumps({"text": "x" * 5000}).encode()
    with ScriptedServer(Reply(body=gzip.compress(body), headers={"content-encoding": "gzip"})) as server:
        assert sender.send(get(server.url), 5).body == body
        assert server.requests[0].headers["accept-encoding"] == "gzip"


def test_broken_compression_is_an_unreadable_reply(sender: Sender) -> None:
    """Somebody answered, so it is not an outage."""
    with ScriptedServer(Reply(body=b"not gzip", headers={"content-encoding": "gzip"})) as server:
        with pytest.raises(UnreadableReply) as caught:
            sender.send(get(server.url), 5)
        assert caught.value.status == 200


@pytest.mark.parametrize("head", [False, True])
def test_a_dripping_server_is_cut_at_the_wall_clock(sender: Sender, head: bool) -> None:
    """A byte now and then resets every timeout per read; the limit holds all the same."""
    with ScriptedServer(Drip(Reply(json={"text": "x" * 500}), every=0.05, head=head)) as server:
        error, took = failure(sender, get(server.url), 0.3)
    assert error.kind is TimedOut
    assert 0.25 < took < 1.5


def test_a_silent_server_is_cut_at_the_wall_clock(sender: Sender) -> None:
    """Accepted, and never answered."""
    with ScriptedServer(Silence()) as server:
        error, took = failure(sender, get(server.url), 0.2)
    assert error.kind is TimedOut
    assert error.reason
    assert took < 1.5


def test_a_peer_that_never_reads_does_not_stretch_an_upload(sender: Sender) -> None:
    """The body is sent in pieces, each within what is left of the limit."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        error, took = failure(sender, Request("POST", url, body=b"x" * 50_000_000), 0.3)
    assert error.kind is TimedOut
    assert took < 2


def test_an_address_where_connecting_hangs_costs_the_connect_limit(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A black hole is told from a slow answer, long before the operation's own limit."""
    monkeypatch.setattr(module, "CONNECT_LIMIT", 0.2)
    with black_hole() as url:
        error, took = failure(sender, get(url), 30)
    assert error.kind is ConnectFailed
    assert took < 3


def test_connecting_is_bounded_by_a_shorter_limit_too(sender: Sender) -> None:
    """A caller with less time than the connect limit waits no longer than that."""
    with black_hole() as url:
        error, took = failure(sender, get(url), 0.2)
    assert error.kind is TimedOut
    assert took < 1.5


def test_a_name_whose_lookup_hangs_is_given_up(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's resolver cannot be interrupted, but need not be waited for."""
    released = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: released.wait(30) and [])
    monkeypatch.setattr(module, "CONNECT_LIMIT", 0.2)
    try:
        error, took = failure(sender, get("http://memory.invalid"), 30)
    finally:
        released.set()
    assert error.kind is ConnectFailed
    assert took < 3


def test_a_name_that_nobody_knows_is_no_connection(sender: Sender) -> None:
    """The reason names it."""
    error, _ = failure(sender, get("http://memory.invalid"), 5)
    assert error.kind is ConnectFailed
    assert "memory.invalid" in error.reason


def test_a_closed_port_is_no_connection(sender: Sender) -> None:
    """Refused at once."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    error, took = failure(sender, get(f"http://127.0.0.1:{port}"), 5)
    assert error.kind is ConnectFailed
    assert took < 2


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_localhost_finds_a_server_on_either_family(sender: Sender, host: str) -> None:
    """The server may listen on one of the two loopbacks only, whatever the hosts file says."""
    with ScriptedServer(HELLO, host=host) as server:
        assert sender.send(get(f"http://localhost:{server.port}"), 5).status == 200


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Reset(), ConnectionLost),
        (Reset(after=b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"), ConnectionLost),
        (Raw(), ConnectionLost),
        (Raw(b"SSH-2.0-OpenSSH_9.2\r\n"), ConnectionLost),
        (Raw(b"\x00\xff\xfe garbage \r\n\r\n"), ConnectionLost),
        (Raw(b"HTTP/1.1 200 OK\r\ncontent-le"), ConnectionLost),
        (Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"), ConnectionLost),
        (Cut(Reply(json={"text": "x" * 100})), ConnectionLost),
        (Cut(Reply(json={"text": "x" * 100}, chunked=True)), ConnectionLost),
    ],
    ids=repr,
)
def test_a_broken_exchange_is_nobodys_answer(sender: Sender, answer: Raw, kind: type[Unavailable]) -> None:
    """Reset, closed, cut, or not HTTP at all: one kind of failure, with a reason that is never empty."""
    with ScriptedServer(answer) as server:
        error, _ = failure(sender, get(server.url), 5)
    assert error.kind is kind
    assert error.reason.strip()


def test_a_reply_without_end_is_cut_at_the_size_limit(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded, whatever a server streams."""
    monkeypatch.setattr(module, "MAX_REPLY_BYTES", 200_000)
    with ScriptedServer(Flood()) as server, pytest.raises(UnreadableReply, match="larger than"):
        sender.send(get(server.url), 5)


def test_a_compressed_reply_counts_as_what_it_becomes(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small body that unpacks to gigabytes is a large body."""
    monkeypatch.setattr(module, "MAX_REPLY_BYTES", 200_000)
    bomb = gzip.compress(b"x" * 5_000_000)
    reply = Reply(body=bomb, headers={"content-encoding": "gzip"})
    with ScriptedServer(reply) as server, pytest.raises(UnreadableReply, match="larger than"):
        sender.send(get(server.url), 5)


def test_layers_of_compression_are_refused(sender: Sender) -> None:
    """Each layer could unpack to a thousand times its size."""
    layers = Reply(body=gzip.compress(gzip.compress(b"x" * 1000)), headers={"content-encoding": "gzip, gzip"})
    with ScriptedServer(layers) as server, pytest.raises(UnreadableReply, match="gzip, gzip"):
        sender.send(get(server.url), 5)


def test_broken_compression_is_unreadable_in_a_stream_too(sender: Sender) -> None:
    """As it is in a whole answer."""
    broken = Reply(body=b"not gzip", headers={"content-encoding": "gzip"})
    with ScriptedServer(broken) as server, pytest.raises(UnreadableReply, match="compression"):
        sender.stream(get(server.url), 5)


def test_an_address_that_is_too_long_is_the_callers_mistake(sender: Sender) -> None:
    """Nothing is sent."""
    with pytest.raises(InvalidInput, match="shorten"):
        sender.send(get("http://memory.invalid", "/" + "x" * 70_000), 5)


def test_a_connection_that_broke_while_idle_says_nothing_about_the_server(sender: Sender) -> None:
    """The server had closed it, and the request met that; on a new connection the same is an outage."""
    with ScriptedServer(HELLO, Reset(), Reset()) as server:
        sender.send(get(server.url), 5)
        idle, _ = failure(sender, get(server.url), 5)
        fresh, _ = failure(sender, get(server.url), 5)
    assert (idle.kind, idle.says_nothing) == (ConnectionLost, True)
    assert (fresh.kind, fresh.says_nothing) == (ConnectionLost, False)


def test_waiting_for_a_connection_of_ours_says_nothing_about_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is our own crowd."""
    monkeypatch.setitem(module._LIMITS, "max_connections", 1)
    with ScriptedServer(Silence(), Silence()) as server:
        transport = HttpTransport(Route())

        def wait_in_vain() -> None:
            with pytest.raises(NoAnswer):
                transport.send(get(server.url), 2)

        first = threading.Thread(target=wait_in_vain)
        first.start()
        server.wait_for(lambda it: len(it.requests) == 1)
        with pytest.raises(NoAnswer) as caught:
            transport.send(get(server.url), 0.3)
        first.join()
        transport.close()
    assert (caught.value.kind, caught.value.says_nothing) == (TimedOut, True)


def test_a_proxys_address_that_is_none_is_one_warning() -> None:
    """And the way is direct."""
    route = Route.to("http://memory.invalid", {"HTTP_PROXY": "http://1.2.3.256:1"})
    assert route.proxy is None
    assert len(route.warnings) == 1


def test_a_declared_size_beyond_the_limit_is_not_even_read(sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
    """The header says enough."""
    monkeypatch.setattr(module, "MAX_REPLY_BYTES", 1000)
    with ScriptedServer(Reply(body=b"x" * 1001)) as server, pytest.raises(UnreadableReply):
        sender.send(get(server.url), 5)


def test_a_large_reply_within_the_limit_is_read(sender: Sender) -> None:
    """5 MB of memories are memories."""
    with ScriptedServer(Flood(size=5_000_000)) as server:
        assert len(sender.send(get(server.url), 10).body) == 5_000_000


def test_redirections_are_not_followed(sender: Sender) -> None:
    """A bearer token must not travel to wherever an answer points."""
    with ScriptedServer(Reply(307, headers={"location": "http://elsewhere.invalid/"})) as server:
        assert sender.send(get(server.url), 5).status == 307


def test_cookies_are_not_kept(sender: Sender) -> None:
    """A gateway's cookie would tie calls together that have nothing to do with each other."""
    with ScriptedServer(Reply(json=1, headers={"set-cookie": "a=b"}), HELLO) as server:
        sender.send(get(server.url), 5)
        sender.send(get(server.url), 5)
        assert "cookie" not in server.requests[1].headers


def test_a_streamed_answer_is_read_to_its_end(sender: Sender) -> None:
    """Piece by piece, beyond the size that a whole answer may have."""
    with ScriptedServer(Flood(size=1_000_000)) as server:
        status, body = sender.stream(get(server.url), 5)
    assert (status, len(body)) == (200, 1_000_000)


def test_a_streamed_answer_may_take_the_limit_for_each_piece_but_no_longer(sender: Sender) -> None:
    """A long download is fine; a silence longer than the limit is not."""
    with ScriptedServer(Drip(Reply(body=b"x" * 8), every=0.05), Drip(Reply(body=b"x" * 8), every=30)) as server:
        assert sender.stream(get(server.url), 0.3) == (200, b"x" * 8)
        with pytest.raises(NoAnswer) as caught:
            sender.stream(get(server.url), 0.3)
    assert caught.value.kind is TimedOut


def test_both_transports_go_through_a_proxy_with_its_credentials() -> None:
    """The request line holds the whole address, and the password goes to the proxy alone."""
    for kind in (SyncSender, AsyncSender):
        with ScriptedServer(HELLO) as proxy:
            address = proxy.url.replace("http://", "http://me:p%40ss@")
            sender = kind(Route(proxy=address))
            sender.send(get("http://memory.invalid:8888", "/version"), 5)
            sender.close()
            (request,) = proxy.requests
        assert request.target == "http://memory.invalid:8888/version"
        assert request.headers["proxy-authorization"] == "Basic bWU6cEBzcw=="


def test_a_proxy_that_is_away_is_named_as_such(sender_kind: type[SyncSender | AsyncSender]) -> None:
    """The server is not to blame."""
    sender = sender_kind(Route(proxy="http://127.0.0.1:9"))
    error, _ = failure(sender, get("http://memory.invalid"), 5)
    sender.close()
    assert error.kind is ConnectFailed
    assert "proxy" in error.reason


def test_a_route_reads_certificates_only_where_tls_is_spoken() -> None:
    """Loading them costs tens of milliseconds, which a server on loopback need not pay."""
    bad = {"SSL_CERT_FILE": "/nowhere"}
    assert Route.to("http://127.0.0.1:8888", bad) == Route()
    secure = Route.to("https://memory.invalid", bad)
    assert secure.tls is not None
    assert len(secure.warnings) == 1


def test_a_route_does_not_show_the_proxys_password() -> None:
    """It may end up in a log."""
    assert "s3cret" not in repr(Route(proxy="http://me:s3cret@proxy.invalid:1"))


def test_threads_share_one_sync_transport() -> None:
    """Eight threads, eighty calls, no mix-up of answers."""
    with ScriptedServer(handler=lambda request: Reply(json=request.target)) as server:
        transport = HttpTransport(Route())
        wrong: list[str] = []

        def work(number: int) -> None:
            for index in range(10):
                target = f"/{number}/{index}"
                if json.loads(transport.send(get(server.url, target), 10).body) != target:
                    wrong.append(target)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        transport.close()
    assert not wrong


def test_one_async_transport_serves_two_event_loops_one_after_another() -> None:
    """Connections of a loop that has ended are not touched again."""
    with ScriptedServer(HELLO, HELLO) as server:
        transport = AsyncHttpTransport(Route())

        async def once() -> int:
            return (await transport.send(get(server.url), 5)).status

        async def and_close() -> int:
            status = await once()
            await transport.close()
            return status

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # the first loop ends without closing, as people do
            assert [asyncio.run(once()), asyncio.run(and_close())] == [200, 200]
            gc.collect()
        assert server.accepted == 2


def test_a_forked_child_opens_connections_of_its_own() -> None:
    """Two processes that speak on one socket would read each other's answers."""
    with ScriptedServer(handler=lambda request: Reply(json=request.target)) as server:
        transport = HttpTransport(Route())
        transport.send(get(server.url, "/before"), 5)
        child = os.fork()
        if child == 0:
            ok = False
            with contextlib.suppress(BaseException):
                ok = transport.send(get(server.url, "/child"), 5).body == b'"/child"'
            os._exit(0 if ok else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert transport.send(get(server.url, "/after"), 5).body == b'"/after"'
        transport.close()
        assert server.accepted == 2
        assert [request.connection for request in server.requests] == [1, 2, 1]


@respx.mock
def test_respx_can_stand_in_for_the_network(sender: Sender) -> None:
    """Users' tests mock at httpcore's level, which lies below ours."""
    respx.get("http://memory.invalid/version").respond(json={"api_version": "1.1.0"})
    assert json.loads(sender.send(get("http://memory.invalid", "/version"), 5).body) == {"api_version": "1.1.0"}
