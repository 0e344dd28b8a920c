"""Speaking HTTP: the transports over a network, and the only module that knows httpx.

It bounds every exchange by the wall clock and every body by a size, and translates the libraries' exceptions at one
place; programming errors pass. It knows no bank, retry or setting.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypedDict

import httpcore
import httpx

from bankclient import __version__
from bankclient.client.environment import certificates, proxy_for
from bankclient.client.network import AsyncBackend, SyncBackend, deadline_in, watch_connecting
from bankclient.client.transport import NoAnswer, Response, UnreadableReply
from bankclient.errors import ConnectFailed, ConnectionLost, InvalidInput, TimedOut

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping

    from bankclient.client.transport import AsyncStreamedResponse, Request, StreamedResponse

__all__ = ["AsyncHttpTransport", "HttpTransport", "Route"]

CONNECT_LIMIT: Final = 2.0
"""Seconds that making a connection may take, of the time that the whole call has."""
IDLE_LIMIT: Final = 20.0
"""Seconds an unused connection is kept: the server closes after exactly 30, and a request must not meet that."""
_CLOCK_GRAIN: Final = 0.05
MAX_REPLY_BYTES: Final = 16 * 1024 * 1024
USER_AGENT: Final = f"bankclient/{__version__} python/{platform.python_version()} httpx/{httpx.__version__}"


@dataclass(frozen=True, slots=True)
class Route:
    """The way to a server, decided once from its URL and the environment; `warnings` says what could not be used."""

    proxy: str | None = field(default=None, repr=False)  # it may hold a password
    tls: ssl.SSLContext | None = None
    warnings: tuple[str, ...] = ()

    @property
    def way(self) -> str:
        """What is connected to, as part of a reason; empty where that is the server itself."""
        return "" if self.proxy is None else " to the proxy that the environment names"

    @classmethod
    def to(cls, url: str, environ: Mapping[str, str] | None = None) -> Route:
        """Return the route to `url`; certificates are read only where TLS is spoken."""
        variables = os.environ if environ is None else environ
        proxy, warnings = proxy_for(url, variables)
        if proxy is not None and not _is_usable(proxy):
            proxy, warnings = None, [*warnings, "the proxy of the environment is passed over: its address is no URL"]
        tls = None
        if url.startswith("https:") or (proxy is not None and proxy.startswith("https:")):
            tls, more = certificates(variables)
            warnings += more
        return cls(proxy, tls, tuple(warnings))


class _Pool(httpx.BaseTransport):
    """An httpx transport whose pool has our backend: httpx's own offers no way to hand one in.

    It is used without an httpx client around it: redirections, cookies and proxies of the environment, which a client
    adds, are what must not happen here.
    """

    def __init__(self, route: Route) -> None:
        tls, backend = route.tls, SyncBackend()
        if route.proxy is None:
            self._pool = httpcore.ConnectionPool(tls, network_backend=backend, **_LIMITS)
        elif route.proxy.startswith("socks"):
            self._pool = httpcore.SOCKSProxy(*_proxy(route.proxy), tls, network_backend=backend, **_LIMITS)
        else:
            url, auth = _proxy(route.proxy)
            self._pool = httpcore.HTTPProxy(url, auth, ssl_context=tls, network_backend=backend, **_LIMITS)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._pool.handle_request(_to_httpcore(request))
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer))

    def close(self) -> None:
        self._pool.close()


class _AsyncPool(httpx.AsyncBaseTransport):
    """As `_Pool`, for async code."""

    def __init__(self, route: Route) -> None:
        tls, backend = route.tls, AsyncBackend()
        if route.proxy is None:
            self._pool = httpcore.AsyncConnectionPool(tls, network_backend=backend, **_LIMITS)
        elif route.proxy.startswith("socks"):
            self._pool = httpcore.AsyncSOCKSProxy(*_proxy(route.proxy), tls, network_backend=backend, **_LIMITS)
        else:
            url, auth = _proxy(route.proxy)
            self._pool = httpcore.AsyncHTTPProxy(url, auth, ssl_context=tls, network_backend=backend, **_LIMITS)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await self._pool.handle_async_request(_to_httpcore(request))
        return httpx.Response(answer.status, headers=answer.headers, stream=_AsyncBody(answer))

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Limits(TypedDict):
    max_connections: int
    max_keepalive_connections: int
    keepalive_expiry: float


_LIMITS: Final[_Limits] = {
    "max_connections": 100,
    "max_keepalive_connections": 20,
    "keepalive_expiry": IDLE_LIMIT,
}


def _is_usable(proxy: str) -> bool:
    try:
        _proxy(proxy)
    except (httpx.InvalidURL, UnicodeError):
        return False
    return True


def _proxy(proxy: str) -> tuple[httpcore.URL, tuple[bytes, bytes] | None]:
    url = httpx.URL(proxy)
    port = url.port or {"http": 80, "https": 443}.get(url.scheme, 1080)
    auth = (url.username.encode(), url.password.encode()) if url.userinfo else None
    return httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=port, target=b"/"), auth


def _to_httpcore(request: httpx.Request) -> httpcore.Request:
    url = request.url
    return httpcore.Request(
        method=request.method,
        url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        content=request.stream,
        extensions=request.extensions,
    )


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class _AsyncBody(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._answer.aiter_stream():
            yield piece

    async def aclose(self) -> None:
        await self._answer.aclose()


def _build(request: Request, limit: float) -> httpx.Request:
    # A wait for a connection of ours ends a little sooner than the call, so that it is not taken for a silent server.
    timeouts = {"connect": min(CONNECT_LIMIT, limit), "read": None, "write": None, "pool": limit * 0.98}
    headers = {"accept": "application/json", "accept-encoding": "gzip", "user-agent": USER_AGENT, **request.headers}
    try:
        return httpx.Request(
            request.method, request.url, headers=headers, content=request.body, extensions={"timeout": timeouts}
        )
    except (httpx.InvalidURL, UnicodeError) as error:
        # An id or a list of tags of tens of thousands of letters, or a host that only looks like an encoded name.
        raise InvalidInput(f"the address of this call cannot be sent ({error}): shorten what goes into it") from error


@contextlib.contextmanager
def _translated(limit: float, way: str = "") -> Generator[None, None, None]:
    """Turn what the libraries raise for want of an answer into `NoAnswer`; everything else is a programming error.

    `way` says what was connected to, where that is not the server itself.
    """
    begin = time.monotonic()
    try:
        yield
    except httpcore.PoolTimeout as error:
        reason = "all connections of this process to the server are in use"
        raise NoAnswer(TimedOut, reason, says_nothing=True) from error
    except (httpcore.TimeoutException, TimeoutError) as error:
        if isinstance(error, httpcore.ConnectTimeout) and time.monotonic() - begin < limit - _CLOCK_GRAIN:
            raise NoAnswer(ConnectFailed, f"no connection{way} within {CONNECT_LIMIT:.0f} s") from error
        raise NoAnswer(TimedOut, f"no answer in time ({_name(error)})") from error
    except (httpcore.ConnectError, httpcore.ProxyError, httpcore.UnsupportedProtocol) as error:
        raise NoAnswer(ConnectFailed, f"no connection{way}: {_name(error)}") from error
    except httpcore.RemoteProtocolError as error:
        raise NoAnswer(ConnectionLost, f"what answers does not speak HTTP to the end: {_name(error)}") from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        raise NoAnswer(ConnectionLost, f"the connection broke: {_name(error)}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "socksio":  # httpcore lets these pass
            raise
        raise NoAnswer(ConnectFailed, f"the SOCKS proxy does not speak SOCKS: {_name(error)}") from error


@contextlib.contextmanager
def _beginning() -> Generator[None, None, None]:
    """Mark the failure of an idle connection: the server had closed it, which is no outage."""
    with watch_connecting() as connecting:
        try:
            yield
        except (httpcore.NetworkError, httpcore.RemoteProtocolError) as error:
            if connecting.begun or isinstance(error, httpcore.ConnectError):
                raise
            reason = f"an idle connection had been closed: {_name(error)}"
            raise NoAnswer(ConnectionLost, reason, says_nothing=True) from error


@contextlib.contextmanager
def _readable(status: int) -> Generator[None, None, None]:
    """Turn broken compression into `UnreadableReply`."""
    try:
        yield
    except httpx.DecodingError as error:
        raise UnreadableReply(status, f"its compression is broken ({_name(error)})") from error


def _name(error: BaseException) -> str:
    """Return an error as text that is never empty: many of the libraries' errors print as nothing."""
    text = str(error) or str(error.__cause__ or "")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _Collector:
    """Gathers a body up to the largest reply that is read at all."""

    def __init__(self, response: httpx.Response) -> None:
        self._status = response.status_code
        self._pieces: list[bytes] = []
        self._size = 0
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in {"", "identity", "gzip"}:  # layers of it would unpack to anything
            raise UnreadableReply(self._status, f"its encoding is {encoding[:40]!r}, which was not asked for")
        declared = response.headers.get("content-length", "")
        self._check(int(declared) if declared.isdigit() else 0)

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        self._check(self._size)
        self._pieces.append(piece)

    def body(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def _check(self, size: int) -> None:
        if size > MAX_REPLY_BYTES:
            raise UnreadableReply(self._status, f"the reply is larger than {MAX_REPLY_BYTES // 1048576} MiB")


class HttpTransport:
    """A pool of connections for sync code: safe to share between threads, and made anew in a forked child."""

    def __init__(self, route: Route) -> None:
        self._route = route
        # By process id: a child must not speak on its parent's sockets, nor close them. No lock, which a fork could
        # hand over locked: `setdefault` settles a race.
        self._pools: dict[int, _Pool] = {}

    def send(self, request: Request, limit: float) -> Response:
        with deadline_in(limit), _translated(limit, self._route.way):
            with _beginning():
                answer = self._pool().handle_request(_build(request, limit))
            try:
                with _readable(answer.status_code):
                    body = _Collector(answer)
                    for piece in answer.iter_bytes():
                        body.add(piece)
            finally:
                answer.close()
            return Response(answer.status_code, answer.headers, body.body())

    @contextlib.contextmanager
    def stream(self, request: Request, limit: float) -> Generator[StreamedResponse, None, None]:
        with deadline_in(limit), _translated(limit, self._route.way), _beginning():
            answer = self._pool().handle_request(_build(request, limit))
        try:
            yield _Streamed(answer, limit)
        finally:
            answer.close()

    def close(self) -> None:
        pool = self._pools.pop(os.getpid(), None)
        if pool is not None:
            pool.close()

    def _pool(self) -> _Pool:
        held = self._pools.get(os.getpid())
        return self._pools.setdefault(os.getpid(), _Pool(self._route)) if held is None else held


class _Streamed:
    def __init__(self, answer: httpx.Response, limit: float) -> None:
        self._answer = answer
        self._limit = limit
        self.status = answer.status_code
        self.headers: Mapping[str, str] = answer.headers

    def iter_bytes(self) -> Iterator[bytes]:
        pieces = self._answer.iter_bytes()
        while True:
            with deadline_in(self._limit), _translated(self._limit), _readable(self.status):
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece


class AsyncHttpTransport:
    """A pool of connections for async code: one for each event loop that uses it, and made anew in a forked child."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._pools: dict[asyncio.AbstractEventLoop, tuple[int, _AsyncPool]] = {}

    async def send(self, request: Request, limit: float) -> Response:
        with _translated(limit, self._route.way):
            async with asyncio.timeout(limit):
                with _beginning():
                    answer = await self._pool().handle_async_request(_build(request, limit))
                try:
                    with _readable(answer.status_code):
                        body = _Collector(answer)
                        async for piece in answer.aiter_bytes():
                            body.add(piece)
                finally:
                    await answer.aclose()
                return Response(answer.status_code, answer.headers, body.body())

    @contextlib.asynccontextmanager
    async def stream(self, request: Request, limit: float) -> AsyncGenerator[AsyncStreamedResponse, None]:
        with _translated(limit, self._route.way):
            async with asyncio.timeout(limit):
                with _beginning():
                    answer = await self._pool().handle_async_request(_build(request, limit))
        try:
            yield _AsyncStreamed(answer, limit)
        finally:
            await answer.aclose()

    async def close(self) -> None:
        _, pool = self._pools.pop(asyncio.get_running_loop(), (0, None))
        if pool is not None:
            await pool.aclose()

    def _pool(self) -> _AsyncPool:
        loop, process = asyncio.get_running_loop(), os.getpid()
        held = self._pools.get(loop)
        if held is None or held[0] != process:
            # A loop that ended without `close` cannot close its connections any more, and they hold on to it.
            self._pools = {other: kept for other, kept in self._pools.items() if not other.is_closed()}
            held = process, _AsyncPool(self._route)
            self._pools[loop] = held
        return held[1]


class _AsyncStreamed:
    def __init__(self, answer: httpx.Response, limit: float) -> None:
        self._answer = answer
        self._limit = limit
        self.status = answer.status_code
        self.headers: Mapping[str, str] = answer.headers

    async def iter_bytes(self) -> AsyncIterator[bytes]:
        pieces = self._answer.aiter_bytes()
        while True:
            with _translated(self._limit), _readable(self.status):
                async with asyncio.timeout(self._limit):
                    piece = await anext(pieces, None)
            if piece is None:
                return
            yield piece
