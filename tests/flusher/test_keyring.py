"""Which keys are known, for which destinations, and that no key goes anywhere else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bankclient.flusher import Keyring
from bankclient.settings import Settings
from bankclient.store.fingerprint import KEYLESS
from bankclient.store.outbox import Destination

if TYPE_CHECKING:
    from pathlib import Path

    from bankclient.client import AsyncBankClient

URL = "https://memory.invalid"


def settings(state: Path, url: str = URL, token: str | None = None) -> Settings:
    """Return settings that name a server and its key."""
    return Settings(api_url=url, api_token=token, state_dir=state)


def headers_of(client: AsyncBankClient | None) -> dict[str, str]:
    """Return what the client sends with each request."""
    assert client is not None
    return dict(client._caller.core.headers)


def test_a_key_is_named_and_not_kept(tmp_path: Path) -> None:
    """The destination has the key's fingerprint, and nothing on the disk has the key."""
    keyring = Keyring(settings(tmp_path, token="hsk-secret"))
    destination = keyring.destination(settings(tmp_path, token="hsk-secret"))
    assert destination.url == URL
    assert destination.key not in {KEYLESS, "hsk-secret"}
    assert headers_of(keyring.client(destination)) == {"authorization": "Bearer hsk-secret"}
    assert b"hsk-secret" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_another_process_of_the_same_state_folder_names_it_alike(tmp_path: Path) -> None:
    """The salt is in the folder; in another folder the same key has another name."""
    one, two = (Keyring(settings(tmp_path, token="a")) for _ in range(2))
    other = Keyring(settings(tmp_path / "other", token="a"))
    assert one.destination(settings(tmp_path, token="a")) == two.destination(settings(tmp_path, token="a"))
    assert other.destination(settings(tmp_path, token="a")) != one.destination(settings(tmp_path, token="a"))


@pytest.mark.parametrize(
    ("url", "is_known"),
    [
        (URL, True),
        (f"{URL}/mem", True),
        ("https://MEMORY.invalid", True),
        ("http://memory.invalid", False),
        ("https://memory.invalid:8443", False),
        ("https://memory.invalid.evil.invalid", False),
        ("https://evil.invalid", False),
        ("http://127.0.0.1:8888", False),
        ("embedded", False),
    ],
)
def test_a_key_goes_to_the_origin_that_it_came_with(tmp_path: Path, url: str, *, is_known: bool) -> None:
    """Another path there is the same server; another host, port or scheme is somebody else."""
    keyring = Keyring(settings(tmp_path, token="secret"))
    destination = Destination(url, keyring.destination(settings(tmp_path, token="secret")).key)
    assert keyring.knows(destination) is is_known
    client = keyring.client(destination)
    assert (client is not None) is is_known
    if client is not None:
        assert client.settings.api_url == url
        assert headers_of(client) == {"authorization": "Bearer secret"}


@pytest.mark.parametrize("url", ["embedded", "http://127.0.0.1:7", "http://localhost:7/x", "http://[::1]:7"])
def test_what_needs_no_key_is_always_known(tmp_path: Path, url: str) -> None:
    """The embedded bank and a server on loopback get no key that was meant for another."""
    keyring = Keyring(settings(tmp_path, token="secret"))
    assert keyring.knows(Destination(url, KEYLESS))
    assert headers_of(keyring.client(Destination(url, KEYLESS))) == {}


def test_a_server_elsewhere_without_a_key_has_to_be_configured(tmp_path: Path) -> None:
    """No key is a key too: to whom things go is the person's to say."""
    destination = Destination("http://elsewhere.invalid", KEYLESS)
    assert not Keyring(settings(tmp_path)).knows(destination)
    assert Keyring(settings(tmp_path, url="http://elsewhere.invalid")).knows(destination)


def test_the_embedded_bank_has_no_key(tmp_path: Path) -> None:
    """A token that is set meanwhile makes it no other destination."""
    keyring = Keyring(settings(tmp_path, url="embedded", token="secret"))
    assert keyring.destination(settings(tmp_path, url="embedded", token="secret")) == Destination("embedded", KEYLESS)


def test_keys_are_added(tmp_path: Path) -> None:
    """Each key that this process is given is known from then on, with its own limits; what was first stays."""
    keyring = Keyring(settings(tmp_path))
    slow = Settings(api_url=URL, api_token="new", retain_timeout_ms=9000, state_dir=tmp_path)
    destination = keyring.destination(slow)
    assert keyring.client(destination) is None
    assert keyring.add(slow) == destination
    client = keyring.client(destination)
    assert client is not None
    assert client.settings.retain_timeout_ms == 9000
    keyring.add(settings(tmp_path, token="new"))
    assert keyring.client(destination) is client


def test_a_closed_keyring_goes_on(tmp_path: Path) -> None:
    """Closing is for the connections; what is asked for later has new ones, also in the embedded bank."""
    keyring = Keyring(settings(tmp_path, url="embedded"))
    destination = Destination("embedded", KEYLESS)

    async def ask() -> str:
        client = keyring.client(destination)
        assert client is not None
        try:
            return (await client.version()).api_version
        finally:
            await keyring.close()

    assert asyncio.run(ask()) == asyncio.run(ask())


def test_a_user_and_password_are_a_key(tmp_path: Path) -> None:
    """They name a destination of their own, and are sent to it."""
    keyring = Keyring(settings(tmp_path, url="https://ann:pass@memory.invalid"))
    destination = keyring.destination(settings(tmp_path, url="https://ann:pass@memory.invalid"))
    assert destination.url == URL
    assert headers_of(keyring.client(destination))["authorization"].startswith("Basic ")
    assert destination != Destination(URL, KEYLESS)
