"""Taking items in: new rows of batches and items, in the transaction of the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bankclient.store.outbox.model import BATCH_FACTS, SEAL_SECONDS, Kind
from bankclient.store.outbox.rows import lane_id, next_tick, tags_text
from bankclient.store.outbox.states import State, Step

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from bankclient.store.outbox.model import Address
    from bankclient.store.outbox.sealing import Item

__all__ = ["Intake", "Queued"]


class Queued(NamedTuple):
    """Whether a document is queued at all, and the newest item of it that was not forgotten."""

    at_all: bool
    wanted: int | None


class Intake:
    """Takes items in for one address at one time."""

    def __init__(self, tx: sqlite3.Connection, address: Address, now: float) -> None:
        self._tx = tx
        self._address = address
        self._now = now
        known = lane_id(tx, address.destination)
        if known is None:
            url, key = address.destination.url, address.destination.key
            known = tx.execute("INSERT INTO lanes (url, key) VALUES (?, ?)", (url, key)).lastrowid
        self._lane = known

    def queued(self, document: str) -> Queued:
        """Return what there is of that document that is neither stored nor dead."""
        row = self._tx.execute(
            "SELECT max(id) AS newest, max(CASE WHEN NOT forgotten THEN id END) AS wanted"
            " FROM items WHERE bank = ? AND document = ? AND lane = ? AND queued",
            (self._address.bank, document, self._lane),
        ).fetchone()
        return Queued(row["newest"] is not None, row["wanted"])

    def gather(self, item: Item, *, alone: bool) -> int:
        """Put the fact into the newest open batch that has room, or begin one for it; return the item's number.

        It begins one where its document is queued already (`alone`), so that batches that share a document stand in
        the order of acknowledgement.
        """
        number, size = next_tick(self._tx), len(item.body)
        newest = self._tx.execute(
            "SELECT id, items FROM batches WHERE state = 'open' AND lane = ? AND bank = ? AND tags = ?"
            " ORDER BY id DESC LIMIT 1",
            (self._lane, self._address.bank, tags_text(self._address)),
        ).fetchone()
        if alone or newest is None or newest["items"] >= BATCH_FACTS:
            batch = number
            self._insert_batch(number, Kind.FACT, items=1, size=size, until=self._now + SEAL_SECONDS)
        else:
            batch = newest["id"]
            self._tx.execute("UPDATE batches SET items = items + 1, size = size + ? WHERE id = ?", (size, batch))
        self._insert_item(number, batch, item, item.body)
        return number

    def seal(self, kind: Kind, items: Sequence[Item], *, body: bytes, size: int, operation_id: str) -> int:
        """Put the items in as a sealed batch of their own; return the number of the first."""
        number = next_tick(self._tx, len(items))
        self._insert_batch(number, kind, items=len(items), size=size, until=0.0)
        self._tx.execute(
            "UPDATE batches SET state = ?, step = ?, operation_id = ? WHERE id = ?",
            (State.SEALED, Step.SEND, operation_id, number),
        )
        self._tx.execute("INSERT INTO texts VALUES (?, ?)", (number, body))
        for offset, item in enumerate(items):
            self._insert_item(number + offset, number, item, None)
        return number

    def _insert_batch(self, number: int, kind: Kind, *, items: int, size: int, until: float) -> None:
        address, now = self._address, self._now
        self._tx.execute(
            "INSERT INTO batches (id, lane, kind, bank, tags, state, items, size, added, changed, until)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, self._lane, kind, address.bank, tags_text(address), State.OPEN, items, size, now, now, until),
        )

    def _insert_item(self, number: int, batch: int, item: Item, body: bytes | None) -> None:
        self._tx.execute(
            "INSERT INTO items (id, batch, lane, bank, document, content_hash, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, batch, self._lane, self._address.bank, item.document, item.content_hash, body),
        )
