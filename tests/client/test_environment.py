"""Proxy and certificate variables: loopback is never proxied, and a bad variable is a warning."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING

import certifi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.client.environment import certificates, is_loopback, proxy_for

if TYPE_CHECKING:
    from pathlib import Path

DEAD = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("api.localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("notlocalhost", False),
        ("localhost.example.org", False),
        ("10.0.0.1", False),
        ("128.0.0.1", False),
        ("127.1", True),
        ("2130706433", True),
        ("0x7f000001", True),
        ("::ffff:127.0.0.1", True),
        ("0", True),
        ("::", True),
        ("::ffff:10.0.0.1", False),
        ("", False),
    ],
)
def test_loopback_is_told_by_name_and_address(host: str, expected: bool) -> None:
    """Both families, the whole 127 network and the reserved domain count."""
    assert is_loopback(host) is expected


@pytest.mark.parametrize("no_proxy", [None, "localhost", "127.0.0.0/8", "example.org"])
@pytest.mark.parametrize("url", ["http://127.0.0.1:8888", "http://localhost:8888", "http://[::1]:8888/mem"])
def test_loopback_never_goes_through_a_proxy(url: str, no_proxy: str | None) -> None:
    """A dead corporate proxy must not stand between a person and their own machine."""
    environ = {"HTTP_PROXY": DEAD, "ALL_PROXY": DEAD} | ({} if no_proxy is None else {"NO_PROXY": no_proxy})
    assert proxy_for(url, environ) == (None, [])


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("http://memory.example", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("http://memory.example", {"http_proxy": "http://low:1", "HTTP_PROXY": "http://up:1"}, "http://low:1"),
        ("https://memory.example", {"HTTP_PROXY": "http://p:1"}, None),
        ("https://memory.example", {"HTTPS_PROXY": "p:3128"}, "http://p:3128"),
        ("https://memory.example", {"ALL_PROXY": "http://all:1"}, "http://all:1"),
        ("http://memory.example", {"HTTP_PROXY": " "}, None),
        ("http://memory.example", {"HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, None),
        ("http://memory.example", {"ALL_PROXY": "HTTP://Proxy:1"}, "http://Proxy:1"),
        ("http://memory.example", {}, None),
    ],
)
def test_the_proxy_fits_the_urls_scheme(url: str, environ: dict[str, str], proxy: str | None) -> None:
    """HTTPS_PROXY for https, HTTP_PROXY for http (but not under CGI), ALL_PROXY for either."""
    assert proxy_for(url, environ) == (proxy, [])


@pytest.mark.parametrize(
    ("host", "no_proxy", "direct"),
    [
        ("memory.example", "memory.example", True),
        ("memory.example", "MEMORY.example", True),
        ("memory.example", ".example", True),
        ("memory.example", "example", True),
        ("memory.example", "*.example", True),
        ("memory.example", "*", True),
        ("memory.example", " other.example , memory.example ", True),
        ("memory.example", "memory.example:8888", True),
        ("memory.example", "memory.example:1", False),
        ("memory.example", "ory.example", False),
        ("memory.example", "10.0.0.0/8", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.3:8888", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("[fd00::1]", "fd00::/8", True),
        ("[fd00::1]", "[fd00::1]", True),
        ("memory.example", ",,", False),
        ("memory.example", "memory.example:²", False),
        ("memory.example", "memory.example:" + "9" * 5000, False),
    ],
)
def test_no_proxy_knows_hosts_suffixes_ports_and_networks(host: str, no_proxy: str, direct: bool) -> None:
    """Each form that people write in NO_PROXY is honoured."""
    proxy, _ = proxy_for(f"http://{host}:8888", {"HTTP_PROXY": "http://p:1", "NO_PROXY": no_proxy})
    assert (proxy is None) is direct


@pytest.mark.parametrize(
    "value", ["ftp://p:1", "http://", "http://p:99999", "http://[::1", "http://a b:1", "socks9://p:1"]
)
def test_a_bad_proxy_variable_is_one_warning(value: str) -> None:
    """It is named and passed over, and the next one is looked at."""
    proxy, warnings = proxy_for("http://memory.example", {"HTTP_PROXY": value, "ALL_PROXY": "http://all:1"})
    assert proxy == "http://all:1"
    assert len(warnings) == 1
    assert warnings[0].startswith("HTTP_PROXY")


@given(st.dictionaries(st.sampled_from(["HTTP_PROXY", "http_proxy", "ALL_PROXY", "NO_PROXY"]), st.text()))
def test_no_text_in_the_variables_raises(environ: dict[str, str]) -> None:
    """Whatever stands there, the answer is a proxy or none."""
    proxy_for("http://memory.example:8888", environ)


def test_certificates_default_to_certifis_roots() -> None:
    """Nothing set: the usual roots, and the peer is checked."""
    context, warnings = certificates({})
    assert warnings == []
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.get_ca_certs()


def test_a_certificate_file_of_ones_own_is_used() -> None:
    """SSL_CERT_FILE names the roots."""
    context, warnings = certificates({"SSL_CERT_FILE": certifi.where()})
    assert warnings == []
    assert context.get_ca_certs()


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_a_missing_certificate_path_is_one_warning(name: str, tmp_path: Path) -> None:
    """The variable is named, and the default roots stand."""
    context, warnings = certificates({name: str(tmp_path / "nowhere")})
    assert context.get_ca_certs()
    assert len(warnings) == 1
    assert warnings[0].startswith(name)


def test_a_certificate_file_that_would_never_end_is_one_warning(tmp_path: Path) -> None:
    """Reading a FIFO waits for whoever writes to it."""
    os.mkfifo(tmp_path / "ca.pem")
    _, warnings = certificates({"SSL_CERT_FILE": str(tmp_path / "ca.pem")})
    assert len(warnings) == 1


def test_a_certificate_file_that_is_none_is_one_warning(tmp_path: Path) -> None:
    """A file of something else is passed over too."""
    path = tmp_path / "ca.pem"
    path.write_text("no certificate")
    _, warnings = certificates({"SSL_CERT_FILE": str(path)})
    assert len(warnings) == 1
