"""The person's `config.toml`: reading it, and its `[[project]]` rules.

This module owns the file's shape. It never raises for what stands there, or does not: each fault is one line of
warning. It knows what a rule may say, and not what the settings mean.
"""

from __future__ import annotations

import difflib
import os
import tomllib
import unicodedata
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, cast

from bankclient import paths
from bankclient.settings import values
from bankclient.settings.model import ALSO, FORMS, PREFIX
from bankclient.settings.sources import Source, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["Config", "Rule", "read_config"]

_RULE_FIELDS = MappingProxyType({"name": "project", "disabled": "disabled", "bank_id": "bank_id", "scoping": "scoping"})
"""The keys of a rule beside its `path`, and the settings that they stand for."""


_NAME = "config.toml"


class Rule(NamedTuple):
    """A `[[project]]` rule: the folder that it is for, with symlinks resolved, and what it says."""

    folder: str
    source: Source


class Config(NamedTuple):
    """What `config.toml` holds: plain values by key, rules, and a line for each fault of its shape."""

    plain: Mapping[str, object]
    rules: Sequence[Rule]
    notes: Sequence[str]

    def rules_for(self, folders: Iterable[str | os.PathLike[str]]) -> list[Rule]:
        """Return the rules for a folder that any of `folders` is or lies beneath, the longest path first."""
        places = [place for place in map(_resolved, folders) if place]
        matching = [rule for rule in self.rules if any(_is_within(place, rule.folder) for place in places)]
        return sorted(matching, key=lambda rule: len(rule.folder), reverse=True)


def read_config(file: Path, environ: Mapping[str, str]) -> Config:
    """Return what the TOML `file` says; a missing one says nothing, an unusable one nothing but a warning."""
    try:
        if file.exists() and not file.is_file():
            return Config({}, (), (f"{file} is not a file and is not read; put your settings into a file there",))
        table: dict[str, object] = tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return Config({}, (), ())
    except OSError as error:
        return Config({}, (), (f"{file} cannot be read ({error.strerror}) and is passed over; make it readable",))
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        return Config({}, (), (f"{file} is not TOML in UTF-8 ({why}) and is passed over whole; mend it",))
    notes: list[str] = []
    # `project` may also be a plain value, the name; a single [project] table is taken for one rule.
    given = cast("list[object]", table.pop("project")) if isinstance(table.get("project"), list) else []
    if isinstance(table.get("project"), dict):
        given = [table.pop("project")]
    rules = [rule for number, each in enumerate(given, 1) if (rule := _read_rule(number, each, environ, notes))]
    _note_unknown(table, (*FORMS, *ALSO.values()), _NAME, notes)
    return Config(table, rules, notes)


class _RuleSource(Source):
    def key(self, name: str) -> str:
        return next(key for key, field in _RULE_FIELDS.items() if field == name)


def _read_rule(number: int, given: object, environ: Mapping[str, str], notes: list[str]) -> Rule | None:
    where = f"[[project]] rule {number} in {_NAME}"
    if not isinstance(given, dict):
        notes.append(f"{where} is passed over: it must be a table, with a path")
        return None
    said = cast("dict[str, object]", given)
    path = said.get("path")
    try:
        folder = str(values.folder().parse(paths.expand_home(path.strip(), environ) if isinstance(path, str) else path))
    except ValueError as error:
        notes.append(f"{where} is passed over: of its path, {error}")
        return None
    _note_unknown(said, ("path", *_RULE_FIELDS), where, notes)
    source = _RuleSource(
        {field: said[key] for key, field in _RULE_FIELDS.items() if key in said}, f"project rule ({path})", environ
    )
    return Rule(_resolved(folder) or folder, source)


def _note_unknown(keys: Iterable[str], known: Sequence[str], where: str, notes: list[str]) -> None:
    for key in keys:
        if key not in known:
            plain = key.lower().replace("-", "_").removeprefix(PREFIX.lower())
            near = difflib.get_close_matches(plain, known, 1)
            notes.append(
                f"{where} has an unknown key {quoted(key)}; {f'did you mean {near[0]}?' if near else 'remove it'}"
            )


def _resolved(folder: str | os.PathLike[str]) -> str | None:
    """Return `folder` with symlinks resolved, in one Unicode form; `None` for what the system cannot look at."""
    try:
        return unicodedata.normalize("NFC", os.path.realpath(folder))
    except (OSError, ValueError):
        return None


def _is_within(place: str, folder: str) -> bool:
    return place == folder or place.startswith(folder.rstrip("/") + "/")
