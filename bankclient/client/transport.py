"""The one seam to the network: a request goes out as a value, a response comes back as one, or nobody answers.

This module owns the values and the two protocols. The network itself is in `http.py`, the embedded bank in
`embedded.py`; whatever offers these methods can stand in for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from bankclient.errors import Unavailable

__all__ = [
    "AsyncStreamedResponse",
    "AsyncTransport",
    "NoAnswer",
    "Request",
    "Response",
    "StreamedResponse",
    "Transport",
    "UnreadableReply",
]


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent: `url` is absolute and encoded; headers hold what is particular to this request."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)  # the key is among them
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer; header names are lower case, the body is decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class NoAnswer(Exception):
    """Nobody answered; `kind` is the error that a caller gets to see, `reason` a phrase that is never empty.

    `says_nothing` where the server is not to blame: an idle connection that broke when it was used again, or a wait for
    a free connection of ours.
    """

    def __init__(self, kind: type[Unavailable], reason: str, *, says_nothing: bool = False) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.says_nothing = says_nothing


class UnreadableReply(Exception):
    """A reply came and its body cannot be taken: too large, or broken compression."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class StreamedResponse(Protocol):
    """An answer whose body is read piece by piece."""

    status: int
    headers: Mapping[str, str]

    def iter_bytes(self) -> Iterator[bytes]:
        """Yield the body, decompressed; raises `NoAnswer` where it breaks off."""
        ...


class AsyncStreamedResponse(Protocol):
    """As `StreamedResponse`, for async code."""

    status: int
    headers: Mapping[str, str]

    def iter_bytes(self) -> AsyncIterator[bytes]:
        """Yield the body, decompressed; raises `NoAnswer` where it breaks off."""
        ...


class Transport(Protocol):
    """How a sync client reaches its server."""

    def send(self, request: Request, limit: float) -> Response:
        """Return the whole answer within `limit` seconds; raise `NoAnswer` or `UnreadableReply`."""
        ...

    def stream(self, request: Request, limit: float) -> AbstractContextManager[StreamedResponse]:
        """Return the answer once its headers are here within `limit` seconds; each piece may take as long again."""
        ...

    def close(self) -> None:
        """Close every connection; a later `send` opens new ones."""
        ...


class AsyncTransport(Protocol):
    """How an async client reaches its server."""

    async def send(self, request: Request, limit: float) -> Response:
        """Return the whole answer within `limit` seconds; raise `NoAnswer` or `UnreadableReply`."""
        ...

    def stream(self, request: Request, limit: float) -> AbstractAsyncContextManager[AsyncStreamedResponse]:
        """Return the answer once its headers are here within `limit` seconds; each piece may take as long again."""
        ...

    async def close(self) -> None:
        """Close every connection of the running event loop; a later `send` opens new ones."""
        ...
