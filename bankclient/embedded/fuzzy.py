"""Fuzzy tags: a leaf with `resolve: "fuzzy"` becomes leaves with tags that the bank has.

Similarity is that of PostgreSQL's trigrams, with the server's threshold. Knows the tags of a bank, not their memories.
"""

from __future__ import annotations

import itertools
import re
import sqlite3  # noqa: TC003 - functions are annotated with it
from typing import TYPE_CHECKING

from bankclient.embedded.tags import TagGroup, TagGroupAnd, TagGroupLeaf, TagGroupNot, TagGroupOr
from bankclient.embedded.wire import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["resolved"]

_SIMILAR = 0.45
_MAX_TAGS = 5000
_MAX_BRANCHES = 32


def resolved(db: sqlite3.Connection, bank: int, groups: Sequence[TagGroup] | None) -> Sequence[TagGroup] | None:
    """Return `groups` without fuzzy leaves. Raises `Problem` 422 where that would be too much."""
    if not groups or not any(_is_fuzzy(group) for group in groups):
        return groups
    rows = db.execute(
        "SELECT DISTINCT value FROM memories, json_each(tags) WHERE bank = ? ORDER BY value LIMIT ?",
        (bank, _MAX_TAGS + 1),
    ).fetchall()
    if len(rows) > _MAX_TAGS:
        raise Problem(
            422, f"the bank has more than {_MAX_TAGS} tags: fuzzy matching is not possible, use resolve='exact'"
        )
    vocabulary = [row["value"] for row in rows]
    return [_resolve(group, vocabulary) for group in groups]


def _is_fuzzy(group: TagGroup) -> bool:
    if isinstance(group, TagGroupLeaf):
        return group.resolve == "fuzzy"
    return _is_fuzzy(group.filter) if isinstance(group, TagGroupNot) else any(map(_is_fuzzy, group.filters))


def _resolve(group: TagGroup, vocabulary: Sequence[str]) -> TagGroup:
    if isinstance(group, TagGroupLeaf):
        return _leaf(group, vocabulary) if group.resolve == "fuzzy" else group
    if isinstance(group, TagGroupNot):
        return group.model_copy(update={"filter": _resolve(group.filter, vocabulary)})
    return group.model_copy(update={"filters": [_resolve(child, vocabulary) for child in group.filters]})


def _leaf(leaf: TagGroupLeaf, vocabulary: Sequence[str]) -> TagGroup:
    if not leaf.tags:
        return leaf
    spellings = [_spellings(tag, vocabulary) for tag in leaf.tags]
    if leaf.match.startswith("any"):
        return TagGroupLeaf(tags=list(dict.fromkeys(itertools.chain(*spellings))), match=leaf.match)
    if leaf.match != "exact":
        match = "any" if leaf.match == "all" else "any_strict"
        return TagGroupAnd.model_validate({"and": [TagGroupLeaf(tags=tags, match=match) for tags in spellings]})
    branches = [set(tags) for tags in itertools.islice(itertools.product(*spellings), _MAX_BRANCHES + 1)]
    if len(branches) > _MAX_BRANCHES:
        raise Problem(422, "a fuzzy leaf with match='exact' has too many spellings; name its tags exactly")
    leaves = [TagGroupLeaf(tags=sorted(tags), match="exact") for tags in branches if len(tags) == len(leaf.tags)]
    return TagGroupOr.model_validate({"or": leaves})


def _spellings(tag: str, vocabulary: Sequence[str]) -> list[str]:
    """Return the bank's tags that `tag` may stand for, or itself: nothing at all would lift the filter."""
    wanted = _folded(tag)
    same = [known for known in vocabulary if _folded(known) == wanted]
    if same:
        return same
    space, name = _parts(wanted)
    scored = [
        (_similarity(name, other), known)
        for known in vocabulary
        for other_space, other in [_parts(_folded(known))]
        if other_space == space
    ]
    near = sorted((-score, known) for score, known in scored if score >= _SIMILAR)
    return [known for _, known in near] or [tag]


def _folded(tag: str) -> str:
    return tag.strip().casefold()


def _parts(tag: str) -> tuple[str, str]:
    """Return the namespace of a tag such as `project:name`, and the name, which alone says how alike two tags are."""
    space, colon, name = tag.partition(":")
    return (space, name) if colon else ("", tag)


def _similarity(one: str, other: str) -> float:
    first, second = _trigrams(one), _trigrams(other)
    return len(first & second) / len(first | second) if first and second else 0.0


def _trigrams(text: str) -> set[str]:
    words = (f"  {word} " for word in re.findall(r"[^\W_]+", text.lower()))
    return {word[at : at + 3] for word in words for at in range(len(word) - 2)}
