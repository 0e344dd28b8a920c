"""The table of settings: which there are, their forms, defaults and meanings.

This module owns `Settings` and what is derived from its fields. It knows neither where values come from nor what is
done with them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from bankclient import paths
from bankclient.settings import values
from bankclient.settings.values import Form

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = ["ALSO", "FORMS", "PREFIX", "VARIABLES", "Settings", "Variable", "written"]

PREFIX = "HINDSIGHT_"
"""What a variable's name has in front of its field's."""
ALSO = MappingProxyType({"api_token": "api_key"})
"""Second names of settings, in the environment and in the file; the first name wins."""

_HOUR_MS = 3_600_000
_TimeLimit = Annotated[int, values.whole(1, _HOUR_MS)]
_Switch = Annotated[bool, values.switch()]
_Label = Annotated[str | None, values.label()]


class Settings(BaseSettings):
    """Every setting with its value. A field is named as its variable, without HINDSIGHT_ and in lower case.

    Constructed directly it holds what it is given and the defaults, and raises pydantic's `ValidationError` for a bad
    value; `load` is what reads flags, environment and file. `api_userinfo` is no variable of its own: it is the decoded
    `user:password` that stood in the URL.
    """

    model_config = SettingsConfigDict(frozen=True, hide_input_in_errors=True, validate_default=False)

    api_url: Annotated[str, values.url()] = Field(
        default="http://localhost:8888", description="Where the Hindsight server is; `embedded` is the embedded bank."
    )
    api_token: Annotated[SecretStr | None, values.token()] = Field(
        default=None, description="The key that the server asks for. HINDSIGHT_API_KEY means the same; this one wins."
    )
    api_userinfo: SecretStr | None = None
    bank_id: Annotated[str, values.bank()] = Field(
        default="bankclient", description="The bank's name, or what it begins with."
    )
    bank_mission: Annotated[str | None, values.text()] = Field(
        default=None, description="The bank's reflect mission; set only if given here and the bank has none."
    )
    scoping: Annotated[
        Literal["global", "per-project", "per-project-tagged"],
        values.choice("global", "per-project", "per-project-tagged"),
    ] = Field(
        default="per-project-tagged",
        description="What keeps projects apart: nothing, a bank for each, or tags in one bank.",
    )
    auto_recall: _Switch = Field(default=True, description="Whether prompts get memories by themselves.")
    auto_retain: _Switch = Field(default=True, description="Whether conversations are retained by themselves.")
    retain_mode: Annotated[
        Literal["batch", "last-turn"], values.choice("batch", "last-turn", also={"full-session": "batch"})
    ] = Field(
        default="batch",
        description="What a retain holds: the new turns, or (last-turn) some turns before them too, marked as context. "
        "full-session means batch for now.",
    )
    retain_every_n_turns: Annotated[int, values.whole(1, 10_000)] = Field(
        default=3, description="How many user turns make one retain."
    )
    recall_budget: Annotated[Literal["low", "mid", "high"], values.choice("low", "mid", "high")] = Field(
        default="mid", description="How hard the server looks."
    )
    recall_max_tokens: Annotated[int, values.whole(1, 1_000_000)] = Field(
        default=1024, description="How many tokens of memories the server answers with at most."
    )
    recall_context_turns: Annotated[int, values.whole(1, 1_000)] = Field(
        default=1, description="How many turns the query is made of; 1 is the prompt alone."
    )
    recall_max_query_chars: Annotated[int, values.whole(1, 1_000_000)] = Field(
        default=800, description="How many characters the query has at most."
    )
    request_timeout_ms: _TimeLimit = Field(default=30_000, description="Wall-clock limit of a call, in milliseconds.")
    recall_timeout_ms: _TimeLimit = Field(default=30_000, description="Wall-clock limit of a recall, in milliseconds.")
    retain_timeout_ms: _TimeLimit = Field(default=60_000, description="Wall-clock limit of a retain, in milliseconds.")
    reflect_timeout_ms: _TimeLimit = Field(
        default=120_000, description="Wall-clock limit of a reflect, in milliseconds."
    )
    debug: _Switch = Field(default=False, description="Whether the log tells everything.")
    disabled: _Switch = Field(
        default=False, description="Nothing is captured, sent, created or started for this caller."
    )
    bank_id_prefix: Annotated[str | None, values.bank()] = Field(
        default=None, description="Put before the bank's name, as PREFIX-NAME."
    )
    project: _Label = Field(default=None, description="The project's name, in place of what git says.")
    recall_trigger: Annotated[Literal["first-turn", "every-turn"], values.choice("first-turn", "every-turn")] = Field(
        default="first-turn", description="Which turns get memories by themselves."
    )
    recall_wait_ms: Annotated[int, values.whole(0, 60_000)] = Field(
        default=3000, description="How long a turn waits for memories, in milliseconds; 0 never waits."
    )
    recall_types: Annotated[tuple[str, ...], values.listing("world", "experience", "observation")] = Field(
        default=(), description="Which kinds of memories are asked for; unset is all, observations before their facts."
    )
    recall_max_bytes: Annotated[int, values.whole(1, 1_000_000)] = Field(
        default=8192, description="How many bytes of memories a prompt gets at most, frame included."
    )
    retain_overlap_turns: Annotated[int, values.whole(0, 1_000)] = Field(
        default=2, description="How many turns last-turn puts in front, as context."
    )
    retain_context: _Label = Field(
        default=None, description="The label on what is retained; unset is the agent's name."
    )
    redact: _Switch = Field(default=True, description="Whether secrets are taken out of what is retained and asked.")
    parent_session: _Label = Field(
        default=None,
        description="The session that started this one. bankclient sets it for child processes; leave it alone.",
    )
    proxy_port: Annotated[int, values.whole(0, 65_535)] = Field(
        default=8898, description="The proxy's loopback TCP port, beside its socket; 0 is none."
    )
    proxy_strict: _Switch = Field(
        default=False,
        description="Whether a recall through the proxy fails (503) without a server, instead of being empty.",
    )
    state_dir: Annotated[Path, values.folder()] = Field(
        default_factory=lambda: paths.default_state_dir(os.environ),
        description="Where bankclient keeps its files; unset is the platform's state folder. Hooks keep what stood at "
        "install.",
    )

    @model_validator(mode="before")
    @classmethod
    def _part_userinfo(cls, given: dict[str, Any]) -> dict[str, Any]:
        if "api_url" in given and "api_userinfo" not in given:
            url, userinfo = values.split_url(given["api_url"])
            return {**given, "api_url": url, "api_userinfo": userinfo}
        return given

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the keywords as the only source: whoever constructs settings directly wants what they said."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


def _form(field: FieldInfo) -> Form | None:
    return next((item for item in field.metadata if isinstance(item, Form)), None)


FORMS = MappingProxyType({name: form for name, field in Settings.model_fields.items() if (form := _form(field))})
"""The form of each field that is a setting of its own."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A row of the table of settings; `default` is written as the variable would be, and empty where it is unset."""

    name: str
    field: str
    form: str
    default: str
    meaning: str


def written(value: object) -> str:
    """Return `value` as it would be written in the environment, empty for what is unset."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(cast("tuple[str, ...]", value))
    return "" if value is None else str(value)


def _variables() -> tuple[Variable, ...]:
    rows: list[Variable] = []
    for name, form in FORMS.items():
        field = Settings.model_fields[name]
        default = "" if field.default_factory else written(field.default)
        rows.append(Variable(PREFIX + name.upper(), name, form.words, default, field.description or ""))
        if also := ALSO.get(name):
            rows.append(Variable(PREFIX + also.upper(), name, form.words, default, f"The same as {rows[-1].name}."))
    return tuple(rows)


VARIABLES = _variables()
"""Every variable that is read, in the order of the documentation."""
