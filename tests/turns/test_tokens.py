"""The estimate of tokens: never under what servers count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.turns.tokens import token_costs, tokens

_COUNTED = [
    ("The retain that was acknowledged is stored once, whatever dies in between.", 14),
    ("2026-11-30T13:50:27.592Z ERROR [worker-3] connection reset by peer (errno=104)", 30),
    ("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 35),
    ("def test_a_turn(message: Make) -> None: assert message.text == 'x'", 18),
    ("xZqKvJwQzXkVjZqWxKzJvQ", 22),
    ("a1b2c3d4e5f6", 12),
    ("\u6f22\u5b57\u3068\u4eee\u540d\u306e\u6587", 9),
    ("\U0001f469\u200d\U0001f469\u200d\U0001f467", 13),
    ("za\u017c\u00f3\u0142\u0107 g\u0119\u015bl\u0105 ja\u017a\u0144", 12),
]


@pytest.mark.parametrize(("text", "counted"), _COUNTED)
def test_not_under_what_tokenizers_count(text: str, counted: int) -> None:
    """Beside each text stands what the worse of o200k_base and cl100k_base makes of it."""
    assert counted <= tokens(text) <= 4 * counted


@given(st.text())
def test_what_letters_cost_adds_up(text: str) -> None:
    """Every letter has its cost, none below zero; together they are the estimate, never more than the bytes."""
    costs = token_costs(text)
    assert len(costs) == len(text)
    assert all(cost >= 0 for cost in costs)
    assert sum(costs) == tokens(text) <= len(text.encode("utf-8", "replace"))


def test_prose_is_far_from_the_cap() -> None:
    """Eight hundred letters of English fit into what a server takes."""
    text = "The quick brown fox, of which we spoke before, jumps over the lazy dog again and again. " * 9
    assert tokens(text[:800]) < 500
