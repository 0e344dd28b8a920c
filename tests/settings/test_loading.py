"""Settings from all sources: the table, the order, what a person is told."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from bankclient import paths
from bankclient.errors import ConfigError
from bankclient.settings import VARIABLES, Settings, describe, load

SECRET = "hsk-FAKE-4711"

NAMES = [variable.name for variable in VARIABLES]

DEFAULTS = {
    "api_url": "http://localhost:8888",
    "api_token": None,
    "api_userinfo": None,
    "bank_id": "bankclient",
    "bank_mission": None,
    "scoping": "per-project-tagged",
    "auto_recall": True,
    "auto_retain": True,
    "retain_mode": "batch",
    "retain_every_n_turns": 3,
    "recall_budget": "mid",
    "recall_max_tokens": 1024,
    "recall_context_turns": 1,
    "recall_max_query_chars": 800,
    "request_timeout_ms": 30000,
    "recall_timeout_ms": 30000,
    "retain_timeout_ms": 60000,
    "reflect_timeout_ms": 120000,
    "debug": False,
    "disabled": False,
    "bank_id_prefix": None,
    "project": None,
    "recall_trigger": "first-turn",
    "recall_wait_ms": 3000,
    "recall_types": (),
    "recall_max_bytes": 8192,
    "retain_overlap_turns": 2,
    "retain_context": None,
    "redact": True,
    "parent_session": None,
    "proxy_port": 8898,
    "proxy_strict": False,
}
CHANGED = {
    "api_url": ("https://memory.invalid/mem", "https://memory.invalid/mem"),
    "api_token": (SECRET, SecretStr(SECRET)),
    "bank_id": ("work", "work"),
    "bank_mission": ("Remember ports.", "Remember ports."),
    "scoping": ("Per-Project", "per-project"),
    "auto_recall": ("off", False),
    "auto_retain": ("No", False),
    "retain_mode": ("last-turn", "last-turn"),
    "retain_every_n_turns": ("7", 7),
    "recall_budget": ("HIGH", "high"),
    "recall_max_tokens": ("2048", 2048),
    "recall_context_turns": ("2", 2),
    "recall_max_query_chars": ("400", 400),
    "request_timeout_ms": ("1000", 1000),
    "recall_timeout_ms": ("2000", 2000),
    "retain_timeout_ms": ("3000", 3000),
    "reflect_timeout_ms": ("4000", 4000),
    "debug": ("1", True),
    "disabled": ("yes", True),
    "bank_id_prefix": ("me", "me"),
    "project": ("General", "General"),
    "recall_trigger": ("every-turn", "every-turn"),
    "recall_wait_ms": ("0", 0),
    "recall_types": ("world,observation", ("world", "observation")),
    "recall_max_bytes": ("4096", 4096),
    "retain_overlap_turns": ("0", 0),
    "retain_context": ("pairing", "pairing"),
    "redact": ("FALSE", False),
    "parent_session": ("s1", "s1"),
    "proxy_port": ("0", 0),
    "proxy_strict": ("on", True),
    "state_dir": ("/srv/state", Path("/srv/state")),
}


def test_defaults() -> None:
    """Without a word from anybody, the documented defaults stand, and their source is said to be that."""
    loaded = load()
    assert loaded.settings.model_dump(exclude={"state_dir"}) == DEFAULTS
    assert loaded.settings.state_dir == Path(os.environ["XDG_STATE_HOME"], "bankclient")
    assert set(loaded.sources.values()) == {"default"}
    assert loaded.sources.keys() == Settings.model_fields.keys()
    assert loaded.warnings == ()


@pytest.mark.parametrize("field", CHANGED)
def test_each_variable_sets_its_field(field: str) -> None:
    """Each variable sets the one field that is named as it is, and says so."""
    written, value = CHANGED[field]
    name = f"HINDSIGHT_{field.upper()}"
    loaded = load(environ={name: f" {written}\t"})
    assert getattr(loaded.settings, field) == value
    assert loaded.warnings == ()
    changed = {each: source for each, source in loaded.sources.items() if source != "default"}
    assert changed == dict.fromkeys((field, "api_userinfo") if field == "api_url" else (field,), f"environment {name}")


@pytest.mark.parametrize("field", CHANGED)
def test_each_key_of_the_file_sets_its_field(field: str, config: Path) -> None:
    """config.toml says the same under the field's name, as text as well as in TOML's own types."""
    written, value = CHANGED[field]
    plain = value.get_secret_value() if isinstance(value, SecretStr) else value
    native = list(plain) if isinstance(plain, tuple) else str(plain) if isinstance(plain, Path) else plain
    for form in (written, native):
        config.write_text(f"{field} = {json.dumps(form)}\n")
        loaded = load()
        assert getattr(loaded.settings, field) == value
        assert loaded.sources[field] == "config.toml"
        assert loaded.warnings == ()


def test_all_is_tried_here() -> None:
    """A setting that is added is added to these tests too."""
    assert (
        CHANGED.keys()
        == {variable.field for variable in VARIABLES}
        == (DEFAULTS.keys() - {"api_userinfo"}) | {"state_dir"}
    )


def test_the_order_of_sources(config: Path, tmp_path: Path) -> None:
    """Flags come before project rules, these before the environment, that before config.toml, that before defaults."""
    config.write_text(f'bank_id = "file"\n[[project]]\npath = "{tmp_path}"\nbank_id = "rule"\nscoping = "global"\n')
    environ = os.environ | {"HINDSIGHT_BANK_ID": "environment", "HINDSIGHT_SCOPING": "per-project"}

    def sourced(**given: Any) -> tuple[str, str]:  # noqa: ANN401 - the keywords of `load`
        loaded = load(**given)
        return loaded.settings.bank_id, loaded.sources["bank_id"]

    assert sourced(environ=environ, folders=[tmp_path], flags={"bank_id": "flag"}) == ("flag", "flag")
    assert sourced(environ=environ, folders=[tmp_path]) == ("rule", f"project rule ({tmp_path})")
    assert sourced(environ=environ) == ("environment", "environment HINDSIGHT_BANK_ID")
    assert sourced() == ("file", "config.toml")
    config.unlink()
    assert sourced() == ("bankclient", "default")


def test_the_environment_is_the_process_s_own_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another caller's variables take the place of this process's, and do not mix with them."""
    monkeypatch.setenv("HINDSIGHT_BANK_ID", "mine")
    monkeypatch.setenv("HINDSIGHT_DEBUG", "true")
    assert load().settings.bank_id == "mine"
    theirs = load(environ={"HINDSIGHT_BANK_ID": "theirs"}).settings
    assert (theirs.bank_id, theirs.debug) == ("theirs", False)


def test_the_file_is_that_of_the_caller_s_home(tmp_path: Path) -> None:
    """A caller with another home, or another configuration folder, has the settings of its own file."""
    theirs = paths.config_file({"HOME": str(tmp_path / "theirs")})
    theirs.parent.mkdir(parents=True)
    theirs.write_text('bank_id = "theirs"\n')
    for environ in ({"HOME": str(tmp_path / "theirs")}, {"XDG_CONFIG_HOME": str(theirs.parents[1])}):
        assert load(environ=environ).settings.bank_id == "theirs"
    assert load().settings.bank_id == "bankclient"


def test_new_values_count_at_the_next_load(config: Path) -> None:
    """Whatever is changed, in the environment or in the file, stands at the next call in the same process."""
    first = load(environ=os.environ | {"HINDSIGHT_API_URL": "http://one.invalid"}).settings
    config.write_text('bank_id = "b"\n')
    second = load(environ=os.environ | {"HINDSIGHT_API_URL": "http://two.invalid"}).settings
    assert (first.api_url, first.bank_id) == ("http://one.invalid", "bankclient")
    assert (second.api_url, second.bank_id) == ("http://two.invalid", "b")


def test_nothing_is_read_from_the_project_s_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cloned repository's .env, env.example or config.toml changes nothing."""
    for name in (".env", "env.example", ".bankclient.toml", "pyproject.toml"):
        (tmp_path / name).write_text("HINDSIGHT_BANK_ID=planted\nUNKNOWN_KEY=1\n")
    (tmp_path / "config.toml").write_text('bank_id = "planted"\n')
    monkeypatch.chdir(tmp_path)
    assert load(folders=[tmp_path]).settings == Settings()


@pytest.mark.parametrize("relative", ["config", "."])
def test_a_relative_configuration_folder_is_passed_over(
    relative: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XDG_CONFIG_HOME must be absolute, as its standard says: a relative one would lie in the project."""
    (tmp_path / relative / "bankclient").mkdir(parents=True)
    (tmp_path / relative / "bankclient" / "config.toml").write_text('bank_id = "planted"\n')
    monkeypatch.chdir(tmp_path)
    assert load(environ={"XDG_CONFIG_HOME": relative, "HOME": str(tmp_path / "h")}).settings.bank_id == "bankclient"


@pytest.mark.parametrize(
    "flags", [{"recall_wait_ms": "5s"}, {"bank_id": "a/b"}, {"api_url": "h:1"}, {"api_token": f"a\n{SECRET}"}]
)
def test_a_bad_flag_is_an_error(flags: dict[str, object]) -> None:
    """Somebody just typed it and is there to mend it; a secret is not in the message."""
    with pytest.raises(ConfigError, match=f"{next(iter(flags))}.* from flag is not used: ") as caught:
        load(flags=flags)
    assert SECRET not in str(caught.value)


def test_a_flag_that_is_none_was_not_given() -> None:
    """None and blank text leave the next source standing."""
    loaded = load(environ={"HINDSIGHT_BANK_ID": "b"}, flags={"bank_id": None, "project": " "})
    assert (loaded.settings.bank_id, loaded.settings.project) == ("b", None)


@pytest.mark.parametrize("name", ["bank", "api_userinfo", "HINDSIGHT_BANK_ID"])
def test_a_flag_for_no_setting_is_a_programming_error(name: str) -> None:
    """A name that is no field is not silently dropped."""
    with pytest.raises(TypeError, match=name):
        load(flags={name: "x"})


def test_constructed_settings_hold_what_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The constructor reads keywords and nothing else, in the same forms, and splits a password off the URL."""
    monkeypatch.setenv("HINDSIGHT_BANK_ID", "environment")
    settings = Settings(api_url=f"http://u:{SECRET}@H:80/", api_token=SecretStr(SECRET))
    assert (settings.api_url, settings.bank_id) == ("http://h", "bankclient")
    assert settings.api_userinfo == SecretStr(f"u:{SECRET}")
    assert SECRET not in repr(settings)


def test_constructed_settings_are_checked() -> None:
    """A bad value raises pydantic's own error, which does not show it; there is no changing settings afterwards."""
    given: dict[str, Any] = {"bank_id": "a/b", "retain_every_n_turns": 0, "api_token": f"ż{SECRET}"}
    with pytest.raises(ValidationError) as caught:
        Settings(**given)
    assert {error["loc"] for error in caught.value.errors()} == {
        ("bank_id",),
        ("retain_every_n_turns",),
        ("api_token",),
    }
    assert SECRET not in str(caught.value)
    with pytest.raises(ValidationError):
        Settings().debug = True  # type: ignore[misc] # that it cannot be set is what is tried


def test_the_description_masks_secrets_and_names_sources(config: Path) -> None:
    """What a person is shown: every variable, its value as it would be written, and who said so."""
    config.write_text('recall_types = ["world"]\ndebug = true\n')
    rows = describe(load(environ=os.environ | {"HINDSIGHT_API_KEY": SECRET}))
    assert [name for name, _, _ in rows] == [name for name in NAMES if name != "HINDSIGHT_API_KEY"]
    shown = {name: (value, source) for name, value, source in rows}
    assert shown["HINDSIGHT_API_TOKEN"] == ("set (hidden)", "environment HINDSIGHT_API_KEY")
    assert shown["HINDSIGHT_RECALL_TYPES"] == ("world", "config.toml")
    assert shown["HINDSIGHT_DEBUG"] == ("true", "config.toml")
    assert shown["HINDSIGHT_PROJECT"] == ("unset", "default")
    assert shown["HINDSIGHT_BANK_ID"] == ("bankclient", "default")
