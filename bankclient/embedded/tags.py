"""Which memories a tag filter lets through, as SQL.

The five modes and the boolean groups over them. Tags are stored as a sorted JSON array without doubles, so equal sets
are equal texts. This module knows the column, not the table's other ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "TRUE",
    "Clause",
    "TagGroup",
    "TagGroupAnd",
    "TagGroupLeaf",
    "TagGroupNot",
    "TagGroupOr",
    "TagsMatch",
    "groups_clause",
    "stored_tags",
    "tags_clause",
]

TagsMatch = Literal["any", "all", "any_strict", "all_strict", "exact"]


class TagGroupLeaf(BaseModel):
    """Some tags and how they must match; unlike `tags_match`, strict unless said otherwise."""

    tags: list[str]
    match: TagsMatch = "any_strict"
    resolve: Literal["exact", "fuzzy"] = "exact"


class TagGroupAnd(BaseModel):
    """All of the groups must match."""

    filters: list[TagGroup] = Field(alias="and")


class TagGroupOr(BaseModel):
    """One of the groups must match."""

    filters: list[TagGroup] = Field(alias="or")


class TagGroupNot(BaseModel):
    """The group must not match; so untagged memories do, where it asks for tags."""

    filter: TagGroup = Field(alias="not")


TagGroup = Annotated[TagGroupLeaf | TagGroupAnd | TagGroupOr | TagGroupNot, Field(union_mode="left_to_right")]

for _model in (TagGroupAnd, TagGroupOr, TagGroupNot):
    _model.model_rebuild()


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition and the values of its question marks, in order."""

    sql: str
    values: tuple[object, ...] = ()


TRUE = Clause("1")
_FALSE = Clause("0")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def stored_tags(tags: Iterable[str]) -> str:
    """Return `tags` as they are stored: sorted, without doubles."""
    distinct = set(tags)
    return _encode(sorted(distinct)) if distinct else "[]"


def tags_clause(tags: Sequence[str] | None, match: TagsMatch, column: str = "tags") -> Clause:
    """Return the filter of `tags` and `tags_match`; without tags only `exact` filters, for the untagged."""
    return _match(tags or (), match, column) if tags or match == "exact" else TRUE


def groups_clause(groups: Sequence[TagGroup] | None, column: str = "tags") -> Clause:
    """Return the filter of `tag_groups`, whose groups must all match."""
    return _joined((_group(group, column) for group in groups or ()), " AND ", TRUE)


def _group(group: TagGroup, column: str) -> Clause:
    if isinstance(group, TagGroupLeaf):
        return _match(group.tags, group.match, column)
    if isinstance(group, TagGroupNot):
        inner = _group(group.filter, column)
        return Clause(f"NOT ({inner.sql})", inner.values)
    children = (_group(child, column) for child in group.filters)
    return _joined(children, " AND ", TRUE) if isinstance(group, TagGroupAnd) else _joined(children, " OR ", _FALSE)


def _match(tags: Sequence[str], match: TagsMatch, column: str) -> Clause:
    if match == "exact":
        return Clause(f"{column} = ?", (stored_tags(tags),))
    clause = (_any if match.startswith("any") else _all)(tags, column)
    if match.endswith("_strict"):
        return Clause(f"({column} <> '[]' AND {clause.sql})", clause.values)
    return Clause(f"({column} = '[]' OR {clause.sql})", clause.values)


def _any(tags: Sequence[str], column: str) -> Clause:
    marks = ",".join("?" * len(tags))
    # A memory mostly has one tag, so the cheap comparison of whole columns comes first.
    alone = tuple(stored_tags([tag]) for tag in tags)
    found = f"EXISTS (SELECT 1 FROM json_each({column}) WHERE value IN ({marks}))"  # noqa: S608 - our own column
    return Clause(f"({column} IN ({marks}) OR {found})", (*alone, *tags))


def _all(tags: Sequence[str], column: str) -> Clause:
    distinct = sorted(set(tags))
    if len(distinct) == 1:
        return _any(distinct, column)
    marks = ",".join("?" * len(distinct))
    found = f"(SELECT count(*) FROM json_each({column}) WHERE value IN ({marks})) = ?"  # noqa: S608 - our own column
    return Clause(found, (*distinct, len(distinct)))


def _joined(clauses: Iterable[Clause], word: str, empty: Clause) -> Clause:
    parts = list(clauses)
    if not parts:
        return empty
    return Clause(f"({word.join(part.sql for part in parts)})", tuple(v for part in parts for v in part.values))
