"""What a recall asks: the person's prompt and what went before it, cut to what a server takes.

Owns which prompts ask for nothing, how a query is put together, and where it is cut. Knows no server and no setting.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from bankclient.turns.intake import kept_text
from bankclient.turns.speech import has_words, person_words
from bankclient.turns.tokens import MAX_QUERY_TOKENS, token_costs, tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["compose_query", "half_query", "shortened"]

_COMMAND = re.compile(r"\s*(?:!|/[A-Za-z][\w:.-]*(?:\s|\Z))")
_CUT = " \u2026 "
_TAIL = 0.6
"""The share of what is kept that stays at the end, where a question follows what was pasted."""

_WORTHWHILE = 24
"""Letters, and tokens, below which a piece of an earlier turn would say nothing."""

_ZWJ = "\u200d"
_LONGEST_CLUSTER = 64
"""Letters that stay together; longer heaps of marks are nobody's words and may be cut."""


def compose_query(
    prompt: str,
    earlier: Sequence[str] = (),
    *,
    max_chars: int,
    max_tokens: int = MAX_QUERY_TOKENS,
    redacting: bool = True,
) -> str | None:
    """Return the query for a prompt, with as many `earlier` turns (texts, oldest first) in front as fit.

    None where there is nothing to ask: a prompt without a letter or digit, a notice of the harness, a slash command,
    `!shell`. Private parts, our own memory blocks and, if `redacting`, secrets are gone before anything is cut. What
    does not fit is dropped from the oldest turn on, the last of which is shortened in its middle; then from the middle
    of the prompt: its head and its tail stay.
    """
    if _COMMAND.match(prompt):
        return None
    asked = kept_text(person_words(prompt), redacting=redacting)
    if not asked:
        return None
    query = shortened(asked, max_chars, max_tokens)
    for turn in reversed(earlier):
        room, budget = max_chars - len(query) - 1, max_tokens - tokens(query) - 1
        if room < _WORTHWHILE or budget < _WORTHWHILE:
            break
        if said := kept_text(turn, redacting=redacting):
            query = f"{shortened(said, room, budget)}\n{query}"
    return query if has_words(query) else None


def half_query(query: str) -> str:
    """Return half of a query that the server called too long, its head and tail."""
    return shortened(query, len(query) // 2, int(tokens(query) / 2))


def shortened(text: str, max_chars: int, max_tokens: float) -> str:
    """Return `text` with as much of its middle left out as it takes; letters that belong together stay together."""
    if len(text) <= max_chars and (len(text) * 4 <= max_tokens or tokens(text) <= max_tokens):
        return text
    chars = max(0, max_chars - len(_CUT))
    budget = max(0.0, max_tokens - tokens(_CUT) - 2)  # the seams begin tokens that were in the middle of one before
    tail_chars, tail_budget = int(chars * _TAIL), budget * _TAIL
    window = text[: chars + 1]
    head = _clean_cut(text, _fitting(token_costs(window), chars - tail_chars, budget - tail_budget))
    window = text[-tail_chars:] if tail_chars else ""
    length = _fitting(token_costs(window)[::-1], tail_chars, tail_budget)
    tail = _clean_cut(text, len(text) - length, forward=True)
    return f"{text[:head].rstrip()}{_CUT}{text[tail:].lstrip()}"[:max_chars]


def _fitting(costs: Sequence[float], max_chars: int, budget: float) -> int:
    """Return how many of the first letters stay within both."""
    total = 0.0
    for count, cost in enumerate(costs[:max_chars]):
        total += cost
        if total > budget:
            return count
    return min(len(costs), max_chars)


def _clean_cut(text: str, place: int, *, forward: bool = False) -> int:
    """Return the nearest place, before `place` or behind it, where no letter is torn apart."""
    step = 1 if forward else -1
    for distance in range(_LONGEST_CLUSTER):
        candidate = place + step * distance
        if not 0 < candidate < len(text):
            return max(0, min(candidate, len(text)))
        if not _joined(text, candidate):
            return candidate
    return place


def _joined(text: str, place: int) -> bool:
    """Whether the letters before and behind `place` make one: by the parts of the Unicode rule that prose meets."""
    before, behind = text[place - 1], text[place]
    if before == "\r" and behind == "\n":
        return True
    if _ZWJ in {before, behind} or _extends(behind):
        return True
    if _is_flag_part(before) and _is_flag_part(behind):
        start = place
        while start > 0 and place - start < _LONGEST_CLUSTER and _is_flag_part(text[start - 1]):
            start -= 1
        return (place - start) % 2 == 1
    return _is_jamo(before) and _is_jamo(behind)


def _extends(letter: str) -> bool:
    return (
        unicodedata.category(letter) in {"Mn", "Mc", "Me"}
        or "\U0001f3fb" <= letter <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= letter <= "\U000e007f"  # tags of regional flags
        or letter == "\u200c"
    )


def _is_flag_part(letter: str) -> bool:
    return "\U0001f1e6" <= letter <= "\U0001f1ff"


def _is_jamo(letter: str) -> bool:
    return "\u1100" <= letter <= "\u11ff" or "\ua960" <= letter <= "\ua97c" or "\ud7b0" <= letter <= "\ud7fb"
