"""Loading the settings: every source in its order, and the story of each value.

This module owns the order of the sources and what is told about them. It knows neither how a value is read nor the
shape of the file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from bankclient import paths
from bankclient.errors import ConfigError
from bankclient.names import bank_name_problem
from bankclient.settings.config_file import read_config
from bankclient.settings.model import FORMS, PREFIX, Settings, written
from bankclient.settings.sources import Environment, File, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["Loaded", "describe", "load"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings with their story: each field's source, and one line for whatever was given and could not be used.

    A source is `flag`, `project rule (PATH)`, `environment HINDSIGHT_X`, `config.toml` or `default`. A warning names
    the variable, the value unless it may be a secret, the mend, and what stands in its place.
    """

    settings: Settings
    sources: Mapping[str, str]
    warnings: tuple[str, ...]


def load(
    *,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
    folders: Sequence[Path] = (),
    config_file: Path | None = None,
) -> Loaded:
    """Return the settings: of flags, `[[project]]` rules, `environ`, `config.toml` and defaults, the first says it.

    `environ` is `os.environ` unless given; `flags` map fields to values, `None` for what was not said; `folders` are
    the event's folder and its project's root, by which rules match; `config_file` is the person's own unless given.
    Raises `ConfigError` for a bad flag, which somebody just typed, and for nothing else that anybody wrote.
    """
    if unknown := sorted((flags or {}).keys() - FORMS.keys()):
        raise TypeError(f"there are no settings {', '.join(unknown)}")
    environ = os.environ if environ is None else environ
    flag = Source(flags or {}, "flag", environ)
    if flag.problems:
        raise ConfigError(flag.problems[0].text)
    config = read_config(config_file or paths.config_file(environ), environ)
    sources = (
        flag,
        *(rule.source for rule in config.rules_for(folders)),
        Environment(environ),
        File(config.plain, "config.toml", environ),
        Source({"state_dir": paths.default_state_dir(environ)}, "default", environ),
    )
    # Handed over ready: so the constructor looks at neither os.environ nor any file by itself.
    settings = Settings(_build_sources=(sources, {}))  # pyright: ignore[reportCallIssue] - it sees only the fields
    origins = {
        field: next((source.origins[field] for source in sources if field in source.origins), "default")
        for field in Settings.model_fields
    }
    notes = [*config.notes, *(note for source in sources for note in source.notes)]
    if settings.bank_id_prefix and (problem := bank_name_problem(f"{settings.bank_id_prefix}-{settings.bank_id}")):
        notes.append(f"bank_id_prefix from {origins['bank_id_prefix']} is not used: with bank_id, {problem}")
        settings = settings.model_copy(update={"bank_id_prefix": None})
        origins["bank_id_prefix"] = "default"
    for source in (*sources, *(rule.source for rule in config.rules if rule.source not in sources)):
        notes += [f"{text}; {_shown(settings, field)} ({origins[field]}) stands" for field, text in source.problems]
    return Loaded(settings, origins, tuple(notes))


def describe(loaded: Loaded) -> list[tuple[str, str, str]]:
    """Return (variable, value as a person may see it, source) for each setting; secrets are only said to be set."""
    return [(PREFIX + field.upper(), _shown(loaded.settings, field), loaded.sources[field]) for field in FORMS]


def _shown(settings: Settings, field: str) -> str:
    value = getattr(settings, field)
    if isinstance(value, SecretStr):
        return "set (hidden)"
    if field == "api_url" and settings.api_userinfo:
        return settings.api_url.replace("://", "://***@", 1)
    return written(value) or "unset"
