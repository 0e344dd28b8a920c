"""Retain: put texts into a bank."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from bankclient.api.call import Repeat, clean_text
from bankclient.api.calls import _values as values
from bankclient.api.calls._bank import bank_call
from bankclient.api.models.base import reader
from bankclient.api.models.retain import MemoryItem, RetainResult
from bankclient.api.models.words import UpdateMode
from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from bankclient.api.call import Call, Need
    from bankclient.api.models.words import ObservationScopes

__all__ = ["memory_item", "retain", "retain_many"]

_READ = reader(RetainResult)
_FIELDS = frozenset(field.name for field in dataclasses.fields(MemoryItem))
_update_mode = values.word(UpdateMode)


def retain(
    bank: str,
    content: str | Sequence[Mapping[str, Any]],
    *,
    document_id: str | None = None,
    tags: Iterable[str] | str = (),
    timestamp: datetime | str | None = None,
    context: str | None = None,
    metadata: Mapping[str, str] | None = None,
    entities: Iterable[str | Mapping[str, str | None]] | str = (),
    resolve_entities: bool | None = None,
    observation_scopes: ObservationScopes | None = None,
    strategy: str | None = None,
    update_mode: UpdateMode | None = None,
    background: bool = False,
    operation_id: UUID | str | None = None,
) -> Call[RetainResult]:
    """Put one text into the bank; the fields are those of `MemoryItem`, the rest is as in `retain_many`."""
    item = MemoryItem(
        content,
        document_id=document_id,
        tags=tags,
        timestamp=timestamp,
        context=context,
        metadata=metadata,
        entities=entities,
        resolve_entities=resolve_entities,
        observation_scopes=observation_scopes,
        strategy=strategy,
        update_mode=update_mode,
    )
    return _retain(bank, [_fields_of(item, "")], background=background, operation_id=operation_id)


def retain_many(
    bank: str,
    items: Iterable[str | MemoryItem | Mapping[str, Any]],
    *,
    background: bool = False,
    operation_id: UUID | str | None = None,
) -> Call[RetainResult]:
    """Put texts into the bank, which is created if it is not there.

    Without `background` (the API's `async`) the server answers when the memories are there; with it at once, naming
    the operation to wait for. `operation_id`, a UUID of the caller's, makes a background retain safe to repeat: the
    server (from 0.8.6) answers a second one with the first, *whatever it holds*, so an id goes with one content only.

    A retain may be sent twice if it has an operation id, or if each item has a document id of its own that it replaces:
    the server then ends with the same documents, and keeps the memories of unchanged text. Any other could be stored
    twice, and is never repeated. Items without a document id share one new document.

    Raises `InvalidInput` for what the server would refuse, store otherwise than meant, or ignore in silence.
    """
    if isinstance(items, (str, Mapping)):
        raise InvalidInput("items is a single one: give a list, or use retain()")
    named = ((f"items[{number}]", item) for number, item in enumerate(items))
    bodies = [_fields_of(memory_item(item, name), f"{name}.") for name, item in named]
    return _retain(bank, bodies, background=background, operation_id=operation_id)


def _retain(
    bank: str, items: list[dict[str, Any]], *, background: bool, operation_id: UUID | str | None
) -> Call[RetainResult]:
    if not items:
        raise InvalidInput("items is empty: there is nothing to retain")
    operation = values.maybe(values.uuid_text, operation_id, "operation_id")
    if not values.switch(background, "background") and operation is not None:
        raise InvalidInput("operation_id needs background=True: the server ignores it in a synchronous retain")
    if operation is not None and len({item.get("strategy") for item in items}) > 1:
        raise InvalidInput("the items have different strategies, which one operation_id cannot cover: send them apart")
    documents = [item["document_id"] for item in items if "document_id" in item]
    twice = [document for document, times in Counter(documents).items() if times > 1]
    if background and twice:
        raise InvalidInput(f"document_id {twice[0]!r} stands twice, which the server refuses in one background retain")

    appends = any(item.get("update_mode") == "append" for item in items)
    by_document = len(documents) == len(items) and not twice and not appends
    needs: set[Need] = set()
    if appends:
        needs.add("append")
    if any(not isinstance(item["content"], str) for item in items):
        needs.add("content_blocks")
    if operation is not None and not by_document:
        needs.add("operation_ids")
    return bank_call(
        "retain",
        "POST",
        bank,
        "memories",
        read=_read_operation if background else _READ,
        empty=lambda: RetainResult(success=False, bank_id=bank, degraded=True),
        body=values.given(items=items, operation_id=operation) | {"async": background},
        repeat=Repeat.IDENTIFIED if by_document or operation is not None else Repeat.NEVER,
        time_limit="retain",
        needs=frozenset(needs),
    )


def _read_operation(raw: bytes) -> RetainResult:
    """Read the answer to a background retain, which is one only if it names an operation."""
    result = _READ(raw)
    if not result.operation_ids:
        raise ValueError("not the answer to a background retain: it names no operation")
    return result


def memory_item(given: object, what: str = "item") -> MemoryItem:
    """Return a text, a mapping of fields or an item as an item whose tags are a tuple of clean texts.

    Raises `InvalidInput` for anything else, naming `what`.
    """
    item = _as_item(given, what)
    return dataclasses.replace(item, tags=tuple(values.maybe(values.texts, item.tags, f"{what}.tags") or ()))


def _as_item(given: object, what: str) -> MemoryItem:
    if isinstance(given, MemoryItem):
        return given
    if isinstance(given, str):
        return MemoryItem(given)
    if not values.is_mapping(given):
        raise values.wrong(what, given, "give a text, a MemoryItem, or a mapping of its fields")
    if unknown := given.keys() - _FIELDS:  # the server would ignore it in silence
        raise InvalidInput(f"{what} has no field {min(map(str, unknown))!r}: give any of {', '.join(sorted(_FIELDS))}")
    if "content" not in given:
        raise InvalidInput(f"{what} has no content: there is nothing to retain")
    return MemoryItem(**cast("dict[str, Any]", given))  # each field is checked when the request is made


def _fields_of(item: MemoryItem, prefix: str) -> dict[str, Any]:
    """Return an item as the server takes it; `prefix` tells it from the others in a message."""

    def named(field: str) -> str:
        return prefix + field

    fields = values.given(
        content=_content(item.content, named("content")),
        document_id=values.maybe(values.document_id, item.document_id, named("document_id")),
        tags=values.maybe(values.texts, item.tags, named("tags")) or None,
        timestamp=values.maybe(_timestamp, item.timestamp, named("timestamp")),
        context=values.maybe(values.text, item.context, named("context")),
        metadata=values.maybe(values.metadata, item.metadata, named("metadata")) or None,
        entities=values.maybe(_entities, item.entities, named("entities")) or None,
        resolve_entities=values.maybe(values.switch, item.resolve_entities, named("resolve_entities")),
        observation_scopes=values.maybe(values.scopes, item.observation_scopes, named("observation_scopes")),
        strategy=values.maybe(values.identifier, item.strategy, named("strategy")),
        update_mode=values.maybe(_update_mode, item.update_mode, named("update_mode")),
    )
    if fields.get("update_mode") == "append" and "document_id" not in fields:
        raise InvalidInput(f"{named('update_mode')} is append without a document_id: say what to append to")
    return fields


def _content(given: object, what: str) -> str | list[dict[str, Any]]:
    """Return a text or content blocks that hold something: the server answers 422 to blank ones, 0.4 stored them."""
    if isinstance(given, str):
        if not (cleaned := clean_text(given)).strip():
            raise InvalidInput(f"{what} is empty: leave it out, there is nothing to retain")
        return cleaned
    if not values.is_sequence(given):
        raise values.wrong(what, given, "give a text, or a list of content blocks")
    blocks = [_block(block, f"{what}[{position}]") for position, block in enumerate(given)]
    if all(block["type"] == "text" and not block["text"].strip() for block in blocks):
        raise InvalidInput(f"{what} has no block with anything in it: give a text, an image or a file")
    return blocks


def _block(given: object, what: str) -> dict[str, Any]:
    """Return a content block as it is; the server says best what it makes of an image or a file."""
    if not values.is_mapping(given) or not isinstance(given.get("type"), str):
        raise values.wrong(what, given, 'give a block such as {"type": "text", "text": "…"}')
    block = {str(key): value for key, value in given.items()}
    return block | {"text": values.text(block.get("text"), f"{what}.text")} if block["type"] == "text" else block


def _timestamp(given: object, what: str) -> str | None:
    """Return when it was so: `"unset"` for timeless; `None` for now, as the server takes an empty text."""
    if isinstance(given, str) and (said := given.strip().lower()) in {"", "unset"}:
        return said or None
    return values.moment(given, what)


def _entities(given: object, what: str) -> list[dict[str, str]]:
    """Return named things, each as the object that the server wants."""
    if isinstance(given, str):
        given = [given]
    if not values.is_iterable(given):
        raise values.wrong(what, given, "give a list of names")
    return [_entity(entity, f"{what}[{position}]") for position, entity in enumerate(given)]


def _entity(given: object, what: str) -> dict[str, str]:
    if not values.is_mapping(given):
        return {"text": values.text(given, what)}
    if "text" not in given or not given.keys() <= {"text", "type"}:
        raise values.wrong(what, given, 'give a name, or {"text": …, "type": …}')
    return values.given(
        text=values.text(given["text"], f"{what}.text"),
        type=values.maybe(values.text, given.get("type"), f"{what}.type"),
    )
