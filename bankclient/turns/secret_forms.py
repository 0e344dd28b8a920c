r"""The forms of secrets that say of themselves what they are: prefixes, headers, addresses with a password, key blocks.

Owns their patterns. The time of each is linear in the text: a match begins at something that cannot overlap with itself
or is bounded, and what was taken is not given back. Knows nothing of what a text is for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FORMS", "Form", "always", "has_digit", "is_placeholder"]


_PLACEHOLDER = re.compile(r"\$[\w({]|[<{\[]|%(?:s|\(|[A-Z_]{2,}%)")


def always(_match: re.Match[str]) -> bool:
    """Hold for every match."""
    return True


def has_digit(match: re.Match[str]) -> bool:
    """Whether a digit is in the match: no issuer's token is without one, names in code mostly are."""
    return any(letter.isdigit() for letter in match[0])


@dataclass(frozen=True, slots=True)
class Form:
    """One form of secret: its kind, its pattern, the group that goes, and what must hold of a match besides."""

    kind: str
    pattern: re.Pattern[str]
    group: str | int = "secret"
    holds: Callable[[re.Match[str]], bool] = always

    def redacted(self, text: str) -> str:
        """Return `text` with the secrets of this form replaced."""
        return self.pattern.sub(self._replaced, text)

    def _replaced(self, match: re.Match[str]) -> str:
        if is_placeholder(match[self.group]) or not self.holds(match):
            return match[0]
        start, end = (place - match.start() for place in match.span(self.group))
        return f"{match[0][:start]}[redacted: {self.kind}]{match[0][end:]}"


def is_placeholder(value: str) -> bool:
    """Whether a value stands for another: a variable, a slot, dots or stars, or what was redacted before."""
    return _PLACEHOLDER.match(value) is not None or len(set(value)) == 1 or "[redacted:" in value


def _begins_word(match: re.Match[str]) -> bool:
    start = match.start()
    return start == 0 or not (match.string[start - 1].isalnum() or match.string[start - 1] == "_")


def _random_word(match: re.Match[str]) -> bool:
    """Whether what looks like a token begins a word and is none itself: it has a digit or a capital."""
    issued = match["secret"][3:]  # behind the first letters of the prefix, some of which are capitals
    return _begins_word(match) and any(letter.isdigit() or letter.isupper() for letter in issued)


def _key_word(match: re.Match[str]) -> bool:
    """Whether a key that may hold dashes is one: with a dash it has digit and capital, as names of classes have not."""
    issued = match["secret"][3:]
    digit, capital = has_digit(match), any(letter.isupper() for letter in issued)
    return _begins_word(match) and ((digit and capital) if "-" in issued or "_" in issued else (digit or capital))


def _capital_word(match: re.Match[str]) -> bool:
    """Whether what looks like a token begins a word and has a capital, as names of packages and versions have not."""
    return _begins_word(match) and any(letter.isupper() for letter in match["secret"])


def _bearer(match: re.Match[str]) -> bool:
    """Whether what follows the scheme's name is a token, not the next word of a sentence."""
    secret = match["secret"]
    shouting = match[0][:6].isupper() and secret.isupper()
    return any(letter.isdigit() or letter.isupper() for letter in secret[1:]) and not shouting


def _jwt(match: re.Match[str]) -> bool:
    return match["more"] is not None and _begins_word(match)


def _in_url(match: re.Match[str]) -> bool:
    return match.start() > 0 and match.string[match.start() - 1].isalnum()


def _url_token(match: re.Match[str]) -> bool:
    return _in_url(match) and has_digit(match)


def _of_curl(match: re.Match[str]) -> bool:
    """Whether a `-u` is that of an HTTP client: elsewhere it names a user and a group."""
    return not match["secret"].isdigit() and "curl" in match.string[max(0, match.start() - 200) : match.start()]


def _of_login(match: re.Match[str]) -> bool:
    """Whether a `-p` is that of a program that takes a password so: elsewhere it is a port, or makes parents."""
    command = match.string[max(0, match.start() - 60) : match.start()].rpartition("\n")[2]
    return command[-1:].isspace() and ("sshpass" in command or ("mysql" in command and not match[0][2].isspace()))


_WORD = "[A-Za-z0-9]"
_URL_SAFE = "[A-Za-z0-9_-]"

_PREFIXES = (
    ("anthropic key", rf"sk-ant-{_URL_SAFE}{{4,}}+", _begins_word),
    ("api key", rf"sk-(?:admin|lf|live|or-v1|proj|svcacct|test)-{_URL_SAFE}{{4,}}+", _begins_word),
    ("api key", rf"sk-{_URL_SAFE}{{20,}}+", _key_word),
    ("hindsight key", rf"hsk-{_URL_SAFE}{{4,}}+", _begins_word),
    ("age key", rf"AGE-SECRET-KEY-1{_WORD}{{20,}}+", _begins_word),
    ("aws key", r"A(?:KI|SI)A[A-Z0-9]{4,}+", _begins_word),
    ("databricks token", r"dapi[a-f0-9]{32}", _begins_word),
    ("digitalocean token", r"do[opr]_v1_[a-f0-9]{32,}+", _begins_word),
    ("docker token", rf"dckr_[op]at_{_URL_SAFE}{{20,}}+", _begins_word),
    ("github token", rf"gh[oprsu]_{_WORD}{{4,}}+", _random_word),
    ("github token", r"github_pat_\w{16,}+", _begins_word),
    (
        "gitlab token",
        rf"gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|soat)-(?:[0-9a-zA-Z]{{1,4}}_)?{_URL_SAFE}{{4,}}+",
        _random_word,
    ),
    ("google key", rf"AIza{_URL_SAFE}{{8,}}+", _begins_word),
    ("google secret", rf"GOCSPX-{_URL_SAFE}{{16,}}+", _begins_word),
    ("google token", rf"ya29\.{_URL_SAFE}{{20,}}+", _begins_word),
    ("groq key", rf"gsk_{_WORD}{{20,}}+", _random_word),
    ("hugging face token", rf"hf_{_WORD}{{4,}}+", _random_word),
    ("linear key", rf"lin_api_{_WORD}{{16,}}+", _begins_word),
    ("new relic key", rf"NRAK-{_WORD}{{16,}}+", _begins_word),
    ("notion token", rf"ntn_{_WORD}{{20,}}+", _random_word),
    ("npm token", rf"npm_{_WORD}{{4,}}+", _random_word),
    ("perplexity key", rf"pplx-{_WORD}{{20,}}+", _random_word),
    ("pypi token", rf"pypi-{_URL_SAFE}{{8,}}+", _capital_word),
    ("replicate token", rf"r8_{_WORD}{{20,}}+", _random_word),
    ("sentry token", r"sntry[su]_[\w+/=-]{20,}+", _begins_word),
    ("shopify token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{16,}+", _begins_word),
    ("slack token", rf"xapp-{_URL_SAFE}{{10,}}+", _begins_word),
    ("slack token", rf"xox[abeoprs]-{_URL_SAFE}{{4,}}+", _begins_word),
    ("stripe key", rf"(?:rk|sk)_(?:live|test)_{_WORD}{{4,}}+", _random_word),
    ("stripe secret", r"whsec_[\w+/=]{16,}+", _begins_word),
    ("supabase token", r"sbp_[a-f0-9]{20,}+", _begins_word),
    ("tailscale key", rf"tskey-{_URL_SAFE}{{10,}}+", _random_word),
    ("vault token", rf"hv[bs]\.{_URL_SAFE}{{20,}}+", _begins_word),
    ("xai key", rf"xai-{_WORD}{{20,}}+", _random_word),
)

_BETWEEN = r"(?:[\s>|\"',+]|-(?!-)|\\+[nrt]|\d{1,6}(?:[\t:|\u2192]|\\u2192))"
"""What may stand between the lines of a key: line ends, also escaped ones, marks of quotes and diffs, line numbers."""

_PRIVATE_KEY = re.compile(
    r"(?P<secret>-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:{_BETWEEN}*+(?:(?:Comment|DEK-Info|Hash|Proc-Type|Version): [^\n\\]{{0,200}}|[A-Za-z0-9+/=]{{16,}}+))++"
    rf"(?:{_BETWEEN}*+[A-Za-z0-9+/=]{{1,15}}+(?={_BETWEEN}*+-?-----END))?+"
    rf"(?:{_BETWEEN}*+-?-----END (?:[A-Z0-9]{{1,20}} ){{0,4}}PRIVATE KEY(?: BLOCK)?-----)?+)"
)

FORMS = (
    Form("private key", _PRIVATE_KEY),
    Form(
        "jwt",
        re.compile(rf"(?P<secret>eyJ{_URL_SAFE}{{8,}}+(?P<more>\.{_URL_SAFE}{{8,}}+(?:\.{_URL_SAFE}*+){{0,3}})?+)"),
        holds=_jwt,
    ),
    Form(
        "url password",
        re.compile(r"://[^\s/:@'\"<>]*+:(?P<secret>[^\s/'\"<>]+)@(?=[\w\[.{$-])"),
        holds=_in_url,
    ),
    Form("url token", re.compile(r"://(?P<secret>[\w.~%-]{20,}+)@(?=[\w\[.-])"), holds=_url_token),
    Form(
        "bearer token",
        re.compile(r"bearer\s{1,4}(?!bearer\s)(?P<secret>[\w.~+/=-]{4,}+)", re.IGNORECASE),
        holds=_bearer,
    ),
    Form(
        "password",
        re.compile(r"-(?:u|-user)[\s=]{0,4}['\"]?[\w.@+-]{1,100}:(?P<secret>[^\s'\"]{2,}+)"),
        holds=_of_curl,
    ),
    Form("password", re.compile(r"-p\s{0,4}['\"]?(?P<secret>[^\s'\"-][^\s'\"]{2,}+)"), holds=_of_login),
    Form("password", re.compile(r"login\s{1,4}\S{1,100}\s{1,4}password\s{1,4}(?P<secret>\S{3,}+)")),
    Form("password", re.compile(r"identified\s{1,4}by\s{1,4}'(?P<secret>[^'\n]{2,200})'", re.IGNORECASE)),
    Form("webhook", re.compile(r"https://discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/(?P<secret>[\w-]{16,}+)")),
    Form(
        "signature",
        re.compile(
            r"[?&](?:sig|signature|x-amz-(?:security-token|signature))=(?P<secret>[\w%.+/-]{16,}+)", re.IGNORECASE
        ),
    ),
    *(Form(kind, re.compile(f"(?P<secret>{pattern})"), holds=holds) for kind, pattern, holds in _PREFIXES),
)
