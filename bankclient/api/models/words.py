"""The server's own words: what a request may say where only some words are understood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

__all__ = ["Budget", "FactType", "ObservationScopes", "TagGroup", "TagsMatch", "UpdateMode"]

Budget: TypeAlias = Literal["low", "mid", "high"]
"""How hard to search."""

FactType: TypeAlias = Literal["world", "experience", "observation"]

TagsMatch: TypeAlias = Literal["any", "all", "any_strict", "all_strict", "exact"]
"""`any` and `all` also find untagged memories, the strict ones do not; `exact` (from 0.8.2) is the same set of tags."""

UpdateMode: TypeAlias = Literal["replace", "append"]

ObservationScopes: TypeAlias = Literal["per_tag", "combined", "all_combinations", "shared"] | Sequence[Sequence[str]]

TagGroup: TypeAlias = Mapping[str, Any]
"""`{"tags": […], "match": …, "resolve": …}`, or `{"and": […]}`, `{"or": […]}`, `{"not": …}` of such groups."""
