"""Filters by tags: one tag is one tag, and nothing that was meant as a filter becomes none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bankclient.api import calls
from bankclient.errors import InvalidInput


def sent(**filters: Any) -> dict[str, Any]:  # noqa: ANN401 - also what is wrong
    """Return what a recall with these filters sends, its query apart."""
    body = calls.recall("lighthouse", "lamp", **filters).body
    assert body is not None
    return {name: value for name, value in json.loads(body).items() if name != "query"}


@pytest.mark.parametrize(
    ("tags", "listed"),
    [
        ("ab", ["ab"]),
        ("a,b", ["a,b"]),
        (["a", "b", "a"], ["a", "b"]),
        (("b", "a"), ["b", "a"]),
        ({"b", "a", "c"}, ["a", "b", "c"]),
        (iter(["a"]), ["a"]),
        (["a\x00b", "\ud83d", "ż*, "], ["ab", "\ufffd", "ż*, "]),
        ([""], [""]),
    ],
)
def test_tags_are_a_list_of_texts(tags: Any, listed: list[str]) -> None:  # noqa: ANN401 - any form of tags
    """A text is one tag and not its letters; any iterable will do; a set is put in order; repeats go."""
    assert sent(tags=tags) == {"tags": listed}
    item = json.loads(calls.retain("lighthouse", "text", tags=iter(listed)).body or b"")["items"][0]
    assert item["tags"] == listed


@pytest.mark.parametrize("tags", [3, [3], [None], b"ab", {"a": "b"}, [["a"]], True])
def test_what_is_no_tag_is_refused(tags: object) -> None:
    """Numbers, nulls, bytes and mappings are slips, and the message names the place."""
    with pytest.raises(InvalidInput, match=r"tags(\[0\])? is .*give a"):
        sent(tags=tags)


@pytest.mark.parametrize("mode", ["any_strict", "all_strict"])
def test_a_strict_mode_without_tags_is_refused(mode: str) -> None:
    """The server takes a strict mode without tags for no filter and finds everybody's memories."""
    nothing: tuple[object, ...] = ((), [], set())
    for empty in nothing:
        with pytest.raises(InvalidInput, match="finds everything: give a tag"):
            sent(tags=empty, tags_match=mode)
    for listing in (calls.list_memories, calls.list_documents):
        with pytest.raises(InvalidInput, match="finds everything"):
            listing("lighthouse", tags_match=mode)  # type: ignore[arg-type] # a word from the table above
    with pytest.raises(InvalidInput, match="finds everything"):
        calls.reflect("lighthouse", "lamp", tags_match=mode)  # type: ignore[arg-type] # the same


@pytest.mark.parametrize("mode", ["any", "all", "exact"])
def test_the_other_modes_bear_no_tags(mode: str) -> None:
    """`any` and `all` without tags say what they do, and `exact` means the untagged memories."""
    assert sent(tags_match=mode) == {"tags_match": mode}


def test_an_unknown_mode_is_refused() -> None:
    """A misspelt mode never leaves, and the message names the right ones."""
    with pytest.raises(InvalidInput, match="give one of any, all, any_strict, all_strict, exact"):
        sent(tags=["a"], tags_match="strict")


@pytest.mark.parametrize(
    ("groups", "as_sent"),
    [
        ([{"tags": "ab"}], [{"tags": ["ab"]}]),
        ([{"tags": []}], [{"tags": []}]),
        (
            [{"tags": ["a"], "match": "exact", "resolve": "fuzzy"}],
            [{"tags": ["a"], "match": "exact", "resolve": "fuzzy"}],
        ),
        ([{"not": {"tags": ["a"]}}], [{"not": {"tags": ["a"]}}]),
        (
            ({"or": ({"tags": {"b", "a"}}, {"and": [{"tags": ["c"]}]})},),
            [{"or": [{"tags": ["a", "b"]}, {"and": [{"tags": ["c"]}]}]}],
        ),
    ],
)
def test_tag_groups_are_sent_as_trees(groups: Any, as_sent: object) -> None:  # noqa: ANN401 - any form of groups
    """Leaves and their combinations are sent as they are, a single text as one tag."""
    assert sent(tag_groups=groups) == {"tag_groups": as_sent}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "tag_groups is empty, which is no filter"),
        ([{"and": []}], r"tag_groups\[0\]\.and is empty"),
        ([{"or": [{"not": {"or": []}}]}], r"tag_groups\[0\]\.or\[0\]\.not\.or is empty"),
        ([{}], r"tag_groups\[0\] has nothing"),
        ([{"tags": ["a"], "and": []}], "has 'tags', 'and'"),
        ([{"tag": ["a"]}], "has 'tag'"),
        ([{"and": {"tags": ["a"]}}], "has 'and'"),
        ([{"not": [{"tags": ["a"]}]}], r"tag_groups\[0\]\.not is list"),
        ([{"tags": ["a"], "match": "some"}], r"tag_groups\[0\]\.match is str 'some'"),
        ([["a"]], r"tag_groups\[0\] is list"),
        ({"tags": ["a"]}, "tag_groups is dict"),
        ("a", "tag_groups is str"),
    ],
)
def test_a_group_that_filters_nothing_or_wrongly_is_refused(groups: object, message: str) -> None:
    """What the server takes for no filter, answers 500 to, or reads as another group is refused, with its place."""
    with pytest.raises(InvalidInput, match=message):
        sent(tag_groups=groups)


@pytest.mark.parametrize("beside", [{"tags": ["a"]}, {"tags_match": "any"}])
def test_tags_and_groups_exclude_each_other(beside: dict[str, Any]) -> None:
    """The server answers 422 to both, and a mode beside groups would say nothing."""
    with pytest.raises(InvalidInput, match="give one or the other"):
        sent(tag_groups=[{"tags": ["b"]}], **beside)


@pytest.mark.parametrize(
    ("filters", "needs"),
    [
        ({}, set()),
        ({"tags": "a", "tags_match": "any_strict"}, set()),
        ({"tags": "a", "tags_match": "exact"}, {"exact_tags"}),
        ({"tag_groups": [{"tags": ["a"]}]}, {"tag_groups"}),
        ({"tag_groups": [{"or": [{"not": {"tags": ["a"], "match": "exact"}}]}]}, {"tag_groups", "exact_tags"}),
        ({"tag_groups": [{"and": [{"tags": ["a"], "match": "exact"}]}]}, {"tag_groups", "exact_tags"}),
        ({"min_scores": {"final": 0.5}}, {"min_scores"}),
    ],
)
def test_a_call_says_what_it_rests_on(filters: dict[str, Any], needs: set[str]) -> None:
    """A filter that an old server would ignore is named, so that it is not sent there."""
    assert calls.recall("lighthouse", "lamp", **filters).needs == needs
