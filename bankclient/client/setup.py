"""From settings to a client's parts: where it sends, with which key and limits, and what its project's scope is.

It turns `HINDSIGHT_*` into the values that both clients are built from, once, and logs what was wrong with them. It
opens no connection.
"""

from __future__ import annotations

import base64
import json
import logging
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from pydantic import ValidationError

from bankclient.client.exchange import Core
from bankclient.client.http import Route
from bankclient.client.policy import Breaker
from bankclient.errors import ConfigError
from bankclient.project import Project, find_project
from bankclient.scope import Scope, scope_of
from bankclient.settings import Settings, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bankclient.api.call import TimeLimit

__all__ = ["EMBEDDED", "Setup", "set_up"]

EMBEDDED: Final = "embedded"
"""The value of HINDSIGHT_API_URL that means the bank in this process."""
_log = logging.getLogger("bankclient.client")


@dataclass(frozen=True)
class Setup:
    """What a client is built from."""

    settings: Settings
    project: Project
    core: Core

    @property
    def is_embedded(self) -> bool:
        """Whether the bank is the one in this process."""
        return self.settings.api_url == EMBEDDED

    @property
    def bank_file(self) -> Path:
        """Where the embedded bank is kept."""
        return self.settings.state_dir / "embedded.sqlite3"

    @cached_property
    def scope(self) -> Scope:
        """The bank and tags that the project files under."""
        return scope_of(self.settings, self.project)

    @cached_property
    def route(self) -> Route:
        """The way to the server; what could not be used of the environment is logged, once."""
        route = Route.to(self.settings.api_url)
        for warning in route.warnings:
            _log.warning("%s", warning)
        return route


def set_up(
    *,
    settings: Settings | None,
    folder: str | os.PathLike[str] | None,
    flags: Mapping[str, object],
    degrade: bool,
    breaker: Breaker | None,
) -> Setup:
    """Return the parts of a client for the project of `folder` (`None`: the current directory).

    Without `settings` they are read from the environment and `config.toml`, overruled by `flags`, and what was wrong
    with them is logged. Raises `ConfigError` for a bad flag.
    """
    project = find_project(folder)
    if settings is None:
        loaded = load(flags=flags, folders=_folders(folder, project))
        settings = loaded.settings
        for warning in loaded.warnings:
            _log.warning("%s", warning)
    elif flags:
        settings = _overruled(settings, flags)
    return Setup(settings, project, _core(settings, degrade=degrade, breaker=breaker))


def _folders(folder: str | os.PathLike[str] | None, project: Project) -> list[Path]:
    """Return what a project rule may name: the folder as asked for, and the project's root."""
    root = [] if project.root is None else [project.root]
    try:
        return [Path(folder or os.curdir).absolute(), *root]
    except FileNotFoundError:  # the current folder was deleted
        return root


def _overruled(settings: Settings, flags: Mapping[str, object]) -> Settings:
    """Return `settings` with the flags in place of what they name; a URL brings its own password, or none."""
    kept = settings.model_dump(exclude={"api_userinfo"} if "api_url" in flags else set())
    try:
        return Settings.model_validate(kept | dict(flags))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        raise ConfigError(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None


def _spellings(secret: str) -> set[str]:
    """Return a secret as an answer may echo it: as it is, in JSON, in a URL."""
    return {secret, json.dumps(secret)[1:-1], quote(secret, safe=""), quote(secret)}


def _core(settings: Settings, *, degrade: bool, breaker: Breaker | None) -> Core:
    limits: dict[TimeLimit, float] = {
        "request": settings.request_timeout_ms / 1000,
        "recall": settings.recall_timeout_ms / 1000,
        "retain": settings.retain_timeout_ms / 1000,
        "reflect": settings.reflect_timeout_ms / 1000,
    }
    token = settings.api_token.get_secret_value() if settings.api_token else None
    userinfo = settings.api_userinfo.get_secret_value() if settings.api_userinfo else None
    headers: dict[str, str] = {}
    secrets: set[str] = set() if token is None else {token}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    elif userinfo is not None:
        user, _, password = userinfo.partition(":")
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        headers["authorization"] = f"Basic {basic}"
        secrets |= {userinfo, password, basic}
    return Core(
        base_url="http://embedded" if settings.api_url == EMBEDDED else settings.api_url,
        limits=limits,
        headers=headers,
        # The longest first: a part of one must not spoil the whole.
        secrets=tuple(sorted({form for each in secrets if each for form in _spellings(each)}, key=len, reverse=True)),
        breaker=breaker or Breaker(),
        degrade=degrade,
        is_disabled=settings.disabled,
    )
