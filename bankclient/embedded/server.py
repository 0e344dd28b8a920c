"""`EmbeddedServer`: bytes of a request in, bytes of a reply out, whatever happens in between.

The outermost guard: every failure becomes a reply in the server's shape. Synchronous, so that a synchronous client
needs no event loop; the file is opened at the first request that needs it.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, unquote

from bankclient.embedded.database import Database, StorageError
from bankclient.embedded.monitoring import SERVER_HEADER
from bankclient.embedded.routing import find_route, other_slash
from bankclient.embedded.wire import Problem, Reply, Request, json_reply, text_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

__all__ = ["EmbeddedServer"]

_NO_HEADERS: Mapping[str, str] = {}
_BUSY_RETRY_SECONDS = "1"


def _utc_now() -> datetime:
    return datetime.now(UTC)


class EmbeddedServer:
    """A Hindsight API server on one SQLite file at `path`.

    Safe to share between threads, and across `fork`: the child opens the file anew. `now` tells the time, in UTC.
    """

    def __init__(self, path: Path | str, *, now: Callable[[], datetime] = _utc_now) -> None:
        self.path = Path(path)
        self._database = Database(self.path)
        self._now = now
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def answer(self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] = _NO_HEADERS) -> Reply:
        """Return the reply to a request; never raises for what is in it, or for the file.

        `target` is the path and query as they stand on the wire, percent-encoded. The case of `headers` does not
        matter; a body is JSON only where `content-type` says so. Blocks while another process writes, up to 10 s.
        """
        named = {name.lower(): value for name, value in headers.items()}
        path, _, query = target.partition("?")
        request = Request(self._database, self._now(), query, body, named, time.monotonic() - self._started)
        reply = self._guarded(method.upper(), unquote(path), request)
        name, value = SERVER_HEADER
        extra = {name: value}
        if ignored := request.ignored:
            extra["x-ignored-params"] = ", ".join(ignored)
        return Reply(reply.status, reply.headers | extra, b"" if method.upper() == "HEAD" else reply.body)

    def close(self) -> None:
        """Close the file; requests after this get a 500 that says so."""
        self._database.close()

    def _guarded(self, method: str, path: str, request: Request) -> Reply:
        try:
            return _routed(method, path, request)
        except Problem as problem:
            return _problem_reply(problem)
        except StorageError as error:
            if path in {"/health", "/health/ready"}:
                return json_reply(503, {"status": "unhealthy", "database": "error", "error": str(error)})
            if error.busy:
                return json_reply(503, {"detail": str(error)}, {"retry-after": _BUSY_RETRY_SECONDS})
            return json_reply(500, {"detail": str(error)})
        except Exception as error:  # noqa: BLE001 - the server's own last resort: a fault of ours is a 500, not a crash
            return json_reply(500, {"detail": f"{type(error).__name__}: {error}"})


def _routed(method: str, path: str, request: Request) -> Reply:
    match = find_route(method, path)
    if match is None:
        host = request.headers.get("host")
        origin = f"http://{host}" if host else ""
        query = f"?{request.query}" if request.query else ""
        return Reply(307, {"location": f"{origin}{quote(other_slash(path))}{query}"}, b"")
    request.params = match.params
    return json_reply(200, match.route.handler(request))


def _problem_reply(problem: Problem) -> Reply:
    try:
        return json_reply(problem.status, {"detail": problem.detail}, problem.headers)
    except ValueError:
        # The 422 echoes what was sent, and a NaN in it has no JSON: the server fails over it just so.
        return text_reply(500, "Internal Server Error")
