"""The retain endpoint: what is asked for is read, filed, and for an asynchronous retain booked as an operation.

The filing itself stands in `filing`.
"""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TYPE_CHECKING

from bankclient.embedded.banks import obtain_bank
from bankclient.embedded.bodies import RetainRequest
from bankclient.embedded.filing import file_items
from bankclient.embedded.items import Item, read_item
from bankclient.embedded.operations import Accepted, accept, known
from bankclient.embedded.sizes import count_tokens
from bankclient.embedded.wire import Problem, Request

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NO_USAGE", "retain"]

NO_USAGE = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, "cached_tokens": 0, "thoughts_tokens": 0}
"""The tokens of a model, of which there is none here."""


def retain(request: Request) -> object:
    """Store the items; an asynchronous retain in the same transaction that completes its operation."""
    body = request.body_as(RetainRequest)
    items = [read_item(index, item, body.document_tags or (), request.now) for index, item in enumerate(body.items)]
    if any(item.append and not item.document_id for item in items):
        raise Problem(400, "update_mode='append' requires a document_id")
    groups = _by_strategy(items)
    ids: list[str] = []
    count = len(items)
    if body.async_ and items:
        ids, count = _asynchronous(request, groups, body.operation_id)
    elif items:
        with request.database.write() as db:
            bank = obtain_bank(db, request.bank_id, request.now)
            for group in groups:
                file_items(db, bank, group, request.now)
    return {
        "success": True,
        "bank_id": request.bank_id,
        "items_count": count,
        "async": body.async_,
        "operation_id": ids[0] if ids else None,
        "operation_ids": ids if len(ids) > 1 else None,
        "usage": None if body.async_ else NO_USAGE,
    }


def _asynchronous(
    request: Request, groups: Sequence[Sequence[Item]], operation_id: str | None
) -> tuple[list[str], int]:
    """Return the operations' ids and the number of items."""
    if operation_id is not None and len(groups) > 1:
        raise Problem(400, "operation_id requires all retain items to resolve to a single strategy")
    for group in groups:
        _refuse_twice_in_one(group)
    ids: list[str] = []
    with request.database.write() as db:
        # A repeated id is answered for what it first stood for, whatever is sent with it now.
        if operation_id is not None and (count := known(db, request.bank_id, operation_id)) is not None:
            return [operation_id], count
        bank = obtain_bank(db, request.bank_id, request.now)
        for group in groups:
            filed = file_items(db, bank, group, request.now)
            named = [item.document_id for item in group if item.document_id]
            accepted = Accepted(
                operation_id=operation_id or str(uuid.uuid4()),
                items_count=len(group),
                document_id=named[0] if len(named) == 1 else None,
                document_ids=filed.document_ids,
                new_memories=filed.new_memories,
                tokens=sum(count_tokens(item.content) for item in group),
            )
            accept(db, bank, accepted, request.now)
            ids.append(accepted.operation_id)
    return ids, sum(len(group) for group in groups)


def _by_strategy(items: Sequence[Item]) -> list[list[Item]]:
    groups: dict[str | None, list[Item]] = {}
    for item in items:
        groups.setdefault(item.strategy, []).append(item)
    return list(groups.values())


def _refuse_twice_in_one(group: Sequence[Item]) -> None:
    uses = Counter(item.document_id for item in group if item.document_id)
    twice = [document_id for document_id, count in uses.items() if count > 1]
    if twice:
        raise Problem(
            400,
            f"Batch contains duplicate document_ids: {twice}. Each content item in an async batch must have a unique "
            "document_id to avoid races between the parallel workers that process them. To fold several items into one "
            "document, send the batch synchronously (async=false), which processes them sequentially.",
        )
