"""Tag filters as SQL, against the same rules in plain Python."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.embedded.tags import (
    TagGroup,
    TagGroupAnd,
    TagGroupLeaf,
    TagGroupNot,
    TagGroupOr,
    TagsMatch,
    groups_clause,
    stored_tags,
    tags_clause,
)

if TYPE_CHECKING:
    from bankclient.embedded.tags import Clause

MODES: tuple[TagsMatch, ...] = get_args(TagsMatch)
# Few tags, so that they meet, and some that an escaping forgotten somewhere would trip over.
TAGS = st.sampled_from(["a", "b", "A", "", " ", ",", '"', '","', "\\", "%", "ż", "e\u0301", "[]", "x" * 100]) | st.text(
    max_size=3
)
TAG_SETS = st.frozensets(TAGS, max_size=4)


def passes(tags: frozenset[str], wanted: frozenset[str], match: TagsMatch) -> bool:
    """Say whether a memory's tags pass a filter that filters."""
    if match == "exact":
        return tags == wanted
    if not tags:
        return match in {"any", "all"}
    return bool(tags & wanted) if match in {"any", "any_strict"} else wanted <= tags


def groups_pass(tags: frozenset[str], group: TagGroup) -> bool:
    """Say whether a memory's tags pass a group."""
    if isinstance(group, TagGroupLeaf):
        return passes(tags, frozenset(group.tags), group.match)
    if isinstance(group, TagGroupNot):
        return not groups_pass(tags, group.filter)
    children = [groups_pass(tags, child) for child in group.filters]
    return all(children) if isinstance(group, TagGroupAnd) else any(children)


def found(clause: Clause, tags: frozenset[str]) -> bool:
    """Say whether SQLite lets the tags through."""
    with sqlite3.connect(":memory:") as db:
        row = db.execute(f"SELECT {clause.sql} FROM (SELECT ? AS tags)", (*clause.values, stored_tags(tags))).fetchone()  # noqa: S608 - the clause is what is tested
    db.close()
    return bool(row[0])


def leaves() -> st.SearchStrategy[TagGroup]:
    """Give leaves of any mode."""
    tags = st.lists(TAGS, max_size=3)
    return st.builds(lambda tags, match: TagGroupLeaf(tags=tags, match=match), tags, st.sampled_from(MODES))


def compounds(children: st.SearchStrategy[TagGroup]) -> st.SearchStrategy[TagGroup]:
    """Give groups of groups."""
    several = st.lists(children, max_size=3)
    return (
        several.map(lambda groups: TagGroupAnd.model_validate({"and": groups}))
        | several.map(lambda groups: TagGroupOr.model_validate({"or": groups}))
        | children.map(lambda group: TagGroupNot.model_validate({"not": group}))
    )


GROUPS = st.recursive(leaves(), compounds, max_leaves=6)


@given(TAG_SETS, st.lists(TAGS, max_size=4), st.sampled_from(MODES))
def test_a_mode_lets_through_what_its_rule_says(tags: frozenset[str], wanted: list[str], match: TagsMatch) -> None:
    """All five modes, for any tags; without tags only `exact` filters."""
    expected = passes(tags, frozenset(wanted), match) if wanted or match == "exact" else True
    assert found(tags_clause(wanted, match), tags) == expected


@given(TAG_SETS, st.lists(GROUPS, max_size=3))
def test_groups_are_the_boolean_expression_that_they_look_like(tags: frozenset[str], groups: list[TagGroup]) -> None:
    """Any tree of and, or and not over leaves; several groups must all pass."""
    assert found(groups_clause(groups), tags) == all(groups_pass(tags, group) for group in groups)


@pytest.mark.parametrize("match", MODES)
def test_no_tags_and_none_are_the_same(match: TagsMatch) -> None:
    """An absent list filters as an empty one does."""
    assert tags_clause(None, match) == tags_clause([], match)
    assert groups_clause(None) == groups_clause([])


@given(st.lists(TAGS))
def test_stored_tags_are_a_set(tags: list[str]) -> None:
    """Order and doubles make no difference to what is stored."""
    assert stored_tags(tags) == stored_tags(reversed([*tags, *tags]))


def test_a_fuzzy_filter_over_too_many_tags_is_refused(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401 - a fixture
    """Rather than match against a part of them in silence."""
    call("POST", "/memories", {"items": [{"content": "harbour", "tags": [f"tag{n}" for n in range(4)]}]})
    body = {"query": "harbour", "tag_groups": [{"tags": ["tagg1"], "resolve": "fuzzy"}]}
    assert call("POST", "/memories/recall", body)[0] == 200
    monkeypatch.setattr("bankclient.embedded.fuzzy._MAX_TAGS", 3)
    status, answer = call("POST", "/memories/recall", body)
    assert status == 422
    assert "more than 3 tags" in answer["detail"]


def test_an_exact_fuzzy_leaf_with_too_many_spellings_is_refused(call: Any) -> None:  # noqa: ANN401 - a fixture
    """The combinations of spellings are bounded."""
    call("POST", "/memories", {"items": [{"content": "harbour", "tags": [f"harbours{n}" for n in range(7)]}]})
    leaf = {"tags": ["harbour", "harbours"], "resolve": "fuzzy", "match": "exact"}
    status, answer = call("POST", "/memories/recall", {"query": "harbour", "tag_groups": [leaf]})
    assert status == 422
    assert "too many spellings" in answer["detail"]


def test_fuzzy_leaves_keep_their_mode_inside_other_groups(call: Any) -> None:  # noqa: ANN401 - a fixture
    """Under `not` and `or`, and with a lenient mode that lets untagged memories through."""
    items = [{"content": "harbour one", "tags": ["typescript"]}, {"content": "harbour two"}]
    call("POST", "/memories", {"items": items})

    def texts(group: object) -> set[str]:
        status, answer = call("POST", "/memories/recall", {"query": "harbour", "tag_groups": [group]})
        assert status == 200
        return {result["text"] for result in answer["results"]}

    fuzzy = {"tags": ["typsecript"], "resolve": "fuzzy"}
    assert texts({"not": fuzzy}) == {"harbour two"}
    assert texts({"or": [fuzzy, {"tags": ["zz"]}]}) == {"harbour one"}
    assert texts({**fuzzy, "match": "all"}) == {"harbour one", "harbour two"}
    assert texts({**fuzzy, "match": "exact"}) == {"harbour one"}
    assert texts({"tags": [], "resolve": "fuzzy"}) == set()
