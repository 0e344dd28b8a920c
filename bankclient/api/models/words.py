"""The server's own words: what a request may say where only some words are understood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

__all__ = [
    "Budget",
    "ConsolidationState",
    "DocumentTimeField",
    "ExtractionMode",
    "FactType",
    "MemoryState",
    "MemoryTimeField",
    "ObservationScope",
    "ObservationScopes",
    "TagGroup",
    "TagSource",
    "TagsMatch",
    "UpdateMode",
]

Budget: TypeAlias = Literal["low", "mid", "high"]
"""How hard to search."""

FactType: TypeAlias = Literal["world", "experience", "observation"]

TagsMatch: TypeAlias = Literal["any", "all", "any_strict", "all_strict", "exact"]
"""`any` and `all` also find untagged memories, the strict ones do not; `exact` (from 0.8.2) is the same set of tags."""

TagGroup: TypeAlias = Mapping[str, Any]
"""`{"tags": […], "match": …, "resolve": …}`, or `{"and": […]}`, `{"or": […]}`, `{"not": …}` of such groups.

A group's own `match` is `any_strict` unless it says otherwise.
"""

TagSource: TypeAlias = Literal["memories", "mental_models"]

UpdateMode: TypeAlias = Literal["replace", "append"]

ObservationScope: TypeAlias = Literal["per_tag", "combined", "all_combinations", "shared"]
ObservationScopes: TypeAlias = ObservationScope | Sequence[Sequence[str]]
"""Which tags observations are drawn over: one of the server's words, or the sets of tags themselves."""

MemoryState: TypeAlias = Literal["valid", "invalidated"]
ConsolidationState: TypeAlias = Literal["failed", "pending", "done"]
MemoryTimeField: TypeAlias = Literal["created_at", "updated_at", "mentioned_at", "occurred_start", "occurred_end"]
DocumentTimeField: TypeAlias = Literal["created_at", "updated_at"]

ExtractionMode: TypeAlias = Literal["concise", "verbose", "custom", "verbatim", "chunks"]
