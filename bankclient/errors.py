"""The error tree: what went wrong, with whom, and what the reader can do about it.

Two roots for a call to a server: `Unavailable` (no answer came) and `Refused` (an answer came that we dislike). Beside
them `ConfigError` and `InvalidInput`, which are raised before anything is sent, and `StoreError`, where nothing could
be put on our own disk. Nothing here knows HTTP libraries, settings or files. No error holds a credential, or the
server's echo of what was sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "BadRequest",
    "BankclientError",
    "BreakerOpen",
    "CallError",
    "ConfigError",
    "Conflict",
    "ConnectFailed",
    "ConnectionLost",
    "Context",
    "Disabled",
    "InvalidInput",
    "NotFound",
    "OperationFailed",
    "OutboxFull",
    "RateLimited",
    "Refused",
    "ServerBusy",
    "ServerError",
    "StoreError",
    "StoreTooNew",
    "TimedOut",
    "Unauthorized",
    "Unavailable",
    "UnexpectedReply",
    "refusal",
]


class BankclientError(Exception):
    """Every error that this package raises on purpose."""


class ConfigError(BankclientError):
    """A setting or a file of ours cannot be used; the message names it and the mend."""


class InvalidInput(BankclientError, ValueError):
    """A caller's value that no server would take; raised before anything is sent."""


class StoreError(BankclientError):
    """Our store on the disk cannot be read or written; the message names the file and the mend.

    What was being written is undone whole, so it was not acknowledged. `busy` says that trying again may be enough.
    """

    def __init__(self, message: str, *, busy: bool = False) -> None:
        super().__init__(message)
        self.busy = busy


class StoreTooNew(StoreError):
    """The store was written by a later major version, and was left as it is."""


class OutboxFull(StoreError):
    """What waits to be sent has reached its bound, in number or bytes; the new item was not taken."""


@dataclass(frozen=True, slots=True)
class Context:
    """Which call failed: the operation's name, its bank, the server, and the time (seconds) it took of its limit."""

    operation: str
    server: str = ""
    bank: str | None = None
    elapsed: float = 0.0
    limit: float | None = None

    def __str__(self) -> str:
        where = f" in bank {self.bank!r}" if self.bank is not None else ""
        at = f" at {self.server}" if self.server else ""
        return f"{self.operation}{where}{at}"


class CallError(BankclientError):
    """A call to a server failed.

    `context` says which call, `reason` what happened, `earlier` holds the errors of the attempts before this one,
    oldest first.
    """

    def __init__(self, reason: str, context: Context, *, earlier: Sequence[CallError] = ()) -> None:
        super().__init__(reason, context)
        self.reason = reason
        self.context = context
        self.earlier: tuple[CallError, ...] = tuple(earlier)

    def __str__(self) -> str:
        limit = "" if self.context.limit is None else f" of {self.context.limit:.1f} s allowed"
        tries = f", attempt {len(self.earlier) + 1}" if self.earlier else ""
        return f"{self.context}: {self.reason} ({self.context.elapsed:.2f} s{limit}{tries})"

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are rebuilt from `args`, which knows no keyword: the state restores the rest.
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(kind: type[CallError], args: tuple[object, ...], state: dict[str, object]) -> CallError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class Unavailable(CallError):
    """No answer: the server is away, or did not answer within the time allowed."""

    says_nothing: bool = False
    """Whether this is no sign that the server is away: it may have closed a connection that was idle."""


class ConnectFailed(Unavailable):
    """No connection could be made (refused, unreachable, unknown name, TLS); nothing was sent."""


class ConnectionLost(Unavailable):
    """The connection broke before the whole answer was here; the server may or may not have acted."""


class TimedOut(Unavailable):
    """The wall-clock limit passed first; the server may or may not have acted."""


class BreakerOpen(Unavailable):
    """Not tried: the server gave no answer a moment ago, and the next probe is not due yet."""


class Disabled(Unavailable):
    """Not tried: memory is switched off for this caller (HINDSIGHT_DISABLED, or a `[[project]]` rule)."""


class Refused(CallError):
    """The server answered, with something else than what was asked for.

    `status` is the HTTP status, `detail` the server's sentence (never its echo of the input), `retry_after` the
    seconds that it asked to wait, `None` where it did not, `from_server` whether the body had Hindsight's own shape
    (JSON with a `detail`) and so was not some gateway's.
    """

    def __init__(
        self,
        reason: str,
        context: Context,
        *,
        status: int,
        detail: str = "",
        retry_after: float | None = None,
        from_server: bool = True,
        earlier: Sequence[CallError] = (),
    ) -> None:
        super().__init__(reason, context, earlier=earlier)
        self.status = status
        self.detail = detail
        self.retry_after = retry_after
        self.from_server = from_server


class BadRequest(Refused):
    """400, 405, 410, 413, 422 and the other 4xx: the server will not take this as it is."""


class Unauthorized(Refused):
    """401, 402 or 403: the key is missing, wrong, or not allowed to do this."""


class NotFound(Refused):
    """404: no such bank, document, memory or route; `detail` says which."""

    @property
    def is_missing_bank(self) -> bool:
        """Whether it is the bank that is not there (the server's sentence is `Bank 'x' not found`)."""
        return self.from_server and self.detail.startswith("Bank ") and self.detail.endswith(" not found")


class Conflict(Refused):
    """409: an id that is in use, or an operation in another state."""


class RateLimited(Refused):
    """429: come back later; `retry_after` says when, if the server did."""


class ServerError(Refused):
    """500, 502, 504 and other 5xx."""


class ServerBusy(ServerError):
    """503: the server is alive and full; `retry_after` says when, if the server did."""


class UnexpectedReply(Refused):
    """An answer that is not Hindsight's: HTML, a redirect, broken or cut JSON, another shape, or too many bytes."""


class OperationFailed(BankclientError):
    """A waited-for operation ended as `failed`, `cancelled` or `not_found`; `status` says which, `detail` why."""

    def __init__(self, operation_id: str, status: str, detail: str = "") -> None:
        super().__init__(operation_id, status, detail)
        self.operation_id = operation_id
        self.status = status
        self.detail = detail

    def __str__(self) -> str:
        return f"operation {self.operation_id} ended as {self.status}" + (f": {self.detail}" if self.detail else "")


_BY_STATUS: dict[int, type[Refused]] = {
    401: Unauthorized,
    402: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    409: Conflict,
    429: RateLimited,
    503: ServerBusy,
}
_CLIENT_ERROR, _SERVER_ERROR = 400, 500


def refusal(status: int) -> type[Refused]:
    """Return the class for an HTTP status that is not a success; a status below 400 is an `UnexpectedReply`."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= _SERVER_ERROR:
        return ServerError
    return BadRequest if status >= _CLIENT_ERROR else UnexpectedReply
