"""The doctor's checks, in the order in which one rests on the other: settings, project, server, key, banks.

Each yields a judgement; what no longer makes sense after a problem is not tried. It reads and asks, and writes nothing.
"""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import bankclient
from bankclient import calls, paths
from bankclient.api.capabilities import Capabilities
from bankclient.cli.banks import bank_states
from bankclient.cli.failures import Failure, explain
from bankclient.cli.findings import fine, problem, warning
from bankclient.cli.queued import Queued
from bankclient.cli.sharing import name_warning
from bankclient.cli.store import open_store_if_there
from bankclient.errors import CallError, Refused, StoreError, Unauthorized

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bankclient import BankClient
    from bankclient.cli.findings import Finding
    from bankclient.cli.place import Place

__all__ = ["check_client", "check_place", "check_queue"]

_LONGEST_PROBE: Final = 5.0
"""Seconds that one question to the server may take: it answers these at once, or is not well."""


def check_place(place: Place) -> Iterator[Finding]:
    """Judge the settings, the file that they may stand in, and the project."""
    file = paths.config_file(os.environ)
    is_there = os.path.exists(file)  # noqa: PTH110 - Path.exists raises for a path that is too long
    yield fine("config.toml", f"{file}" if is_there else f"{file} (not there, which is fine)")
    for text in place.loaded.warnings:
        yield warning("settings", text)
    if not place.loaded.warnings:
        yield fine("settings", "all can be used")
    project = place.scope.project
    if place.unresolved:
        yield warning("project", place.unresolved)
    else:
        yield fine("project", f"{project.name or 'none'} ({project.how}), root {project.root or 'none'}")
    if shared := name_warning(place):
        yield warning("project", shared)
    yield fine("scope", f"bank {place.scope.bank}, tags {', '.join(place.scope.retain_tags) or 'none'}")


def check_queue(place: Place) -> Iterator[Finding]:
    """Judge what is queued: whether it waits, and why."""
    try:
        with open_store_if_there(place) as store:
            queued = Queued(store)
    except StoreError as error:
        yield problem("queue", Failure(str(error)))
        return
    judge = warning if queued.items or queued.given_up else fine
    for line in queued.lines():
        yield judge("queue", line)


def check_client(place: Place, client: BankClient) -> Iterator[Finding]:
    """Judge the server, its version, the key and the banks; ends where it makes no sense to go on."""
    limit = min(_LONGEST_PROBE, place.settings.request_timeout_ms / 1000)
    try:
        version = client.version(timeout=limit).api_version
        refusal = _key_refusal(client, limit)
    except CallError as error:
        yield problem("server", _misplaced(place, error, limit) or explain(error))
        return
    yield fine("server", f"{place.server} answers")
    yield _check_version(version)
    yield _check_health(client, limit)
    yield _check_key(place, refusal)
    if refusal is None:
        yield from _check_banks(client)


def _key_refusal(client: BankClient, limit: float) -> Unauthorized | None:
    """Return how the server refuses the key, `None` where it does not; raises `CallError` where there is no API.

    By a call that reads: the server checks what a write says before it checks the key.
    """
    try:
        client.call(calls.list_banks(limit=1), timeout=limit)
    except Unauthorized as error:
        return error
    return None


def _misplaced(place: Place, error: CallError, limit: float) -> Failure | None:
    """Return where the API is, if it is on that very server under a shorter path."""
    path = urlsplit(place.settings.api_url).path.strip("/")
    if not isinstance(error, Refused) or not path:
        return None
    steps = path.split("/")
    root = place.settings.api_url.removesuffix(f"/{path}")
    for length in reversed(range(len(steps))):
        url = "/".join([root, *steps[:length]])
        # No credentials: to be refused for want of them is answer enough.
        settings = place.settings.model_copy(update={"api_url": url, "api_token": None, "api_userinfo": None})
        with bankclient.BankClient(settings=settings, folder=place.folder) as client:
            try:
                _key_refusal(client, limit)
            except CallError:
                continue
        what = f"there is no Hindsight API under {place.server}, but there is one under {url}"
        return Failure(what, f"set HINDSIGHT_API_URL={url}")
    return None


def _check_version(version: str) -> Finding:
    able = Capabilities.of(version)
    missing = [field.name.replace("_", " ") for field in fields(able) if getattr(able, field.name) is False]
    if not missing:
        return fine("version", version)
    return warning(
        "version",
        f"{version or 'unknown'} has not, or is not known to have: {', '.join(missing)}",
        "bring the server up to date",
    )


def _check_health(client: BankClient, limit: float) -> Finding:
    try:
        health = client.health(timeout=limit)
    except CallError as error:
        return warning("health", *explain(error))  # a gateway may pass on the API alone
    if health.healthy:
        return fine("health", "the server and its database are well")
    what = f"the server says that it is {health.status} ({health.error or 'and not why'})"
    return problem("health", Failure(what, "its log says more"))


def _check_key(place: Place, refusal: Unauthorized | None) -> Finding:
    has_key = bool(place.settings.api_token or place.settings.api_userinfo)
    if refusal is None:
        return fine("key", "it was accepted" if has_key else "none is set, and the server asks for none")
    if has_key or not refusal.from_server:
        return problem("key", explain(refusal))
    return problem("key", Failure(f"{place.server} asks for a key, and none is set", "set HINDSIGHT_API_TOKEN"))


def _check_banks(client: BankClient) -> Iterator[Finding]:
    try:
        states = bank_states(client)
    except CallError as error:
        yield problem("bank", explain(error))
        return
    for state in states:
        yield fine("bank", str(state))
