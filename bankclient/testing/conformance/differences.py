"""Where the embedded bank may differ from a Hindsight server, and why: one list.

A check takes from here what to expect of whom it runs on. What is not in this list must be the same.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DIFFERENCES", "Difference"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One allowed difference: what the embedded bank does, what a Hindsight server does, and the reason."""

    name: str
    embedded: object
    hindsight: object
    reason: str


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "finds only what shares a word with the query",
        embedded=True,
        hindsight=False,
        reason="There is no embedding model, so nothing is near in meaning alone; and no graph of links to follow.",
    ),
    Difference(
        "ranking",
        embedded="words, recency, confirmation",
        hindsight="embeddings, words, links, time, a reranker",
        reason="Scores and order come from what each has; only plain cases are compared.",
    ),
    Difference(
        "reflect says that it has no model",
        embedded=True,
        hindsight=False,
        reason="Without a model the memories closest to the question are quoted, and said to be just that.",
    ),
    Difference(
        "status of a reflect with response_schema",
        embedded=400,
        hindsight=200,
        reason="Filling a schema takes a model; a Hindsight server without one answers 400 too.",
    ),
    Difference(
        "proof_count after the same text was retained twice",
        embedded=2,
        hindsight=1,
        reason="Confirmation weighs in here without the observations that count it on a Hindsight server.",
    ),
    Difference(
        "memories that wait for consolidation",
        embedded=0,
        hindsight=1,
        reason="Nothing is consolidated without a model, so nothing waits for it.",
    ),
    Difference(
        "q of the memory list takes % and _ for any letters",
        embedded=False,
        hindsight=True,
        reason="The documentation says substring; the pattern letters of SQL shine through on a Hindsight server.",
    ),
    Difference(
        "status of a write to a bank whose id holds NUL",
        embedded=400,
        hindsight=500,
        reason="Other control characters get 400 from both; on a Hindsight server NUL gets as far as its database.",
    ),
    Difference(
        "operation history",
        embedded="kept, without payload",
        hindsight="kept, with payload",
        reason="A payload repeats the whole text that the document holds.",
    ),
    Difference(
        "tokens",
        embedded="estimated",
        hindsight="counted",
        reason="A tokeniser's vocabulary is megabytes; budgets are kept to about a quarter.",
    ),
    Difference(
        "endpoints",
        embedded="banks, memories, recall, reflect, documents, tags, entities, operations, monitoring",
        hindsight="also mental models, knowledge base, directives, files, transfer, aliases, webhooks, graph, MCP",
        reason="They need a model or a worker, or are not called by this client; here they answer 404.",
    ),
)
