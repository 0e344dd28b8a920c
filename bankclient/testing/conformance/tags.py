"""Checks on tag filters: five modes, boolean groups, in recall and in the lists, and the list of tags."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from bankclient.testing.conformance.probe import faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bankclient.testing.conformance.probe import Probe

_SETS: tuple[tuple[str, ...], ...] = ((), ("a",), ("b",), ("a", "b"), ("a", "b", "c"), ("A",), ("c",))
_MODES = ("any", "all", "any_strict", "all_strict", "exact")


def _matches(tags: frozenset[str], wanted: frozenset[str], mode: str) -> bool:
    """Say whether a memory with `tags` passes a filter that filters at all."""
    if mode == "exact":
        return tags == wanted
    if not tags:
        return not mode.endswith("_strict")
    return bool(tags & wanted) if mode.startswith("any") else wanted <= tags


def _names(sets: Iterable[frozenset[str]]) -> set[str]:
    return {f"harbour {'+'.join(sorted(tags)) or 'untagged'}" for tags in sets}


def _fill(probe: Probe) -> list[frozenset[str]]:
    sets = [frozenset(tags) for tags in _SETS]
    probe.retain(
        *(
            {"content": next(iter(_names([tags]))), "tags": sorted(tags), "document_id": f"d{n}"}
            for n, tags in enumerate(sets)
        )
    )
    return sets


def check_every_mode_filters_recall_and_the_memory_list(probe: Probe) -> None:
    """Each mode on each list of tags; without tags only `exact` filters, and then for the untagged."""
    sets = _fill(probe)
    for mode, wanted in itertools.product(_MODES, ([], ["a"], ["a", "b"], ["b", "a", "a"], ["zz"], ["A"])):
        filters = bool(wanted) or mode == "exact"
        expected = _names(tags for tags in sets if not filters or _matches(tags, frozenset(wanted), mode))
        found = probe.texts("harbour", tags=wanted, tags_match=mode, budget="high")
        assert set(found) == expected, (mode, wanted)
        listed = probe.memories(tags=wanted, tags_match=mode)
        assert {memory["text"] for memory in listed} == expected, (mode, wanted)


def check_documents_are_filtered_strictly_unless_asked_otherwise(probe: Probe) -> None:
    """The document list's default is any_strict, the memory list's any."""
    sets = _fill(probe)
    listed = probe.get("/documents", tags=["a"])["items"]
    assert {frozenset(document["tags"]) for document in listed} == {tags for tags in sets if "a" in tags}
    lenient = probe.get("/documents", tags=["a"], tags_match="any")["items"]
    assert {frozenset(d["tags"]) for d in lenient} == {tags for tags in sets if "a" in tags or not tags}


def check_groups_are_boolean(probe: Probe) -> None:
    """Groups are and-ed; leaves are any_strict by default; `not` lets untagged memories through."""
    sets = _fill(probe)
    a, b, c = ({"tags": [tag]} for tag in "abc")
    cases: list[tuple[list[object], Callable[[frozenset[str]], bool]]] = [
        ([], lambda _: True),
        ([a], lambda tags: "a" in tags),
        ([a, b], lambda tags: {"a", "b"} <= tags),
        ([{"and": [a, {"not": c}]}], lambda tags: "a" in tags and "c" not in tags),
        ([{"or": [c, {"tags": ["A"]}]}], lambda tags: bool(tags & {"c", "A"})),
        ([{"not": a}], lambda tags: "a" not in tags),
        ([{"not": {"or": [a, {"tags": [], "match": "exact"}]}}], lambda tags: bool(tags) and "a" not in tags),
        ([{"tags": []}], lambda _: False),
        ([{"tags": [], "match": "exact"}], lambda tags: not tags),
        ([{"tags": [], "match": "all_strict"}], bool),
        ([{"tags": ["a"], "match": "any"}], lambda tags: "a" in tags or not tags),
        ([{"tags": ["a", "b"], "match": "all"}], lambda tags: {"a", "b"} <= tags or not tags),
        ([{"tags": ["a", "b"], "match": "exact"}], lambda tags: tags == frozenset("ab")),
    ]
    for groups, passes in cases:
        found = probe.texts("harbour", tag_groups=groups, budget="high")
        assert set(found) == _names(tags for tags in sets if passes(tags)), groups


def check_a_fuzzy_leaf_finds_the_spelling_that_the_bank_has(probe: Probe) -> None:
    """A misspelt tag finds the right one, not another of the namespace, and nothing rather than everything."""
    probe.retain(
        {"content": "harbour one", "tags": ["lang:typescript"]},
        {"content": "harbour two", "tags": ["lang:python"]},
        {"content": "harbour three", "tags": ["typescript"]},
    )

    def found(*tags: str, match: str = "any_strict") -> set[str]:
        return set(probe.texts("harbour", tag_groups=[{"tags": list(tags), "match": match, "resolve": "fuzzy"}]))

    assert found("lang:typsecript") == {"harbour one"}
    assert found("typescropt", match="exact") == {"harbour three"}
    assert found("lang:typsecript", "lang:pythonx", match="all_strict") == set()
    assert found("lang:typsecript", "lang:pythonx") == {"harbour one", "harbour two"}
    assert found("zzzzzz") == set()


def check_a_broken_group_is_refused_for_each_shape_it_could_have(probe: Probe) -> None:
    """The faults name the four shapes."""
    probe.ask("PUT", "", {})
    answer = probe.ask("POST", "/memories/recall", {"query": "x", "tag_groups": [{"foo": 1}]})
    shapes = (("TagGroupLeaf", "tags"), ("TagGroupAnd", "and"), ("TagGroupOr", "or"), ("TagGroupNot", "not"))
    assert faults(answer) == [("missing", ["body", "tag_groups", 0, *shape]) for shape in shapes]


def check_a_tag_is_matched_whole_and_literally(probe: Probe) -> None:
    """Commas, quotes, stars, backslashes and JSON in a tag are letters; a list in the query repeats its name."""
    odd = ["a,b", 'q"q', "*", "\\", '","', "%", "ż", "[]"]
    probe.retain(*({"content": f"harbour {n}", "tags": [tag]} for n, tag in enumerate(odd)))
    for number, tag in enumerate(odd):
        for mode in ("any_strict", "all_strict", "exact"):
            assert probe.texts("harbour", tags=[tag], tags_match=mode) == [f"harbour {number}"], tag
            assert [m["text"] for m in probe.memories(tags=[tag], tags_match=mode)] == [f"harbour {number}"]
    assert probe.memories(tags=["a", "b"], tags_match="any_strict") == []


def check_the_list_of_tags_counts_and_searches(probe: Probe) -> None:
    """The most used first; `*` is any text, a star at neither end is needed for the whole tag; memories only."""
    probe.retain(
        {"content": "one", "tags": ["user:a", "x"], "document_id": "1"},
        {"content": "two", "tags": ["user:a", "user:b"], "document_id": "2"},
    )
    whole = probe.get("/tags")
    counts = {"user:a": 2, "user:b": 1, "x": 1}
    assert {item["tag"]: item["count"] for item in whole["items"]} == counts
    assert (whole["items"][0]["tag"], whole["total"], whole["limit"]) == ("user:a", 3, 100)
    assert {item["tag"] for item in probe.get("/tags", q="USER:*")["items"]} == {"user:a", "user:b"}
    assert [item["tag"] for item in probe.get("/tags", q="x")["items"]] == ["x"]
    assert probe.get("/tags", q="user")["items"] == []
    assert probe.get("/tags", source="mental_models")["items"] == []
    assert probe.ask("GET", "/tags?source=zz").status == 422
    page = probe.get("/tags", limit=1, offset=2)
    assert (len(page["items"]), page["total"]) == (1, 3)
