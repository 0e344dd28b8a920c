"""Tokens: which count, where they go, and that none is ever shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from bankclient.settings import VARIABLES, Loaded, Settings, describe, load

SECRET = "hsk-FAKE-4711"

NAMES = [variable.name for variable in VARIABLES]


def everything_shown(loaded: Loaded) -> str:
    """Return all that a person or a log may get to see of `loaded`."""
    return "\n".join([repr(loaded), str(loaded.settings), repr(describe(loaded)), *loaded.warnings])


def test_the_token_is_trimmed_and_never_shown() -> None:
    """White space around a pasted token goes, and no repr, warning or description has it."""
    loaded = load(environ={"HINDSIGHT_API_TOKEN": f"  {SECRET}\n"})
    assert loaded.settings.api_token == SecretStr(SECRET)
    assert SECRET not in everything_shown(loaded)
    assert ("HINDSIGHT_API_TOKEN", "set (hidden)", "environment HINDSIGHT_API_TOKEN") in describe(loaded)


@pytest.mark.parametrize("middle", ["\n", "\r\n", "\t", "\x7f", "\x00", "ż", "“", "\u2028", "\udc80"])
def test_a_token_that_no_header_can_carry(middle: str) -> None:
    """Control characters or letters beyond ASCII inside a token: one warning without it, and it is unset."""
    loaded = load(environ={"HINDSIGHT_API_TOKEN": f"hsk-{middle}{SECRET}"})
    assert loaded.settings.api_token is None
    (warning,) = loaded.warnings
    assert warning.startswith("HINDSIGHT_API_TOKEN from environment is not used: ")
    assert SECRET not in everything_shown(loaded)


def test_token_wins_over_key_with_one_warning_where_they_differ() -> None:
    """Of the two names for the token the first counts; that they differ is said once, that they agree is not."""
    differ = load(environ={"HINDSIGHT_API_TOKEN": SECRET, "HINDSIGHT_API_KEY": "hsk-FAKE-other"})
    assert differ.settings.api_token == SecretStr(SECRET)
    (warning,) = differ.warnings
    assert "HINDSIGHT_API_TOKEN and HINDSIGHT_API_KEY" in warning
    assert "hsk-FAKE" not in everything_shown(differ)
    agree = load(environ={"HINDSIGHT_API_TOKEN": SECRET, "HINDSIGHT_API_KEY": f" {SECRET} "})
    assert (agree.settings.api_token, agree.warnings) == (SecretStr(SECRET), ())


@pytest.mark.parametrize("token", [None, " ", "bad\ntoken"])
def test_the_key_is_taken_where_the_token_is_none(token: str | None) -> None:
    """HINDSIGHT_API_KEY alone, or beside an unusable HINDSIGHT_API_TOKEN, is the token."""
    environ = {"HINDSIGHT_API_KEY": SECRET} | ({"HINDSIGHT_API_TOKEN": token} if token else {})
    loaded = load(environ=environ)
    assert loaded.settings.api_token == SecretStr(SECRET)
    assert loaded.sources["api_token"] == "environment HINDSIGHT_API_KEY"


@pytest.mark.parametrize(
    ("file_url", "environ", "flags", "sent"),
    [
        (None, {}, {}, True),
        ("http://trusted.invalid", {}, {}, True),
        ("http://trusted.invalid", {"HINDSIGHT_API_URL": "http://trusted.invalid/"}, {}, True),
        (None, {"HINDSIGHT_API_URL": "http://localhost:8888"}, {}, True),
        (None, {"HINDSIGHT_API_URL": "no url"}, {}, True),
        (None, {"HINDSIGHT_API_URL": "http://evil.invalid"}, {}, False),
        ("http://trusted.invalid", {"HINDSIGHT_API_URL": "http://evil.invalid"}, {}, False),
        ("http://trusted.invalid", {"HINDSIGHT_API_URL": "http://trusted.invalid:81"}, {}, False),
        ("http://trusted.invalid", {"HINDSIGHT_API_URL": "http://localhost:8888"}, {}, False),
        (None, {}, {"api_url": "http://evil.invalid"}, False),
        ("http://trusted.invalid", {}, {"api_url": "http://evil.invalid"}, False),
    ],
)
def test_a_token_of_the_file_goes_to_the_file_s_url_only(
    config: Path, file_url: str | None, environ: dict[str, str], flags: dict[str, object], *, sent: bool
) -> None:
    """A URL from an environment that a cloned repository may have set does not get the person's token."""
    config.write_text(f'api_token = "{SECRET}"\n' + (f'api_url = "{file_url}"\n' if file_url else ""))
    loaded = load(environ=os.environ | environ, flags=flags)
    assert loaded.settings.api_token == (SecretStr(SECRET) if sent else None)
    assert loaded.sources["api_token"] == ("config.toml" if sent else "default")
    warnings = [warning for warning in loaded.warnings if warning.startswith("api_token ")]
    assert len(warnings) == (not sent)
    assert all("is not sent to the URL that was given elsewhere" in warning for warning in warnings)
    assert SECRET not in everything_shown(loaded)


def test_a_token_beside_the_url_goes_with_it(config: Path) -> None:
    """Who gives URL and token together gets both, and the file's token is not missed."""
    config.write_text('api_token = "hsk-FAKE-file"\n')
    loaded = load(environ=os.environ | {"HINDSIGHT_API_URL": "http://other.invalid", "HINDSIGHT_API_TOKEN": SECRET})
    assert loaded.settings.api_token == SecretStr(SECRET)
    assert loaded.warnings == ()


def test_the_server_s_own_variables_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """What belongs to a Hindsight server in the same shell is neither read, nor warned of, nor shown."""
    for name in ("HINDSIGHT_API_LLM_API_KEY", "HINDSIGHT_API_DATABASE_URL", "HINDSIGHT_API_PORT", "HINDSIGHT_X"):
        monkeypatch.setenv(name, SECRET)
    loaded = load()
    assert loaded.settings == Settings()
    assert loaded.warnings == ()
    assert SECRET not in everything_shown(loaded)


@given(
    st.dictionaries(
        st.sampled_from([*NAMES, "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"]),
        st.one_of(st.text(), st.text(st.characters(codec="ascii")), st.just("9" * 30), st.just("[" * 9)),
    ),
    st.sampled_from(["{}", " {}\n", "{}\n{}", "ż{}", "Bearer {}", "\x00{}"]),
)
def test_no_text_in_any_variable_raises_or_shows_a_secret(environ: dict[str, str], token: str) -> None:
    """Whatever the environment holds, settings come out, each warning is one line, and no token is in any of it."""
    secret = "hsk-FAKE-" + "5" * 12
    written = token.format(secret, secret)
    for name, value in (
        ("HINDSIGHT_API_TOKEN", written),
        ("HINDSIGHT_API_KEY", written),
        ("HINDSIGHT_API_URL", f"http://u:{written}@h"),
        ("HINDSIGHT_API_URL", written),
    ):
        loaded = load(environ=environ | {name: value}, config_file=Path("/none/config.toml"))
        assert secret not in everything_shown(loaded)
        assert all(warning.isprintable() for warning in loaded.warnings)
        assert Settings(**loaded.settings.model_dump()) == loaded.settings
