"""The embedded bank behind ASGI, for any Hindsight client that speaks HTTP.

A thin shell over `EmbeddedServer`, which runs in a worker thread: SQLite never holds up the event loop.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import Receive, Scope, Send

    from bankclient.embedded.server import EmbeddedServer

__all__ = ["create_app"]


def create_app(server: EmbeddedServer) -> Starlette:
    """Return an ASGI application that hands every request to `server`, and closes it at shutdown."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        yield
        server.close()

    return Starlette(routes=[Route("/{path:path}", _Endpoint(server))], lifespan=lifespan)


class _Endpoint:
    """All paths and methods; which there are is the server's to say."""

    def __init__(self, server: EmbeddedServer) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            body = await request.body()
        except ClientDisconnect:
            return  # half a request is none
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        query: bytes = scope["query_string"]
        target = b"?".join((path, query) if query else (path,)).decode("latin-1")
        reply = await anyio.to_thread.run_sync(self._server.answer, request.method, target, body, request.headers)
        await Response(reply.body, reply.status, reply.headers)(scope, receive, send)
