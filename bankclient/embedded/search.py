"""Words and ranking: how a text becomes index terms, a query a search expression, and a match a score.

Pure text work and arithmetic; the SQL that uses it stands in `recall`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["RANK", "final_score", "index_terms", "match_expression", "tokens"]

RANK = "bm25(1.0, 0.5)"
"""BM25 over the two columns of the index: the memory's text, and at half weight its context and entities."""

_MAX_QUERY_TERMS = 48
_MAX_TERM = 64
_RECENCY_SHARE = 0.10
_RECENCY_HALF_LIFE_DAYS = 30.0
_CONFIRMATION_SHARE = 0.05
_CONFIRMATION_CAP = 4
_WINDOW_SHARE = 0.20

_SEGMENT = re.compile(r"\w+(?:[.\-:+#@]\w+)*")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_A-Za-z0-9]+")
# Scripts written without blanks between words: Thai to Myanmar, Khmer, kana, Han, Hangul.
_DENSE = re.compile(
    "[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_LETTERS = str.maketrans(
    {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"}
    | {"đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ı": "i"}
)
_VOICING = "\u3099\u309a"
"""Marks that are part of a kana, not an accent on it."""
_STOP_WORDS = frozenset(
    "a about all also am an and any are as at be been but by can could did do does for from had has have he her here his "
    "how i if in into is it its just ll me my no not of on or our re s she should so some t than that the their them then "
    "there these they this those to up us ve was we were what when where which who whom whose why will with would you "
    "your".split()
)


def tokens(text: str) -> Iterator[str]:
    """Yield the words of `text`, folded to lower case without accents.

    An identifier or a dotted, dashed or numbered name gives its parts and, in one piece, all of them: `parseHTTPRequest`
    and `parse_http_request` both give parse, http, request, parsehttprequest; `utf-8` and `utf8` both give utf8. A path
    gives each of its segments so. Scripts without blanks between words give single letters and pairs of neighbours.
    """
    for segment in _SEGMENT.findall(text if text.isascii() else _unaccented(text)):
        words = [word.lower() for word in _WORD.findall(segment)]
        for word in words:
            if word.isascii():
                yield word[:_MAX_TERM]
            else:
                yield from _foreign(word)
        if len(words) > 1 and segment.isascii():
            yield "".join(words)[:_MAX_TERM]


def index_terms(text: str) -> str:
    """Return `text` as the index takes it: its tokens, parted by blanks."""
    return " ".join(tokens(text))


def match_expression(query: str) -> str | None:
    """Return the FTS5 expression for `query`: any of its words, each quoted; None where it holds no word.

    Words such as "the" or "what" are left out unless there are no others. Of a long query the longest words stay, which
    are the rarest ones.
    """
    found = dict.fromkeys(tokens(query))
    # A pair of letters says more than the letters, which are in the index for queries of a single one.
    pairs = {letter for word in found if len(word) > 1 and _DENSE.fullmatch(word) for letter in word}
    words = [word for word in found if word not in _STOP_WORDS and word not in pairs] or list(found)
    if len(words) > _MAX_QUERY_TERMS:
        words = sorted(words, key=len, reverse=True)[:_MAX_QUERY_TERMS]
    return " OR ".join(f'"{word}"' for word in words) or None


def final_score(relevance: float, *, age_days: float | None, confirmations: int, in_window: bool) -> float:
    """Return the score by which results are ordered and which they show as `final`.

    How a recall ranks:

    1. Every memory that passes the filters and shares a word with the query is a match. Words are compared after
       splitting identifiers, folding case and accents, and English stemming; words such as "the" do not count.
    2. Matches are weighed by BM25 over text (whole weight) and context and entity names (half): rare words count more
       than common ones, a word said often in a short memory more than once in a long one. The best ones, by the
       recall's budget 100, 300 or 1000, go on; `relevance` is a match's BM25 divided by the best one's.
    3. Recency adds up to 10 %: the whole for a memory of the query's own time, half of it 30 days earlier; the future
       counts like now, an undated memory gets nothing.
    4. Confirmation adds up to 10 %: 5 % for each doubling of how often the same text was retained, in this document or
       in others, up to four times.
    5. A memory inside the caller's `temporal_window` gets 20 %.

    So the words decide, and age and confirmation settle what is close. Equal scores: the later memory first.
    """
    recency = 0.0 if age_days is None else _RECENCY_SHARE * math.exp2(-max(age_days, 0.0) / _RECENCY_HALF_LIFE_DAYS)
    confirmed = _CONFIRMATION_SHARE * math.log2(min(max(confirmations, 1), _CONFIRMATION_CAP))
    return relevance * (1.0 + recency + confirmed + (_WINDOW_SHARE if in_window else 0.0))


def _unaccented(text: str) -> str:
    """Return `text` in compatibility form without accents; a kana keeps its voicing, Hangul its syllables."""
    apart = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).translate(_LETTERS))
    bare = "".join(c for c in apart if c in _VOICING or unicodedata.category(c)[0] != "M")
    return unicodedata.normalize("NFC", bare)


def _foreign(word: str) -> Iterator[str]:
    """Yield a word that is not ASCII: as it is, or in pieces where its script has no blanks."""
    at = 0
    for match in _DENSE.finditer(word):
        if match.start() > at:
            yield word[at : match.start()][:_MAX_TERM]
        run = match.group()
        yield from run
        yield from (run[i : i + 2] for i in range(len(run) - 1))
        at = match.end()
    if at < len(word):
        yield word[at:][:_MAX_TERM]
