"""What a scripted server can do with a request: reply, or fail in one of the ways that servers fail.

It owns the answers and the bytes of a reply. It knows sockets, and no server, script or record.
"""

from __future__ import annotations

import io
import json as jsonlib
import select
import socket
import struct
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping

    from _typeshed import WriteableBuffer

__all__ = [
    "Answer",
    "Cut",
    "Drip",
    "Flood",
    "Held",
    "PeerGone",
    "Raw",
    "Reply",
    "Reset",
    "Silence",
    "Wire",
    "gateway_page",
]

_NOTHING = object()
_LOOK = 0.02  # seconds between two looks at an event
_PIECE = 65536
_RST = struct.pack("ii", 1, 0)


class PeerGone(Exception):
    """The other side has closed its connection, or the server is being closed."""


class Wire(io.RawIOBase):
    """One accepted connection, as an answer sees it; as a file, what the peer sends."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._ahead = b""

    def readable(self) -> bool:
        """Return true: requests are read from here."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read what came while an answer waited, then from the socket."""
        if not self._ahead:
            return self._connection.recv_into(buffer)
        view = memoryview(buffer)
        size = min(len(view), len(self._ahead))
        view[:size], self._ahead = self._ahead[:size], self._ahead[size:]
        return size

    def send(self, data: bytes) -> None:
        """Send all of `data`; raises `OSError` when the peer has gone."""
        self._connection.sendall(data)

    def wait(self, seconds: float | None = None) -> None:
        """Wait so many seconds, `None` for ever; raises `PeerGone` as soon as the peer has closed.

        A close is seen by reading: what the peer sends meanwhile is kept for `readinto`.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._connection], [], [], left)[0]:
                return
            data = self._connection.recv(_PIECE)
            if not data:
                raise PeerGone
            self._ahead += data

    def reset(self) -> None:
        """Break the connection with a TCP reset in place of a close."""
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST)


class Answer(Protocol):
    """What is done with one request."""

    def play(self, wire: Wire) -> bool:
        """Do it; return whether the connection stays open for the next request."""
        ...


@dataclass(frozen=True)
class Reply:
    """A whole HTTP reply: `json`, or the bytes of `body`.

    `connection`: `keep` it, `close` it as announced in the head, or `drop` it without a word, as servers do whose idle
    time is over. `chunked` sends the body in chunks in place of a content-length.
    """

    status: int = 200
    json: Any = field(default=_NOTHING, kw_only=True)
    body: bytes = field(default=b"", kw_only=True)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)
    connection: Literal["keep", "close", "drop"] = field(default="keep", kw_only=True)
    chunked: bool = field(default=False, kw_only=True)

    def play(self, wire: Wire) -> bool:
        """Send head and body."""
        head, body = self.encode()
        wire.send(head + body)
        return self.connection == "keep"

    def encode(self) -> tuple[bytes, bytes]:
        """Return the head, to its blank line, and the body as they are sent."""
        body = self.body if self.json is _NOTHING else jsonlib.dumps(self.json).encode()
        headers = {} if self.json is _NOTHING else {"content-type": "application/json"}
        if self.chunked:
            headers["transfer-encoding"] = "chunked"
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
        else:
            headers["content-length"] = str(len(body))
        if self.connection == "close":
            headers["connection"] = "close"
        headers |= {name.lower(): value for name, value in self.headers.items()}
        reason = HTTPStatus(self.status).phrase if self.status in set(HTTPStatus) else "Unknown"
        lines = [f"HTTP/1.1 {self.status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("latin-1"), body


@dataclass(frozen=True)
class Drip:
    """`reply`, `size` bytes every `every` seconds: the body after a whole head, or with `head` that too."""

    reply: Reply
    every: float
    size: int = 1
    head: bool = False

    def play(self, wire: Wire) -> bool:
        """Send the pieces, until the peer goes."""
        head, body = self.reply.encode()
        if self.head:
            body = head + body
        else:
            wire.send(head)
        for start in range(0, len(body), self.size):
            wire.wait(self.every)
            wire.send(body[start : start + self.size])
        return self.reply.connection == "keep"


@dataclass(frozen=True)
class Cut:
    """The head of `reply` and `sent` bytes of its body (`None`: half of it), then a close."""

    reply: Reply
    sent: int | None = None

    def play(self, wire: Wire) -> bool:
        """Send a part."""
        head, body = self.reply.encode()
        wire.send(head + body[: len(body) // 2 if self.sent is None else self.sent])
        return False


@dataclass(frozen=True)
class Raw:
    """These bytes as they are (garbage, a half head, nothing), then a close."""

    data: bytes = b""

    def play(self, wire: Wire) -> bool:
        """Send the bytes."""
        wire.send(self.data)
        return False


@dataclass(frozen=True)
class Reset:
    """A TCP reset, after these bytes."""

    after: bytes = b""

    def play(self, wire: Wire) -> bool:
        """Send the bytes and break the connection."""
        wire.send(self.after)
        wire.reset()
        return False


@dataclass(frozen=True)
class Silence:
    """No answer at all, and an open connection, for as long as the peer stays."""

    def play(self, wire: Wire) -> bool:
        """Wait for the peer to go."""
        wire.wait()
        return False


@dataclass(frozen=True)
class Held:
    """`answer`, once `until` is set; the peer may go before that."""

    until: threading.Event
    answer: Answer

    def play(self, wire: Wire) -> bool:
        """Wait for the event, then answer."""
        while not self.until.is_set():
            wire.wait(_LOOK)
        return self.answer.play(wire)


@dataclass(frozen=True)
class Flood:
    """A 200 with one JSON string of `size` bytes as body (`None`: without end), streamed in chunks as it is made."""

    size: int | None = None
    chunk: int = _PIECE

    def play(self, wire: Wire) -> bool:
        """Send chunks, until the peer goes."""
        head, _ = Reply(headers={"content-type": "application/json"}, chunked=True).encode()
        wire.send(head)
        for piece in self._pieces():
            wire.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        wire.send(b"0\r\n\r\n")
        return True

    def _pieces(self) -> Iterator[bytes]:
        left = self.size
        yield b'"'
        while left is None or left > 2:  # noqa: PLR2004 - the two quotes
            piece = b"x" * (self.chunk if left is None else min(self.chunk, left - 2))
            left = None if left is None else left - len(piece)
            yield piece
        yield b'"'


def gateway_page(status: int = 502) -> Reply:
    """Return the HTML page of a gateway in front of a server that is away."""
    page = f"<html><head><title>{status}</title></head><body><h1>{status}</h1><hr>nginx</body></html>"
    return Reply(status, body=page.encode(), headers={"content-type": "text/html"})
