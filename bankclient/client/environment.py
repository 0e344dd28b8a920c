"""What the process environment says about the way to a server: an HTTP proxy and certificates.

Pure but for reading certificate files: the variables come in as a mapping. A bad variable is one warning and is
passed over; it never stops a call. Loopback is never reached through a proxy, whatever `NO_PROXY` says.
"""

from __future__ import annotations

import errno
import importlib.util
import ipaddress
import os
import socket
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import certifi

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["certificates", "is_loopback", "proxy_for"]

_SCHEMES = frozenset({"http", "https", "socks5", "socks5h"})


def is_loopback(host: str) -> bool:
    """Return whether `host` names this machine: `localhost`, its subdomains, 127.0.0.0/8 or ::1, in any notation."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = _address(name)
    if address is None:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback or address.is_unspecified


def proxy_for(url: str, environ: Mapping[str, str]) -> tuple[str | None, list[str]]:
    """Return the proxy for `url` (`None`: connect directly) and warnings about unusable variables.

    `HTTPS_PROXY` or `HTTP_PROXY` by the URL's scheme, then `ALL_PROXY`, lower case first; `NO_PROXY` lists hosts,
    domain suffixes, `host:port`, addresses, networks in CIDR form, or `*`.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if is_loopback(host) or _is_excluded(host, port, _variable(environ, "no_proxy")[1]):
        return None, []
    warnings: list[str] = []
    for wanted in (f"{parts.scheme}_proxy", "all_proxy"):
        if wanted == "http_proxy" and "REQUEST_METHOD" in environ:
            continue  # under CGI a request header can set HTTP_PROXY
        name, value = _variable(environ, wanted)
        if not value:
            continue
        candidate = value if "://" in value else f"http://{value}"
        problem = _proxy_problem(candidate)
        if problem is None:
            scheme, _, rest = candidate.partition("://")
            return f"{scheme.lower()}://{rest}", warnings
        warnings.append(f"{name} is passed over: {problem}; expected a form such as http://proxy.example:3128")
    return None, warnings


def _proxy_problem(candidate: str) -> str | None:
    try:
        parts = urlsplit(candidate)
        usable = bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return "it is not a URL"
    if parts.scheme.lower() not in _SCHEMES:
        return f"a proxy of the kind {parts.scheme!r} is not supported"
    if not usable or any(letter.isspace() for letter in candidate):
        return "it is not a URL"
    if parts.scheme.lower().startswith("socks") and importlib.util.find_spec("socksio") is None:
        return "a SOCKS proxy needs the package socksio (pip install 'httpx[socks]')"
    return None


def certificates(environ: Mapping[str, str]) -> tuple[ssl.SSLContext, list[str]]:
    """Return the TLS context (certifi's roots, or those that `SSL_CERT_FILE` or `SSL_CERT_DIR` name) and warnings."""
    warnings: list[str] = []
    for name, argument in (("SSL_CERT_FILE", "cafile"), ("SSL_CERT_DIR", "capath")):
        value = environ.get(name, "").strip()
        if not value:
            continue
        try:
            if argument == "capath":
                os.scandir(value).close()  # OpenSSL takes a folder that is not there without a word
            elif not os.path.isfile(value):  # noqa: PTH113 - and waits for ever on a FIFO
                raise FileNotFoundError(errno.ENOENT, "there is no such file")
            return ssl.create_default_context(**{argument: value}), warnings  # type: ignore[arg-type] # both take a path
        except (OSError, ValueError) as error:
            warnings.append(f"{name} is passed over: {value} cannot be read as certificates ({error})")
    return ssl.create_default_context(cafile=certifi.where()), warnings


def _variable(environ: Mapping[str, str], lower: str) -> tuple[str, str]:
    for name in (lower, lower.upper()):
        value = environ.get(name, "").strip()
        if value:
            return name, value
    return lower, ""


def _is_excluded(host: str, port: int, no_proxy: str) -> bool:
    name = host.rstrip(".").lower()
    return any(_matches(name, port, entry.strip().lower()) for entry in no_proxy.split(",") if entry.strip())


def _matches(name: str, port: int, entry: str) -> bool:
    if entry == "*":
        return True
    address = _address(name)
    if address is not None:
        try:
            return address in ipaddress.ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            pass  # not a network: compared as a name below
    pattern, colon, only_port = entry.rpartition(":")
    if colon and only_port.isascii() and only_port.isdigit() and ":" not in pattern.strip("[]"):
        if only_port.lstrip("0") != str(port):
            return False
        entry = pattern
    suffix = entry.removeprefix("*").lstrip(".").strip("[]")
    return bool(suffix) and (name == suffix or name.endswith("." + suffix))


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(name))  # the old forms: 127.1, 0x7f000001
    except (OSError, ValueError):
        return None
