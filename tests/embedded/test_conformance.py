"""The shipped checks, on the embedded bank in process and over ASGI, and on the real server."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import anyio.from_thread
import httpx
import pytest

from bankclient.embedded.app import create_app
from bankclient.testing.conformance import CHECKS, DIFFERENCES, Answer, Check, Probe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bankclient.embedded import EmbeddedServer

each_check = pytest.mark.parametrize(
    "check", CHECKS, ids=lambda check: f"{check.__module__.split('.')[-1]}-{check.__name__}"
)


@each_check
def test_in_process(check: Check, probe: Probe) -> None:
    """The embedded bank does what a Hindsight server does, asked without a socket."""
    check(probe)


@pytest.fixture
def asgi_probe(server: EmbeddedServer) -> Iterator[Probe]:
    """Give a probe that reaches the embedded bank through its ASGI application."""
    client = httpx.AsyncClient(transport=httpx.ASGITransport(create_app(server)), base_url="http://embedded")

    async def request(method: str, target: str, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
        return await client.request(method, httpx.URL(f"http://embedded{target}"), content=body, headers=dict(headers))

    with anyio.from_thread.start_blocking_portal() as portal:

        def send(method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Answer:
            response = portal.call(request, method, target, body, headers)
            return Answer(response.status_code, response.headers, response.content)

        yield Probe(send, "embedded", "bank", "other")
        portal.call(client.aclose)


@each_check
def test_over_asgi(check: Check, asgi_probe: Probe) -> None:
    """The application adds nothing to what the embedded bank answers."""
    check(asgi_probe)


@pytest.fixture
def real_probe(real_url: str) -> Iterator[Probe]:
    """Give a probe of the real server, with banks that are deleted afterwards."""
    with httpx.Client(base_url=real_url, timeout=60.0) as client:

        def send(method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Answer:
            url = httpx.URL(f"{real_url}{target}")
            # The server closes some connections without saying so: each request has its own.
            response = client.request(method, url, content=body, headers={**headers, "connection": "close"})
            return Answer(response.status_code, response.headers, response.content)

        probe = Probe(send, "hindsight", f"test-{uuid.uuid4().hex}", f"test-{uuid.uuid4().hex}")
        yield probe
        for bank in (probe.bank, probe.other):
            probe.ask("DELETE", "", bank=bank)


@pytest.mark.real
@each_check
def test_on_the_real_server(check: Check, real_probe: Probe) -> None:
    """The checks are true of the server that they are about."""
    check(real_probe)


def test_every_check_is_in_the_list_once() -> None:
    """A module's checks have names of their own, and say in a sentence what they are about."""
    names = [(check.__module__, check.__name__) for check in CHECKS]
    assert len(names) == len(set(names)) > 80
    assert all(check.__doc__ for check in CHECKS)


def test_every_difference_has_a_reason() -> None:
    """The list of differences names each once."""
    names = [difference.name for difference in DIFFERENCES]
    assert len(names) == len(set(names))
    assert all(difference.reason and difference.embedded != difference.hindsight for difference in DIFFERENCES)
