"""One source of settings: the values it gives that can be used, and a line for each that cannot.

Each source checks its own values, field by field, so that a bad one leaves the next lower source standing instead of
raising. This module knows the table of settings, and nothing of files or of the order of sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_settings import PydanticBaseSettingsSource

from bankclient import paths
from bankclient.settings.model import ALSO, FORMS, PREFIX, Settings
from bankclient.settings.values import split_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic.fields import FieldInfo

__all__ = ["Environment", "File", "Problem", "Source", "quoted"]

_SHOWN_LENGTH = 60


class Problem(NamedTuple):
    """A value that cannot be used: the field it was meant for, and what a person should know."""

    field: str
    text: str


class Source(PydanticBaseSettingsSource):
    """The usable ones among the values `given` (by field, or by its second name), said to be from `name`.

    Empty and blank values are unset. A false `disabled` says nothing: whoever disables, wins.
    """

    def __init__(self, given: Mapping[str, object], name: str, environ: Mapping[str, str]) -> None:
        super().__init__(Settings)
        self.name = name
        self.values: dict[str, object] = {}
        self.origins: dict[str, str] = {}
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        if isinstance(folder := given.get("state_dir"), str):
            given = {**given, "state_dir": paths.expand_home(folder.strip(), environ)}
        for field in FORMS:
            self._take(field, given)

    def key(self, name: str) -> str:
        """Return what the setting `name` is called in this source."""
        return name

    def origin(self, name: str) -> str:
        """Return where the value of the setting `name` came from, for a person."""
        del name
        return self.name

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the value of one field, its key, and that it needs no decoding."""
        del field
        return self.values.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the values by field."""
        return self.values

    def _take(self, field: str, given: Mapping[str, object]) -> None:
        usable: dict[str, object] = {}
        for name in (field, ALSO[field]) if field in ALSO else (field,):
            raw = given.get(name)
            if raw is None or (isinstance(raw, str) and not raw.strip()):
                continue
            try:
                usable[name] = FORMS[field].parse(raw)
            except ValueError as error:
                shown = "" if FORMS[field].hidden else f"={quoted(raw)}"
                self.problems.append(Problem(field, f"{self.key(name)}{shown} from {self.name} is not used: {error}"))
                continue
            if field == "retain_mode" and str(raw).strip().lower() == "full-session":
                self.notes.append(f"{self.key(name)}=full-session from {self.name} means batch for now; write batch")
        if not usable:
            return
        first, *others = usable
        if any(usable[other] != usable[first] for other in others):
            names = " and ".join(self.key(name) for name in usable)
            self.notes.append(f"{names} from {self.name} differ; {self.key(first)} is used, unset the other")
        self._keep(field, usable[first], first, given[first])

    def _keep(self, field: str, value: object, name: str, raw: object) -> None:
        if field == "disabled" and not value:
            return
        self.values[field] = value
        self.origins[field] = self.origin(name)
        if field == "api_url":
            # Both or neither: a password must not stay behind for another source's URL.
            self.values["api_userinfo"] = split_url(raw).userinfo
            self.origins["api_userinfo"] = self.origin(name)


class Environment(Source):
    """The `HINDSIGHT_*` variables of `environ`; any others with that prefix are the server's, and passed over."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        names = (*FORMS, *ALSO.values())
        super().__init__({name: environ.get(self.key(name)) for name in names}, "environment", environ)

    def key(self, name: str) -> str:
        """Return the variable's name."""
        return PREFIX + name.upper()

    def origin(self, name: str) -> str:
        """Return that the value came from the environment, and from which variable."""
        return f"{self.name} {self.key(name)}"


class File(Source):
    """The plain values of `config.toml`, whose token goes to its own URL (or the default one) and to no other."""

    def __call__(self) -> dict[str, Any]:
        """Return the values, without a token that would go to somebody else's URL."""
        own = self.values.get("api_url", Settings.model_fields["api_url"].default)
        is_ours = self.current_state.get("api_url", own) == own
        if not is_ours and "api_token" in self.values and "api_token" not in self.current_state:
            del self.values["api_token"], self.origins["api_token"]
            self.notes.append(
                f"api_token from {self.name} is not sent to the URL that was given elsewhere; give the token there "
                f"too, or write that api_url into {self.name}"
            )
        return self.values


def quoted(raw: object) -> str:
    """Return `raw` as one short printable line."""
    shown = repr(raw)
    return shown if len(shown) <= _SHOWN_LENGTH else f"{shown[:_SHOWN_LENGTH]}…"
