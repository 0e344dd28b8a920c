"""The embedded bank on a loopback address, for any Hindsight client that speaks HTTP.

Owns the listening socket, the thread that answers on it, and who may ask: programs of this machine, no web page. What
is answered is `app`'s business.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import socket
import threading
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

import uvicorn
from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from bankclient.embedded.app import create_app
from bankclient.embedded.server import EmbeddedServer
from bankclient.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["BankServer"]

_OK = 200
_IDLE_SECONDS: Final = 30
"""How long an unused connection is kept, as the real server keeps it."""
_FINISH_SECONDS: Final = 3
"""How long an end waits for requests whose bytes still come or go; then their connections are cut."""
_END_SECONDS: Final = 8.0
_LOOK_SECONDS: Final = 1.0
_BACKLOG: Final = 128


class BankServer:
    """The embedded bank of the file at `path`, answering at `url` from `start` to `stop`, in a thread of its own.

    `host` is 127.0.0.1 or ::1, port 0 any that is free. It may be started again after it was stopped.
    """

    def __init__(self, path: Path, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._path = path
        self._host = host
        self._port = port
        self._server: _Uvicorn | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it answers, or did last; with port 0 that is known from the first start on."""
        return f"http://{f'[{self._host}]' if ':' in self._host else self._host}:{self._port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Listen, and return when requests are answered.

        Raises `StoreError` where the file cannot be used and `ConfigError` where the address cannot be listened on.
        """
        bank = EmbeddedServer(self._path)
        health = bank.answer("GET", "/health")
        if health.status != _OK:
            bank.close()
            raise StoreError(str(json.loads(health.body).get("error", "the embedded bank does not answer")))
        try:
            listener = self._listen()
        except BaseException:
            bank.close()
            raise
        self._server = _Uvicorn(create_app(bank))
        self._thread = threading.Thread(
            target=self._server.run_until_stopped, args=(listener,), name="embedded bank", daemon=True
        )
        self._thread.start()
        self._server.settled.wait()

    def wait(self) -> None:
        """Wait until it ends; a signal handler that raises ends the wait."""
        # Not in one piece: a signal that arrives just before a wait begins would be handled only after it.
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(_LOOK_SECONDS)

    def stop(self, within: float = _END_SECONDS) -> bool:
        """Free the address, finish what is being answered and close the file; return whether that was done in time.

        After `within` seconds it goes on by itself. What it has not acknowledged by then may be stored or not.
        """
        if self._server is None or self._thread is None:
            return True
        self._server.should_exit = True
        self._thread.join(within)
        return not self._thread.is_alive()

    def _listen(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        # The protocol is named because asyncio sets TCP_NODELAY only then: without it each answer takes 40 ms.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self._host, self._port))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise ConfigError(self._problem(error)) from error
        self._port = int(listener.getsockname()[1])
        return listener

    def _problem(self, error: OSError) -> str:
        if error.errno == errno.EADDRINUSE:
            return (
                f"port {self._port} on {self._host} is taken: stop what listens there, or choose another port "
                "(0 is any free one)"
            )
        if error.errno == errno.EACCES:
            return f"port {self._port} is not for this user: choose one from 1024 on, or 0 for any free one"
        return f"nothing can listen on {self._host}, port {self._port}: {error.strerror}; choose another address"


class _Uvicorn(uvicorn.Server):
    """Uvicorn, that says when it answers and prints nothing."""

    def __init__(self, app: ASGIApp) -> None:
        config = uvicorn.Config(
            _for_this_machine(app),
            http="h11",
            ws="none",
            lifespan="on",
            loop="asyncio",
            log_config=None,
            log_level="critical",  # what it says of clients that break off is nobody's business
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_FINISH_SECONDS,
        )
        super().__init__(config)
        self.settled = threading.Event()

    def run_until_stopped(self, listener: socket.socket) -> None:
        """Answer until `should_exit` is set."""
        try:
            self.run(sockets=[listener])
        finally:
            self.settled.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        self.settled.set()


def _for_this_machine(app: ASGIApp) -> ASGIApp:
    """Return `app` behind a guard that refuses what a web page sends.

    There is no key in front of this bank, and a browser reaches loopback: a page can point its own host name there, and
    then reads what is answered. The browser tells the page's host, and its origin where it differs.
    """

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            asked, origin = headers.get("host"), headers.get("origin")
            if not ((asked is None or _is_here(f"//{asked}")) and (origin is None or _is_here(origin))):
                detail = "Only programs of this machine may ask, under the name localhost, 127.0.0.1 or [::1]."
                await JSONResponse({"detail": detail}, 403)(scope, receive, send)
                return
        await app(scope, receive, send)

    return guarded


def _is_here(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
