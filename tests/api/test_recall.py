"""Recall and reflect: what is sent, and what is refused before."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.api import calls
from bankclient.errors import InvalidInput


def recalled(query: str = "who lit the lamp?", **options: Any) -> dict[str, Any]:  # noqa: ANN401 - also what is wrong
    """Return what a recall sends."""
    body = calls.recall("lighthouse", query, **options).body
    assert body is not None
    answer: dict[str, Any] = json.loads(body)
    return answer


def reflected(query: str = "who lit the lamp?", **options: Any) -> dict[str, Any]:  # noqa: ANN401 - also what is wrong
    """Return what a reflect sends."""
    body = calls.reflect("lighthouse", query, **options).body
    assert body is not None
    answer: dict[str, Any] = json.loads(body)
    return answer


def test_what_is_not_given_is_left_to_the_server() -> None:
    """A plain recall or reflect sends its question alone: a null would be refused for some fields."""
    assert recalled() == reflected() == {"query": "who lit the lamp?"}


def test_recall_sends_what_is_given() -> None:
    """Every option goes out in the server's own form."""
    assert recalled(
        tags=["a"],
        tags_match="all_strict",
        types="world",
        budget="high",
        max_tokens=0,
        min_scores={"final": 0.5, "keyword": 1},
        prefer_observations=False,
        include_entities=False,
        include_chunks=True,
        include_source_facts={"max_tokens": 10, "max_tokens_per_observation": -1},
        query_timestamp=datetime(2031, 5, 6, 7),  # noqa: DTZ001 - naive on purpose
        temporal_window=("2031-05-01", datetime(2031, 5, 6, tzinfo=timezone(timedelta(hours=2)))),
        trace=True,
    ) == {
        "query": "who lit the lamp?",
        "tags": ["a"],
        "tags_match": "all_strict",
        "types": ["world"],
        "budget": "high",
        "max_tokens": 0,
        "min_scores": {"final": 0.5, "keyword": 1},
        "prefer_observations": False,
        "include": {
            "entities": None,
            "chunks": {},
            "source_facts": {"max_tokens": 10, "max_tokens_per_observation": -1},
        },
        "query_timestamp": "2031-05-06T07:00:00+00:00",
        "temporal_window": {"start": "2031-05-01T00:00:00+00:00", "end": "2031-05-06T00:00:00+02:00"},
        "trace": True,
    }
    assert recalled(include_chunks=1, include_entities=700)["include"] == {
        "entities": {"max_tokens": 700},
        "chunks": {"max_tokens": 1},
    }


def test_reflect_sends_what_is_given() -> None:
    """Every option goes out in the server's own form."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    assert reflected(
        tag_groups=[{"tags": ["a"]}],
        fact_types=["world", "observation"],
        budget="mid",
        max_tokens=9,
        response_schema=schema,
        include_facts=True,
        include_tool_calls="inputs",
        apply_all_directives=True,
        exclude_mental_models=False,
        exclude_mental_model_ids="m",
        search_observations_max_tokens=5,
        search_observations_include_entities=False,
    ) == {
        "query": "who lit the lamp?",
        "tag_groups": [{"tags": ["a"]}],
        "fact_types": ["world", "observation"],
        "budget": "mid",
        "max_tokens": 9,
        "response_schema": schema,
        "include": {"facts": {}, "tool_calls": {"output": False}},
        "apply_all_directives": True,
        "exclude_mental_models": False,
        "exclude_mental_model_ids": ["m"],
        "reflect_search_observations_max_tokens": 5,
        "reflect_search_observations_include_entities": False,
    }
    assert reflected(include_tool_calls=True)["include"] == {"tool_calls": {}}


@pytest.mark.parametrize("query", ["", "  ", "!!!", "🐦", "\x00", "\u0301", "\u2026"])
def test_a_query_without_a_word_is_refused(query: str) -> None:
    """The server answers 422 to a recall without a letter or digit."""
    with pytest.raises(InvalidInput, match="query has no letter or digit"):
        recalled(query)


@pytest.mark.parametrize("query", ["_", "²", "ª", "①", "の", "a\x00"])
def test_any_word_character_is_a_word(query: str) -> None:
    """What the server takes for a word is let through."""
    assert recalled(query)["query"] == query.replace("\x00", "")


def test_reflect_takes_any_question_that_is_not_blank() -> None:
    """Reflect bears a question of signs alone, and not a blank one."""
    assert reflected("???")["query"] == "???"
    for blank in ("", " \n", "\x00"):
        with pytest.raises(InvalidInput, match="query is empty"):
            reflected(blank)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": True}, "max_tokens is bool True: give a whole number"),
        ({"max_tokens": 1.5}, "max_tokens is float"),
        ({"max_tokens": "100"}, "max_tokens is str"),
        ({"max_tokens": -1}, "max_tokens is int -1: give 0 or more"),
        ({"max_tokens": -(10**5000)}, "max_tokens is int of very many digits"),
        ({"max_tokens": 10**5000}, "JSON cannot carry"),
        ({"budget": "max"}, "budget is str 'max': give one of low, mid, high"),
        ({"budget": ["low"]}, "budget is list"),
        ({"types": ["opinion"]}, "types is str 'opinion': give one of world, experience, observation"),
        ({"types": "dream"}, "types is str 'dream'"),
        ({"types": 3}, "types is int"),
        ({"min_scores": {"final": float("nan")}}, r"min_scores\.final is float nan: give a finite"),
        ({"min_scores": {"final": float("inf")}}, "finite"),
        ({"min_scores": {"final": True}}, r"min_scores\.final is bool"),
        ({"min_scores": {"final": "0.5"}}, r"min_scores\.final is str"),
        ({"min_scores": {"finall": 0.5}}, "some of final, keyword, reranker, semantic"),
        ({"min_scores": 0.5}, "min_scores is float"),
        ({"prefer_observations": 1}, "prefer_observations is int 1: give True or False"),
        ({"trace": "yes"}, "trace is str"),
        ({"include_chunks": -5}, "include_chunks is int -5"),
        ({"include_chunks": 0.5}, "include_chunks is float"),
        ({"include_chunks": {"tokens": 5}}, "include_chunks is dict"),
        ({"include_chunks": {"max_tokens": "5"}}, r"include_chunks\.max_tokens is str"),
        ({"query_timestamp": "yesterday"}, "query_timestamp is str 'yesterday': give a datetime, or ISO 8601"),
        ({"query_timestamp": 1_935_000_000}, "query_timestamp is int"),
        ({"query_timestamp": ""}, "query_timestamp is str"),
        ({"temporal_window": ("2031-05-06", "2031-05-01")}, "ends .* before it begins"),
        ({"temporal_window": ("2031-05-06T00:00+02:00", "2031-05-05T21:59Z")}, "ends .* before it begins"),
        ({"temporal_window": "2031"}, r"give \(start, end\)"),
        ({"temporal_window": ("2031-05-06",)}, r"give \(start, end\)"),
        ({"temporal_window": ("2031-05-06", None)}, r"temporal_window\[1\] is NoneType"),
    ],
)
def test_what_the_server_would_refuse_is_refused(options: dict[str, Any], message: str) -> None:
    """Slips of type, NaN, unknown words and impossible times are named before anything is sent."""
    with pytest.raises(InvalidInput, match=message):
        recalled(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"response_schema": {}}, "schema of an object"),
        ({"response_schema": {"type": "array", "items": {}}}, "schema of an object"),
        ({"response_schema": {"type": "object"}}, "no properties"),
        ({"response_schema": {"type": "object", "properties": {}}}, "no properties"),
        ({"response_schema": {"type": "object", "properties": ["a"]}}, "no properties"),
        ({"response_schema": [1]}, "schema of an object"),
        ({"fact_types": "dream"}, "fact_types is str 'dream'"),
        ({"include_facts": 1}, "include_facts is int"),
        ({"include_tool_calls": "outputs"}, "include_tool_calls is str"),
        ({"search_observations_max_tokens": 1.0}, "search_observations_max_tokens is float"),
        ({"exclude_mental_model_ids": [1]}, r"exclude_mental_model_ids\[0\] is int"),
    ],
)
def test_what_reflect_would_refuse_is_refused(options: dict[str, Any], message: str) -> None:
    """A schema that yields nothing, and slips of type, are named before anything is sent."""
    with pytest.raises(InvalidInput, match=message):
        reflected(**options)


@given(
    query=st.text(st.characters(exclude_categories=())), tags=st.lists(st.text(st.characters(exclude_categories=())))
)
def test_any_text_makes_valid_json_or_is_refused(query: str, tags: list[str]) -> None:
    """Whatever letters a question or a tag has, what is sent is UTF-8 JSON."""
    try:
        call = calls.recall("lighthouse", query, tags=tags)
    except InvalidInput:
        return
    body = json.loads((call.body or b"").decode())
    assert body.get("tags", []) == list(dict.fromkeys(body.get("tags", [])))


def test_a_moment_is_sent_with_its_offset() -> None:
    """A naive time is UTC, another keeps its offset, and so does a text in any ISO 8601 form."""
    rows: list[tuple[datetime | str, str]] = [
        (datetime(2031, 5, 6, tzinfo=UTC), "2031-05-06T00:00:00+00:00"),
        (datetime(2031, 5, 6, 7, 8, 9, 10), "2031-05-06T07:08:09.000010+00:00"),  # noqa: DTZ001 - naive on purpose
        (datetime(2031, 5, 6, tzinfo=timezone(timedelta(hours=-3))), "2031-05-06T00:00:00-03:00"),
        ("2031-05-06", "2031-05-06T00:00:00+00:00"),
        ("20310506T070809Z", "2031-05-06T07:08:09+00:00"),
        ("2031-05-06t07:08:09z", "2031-05-06T07:08:09+00:00"),
        (" 2031-05-06 07:08:09.5+02 ", "2031-05-06T07:08:09.500000+02:00"),
    ]
    for given_as, as_sent in rows:
        assert recalled(query_timestamp=given_as)["query_timestamp"] == as_sent
