"""The URL of a server: its one form, its mends, and the credentials in it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from bankclient.settings import Settings, describe, load
from bankclient.settings.values import split_url

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hsk-FAKE-4711"


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("http://h:1/", "http://h:1"),
        ("http://h:1/mem", "http://h:1/mem"),
        ("http://h:1/mem/", "http://h:1/mem"),
        ("http://h:1/mem///", "http://h:1/mem"),
        (" http://h:1 ", "http://h:1"),
        ("HTTP://Host.Invalid:1/Mem", "http://host.invalid:1/Mem"),
        ("http://[::1]:1", "http://[::1]:1"),
        ("http://[0:0:0:0:0:0:0:1]:1/", "http://[::1]:1"),
        ("http://127.0.0.1:8888", "http://127.0.0.1:8888"),
        ("http://h:80", "http://h"),
        ("https://h:443/a", "https://h/a"),
        ("https://h:80", "https://h:80"),
        ("http://my_service:8888", "http://my_service:8888"),
        ("http://h/a%20b/ż", "http://h/a%20b/ż"),
        ("embedded", "embedded"),
        (" Embedded ", "embedded"),
    ],
)
def test_url_forms(written: str, url: str) -> None:
    """A URL has one form: trimmed, no closing slash, its path prefix kept."""
    loaded = load(environ={"HINDSIGHT_API_URL": written})
    assert loaded.settings.api_url == url
    assert loaded.settings.api_userinfo is None
    assert loaded.warnings == ()


@pytest.mark.parametrize(
    ("written", "mend"),
    [
        ("h:1", "write http:// or https:// in front of the host"),
        ("localhost", "write http:// or https:// in front of the host"),
        ("//h:1", "write http:// or https:// in front of the host"),
        ("ftp://h", "write http:// or https:// in front of the host"),
        ("http:/h", "write http:// or https:// in front of the host"),
        ("http://h:1?bank=x", "leave out what follows ? or #"),
        ("http://h:1/#x", "leave out what follows ? or #"),
        ("http://h:1/mem?", "leave out what follows ? or #"),
        ("http://h:99999", "http://HOST:PORT"),
        ("http://h:port", "http://HOST:PORT"),
        ("http://[::1", "http://HOST:PORT"),
        ("http://h:0", "port"),
        ("http://", "write the host's name"),
        ("http:///mem", "write the host's name"),
        ("http://:8888", "write the host's name"),
        ("http://1.2.3.400", "write the host's name or address"),
        ("http://[::g]:1", "http"),
        ("http://[fe80::1%ü]:1", "plain ASCII"),
        ("http://bücher.invalid", "xn--"),
        ("http://h h:1", "write the plain URL"),
        ("http://h\n:1", "write the plain URL"),
        ("http://good.invalid\\@evil.invalid", "write the plain URL"),
        ("http://h/" + "x" * 3000, "write the plain URL"),
        ("http://u:%ff@h", "percent-encoded"),
    ],
)
def test_urls_that_cannot_be_used(written: str, mend: str) -> None:
    """Each is one clear line that names the mend, and the default stands."""
    loaded = load(environ={"HINDSIGHT_API_URL": written})
    assert loaded.settings == Settings()
    (warning,) = loaded.warnings
    assert warning.startswith("HINDSIGHT_API_URL from environment is not used: ")
    assert mend in warning
    assert warning.endswith("; http://localhost:8888 (default) stands")


@pytest.mark.parametrize(
    ("written", "userinfo"),
    [
        ("u:p", "u:p"),
        ("u%40x:p%3Aq%2F", "u@x:p:q/"),
        ("u", "u"),
        (":p", ":p"),
        ("a@b:c", "a@b:c"),
        ("u:%C5%BC", "u:ż"),
        ("", None),
        (":", None),
    ],
)
def test_credentials_are_split_off_the_url(written: str, userinfo: str | None) -> None:
    """What stands before @ is kept apart, decoded and secret; the URL is shown without it."""
    loaded = load(environ={"HINDSIGHT_API_URL": f"http://{written}@h:1/mem/"})
    assert loaded.settings.api_url == "http://h:1/mem"
    kept = loaded.settings.api_userinfo
    assert (kept.get_secret_value() if kept else None) == userinfo
    assert describe(loaded)[0][1] == ("http://***@h:1/mem" if userinfo else "http://h:1/mem")


def test_a_password_stays_with_its_own_url(config: Path) -> None:
    """Credentials in config.toml's URL do not go to the URL that took its place."""
    config.write_text(f'api_url = "http://u:{SECRET}@trusted.invalid"\n')
    assert load().settings.api_userinfo == SecretStr(f"u:{SECRET}")
    elsewhere = load(environ=os.environ | {"HINDSIGHT_API_URL": "http://other.invalid"}).settings
    assert (elsewhere.api_url, elsewhere.api_userinfo) == ("http://other.invalid", None)


@given(
    st.one_of(
        st.text(),
        st.from_regex(r"https?://([^\s@/?#]*@)?[^\s/?#]{0,12}(:\d{0,6})?(/\S*)?", fullmatch=True),
        st.from_regex(r"https?://[a-z0-9.:_\[\]%-]{1,12}(/[a-z%.]*)*", fullmatch=True),
    )
)
def test_a_url_has_one_normal_form_which_http_clients_take(written: str) -> None:
    """Reading a URL twice is reading it once, and none that is accepted breaks the HTTP library."""
    try:
        url, userinfo = split_url(written)
    except ValueError:
        return
    assert split_url(url) == (url, None)
    if url != "embedded":
        parsed = httpx.URL(url)
        assert parsed.scheme in {"http", "https"}
        assert parsed.host
        assert not parsed.userinfo
    assert userinfo is None or userinfo.get_secret_value()
