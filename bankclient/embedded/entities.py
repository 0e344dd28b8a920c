"""Entities: the names that callers gave to their items, counted over the bank's memories.

Nothing is extracted or resolved here; a name is an entity as it was written, whatever its letters' case.
"""

from __future__ import annotations

import sqlite3  # noqa: TC003 - functions are annotated with it
import uuid
from typing import TYPE_CHECKING

from bankclient.embedded.banks import find_bank
from bankclient.embedded.memories import entity_id
from bankclient.embedded.queries import PageQuery
from bankclient.embedded.wire import Problem, Request

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["get_entity", "list_entities"]

_NAMES = """
    SELECT min(value) AS name, count(*) AS mentions, min(mentioned_at) AS first, max(mentioned_at) AS last
    FROM memories, json_each(entities) WHERE bank = ? AND invalidated_at IS NULL
    GROUP BY lower(value) ORDER BY mentions DESC, name
"""


def list_entities(request: Request) -> object:
    """Answer the entities, the most mentioned first."""
    query = request.query_as(PageQuery)
    rows = _all(request)
    page = rows[query.offset : query.offset + query.limit]
    items = [_entity(request.bank_id, row) for row in page]
    return {"items": items, "total": len(rows), "limit": query.limit, "offset": query.offset}


def get_entity(request: Request) -> object:
    """Answer one entity."""
    wanted = request.params["entity_id"]
    try:
        wanted = str(uuid.UUID(wanted))
    except ValueError as error:
        raise Problem(400, f"Invalid entity_id: '{wanted}' is not a valid UUID") from error
    for row in _all(request):
        if entity_id(request.bank_id, row["name"]) == wanted:
            return {**_entity(request.bank_id, row), "observations": []}
    raise Problem(404, f"Entity {wanted} not found")


def _all(request: Request) -> Sequence[sqlite3.Row]:
    with request.database.read() as db:
        return db.execute(_NAMES, (find_bank(db, request.bank_id),)).fetchall()


def _entity(bank_id: str, row: sqlite3.Row) -> dict[str, object]:
    return {
        "id": entity_id(bank_id, row["name"]),
        "canonical_name": row["name"],
        "mention_count": row["mentions"],
        "first_seen": row["first"],
        "last_seen": row["last"],
        "metadata": {},
    }
