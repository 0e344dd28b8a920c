"""Reflect: have a question answered from the memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from bankclient.api.call import Repeat
from bankclient.api.calls import _values as values
from bankclient.api.calls._bank import bank_call
from bankclient.api.calls._filters import filter_needs, tag_filter
from bankclient.api.models.base import reader
from bankclient.api.models.reflect import ReflectResult
from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bankclient.api.call import Call
    from bankclient.api.models.words import Budget, FactType, TagGroup, TagsMatch

__all__ = ["reflect"]

_READ = reader(ReflectResult)


def reflect(
    bank: str,
    query: str,
    *,
    tags: Iterable[str] | str = (),
    tags_match: TagsMatch | None = None,
    tag_groups: Iterable[TagGroup] | None = None,
    fact_types: Iterable[FactType] | FactType = (),
    budget: Budget | None = None,
    max_tokens: int | None = None,
    response_schema: Mapping[str, Any] | None = None,
    include_facts: bool = False,
    include_tool_calls: bool | Literal["inputs"] = False,
    apply_all_directives: bool | None = None,
    exclude_mental_models: bool | None = None,
    exclude_mental_model_ids: Iterable[str] | str = (),
    search_observations_max_tokens: int | None = None,
    search_observations_include_entities: bool | None = None,
) -> Call[ReflectResult]:
    """Have `query` answered from the bank's memories. What is `None` or empty is left to the server.

    `include_facts` brings what the answer rests on, `include_tool_calls` how it was found (`"inputs"` without the
    tools' outputs). `response_schema` (a JSON schema of an object) asks for `structured_output` beside the text; the
    server does not hold the output to it. The server creates a bank that is not there, which is all that it writes.
    A server without a language model answers 400.

    Raises `InvalidInput` for what the server would refuse or take as no filter.
    """
    asked = values.identifier(query, "query")
    filters = tag_filter(tags, tags_match, tag_groups)
    body = values.given(
        query=asked,
        fact_types=values.fact_types(fact_types, "fact_types") or None,
        budget=values.maybe(values.budget, budget, "budget"),
        max_tokens=values.maybe(values.whole, max_tokens, "max_tokens"),
        response_schema=values.maybe(_schema, response_schema, "response_schema"),
        include=_include(include_facts, include_tool_calls) or None,
        apply_all_directives=values.maybe(values.switch, apply_all_directives, "apply_all_directives"),
        exclude_mental_models=values.maybe(values.switch, exclude_mental_models, "exclude_mental_models"),
        exclude_mental_model_ids=values.texts(exclude_mental_model_ids, "exclude_mental_model_ids") or None,
        reflect_search_observations_max_tokens=values.maybe(
            values.whole, search_observations_max_tokens, "search_observations_max_tokens"
        ),
        reflect_search_observations_include_entities=values.maybe(
            values.switch, search_observations_include_entities, "search_observations_include_entities"
        ),
        **filters,
    )
    return bank_call(
        "reflect",
        "POST",
        bank,
        "reflect",
        read=_READ,
        empty=lambda: ReflectResult(text="", degraded=True),
        body=body,
        repeat=Repeat.READ,
        time_limit="reflect",
        needs=filter_needs(filters),
    )


def _schema(given: object, what: str) -> dict[str, Any]:
    """Return the schema if the server would take it: it answers 422 to one that is not of an object with properties."""
    if not values.is_mapping(given) or given.get("type") != "object":
        raise InvalidInput(f'{what} must be the JSON schema of an object: give it "type": "object"')
    if not values.is_mapping(properties := given.get("properties")) or not properties:
        raise InvalidInput(f"{what} has no properties: name at least one (a reference at the top is not followed)")
    return {str(key): value for key, value in given.items()}


def _include(facts: bool, tool_calls: bool | Literal["inputs"]) -> dict[str, Any]:
    include: dict[str, Any] = {}
    if values.switch(facts, "include_facts"):
        include["facts"] = {}
    if tool_calls == "inputs":
        include["tool_calls"] = {"output": False}
    elif values.switch(tool_calls, "include_tool_calls"):
        include["tool_calls"] = {}
    return include
