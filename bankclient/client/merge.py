"""Joining what several banks recalled for one question into one answer. Pure."""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final

from bankclient.api.models.recall import RecallResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bankclient.api.models.recall import RecalledMemory

__all__ = ["merge"]

_SERVER_MAX_TOKENS: Final = 4096
_BYTES_PER_TOKEN: Final = 4


def merge(answers: Sequence[RecallResult], max_tokens: int | None) -> RecallResult:
    """Return the memories of all answers, taken in turn, best first, within `max_tokens` of text together.

    Ranks of two banks cannot be compared, so each bank's best comes before any bank's second. A text that stands in
    two banks is shown once. Tokens are counted as four bytes each, as a rule of thumb; the first memory always stays,
    as on the server. The answer is degraded where one of its parts is.
    """
    if len(answers) == 1:
        return answers[0]
    left = (_SERVER_MAX_TOKENS if max_tokens is None else max_tokens) * _BYTES_PER_TOKEN
    kept: dict[str, RecalledMemory] = {}
    for memory in chain.from_iterable(zip_longest(*(answer.results for answer in answers))):
        if memory is None or memory.text in kept:
            continue
        left -= len(memory.text.encode(errors="replace"))
        if kept and left < 0:
            break
        kept[memory.text] = memory
    return RecallResult(
        results=tuple(kept.values()),
        entities={name: entity for answer in reversed(answers) for name, entity in answer.entities.items()},
        chunks={name: chunk for answer in answers for name, chunk in answer.chunks.items()},
        source_facts={name: fact for answer in answers for name, fact in answer.source_facts.items()},
        source_facts_truncated=any(answer.source_facts_truncated for answer in answers),
        degraded=any(answer.degraded for answer in answers),
    )
