r"""Secrets that only a name gives away: `password: …`, `API_KEY=…`, `Cookie: …`, "the passphrase is …", `--token …`.

Owns the names, and the judgement of whether what follows is a value, or code, a type, the next word of a sentence. The
time is linear in the text: each word is looked at once, blanks and values are bounded.
"""

from __future__ import annotations

import re

from bankclient.turns.secret_forms import is_placeholder

__all__ = ["redact_named"]

_PASSWORDS = (
    *("db_pass", "dbpass", "passcode", "passphrase", "passwd", "password", "pgpass", "pwd"),
    *("contrasena", "contrase\u00f1a", "has\u0142o", "kennwort", "passwort", "senha"),
    *("\u043f\u0430\u0440\u043e\u043b\u044c", "\u5bc6\u7801", "\u5bc6\u78bc"),
    *("\u30d1\u30b9\u30ef\u30fc\u30c9", "\ube44\ubc00\ubc88\ud638"),
)
_OTHERS = ("credential", "credentials", "secret", "token")
_KEYS = (
    "access",
    "account",
    "api",
    "auth",
    "client",
    "encryption",
    "master",
    "private",
    "secret",
    "service",
    "signing",
)
_HEADERS = ("authorization", "cookie")
_ENDINGS = (*_PASSWORDS, *_OTHERS, *_HEADERS)
_SUFFIX = re.compile(r"[_-]?(?:base|dev|live|new|old|prod|production|staging|test|value|\d+)[_-]?\Z")
"""What a name may add behind the word that makes it a secret's."""

_NAMED = re.compile(
    r"(?<!\w)(?P<dashes>--)?(?P<name>[^\W\d][\w-]{0,80}+)"
    r"(?:(?:\[\d{0,4}\])?(?:\\*['\"`]\]?)?\s{0,8}(?P<sign>=>|:=|={1,3}|[:\uff1a])\s{0,8}"
    r"|[ \t]{1,4}(?P<verb>is|was|are)[ \t]{1,4}|[`'\"]?[ \t]{0,40}\|[ \t]{0,40}"
    r"|(?(dashes)|(?<=[DEde])(?i:(?<=passcode)|(?<=passphrase)|(?<=passwd)|(?<=password)))[ \t]{1,4})"
)
"""A word and what may lead from it to a value: a sign, a verb, the next cell of a table, a blank behind a flag of a
command line or behind a word for a password."""

_QUOTED = re.compile(r"[bfru]{0,2}(?P<quote>\\*['\"`])(?P<secret>(?:(?!(?P=quote))[^\n]){3,8192}+)(?=(?P=quote)|\Z)")
_BARE_LETTER = r"[^\s'\"`,;<>(){}\[\]\\&]"
_BARE = re.compile(rf"(?P<secret>{_BARE_LETTER}{{3,}}(?![.:]){_BARE_LETTER})")
_LONG_RUN = re.compile(rf"{_BARE_LETTER}{{512,}}+")
_TYPED = re.compile(r"[A-Za-z_.|\[\] ]{1,40}=(?!=)\s{0,8}")
_AUTHORIZATION = re.compile(
    r"\\*['\"]?(?:(?:apikey|basic|bearer|digest|token)\s{1,4})?(?P<secret>[\w.~+/=:-]{4,}+)", re.IGNORECASE
)
_COOKIE = re.compile(r"\\*['\"]?(?P<secret>[\w.-]{1,100}=[^\s'\"\\]{8,}+[^\n'\"\\]*+)")

_ORDINARY = frozenset(
    """
    abcdef access admin after any api authentication authorization available aware base64 based basic bearer before
    below boolean bytes changeme char class config const context cookie credential credentials default denied disabled
    ed25519 empty enabled env error example expired expires external false field file found foobar function generated
    generation handling hashed header hidden hs256 http https input instead internal invalid json jwt keyring leaks
    length limit management manager masked match message method missing mixed must name needed never none null number
    oauth oauth2 object only option optional passcode passphrase passwd password path placeholder policy private prompt
    protected provided public pwd random read readonly redacted refresh reset required rotated rotation rs256 scope
    secret secretstr self session sha1 sha256 sha512 should stdin storage stored string strings test text this token
    tokens true type undefined unknown unset update used user utf utf8 validation value variable vault version when
    which with without world write x509 your
    """.split()  # noqa: SIM905 - a list of a hundred words reads as a paragraph
)
_SUBSCRIPT = re.compile(r"['\"]\]?\s*[:=]\s*\Z")
_FIRST_WORD = re.compile(r"[-_./:=]")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)*")
_JOINED = re.compile(r"\.|->|::")
_NUMBERLIKE = re.compile(r"[\d\W_]+|0x[0-9a-f]{1,16}", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_ISSUED = re.compile(r"[A-Z\d]")
_TYPE_NAME = re.compile(r"(?:bool|byte|char|float|str|string|u?int)\d{0,3}(?:_t|array)?", re.IGNORECASE)
_PATH = re.compile(r"\.{0,2}/|~|[a-zA-Z][\w+.-]{0,20}://")
_BLOB = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z0-9/+=]{30,200}")
_SIGNS = frozenset("!#$%&@^")
_CALLS = frozenset("([{")
_SHORT, _ARTICLE = 6, 2


def redact_named(text: str) -> str:
    """Return `text` with the values of names that mean secrets replaced."""
    parts: list[str] = []
    done = looked = 0
    for named in _NAMED.finditer(text):
        if named.start() < looked or not _is_secret_name(named):
            continue
        if value := _value(named):
            start, end = value.span("secret")
            parts += (text[done:start], "[redacted: secret]")
            done = looked = end
        elif run := _LONG_RUN.match(text, named.end()):
            looked = run.end()  # a name in every other place of it must not have it read over and over
    return "".join([*parts, text[done:]])


def _is_secret_name(named: re.Match[str]) -> bool:
    name = _plain_name(named)
    if not name.endswith("key"):
        return name.endswith(_ENDINGS)
    # "key" alone is that of a dictionary; "api key", "api_key" and "apiKey" are not.
    owner = name[: -len("key")].rstrip("_-")
    if not owner:
        before = named.string[max(0, named.start() - 12) : named.start()].lower()
        owner = before.rstrip(" ") if before.endswith(" ") else ""
    return owner.endswith(_KEYS)


def _value(named: re.Match[str]) -> re.Match[str] | None:
    """Return the secret behind a name, None where there is something else."""
    text, start = named.string, named.end()
    name = named["name"].lower()
    if name.endswith(_HEADERS):
        if not (named["sign"] == ":" or _SUBSCRIPT.search(named[0])):
            return None  # a sentence, or a variable of that name
        value = (_COOKIE if name.endswith("cookie") else _AUTHORIZATION).match(text, start)
        return value if value and (value.re is _COOKIE or _is_token(value)) else None
    value = _QUOTED.match(text, start)
    if value:
        return value if not is_placeholder(value["secret"]) and _is_quoted_value(named, value) else None
    value = _BARE.match(text, start)
    if value and not is_placeholder(value["secret"]) and _is_bare_value(named, value):
        return value
    typed = _TYPED.match(text, start) if named["sign"] == ":" else None
    value = _QUOTED.match(text, typed.end()) if typed else None
    return value if value and not is_placeholder(value["secret"]) and _is_quoted_value(named, value) else None


def _is_token(value: re.Match[str]) -> bool:
    """Whether what a header is set to is a token, not the next word of a sentence, nor code."""
    return _ISSUED.search(value["secret"], 1) is not None and value.string[value.end() : value.end() + 1] not in _CALLS


def _plain_name(named: re.Match[str]) -> str:
    """Return a name in small letters, without what says which of several it is."""
    return _SUFFIX.sub("", named["name"].lower()) or named["name"].lower()


def _is_password(named: re.Match[str]) -> bool:
    return _plain_name(named).endswith(_PASSWORDS)


def _is_bare_value(named: re.Match[str], value: re.Match[str]) -> bool:
    """Whether an unquoted word after a name is a secret: not code, not a type, not the next word of a sentence."""
    secret, sign = value["secret"], named["sign"] or ""
    following = value.string[value.end() : value.end() + 1]
    if _is_ordinary(secret) or sign.startswith("==") or following in _CALLS:
        return False
    if _NUMBERLIKE.fullmatch(secret):
        return _is_password(named) and len(secret) >= _SHORT
    if not sign:  # spoken, a flag's, or in a table
        signs = named["verb"] and not _SIGNS.isdisjoint(secret)
        return not _is_constant(secret) and (signs or _DIGIT.search(secret) is not None)
    if named["name"].isupper() and named[0].endswith("="):  # a line of an environment, unless it names a variable
        return not _is_constant(secret) and (_DIGIT.search(secret) is not None or not _JOINED.search(secret))
    if not _IDENTIFIER.fullmatch(secret):
        return _DIGIT.search(secret) is not None or _is_password(named)
    return not _is_name(secret, sign) and (_DIGIT.search(secret) is not None or _ends_line(named, secret, following))


def _is_name(secret: str, sign: str) -> bool:
    """Whether an identifier that is assigned is a name in code: a path of names, or words joined by underscores."""
    return _JOINED.search(secret) is not None or ("=" in sign and "_" in secret)


def _ends_line(named: re.Match[str], secret: str, following: str) -> bool:
    """Whether a word of letters alone is given as a password: only by a line that ends with it."""
    ends = following in {"", "\n", "\r", "'", '"', "`"} and named["sign"] == ":"
    return ends and _is_password(named) and len(secret) >= _SHORT and secret[1:].islower()


def _is_constant(secret: str) -> bool:
    return secret.isupper() and "_" in secret


def _is_quoted_value(named: re.Match[str], value: re.Match[str]) -> bool:
    """Whether a quoted string after a name is a secret, not a label, a type or a sentence."""
    secret, password = value["secret"], _is_password(named)
    words = secret.split()
    if _is_ordinary(secret) or (len(words) > 1 and not (password and _is_passphrase(words))):
        return False
    if _is_constant(secret):
        return False
    if password and named["sign"]:
        return True
    if _NUMBERLIKE.fullmatch(secret):
        return False
    return _DIGIT.search(secret) is not None or (secret.isalpha() and secret.isupper())


def _is_passphrase(words: list[str]) -> bool:
    """Whether several words are a passphrase rather than a sentence about one."""
    return all(len(word) > _ARTICLE and word.isalnum() and word.lower() not in _ORDINARY for word in words)


def _is_ordinary(value: str) -> bool:
    lower = value.lower()
    first = _FIRST_WORD.split(lower, maxsplit=1)[0]
    return (
        lower in _ORDINARY
        or (first in _ORDINARY and not _DIGIT.search(lower, len(first)))
        or _TYPE_NAME.fullmatch(value) is not None
        or (_PATH.match(value) is not None and not _BLOB.fullmatch(value))
    )
