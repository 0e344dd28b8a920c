"""The keys that this process knows, and the clients that speak with them.

A key is known for an origin: it was given together with an URL of that origin, and goes nowhere else. It is named by
its fingerprint and never kept on the disk. This module knows no queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bankclient.client import AsyncBankClient
from bankclient.client.environment import is_loopback
from bankclient.client.policy import Breaker, Permit
from bankclient.settings import EMBEDDED
from bankclient.store.fingerprint import KEYLESS, fingerprint, load_salt
from bankclient.store.outbox import Destination

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import SecretStr

    from bankclient.client.transport import AsyncTransport
    from bankclient.settings import Settings

__all__ = ["Keyring", "connect"]


class _AlwaysClosed(Breaker):
    """Lets every call through: when a destination is tried again is the outbox's to say, and it remembers for days."""

    def ask(self, kind: str, now: float) -> Permit:
        """Return leave to send."""
        del kind, now
        return Permit()


def connect(settings: Settings, *, transport: AsyncTransport | None = None) -> AsyncBankClient:
    """Return a client for sending what is queued, over the network unless there is another `transport`."""
    return AsyncBankClient(settings=settings, breaker=_AlwaysClosed(), transport=transport)


class Keyring:
    """Knows the keys of `settings` and of those that are added; each goes only to the origin that it came with.

    What needs no key, the embedded bank and a server on loopback, is always known. `connect` makes a client. Raises
    `StoreError` where the state folder has no usable salt, and none can be made.
    """

    def __init__(self, settings: Settings, *, connect: Callable[[Settings], AsyncBankClient] = connect) -> None:
        self._settings = settings
        self._connect = connect
        self._salt = load_salt(settings.state_dir)
        self._known: dict[tuple[str, str], Settings] = {}
        self._clients: dict[Destination, AsyncBankClient] = {}
        self.add(settings)

    def add(self, settings: Settings) -> Destination:
        """Learn the key in `settings` for the URL in them; return the destination that they name."""
        destination = self.destination(settings)
        self._known.setdefault((_origin(destination.url), destination.key), settings)
        return destination

    def destination(self, settings: Settings) -> Destination:
        """Return the destination that the settings name."""
        if settings.api_url == EMBEDDED:
            return Destination(EMBEDDED, KEYLESS)
        token, userinfo = _text(settings.api_token), _text(settings.api_userinfo)
        return Destination(settings.api_url, fingerprint(self._salt, token, userinfo))

    def knows(self, destination: Destination) -> bool:
        """Return whether the destination's key is known."""
        return self._settings_for(destination) is not None

    def client(self, destination: Destination) -> AsyncBankClient | None:
        """Return the client for the destination, `None` where its key is not known."""
        if (client := self._clients.get(destination)) is not None:
            return client
        if (settings := self._settings_for(destination)) is None:
            return None
        client = self._connect(settings.model_copy(update={"api_url": destination.url}))
        return self._clients.setdefault(destination, client)

    def _settings_for(self, destination: Destination) -> Settings | None:
        known = self._known.get((_origin(destination.url), destination.key))
        if known is not None or destination.key != KEYLESS or not _needs_no_key(destination.url):
            return known
        return self._settings.model_copy(update={"api_token": None, "api_userinfo": None})

    async def close(self) -> None:
        """Close the connections of the running event loop; who asks for a client later gets a new one."""
        while self._clients:
            _, client = self._clients.popitem()
            await client.close()


def _text(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower() if parts.netloc else url


def _needs_no_key(url: str) -> bool:
    return url == EMBEDDED or is_loopback(urlsplit(url).hostname or "")
