"""The embedded bank behind ASGI, for any Hindsight client that speaks HTTP.

A thin shell over `EmbeddedServer`, which runs in a worker thread: SQLite never holds up the event loop.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import anyio.to_thread
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import ASGIApp, Receive, Scope, Send

    from bankclient.embedded.server import EmbeddedServer

__all__ = ["create_app"]


def create_app(server: EmbeddedServer) -> Starlette:
    """Return an ASGI application that hands every request to `server`, and closes it at shutdown."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        yield
        server.close()

    return Starlette(routes=[Mount("/", app=_handing_on(server))], lifespan=lifespan)


def _handing_on(server: EmbeddedServer) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        query: bytes = scope["query_string"]
        target = raw.decode("latin-1") + (f"?{query.decode('latin-1')}" if query else "")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        reply = await anyio.to_thread.run_sync(server.answer, scope["method"], target, body, headers)
        await Response(reply.body, reply.status, reply.headers)(scope, receive, send)

    return app
