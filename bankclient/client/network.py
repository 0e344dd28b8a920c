"""Sockets with a wall-clock deadline: what httpx's own timeouts, which start anew at each read, cannot give.

A peer that sends one byte now and then never runs into a timeout per read. So the connection pool of the sync client
gets a backend whose every socket operation is bounded by one deadline of the call; async code is cut by its event
loop instead and uses only the name resolution here. This module knows httpcore's backends and nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ipaddress
import socket
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import httpcore

if TYPE_CHECKING:
    import ssl
    from collections.abc import Generator, Iterable

    SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]

__all__ = ["AsyncBackend", "Connecting", "SyncBackend", "deadline_in", "watch_connecting"]

_connecting: contextvars.ContextVar[Connecting | None] = contextvars.ContextVar("connecting", default=None)
_deadline: contextvars.ContextVar[float | None] = contextvars.ContextVar("deadline", default=None)
_CHUNK: Final = 65536


@contextlib.contextmanager
def deadline_in(seconds: float) -> Generator[None, None, None]:
    """Bound every socket operation of the sync backend in this block by one moment, `seconds` from now."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


@dataclass(slots=True)
class Connecting:
    """Whether a connection was begun: without one, a request went over a connection that had been idle."""

    begun: bool = False


@contextlib.contextmanager
def watch_connecting() -> Generator[Connecting, None, None]:
    """Give what tells whether this block makes a connection."""
    seen = Connecting()
    token = _connecting.set(seen)
    try:
        yield seen
    finally:
        _connecting.reset(token)


def _note_connecting() -> None:
    seen = _connecting.get()
    if seen is not None:
        seen.begun = True


def _left(timeout: float | None, error: type[Exception]) -> float | None:
    """Return what may still be waited: the smaller of `timeout` and the time to the deadline; raise `error` at 0."""
    moment = _deadline.get()
    if moment is None:
        return timeout
    left = moment - time.monotonic()
    if left <= 0:
        raise error("the time allowed for the call is over")
    return left if timeout is None else min(left, timeout)


def _start_lookup(host: str, port: int) -> Future[list[str]]:
    """Resolve a name in a thread of its own, since the system's resolver cannot be interrupted.

    The thread is a daemon: a resolver that hangs must not keep the process from ending.
    """
    found: Future[list[str]] = Future()
    found.set_running_or_notify_cancel()  # a waiter that is cancelled must not take the future away from the thread

    def look_up() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.set_result(list(dict.fromkeys(str(row[4][0]) for row in rows)))
        except Exception as error:  # noqa: BLE001 - handed to the waiting caller, whatever it is
            found.set_exception(error)

    threading.Thread(target=look_up, name="bankclient-lookup", daemon=True).start()
    return found


def _known_addresses(host: str) -> list[str] | None:
    """Return the addresses that need no lookup: a literal's own, and both loopbacks for `localhost`.

    A system may resolve `localhost` to one family while the server listens on the other.
    """
    if host == "localhost":
        return ["127.0.0.1", "::1"]
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return [host]
    return None


class _Stream(httpcore.NetworkStream):
    """A socket whose reads and writes end at the call's deadline."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # In pieces: the socket's own timeout starts anew at each send, so a peer that reads slowly would stretch it.
        for start in range(0, len(buffer), _CHUNK):
            self._stream.write(buffer[start : start + _CHUNK], _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, limit))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore's signature
        return self._stream.get_extra_info(info)


class SyncBackend(httpcore.NetworkBackend):
    """Connects within the deadline, over every address of the name in turn (a server may listen on one family only)."""

    def __init__(self) -> None:
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.NetworkStream:
        _note_connecting()
        end = None if timeout is None else time.monotonic() + timeout
        addresses = _known_addresses(host) or self._resolve(host, port, timeout)
        for number, address in enumerate(addresses, start=1):
            share = _share(end, len(addresses) - number + 1)
            try:
                stream = self._backend.connect_tcp(
                    address, port, _left(share, httpcore.ConnectTimeout), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if number == len(addresses):
                    raise
            else:
                return _Stream(stream)
        raise httpcore.ConnectError(f"{host} has no address")

    @staticmethod
    def _resolve(host: str, port: int, timeout: float | None) -> list[str]:
        try:
            return _start_lookup(host, port).result(_left(timeout, httpcore.ConnectTimeout))
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"looking up {host} took too long") from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"cannot look up {host}: {error}") from error

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[SocketOption] | None = None
    ) -> httpcore.NetworkStream:
        _note_connecting()
        limit = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._backend.connect_unix_socket(path, limit, socket_options))

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


class AsyncBackend(httpcore.AsyncNetworkBackend):
    """The same addresses in the same order; the deadline itself is the event loop's."""

    def __init__(self) -> None:
        # httpcore defines the class in a `try`, which pyright reads as two different ones.
        self._backend: httpcore.AsyncNetworkBackend = httpcore.AnyIOBackend()  # pyright: ignore[reportAttributeAccessIssue]

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        _note_connecting()
        end = None if timeout is None else time.monotonic() + timeout
        addresses = _known_addresses(host) or await self._resolve(host, port, timeout)
        for number, address in enumerate(addresses, start=1):
            share = _share(end, len(addresses) - number + 1)
            try:
                return await self._backend.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if number == len(addresses):
                    raise
        raise httpcore.ConnectError(f"{host} has no address")

    @staticmethod
    async def _resolve(host: str, port: int, limit: float | None) -> list[str]:
        try:
            async with asyncio.timeout(limit):
                return await asyncio.wrap_future(_start_lookup(host, port))
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"looking up {host} took too long") from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"cannot look up {host}: {error}") from error

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        _note_connecting()
        return await self._backend.connect_unix_socket(path, timeout, socket_options)

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)


def _share(end: float | None, addresses: int) -> float | None:
    """Return how long one of the addresses that are left may take: a dead first one must leave time for the next."""
    return None if end is None else max(end - time.monotonic(), 0.001) / addresses
