"""How many tokens a text is at most, without the server's tokenizer.

Owns the estimate alone. It was held against o200k_base and cl100k_base, the vocabularies that servers count with.
"""

from __future__ import annotations

__all__ = ["MAX_QUERY_TOKENS", "token_costs", "tokens"]

MAX_QUERY_TOKENS = 500
"""What a server takes of a query: newer ones drop the rest in silence, older ones answer 400."""

_GOES_ON = {
    ("blank", "blank"): 0.25,
    ("capital", "capital"): 0.6,
    ("capital", "small"): 0.6,
    ("digit", "digit"): 0.4,
    ("small", "small"): 0.5,
}
"""Tokens a letter adds where it goes on with what the one before it began."""

_RARE = frozenset("JQKVWXZjqkvwxz")
_RARE_GOES_ON = 1.0


def tokens(text: str) -> float:
    """Return an upper estimate of the tokens of `text`."""
    return sum(token_costs(text))


def token_costs(text: str) -> list[float]:
    """Return what each letter adds to the estimate.

    A letter behind one of another class (capital behind small, digit, sign, blank) begins a token, and so does every
    sign; words and numbers go on at two letters or digits a token even where they are noise. Letters beyond ASCII count
    as their bytes, of which tokens are made where no vocabulary knows the letter.
    """
    kinds = [_kind(letter) for letter in text]
    return [_cost(letter, kind, before) for letter, kind, before in zip(text, kinds, ["", *kinds], strict=False)]


def _kind(letter: str) -> str:
    if letter > "\x7f":
        return "beyond"
    if letter.isalpha():
        return "capital" if letter.isupper() else "small"
    return "digit" if letter.isdigit() else "blank" if letter == " " else "sign"


def _cost(letter: str, kind: str, before: str) -> float:
    if kind == "beyond":
        return len(letter.encode("utf-8", "replace"))
    if (before, kind) in _GOES_ON:
        return _RARE_GOES_ON if letter in _RARE else _GOES_ON[before, kind]
    return 0.0 if kind == "blank" else 1.0
