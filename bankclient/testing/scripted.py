"""A scripted HTTP/1.1 server on a real socket: it records what it is sent and answers, or misbehaves, as told.

It owns connections, their threads and the record. It knows nothing of Hindsight: what a reply means is the caller's.
The answers themselves stand in `bankclient.testing.answers`.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import socket
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from bankclient.testing.answers import PeerGone, Reply, Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from types import TracebackType
    from typing import BinaryIO, Self

    from bankclient.testing.answers import Answer

__all__ = ["ScriptedRequest", "ScriptedServer", "black_hole"]

_END_OF_SCRIPT = Reply(500, json={"detail": "the script of the test's server has no answer left"})
_BACKLOG = 128
_FILL_WAIT = 0.05
_MOST_FILLERS = 16


@dataclass(frozen=True, slots=True)
class ScriptedRequest:
    """One request as it arrived; header names are in lower case, `connection` counts from 1 in order of arrival."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    connection: int

    @property
    def path(self) -> str:
        """The target without its query, percent-encoded as it was sent."""
        return urlsplit(self.target).path

    @property
    def query(self) -> list[tuple[str, str]]:
        """The decoded query, in order."""
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)

    def json(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the body, decoded; raises `ValueError` where it is not JSON."""
        return json.loads(self.body)


class ScriptedServer:
    """A server in threads on loopback, listening from its construction until `close`; a context manager.

    Each request is answered by the next of `answers` (`then` adds more), after the last by what `handler` returns for
    it, without a handler by a 500 that says so. `url` is where it listens. A handler that raises answers 500, and its
    error is raised again by `close`. `host` is `127.0.0.1` or `::1`.
    """

    def __init__(
        self,
        *answers: Answer,
        handler: Callable[[ScriptedRequest], Answer] | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=_BACKLOG)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://[{host}]:{self.port}" if family == socket.AF_INET6 else f"http://{host}:{self.port}"
        self._answers = deque(answers)
        self._handler = handler
        self._changed = threading.Condition()
        self._requests: list[ScriptedRequest] = []
        self._errors: list[Exception] = []
        self._open: dict[socket.socket, threading.Thread] = {}
        self._accepted = 0
        self._closing = False
        self._acceptor = threading.Thread(target=self._accept, name=f"scripted server {self.port}", daemon=True)
        self._acceptor.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:  # the test's own failure says more than the handler's
            with contextlib.suppress(Exception):
                self.close()

    @property
    def requests(self) -> tuple[ScriptedRequest, ...]:
        """The requests so far, each recorded whole and before it is answered."""
        with self._changed:
            return tuple(self._requests)

    @property
    def accepted(self) -> int:
        """How many connections were ever accepted."""
        with self._changed:
            return self._accepted

    @property
    def open_connections(self) -> int:
        """How many connections neither side has closed."""
        with self._changed:
            return len(self._open)

    def then(self, *answers: Answer) -> None:
        """Add answers at the end of the script."""
        with self._changed:
            self._answers.extend(answers)

    def wait_for(self, reached: Callable[[Self], bool], timeout: float = 10.0) -> None:
        """Wait until `reached(server)`, asked again at every change; raises `TimeoutError` after `timeout` seconds.

        A change is a connection that comes or goes, or a request.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: reached(self), timeout):
                raise TimeoutError(
                    f"not reached within {timeout} s: the scripted server has had {self._accepted} connections"
                    f" ({len(self._open)} open) and {len(self._requests)} requests"
                )

    def close(self) -> None:
        """Cut every connection, free the port and end all threads; raises what the handler raised."""
        with self._changed:
            self._closing = True
            threads = list(self._open.values())
            for connection in self._open:
                with contextlib.suppress(OSError):  # the peer was faster
                    connection.shutdown(socket.SHUT_RDWR)
        if self._acceptor.is_alive():
            # A thread in accept() is not woken by closing its socket, on every system; a connection wakes it.
            with contextlib.suppress(OSError):
                socket.create_connection(self._listener.getsockname()[:2]).close()
            self._acceptor.join()
        self._listener.close()
        for thread in threads:
            thread.join()
        errors, self._errors = self._errors, []
        if errors:
            raise errors[0]

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with self._changed:
                if self._closing:
                    connection.close()
                    return
                self._accepted += 1
                thread = threading.Thread(target=self._serve, args=(connection, self._accepted), daemon=True)
                self._open[connection] = thread
                # Started under the lock: `close` joins what it finds here.
                thread.start()
                self._changed.notify_all()

    def _serve(self, connection: socket.socket, number: int) -> None:
        wire = Wire(connection)
        stream = io.BufferedReader(wire)
        try:
            # A peer that goes, or whose bytes are not HTTP, loses its connection and harms nobody else.
            with contextlib.suppress(PeerGone, OSError, ValueError, http.client.HTTPException):
                while (request := _read_request(stream, wire, number)) is not None:
                    if not self._next_answer(request).play(wire):
                        break
        finally:
            connection.close()
            with self._changed:
                del self._open[connection]
                self._changed.notify_all()

    def _next_answer(self, request: ScriptedRequest) -> Answer:
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()
            if self._answers:
                return self._answers.popleft()
        if self._handler is None:
            return _END_OF_SCRIPT
        try:
            return self._handler(request)
        except Exception as error:  # noqa: BLE001 - whatever the test's code raises is raised again by `close`
            self._errors.append(error)
            return Reply(500, json={"detail": f"the handler raised {error!r}"})


def _read_request(stream: BinaryIO, wire: Wire, number: int) -> ScriptedRequest | None:
    """Read one request; `None` where the peer has closed, or sent something that is not HTTP."""
    words = stream.readline().split()
    if len(words) != 3:  # noqa: PLR2004 - method, target, version
        return None
    parsed = http.client.parse_headers(stream)
    headers: dict[str, str] = {}
    for name, value in parsed.items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    if headers.get("expect", "").lower() == "100-continue":
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    if "chunked" in headers.get("transfer-encoding", ""):
        body = b"".join(_read_chunks(stream))
    else:
        length = int(headers.get("content-length", 0))
        body = stream.read(length)
        if len(body) < length:
            return None
    return ScriptedRequest(words[0].decode(), words[1].decode("latin-1"), headers, body, number)


def _read_chunks(stream: BinaryIO) -> Iterable[bytes]:
    while size := int(stream.readline().split(b";")[0], 16):
        yield stream.read(size)
        stream.readline()
    while stream.readline().strip():
        pass  # trailers


@contextlib.contextmanager
def black_hole() -> Generator[str]:
    """Give the URL of a loopback address where connecting neither succeeds nor fails: it hangs.

    A listener that never accepts, its queue full of our own connections: the kernel drops what comes after.
    """
    with contextlib.ExitStack() as sockets:
        listener = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(_MOST_FILLERS):
            filler = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            filler.settimeout(_FILL_WAIT)
            try:
                filler.connect(listener.getsockname())
            except TimeoutError:
                break  # the queue is full: this one hangs, as the next will
        else:
            raise RuntimeError("the listener's queue did not fill: this system accepts more than it was asked to")
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
