"""The recall endpoint: candidates from the bank's index, scored, cut to the token budget.

How results are ranked is said in `search.final_score`. Also finds the evidence for `reflect`.
"""

from __future__ import annotations

import json
import sqlite3  # noqa: TC003 - functions are annotated with it
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from bankclient.embedded.banks import find_bank
from bankclient.embedded.bodies import Budget, RecallRequest, TemporalWindow
from bankclient.embedded.fuzzy import resolved
from bankclient.embedded.memories import COLUMNS, TABLES, chunk_id, entity_id, where
from bankclient.embedded.moments import read_moment, stored
from bankclient.embedded.schema import index_table
from bankclient.embedded.search import RANK, any_of, final_score, query_words
from bankclient.embedded.sizes import count_tokens, cut_to_tokens
from bankclient.embedded.tags import Clause, TagGroup, TagsMatch, groups_clause, tags_clause
from bankclient.embedded.wire import Problem, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "Hit",
    "Search",
    "TagFilter",
    "find",
    "recall",
    "shown",
]

_TYPES = ("experience", "observation", "world")
_CANDIDATES = {Budget.LOW: 100, Budget.MID: 300, Budget.HIGH: 1000}
_SECONDS_A_DAY = 86400.0
_MANY = 5000
"""So many matches are ranked without a second thought (about 10 ms)."""
_ENOUGH = 100
"""With fewer than these from the rarer words, the common ones are asked too."""


class TagFilter(Protocol):
    """What a request says about tags."""

    tags: list[str] | None
    tags_match: TagsMatch
    tag_groups: list[TagGroup] | None


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched for: at most `limit` memories of these types for `query`, ranked as at the moment `at`."""

    query: str
    tags: TagFilter
    types: Sequence[str] | None
    limit: int
    at: datetime
    window: TemporalWindow | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that was found, with its scores: `keyword` is its BM25, `final` what it is ordered by."""

    row: sqlite3.Row
    keyword: float
    final: float


def recall(request: Request) -> object:
    """Answer the memories that fit the query, best first, within the token budget."""
    body = request.body_as(RecallRequest)
    at = _moment(body.query_timestamp, request.now)
    types = _types(body.types)
    search = Search(body.query, body, types, _CANDIDATES[body.budget], at, body.temporal_window)
    with request.database.read() as db:
        hits = _floored(find(db, find_bank(db, request.bank_id), search), body)
    hits = _within(hits, body.max_tokens)
    with_entities = body.include.entities is not None
    results = [shown(request.bank_id, hit, entities=with_entities) for hit in hits]
    chunks = None if body.include.chunks is None else _chunks(request.bank_id, hits, body.include.chunks.max_tokens)
    return {
        "results": results,
        "trace": _trace(body, hits) if body.trace else None,
        "entities": (_entities(request.bank_id, hits) or None) if with_entities else None,
        "chunks": chunks or None,
        "source_facts": None,
        "source_facts_truncated": None if body.include.source_facts is None or not hits else False,
    }


def find(db: sqlite3.Connection, bank: int, search: Search) -> list[Hit]:
    """Return what matches, best first. Raises `Problem` 422 for a fuzzy tag filter that cannot be resolved."""
    words = query_words(search.query)
    if not words:
        return []
    filters = [
        tags_clause(search.tags.tags, search.tags.tags_match, "m.tags"),
        groups_clause(resolved(db, bank, search.tags.tag_groups), "m.tags"),
    ]
    if search.types:
        filters.append(Clause(f"m.fact_type IN ({','.join('?' * len(search.types))})", tuple(search.types)))
    clause = where(filters)
    narrow = _narrowed(db, bank, words, search.limit)
    rows = [] if narrow is None else _matches(db, bank, narrow, clause, search.limit, times=2)
    if len(rows) < _ENOUGH:
        rows = _matches(db, bank, any_of(words), clause, search.limit)
    best = max((row["keyword"] for row in rows), default=0.0) or 1.0
    at, window = _utc(search.at), search.window
    span = None if window is None else (stored(window.start), stored(window.end))
    hits = [Hit(row, row["keyword"], _score(row, row["keyword"] / best, at, span)) for row in rows]
    return sorted(hits, key=lambda hit: (-hit.final, -hit.row["id"]))


def shown(bank_id: str, hit: Hit, *, entities: bool) -> dict[str, object]:
    """Return a hit as a result of a recall."""
    row = hit.row
    names = json.loads(row["entities"])
    return {
        "id": row["memory_id"],
        "text": row["text"],
        "type": row["fact_type"],
        "entities": names if entities and names else None,
        "context": row["context"],
        "occurred_start": row["occurred_start"],
        "occurred_end": row["occurred_end"],
        "mentioned_at": row["mentioned_at"],
        "document_id": row["document_id"],
        "metadata": json.loads(row["metadata"]),
        "chunk_id": chunk_id(bank_id, row["document_id"], row["chunk_index"]),
        "tags": json.loads(row["tags"]),
        "source_fact_ids": None,
        "scores": {"final": hit.final, "reranker": None, "semantic": None, "keyword": hit.keyword},
        "attachments": None,
    }


def _moment(text: str | None, now: datetime) -> datetime:
    if not text:
        return now
    try:
        return read_moment(text)
    except ValueError as error:
        raise Problem(
            400, f"Invalid query_timestamp format. Expected ISO format (e.g., '2023-05-30T23:40:00'): {error}"
        ) from error


def _types(types: Sequence[str] | None) -> Sequence[str] | None:
    # `opinion` is a type of earlier servers: accepted, and never found.
    unknown = sorted(set(types or ()) - {*_TYPES, "opinion"})
    if unknown:
        raise Problem(422, f"Invalid fact type(s): {', '.join(unknown)}. Must be one of: {', '.join(_TYPES)}")
    return types


def _matches(
    db: sqlite3.Connection, bank: int, expression: str, clause: Clause, limit: int, *, times: int = 1
) -> list[sqlite3.Row]:
    """Return the best memories for an expression in which each word stands so many `times`."""
    index = index_table(bank)
    statement = f"""
        SELECT {COLUMNS}, -{index}.rank / {times:d} AS keyword FROM {TABLES} JOIN {index} ON {index}.rowid = m.id
        WHERE {index} MATCH ? AND {index}.rank MATCH '{RANK}' AND {clause.sql} ORDER BY {index}.rank LIMIT ?
    """  # noqa: S608 - our own names and clauses
    return db.execute(statement, (expression, *clause.values, limit)).fetchall()


def _narrowed(db: sqlite3.Connection, bank: int, words: list[str], limit: int) -> str | None:
    """Return an expression for those memories that hold one of the rarer words, None where it would spare nothing.

    Counting a word's memories costs a thirtieth of ranking them. All words are in the expression twice, so that BM25
    weighs them against one another as it does without.
    """
    index = index_table(bank)
    statement = f"SELECT count(*) FROM {index} WHERE {index} MATCH ?"  # noqa: S608 - our own name
    counted = sorted((int(db.execute(statement, (any_of([word]),)).fetchone()[0]), word) for word in words)
    if sum(count for count, _ in counted) <= _MANY:
        return None
    rare: list[str] = []
    found = 0
    for count, word in counted:
        if found >= limit and found + count > _MANY:
            break
        found += count
        rare.append(word)
    others = [word for word in words if word not in rare]
    return f"({any_of(rare)}) AND ({any_of([*rare, *others, *others])})" if others else None


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _score(row: sqlite3.Row, relevance: float, at: datetime, span: tuple[str, str] | None) -> float:
    when = row["occurred_start"] or row["mentioned_at"]
    age = None if when is None else (at - datetime.fromisoformat(when)).total_seconds() / _SECONDS_A_DAY
    inside = span is not None and when is not None and span[0] <= when <= span[1]
    return final_score(relevance, age_days=age, confirmations=row["confirmations"] or 1, in_window=inside)


def _floored(hits: Iterable[Hit], body: RecallRequest) -> list[Hit]:
    floors = body.min_scores
    if floors is None:
        return list(hits)
    keyword, final = floors.keyword, floors.final
    return [
        hit for hit in hits if (keyword is None or hit.keyword >= keyword) and (final is None or hit.final >= final)
    ]


def _within(hits: Iterable[Hit], max_tokens: int) -> list[Hit]:
    """Return the first hits whose texts fit together; the very first one whatever its size, unless nothing may be."""
    taken: list[Hit] = []
    used = 0
    for hit in hits:
        used += count_tokens(hit.row["text"])
        if max_tokens <= 0 or (taken and used > max_tokens):
            break
        taken.append(hit)
    return taken


def _chunks(bank_id: str, hits: Iterable[Hit], max_tokens: int) -> dict[str, object]:
    """Return the hits' chunks by id until the budget is used up; the last one is cut."""
    chunks: dict[str, object] = {}
    left = max_tokens
    for hit in hits:
        if left <= 0:
            break
        row = hit.row
        whole = row["text"] if row["chunk_text"] is None else row["chunk_text"]
        text = whole if count_tokens(whole) <= left else cut_to_tokens(whole, left)
        left -= count_tokens(text)
        name = chunk_id(bank_id, row["document_id"], row["chunk_index"])
        cut = len(text) < len(whole)
        chunks[name] = {
            "id": name,
            "text": text,
            "chunk_index": row["chunk_index"],
            "truncated": cut,
            "attachments": None,
        }
    return chunks


def _entities(bank_id: str, hits: Iterable[Hit]) -> dict[str, object]:
    names: dict[str, None] = dict.fromkeys(name for hit in hits for name in json.loads(hit.row["entities"]))
    return {name: {"entity_id": entity_id(bank_id, name), "canonical_name": name, "observations": []} for name in names}


def _trace(body: RecallRequest, hits: Sequence[Hit]) -> dict[str, Any]:
    query: dict[str, object] = {"query_text": body.query, "budget": body.budget.value, "max_tokens": body.max_tokens}
    query |= {"tags": body.tags, "tags_match": body.tags_match}
    results = [{"id": hit.row["memory_id"], "keyword": hit.keyword, "final": hit.final} for hit in hits]
    return {"query": query, "final_results": results, "summary": {"results_returned": len(hits)}}
