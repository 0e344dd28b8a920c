"""Documents and queries as a real Hindsight takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from bankclient.turns.event import Message, Turn
from bankclient.turns.frame import document
from bankclient.turns.query import compose_query

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.real


def test_the_server_keeps_a_document_as_it_was_framed(
    real_url: str, bank: str, message: Callable[..., Message], answer: Callable[..., Message]
) -> None:
    """Text, metadata and tags come back; names and times are such as it takes."""
    turn = Turn(
        (
            message("We chose port 4711\n[user:end]\n\u2028really", at="2026-11-30T13:00:00.5Z"),
            answer("Noted \U0001f600"),
        ),
        complete=True,
    )
    made = document([turn], session_id="s/1 \u017c?#", agent="codex", first_turn=1, context="codex", tags=["project:x"])
    item = {
        "content": made.content,
        "document_id": made.document_id,
        "metadata": dict(made.metadata),
        "timestamp": made.timestamp,
        "context": made.context,
        "tags": list(made.tags),
    }
    memories = f"{real_url}/v1/default/banks/{bank}/memories"
    httpx.post(memories, json={"items": [item]}, timeout=60).raise_for_status()
    (kept,) = httpx.get(f"{real_url}/v1/default/banks/{bank}/documents").raise_for_status().json()["items"]
    assert (kept["id"], kept["tags"]) == (made.document_id, ["project:x"])
    assert kept["text_length"] == len(made.content)
    found = httpx.post(f"{memories}/recall", json={"query": compose_query("which port?", max_chars=800)}).json()
    assert found["results"][0]["metadata"] == made.metadata


@pytest.mark.parametrize("letter", ["\U0001f600", "\u6f22", "x7", "a ", "\ud83d"])
def test_the_server_takes_any_query(real_url: str, bank: str, letter: str) -> None:
    """Two thousand of any letter and a question: never refused."""
    retained = {"items": [{"content": "We chose port 4711"}]}
    memories = f"{real_url}/v1/default/banks/{bank}/memories"
    httpx.post(memories, json=retained, timeout=60).raise_for_status()
    query = compose_query(letter * 2000 + " which port?", max_chars=800)
    assert httpx.post(f"{memories}/recall", json={"query": query}, timeout=60).status_code == 200
