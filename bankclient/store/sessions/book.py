"""`Sessions`: the one face of this package, each of its acts a transaction or a few.

Owns the order of reading and writing: files are read outside of transactions, and what they brought is kept only if the
session is still as it was when they were looked at.
"""

from __future__ import annotations

import secrets
from contextlib import closing
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from bankclient.errors import OutboxFull
from bankclient.store.sessions import upkeep
from bankclient.store.sessions.hearing import Arrival, record
from bankclient.store.sessions.listing import keep_list, read_list
from bankclient.store.sessions.model import Sealed, SessionKey, Taken
from bankclient.store.sessions.reading import known_keys, look_through, read, snapshot, store
from bankclient.store.sessions.rows import find_session, is_full, key_of, path_text, session_of
from bankclient.store.sessions.sealing import Sealing
from bankclient.store.sessions.transcripts import open_transcript
from bankclient.turns.cadence import IDLE_AFTER
from bankclient.turns.event import Event
from bankclient.turns.transcript import claude_code, codex

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence

    from bankclient.project import Project
    from bankclient.store.database import Database
    from bankclient.store.outbox import Outbox
    from bankclient.store.sessions.model import Filing, Recorded, Session, Terms
    from bankclient.store.sessions.reading import Find, Snapshot
    from bankclient.store.sessions.transcripts import Transcript
    from bankclient.turns.cadence import SealReason
    from bankclient.turns.transcript.dialect import Dialect, Record

__all__ = ["DIALECTS", "Sessions"]

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {"claude_code": claude_code.read_record, "codex": codex.read_record}
)
"""How the transcripts of which agents are read. Of another agent, what its events tell is all there is."""

_TRIES = 5
_PRUNE_SECONDS = 86_400.0
_CLOCK_SLACK = 60.0
"""A time to look at a session that is further off than any wait is a clock's that was set back since."""


class Sessions:
    """Events, messages, cursors and sessions, on the tables of a `Database` that its outbox shares.

    Safe to share between threads; other processes may do the same at the same time. Everything raises `StoreError`
    where the disk fails, and has changed nothing then. To be called outside of transactions, since files are read.
    """

    def __init__(
        self,
        database: Database,
        outbox: Outbox,
        *,
        dialects: Mapping[str, Dialect] = DIALECTS,
        open_transcript: Callable[[str], Transcript | None] = open_transcript,
    ) -> None:
        self._database = database
        self._outbox = outbox
        self._dialects = dialects
        self._open = open_transcript
        self._pruned = 0.0

    def record(
        self,
        event: Event,
        filing: Filing,
        project: Project,
        terms: Terms,
        *,
        now: float,
        realm: str = "",
        parent: str | None = None,
    ) -> Recorded:
        """Acknowledge an event: when this returns, it is on the disk. The same event again changes nothing.

        `project` is that of the event's folder, `realm` the name that tells sessions in process apart, `parent` what
        HINDSIGHT_PARENT_SESSION says. Raises `InvalidInput` where the filing makes a bank name that no server takes.
        """
        arrival = Arrival.of(
            event,
            SessionKey(event.agent, event.session_id, realm),
            filing,
            project,
            terms,
            parent=parent,
            now=now,
        )
        finds_file = event.kind != "session_end" or self._is_there(event.transcript_path)
        with self._database.write() as tx:
            return record(tx, arrival, nonce=_nonce(), finds_file=finds_file)

    def take_in(self, key: SessionKey, *, now: float) -> Taken:
        """Read what the session's transcript holds beyond what was read, and keep what was said in captured turns.

        Of a session that has ended a last line without an end is read too. A file that is not there changes nothing.
        """
        return self._advance(key, None, now).taken

    def take_messages(
        self,
        key: SessionKey,
        items: Sequence[Record],
        filing: Filing,
        project: Project,
        terms: Terms,
        *,
        event_id: str,
        whole: bool,
        now: float,
    ) -> Taken:
        """Acknowledge what a program hands over at the end of a turn: when this returns, it is on the disk.

        `whole` says that `items` are the whole conversation, compared by content; else they are the new ones. The same
        event again changes nothing. Raises `InvalidInput` as `record` does, and `OutboxFull` where too much is not
        sealed yet.
        """
        event = Event(kind="step", agent=key.agent, session_id=key.id, event_id=event_id)
        arrival = Arrival.of(event, key, filing, project, terms, parent=None, now=now)
        while True:
            with self._database.read() as tx:
                row = find_session(tx, key)
            nonce = _nonce() if row is None else row["nonce"]
            listing = read_list(row, items, key, nonce=nonce, whole=whole, redact=terms.redact)
            with self._database.write() as tx:
                if _version(find_session(tx, key)) != _version(row):
                    continue
                if row is not None and is_full(row):
                    raise OutboxFull(f"session {key.id} holds all that one may, unsealed; `bankclient queue` says why")
                if not record(tx, arrival, nonce=nonce).fresh:
                    return Taken()
                current = find_session(tx, key)
                assert current is not None  # noqa: S101 - it was just recorded
                return Taken(keep_list(tx, current, listing, filing, terms, now=now))

    def seal(self, key: SessionKey, reason: SealReason = "cadence", *, now: float) -> Sealed:
        """Read as `take_in` does, and put what is due into the outbox, by the terms of the session's newest event.

        On `cadence` that is what an idle hour and the session's end leave to seal as well.
        """
        return self._advance(key, reason, now)

    def sweep(self, reason: SealReason = "cadence", *, now: float) -> dict[SessionKey, Sealed]:
        """Seal each session that is due, or for another reason than `cadence` each that has something open.

        What a process left undone when it died is due, too.
        """
        if abs(now - self._pruned) >= _PRUNE_SECONDS:
            with self._database.write() as tx:
                upkeep.prune(tx, now)
            self._pruned = now
        return {key: self.seal(key, reason, now=now) for key in self._keys(reason, now)}

    def next_due(self, *, now: float) -> float | None:
        """Return when `sweep` has something to do next, `None` if only an event can change that."""
        with self._database.read() as tx:
            due = tx.execute("SELECT min(due) AS due FROM sessions WHERE due IS NOT NULL").fetchone()["due"]
        return None if due is None else now if due > _too_far(now) else float(due)

    def session(self, key: SessionKey) -> Session | None:
        """Return the session as it stands, `None` where nothing of it was ever heard."""
        with self._database.read() as tx:
            row = find_session(tx, key)
            return None if row is None else session_of(tx, row)

    def sessions(self, *, limit: int = 100, before: float | None = None) -> tuple[Session, ...]:
        """Return sessions, the one last seen first; `before` is the `seen` of the last of the page before."""
        with self._database.read() as tx:
            rows = tx.execute(
                "SELECT * FROM sessions WHERE ? IS NULL OR seen < ? ORDER BY seen DESC LIMIT ?", (before, before, limit)
            ).fetchall()
            return tuple(session_of(tx, row) for row in rows)

    def rekey(self, url: str, old: str, new: str) -> None:
        """Let what is not sealed yet for `url` go out under another key's fingerprint. Only a person may want this."""
        with self._database.write() as tx:
            tx.execute("UPDATE filings SET key = ? WHERE url = ? AND key = ?", (new, url, old))

    def _keys(self, reason: SealReason, now: float) -> list[SessionKey]:
        """Return the sessions to look at: those that are due, and those with something open if all are wanted."""
        with self._database.read() as tx:
            rows = tx.execute(
                "SELECT agent, name, realm FROM sessions WHERE due IS NOT NULL AND (due <= :now OR due > :far)"
                " UNION SELECT agent, name, realm FROM sessions"
                " WHERE :every AND id IN (SELECT session FROM turns WHERE sealed IS NULL)",
                {"now": now, "far": _too_far(now), "every": reason != "cadence"},
            )
            return [key_of(row) for row in rows]

    def _advance(self, key: SessionKey, reason: SealReason | None, now: float) -> Sealed:
        """Read, and seal if there is a reason, in one transaction: whoever seals has read what there is."""
        for _ in range(_TRIES):
            with self._database.read() as tx:
                row = find_session(tx, key)
                before = None if row is None else snapshot(tx, row)
            if before is None:
                break
            found = self._look(before)
            with self._database.write() as tx:
                taken = store(tx, before, found, now)
                if taken is not None:
                    sealed = Sealed() if reason is None else self._seal(tx, key, reason, now)
                    return replace(sealed, taken=taken)
        return Sealed()  # whoever changed the session each time goes on with it

    def _seal(self, tx: sqlite3.Connection, key: SessionKey, reason: SealReason, now: float) -> Sealed:
        row = find_session(tx, key)
        if row is None:
            return Sealed()
        awaits_lines = row["transcript"] is not None and row["agent"] in self._dialects
        return Sealing(self._database, self._outbox, tx, row, now=now).seal(reason, awaits_lines=awaits_lines)

    def _look(self, before: Snapshot) -> Find | None:
        """Return what is new in the session's transcript, `None` if there is nothing to be read."""
        row = before.row
        dialect, path = self._dialects.get(row["agent"]), path_text(row["transcript"])
        # A session that holds all it may reads on when that is sealed: what is in the file is not lost.
        wanted = row["parent"] is None and (before.turns or (row["retain"] and row["open"])) and not before.full
        if dialect is None or path is None or not wanted:
            return None
        transcript = self._open(path)
        if transcript is None:
            return None
        with closing(transcript):
            try:
                reading = read(before, dialect, transcript)
                with self._database.read() as tx:
                    known = known_keys(tx, row["agent"], reading.messages)
                return look_through(before, reading, known, transcript.read_at)
            except OSError:  # the file's own disk: it is read the next time
                return None

    def _is_there(self, path: str | None) -> bool:
        transcript = self._open(path) if path else None
        if transcript is not None:
            transcript.close()
        return transcript is not None


def _nonce() -> str:
    return secrets.token_hex(4)


def _version(row: sqlite3.Row | None) -> int | None:
    return None if row is None else row["version"]


def _too_far(now: float) -> float:
    return now + IDLE_AFTER + _CLOCK_SLACK
