"""Secrets taken out of text: the sentence stays, the secret becomes `[redacted: kind]`.

Owns which detectors are on and in which order they run: forms of our own, for what the library misses or would search
in quadratic time, then the detectors of `detect-secrets` named below. It guesses nothing from entropy: hashes, ids and
blobs are what coding is made of. The library is imported with the first redaction.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from bankclient.turns.secret_forms import FORMS, Form, always, has_digit
from bankclient.turns.secret_names import redact_named

__all__ = ["DETECTORS", "redact"]

DETECTORS = (
    ("aws", "AWSKeyDetector"),
    ("azure_storage_key", "AzureStorageKeyDetector"),
    ("basic_auth", "BasicAuthDetector"),
    ("discord", "DiscordBotTokenDetector"),
    ("github_token", "GitHubTokenDetector"),
    ("gitlab_token", "GitLabTokenDetector"),
    ("mailchimp", "MailchimpDetector"),
    ("pypi_token", "PypiTokenDetector"),
    ("sendgrid", "SendGridDetector"),
    ("slack", "SlackDetector"),
    ("square_oauth", "SquareOAuthDetector"),
    ("stripe", "StripeDetector"),
    ("telegram_token", "TelegramBotTokenDetector"),
    ("twilio", "TwilioKeyDetector"),
)
"""The detectors of `detect-secrets` that are on, by module and class.

Off are those that tell secrets by entropy (they take hashes and ids), those that any word could be (Artifactory, public
addresses), those by assignment to a name (ours leaves code alone), and those whose patterns take quadratic time on
hostile text (OpenAI, JWT, npm), for which ours stand in.
"""

_PASSES = 8
"""What stood beside a secret may show only once that is gone. One pass is the rule, two where something is found."""

_INNER = frozenset({"AWSKeyDetector", "BasicAuthDetector"})
"""Detectors whose patterns hold the secret in their first group; of the others the whole match is one."""


def redact(text: str) -> str:
    """Return `text` with each secret found in it replaced by `[redacted: kind]`; redacting twice changes nothing more.

    The time is linear in the text. The first call of a process also imports the library.
    """
    for _ in range(_PASSES):
        before, text = text, _redacted_once(text)
        if text == before:
            break
    return text


def _redacted_once(text: str) -> str:
    for form in FORMS:
        text = form.redacted(text)
    text = redact_named(text)
    for form in _library():
        text = form.redacted(text)
    return text


@cache
def _library() -> tuple[Form, ...]:
    forms: list[Form] = []
    for module, name in DETECTORS:
        detector = getattr(import_module(f"detect_secrets.plugins.{module}"), name)
        for pattern in detector.denylist:
            group = 1 if name in _INNER and pattern.groups else 0
            # No issuer's token of that length is without a digit; dotted names in code are.
            holds = always if group else has_digit
            forms.append(Form(detector.secret_type.lower(), pattern, group, holds))
    return tuple(forms)
