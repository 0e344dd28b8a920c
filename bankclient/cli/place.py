"""Where a command runs: the settings, the project of the folder, and the client bound to both.

It reads settings and files, and opens no connection.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import bankclient
from bankclient.cli import output
from bankclient.errors import ConfigError
from bankclient.project import find_project
from bankclient.scope import NO_PROJECT_TAG, Scope, scope_of
from bankclient.settings import EMBEDDED, Loaded, Settings, load
from bankclient.turns.redact import redact

if TYPE_CHECKING:
    from bankclient import BankClient
    from bankclient.scope import Target

__all__ = ["Place", "find_place"]

_DIRECTING = ("api_url", "bank_id", "bank_id_prefix", "scoping", "project")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with the settings that hold there and the scope of its project."""

    folder: Path | None
    loaded: Loaded
    scope: Scope

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.loaded.settings

    @property
    def unresolved(self) -> str | None:
        """What a person is told where the folder belongs to no project, `None` where it does or that is no matter."""
        if self.scope.resolved:
            return None
        return (
            f"this folder belongs to no project ({self.scope.project.how}), so only what counts for all projects is "
            "found; name it with HINDSIGHT_PROJECT or a [[project]] rule"
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each thing that is perhaps not as it was meant."""
        return (*self.loaded.warnings, *filter(None, (self.unresolved, self.disabled)))

    @property
    def disabled(self) -> str | None:
        """What a person is told where bankclient is switched off, `None` where it is not."""
        if not self.settings.disabled:
            return None
        return f"bankclient is switched off here, by {self.loaded.sources['disabled']}"

    @property
    def misdirected(self) -> str | None:
        """What a person is told where a variable that says where memories go cannot be used, `None` where all can.

        What stands in its place is another server, bank or project than was meant: good enough for a hook that must go
        on, and not for a command that a person waits for.
        """
        for field in _DIRECTING:
            name = f"HINDSIGHT_{field.upper()}"
            if os.environ.get(name, "").strip() and self.loaded.sources[field] in {"config.toml", "default"}:
                return f"{name} cannot be used as it is"
        return None

    @property
    def looks_in(self) -> tuple[str, ...]:
        """What a recall here asks, in words: each bank and which of its memories."""
        return tuple(f"bank {target.bank}, {_filter(target)}" for target in self.scope.recall)

    @property
    def server(self) -> str:
        """The server's URL, without credentials."""
        return "the embedded bank" if self.settings.api_url == EMBEDDED else self.settings.api_url

    def warn(self) -> None:
        """Say on stderr what of the settings cannot be used."""
        for warning in self.loaded.warnings:
            output.warn(warning)

    def redacted(self, text: str) -> str:
        """Return a text that a person gives away, its secrets taken out unless the settings say otherwise."""
        if not self.settings.redact:
            return text
        redacted = redact(text)
        if redacted != text:
            output.warn("a secret was taken out of the text; HINDSIGHT_REDACT=false leaves it in")
        return redacted

    def check_usable(self) -> None:
        """Raise `ConfigError` where nothing may be sent, or not known where to."""
        if self.disabled:
            raise ConfigError(f"{self.disabled}, and nothing was sent; take that away to switch it on")
        if self.misdirected:
            raise ConfigError(f"{self.misdirected}, and nothing was sent; mend it, or unset it")

    def client(self) -> BankClient:
        """Return a client for this place; raises `ConfigError` where nothing may be sent, or not known where to."""
        self.check_usable()
        return bankclient.BankClient(settings=self.settings, folder=self.folder)


def find_place(folder: Path | None = None) -> Place:
    """Return the place of a folder (`None`: the current one), and let the log tell as much as the settings want."""
    project = find_project(folder)
    folders = [place for place in (_absolute(folder), project.root) if place is not None]
    loaded = load(folders=folders)
    if loaded.settings.debug:
        logging.getLogger("bankclient").setLevel(logging.DEBUG)
    return Place(folder, loaded, scope_of(loaded.settings, project))


def _filter(target: Target) -> str:
    if not target.tags:
        return "everything in it"
    if NO_PROJECT_TAG in target.tags:
        return "what has no tags"
    return f"what has tags {', '.join(target.tags)}, or none"


def _absolute(folder: Path | None) -> Path | None:
    try:
        return Path.cwd() if folder is None else folder.absolute()
    except FileNotFoundError:  # the current folder was deleted
        return None
