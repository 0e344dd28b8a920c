"""How large a text is in tokens, estimated: there is no model here whose tokens could be counted. Pure arithmetic."""

from __future__ import annotations

__all__ = ["count_tokens", "cut_to_tokens"]

_LETTERS_A_TOKEN = 4


def count_tokens(text: str) -> int:
    """Return about how many tokens `text` is: one for four ASCII letters, one for each other letter."""
    plain = len(text) if text.isascii() else sum(letter.isascii() for letter in text)
    return -(-plain // _LETTERS_A_TOKEN) + len(text) - plain


def cut_to_tokens(text: str, limit: int) -> str:
    """Return as much of the beginning of `text` as `limit` tokens hold."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(text[:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    return text[:low]
