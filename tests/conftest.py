"""What every test stands on: its own environment, no network but loopback, a real server for those who ask."""

from __future__ import annotations

import ipaddress
import itertools
import os
import signal
import socket
import tempfile
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import settings

from bankclient.testing.hindsight import HindsightServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# A shared machine stalls now and then; how long an example took says nothing about the code.
settings.register_profile("bankclient", deadline=None)
settings.load_profile("bankclient")

_FOREIGN = ("HINDSIGHT_", "GIT_", "XDG_", "SSL_CERT_", "CLAUDE_", "CODEX_")


def pytest_configure() -> None:
    """Take SIGTERM as Ctrl-C, so that what was started is stopped also when a CI ends the run."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iterator[Path]]:
    """Give homes that are not made yet, and have temporary files beside them for the whole session.

    `tmp_path` would do, at several times the cost for each test.
    """
    folder = tmp_path_factory.mktemp("homes")
    temporary = folder / "tmp"
    temporary.mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        patch.setattr(tempfile, "tempdir", None)  # forget the folder that was found before
        yield (folder / str(number) for number in itertools.count(1))


@pytest.fixture(autouse=True)
def _own_environment(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test a new and empty home, and nothing of the person who runs it, nor of their proxies."""
    for name in list(os.environ):
        if name.startswith(_FOREIGN) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    home = next(_homes)
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))  # by its specification it exists and is private, as the home is
    for name, folder in (
        ("CACHE", ".cache"),
        ("CONFIG", ".config"),
        ("DATA", ".local/share"),
        ("STATE", ".local/state"),
    ):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / folder))


def _is_ours(host: object) -> bool:
    """Whether a host, by name or address, is this machine."""
    name = host.decode() if isinstance(host, bytes) else host
    if not isinstance(name, str) or name in {"", "localhost"} or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


@pytest.fixture(scope="session")
def _strayed() -> Iterator[list[str]]:
    """Refuse every connection that would leave this machine, and keep where it was to go."""
    strayed: list[str] = []

    def guarded(method: str) -> Callable[[socket.socket, Any], Any]:
        original = getattr(socket.socket, method)

        def connect(self: socket.socket, address: Any) -> Any:  # noqa: ANN401 - as the socket module has it
            if self.family != socket.AF_UNIX and not _is_ours(address[0]):
                strayed.append(f"{method} to {address}")
                raise OSError(f"a test must not connect to {address}: only loopback is allowed")
            return original(self, address)

        return connect

    resolve = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the socket module has it
        if _is_ours(host):
            return resolve(host, *args, **kwargs)
        if not str(host).rstrip(".").endswith(".invalid"):  # RFC 6761: such a name never resolves, anywhere
            strayed.append(f"a look-up of {host}")
        raise socket.gaierror(socket.EAI_NONAME, f"{host!r} is not looked up in tests (use a name under .invalid)")

    with pytest.MonkeyPatch.context() as patch:
        for method in ("connect", "connect_ex"):
            patch.setattr(socket.socket, method, guarded(method))
        patch.setattr(socket, "getaddrinfo", getaddrinfo)
        yield strayed


@pytest.fixture(autouse=True)
def _loopback_only(_strayed: list[str]) -> Iterator[None]:
    """Fail the test that tried to leave this machine, also where the code under test took the error for an outage."""
    yield
    if _strayed:
        tried = ", ".join(_strayed)
        _strayed.clear()
        pytest.fail(f"the test tried to leave this machine: {tried}")


@pytest.fixture(scope="session")
def hindsight_python() -> str:
    """Give the Python that has a real server, for tests that start a `HindsightServer` of their own."""
    python = os.environ.get("BANKCLIENT_HINDSIGHT")
    if not python:
        pytest.fail(
            "no real Hindsight server: set BANKCLIENT_HINDSIGHT to the Python of an environment with the extra"
            " `hindsight` (pip install 'bankclient[hindsight]')"
        )
    return python


@pytest.fixture(scope="session")
def real_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the base URL of a real Hindsight server in which each item becomes one fact, its text as it is.

    BANKCLIENT_TEST_URL names one that runs already.
    """
    if url := os.environ.get("BANKCLIENT_TEST_URL"):
        yield url
    else:
        with HindsightServer(request.getfixturevalue("hindsight_python")) as server:
            yield server.url


@pytest.fixture
def bank(real_url: str) -> Iterator[str]:
    """Give the name of a bank that is nobody else's; it is deleted afterwards."""
    name = f"test-{uuid.uuid4().hex}"
    yield name
    httpx.delete(f"{real_url}/v1/default/banks/{name}", timeout=30.0).raise_for_status()
