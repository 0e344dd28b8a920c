"""How a caller's items and filters become those of a project's scope. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, cast

from bankclient.api.calls import memory_item, tag_texts
from bankclient.errors import InvalidInput
from bankclient.scope import PROJECT_TAG_START, recall_filter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bankclient.api.models.retain import MemoryItem
    from bankclient.api.models.words import TagGroup, TagsMatch
    from bankclient.scope import Scope, Target

__all__ = ["Filter", "filed", "narrowed"]


class Filter(TypedDict, total=False):
    """The fields of a request that choose memories by tag."""

    tags: Sequence[str]
    tags_match: TagsMatch
    tag_groups: Sequence[TagGroup]


def filed(
    items: Iterable[str | MemoryItem | Mapping[str, Any]], target: Target, scope: Scope, context: str | None
) -> list[MemoryItem]:
    """Return the items with the target's tags in front of their own, and `context` where they have none.

    Raises `InvalidInput` for tags with which a memory would be found by the wrong project or by none: another
    project's, and any on a memory for all projects, which is known by having no tag.
    """
    hidden = not target.tags and any(asked.bank == target.bank and asked.tags for asked in scope.recall)
    return [
        _filed(memory_item(item, f"items[{number}]"), target, context, is_hidden_by_tags=hidden)
        for number, item in enumerate(_listed(items, "items", "give a list, or use retain() for one text"))
    ]


def _listed(given: object, what: str, mend: str) -> list[Any]:
    """Return what a caller gave as a list, who may have given one thing in place of several."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InvalidInput(f"{what} is {type(given).__name__}: {mend}")  # pyright: ignore[reportUnknownArgumentType] - any
    return list(given)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - any


def _filed(item: MemoryItem, target: Target, context: str | None, *, is_hidden_by_tags: bool) -> MemoryItem:
    own = tuple(item.tags)
    foreign = [tag for tag in own if tag.startswith(PROJECT_TAG_START) and tag not in target.tags]
    if foreign:
        raise InvalidInput(
            f"the tag {foreign[0]!r} would file this under another project: go to its folder, or drop it"
        )
    if own and is_hidden_by_tags:
        raise InvalidInput(
            f"a memory for all projects is known by having no tag, so {own[0]!r} would hide it: drop the tag,"
            " or keep the memory in its project"
        )
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
    chosen = cast("Filter", recall_filter(target, tag_texts(tags), tags_match))
    if tag_groups is None:
        return chosen
    groups = list(chosen.get("tag_groups", ()))
    if own := chosen.get("tags"):
        groups.append({"tags": own, "match": chosen.get("tags_match", "any")})
    return {"tag_groups": [*groups, *_listed(tag_groups, "tag_groups", "give a list of groups")]}
