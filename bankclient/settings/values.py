"""How the text of a setting is read: one `Form` for each kind of value.

Pure: text, or a TOML value, goes in; the value, or a `ValueError` that says what it must be, comes out. This module
knows neither which settings there are nor where a value stood.
"""

from __future__ import annotations

import ipaddress
import json
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from pydantic import GetCoreSchemaHandler, SecretStr
from pydantic_core import CoreSchema, core_schema

from bankclient.names import BANK_NAME_MAX_BYTES, bank_name_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "EMBEDDED",
    "FALSE_WORDS",
    "TRUE_WORDS",
    "Destination",
    "Form",
    "bank",
    "choice",
    "folder",
    "label",
    "listing",
    "split_url",
    "switch",
    "text",
    "token",
    "url",
    "whole",
]

TRUE_WORDS = frozenset({"1", "on", "true", "yes"})
"""A switch is on when its text, stripped of white space and lower-cased, is one of these. The hook process tests
HINDSIGHT_DISABLED against the same words without importing them; nothing else switches it on."""
FALSE_WORDS = frozenset({"0", "false", "no", "off"})
"""A switch is off when its text, stripped and lower-cased, is one of these; any other text is a mistake."""

EMBEDDED = "embedded"
"""The URL that means the embedded bank."""

_URL_MAX = 2048
_DEFAULT_PORTS = {"http": 80, "https": 443}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}(\.0*)?")
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?")
_IPV4_LIKE = re.compile(r"[0-9]+(\.[0-9]+){3}")


@dataclass(frozen=True, slots=True)
class Form:
    """How a setting is written: `parse` reads it or raises `ValueError` with the mend, `words` tell a person.

    As metadata of a pydantic field it is that field's validator. What was given for a `hidden` one is never shown, not
    even when it is wrong.
    """

    words: str
    parse: Callable[[object], object]
    hidden: bool = False

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda given: None if given is None else self.parse(given), handler(source)
        )


class Destination(NamedTuple):
    """A server's base URL without a closing slash, and the decoded `user:password` that stood in it."""

    url: str
    userinfo: SecretStr | None


def switch() -> Form:
    """Return the form of a boolean: `TRUE_WORDS` and `FALSE_WORDS` in any case."""
    words = "true or false (also 1/0, yes/no, on/off)"

    def parse(given: object) -> bool:
        word = str(given).strip().lower()
        if word not in TRUE_WORDS | FALSE_WORDS:
            raise ValueError(f"it must be {words}")
        return word in TRUE_WORDS

    return Form(words, parse)


def whole(low: int, high: int) -> Form:
    """Return the form of a whole number from `low` to `high`; `3.0` is 3, as it can mean nothing else."""
    words = f"a whole number from {low} to {high}"

    def parse(given: object) -> int:
        written = str(given).strip()
        number = int(written.partition(".")[0]) if _WHOLE.fullmatch(written) else None
        if number is None or not low <= number <= high:
            raise ValueError(f"it must be {words}")
        return number

    return Form(words, parse)


def choice(*words: str, also: Mapping[str, str] | None = None) -> Form:
    """Return the form of one of `words`, in any case; `also` maps further words to those that they stand for."""
    known = dict.fromkeys(words) | dict(also or {})
    told = f"one of {', '.join(known)}"

    def parse(given: object) -> str:
        word = str(given).strip().lower()
        if word not in known:
            raise ValueError(f"it must be {told}")
        return known[word] or word

    return Form(told, parse)


def listing(*words: str) -> Form:
    """Return the form of a list of `words`, as `a,b` or JSON; doubles and empty places count for nothing."""
    told = f"a list (a,b or JSON) of {', '.join(words)}"

    def parse(given: object) -> tuple[str, ...]:
        items = _items(given)
        if items is None or not set(items) <= set(words):
            raise ValueError(f"it must be {told}")
        return tuple(dict.fromkeys(items))

    return Form(told, parse)


def _items(given: object) -> list[str] | None:
    """Return the lower-cased items of a list, or of the text of one; `None` for what is neither."""
    if isinstance(given, str) and given.strip().startswith("["):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return None
    if isinstance(given, str):
        given = given.split(",")
    if not isinstance(given, list | tuple):
        return None
    items = cast("list[object] | tuple[object, ...]", given)
    if not all(isinstance(item, str) for item in items):
        return None
    return [item for item in (str(item).strip().lower() for item in items) if item]


def text() -> Form:
    """Return the form of free text, which may have several lines."""
    return Form("text", _read_text)


def label() -> Form:
    """Return the form of text on one line."""

    def parse(given: object) -> str:
        read = _read_text(given)
        if _has_controls(read):
            raise ValueError("it must be text on one line, without control characters")
        return read

    return Form("text on one line", parse)


def bank() -> Form:
    """Return the form of a bank's name, by the server's own rule."""

    def parse(given: object) -> str:
        name = _read_text(given)
        if problem := bank_name_problem(name):
            raise ValueError(problem)
        return name

    return Form(
        f"a name of at most {BANK_NAME_MAX_BYTES} bytes, without / and control characters, not beginning with _", parse
    )


def folder() -> Form:
    """Return the form of a folder, absolute: a relative one would lie in whichever project an agent stands in."""
    words = "an absolute path"

    def parse(given: object) -> Path:
        path = _read_text(str(given) if isinstance(given, Path) else given)
        if not path.startswith("/") or _has_controls(path):
            raise ValueError(f"it must be {words}")
        return Path(path)

    return Form(words, parse)


def token() -> Form:
    """Return the form of a bearer token: one line of printable ASCII, for nothing else fits into an HTTP header."""

    def parse(given: object) -> SecretStr:
        read = _read_text(given.get_secret_value() if isinstance(given, SecretStr) else given)
        if not (read.isascii() and read.isprintable()):
            raise ValueError("a token is one line of ASCII without control characters; copy it once more")
        return SecretStr(read)

    return Form("a bearer token", parse, hidden=True)


def url() -> Form:
    """Return the form of a server's base URL, without credentials. Hidden, for what is wrong in one may be a secret."""
    return Form(
        f"a URL with http:// or https://, which may have a path, or `{EMBEDDED}`",
        lambda given: split_url(given).url,
        hidden=True,
    )


def split_url(given: object) -> Destination:
    """Return a server's base URL in its one normal form, and apart from it the credentials that stood in it.

    Host and scheme are lower-cased, the scheme's own port and closing slashes are left out, a path prefix is kept.
    Raises `ValueError`, which says the mend and never any part of the text, for what no HTTP client could use.
    """
    written = _read_text(given)
    if written.lower() == EMBEDDED:
        return Destination(EMBEDDED, None)
    if not re.match(r"https?://", written, re.IGNORECASE):
        raise ValueError("it has no scheme that can be used; write http:// or https:// in front of the host")
    if len(written) > _URL_MAX or not written.isprintable() or set(written) & set(" \\"):
        raise ValueError("it holds spaces, backslashes or control characters, or is too long; write the plain URL")
    if set(written) & set("?#"):
        raise ValueError(
            "a base URL has no query or fragment; leave out what follows ? or # (in a password, %3F or %23)"
        )
    try:
        parts = urlsplit(written)
        port = parts.port
    except ValueError:
        raise ValueError("its host or port is malformed; write it as http://HOST:PORT") from None
    if port == 0:
        raise ValueError("port 0 is none; write the port that the server listens on")
    origin = f"{parts.scheme}://{_host(parts.hostname or '')}"
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        origin += f":{port}"
    return Destination(origin + parts.path.rstrip("/"), _userinfo(parts.netloc.rpartition("@")[0]))


def _host(name: str) -> str:
    try:
        if ":" in name and name.isascii():
            return f"[{ipaddress.IPv6Address(name)}]"
        if _IPV4_LIKE.fullmatch(name):
            return str(ipaddress.IPv4Address(name))
    except ValueError:
        raise ValueError(
            "its host is no IP address, though it looks like one; write the host's name or address"
        ) from None
    if not _HOST.fullmatch(name):
        raise ValueError(
            "its host is missing or not plain ASCII; write the host's name (an xn-- name where it has one)"
        )
    return name


def _userinfo(written: str) -> SecretStr | None:
    try:
        read = unquote(written, errors="strict")
    except UnicodeDecodeError:
        raise ValueError("its password is not percent-encoded UTF-8; encode it so") from None
    return SecretStr(read) if read.strip(":") else None


def _has_controls(read: str) -> bool:
    return any(unicodedata.category(letter) in {"Cc", "Zl", "Zp"} for letter in read)


def _read_text(given: object) -> str:
    if not isinstance(given, str):
        raise ValueError("it must be text")  # noqa: TRY004 - a TOML value of another type is a bad value, not a bug
    try:
        given.encode()
    except UnicodeEncodeError:
        raise ValueError("it must be valid text; write it in UTF-8") from None
    if not (read := given.strip()):
        raise ValueError("it must not be blank")
    return read
