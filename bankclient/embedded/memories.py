"""Memories: their shapes in the API, the list with its filters, editing, invalidating and clearing.

Retaining makes them (`filing`), recalling finds them (`recall`).
"""

from __future__ import annotations

import json
import sqlite3  # noqa: TC003 - functions are annotated with it
import uuid
from datetime import MAXYEAR, MINYEAR
from typing import TYPE_CHECKING

from bankclient.embedded.banks import bank_row, find_bank, wrote
from bankclient.embedded.bodies import MemoryUpdate
from bankclient.embedded.filing import text_key
from bankclient.embedded.index import add_to_index, clear_index, drop_from_index, index_row
from bankclient.embedded.moments import read_moment, stored
from bankclient.embedded.queries import ClearQuery, MemoriesQuery
from bankclient.embedded.tags import Clause, tags_clause
from bankclient.embedded.wire import Problem, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "COLUMNS",
    "TABLES",
    "chunk_id",
    "clear_memories",
    "entity_id",
    "get_history",
    "get_memory",
    "list_memories",
    "update_memory",
    "where",
    "window",
]

TABLES = "memories m JOIN documents d ON d.id = m.document"
"""A memory is `m`, its document `d`."""

COLUMNS = """
    m.*, d.document_id, (SELECT sum(retained) FROM (SELECT retained FROM memories s
        WHERE s.bank = m.bank AND s.text_key = m.text_key AND s.invalidated_at IS NULL LIMIT 20)) AS confirmations
"""
"""A memory with its document's name, and how often its text was retained, in this document and in others."""

_LIKE = str.maketrans({"%": "\\%", "_": "\\_", "\\": "\\\\"})


def chunk_id(bank_id: str, document_id: str, index: int) -> str:
    """Return a chunk's id; escaping keeps the joins of different names apart."""
    bank, document = (name.replace("~", "~7E").replace("_", "~5F") for name in (bank_id, document_id))
    return f"{bank}_{document}_{index}"


def entity_id(bank_id: str, name: str) -> str:
    """Return an entity's id: the same for a name in a bank, whatever its letters' case."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{bank_id}\n{name.casefold()}"))


def where(clauses: Iterable[Clause]) -> Clause:
    """Return the clauses joined by AND."""
    parts = list(clauses)
    return Clause(" AND ".join(part.sql for part in parts), tuple(value for part in parts for value in part.values))


def window(field: str | None, default: str, start: str | None, end: str | None) -> list[Clause]:
    """Return the conditions of a time window `[start, end)` on the column `field`. Raises `Problem` 400.

    Rows without a value there are left out; without any of the three there is no condition.
    """
    first, last = _bound(start, "start_date"), _bound(end, "end_date")
    if first is not None and last is not None and last <= first:
        raise Problem(400, "Invalid time window: end_date must be after start_date.")
    column = field or default
    clauses = [Clause(f"{column} IS NOT NULL")] if field or first or last else []
    clauses += [Clause(f"{column} >= ?", (first,))] if first else []
    clauses += [Clause(f"{column} < ?", (last,))] if last else []
    return clauses


def list_memories(request: Request) -> object:
    """Answer the memories that pass the filters, the last mentioned first; in a time window, the last on its axis."""
    query = request.query_as(MemoriesQuery)
    clauses = _filters(query)
    times = window(query.time_field, "created_at", query.start_date, query.end_date)
    axis = query.time_field or ("created_at" if times else "mentioned_at")
    with request.database.read() as db:
        bank = find_bank(db, request.bank_id)
        if query.entity_id is not None:
            clauses.append(_entity(db, bank, request.bank_id, query.entity_id))
        clause = where([Clause("m.bank = ?", (bank,)), *clauses, *(Clause(f"m.{t.sql}", t.values) for t in times)])
        total = db.execute(
            f"SELECT count(*) FROM {TABLES} WHERE {clause.sql}",  # noqa: S608 - our own clauses
            clause.values,
        ).fetchone()[0]
        rows = db.execute(
            f"SELECT {COLUMNS} FROM {TABLES} WHERE {clause.sql} "  # noqa: S608 - our own clauses
            f"ORDER BY m.{axis} DESC NULLS LAST, m.id DESC LIMIT ? OFFSET ?",
            (*clause.values, query.limit, query.offset),
        ).fetchall()
    items = [_listed(request.bank_id, row) for row in rows]
    return {"items": items, "total": total, "limit": query.limit, "offset": query.offset}


def get_memory(request: Request) -> object:
    """Answer one memory, invalidated ones too."""
    with request.database.read() as db:
        return _detail(request.bank_id, _find(db, request))


def get_history(request: Request) -> object:
    """Answer the history of observations, of which there are none here."""
    with request.database.read() as db:
        _find(db, request)
    return []


def update_memory(request: Request) -> object:
    """Edit, invalidate or restore a memory."""
    update = request.body_as(MemoryUpdate)
    _memory_id(request)
    edits = _edits(update)
    with request.database.write() as db:
        row = _find(db, request)
        if edits:
            if row["invalidated_at"] is not None:
                raise Problem(400, "Cannot edit an invalidated memory; revert it to 'valid' first.")
            _edit(db, row, edits, stored(request.now))
        if update.state == "invalidated":
            since = row["invalidated_at"] or stored(request.now)
            reason = update.reason if update.reason is not None else row["invalidation_reason"]
            db.execute(
                "UPDATE memories SET invalidated_at = ?, invalidation_reason = ? WHERE id = ?",
                (since, reason, row["id"]),
            )
        elif update.state == "valid" and row["invalidated_at"] is not None:
            db.execute(
                "UPDATE memories SET invalidated_at = NULL, invalidation_reason = NULL, updated_at = ? WHERE id = ?",
                (stored(request.now), row["id"]),
            )
        row = _find(db, request)
        _reindex(db, row)
        return _detail(request.bank_id, row)


def clear_memories(request: Request) -> object:
    """Remove the memories of one type, or without a type all of them and the documents; a missing bank has none."""
    kind = request.query_as(ClearQuery).type
    deleted = 0
    with request.database.write() as db:
        bank = bank_row(db, request.bank_id)
        if bank is not None:
            if kind is None:
                clear_index(db, bank)
                deleted = db.execute("DELETE FROM memories WHERE bank = ?", (bank,)).rowcount
                db.execute("DELETE FROM documents WHERE bank = ?", (bank,))
            else:
                gone = db.execute(
                    "DELETE FROM memories WHERE bank = ? AND fact_type = ? RETURNING id", (bank, kind)
                ).fetchall()
                drop_from_index(db, bank, [memory["id"] for memory in gone])
                deleted = len(gone)
            wrote(db, bank, request.now)
    of_type = "" if kind is None else f" of type '{kind}'"
    message = f"Cleared {deleted} memory unit(s){of_type} from bank '{request.bank_id}'"
    return {"success": True, "message": message, "deleted_count": deleted}


def _bound(text: str | None, name: str) -> str | None:
    if text is None:
        return None
    try:
        return stored(read_moment(text))
    except ValueError as error:
        raise Problem(400, f"Invalid {name}: '{text}' is not an ISO-8601 datetime.") from error


def _filters(query: MemoriesQuery) -> list[Clause]:
    if query.state not in {None, "valid", "invalidated"}:
        raise Problem(400, f"Invalid state '{query.state}': expected 'valid' or 'invalidated'.")
    if query.consolidation_state not in {None, "failed", "pending", "done"}:
        raise Problem(
            400, f"Invalid consolidation_state '{query.consolidation_state}': expected 'failed', 'pending', or 'done'."
        )
    clauses = [Clause("m.invalidated_at IS NOT NULL" if query.state == "invalidated" else "m.invalidated_at IS NULL")]
    # Nothing is ever consolidated here, so every memory is still to be.
    clauses += [Clause("0")] if query.consolidation_state in {"failed", "done"} else []
    clauses += [Clause("m.fact_type = ?", (query.type,))] if query.type else []
    clauses += [Clause("d.document_id = ?", (query.document_id,))] if query.document_id else []
    if query.q:
        like = f"%{query.q.translate(_LIKE)}%"
        clauses.append(Clause("(m.text LIKE ? ESCAPE '\\' OR m.context LIKE ? ESCAPE '\\')", (like, like)))
    return [*clauses, tags_clause(query.tags, query.tags_match, "m.tags")]


def _entity(db: sqlite3.Connection, bank: int, bank_id: str, wanted: str) -> Clause:
    try:
        wanted = str(uuid.UUID(wanted))
    except ValueError as error:
        raise Problem(400, f"Invalid entity_id: '{wanted}' is not a valid UUID") from error
    rows = db.execute("SELECT DISTINCT value FROM memories, json_each(entities) WHERE bank = ?", (bank,)).fetchall()
    names = [row["value"] for row in rows if entity_id(bank_id, row["value"]) == wanted]
    marks = ",".join("?" * len(names))
    found = f"EXISTS (SELECT 1 FROM json_each(m.entities) WHERE value IN ({marks}))"  # noqa: S608 - question marks
    return Clause(found, tuple(names))


def _memory_id(request: Request) -> str:
    text = request.params["memory_id"]
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise Problem(400, f"Invalid memory_id: '{text}' is not a valid UUID") from error


def _find(db: sqlite3.Connection, request: Request) -> sqlite3.Row:
    memory_id = _memory_id(request)
    row: sqlite3.Row | None = db.execute(
        f"SELECT {COLUMNS} FROM {TABLES} JOIN banks b ON b.id = m.bank WHERE m.memory_id = ? AND b.bank_id = ?",  # noqa: S608 - constants
        (memory_id, request.bank_id),
    ).fetchone()
    if row is None:
        raise Problem(404, f"Memory unit '{memory_id}' not found")
    return row


def _edits(update: MemoryUpdate) -> dict[str, object]:
    """Return the columns that an edit sets. Raises `Problem` 400."""
    edits: dict[str, object] = dict(update.edits)
    if update.text is not None and not update.text.strip():
        raise Problem(400, "text must not be empty.")
    for name in ("occurred_start", "occurred_end", "mentioned_at"):
        if name in edits:
            edits[name] = _edited_date(str(edits[name]))
    if update.entities is not None:
        edits["entities"] = json.dumps(list(dict.fromkeys(update.entities)), ensure_ascii=False)
    return edits


def _edited_date(text: str) -> str | None:
    if not text:
        return None
    try:
        moment = read_moment(text)
    except ValueError as error:
        raise Problem(400, str(error)) from error
    if moment.year in {MINYEAR, MAXYEAR}:
        raise Problem(400, f"Date year {moment.year} is a placeholder, not a date; send '' to clear it.")
    return stored(moment)


def _edit(db: sqlite3.Connection, row: sqlite3.Row, edits: Mapping[str, object], now: str) -> None:
    values: dict[str, object] = {**edits, "edited_at": now, "updated_at": now}
    if "text" in edits:
        # The document's chunk stays what was retained, so that retaining it again is seen as unchanged.
        values["chunk_text"] = row["text"] if row["chunk_text"] is None else row["chunk_text"]
        values["text_key"] = text_key(str(edits["text"]))
    names = ", ".join(f"{name} = :{name}" for name in values)
    db.execute(f"UPDATE memories SET {names} WHERE id = :id", {**values, "id": row["id"]})  # noqa: S608 - our own names


def _reindex(db: sqlite3.Connection, row: sqlite3.Row) -> None:
    drop_from_index(db, row["bank"], [row["id"]])
    if row["invalidated_at"] is None:
        entities: list[str] = json.loads(row["entities"])
        add_to_index(db, row["bank"], [index_row(row["id"], row["text"], row["context"], entities)])


def _listed(bank_id: str, row: sqlite3.Row) -> object:
    entities: list[str] = [] if row["invalidated_at"] else json.loads(row["entities"])
    return {
        "id": row["memory_id"],
        "text": row["text"],
        "context": row["context"],
        "date": row["occurred_start"] or row["mentioned_at"] or "",
        "fact_type": row["fact_type"],
        "document_id": row["document_id"],
        "mentioned_at": row["mentioned_at"],
        "occurred_start": row["occurred_start"],
        "occurred_end": row["occurred_end"],
        "entities": ", ".join(entities),
        "chunk_id": chunk_id(bank_id, row["document_id"], row["chunk_index"]),
        "proof_count": row["confirmations"] or row["retained"],
        "tags": json.loads(row["tags"]),
        "metadata": json.loads(row["metadata"]),
        "consolidated_at": None,
        "consolidation_failed_at": None,
        **_curation(row),
        "updated_at": row["updated_at"],
        "source_memory_ids": [],
    }


def _detail(bank_id: str, row: sqlite3.Row) -> object:
    scopes = row["observation_scopes"]
    return {
        "id": row["memory_id"],
        "text": row["text"],
        "context": row["context"],
        "date": row["occurred_start"] or row["mentioned_at"] or "",
        "type": row["fact_type"],
        "mentioned_at": row["mentioned_at"],
        "occurred_start": row["occurred_start"],
        "occurred_end": row["occurred_end"],
        "entities": [] if row["invalidated_at"] else json.loads(row["entities"]),
        "document_id": row["document_id"],
        "chunk_id": chunk_id(bank_id, row["document_id"], row["chunk_index"]),
        "tags": json.loads(row["tags"]),
        "metadata": json.loads(row["metadata"]),
        "observation_scopes": None if scopes is None else json.loads(scopes),
        **_curation(row),
        "consolidated_at": None,
        "consolidation_failed_at": None,
    }


def _curation(row: sqlite3.Row) -> dict[str, object]:
    return {
        "state": "valid" if row["invalidated_at"] is None else "invalidated",
        "invalidation_reason": row["invalidation_reason"],
        "invalidated_at": row["invalidated_at"],
        "edited_at": row["edited_at"],
    }
