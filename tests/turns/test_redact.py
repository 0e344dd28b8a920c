"""Secrets out, sentences in: the forms, what survives, and the time it takes."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.turns.redact import DETECTORS, redact

_LETTERS = "FAKE1234567890abcdefghijklmnopqrstuvwxyzFAKE1234567890abcdefghijklmnopqrstuvwxyz"
_LINES = "\n".join(_LETTERS[:64] for _ in range(6))
_KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{_LINES}\nFAKE==\n-----END RSA PRIVATE KEY-----"

# Each row: the text around ({} is the secret), and the secret. Prefixes are put together here, so that no scanner of
# repositories takes a made-up one for a real one.
_FORMS = {
    "openai project": ("use {} for now", "sk-" + "proj-" + _LETTERS[:40]),
    "openai short": ("use {} for now", "sk-" + "proj-" + "FAKE"),
    "openai": ("use {} for now", "sk-" + _LETTERS[:48]),
    "anthropic": ("use {}.", "sk-" + "ant-api03-" + _LETTERS[:40]),
    "github": ("({})", "gh" + "p_" + _LETTERS[:36]),
    "github cut": ("use {} then", "gh" + "p_" + _LETTERS[:12]),
    "github fine-grained": ("use {} then", "github" + "_pat_" + _LETTERS[:40]),
    "github app": ("use {} then", "gh" + "s_" + _LETTERS[:36]),
    "gitlab": ("use {} then", "gl" + "pat-" + _LETTERS[:20]),
    "aws id": ("use {} then", "AK" + "IA" + "FAKE1234567890AB"),
    "aws secret": ('aws_secret_access_key = "{}"', _LETTERS[:40]),
    "aws environment": ("export AWS_SECRET_ACCESS_KEY={}", "FAKE/" + _LETTERS[:35]),
    "google": ("use {} then", "AI" + "za" + _LETTERS[:35]),
    "slack bot": ("use {} then", "xo" + "xb-123456789012-1234567890123-" + _LETTERS[:24]),
    "slack webhook": ("post to {} then", "https://hooks.slack.com/services/" + "T00000000/B00000000/" + _LETTERS[:24]),
    "stripe": ("use {} then", "sk" + "_live_" + _LETTERS[:24]),
    "stripe test": ("use {} then", "rk" + "_test_" + _LETTERS[:24]),
    "npm": ("//registry.example/:_authToken={}", "np" + "m_" + _LETTERS[:36]),
    "pypi": ("use {} then", "py" + "pi-AgEIcHlwaS5vcmc" + _LETTERS[:72]),
    "hugging face": ("use {} then", "h" + "f_" + _LETTERS[:34]),
    "hindsight": ("HINDSIGHT_API_KEY={} in the shell", "hs" + "k-" + "FAKE"),
    "sendgrid": ("use {} then", "S" + "G." + _LETTERS[:22] + "." + _LETTERS[:43]),
    "telegram": ("use {} then", "123456789:" + _LETTERS[:35]),
    "azure storage": ("AccountKey={}", base64.b64encode(b"fake" * 16).decode()),
    "jwt": ("use {} then", ".".join(("eyJ" + "hbGciOiJIUzI1NiJ9", "eyJzdWIiOiJmYWtlIn0", _LETTERS[:43]))),
    "jwt cut": ("use {} then", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOi"),
    "bearer": ("curl -H 'Authorization: Bearer {}' https://x", _LETTERS[:20]),
    "bearer alone": ("Bearer {} is what it sends", "FAKE" + "TOKEN"),
    "basic": ("authorization: Basic {}", base64.b64encode(b"user:hunter2").decode()),
    "header without scheme": ('{{"Authorization": "{}"}}', _LETTERS[:20]),
    "api key header": ("X-Api-Key: {}", _LETTERS[:16]),
    "cookie": ("Cookie: {}", "session=" + _LETTERS[:20] + "; theme=dark"),
    "url": ("postgres://u:{}@h/d is the database", "pw"),
    "url with signs": ("redis://:{}@cache:6379/0", "p!w$'"[:4]),
    "url with an at sign": ("mysql://root:{}@db.example/x", "p@ss"),
    "url token": ("git clone https://{}@git.example/x.git", _LETTERS[:24]),
    "password": ("password: {} and go on", "hunter2"),
    "password at the end": ("Password: {}", "swordfish"),
    "password with signs": ("the password: {}", "p@ss-w0rd!"),
    "password in numbers": ("PIN and passcode: {}", "482913"),
    "password assigned": ("db_password = '{}'", "swordfish"),
    "password typed": ('password: str = "{}"', "swordfish"),
    "password in JSON": ('{{"user": "u", "password": "{}"}}', "hunter2"),
    "password in JSON in JSON": ('"{{\\"password\\": \\"{}\\"}}"', "hunter2"),
    "password in a diff": ("-password: {}\n+password: $PASSWORD", "hunter2"),
    "passphrase": ('passphrase = "{}"', "correct horse battery staple"),
    "environment": ("PGPASSWORD={} psql", "swordfish"),
    "mapping": ('os.environ["API_KEY"] = "{}"', "abc123def456"),
    "camel case": ("clientSecret: '{}',", "abc123def456"),
    "spoken": ("My API key is {}, keep it", "abc123def456"),
    "spoken password": ("the password is `{}`.", "hunter2"),
    "flag": ("deploy --auth-token {} --now", "abc123def456"),
    "flag with sign": ("mysql --password={} -u root", "hunter2"),
    "curl user": ("curl -s -u bob:{} https://x", "hunter2"),
    "url percent": ("amqp://u:{}@h", "%40bc%2Fd"),
    "url long": ("https://oauth2:{}@h/x.git", _LETTERS * 20),
    "authorization long": ("Authorization: {}", _LETTERS * 20),
    "openai with dashes": ("use {} then", "sk-" + "FAKE1234-abcd_EFGH567890"),
    "table": ("| password | {} |", "hunter2x"),
    "named by a blank": ("user admin password {} on the test host", "hunter2x"),
    "named in another language": ("\u6570\u636e\u5e93\u5bc6\u7801\uff1a{}", "hunter2"),
    "name with a suffix": ("SECRET_KEY_BASE={}", _LETTERS[:40]),
    "name with a number": ("PASSWORD_2={}", "swordfish"),
    "environment with dots": ("PASSWORD={}", "my.pass.w0rd"),
    "environment that begins like a path": ("AWS_SECRET_ACCESS_KEY={}", "/FAKE" + _LETTERS[:35]),
    "begins with an ordinary word": ("token: {}", "test-4f9a8b7c6d5e"),
    "hexadecimal": ("private_key: {}", "0x" + "4f9a8b7c6d5e4f3a" * 4),
    "sql": ("CREATE USER u IDENTIFIED BY '{}';", "swordfish"),
    "mysql": ("mysql -uroot -p{} db", "hunter2"),
    "sshpass": ("sshpass -p {} ssh u@h", "hunter2"),
    "netrc": ("machine h login bob password {}", "hunter2"),
    "long": ("token={} end", _LETTERS * 40),
    "private key": ("it is\n{}\nfor now", _KEY),
    "private key in JSON": ('{{"key": "{}"}}', _KEY.replace("\n", "\\n")),
    "private key in JSON in JSON": ("{}", _KEY.replace("\n", "\\\\n")),
    "private key quoted": ("{}", _KEY.replace("\n", "\n> ")),
    "private key numbered": ("{}", _KEY.replace("\n", "\n12\u2192")),
    "private key removed": ("{}", _KEY.replace("\n", "\n-")),
    "private key cut": ("{}", _KEY[:200]),
    "private key encrypted": ("{}", _KEY.replace("\n", "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB\n\n", 1)),
    "pgp private key": ("{}", _KEY.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK")),
}


@pytest.mark.parametrize(("around", "secret"), _FORMS.values(), ids=_FORMS)
def test_the_secret_goes_and_the_sentence_stays(around: str, secret: str) -> None:
    """Nothing of the secret is left, everything around it is, and a second time changes nothing."""
    before, after = around.format("\0").split("\0")
    redacted = redact(before + secret + after)
    assert redacted.startswith(before)
    assert redacted.endswith(after)
    middle = redacted[len(before) : len(redacted) - len(after)]
    assert middle.count("[redacted: ") == 1
    assert not any(secret[place : place + 8] in middle for place in range(max(1, len(secret) - 7)))
    assert redact(redacted) == redacted


@pytest.mark.parametrize(("around", "secret"), _FORMS.values(), ids=_FORMS)
def test_the_secret_goes_wherever_it_stands(around: str, secret: str) -> None:
    """At the beginning, in the middle and at the end of other text, and escaped in JSON."""
    text = around.format(secret)
    for whole in (text, f"Some words first.\n{text}\nMore words.", json.dumps({"text": text}, ensure_ascii=False)):
        redacted = redact(whole)
        assert "[redacted: " in redacted
        for form in (secret, json.dumps(secret, ensure_ascii=False)[1:-1]):
            assert form not in redacted
    assert "Some words first.\n" in redact(f"Some words first.\n{text}\nMore words.")


_PROSE = [
    "Reset your password: go to the settings and choose a new one. The password: it must be long.",
    "The token is expired, the secret is out, and the key is under the mat. Authorization: required.",
    "Bearer authentication is what the server wants; Basic authentication would do. BEARER TOKENS ARE FINE.",
    "My cookie: a small file. Keyboard: qwerty. Password policy: at least twelve letters. Secret: ask me.",
    "max_tokens: 1024, input_tokens=100, tokenizer: o200k_base, token_type: bearer, next_token = tokens[i]",
    "scikit-learn, sk-SK, task-sk-button-large-primary-action, npm_config_registry, hf_hub_download, pypi-attestations",
    "e-mail user@example.com, https://example.com/@user/x?key=value, git@github.com:a/b.git, ssh://git@h:22/x",
    "mkdir -p a/b && ssh -p 2222 u@h; mysql -p -h db; sk-grid-col-12-offset-3-large; the password is set, 50% of it",
    "It runs on http://localhost:8888/v1 and https://[::1]:8443/path@2x.png with docker run -u 1000:1000.",
    "https://user@example.com/ and f'postgres://{user}:{password}@{host}' and redis://$USER:$PW@h",
    "PASSWORD=$(pass show x) TOKEN=${{ secrets.TOKEN }} API_KEY=<your key> SECRET=**** token: $TOKEN",
    "the header is -----BEGIN PRIVATE KEY----- and the footer is -----END PRIVATE KEY-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFakeFakeFakeFakeFakeFakeFakeFakeFakeFakeFake user@host",
    "[redacted: github token] and [redacted: secret]: what was it?",
]
_CODE = [
    "def login(user: str, password: str, token: Token | None = None, *, secret: bytes = b'') -> Session:",
    "password = get_password(user); token = tokens.pop(); secret = settings.secret_key; api_key = self._api_key",
    "const { apiKey, token } = config; get({ token: accessToken, secret: jwtSecret, password, apiKey: k.api_key })",
    "if token == 0x22: return tokens[token]",
    "if password == other.password and not secret: raise AuthError('password: wrong')",
    '{"type": "object", "properties": {"password": {"type": "string"}, "token": "string", "secret": "SecretStr"}}',
    "password: SecretBytes\nsecret: SecretStr | None\ntoken: UInt8Array\napi_key: Optional[str]",
    'parser.add_argument("--password", help="the password"); os.environ.get("API_KEY"); ENV = "MY_SECRET_KEY"',
    'SECRET_ACCESS_KEY = "HINDSIGHT_API_S3_SECRET_ACCESS_KEY"',
    "struct passwd *getpw2(void); authorization: contextvars.ContextVar[State]; P_ON_TOKEN | P_FOR_MODULE2,",
    "for key, value in d.items(): key = value",
    "primary_key=True, foreign_key: user.id, key: 'a1b2', sort_key=1, public_key = load(path)",
    "The lock: sha512-z4PhNJ7GkKZ1Vd0n3wNnWxS0pQzj3Y8l0i5dGf1ZtVhQ1YqJ8p0dC9yT3vFfYv5nVt4kQx3wZp7kXy9bLq==",
]


@pytest.mark.parametrize("text", _PROSE + _CODE)
def test_prose_and_code_survive_untouched(text: str) -> None:
    """Sentences about secrets, code that handles them, and placeholders are not secrets."""
    assert redact(text) == text


def _noise() -> list[str]:
    rng = random.Random(7)  # noqa: S311 - made-up text, the same each time
    blobs = [base64.b64encode(rng.randbytes(size)).decode() for size in (24, 48, 300, 3000)]
    hashes = [hashlib.new(name, rng.randbytes(9)).hexdigest() for name in ("md5", "sha1", "sha256", "sha512")]
    ids = [f"{uuid.UUID(int=rng.getrandbits(128), version=4)}" for _ in range(20)]
    return [
        "\n".join(f"commit {hashlib.sha1(rng.randbytes(9), usedforsecurity=False).hexdigest()}" for _ in range(40)),
        "\n".join(blobs),
        "\n".join(base64.urlsafe_b64encode(rng.randbytes(90)).decode() for _ in range(40)),
        " ".join(hashes),
        " ".join(ids),
        json.dumps(
            {"id": ids[0], "uuid": ids[1], "etag": hashes[0], "digest": f"sha256:{hashes[2]}", "data": blobs[2]}
        ),
        f"data:image/png;base64,{blobs[3]}",
        "\n".join(f"{rng.getrandbits(64):016x}  {rng.getrandbits(32)} {rng.random()}" for _ in range(100)),
    ]


@pytest.mark.parametrize("text", _noise())
def test_noise_that_is_no_secret_survives(text: str) -> None:
    """Hashes, ids and blobs have all the entropy of secrets, and are what coding is made of."""
    assert redact(text) == text


def test_the_packages_own_code_survives() -> None:
    """No line of the modules that deal with turns is a secret."""
    for path in Path(redact.__code__.co_filename).parent.rglob("*.py"):
        text = path.read_text()
        assert redact(text) == text, path


_PIECES = st.sampled_from(
    [around.format(secret) for around, secret in _FORMS.values() if len(secret) < 600]
    + ["password: ", "token=", "Bearer ", "://", "@", "[redacted: ", "]", "'", '"', "\\", "\n", " ", "api key is ", "."]
)


@given(st.lists(_PIECES | st.text(max_size=6), max_size=8).map("".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    """What was redacted once is left alone."""
    once = redact(text)
    assert redact(once) == once


_HOSTILE = [
    *(
        "eyJ",
        "sk-",
        "a-",
        "_-",
        "token=token=",
        "password:",
        "password: a.b ",
        'password="',
        "password='a\\",
        "| token ",
    ),
    *("://a:b", "a://b:c@", "//a/", "curl -u a:", "mysql -pa", "-p", "identified by '", "--a-token ", "secret is "),
    *("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAA\n", "AAAAAAAAAAAAAAAA\n"),
    *(
        "cookie: a=",
        "cookie=a=bbbbbbbb;",
        "cookie: cookie=a",
        "authorization:",
        "bearer ",
        "awskey",
        "xoxa-1-",
        "?sig=",
    ),
    *(
        "https://hooks.slack.com/services/T",
        "MNO.",
        "0",
        "0123456789:",
        "abcdef01",
        " ",
        "\n",
        "\\",
        "'\"",
        "\U0001f600",
    ),
]


@pytest.mark.parametrize("unit", _HOSTILE)
def test_time_is_linear_in_the_text(unit: str) -> None:
    """Ten times as much of whatever a pattern begins with takes nowhere near a hundred times as long."""
    redact("")

    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        start = time.process_time()
        redact(text)
        return time.process_time() - start

    assert seconds(160_000) < 40 * max(seconds(16_000), 0.005)


def test_the_library_comes_with_the_first_redaction() -> None:
    """Importing costs nothing of it: it brings an HTTP library along."""
    code = (
        "import sys; import bankclient.turns.redact as r; assert 'detect_secrets' not in sys.modules;"
        "r.redact('x'); assert 'detect_secrets' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_detectors_that_are_on_are_named() -> None:
    """None of them tells secrets by their entropy, and none by the name of a variable."""
    names = [name for _, name in DETECTORS]
    assert names == sorted(names)
    assert not any("Entropy" in name or "Keyword" in name for name in names)
