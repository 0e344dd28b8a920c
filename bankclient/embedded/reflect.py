"""The reflect endpoint without a model: the memories that fit the question, quoted, said to be just that.

Searching stands in `recall`.
"""

from __future__ import annotations

from bankclient.embedded.banks import bank_row, obtain_bank
from bankclient.embedded.bodies import Budget, ReflectRequest
from bankclient.embedded.recall import Hit, Search, find, shown
from bankclient.embedded.retain import NO_USAGE
from bankclient.embedded.sizes import count_tokens, cut_to_tokens
from bankclient.embedded.wire import Problem, Request

__all__ = ["reflect"]

_EVIDENCE = {Budget.LOW: 5, Budget.MID: 10, Budget.HIGH: 20}
_NOTHING = "The embedded bank found no memory that shares a word with this question."
_FOUND = "The embedded bank has no language model, so these are the memories closest to the question, not an answer:"


def reflect(request: Request) -> object:
    """Answer with the closest memories, quoted within `max_tokens`, best first; creates the bank."""
    body = request.body_as(ReflectRequest)
    if body.response_schema is not None:
        raise Problem(
            400,
            "Reflect requires an LLM provider to fill a response_schema, and the embedded bank has none. "
            "Leave the schema out, or use a Hindsight server.",
        )
    query = f"{body.query}\n{body.context}" if body.context else body.query
    search = Search(query, body, body.fact_types, _EVIDENCE[body.budget], request.now)
    with request.database.read() as db:
        bank = bank_row(db, request.bank_id)
        hits = [] if bank is None else find(db, bank, search)
    if bank is None:
        with request.database.write() as db:
            obtain_bank(db, request.bank_id, request.now)
    based_on = None
    if body.include.facts is not None:
        memories = [_evidence(request.bank_id, hit) for hit in hits]
        based_on = {"memories": memories, "mental_models": [], "directives": []}
    return {
        "text": _text(hits, body.max_tokens),
        "based_on": based_on,
        "structured_output": None,
        "structured_output_error": None,
        "usage": NO_USAGE,
        "trace": None if body.include.tool_calls is None else {"tool_calls": [], "llm_calls": []},
    }


def _text(hits: list[Hit], max_tokens: int) -> str:
    if not hits:
        return _NOTHING
    lines = [_FOUND]
    left = max_tokens - count_tokens(_FOUND)
    for hit in hits:
        line = f"- {' '.join(hit.row['text'].split())}"
        if len(lines) > 1 and count_tokens(line) > left:
            break
        # The closest memory is quoted in any case, cut where it must be.
        lines.append(
            line if count_tokens(line) <= max(left, 0) or max_tokens <= 0 else cut_to_tokens(line, max(left, 32))
        )
        left -= count_tokens(line)
    return "\n".join(lines)


def _evidence(bank_id: str, hit: Hit) -> dict[str, object]:
    result = shown(bank_id, hit, entities=False)
    names = (
        "id",
        "text",
        "type",
        "context",
        "occurred_start",
        "occurred_end",
        "mentioned_at",
        "document_id",
        "chunk_id",
    )
    return {name: result[name] for name in (*names, "tags", "metadata", "attachments")}
