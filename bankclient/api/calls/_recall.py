"""Recall: find memories."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from bankclient.api.call import Repeat
from bankclient.api.calls import _values as values
from bankclient.api.calls._bank import bank_call
from bankclient.api.calls._filters import filter_needs, tag_filter
from bankclient.api.models.base import reader
from bankclient.api.models.recall import RecallResult
from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bankclient.api.call import Call, Need
    from bankclient.api.models.words import Budget, FactType, TagGroup, TagsMatch

__all__ = ["Included", "recall"]

Included: TypeAlias = bool | int | Mapping[str, int]
"""Whether something comes along: with the server's budget, with this many tokens, or with the server's own options."""

_READ = reader(RecallResult)
_STAGES = {"semantic", "keyword", "reranker", "final"}
_BUDGETS = {"max_tokens", "max_tokens_per_observation"}


def recall(
    bank: str,
    query: str,
    *,
    tags: Iterable[str] | str = (),
    tags_match: TagsMatch | None = None,
    tag_groups: Iterable[TagGroup] | None = None,
    types: Iterable[FactType] | FactType = (),
    budget: Budget | None = None,
    max_tokens: int | None = None,
    min_scores: Mapping[str, float] | None = None,
    prefer_observations: bool | None = None,
    include_entities: Included | None = None,
    include_chunks: Included | None = None,
    include_source_facts: Included | None = None,
    query_timestamp: datetime | str | None = None,
    temporal_window: tuple[datetime | str, datetime | str] | None = None,
    trace: bool | None = None,
) -> Call[RecallResult]:
    """Find the memories that answer `query`, best first. What is `None` or empty is left to the server.

    The server's own choice for `tags_match` is `any`, which also finds *untagged* memories. `max_tokens` bounds the
    text of the memories; the first always comes. `min_scores` has floors by stage (semantic, keyword, reranker, final),
    of which only `final` holds for every memory. `query_timestamp` is what "yesterday" in the query is counted from;
    `temporal_window` (start, end) ranks memories of that time higher and leaves none out. A server before 0.10 answers
    an empty result for a bank that is not there, a later one 404; one before 0.10.3 refuses a query over 500 tokens.

    Raises `InvalidInput` for what the server would refuse or take as no filter.
    """
    asked = values.text(query, "query")
    if not re.search(r"\w", asked):
        raise InvalidInput("query has no letter or digit, and the server answers 422 to that: ask with a word")
    filters = tag_filter(tags, tags_match, tag_groups)
    body = values.given(
        query=asked,
        types=values.fact_types(types, "types") or None,
        budget=values.maybe(values.budget, budget, "budget"),
        max_tokens=values.maybe(values.whole, max_tokens, "max_tokens"),
        min_scores=values.maybe(_floors, min_scores, "min_scores"),
        prefer_observations=values.maybe(values.switch, prefer_observations, "prefer_observations"),
        include=_included(entities=include_entities, chunks=include_chunks, source_facts=include_source_facts) or None,
        query_timestamp=values.maybe(values.moment, query_timestamp, "query_timestamp"),
        temporal_window=values.maybe(_window, temporal_window, "temporal_window"),
        trace=values.maybe(values.switch, trace, "trace"),
        **filters,
    )
    needs: frozenset[Need] = frozenset({"min_scores"} if min_scores else ())
    return bank_call(
        "recall",
        "POST",
        bank,
        "memories",
        "recall",
        read=_READ,
        empty=lambda: RecallResult(results=(), degraded=True),
        body=body,
        repeat=Repeat.READ,
        time_limit="recall",
        needs=needs | filter_needs(filters),
    )


def _floors(given: object, what: str) -> dict[str, float]:
    """Return the floors by stage; the name of another stage the server ignores in silence."""
    if not values.is_mapping(given) or not given.keys() <= _STAGES:
        raise values.wrong(what, given, f"give a mapping with some of {', '.join(sorted(_STAGES))}")
    return {str(stage): values.number(floor, f"{what}.{stage}") for stage, floor in given.items()}


def _included(**parts: Included | None) -> dict[str, dict[str, int] | None]:
    """Return what is to come along: `{}` asks for it with the server's budget, null keeps it out."""
    return {name: _budget_of(part, f"include_{name}") for name, part in parts.items() if part is not None}


def _budget_of(part: object, what: str) -> dict[str, int] | None:
    if isinstance(part, bool):
        return {} if part else None
    if not values.is_mapping(part):
        return {"max_tokens": values.whole(part, what)}
    if not part.keys() <= _BUDGETS:
        raise values.wrong(
            what, part, f"give a number of tokens, or a mapping with some of {', '.join(sorted(_BUDGETS))}"
        )
    # An observation's budget may be -1, for "no bound".
    return {str(name): values.integer(tokens, f"{what}.{name}") for name, tokens in part.items()}


def _window(given: object, what: str) -> dict[str, str]:
    if not values.is_sequence(given) or len(given) != 2:  # noqa: PLR2004 - a start and an end
        raise values.wrong(what, given, "give (start, end)")
    start, end = (values.moment(bound, f"{what}[{position}]") for position, bound in enumerate(given))
    if datetime.fromisoformat(end) < datetime.fromisoformat(start):
        raise InvalidInput(f"{what} ends ({end}) before it begins ({start}): give (start, end)")
    return {"start": start, "end": end}
