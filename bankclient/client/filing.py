"""How a caller's items and filters become those of a project's scope. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, cast

from bankclient.api.calls import memory_item
from bankclient.scope import recall_filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bankclient.api.models.retain import MemoryItem
    from bankclient.api.models.words import TagGroup, TagsMatch
    from bankclient.scope import Target

__all__ = ["Filter", "filed", "narrowed"]


class Filter(TypedDict, total=False):
    """The fields of a request that choose memories by tag."""

    tags: Sequence[str]
    tags_match: TagsMatch
    tag_groups: Sequence[TagGroup]


def filed(
    items: Iterable[str | MemoryItem | Mapping[str, Any]], target: Target, context: str | None
) -> list[MemoryItem]:
    """Return the items with the target's tags in front of their own, and `context` where they have none."""
    return [_filed(memory_item(item, f"items[{number}]"), target, context) for number, item in enumerate(items)]


def _filed(item: MemoryItem, target: Target, context: str | None) -> MemoryItem:
    own = (item.tags,) if isinstance(item.tags, str) else tuple(item.tags)
    tags = tuple(dict.fromkeys((*target.tags, *own)))
    return replace(item, tags=tags, context=context if item.context is None else item.context)


def narrowed(
    target: Target,
    tags: Iterable[str] | str = (),
    tags_match: TagsMatch | None = None,
    tag_groups: Iterable[TagGroup] | None = None,
) -> Filter:
    """Return the filter that finds what `target` may find and the caller's tags and groups ask for.

    Groups are met beside all else: the target's own tags are one more of them.
    """
    chosen = cast("Filter", recall_filter(target, tags if isinstance(tags, str) else tuple(tags), tags_match))
    if tag_groups is None:
        return chosen
    groups = list(chosen.get("tag_groups", ()))
    if own := chosen.get("tags"):
        groups.append({"tags": own, "match": chosen.get("tags_match", "any")})
    return {"tag_groups": [*groups, *tag_groups]}
