"""The tables, as the migrations that make them.

A migration is a tuple of statements, done in one transaction; a new one goes to the end of `MIGRATIONS` and only adds
(tables, columns with defaults, indexes), so that an older program of the same `MAJOR` can still use the file. What
could not be read by it needs a new `MAJOR`.
"""

from __future__ import annotations

__all__ = ["MAJOR", "MIGRATIONS"]

MAJOR = 1
"""A file of a later major version is refused untouched."""

_OUTBOX = (
    # `tick` numbers whatever has an order: acknowledged items, hand-outs, answers. A wall clock steps, this does not.
    # `items` and `bytes` are what the outbox holds and has not stored, kept up by the triggers below.
    """CREATE TABLE counters (
        tick INTEGER NOT NULL, items INTEGER NOT NULL, bytes INTEGER NOT NULL
    )""",
    "INSERT INTO counters VALUES (0, 0, 0)",
    # One row a destination. `until`, `why`, `since`, `holds`, `asked` are its pause; `lease` names who sends for it.
    """CREATE TABLE lanes (
        id INTEGER PRIMARY KEY, url TEXT NOT NULL, key TEXT NOT NULL,
        until REAL NOT NULL DEFAULT 0, why TEXT NOT NULL DEFAULT '', since REAL, holds INTEGER NOT NULL DEFAULT 0,
        asked INTEGER NOT NULL DEFAULT 0, lease TEXT, holder TEXT, lease_until REAL NOT NULL DEFAULT 0,
        stored_at REAL, error TEXT NOT NULL DEFAULT '', error_at REAL,
        UNIQUE (url, key)
    )""",
    # The tick at which the newest stored batch of a kind had been accepted.
    """CREATE TABLE proofs (
        lane INTEGER NOT NULL REFERENCES lanes ON DELETE CASCADE, kind TEXT NOT NULL, tick INTEGER NOT NULL,
        PRIMARY KEY (lane, kind)
    ) WITHOUT ROWID""",
    # The id is the tick of the first item, so ids order batches as they were acknowledged. `ticket` is set while
    # somebody works on the batch.
    """CREATE TABLE batches (
        id INTEGER PRIMARY KEY, lane INTEGER NOT NULL REFERENCES lanes, kind TEXT NOT NULL, bank TEXT NOT NULL,
        tags TEXT NOT NULL, state TEXT NOT NULL, step TEXT, operation_id TEXT, server_operation TEXT,
        obsolete TEXT, items INTEGER NOT NULL, size INTEGER NOT NULL, added REAL NOT NULL,
        changed REAL NOT NULL, until REAL NOT NULL, why TEXT NOT NULL DEFAULT '', ticket INTEGER,
        sent INTEGER NOT NULL DEFAULT 0, accepted INTEGER, tries INTEGER NOT NULL DEFAULT 0,
        unanswered INTEGER NOT NULL DEFAULT 0, polls INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0,
        refused INTEGER, renamed INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, failed INTEGER,
        failing_since REAL, UNIQUE (operation_id, lane)
    )""",
    # Each for one question, and only of the rows that may be its answer.
    "CREATE INDEX batches_open ON batches (lane, bank, tags) WHERE state = 'open'",
    "CREATE INDEX batches_to_send ON batches (lane, unanswered / 3, id) WHERE step IN ('discard', 'send')",
    "CREATE INDEX batches_to_ask ON batches (lane, until) WHERE step IN ('retry', 'poll')",
    "CREATE INDEX batches_handed_out ON batches (lane) WHERE ticket IS NOT NULL",
    "CREATE INDEX batches_stored ON batches (id) WHERE state = 'stored'",
    # The sealed bytes of a batch until it is stored: apart, so that they are not written anew with each change of it.
    """CREATE TABLE texts (
        batch INTEGER PRIMARY KEY REFERENCES batches ON DELETE CASCADE, body BLOB NOT NULL
    )""",
    # `body` is an item's JSON while its batch is open. What was `forgotten` on its way stays so, whatever comes later.
    # `queued` says that the batch is neither stored nor dead; a trigger keeps it.
    """CREATE TABLE items (
        id INTEGER PRIMARY KEY, batch INTEGER NOT NULL REFERENCES batches ON DELETE CASCADE,
        lane INTEGER NOT NULL REFERENCES lanes, bank TEXT NOT NULL, document TEXT, content_hash TEXT, body BLOB,
        forgotten INTEGER NOT NULL DEFAULT 0, queued INTEGER NOT NULL DEFAULT 1
    )""",
    "CREATE INDEX items_by_batch ON items (batch)",
    "CREATE INDEX items_queued ON items (bank, document, lane, batch) WHERE queued",
    """CREATE TABLE forgotten (
        url TEXT NOT NULL, bank TEXT NOT NULL, document TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (url, bank, document)
    ) WITHOUT ROWID""",
    """CREATE TABLE losses (
        reason TEXT PRIMARY KEY, items INTEGER NOT NULL, bytes INTEGER NOT NULL, at REAL NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TRIGGER batch_came AFTER INSERT ON batches BEGIN
        UPDATE counters SET items = items + new.items, bytes = bytes + new.size;
    END""",
    """CREATE TRIGGER batch_changed AFTER UPDATE OF items, size, state ON batches
    WHEN new.items <> old.items OR new.size <> old.size OR (new.state = 'stored') <> (old.state = 'stored') BEGIN
        UPDATE counters SET items = items + (new.state <> 'stored') * new.items - (old.state <> 'stored') * old.items,
            bytes = bytes + (new.state <> 'stored') * new.size - (old.state <> 'stored') * old.size;
    END""",
    """CREATE TRIGGER batch_ended AFTER UPDATE OF state ON batches
    WHEN (new.state IN ('stored', 'dead')) <> (old.state IN ('stored', 'dead')) BEGIN
        UPDATE items SET queued = new.state NOT IN ('stored', 'dead') WHERE batch = new.id;
    END""",
    """CREATE TRIGGER batch_went AFTER DELETE ON batches WHEN old.state <> 'stored' BEGIN
        UPDATE counters SET items = items - old.items, bytes = bytes - old.size;
    END""",
)

_SESSIONS = (
    # An event is acknowledged when its commit is on the disk, and each page that a commit changes is written whole: so
    # these tables have no index that a small scan does as well without.
    #
    # What decides where a message goes beside its project, as the event said that it was captured under.
    """CREATE TABLE filings (
        id INTEGER PRIMARY KEY, url TEXT NOT NULL, key TEXT NOT NULL, bank TEXT NOT NULL, prefix TEXT,
        scoping TEXT NOT NULL
    )""",
    # `realm` is the project of sessions in process. `version` changes with every change of a session, `due` is when it
    # needs to be looked at, `cursor` and `generation` say how far its transcript was read and how often it was another
    # file, `turns` counts the user turns sealed, `held` the letters that are not.
    """CREATE TABLE sessions (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, agent TEXT NOT NULL, realm TEXT NOT NULL, nonce TEXT NOT NULL,
        version INTEGER NOT NULL DEFAULT 0, open INTEGER NOT NULL DEFAULT 1, began REAL NOT NULL, seen REAL NOT NULL,
        grew REAL NOT NULL, due REAL, project TEXT, root BLOB, how TEXT NOT NULL DEFAULT '',
        parent_agent TEXT, parent TEXT, transcript BLOB, cursor TEXT NOT NULL DEFAULT '',
        generation INTEGER NOT NULL DEFAULT 0, retain INTEGER NOT NULL DEFAULT 1, every INTEGER NOT NULL DEFAULT 1,
        overlap INTEGER NOT NULL DEFAULT 0, context TEXT NOT NULL DEFAULT '', turns INTEGER NOT NULL DEFAULT 0,
        held INTEGER NOT NULL DEFAULT 0, UNIQUE (name, agent, realm)
    )""",
    # Events and messages are known by digests of their ids.
    "CREATE TABLE events (digest BLOB PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE message_keys (number INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE)",
    # The turns of which an event reached us. `named` says whether `name` is the transcript's, `sealed` is the number of
    # the item that the turn is in, until more of it comes.
    """CREATE TABLE turns (
        id INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE, name TEXT NOT NULL,
        named INTEGER NOT NULL, filing INTEGER NOT NULL REFERENCES filings, project TEXT, redact INTEGER NOT NULL,
        stopped REAL, sealed INTEGER, UNIQUE (session, name)
    )""",
    # `kind`: `line` of the transcript, `told` by an event and waiting for its line, `adopted` when both are there.
    # The text goes once it is sealed; `words` is its digest.
    """CREATE TABLE messages (
        turn INTEGER NOT NULL REFERENCES turns ON DELETE CASCADE, number INTEGER NOT NULL, kind TEXT NOT NULL,
        role TEXT NOT NULL, text TEXT, words BLOB NOT NULL, key TEXT NOT NULL, at TEXT, final INTEGER NOT NULL,
        generation INTEGER NOT NULL, offset INTEGER NOT NULL, sealed INTEGER, PRIMARY KEY (turn, number)
    ) WITHOUT ROWID""",
    # The newest turns that were passed over because no event of theirs had reached us: where they begin, in case one
    # comes late. Of what was said in them nothing is kept.
    """CREATE TABLE passed_turns (
        session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE, name TEXT NOT NULL, cursor TEXT NOT NULL,
        offset INTEGER NOT NULL, at TEXT, messages INTEGER NOT NULL, PRIMARY KEY (session, name)
    ) WITHOUT ROWID""",
    """CREATE TABLE passed_over (
        session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE, reason TEXT NOT NULL, messages INTEGER NOT NULL,
        PRIMARY KEY (session, reason)
    ) WITHOUT ROWID""",
)

_ROOTS = (
    # The bytes of a path: a folder's name need not be text.
    """CREATE TABLE roots (
        name TEXT NOT NULL, root BLOB NOT NULL, seen REAL NOT NULL, PRIMARY KEY (name, root)
    ) WITHOUT ROWID""",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_OUTBOX, _SESSIONS, _ROOTS)
"""What makes a file of this `MAJOR`, in order; `user_version` counts how many of them are done."""
