"""Reaching the embedded bank in this process: the same seam as the network's, without a socket.

Its core answers synchronously, so the sync client needs no event loop; async code has it answer in a worker thread.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bankclient.client.transport import NoAnswer, Response
from bankclient.embedded import EmbeddedServer
from bankclient.errors import TimedOut

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
    from pathlib import Path

    from bankclient.client.transport import AsyncStreamedResponse, Request, StreamedResponse

__all__ = ["AsyncEmbeddedTransport", "EmbeddedTransport"]


def _answer(server: EmbeddedServer, request: Request) -> Response:
    parts = urlsplit(request.url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    reply = server.answer(request.method, target, request.body or b"", request.headers)
    return Response(reply.status, reply.headers, reply.body)


class EmbeddedTransport:
    """The embedded bank for sync code. It answers from this machine's disk, so `limit` does not come into it."""

    def __init__(self, path: Path) -> None:
        self._server = EmbeddedServer(path)

    def send(self, request: Request, limit: float) -> Response:
        """Return the bank's answer."""
        del limit
        return _answer(self._server, request)

    @contextlib.contextmanager
    def stream(self, request: Request, limit: float) -> Generator[StreamedResponse, None, None]:
        """Give the bank's answer in one piece."""
        yield _Whole(self.send(request, limit))

    def close(self) -> None:
        """Close the file."""
        self._server.close()


class AsyncEmbeddedTransport:
    """The embedded bank for async code, never on the event loop's thread."""

    def __init__(self, path: Path) -> None:
        self._server = EmbeddedServer(path)

    async def send(self, request: Request, limit: float) -> Response:
        """Return the bank's answer within `limit` seconds; raises `NoAnswer` where the disk takes longer."""
        try:
            async with asyncio.timeout(limit):
                return await asyncio.to_thread(_answer, self._server, request)
        except TimeoutError as error:
            raise NoAnswer(TimedOut, "the embedded bank did not answer in time") from error

    @contextlib.asynccontextmanager
    async def stream(self, request: Request, limit: float) -> AsyncGenerator[AsyncStreamedResponse, None]:
        """Give the bank's answer in one piece."""
        yield _AsyncWhole(await self.send(request, limit))

    async def close(self) -> None:
        """Close the file."""
        await asyncio.to_thread(self._server.close)


class _Whole:
    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._body = response.body

    def iter_bytes(self) -> Iterator[bytes]:
        yield self._body


class _AsyncWhole:
    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._body = response.body

    async def iter_bytes(self) -> AsyncIterator[bytes]:
        yield self._body
