"""Filters by tags: the forms they have, and the guards against one that the server would take for none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bankclient.api.calls import _values as values
from bankclient.api.models.words import TagsMatch
from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bankclient.api.call import Need

__all__ = ["filter_needs", "tag_filter"]

_match = values.word(TagsMatch)
_STRICT = {"any_strict", "all_strict"}
_LEAF = {"tags", "match", "resolve"}


def tag_filter(tags: object, tags_match: object, tag_groups: object = None) -> dict[str, Any]:
    """Return the fields that filter by tags: `tags` with `tags_match`, or `tag_groups`.

    What the server would take as *no* filter where one was surely meant is refused: a strict mode without tags, and an
    empty list of groups (an empty `and` or `or` it answers with 500). `exact` without tags means the untagged ones.
    """
    filters = values.given(
        tags=values.texts(tags, "tags") or None, tags_match=values.maybe(_match, tags_match, "tags_match")
    )
    if tag_groups is None:
        if "tags" not in filters and filters.get("tags_match") in _STRICT:
            raise InvalidInput(f"tags is empty, and tags_match {tags_match!r} then finds everything: give a tag")
        return filters
    if filters:
        raise InvalidInput("tag_groups stands beside tags or tags_match: give one or the other (a group has a `match`)")
    if not values.is_iterable(tag_groups):
        raise values.wrong("tag_groups", tag_groups, "give a list of groups")
    return {"tag_groups": _groups(tag_groups, "tag_groups")}


def _groups(given: Iterable[object], what: str) -> list[dict[str, Any]]:
    groups = [_group(group, f"{what}[{position}]") for position, group in enumerate(given)]
    if not groups:
        raise InvalidInput(f"{what} is empty, which is no filter at all: give a group, or leave it out")
    return groups


def _group(given: object, what: str) -> dict[str, Any]:
    if not values.is_mapping(given):
        raise values.wrong(what, given, 'give a mapping such as {"tags": ["a"]} or {"not": {"tags": ["a"]}}')
    match list(given.items()):
        case [("not", group)]:
            return {"not": _group(group, f"{what}.not")}
        case [("and" | "or" as key, groups)] if values.is_iterable(groups):
            return {str(key): _groups(groups, f"{what}.{key}")}
        case _ if "tags" in given and given.keys() <= _LEAF:
            return values.given(
                tags=values.texts(given["tags"], f"{what}.tags"),
                match=values.maybe(_match, given.get("match"), f"{what}.match"),
                resolve=values.maybe(values.text, given.get("resolve"), f"{what}.resolve"),
            )
        case _:
            raise InvalidInput(
                f"{what} has {', '.join(map(repr, given)) or 'nothing'}: give `tags` (with `match`, `resolve`), or only"
                " one of `and`, `or` (a list of groups) and `not` (a group)"
            )


def filter_needs(filters: Mapping[str, Any]) -> frozenset[Need]:
    """Return what a server must know for these filters to hold; an older one ignores groups and finds everything."""
    needs: set[Need] = set()
    groups = filters.get("tag_groups")
    if groups is not None:
        needs.add("tag_groups")
    if filters.get("tags_match") == "exact" or any(_uses_exact(group) for group in groups or ()):
        needs.add("exact_tags")
    return frozenset(needs)


def _uses_exact(group: Mapping[str, Any]) -> bool:
    parts = [*group.get("and", ()), *group.get("or", ()), *([group["not"]] if "not" in group else ())]
    return group.get("match") == "exact" or any(map(_uses_exact, parts))
