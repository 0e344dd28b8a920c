"""Words and ranking: how a text becomes index terms, a query a list of words, and a match a score.

Pure text work and arithmetic; the SQL that uses it stands in `recall`, the index itself in `schema`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["RANK", "any_of", "final_score", "index_terms", "query_words"]

RANK = "bm25(1.0, 0.5)"
"""BM25 over the two columns of the index: the memory's text, and at half weight its context and entities."""

_MAX_QUERY_WORDS = 48
_RECENCY_SHARE = 0.10
_RECENCY_HALF_LIFE_DAYS = 30.0
_CONFIRMATION_SHARE = 0.05
_CONFIRMATION_CAP = 4
_WINDOW_SHARE = 0.20

_SEGMENT = re.compile(r"\w+(?:[.\-:+#@]\w+)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_A-Za-z0-9]+")
_INDEXED = re.compile(r"[a-z0-9\u0080-\U0010ffff]+")
"""What the index takes for a word: runs of ASCII letters and digits, and of anything beyond ASCII."""
_FOREIGN_PUNCTUATION = re.compile(r"[^\w\x00-\x7f]+")
# Scripts written without blanks between words: Thai to Myanmar, Khmer, kana, Han, Hangul.
_DENSE = re.compile(
    "[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_LETTERS = str.maketrans(
    {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"}
    | {"đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "\u0131": "i"}
)
_VOICING = "\u3099\u309a"
"""Marks that are part of a kana, not an accent on it."""
_AFTER_Y = re.compile(r"y(?:ments?|ers?|able)\b")
"""Endings that the stemmer takes off without turning the y into i, as it does in the word alone."""
_STOP_TEXT = """
    a about all also am an and any are as at be been but by can could did do does for from had has have he her here his
    how i if in into is it its just ll me my no not of on or our re s she should so some t than that the their them then
    there these they this those to up us ve was we were what when where which who whom whose why will with would you
    your
"""
_STOP_WORDS = frozenset(_STOP_TEXT.split())


def index_terms(text: str) -> str:
    """Return `text` as the index takes it, which cuts it into words and stems the English ones.

    Letters lose their accents; "deployment" is made "deploy", which the stemmer would keep apart. An identifier or a
    dotted, dashed or numbered name is followed by its parts and by all of them in one piece, so that `parseHTTPRequest`
    and `parse_http_request` find each other and "http request", and `utf-8` finds `utf8`; each segment of a path
    likewise. Scripts without blanks become single letters and pairs of neighbours.
    """
    text = _AFTER_Y.sub("y", text)
    if text.isascii():
        extra = [part for segment in _SEGMENT.findall(text) if not _is_plain(segment) for part in _parts(segment)]
        return f"{text} {' '.join(extra)}" if extra else text
    text = _FOREIGN_PUNCTUATION.sub(" ", _unaccented(text))
    extra = [part for segment in _SEGMENT.findall(text) if not _is_plain(segment) for part in _parts(segment)]
    return f"{_DENSE.sub(_neighbours, text)} {' '.join(extra)}".lower()


def query_words(query: str) -> list[str]:
    """Return the words to look for, each once; empty where `query` holds none.

    They are cut as the index cuts. Words such as "the" or "what" are left out unless there are no others. Of a long
    query the longest words stay, which are the rarest ones.
    """
    found = dict.fromkeys(_INDEXED.findall(index_terms(query).lower()))
    # A pair of letters says more than the letters, which are in the index for queries of a single one.
    letters = {letter for word in found if len(word) > 1 and _DENSE.fullmatch(word) for letter in word}
    words = [word for word in found if word not in _STOP_WORDS and word not in letters] or list(found)
    return words if len(words) <= _MAX_QUERY_WORDS else sorted(words, key=len, reverse=True)[:_MAX_QUERY_WORDS]


def any_of(words: list[str]) -> str:
    """Return the search expression for memories with one of `words`, which hold no quotes."""
    return " OR ".join(f'"{word}"' for word in words)


def final_score(relevance: float, *, age_days: float | None, confirmations: int, in_window: bool) -> float:
    """Return the score by which results are ordered and which they show as `final`.

    How a recall ranks:

    1. Every memory that passes the filters and shares a word with the query is a match. Words are compared after
       splitting identifiers, folding case and accents, and English stemming; words such as "the" do not count. In a
       large bank a match must hold one of the query's rarer words, if enough memories do.
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


def _is_plain(segment: str) -> bool:
    """Say whether a segment is one ordinary word, which needs no help to be found."""
    return segment.isalpha() and (segment[1:].islower() or segment.isupper() or len(segment) == 1)


def _parts(segment: str) -> Iterator[str]:
    parts = _PART.findall(segment)
    if len(parts) > 1 and segment.isascii():
        yield from parts
        yield "".join(parts)


def _unaccented(text: str) -> str:
    """Return `text` in compatibility form without accents; a kana keeps its voicing, Hangul its syllables."""
    apart = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).translate(_LETTERS))
    bare = "".join(c for c in apart if c.isascii() or c in _VOICING or unicodedata.category(c)[0] != "M")
    return unicodedata.normalize("NFC", bare)


def _neighbours(run: re.Match[str]) -> str:
    letters = run.group()
    pairs = (letters[at : at + 2] for at in range(len(letters) - 1))
    return f" {' '.join((*letters, *pairs))} "
