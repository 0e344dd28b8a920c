"""The server's rule for bank names, in one place.

Settings and scope both check names before anything is sent. This module knows the rule and nothing else: no setting,
no project, no error class.
"""

from __future__ import annotations

import unicodedata

__all__ = ["BANK_NAME_MAX_BYTES", "bank_name_problem"]

BANK_NAME_MAX_BYTES = 192
"""The longest bank name that the server creates, in bytes of UTF-8."""


def bank_name_problem(name: str) -> str | None:
    """Return what is wrong with `name` as a bank's name together with the mend, or `None` if the server takes it.

    The server answers 400 to an empty or too long name, a control character (Unicode category Cc) and a leading `_`,
    and 404 to any `/`, escaped or not. A lone surrogate cannot be sent at all.
    """
    size = len(name.encode(errors="surrogatepass"))
    kinds = {unicodedata.category(letter) for letter in name}
    checks = (
        (not name, "a bank name cannot be empty"),
        ("Cs" in kinds, "a bank name must be valid text; write it in UTF-8"),
        ("Cc" in kinds, "a bank name holds no control characters; leave them out"),
        (name.startswith("_"), "a bank name cannot begin with '_', which the server keeps for itself; leave it out"),
        ("/" in name, "a bank name holds no '/'; write '-' or '.' in its place"),
        (
            size > BANK_NAME_MAX_BYTES,
            f"a bank name has at most {BANK_NAME_MAX_BYTES} bytes of UTF-8, and this has {size}; shorten it",
        ),
    )
    return next((problem for found, problem in checks if found), None)
