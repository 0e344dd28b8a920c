"""The paths of the API: every name becomes exactly one escaped segment."""

from __future__ import annotations

import unicodedata

from bankclient.api.call import segment
from bankclient.errors import InvalidInput

__all__ = ["bank_path"]

_BANK_BYTES = 192


def bank_path(bank: str, *segments: str) -> str:
    """Return the path of a bank, or of what `segments` (already escaped) name in it."""
    return "/".join(("/v1/default/banks", segment(_checked(bank), "the bank's name"), *segments))


def _checked(bank: str) -> str:
    if not isinstance(bank, str):
        raise InvalidInput(f"the bank's name is {type(bank).__name__}: give a text (str)")
    if (
        "/" in bank
        or bank.startswith("_")
        or any(unicodedata.category(letter) == "Cc" for letter in bank)
        or len(bank.encode(errors="replace")) > _BANK_BYTES
    ):
        raise InvalidInput(
            f"the bank's name {bank[:60]!r} is none that the server takes: at most {_BANK_BYTES} bytes, no control"
            " characters, no `/`, no leading `_`"
        )
    return bank
