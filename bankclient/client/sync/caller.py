# Made from the async client by .ci/sync_twin.py: change that one.
"""Sends calls: the one place where retries, breaker, deadline and degradation meet the transport.

It knows `Call`, `Exchange` and a transport, and no bank, endpoint or setting.
"""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

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


class Caller:
    """Sends calls over one transport; safe to use from several threads at once."""

    def __init__(self, core: Core, transport: Transport, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.core = core
        self._transport = transport
        self.sleep = sleep
        self._capabilities: Capabilities | None = None

    def call(self, call: Call[T], *, timeout: float | None = None) -> T:
        """Return the parsed answer to `call`.

        `timeout` is wall-clock time in seconds for all attempts together; `None` is the setting for this kind of call.
        Raises `Unavailable` where no answer came, `Refused` where it is not the one asked for; a degraded client
        returns the call's empty answer instead while its server is away.
        """
        exchange = self.core.begin(self._fitted(call), timeout)
        try:
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
        if exchange.last_error is not None and not self._may_repeat(exchange.call):
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
                    body = b"".join([piece for piece in answer.iter_bytes()])
                    raise exchange.refused(answer.status, answer.headers, body)  # noqa: TRY301 - where the body is
                exchange.succeeded()
                yield answer
        except NoAnswer as error:
            failure = exchange.unanswered(error)
            exchange.settle(failure)
            raise failure from error.__cause__
        except CallError as error:
            exchange.settle(error)
            raise
        except BaseException:
            exchange.abandon()
            raise

    def capabilities(self) -> Capabilities:
        """Return what the server's version can do, asked once and kept; raises as `call` does."""
        if self._capabilities is not None:
            return self._capabilities
        answer = self.version()
        known = Capabilities.of(answer.api_version)
        if not answer.degraded:
            self._capabilities = known
        return known

    def version(self, *, timeout: float | None = None) -> Version:
        """Return the server's version; one before 1.0 has it under another path."""
        try:
            return self.call(calls.version(), timeout=timeout)
        except NotFound:
            return self.call(calls.version(path="/version"), timeout=timeout)

    def _fitted(self, call: Call[T]) -> Call[T]:
        """Return `call` after checking it against the server's version, where it rests on something newer.

        A read asks for the version first, and so does an append, which an old server would take for a replacement. No
        other write waits for that: it is checked if the version is known.
        """
        if call.needs and (call.repeat is Repeat.READ or "append" in call.needs):
            self.capabilities()
        return call if self._capabilities is None else self._capabilities.fit(call)

    def _may_repeat(self, call: Call[Any]) -> bool:
        """Return whether a second send is safe: an old server ignores operation ids, and would store a second copy."""
        if "operation_ids" not in call.needs or call.repeat is not Repeat.IDENTIFIED:
            return True
        try:
            return (self.capabilities()).operation_ids
        except CallError:
            return False

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._transport.close()
