"""Memories and queries to measure with: made up, the same at every run.

Words have the frequencies that they have in texts: a few are everywhere, most are nearly nowhere. What coding agents
write is full of paths, identifiers and numbers, and so are these. Knows no server.
"""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

__all__ = ["AREAS", "SHAPES", "memories", "queries", "seeded", "words"]

AREAS = 20
"""How many tags there are; each memory has one, but for one in ten, which has none."""
SHAPES = ("rare words", "common words", "a question", "a question within a tag", "a long prompt")
"""The kinds of queries."""

_GLUE_TEXT = "the of to and a in that is was it for on as with be by at this from we have not are or an which you"
_COMMON_TEXT = """
    test file branch server port error build config commit path module service review deploy request token client table
    index cache
"""
_GLUE, _COMMON = _GLUE_TEXT.split(), _COMMON_TEXT.split()
_SYLLABLES = [first + rest for first in "bcdfgklmnprstvw" for rest in ("a", "e", "i", "o", "u", "ar", "en", "il", "or")]
_VOCABULARY = 20_000
_GLUE_SHARE = 0.4
_SHORTEST, _LONGEST = 12, 40
_DAYS = 180
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_LONG = 800
"""Characters of a long prompt; so many a recall sends at most by default."""


def seeded(number: int) -> random.Random:
    """Return a source of chance that is the same at every run."""
    return random.Random(number)  # noqa: S311 - nothing here is secret


@cache
def _content_words() -> list[str]:
    """Return the words that say something, the commonest first."""
    made = seeded(1)
    found = dict.fromkeys(_COMMON)
    while len(found) < _VOCABULARY:
        found["".join(made.choices(_SYLLABLES, k=made.choice((2, 3, 3, 4))))] = None
    return list(found)


@cache
def _weights() -> list[float]:
    return list(itertools.accumulate(1 / (rank + 12) for rank in range(_VOCABULARY)))


def words(chance: random.Random, count: int) -> list[str]:
    """Return `count` words as they come in a text."""
    content = iter(chance.choices(_content_words(), cum_weights=_weights(), k=count))
    return [chance.choice(_GLUE) if chance.random() < _GLUE_SHARE else next(content) for _ in range(count)]


def memories(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Return items to retain, `count` of them from the `start`-th on; each is its own document."""
    return [_memory(number) for number in range(start, start + count)]


def _memory(number: int) -> dict[str, Any]:
    chance = seeded(number)
    said = words(chance, chance.randint(_SHORTEST, _LONGEST))
    first, second = chance.choices(_content_words(), k=2)
    said.insert(
        len(said) // 2, chance.choice((f"src/{first}/{second}.py", f"{first}_{second}()", f"port {number}", ""))
    )
    item: dict[str, Any] = {
        "content": " ".join(said).capitalize() + ".",
        "document_id": f"memory-{number}",
        "context": "claude-code",
        "metadata": {"turn": str(number % 50)},
        "timestamp": (_BEGIN + timedelta(minutes=chance.randrange(_DAYS * 24 * 60))).isoformat(),
    }
    if number % 10:
        item["tags"] = [f"area:{chance.randrange(AREAS)}"]
    return item


def queries(shape: str, count: int) -> list[dict[str, Any]]:
    """Return `count` queries of one of `SHAPES`, with the tags to look under."""
    chance = seeded(SHAPES.index(shape))
    return [_query(shape, chance) for _ in range(count)]


def _query(shape: str, chance: random.Random) -> dict[str, Any]:
    content = _content_words()
    rare, some, common = content[3_000:], content[100:1_000], content[: len(_COMMON)]
    if shape == "rare words":
        return {"query": " ".join(chance.sample(rare, 3))}
    if shape == "common words":
        return {"query": " ".join(chance.sample(common, 5))}
    if shape == "a long prompt":
        return {"query": " ".join(words(chance, _LONG))[:_LONG]}
    named = [*chance.sample(common, 2), *chance.sample(some, 2), chance.choice(rare)]
    asked = {"query": "which {} did we have for the {} and the {} that was in {}, not {}?".format(*named)}
    return asked if shape == "a question" else asked | {"tags": [f"area:{chance.randrange(AREAS)}"]}
