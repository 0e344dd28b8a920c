"""Documents and their chunks: the lists, reading, retagging, deleting; and the bank's tags and entities.

Retaining makes documents (`filing`).
"""

from __future__ import annotations

import json
import re
import sqlite3  # noqa: TC003 - functions are annotated with it
from typing import TYPE_CHECKING

from bankclient.embedded.banks import find_bank, wrote
from bankclient.embedded.bodies import DocumentUpdate
from bankclient.embedded.index import drop_from_index
from bankclient.embedded.memories import chunk_id, where, window
from bankclient.embedded.moments import stored
from bankclient.embedded.queries import ChunksQuery, DocumentsQuery, TagsQuery
from bankclient.embedded.tags import Clause, stored_tags, tags_clause
from bankclient.embedded.wire import Problem, Request

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "delete_document",
    "get_chunk",
    "get_document",
    "get_document_history",
    "list_chunks",
    "list_documents",
    "list_tags",
    "update_document",
]

_CHUNK = """
    SELECT m.chunk_index, coalesce(m.chunk_text, m.text) AS chunk_text, m.created_at, d.document_id, b.bank_id
    FROM memories m JOIN documents d ON d.id = m.document JOIN banks b ON b.id = m.bank
"""


def list_documents(request: Request) -> object:
    """Answer the documents that pass the filters, the last updated first; `q` is part of the id or the text."""
    query = request.query_as(DocumentsQuery)
    clauses = window(query.time_field, "updated_at", query.start_date, query.end_date)
    clauses.append(tags_clause(query.tags, query.tags_match))
    if query.q:
        part = query.q.lower()
        clauses.append(Clause("(instr(lower(document_id), ?) OR instr(lower(text), ?))", (part, part)))
    with request.database.read() as db:
        clause = where([Clause("bank = ?", (find_bank(db, request.bank_id),)), *clauses])
        total = db.execute(f"SELECT count(*) FROM documents WHERE {clause.sql}", clause.values).fetchone()[0]  # noqa: S608 - our own clauses
        rows = db.execute(
            "SELECT *, (SELECT count(*) FROM memories m WHERE m.document = documents.id AND m.invalidated_at IS NULL)"  # noqa: S608 - our own clauses
            f" AS memories FROM documents WHERE {clause.sql}"
            f" ORDER BY {query.time_field or 'updated_at'} DESC, id DESC LIMIT ? OFFSET ?",
            (*clause.values, query.limit, query.offset),
        ).fetchall()
    items = [_listed(request.bank_id, row, query.q) for row in rows]
    page = {"total": total, "limit": query.limit, "offset": query.offset, "total_is_estimate": False}
    return {"items": items, **page}


def get_document(request: Request) -> object:
    """Answer one document with its text."""
    with request.database.read() as db:
        row = _find(db, request)
        counts = db.execute(
            "SELECT fact_type, count(*) AS count FROM memories"
            " WHERE document = ? AND invalidated_at IS NULL GROUP BY fact_type",
            (row["id"],),
        ).fetchall()
    by_type = {"world": 0, "experience": 0, "observation": 0} | {item["fact_type"]: item["count"] for item in counts}
    return {
        "id": row["document_id"],
        "bank_id": request.bank_id,
        "original_text": row["text"],
        "content_hash": row["content_hash"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "memory_unit_count": sum(by_type.values()),
        "nodes_by_fact_type": by_type,
        "tags": json.loads(row["tags"]),
        "document_metadata": _loaded(row["metadata"]),
        "retain_params": _loaded(row["retain_params"]),
        "observation_scopes": _loaded(row["observation_scopes"]),
        "attachments": None,
    }


def update_document(request: Request) -> object:
    """Replace the tags of the document and of its memories, or the scopes of its observations."""
    update = request.body_as(DocumentUpdate)
    values: dict[str, object] = {}
    if update.tags is not None:
        values["tags"] = stored_tags(update.tags)
    if update.observation_scopes is not None:
        values["observation_scopes"] = json.dumps(update.observation_scopes, ensure_ascii=False)
    if not values:
        raise Problem(422, "At least one field (tags, observation_scopes) must be provided")
    values["updated_at"] = stored(request.now)
    names = ", ".join(f"{name} = :{name}" for name in values)
    with request.database.write() as db:
        row = _find(db, request)
        values["id"] = row["id"]
        db.execute(f"UPDATE documents SET {names} WHERE id = :id", values)  # noqa: S608 - our own names
        db.execute(f"UPDATE memories SET {names} WHERE document = :id AND invalidated_at IS NULL", values)  # noqa: S608 - our own names
    return {"success": True}


def delete_document(request: Request) -> object:
    """Delete the document and its memories."""
    with request.database.write() as db:
        row = _find(db, request)
        memories = db.execute("SELECT id FROM memories WHERE document = ?", (row["id"],)).fetchall()
        drop_from_index(db, row["bank"], [memory["id"] for memory in memories])
        db.execute("DELETE FROM documents WHERE id = ?", (row["id"],))
        wrote(db, row["bank"], request.now)
    document_id = row["document_id"]
    message = f"Document '{document_id}' and {len(memories)} associated memory units deleted successfully"
    counts = {"document_id": document_id, "memory_units_deleted": len(memories)}
    return {"success": True, "message": message, **counts}


def get_document_history(request: Request) -> object:
    """Answer a document's history, which this bank does not keep."""
    return {"document_id": request.params["document_id"], "total": 0, "limit": 100, "offset": 0, "items": []}


def list_chunks(request: Request) -> object:
    """Answer the chunks of a document in their order."""
    query = request.query_as(ChunksQuery)
    with request.database.read() as db:
        document = _find(db, request)["id"]
        total = db.execute("SELECT count(*) FROM memories WHERE document = ?", (document,)).fetchone()[0]
        rows = db.execute(
            f"{_CHUNK} WHERE m.document = ? ORDER BY m.chunk_index LIMIT ? OFFSET ?",
            (document, query.limit, query.offset),
        ).fetchall()
    page = {"total": total, "limit": query.limit, "offset": query.offset}
    return {"items": [_chunk(row) for row in rows], **page}


def get_chunk(request: Request) -> object:
    """Answer one chunk by its id, which names bank and document."""
    wanted = request.params["chunk_id"]
    # Escaping leaves exactly two joints, between three names.
    names = [re.sub("~(7E|5F)", lambda found: chr(int(found[1], 16)), name) for name in wanted.split("_")]
    row = None
    if len(names) == 3 and names[2].isdecimal():  # noqa: PLR2004 - bank, document, index
        with request.database.read() as db:
            row = db.execute(
                f"{_CHUNK} WHERE b.bank_id = ? AND d.document_id = ? AND m.chunk_index = ?",
                (names[0], names[1], int(names[2])),
            ).fetchone()
    if row is None:
        raise Problem(404, "Chunk not found")
    return _chunk(row)


def list_tags(request: Request) -> object:
    """Answer the tags of the bank's memories with their counts, the most used first; `*` in `q` is any text."""
    query = request.query_as(TagsQuery)
    clause = Clause("1")
    if query.q:
        pattern = "*".join(re.sub(r"([*?\[])", r"[\1]", part) for part in query.q.lower().split("*"))
        clause = Clause("lower(value) GLOB ?", (pattern,))
    if query.source == "mental_models":
        clause = Clause("0")
    counted = (
        "SELECT value AS tag, count(*) AS count FROM memories, json_each(tags)"  # noqa: S608 - our own clause
        f" WHERE bank = ? AND invalidated_at IS NULL AND {clause.sql} GROUP BY value"
    )
    with request.database.read() as db:
        values = (find_bank(db, request.bank_id), *clause.values)
        total = db.execute(f"SELECT count(*) FROM ({counted})", values).fetchone()[0]  # noqa: S608 - our own statement
        rows = db.execute(
            f"{counted} ORDER BY 2 DESC, 1 LIMIT ? OFFSET ?", (*values, query.limit, query.offset)
        ).fetchall()
    items = [{"tag": row["tag"], "count": row["count"]} for row in rows]
    return {"items": items, "total": total, "limit": query.limit, "offset": query.offset}


def _find(db: sqlite3.Connection, request: Request) -> sqlite3.Row:
    row: sqlite3.Row | None = db.execute(
        "SELECT d.* FROM documents d JOIN banks b ON b.id = d.bank WHERE b.bank_id = ? AND d.document_id = ?",
        (request.bank_id, request.params["document_id"]),
    ).fetchone()
    if row is None:
        raise Problem(404, "Document not found")
    return row


def _listed(bank_id: str, row: sqlite3.Row, q: str | None) -> object:
    part = (q or "").lower()
    where_found: Mapping[str, str] = {"id": row["document_id"], "original_text": row["text"] or ""}
    return {
        "id": row["document_id"],
        "bank_id": bank_id,
        "content_hash": row["content_hash"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "text_length": row["text_length"],
        "memory_unit_count": row["memories"],
        "retain_params": _loaded(row["retain_params"]),
        "document_metadata": _loaded(row["metadata"]),
        "tags": json.loads(row["tags"]),
        "matched_fields": [name for name, text in where_found.items() if part and part in text.lower()],
    }


def _chunk(row: sqlite3.Row) -> object:
    return {
        "chunk_id": chunk_id(row["bank_id"], row["document_id"], row["chunk_index"]),
        "document_id": row["document_id"],
        "bank_id": row["bank_id"],
        "chunk_index": row["chunk_index"],
        "chunk_text": row["chunk_text"],
        "created_at": row["created_at"],
        "attachments": None,
    }


def _loaded(text: str | None) -> object:
    return None if text is None else json.loads(text)
