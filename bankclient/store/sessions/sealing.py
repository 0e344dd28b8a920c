"""From open turns to documents in the outbox: which batches are due, what is in them, and what stays.

Owns the order of a session's turns, what stands in for lines that are not there, and that a batch is one session's and
goes to one address. Adding a document and marking what is in it is one transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from bankclient.errors import OutboxFull
from bankclient.store.sessions.model import ANSWER_SECONDS, PassedOver, Sealed
from bankclient.store.sessions.rows import ADOPTED, OpenTurn, address_of, open_turns, pass_over, pieces_of
from bankclient.turns.cadence import IDLE_AFTER, due, group, overlap
from bankclient.turns.event import Turn
from bankclient.turns.frame import document

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from bankclient.store.database import Database
    from bankclient.store.outbox import Address, Outbox
    from bankclient.store.sessions.rows import Piece
    from bankclient.turns.cadence import SealReason
    from bankclient.turns.frame import Document

__all__ = ["FULL_SECONDS", "Sealing", "in_order"]

FULL_SECONDS: Final = 60.0
"""So long after the outbox was full it is tried again."""
_KEPT_TURNS = 64
"""So many turns of a session are remembered, without their texts, for events and lines that come late."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """An open turn with what would be sealed of it now, which is something."""

    row: OpenTurn
    turn: Turn
    pieces: tuple[Piece, ...]


class Sealing:
    """Seals the turns of one session at one time, in the transaction of its caller, which is the database's."""

    def __init__(
        self, database: Database, outbox: Outbox, tx: sqlite3.Connection, row: sqlite3.Row, *, now: float
    ) -> None:
        self._database = database
        self._outbox = outbox
        self._tx = tx
        self._row = row
        self._now = now

    def seal(self, reason: SealReason, *, awaits_lines: bool) -> Sealed:
        """Put what is due into the outbox, as much as it takes; a session that has ended is sealed whole.

        `awaits_lines` says that the session's transcript may still bring an answer.
        """
        tx, row = self._tx, self._row
        turns = in_order(open_turns(tx, row["id"]))
        awaited = [turn for turn in turns if awaits_lines and _is_awaited(turn, self._now)]
        if not row["open"]:
            reason = "cadence" if awaited else "session_end"
        elif reason == "cadence" and self._now - row["grew"] >= IDLE_AFTER:
            reason = "idle"
        sealed = self._seal_runs(_ready(turns, awaited), reason)
        _close_empty(tx, row, turns, reason)
        if sealed.documents:
            _let_go(tx, row)
        again_at = self._again_at(awaited, reason, sealed)
        tx.execute(
            "UPDATE sessions SET version = version + 1, due = ?, grew = min(grew, ?), held = ("
            "SELECT total(length(text)) FROM messages WHERE sealed IS NULL"
            " AND turn IN (SELECT id FROM turns WHERE session = sessions.id AND sealed IS NULL)) WHERE id = ?",
            (again_at, self._now, row["id"]),
        )
        return replace(sealed, again_at=again_at)

    def _seal_runs(self, ready: Iterable[_Ready], reason: SealReason) -> Sealed:
        """Seal run by run of turns that go to one address."""
        runs = [(address, list(run)) for address, run in groupby(ready, key=lambda one: one.row.address)]
        documents = turns = 0
        for number, (address, run) in enumerate(runs, start=1):
            if address is None:
                continue
            # Only the last run can still grow: the others have all they will ever have.
            why = reason if number == len(runs) else "flush"
            left = list(run)
            for batch in due([one.turn for one in run], self._row["every"], why):
                members, left = left[: len(batch)], left[len(batch) :]
                try:
                    self._add(address, members, first_turn=self._row["turns"] + turns + 1)
                except OutboxFull:
                    return Sealed(documents, turns, full=True)
                documents += 1
                turns += sum(turn.counts for turn in batch)
            if left:  # what comes after a turn in progress waits for it
                break
        return Sealed(documents, turns)

    def _add(self, address: Address, members: Sequence[_Ready], *, first_turn: int) -> None:
        """Make one document of the turns and mark them sealed. Raises `OutboxFull`, and has done nothing then."""
        row = self._row
        turns = [member.turn for member in members]
        made = document(
            turns,
            session_id=row["name"],
            agent=row["agent"],
            first_turn=first_turn,
            context=row["context"] or None,
            before=overlap(_sealed_before(self._tx, row, address), row["overlap"]),
        )
        with self._database.write() as tx:
            item = self._outbox.add_session(address, _fields(made), now=self._now).item
            for member in members:
                tx.executemany(
                    "UPDATE messages SET sealed = ? WHERE turn = ? AND number = ?",
                    [(item, member.row.id, piece.number) for piece in member.pieces],
                )
                # A prompt that the file holds in other words, or as something else than the person's.
                tx.execute("DELETE FROM messages WHERE turn = ? AND kind = 'told' AND sealed IS NULL", (member.row.id,))
                tx.execute("UPDATE turns SET sealed = ? WHERE id = ?", (item, member.row.id))
            counting = sum(turn.counts for turn in turns)
            tx.execute("UPDATE sessions SET turns = turns + ? WHERE id = ?", (counting, row["id"]))

    def _again_at(self, awaited: Sequence[OpenTurn], reason: SealReason, sealed: Sealed) -> float | None:
        if sealed.full:
            return self._now + FULL_SECONDS
        if awaited:
            return max(turn.stopped or 0.0 for turn in awaited) + ANSWER_SECONDS
        row = self._row
        left = self._tx.execute("SELECT 1 FROM turns WHERE session = ? AND sealed IS NULL LIMIT 1", (row["id"],))
        if left.fetchone() is None or reason == "idle" or not row["open"]:
            return None
        return float(min(row["grew"], self._now) + IDLE_AFTER)


def in_order(turns: Sequence[OpenTurn]) -> list[OpenTurn]:
    """Return turns, given as they were heard, as they were said.

    That is how their lines stand in the file; one without lines comes after those that were heard before it.
    """
    reached = (0, 0)
    places: dict[int, tuple[int, int]] = {}
    for turn in turns:
        places[turn.id] = turn.begins_at or reached
        reached = max(reached, places[turn.id])
    return sorted(turns, key=lambda turn: (places[turn.id], turn.id))


def _spoken(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Return pieces of a turn in order: prompts that were told, lines, answers that were told."""

    def rank(piece: Piece) -> int:
        return 1 if piece.place is not None else 0 if piece.message.role == "user" else 2

    return tuple(sorted(pieces, key=rank))


def _said(turn: OpenTurn) -> tuple[Piece, ...]:
    """Return what of a turn is to be sealed: its lines, and what was told of it where they do not say it.

    Where the file has lines of the turn, it also says what the person's prompt was. A prompt of a turn that neither
    stopped nor has a line is not kept.
    """
    stands = turn.stopped is not None and turn.begins_at is None
    left = (piece for piece in turn.pieces if not piece.sealed)
    return _spoken(piece for piece in left if piece.place is not None or piece.message.role == "assistant" or stands)


def _is_awaited(turn: OpenTurn, now: float) -> bool:
    """Whether the turn's answer may still come to be read. A clock that was set back awaits nothing."""
    if turn.stopped is None or not 0 <= now - turn.stopped < ANSWER_SECONDS:
        return False
    answers = [piece for piece in turn.pieces if piece.message.role == "assistant"]
    if any(piece.place is None and not piece.sealed for piece in answers):
        return True
    return not any(piece.kind == ADOPTED or piece.message.final for piece in answers)


def _ready(turns: Sequence[OpenTurn], awaited: Sequence[OpenTurn]) -> list[_Ready]:
    """Return the turns of which there is something to seal, and which of them are complete."""
    pieces = {turn.id: _said(turn) for turn in turns}
    speaking = [turn for turn in turns if pieces[turn.id]]
    stopped = {turn.name for turn in turns if turn.stopped is not None}
    grouped = group((piece.message for turn in speaking for piece in pieces[turn.id]), stopped)
    return [
        _Ready(
            turn,
            # The next one has begun, too, where so far nothing but its prompt event tells of it.
            Turn(made.messages, complete=(made.complete or turn is not turns[-1]) and turn not in awaited),
            pieces[turn.id],
        )
        for turn, made in zip(speaking, grouped, strict=True)
    ]


def _close_empty(
    tx: sqlite3.Connection,
    row: sqlite3.Row,
    turns: Sequence[OpenTurn],
    reason: SealReason,
) -> None:
    """Be done with turns of which there is nothing to seal, and nothing to come.

    A prompt that was told is given up only when the session is over, or rests: until then its line may come.
    """
    unanswered = 0
    for turn in turns:
        is_sealed = bool(turn.pieces) and all(piece.sealed for piece in turn.pieces)
        is_over = reason == "session_end" or (reason == "idle" and turn is not turns[-1])
        if _said(turn) or not (is_sealed or is_over):
            continue
        unanswered += sum(not piece.sealed for piece in turn.pieces)
        tx.execute("DELETE FROM messages WHERE turn = ? AND sealed IS NULL", (turn.id,))
        tx.execute(
            "UPDATE turns SET sealed = coalesce((SELECT max(sealed) FROM messages WHERE turn = turns.id), 0)"
            " WHERE id = ?",
            (turn.id,),
        )
    pass_over(tx, row["id"], {PassedOver.UNANSWERED: unanswered})


def _sealed_before(tx: sqlite3.Connection, row: sqlite3.Row, address: Address) -> list[Turn]:
    """Return the session's newest sealed turns that went to the address, as many as may stand in front of a batch."""
    rows = tx.execute(
        "SELECT t.*, f.url, f.key, f.bank, f.prefix, f.scoping FROM turns t JOIN filings f ON f.id = t.filing"
        " WHERE t.session = ? AND t.sealed > 0 ORDER BY t.sealed DESC, t.id DESC LIMIT ?",
        (row["id"], row["overlap"]),
    ).fetchall()
    turns = [pieces_of(tx, turn) for turn in reversed(rows) if address_of(turn) == address]
    said = [tuple(piece.message for piece in _spoken(pieces) if piece.message.text) for pieces in turns]
    return [Turn(messages, complete=True) for messages in said if messages]


def _let_go(tx: sqlite3.Connection, row: sqlite3.Row) -> None:
    """Let go of what is sealed: of texts that will not stand in front of the next batch, and of old turns."""
    session, keep = row["id"], row["overlap"]
    tx.execute(
        "UPDATE messages SET text = NULL WHERE sealed IS NOT NULL AND text IS NOT NULL"
        " AND turn IN (SELECT id FROM turns WHERE session = :session) AND turn NOT IN"
        " (SELECT id FROM turns WHERE session = :session AND sealed > 0 ORDER BY sealed DESC, id DESC LIMIT :keep)",
        {"session": session, "keep": keep},
    )
    tx.execute(
        "DELETE FROM turns WHERE session = :session AND sealed IS NOT NULL"
        " AND id NOT IN (SELECT id FROM turns WHERE session = :session ORDER BY id DESC LIMIT :keep)",
        {"session": session, "keep": max(keep, _KEPT_TURNS)},
    )


def _fields(made: Document) -> dict[str, Any]:
    """Return a document as the fields of an item; its tags are the address's."""
    fields = {
        "content": made.content,
        "document_id": made.document_id,
        "context": made.context,
        "metadata": dict(made.metadata),
        "timestamp": made.timestamp,
    }
    return {name: value for name, value in fields.items() if value is not None}
