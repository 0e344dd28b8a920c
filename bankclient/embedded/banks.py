"""Banks: finding, creating, listing, changing, deleting them, and their statistics.

Owns the table `banks` and the life of a bank's search index. Configuration values stand in `bank_config`.
"""

from __future__ import annotations

import json
import sqlite3  # noqa: TC003 - handlers are annotated with it
from typing import TYPE_CHECKING, Any

from bankclient.embedded.bank_config import checked_updates, effective
from bankclient.embedded.bodies import BankFields, ConfigUpdate
from bankclient.embedded.moments import stored
from bankclient.embedded.queries import ListQuery, StatsQuery
from bankclient.embedded.schema import drop_index, make_index
from bankclient.embedded.wire import Problem, Request

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

__all__ = [
    "bank_row",
    "delete_bank",
    "find_bank",
    "get_config",
    "get_stats",
    "list_banks",
    "obtain_bank",
    "patch_bank",
    "patch_config",
    "put_bank",
    "reset_config",
    "settings_of",
    "wrote",
]

_MAX_BANK_BYTES = 192
_CONTENTS = """
    SELECT (SELECT count(*) FROM memories WHERE bank = :bank) + (SELECT count(*) FROM documents WHERE bank = :bank)
        + (SELECT count(DISTINCT lower(value)) FROM memories, json_each(entities) WHERE bank = :bank)
"""


def bank_row(db: sqlite3.Connection, bank_id: str) -> int | None:
    """Return the bank's row id, None where there is no such bank."""
    row = db.execute("SELECT id FROM banks WHERE bank_id = ?", (bank_id,)).fetchone()
    return None if row is None else int(row["id"])


def find_bank(db: sqlite3.Connection, bank_id: str) -> int:
    """Return the bank's row id. Raises `Problem` 404."""
    bank = bank_row(db, bank_id)
    if bank is None:
        raise Problem(404, f"Bank '{bank_id}' not found")
    return bank


def obtain_bank(db: sqlite3.Connection, bank_id: str, now: datetime) -> int:
    """Return the bank's row id, creating it where it is missing, as writes to the server do. Raises `Problem` 400."""
    found = bank_row(db, bank_id)
    if found is not None:
        return found
    _check_bank_id(bank_id)
    created = db.execute(
        "INSERT INTO banks (bank_id, name, created_at, updated_at) VALUES (?, ?, ?, ?) RETURNING id",
        (bank_id, bank_id, stored(now), stored(now)),
    ).fetchone()
    bank = int(created["id"])
    db.execute(make_index(bank))
    return bank


def settings_of(db: sqlite3.Connection, bank: int) -> dict[str, Any]:
    """Return the bank's effective configuration."""
    return effective(_overrides(db, bank))


def wrote(db: sqlite3.Connection, bank: int, now: datetime) -> None:
    """Note that memories of the bank were written at `now`."""
    db.execute("UPDATE banks SET written_at = ? WHERE id = ?", (stored(now), bank))


def list_banks(request: Request) -> object:
    """Answer the list of banks, the one written last first; `q` is part of the id or the name."""
    query = request.query_as(ListQuery)
    where, values = "", []
    if query.q:
        where, values = " WHERE instr(lower(bank_id), ?) OR instr(lower(name), ?)", [query.q.lower()] * 2
    with request.database.read() as db:
        total = db.execute(f"SELECT count(*) FROM banks{where}", values).fetchone()[0]  # noqa: S608 - a constant
        rows = db.execute(
            f"SELECT * FROM banks{where} ORDER BY updated_at DESC, id LIMIT ? OFFSET ?",  # noqa: S608 - a constant
            [*values, query.limit, query.offset],
        ).fetchall()
        banks = [_listed(db, row) for row in rows]
    return {"banks": banks, "total": total, "limit": query.limit, "offset": query.offset}


def put_bank(request: Request) -> object:
    """Create the bank, or change the fields that are given."""
    fields = request.body_as(BankFields)
    with request.database.write() as db:
        return _change(db, obtain_bank(db, request.bank_id, request.now), fields, request.now)


def patch_bank(request: Request) -> object:
    """Change the fields that are given of a bank that exists."""
    fields = request.body_as(BankFields)
    with request.database.write() as db:
        return _change(db, find_bank(db, request.bank_id), fields, request.now)


def delete_bank(request: Request) -> object:
    """Delete the bank with all that it holds; deleting a missing one succeeds too."""
    deleted = 0
    with request.database.write() as db:
        bank = bank_row(db, request.bank_id)
        if bank is not None:
            # The server counts memories, documents and entities together.
            deleted = db.execute(_CONTENTS, {"bank": bank}).fetchone()[0]
            db.execute(drop_index(bank))
            db.execute("DELETE FROM banks WHERE id = ?", (bank,))
    message = f"Bank '{request.bank_id}' and all associated data deleted successfully"
    return {"success": True, "message": message, "deleted_count": deleted}


def get_config(request: Request) -> object:
    """Answer the bank's configuration and what of it was set on this bank."""
    with request.database.read() as db:
        return _config(db, find_bank(db, request.bank_id), request.bank_id)


def patch_config(request: Request) -> object:
    """Set configuration values; creates the bank."""
    updates = checked_updates(request.body_as(ConfigUpdate).updates)
    with request.database.write() as db:
        bank = obtain_bank(db, request.bank_id, request.now)
        _save(db, bank, _overrides(db, bank) | updates, request.now)
        return _config(db, bank, request.bank_id)


def reset_config(request: Request) -> object:
    """Take back every configuration value that was set on the bank, if it exists."""
    with request.database.write() as db:
        bank = bank_row(db, request.bank_id)
        if bank is None:
            return {"bank_id": request.bank_id, "config": effective({}), "overrides": {}}
        _save(db, bank, {}, request.now)
        return _config(db, bank, request.bank_id)


def get_stats(request: Request) -> object:
    """Answer what the bank holds, counted now."""
    request.query_as(StatsQuery)
    with request.database.read() as db:
        bank = find_bank(db, request.bank_id)
        by_type = _counts(
            db, "SELECT fact_type, count(*) FROM memories WHERE bank = ? AND invalidated_at IS NULL GROUP BY 1", bank
        )
        by_status = _counts(db, "SELECT status, count(*) FROM operations WHERE bank = ? GROUP BY 1", bank)
        documents = db.execute("SELECT count(*) FROM documents WHERE bank = ?", (bank,)).fetchone()[0]
        written = db.execute("SELECT written_at FROM banks WHERE id = ?", (bank,)).fetchone()["written_at"]
    return {
        "bank_id": request.bank_id,
        "total_nodes": sum(by_type.values()),
        "total_links": 0,
        "total_documents": documents,
        "nodes_by_fact_type": by_type,
        "links_by_link_type": {},
        "links_by_fact_type": {},
        "links_breakdown": {},
        "pending_operations": 0,
        "failed_operations": 0,
        "operations_by_status": by_status,
        "last_consolidated_at": None,
        "last_memory_write_at": written if by_type else None,
        "pending_consolidation": 0,
        "failed_consolidation": 0,
        "total_observations": 0,
    }


def _check_bank_id(bank_id: str) -> None:
    if bank_id.startswith("_"):
        raise Problem(400, "Bank id must not start with '_': that prefix is reserved")
    if any(ord(letter) < ord(" ") or "\x7f" <= letter <= "\x9f" for letter in bank_id):
        raise Problem(400, "Bank id must not contain control characters")
    if len(bank_id.encode()) > _MAX_BANK_BYTES:
        raise Problem(400, f"Bank id is too long: at most {_MAX_BANK_BYTES} bytes of UTF-8 are allowed")


def _change(db: sqlite3.Connection, bank: int, fields: BankFields, now: datetime) -> object:
    given = fields.model_dump(exclude_none=True)
    name = given.pop("name", None)
    # The older names of the same values: a newer name that is given too wins.
    mission = [given.pop(old, None) for old in ("reflect_mission", "mission", "background")]
    traits: dict[str, int] = given.pop("disposition", {})
    updates = {f"disposition_{trait}": value for trait, value in traits.items()} | given
    if any(value is not None for value in mission):
        updates["reflect_mission"] = next((value for value in mission if value), "")
    if name is not None:
        db.execute("UPDATE banks SET name = ? WHERE id = ?", (name, bank))
    _save(db, bank, _overrides(db, bank) | checked_updates(updates), now)
    row = db.execute("SELECT * FROM banks WHERE id = ?", (bank,)).fetchone()
    shown = _shown(row)
    return {**shown, "background": shown["mission"]}


def _save(db: sqlite3.Connection, bank: int, overrides: Mapping[str, object], now: datetime) -> None:
    # A value of null takes the setting back.
    config = json.dumps({name: value for name, value in overrides.items() if value is not None}, ensure_ascii=False)
    db.execute("UPDATE banks SET config = ?, updated_at = ? WHERE id = ?", (config, stored(now), bank))


def _overrides(db: sqlite3.Connection, bank: int) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(db.execute("SELECT config FROM banks WHERE id = ?", (bank,)).fetchone()[0])
    return config


def _config(db: sqlite3.Connection, bank: int, bank_id: str) -> object:
    overrides = _overrides(db, bank)
    return {"bank_id": bank_id, "config": effective(overrides), "overrides": overrides}


def _shown(row: sqlite3.Row) -> dict[str, object]:
    config = effective(json.loads(row["config"]))
    traits = ("skepticism", "literalism", "empathy")
    return {
        "bank_id": row["bank_id"],
        "name": row["name"],
        "disposition": {trait: config[f"disposition_{trait}"] or 3 for trait in traits},
        "mission": config["reflect_mission"] or "",
    }


def _listed(db: sqlite3.Connection, row: sqlite3.Row) -> object:
    facts = db.execute(
        "SELECT count(*) FROM memories WHERE bank = ? AND invalidated_at IS NULL", (row["id"],)
    ).fetchone()
    last = db.execute("SELECT max(updated_at) FROM documents WHERE bank = ?", (row["id"],)).fetchone()
    return {
        **_shown(row),
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "fact_count": facts[0],
        "last_document_at": last[0],
        "last_write_at": row["written_at"],
        "display_alias": None,
        "matched_aliases": [],
    }


def _counts(db: sqlite3.Connection, statement: str, bank: int) -> dict[str, int]:
    return dict(db.execute(statement, (bank,)).fetchall())
