# Made from the async client by .ci/sync_twin.py: change that one.
"""Sends calls: the one place where retries, breaker, deadline and degradation meet the transport.

It knows `Call`, `Exchange` and a transport, and no bank, endpoint or setting.
"""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tenacity import Retrying

from bankclient.api import calls
from bankclient.api.call import Repeat
from bankclient.api.capabilities import Capabilities
from bankclient.client.transport import NoAnswer, UnreadableReply
from bankclient.errors import CallError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from bankclient.api.call import Call
    from bankclient.api.models.server import Version
    from bankclient.client.exchange import Core, Exchange
    from bankclient.client.transport import StreamedResponse, Transport

__all__ = ["Caller"]

T = TypeVar("T")
_LONGEST_REFUSAL: Final = 65_536


class Caller:
    """Sends calls over one transport; safe to use from several threads at once."""

    def __init__(self, core: Core, transport: Transport, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.core = core
        self._transport = transport
        self.sleep = sleep
        self._capabilities: Capabilities | None = None

    def call(self, call: Call[T], *, timeout: float | None = None, extra: bool = False) -> T:
        """Return the parsed answer to `call`.

        `timeout` is wall-clock time in seconds for all attempts together; `None` is the setting for this kind of call.
        Raises `Unavailable` where no answer came, `Refused` where it is not the one asked for; a degraded client
        returns the call's empty answer instead while its server is away. The failure of an `extra` call says nothing
        to the breaker.
        """
        exchange = self.core.begin(call, timeout, extra=extra)
        try:
            self._fit(exchange)
            answer: T = Retrying(sleep=self.sleep, **exchange.retry_options())(partial(self._attempt, exchange))
        except CallError as error:
            return exchange.failed(error)
        except BaseException:
            exchange.abandon()
            raise
        exchange.succeeded()
        return answer

    def _attempt(self, exchange: Exchange[T]) -> T:
        exchange.open()
        if exchange.last_error is not None and not self._may_repeat(exchange):
            raise exchange.given_up(exchange.last_error)
        request, left = exchange.request()
        try:
            response = self._transport.send(request, left)
        except NoAnswer as error:
            raise exchange.unanswered(error) from error.__cause__
        except UnreadableReply as error:
            raise exchange.unreadable(error) from error.__cause__
        answer: T = exchange.read(response)
        return answer

    @contextlib.contextmanager
    def stream(self, call: Call[object], *, timeout: float | None = None) -> Generator[StreamedResponse, None, None]:
        """Give the answer to `call` as soon as its status is here; its body is read piece by piece, and never repeated.

        `timeout` bounds the wait for the status and for each piece, in seconds. Raises as `call` does, while it begins
        and while it is read; `degrade` makes no difference here.
        """
        exchange = self.core.begin(call, timeout)
        try:
            exchange.open()
            request, left = exchange.request()
            with self._transport.stream(request, left) as answer:
                if answer.status >= 300:  # noqa: PLR2004 - what is not success
                    body = self._beginning(answer, exchange)
                    raise exchange.refused(answer.status, answer.headers, body)  # noqa: TRY301 - where the body is
                exchange.succeeded()
                yield answer
        except NoAnswer as error:
            failure = exchange.unanswered(error)
            exchange.settle(failure)
            raise failure from error.__cause__
        except UnreadableReply as error:
            unreadable = exchange.unreadable(error)
            exchange.settle(unreadable)
            raise unreadable from error.__cause__
        except CallError as error:
            exchange.settle(error)
            raise
        except BaseException:
            exchange.abandon()
            raise

    def _beginning(self, answer: StreamedResponse, exchange: Exchange[Any]) -> bytes:
        """Return the beginning of a refusal's body: enough for its sentence, however long or slow the rest is."""
        body = b""
        for piece in answer.iter_bytes():
            body += piece
            if len(body) > _LONGEST_REFUSAL or exchange.left() <= 0:
                break
        return body[:_LONGEST_REFUSAL]

    def capabilities(self, *, timeout: float | None = None) -> Capabilities:
        """Return what the server's version can do, asked once and kept; raises as `call` does."""
        if self._capabilities is not None:
            return self._capabilities
        answer = self.version(timeout=timeout)
        known = Capabilities.of(answer.api_version)
        if not answer.degraded:
            self._capabilities = known
        return known

    def version(self, *, timeout: float | None = None) -> Version:
        """Return the server's version; one before 1.0 has it under another path."""
        began = self.core.now()
        try:
            return self.call(calls.version(), timeout=timeout)
        except NotFound:
            left = self.core.left("request", timeout, began)
            return self.call(calls.version(path="/version"), timeout=left)

    def _fit(self, exchange: Exchange[Any]) -> None:
        """Check a call against the server's version, within its time, where it rests on something newer.

        A read asks for the version first, and so does an append, which an old server would take for a replacement. No
        other write waits for that: it is checked if the version is known.
        """
        call = exchange.call
        if call.needs and (call.repeat is Repeat.READ or "append" in call.needs):
            self.capabilities(timeout=exchange.left())
        if self._capabilities is not None:
            exchange.call = self._capabilities.fit(call)

    def _may_repeat(self, exchange: Exchange[Any]) -> bool:
        """Return whether a second send is safe: an old server ignores operation ids, and would store a second copy."""
        if "operation_ids" not in exchange.call.needs or exchange.call.repeat is not Repeat.IDENTIFIED:
            return True
        try:
            left = self.core.left(exchange.call.time_limit, exchange.limit, exchange.began)
            return (self.capabilities(timeout=left)).operation_ids
        except CallError:
            return False

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._transport.close()
