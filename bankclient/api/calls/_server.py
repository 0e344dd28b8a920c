"""The server itself: health and version."""

from __future__ import annotations

from typing import Literal

from bankclient.api.call import Call, Repeat
from bankclient.api.models.base import reader
from bankclient.api.models.server import Health, Liveness, Version

__all__ = ["health", "live", "version"]

_READ_HEALTH, _READ_LIVENESS, _READ_VERSION = reader(Health), reader(Liveness), reader(Version)


def health() -> Call[Health]:
    """Ask whether the server and its database work. A 503 in the server's own shape is an answer too: `unhealthy`."""
    return Call(
        operation="health",
        method="GET",
        path="/health",
        parse=_READ_HEALTH,
        empty=lambda: Health(status="unreachable", degraded=True),
        repeat=Repeat.READ,
        accept=frozenset({503}),
    )


def live() -> Call[Liveness]:
    """Ask whether the server answers at all, its database apart; a server before 0.9.1 has no such endpoint (404)."""
    return Call(
        operation="live",
        method="GET",
        path="/health/live",
        parse=_READ_LIVENESS,
        empty=lambda: Liveness(status="unreachable", degraded=True),
        repeat=Repeat.READ,
    )


def version(*, path: Literal["/v1/version", "/version"] = "/v1/version") -> Call[Version]:
    """Ask for the server's version and features.

    `/v1/version` gets through a gateway that routes only `/v1`; servers before 1.0 answer 404 there and have
    `/version` alone.
    """
    return Call(
        operation="version",
        method="GET",
        path=path,
        parse=_READ_VERSION,
        empty=lambda: Version(api_version="", degraded=True),
        repeat=Repeat.READ,
    )
