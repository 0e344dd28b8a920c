"""What a person is told of an error: the thing that is wrong, and the mend, in one line.

It knows the error tree, and the standard library's errors that stand behind a failed connection. The doctor's findings
use the same words.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bankclient.cli import output
from bankclient.errors import (
    BankclientError,
    BreakerOpen,
    CallError,
    ConnectFailed,
    ConnectionLost,
    NotFound,
    OperationFailed,
    RateLimited,
    Refused,
    ServerBusy,
    ServerError,
    TimedOut,
    Unauthorized,
    UnexpectedReply,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Failure", "explain", "report"]

_FAILED = 1
_EMBEDDED = "http://embedded"  # what the clients call the bank in their own process
_GATEWAY_STATUSES = frozenset({502, 504})
_LOOK_AT_URL = "check HINDSIGHT_API_URL"
_VIA_PROXY = "to the proxy that the environment names"  # in a reason of the client's


class Failure(NamedTuple):
    """What is wrong, and what to do about it (empty where the first says it)."""

    what: str
    mend: str = ""

    def __str__(self) -> str:
        return f"{self.what}; {self.mend}" if self.mend else self.what


def report(error: Exception) -> int:
    """Say what failed, in one line on stderr, and return the exit code."""
    if isinstance(error, BankclientError):
        output.fail("; ".join([str(explain(error)), *getattr(error, "__notes__", ())]))
    elif isinstance(error, OSError) and error.strerror:
        output.fail(error.strerror + (f": {error.filename}" if error.filename else ""))
    else:
        _report_fault(error)
    return _FAILED


def _report_fault(error: Exception) -> None:
    """Say that this is a fault of ours, and where; what an error itself says may hold what was not to be shown."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    output.fail(
        f"a fault in bankclient ({type(error).__name__} at {where}); HINDSIGHT_DEBUG=1 shows more, please report it"
    )
    if _is_debugging():
        output.note("".join(traceback.format_exception(error)))


def _is_debugging() -> bool:
    from bankclient.settings import TRUE_WORDS  # noqa: PLC0415 - they may be what failed to load

    word = os.environ.get("HINDSIGHT_DEBUG", "").strip().lower()
    return word in TRUE_WORDS or logging.getLogger("bankclient").isEnabledFor(logging.DEBUG)


def explain(error: BankclientError) -> Failure:
    """Return what a person should know of an error, and do."""
    if isinstance(error, CallError):
        return _of_call(error)
    if isinstance(error, OperationFailed):
        return Failure(str(error), "the server's log says more; retain it again once that is mended")
    return Failure(str(error))


def _of_call(error: CallError) -> Failure:
    server = _server(error)
    match error:
        case BreakerOpen():
            return Failure(f"{server} did not answer a moment ago, and was not asked again", "try again in a minute")
        case ConnectFailed():
            return _unconnected(error, server)
        case TimedOut():
            return _late(error, server)
        case ConnectionLost():
            return Failure(
                f"{server} broke off its answer to {_words(error.context.operation)} ({error.reason})",
                f"try again; if it stays so, what listens there may be no Hindsight server: {_LOOK_AT_URL}",
            )
        case Refused():
            return _refused(error, server)
        case _:
            return Failure(str(error))


def _server(error: CallError) -> str:
    url = error.context.server
    return "the embedded bank" if url == _EMBEDDED else url or "the server"


def _unconnected(error: CallError, server: str) -> Failure:
    if _VIA_PROXY not in error.reason:
        return _unreached(error, server)
    return Failure(
        f"the proxy that the environment names for {server} cannot be reached ({error.reason})",
        "check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or put the server's host into NO_PROXY",
    )


def _unreached(error: CallError, server: str) -> Failure:
    for cause in _causes(error):
        match cause:
            case socket.gaierror():
                return Failure(f"the host name in {server} is not known", _LOOK_AT_URL)
            case ConnectionRefusedError():
                return Failure(
                    f"nothing listens at {server} (connection refused)",
                    "start the Hindsight server, or set HINDSIGHT_API_URL to where it is",
                )
            case ssl.SSLError():
                return Failure(
                    f"no secure connection to {server}: {cause}",
                    "write http:// if the server speaks no TLS; SSL_CERT_FILE names an authority of your own",
                )
            case TimeoutError():
                return Failure(
                    f"{server} does not answer attempts to connect",
                    "the address may be wrong, the machine off, or a firewall in between: " + _LOOK_AT_URL,
                )
            case OSError() if cause.strerror:
                return Failure(f"{server} cannot be reached ({cause.strerror})", f"{_LOOK_AT_URL} and the network")
            case _:
                pass
    return Failure(f"{server} cannot be reached ({error.reason})", f"{_LOOK_AT_URL} and the proxy variables")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors that led to this one, nearest first."""
    cause = error.__cause__ or error.__context__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _late(error: CallError, server: str) -> Failure:
    # What went wrong before says more than that the time was over in the midst of trying again.
    told = next((earlier for earlier in error.earlier if not isinstance(earlier, TimedOut)), None)
    if told is not None:
        return _of_call(told)
    operation, limit = error.context.operation, error.context.limit or 0.0
    if operation == "wait":
        return Failure(
            f"it is not stored after {limit:g} s, and {server} goes on",
            "`bankclient status` shows what is pending; HINDSIGHT_RETAIN_TIMEOUT_MS is how long --wait waits",
        )
    kind = operation if operation in {"recall", "retain", "reflect"} else "request"
    return Failure(
        f"{server} gave no answer to {_words(operation)} within {limit:g} s",
        f"try again, or allow more time by HINDSIGHT_{kind.upper()}_TIMEOUT_MS; if it stays so, {_LOOK_AT_URL}",
    )


def _words(operation: str) -> str:
    return operation.replace("_", " ")


def _refused(error: Refused, server: str) -> Failure:
    said = f"{error.status}: {error.detail}" if error.detail else str(error.status)
    if isinstance(error, RateLimited | ServerBusy):
        return Failure(f"{server} is busy ({said})", f"try again{_in_seconds(error.retry_after)}")
    return _refused_by_server(error, server, said) if error.from_server else _refused_by_other(error, server, said)


def _refused_by_server(error: Refused, server: str, said: str) -> Failure:
    operation = _words(error.context.operation)
    match error:
        case Unauthorized():
            return Failure(f"{server} refuses the key ({said})", "set HINDSIGHT_API_TOKEN to one that it takes")
        case NotFound() if error.is_missing_bank:
            return Failure(f"there is no bank {error.context.bank!r} at {server}", "the first retain makes it")
        case NotFound(detail="Not Found"):
            return Failure(f"there is no Hindsight API under {server} ({said})", f"{_LOOK_AT_URL}, above all its path")
        case ServerError() if error.context.server == _EMBEDDED:
            return Failure(f"{server} failed at {operation}: {error.detail}")  # which has the mend
        case ServerError():
            return Failure(f"{server} failed at {operation} ({said})", "its log says more")
        case _:
            return Failure(f"{server} refuses the {operation} ({said})")


def _refused_by_other(error: Refused, server: str, said: str) -> Failure:
    match error:
        case Unauthorized():
            return Failure(
                f"something in front of {server} lets nobody through ({said})",
                "it may want a user and password in HINDSIGHT_API_URL, or another address",
            )
        case ServerError() if error.status in _GATEWAY_STATUSES:
            return Failure(
                f"a gateway answers at {server}, and the server behind it does not ({said})",
                "start the Hindsight server, or wait for it",
            )
        case UnexpectedReply() if _is_redirection(error.status):
            return Failure(f"{server} {error.reason}")
        case _:
            reason = error.reason.removesuffix("; is the server's URL right?")
            return Failure(f"what answers at {server} is not a Hindsight server: {reason}", _LOOK_AT_URL)


def _is_redirection(status: int) -> bool:
    return 300 <= status < 400  # noqa: PLR2004 - the range of redirections


def _in_seconds(seconds: float | None) -> str:
    return " later" if seconds is None else f" in {seconds:.0f} s"
