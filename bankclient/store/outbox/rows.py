"""The rows of the outbox: reading them as values, moving a batch, sealing its bytes.

Each function acts in the transaction of its caller. What follows from what is decided by `states` and `answers`; this
module only keeps it.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

from bankclient.store.outbox.model import FORGOTTEN, Address, Batch, Destination, Document, Kind, Progress
from bankclient.store.outbox.sealing import read_items, request_body
from bankclient.store.outbox.states import Effect, Event, State, Step, move

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

__all__ = [
    "BatchWriter",
    "batches",
    "documents_of",
    "find",
    "lane_id",
    "lose",
    "next_tick",
    "tags_text",
    "text_of",
]

_PROGRESS = tuple(field.name for field in fields(Progress))


def next_tick(tx: sqlite3.Connection, count: int = 1) -> int:
    """Take `count` numbers of the counter and return the first."""
    row = tx.execute("UPDATE counters SET tick = tick + ? RETURNING tick", (count,)).fetchone()
    return int(row["tick"]) - count + 1


def lane_id(tx: sqlite3.Connection, destination: Destination) -> int | None:
    """Return the number of the destination's row, `None` where nothing was ever queued for it."""
    row = tx.execute("SELECT id FROM lanes WHERE url = ? AND key = ?", (destination.url, destination.key)).fetchone()
    return None if row is None else int(row["id"])


def tags_text(address: Address) -> str:
    """Return the tags as they stand in a row."""
    return json.dumps(address.tags)


def batches(tx: sqlite3.Connection, where: str, parameters: Sequence[object] = ()) -> list[Batch]:
    """Return the batches `b` of lanes `l` that the condition (and what follows it) picks."""
    query = f"SELECT b.*, l.url, l.key FROM batches b JOIN lanes l ON l.id = b.lane WHERE {where}"  # noqa: S608 - the condition is ours
    rows = tx.execute(query, parameters)
    return [_batch(row) for row in rows]


def find(tx: sqlite3.Connection, where: str, parameters: Sequence[object] = ()) -> Batch | None:
    """Return the first of `batches`, `None` if there is none."""
    found = batches(tx, f"{where} LIMIT 1", parameters)
    return found[0] if found else None


def documents_of(tx: sqlite3.Connection, batch_id: int) -> tuple[Document, ...]:
    """Return what the batch writes, in order."""
    query = "SELECT document, content_hash, forgotten FROM items WHERE batch = ? ORDER BY id"
    rows = tx.execute(query, (batch_id,))
    return tuple(Document(row["document"], row["content_hash"], bool(row["forgotten"])) for row in rows)


def text_of(tx: sqlite3.Connection, batch_id: int) -> bytes | None:
    """Return the request's bytes, for an open batch as they would be; `None` where the text is gone."""
    row = tx.execute("SELECT body FROM texts WHERE batch = ?", (batch_id,)).fetchone()
    if row is not None:
        return bytes(row["body"])
    items = tx.execute(
        "SELECT body FROM items WHERE batch = ? AND body IS NOT NULL ORDER BY id", (batch_id,)
    ).fetchall()
    return request_body((item["body"] for item in items), "") if items else None


def lose(tx: sqlite3.Connection, reason: str, items: int, size: int, now: float) -> None:
    """Count what was given up."""
    tx.execute(
        "INSERT INTO losses VALUES (?, ?, ?, ?) ON CONFLICT (reason) DO UPDATE SET items = items + excluded.items,"
        " bytes = bytes + excluded.bytes, at = excluded.at",
        (reason, items, size, now),
    )


class _Piece(NamedTuple):
    """One item of a batch: its number, its document and its JSON."""

    id: int
    document: str | None
    body: bytes


class BatchWriter:
    """Moves batches in the transaction `tx`; `new_id` draws operation ids."""

    def __init__(self, tx: sqlite3.Connection, new_id: Callable[[], str], now: float) -> None:
        self._tx = tx
        self._new_id = new_id
        self._now = now

    def move(
        self,
        batch: Batch,
        event: Event,
        *,
        progress: Progress | None = None,
        until: float = 0.0,
        why: str = "",
        **also: object,
    ) -> None:
        """Do what `states.TABLE` says of `event`; whoever worked on the batch does so no more.

        `also` are further columns to set. Raises `IllegalMove`.
        """
        to = move(batch.state, event)
        if to.state is None:
            lose(self._tx, why, batch.items, batch.size, self._now)
            self._tx.execute("DELETE FROM batches WHERE id = ?", (batch.id,))
            return
        step, obsolete = (batch.step, batch.obsolete) if to.keeps_step else (to.step, None)
        if Effect.DISCARD in to.effects and batch.accepted is not None:
            step, obsolete = Step.DISCARD, batch.server_operation or batch.operation_id
        columns: dict[str, object] = {
            "state": to.state,
            "step": step,
            "obsolete": obsolete,
            "until": until,
            "why": why,
            "changed": self._now,
            "ticket": None,
            **{name: getattr(progress or batch.progress, name) for name in _PROGRESS},
            **also,
        }
        if Effect.CLEAR_TEXT in to.effects:
            self._tx.execute("DELETE FROM texts WHERE batch = ?", (batch.id,))
        if Effect.PROVE in to.effects:
            self._prove(batch)
        pieces = self._pieces(batch) if {Effect.SEAL_ANEW, Effect.SPLIT} & to.effects else []
        self._update(batch.id, columns)
        if Effect.SPLIT in to.effects:
            self._split(batch, pieces)
        elif Effect.SEAL_ANEW in to.effects:
            self._seal(batch, pieces)

    def without(self, batch: Batch, document: str) -> int:
        """Take the document out of a batch that no server can have; return how many items went."""
        pieces = self._pieces(batch)
        kept = [piece for piece in pieces if piece.document != document]
        if self._keep_only(batch, pieces, kept) and batch.operation_id is not None:
            self._fix(batch, kept, batch.operation_id)
        return len(pieces) - len(kept)

    def _prove(self, batch: Batch) -> None:
        self._tx.execute(
            "INSERT INTO proofs SELECT lane, kind, accepted FROM batches WHERE id = ?"
            " ON CONFLICT (lane, kind) DO UPDATE SET tick = max(tick, excluded.tick)",
            (batch.id,),
        )

    def _pieces(self, batch: Batch) -> list[_Piece]:
        rows = self._tx.execute(
            "SELECT id, document, body FROM items WHERE batch = ? ORDER BY id", (batch.id,)
        ).fetchall()
        if batch.state is State.OPEN:
            return [_Piece(row["id"], row["document"], row["body"]) for row in rows]
        if batch.kind is Kind.CALLER:
            return []
        body = text_of(self._tx, batch.id) or b""
        return [_Piece(row["id"], row["document"], item) for row, item in zip(rows, read_items(body), strict=True)]

    def _seal(self, batch: Batch, pieces: list[_Piece]) -> None:
        self._update(batch.id, {"sent": 0, "accepted": None, "server_operation": None})
        if batch.kind is Kind.CALLER:
            return
        forgotten = {document.id for document in documents_of(self._tx, batch.id) if document.forgotten}
        kept = [piece for piece in pieces if piece.document not in forgotten]
        if self._keep_only(batch, pieces, kept):
            self._fix(batch, kept, self._new_id())

    def _split(self, batch: Batch, pieces: list[_Piece]) -> None:
        middle = (len(pieces) + 1) // 2
        later = pieces[middle:]
        # What no progress, answer or byte of the first half is in: those columns have defaults, or are sealed below.
        self._tx.execute(
            "INSERT INTO batches"
            " (id, lane, kind, bank, tags, state, step, obsolete, items, size, added, changed, until, why)"
            " SELECT ?, lane, kind, bank, tags, state, step, obsolete, 0, 0, added, changed, until, why"
            " FROM batches WHERE id = ?",
            (later[0].id, batch.id),
        )
        self._tx.execute("UPDATE items SET batch = ? WHERE batch = ? AND id >= ?", (later[0].id, batch.id, later[0].id))
        halves = batches(self._tx, "b.id IN (?, ?) ORDER BY b.id", (batch.id, later[0].id))
        for half, part in zip(halves, (pieces[:middle], later), strict=True):
            self._seal(half, part)

    def _fix(self, batch: Batch, pieces: list[_Piece], operation_id: str) -> None:
        """Fix the bytes of what is left, under that id."""
        body = request_body((piece.body for piece in pieces), operation_id)
        self._update(batch.id, {"operation_id": operation_id})
        self._tx.execute("INSERT OR REPLACE INTO texts VALUES (?, ?)", (batch.id, body))
        self._tx.execute("UPDATE items SET body = NULL WHERE batch = ? AND body IS NOT NULL", (batch.id,))

    def _keep_only(self, batch: Batch, pieces: list[_Piece], kept: list[_Piece]) -> bool:
        """Let go of all but `kept`, counted as forgotten; return whether anything of the batch is left."""
        gone = [piece for piece in pieces if piece not in kept]
        if gone:
            lose(self._tx, FORGOTTEN, len(gone), sum(len(piece.body) for piece in gone), self._now)
            self._tx.executemany("DELETE FROM items WHERE id = ?", [(piece.id,) for piece in gone])
        if kept:
            self._update(batch.id, {"items": len(kept), "size": sum(len(piece.body) for piece in kept)})
        else:
            self._tx.execute("DELETE FROM batches WHERE id = ?", (batch.id,))
        return bool(kept)

    def _update(self, batch_id: int, columns: dict[str, object]) -> None:
        assignments = ", ".join(f"{column} = ?" for column in columns)
        self._tx.execute(f"UPDATE batches SET {assignments} WHERE id = ?", (*columns.values(), batch_id))  # noqa: S608 - column names are ours


def _batch(row: sqlite3.Row) -> Batch:
    progress = {name: row[name] for name in _PROGRESS}
    return Batch(
        id=row["id"],
        kind=Kind(row["kind"]),
        address=Address(Destination(row["url"], row["key"]), row["bank"], tuple(json.loads(row["tags"]))),
        state=State(row["state"]),
        step=None if row["step"] is None else Step(row["step"]),
        operation_id=row["operation_id"],
        server_operation=row["server_operation"],
        obsolete=row["obsolete"],
        items=row["items"],
        size=row["size"],
        added=row["added"],
        changed=row["changed"],
        until=row["until"],
        why=row["why"],
        sent=row["sent"],
        accepted=row["accepted"],
        handed_out=row["ticket"] is not None,
        progress=Progress(**{**progress, "renamed": bool(row["renamed"])}),
    )
