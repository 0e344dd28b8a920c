"""Operations: the rows that an asynchronous retain leaves, and the endpoints that show them.

Here an operation is completed when it is accepted, so nothing is ever pending, cancelled or failed. Owns the table
`operations`.
"""

from __future__ import annotations

import json
import sqlite3  # noqa: TC003 - functions are annotated with it
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bankclient.embedded.banks import find_bank
from bankclient.embedded.moments import stored
from bankclient.embedded.queries import OperationQuery, OperationsQuery
from bankclient.embedded.wire import Problem, Request

if TYPE_CHECKING:
    from datetime import datetime

__all__ = [
    "Accepted",
    "accept",
    "cancel_operation",
    "delete_operation",
    "get_operation",
    "known",
    "list_operations",
    "retry_operation",
]

_PARENT, _CHILD = "batch_retain", "retain"
_ADD = """
    INSERT INTO operations (operation_id, bank, parent, operation_type, status, items_count, document_id, result,
        created_at, updated_at)
    VALUES (:operation_id, :bank, :parent, :operation_type, 'completed', :items_count, :document_id, :result,
        :now, :now)
"""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A retain that was accepted under an operation id, and what it did."""

    operation_id: str
    items_count: int
    document_id: str | None
    document_ids: tuple[str, ...]
    new_memories: int
    tokens: int


def known(db: sqlite3.Connection, bank_id: str, operation_id: str) -> int | None:
    """Return the number of items first sent under this id, None if the id is free.

    Raises `Problem` 409 where it stands for something else: ids are unique over all banks and types.
    """
    row = db.execute(
        "SELECT o.*, b.bank_id FROM operations o JOIN banks b ON b.id = o.bank WHERE o.operation_id = ?",
        (operation_id,),
    ).fetchone()
    if row is None:
        return None
    if row["bank_id"] != bank_id or row["operation_type"] != _PARENT:
        raise Problem(409, f"operation_id {operation_id} is already in use")
    return int(row["items_count"])


def accept(db: sqlite3.Connection, bank: int, accepted: Accepted, now: datetime) -> None:
    """Write the completed operation: a parent, and the child that did the work."""
    counts = {"unit_ids_count": accepted.new_memories, "extraction_errors_count": 0}
    parent = {"is_parent": True, "items_count": accepted.items_count, "total_tokens": accepted.tokens}
    parent |= {"num_sub_batches": 1, **counts}
    child = {"items_count": accepted.items_count, "document_ids": accepted.document_ids, "facts_committed": True}
    child |= {"sub_batch_index": 1, "total_sub_batches": 1, "parent_operation_id": accepted.operation_id, **counts}
    for operation_id, above, kind, result in (
        (accepted.operation_id, None, _PARENT, parent),
        (str(uuid.uuid4()), accepted.operation_id, _CHILD, child),
    ):
        row = {"operation_id": operation_id, "bank": bank, "parent": above, "operation_type": kind}
        row |= {"items_count": accepted.items_count, "document_id": accepted.document_id}
        row |= {"result": json.dumps(result, ensure_ascii=False), "now": stored(now)}
        db.execute(_ADD, row)


def list_operations(request: Request) -> object:
    """Answer the bank's operations, the newest first."""
    query = request.query_as(OperationsQuery)
    where = "bank = :bank"
    where += " AND status = :status" if query.status else ""
    where += " AND operation_type = :type" if query.type else ""
    where += f" AND operation_type <> '{_PARENT}'" if query.exclude_parents else ""
    with request.database.read() as db:
        values = {**query.model_dump(), "bank": find_bank(db, request.bank_id)}
        total = db.execute(f"SELECT count(*) FROM operations WHERE {where}", values).fetchone()[0]  # noqa: S608 - constants
        rows = db.execute(
            f"SELECT * FROM operations WHERE {where} ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset",  # noqa: S608 - constants
            values,
        ).fetchall()
    page = {"bank_id": request.bank_id, "total": total, "limit": query.limit, "offset": query.offset}
    return {**page, "operations": [_listed(row) for row in rows]}


def get_operation(request: Request) -> object:
    """Answer one operation; an unknown one, or another bank's, has the status `not_found`."""
    request.query_as(OperationQuery)
    with request.database.read() as db:
        row = _find(db, request)
        children = [] if row is None else _children(db, row["operation_id"])
    return _detail(_operation_id(request), row, children)


def cancel_operation(request: Request) -> object:
    """Refuse: what is completed cannot be cancelled."""
    with request.database.read() as db:
        row = _existing(db, request)
    raise Problem(
        409,
        f"Operation {row['operation_id']} cannot be cancelled: status is '{row['status']}', "
        "only 'pending' and 'processing' operations can be cancelled",
    )


def retry_operation(request: Request) -> object:
    """Refuse: what is completed needs no other try."""
    with request.database.read() as db:
        row = _existing(db, request)
    name = f"Operation {row['operation_id']}"
    if row["operation_type"] == _PARENT:
        raise Problem(
            409,
            f"{name} is a batch_retain parent with no incomplete sub-batches to retry (its children have all "
            "completed, or it has none). Resubmit the source documents to re-ingest them, then delete this record via "
            f"DELETE /operations/{row['operation_id']}/delete.",
        )
    status = f"status is '{row['status']}', expected 'failed', 'cancelled' or deferred"
    raise Problem(409, f"{name} cannot be retried: {status}")


def delete_operation(request: Request) -> object:
    """Remove the row, after which its id is free again; the children stay."""
    with request.database.write() as db:
        row = _existing(db, request)
        db.execute("DELETE FROM operations WHERE id = ?", (row["id"],))
    operation_id = row["operation_id"]
    return {"success": True, "message": f"Operation {operation_id} deleted", "operation_id": operation_id}


def _operation_id(request: Request) -> str:
    text = request.params["operation_id"]
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise Problem(400, f"Invalid operation_id format: {text}") from error


def _find(db: sqlite3.Connection, request: Request) -> sqlite3.Row | None:
    row: sqlite3.Row | None = db.execute(
        "SELECT o.* FROM operations o JOIN banks b ON b.id = o.bank WHERE o.operation_id = ? AND b.bank_id = ?",
        (_operation_id(request), request.bank_id),
    ).fetchone()
    return row


def _existing(db: sqlite3.Connection, request: Request) -> sqlite3.Row:
    row = _find(db, request)
    if row is None:
        raise Problem(404, f"Operation {_operation_id(request)} not found for bank {request.bank_id}")
    return row


def _children(db: sqlite3.Connection, parent: str) -> list[dict[str, object]]:
    rows = db.execute("SELECT * FROM operations WHERE parent = ? ORDER BY id", (parent,)).fetchall()
    return [
        {
            "operation_id": row["operation_id"],
            "status": row["status"],
            "sub_batch_index": index,
            "items_count": row["items_count"],
            "error_message": None,
        }
        for index, row in enumerate(rows, start=1)
    ]


def _progress(row: sqlite3.Row) -> object:
    if row["operation_type"] == _PARENT:
        return None
    facts = json.loads(row["result"])["unit_ids_count"]
    at = {"stage": "storing", "at": row["updated_at"]}
    return {**at, "processed": row["items_count"], "total": row["items_count"], "detail": {"facts_committed": facts}}


def _listed(row: sqlite3.Row) -> object:
    return {
        "id": row["operation_id"],
        "task_type": row["operation_type"],
        "operation_id": row["operation_id"],
        "operation_type": row["operation_type"],
        "items_count": row["items_count"],
        "document_id": row["document_id"],
        "filename": None,
        "mental_model_id": None,
        "details": None,
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "status": row["status"],
        "error_message": None,
        "retry_count": 0,
        "next_retry_at": None,
        "progress": _progress(row),
    }


def _detail(operation_id: str, row: sqlite3.Row | None, children: list[dict[str, object]]) -> object:
    found: dict[str, Any] = {} if row is None else dict(row)
    return {
        "operation_id": operation_id,
        "status": found.get("status", "not_found"),
        "operation_type": found.get("operation_type"),
        "id": operation_id,
        "task_type": found.get("operation_type"),
        "mental_model_id": None,
        "created_at": found.get("created_at"),
        "updated_at": found.get("updated_at"),
        "completed_at": found.get("updated_at"),
        "error_message": None,
        "retry_count": None if row is None else 0,
        "next_retry_at": None,
        "progress": None if row is None else _progress(row),
        "result_metadata": None if row is None else json.loads(row["result"]),
        "details": None,
        "child_operations": children or None,
        "task_payload": None,
    }
