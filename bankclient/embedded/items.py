"""A retained item with its defaults filled in: what `bodies.MemoryItem` says, ready to be filed. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bankclient.embedded.bodies import MemoryItem, TextContentBlock
from bankclient.embedded.wire import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Item", "read_item"]


@dataclass(frozen=True, slots=True)
class Item:
    """One item to file. `params` is what the document shows as `retain_params`: what the caller gave, defaults not."""

    content: str
    document_id: str | None
    mentioned_at: datetime | None
    context: str = ""
    tags: tuple[str, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    entities: tuple[str, ...] = ()
    observation_scopes: str | list[list[str]] | None = None
    append: bool = False
    strategy: str | None = None
    params: dict[str, Any] = field(default_factory=dict[str, Any])


def read_item(index: int, item: MemoryItem, document_tags: Sequence[str], now: datetime) -> Item:
    """Return the `index`-th item of a request that arrived at `now`. Raises `Problem` 422 for an attachment."""
    mentioned_at: datetime | None = now
    params: dict[str, Any] = {}
    if item.timestamp == "unset":
        mentioned_at = params["event_date"] = None
    elif isinstance(item.timestamp, datetime):
        mentioned_at = item.timestamp
        params["event_date"] = item.timestamp.isoformat()
    for name in ("context", "metadata", "observation_scopes", "strategy"):
        if value := getattr(item, name):
            params[name] = value
    entities = [entity for entity in item.entities or () if entity.text]
    if entities:
        params["entities"] = [{"text": entity.text, "type": entity.type or "CONCEPT"} for entity in entities]
        params["resolve_entities"] = item.resolve_entities
    return Item(
        content=_text(index, item),
        document_id=item.document_id or None,
        mentioned_at=mentioned_at,
        context=item.context or "",
        tags=(*(item.tags or ()), *document_tags),
        metadata=item.metadata or {},
        # The same name in other letters' case is the same entity; it is shown as it was written first.
        entities=tuple({entity.text.casefold(): entity.text for entity in reversed(entities)}.values())[::-1],
        observation_scopes=item.observation_scopes,
        append=item.update_mode == "append",
        strategy=item.strategy,
        params=params,
    )


def _text(index: int, item: MemoryItem) -> str:
    if isinstance(item.content, str):
        return item.content
    texts = [block.text for block in item.content if isinstance(block, TextContentBlock)]
    if len(texts) < len(item.content):
        raise Problem(
            422,
            f"items[{index}].content carries an attachment; "
            "the embedded bank keeps text only, use a Hindsight server for images and files",
        )
    return "".join(texts)
