"""The file's tables, as a list of migrations counted by SQLite's `user_version`.

A migration is a tuple of statements and is never edited once released; version N is the file after the first N of
them. This module knows no connection.
"""

from __future__ import annotations

__all__ = ["MIGRATIONS", "VERSION", "drop_index", "index_table", "make_index"]

_FIRST = (
    """
    CREATE TABLE banks (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        bank_id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        config TEXT NOT NULL DEFAULT '{}',
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        written_at TEXT
    )
    """,
    """
    CREATE TABLE documents (
        id INTEGER PRIMARY KEY,
        bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
        document_id TEXT NOT NULL,
        text TEXT,
        text_length INTEGER NOT NULL,
        content_hash TEXT NOT NULL,
        tags TEXT NOT NULL,
        metadata TEXT,
        retain_params TEXT,
        observation_scopes TEXT,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        UNIQUE (bank, document_id)
    )
    """,
    "CREATE INDEX documents_by_update ON documents (bank, updated_at)",
    # A memory is one chunk of its document. `chunk_text` is kept only once `text` was edited away from it;
    # `text_key` finds the same text in other documents.
    """
    CREATE TABLE memories (
        id INTEGER PRIMARY KEY,
        memory_id TEXT NOT NULL UNIQUE,
        bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
        document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
        chunk_index INTEGER NOT NULL,
        chunk_text TEXT,
        chunk_hash BLOB NOT NULL,
        text TEXT NOT NULL,
        text_key BLOB NOT NULL,
        context TEXT NOT NULL,
        fact_type TEXT NOT NULL,
        occurred_start TEXT,
        occurred_end TEXT,
        mentioned_at TEXT,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        edited_at TEXT,
        invalidated_at TEXT,
        invalidation_reason TEXT,
        retained INTEGER NOT NULL DEFAULT 1,
        tags TEXT NOT NULL,
        metadata TEXT NOT NULL,
        entities TEXT NOT NULL,
        observation_scopes TEXT,
        UNIQUE (document, chunk_index)
    )
    """,
    "CREATE INDEX memories_by_text ON memories (bank, text_key)",
    "CREATE INDEX memories_by_mention ON memories (bank, mentioned_at)",
    """
    CREATE TABLE operations (
        id INTEGER PRIMARY KEY,
        operation_id TEXT NOT NULL UNIQUE,
        bank INTEGER NOT NULL REFERENCES banks ON DELETE CASCADE,
        parent TEXT,
        operation_type TEXT NOT NULL,
        status TEXT NOT NULL,
        items_count INTEGER NOT NULL,
        document_id TEXT,
        result TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL
    )
    """,
    "CREATE INDEX operations_by_bank ON operations (bank, created_at)",
    "CREATE INDEX operations_by_parent ON operations (parent) WHERE parent IS NOT NULL",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST,)

VERSION = len(MIGRATIONS)
"""The version of the file that this code reads and writes."""


def index_table(bank: int) -> str:
    """Return the name of a bank's search index.

    Each bank has its own, so that what one bank holds cannot change the ranking in another, and deleting a bank is
    dropping a table. The name is made of an integer of ours, so it is safe inside a statement.
    """
    return f"search_{bank:d}"


def make_index(bank: int) -> str:
    """Return the statement that makes a bank's search index.

    The text arrives prepared by `search.index_terms`: `ascii` cuts it at everything in ASCII that is no letter or digit
    and takes all else for letters, `porter` stems English.
    """
    return f"CREATE VIRTUAL TABLE {index_table(bank)} USING fts5(text, about, tokenize = 'porter ascii')"


def drop_index(bank: int) -> str:
    """Return the statement that drops a bank's search index."""
    return f"DROP TABLE {index_table(bank)}"
