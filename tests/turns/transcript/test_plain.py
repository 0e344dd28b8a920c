"""Plain lists of messages: what is new, and what is said."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.turns.cadence import group
from bankclient.turns.transcript.plain import Seen, read_messages


def _user(text: Any) -> dict[str, Any]:  # noqa: ANN401 - content is any JSON
    return {"role": "user", "content": text}


def _agent(text: Any) -> dict[str, Any]:  # noqa: ANN401 - content is any JSON
    return {"role": "assistant", "content": text}


def _new(items: list[dict[str, Any]], seen: Seen, *, whole: bool = True) -> tuple[list[str], Seen]:
    messages, seen = read_messages(items, seen, session_id="s1", nonce="n1", whole=whole)
    return [message.text for message in messages], seen


_ITEMS = st.lists(
    st.builds(
        lambda role, text: {"role": role, "content": text},
        st.sampled_from(["user", "assistant"]),
        st.text("ab", min_size=1, max_size=2),
    ),
    max_size=60,
)


@given(items=_ITEMS, cuts=st.lists(st.integers(0, 60), max_size=5))
def test_a_growing_list_gives_each_message_once(items: list[dict[str, Any]], cuts: list[int]) -> None:
    """Handed over whole each time, or only what is new, it comes to the same messages with the same keys."""
    expected, _ = read_messages(items, Seen(), session_id="s1", nonce="n1", whole=True)
    seen, again, places, steps = Seen(), Seen(), [0, *sorted(cuts), len(items)], []
    growing = []
    for start, end in pairwise(places):
        messages, seen = read_messages(items[:end], seen, session_id="s1", nonce="n1", whole=True)
        growing += messages
        messages, again = read_messages(items[start:end], again, session_id="s1", nonce="n1", whole=False)
        steps += messages
    told = [(message.role, message.text, message.key, message.turn_id) for message in expected]
    assert [(message.role, message.text, message.key, message.turn_id) for message in growing] == told
    assert [(message.role, message.text, message.key, message.turn_id) for message in steps] == told


def test_a_list_shortened_in_front_gives_what_is_new() -> None:
    """After a compaction the last messages seen are found again, and what follows them is new."""
    items = [_user(f"question {number}") for number in range(50)]
    _, seen = _new(items, Seen())
    texts, seen = _new([_user("a summary"), *items[-5:], _user("a new question")], seen)
    assert texts == ["a new question"]
    texts, _ = _new([_user("a summary"), *items[-5:], _user("a new question"), _agent("an answer")], seen)
    assert texts == ["an answer"]


def test_a_list_with_nothing_in_common_is_new() -> None:
    """A list that was replaced is read whole, under keys that were not used before."""
    _, seen = _new([_user("one"), _agent("two")], Seen())
    messages, _ = read_messages([_user("three")], seen, session_id="s1", nonce="n1", whole=True)
    assert [(message.text, message.key) for message in messages] == [("three", "s1:n1:2:user")]


def test_the_same_words_again_are_a_new_message() -> None:
    """Repetition is told from repetition by the place."""
    items = [_user("go on"), _agent("done")]
    _, seen = _new(items, Seen())
    texts, _ = _new(items * 2, seen)
    assert texts == ["go on", "done"]


def test_a_session_that_starts_anew_has_other_keys() -> None:
    """The nonce tells two runs under one name apart."""
    keys = [read_messages([_user("one")], Seen(), session_id="s1", nonce=nonce, whole=True)[0][0].key for nonce in "ab"]
    assert len(set(keys)) == 2


@pytest.mark.parametrize(
    "item",
    [
        {"role": "system", "content": "be brief"},
        {"role": "tool", "content": "a result"},
        {"type": "function_call", "name": "f"},
        _user([{"type": "tool_result", "content": "a result"}]),
        _user("<system-reminder>a date</system-reminder>"),
        _user(None),
        _agent([{"type": "tool_use", "name": "f"}]),
        _agent("..."),
        {},
    ],
)
def test_not_said(item: dict[str, Any]) -> None:
    """Systems, tools, notices and silence are passed over, and what follows is still found."""
    texts, seen = _new([_user("one"), item], Seen())
    assert texts == ["one"]
    assert _new([_user("one"), item, _agent("two")], seen)[0] == ["two"]


@pytest.mark.parametrize("kind", ["text", "input_text", "output_text"])
def test_blocks_of_text(kind: str) -> None:
    """Content is a string, or blocks of which the texts are joined."""
    assert _new([_agent([{"type": kind, "text": "one"}, {"type": "image"}, {"type": kind, "text": "two"}])], Seen())[
        0
    ] == ["one\ntwo"]


def test_the_turn_that_was_handed_over_is_complete() -> None:
    """Its last answer is final, so that it counts without a word from any hook."""
    messages, _ = read_messages(
        [_user("one"), _agent("two"), _user("three"), _agent("four")], Seen(), session_id="s", nonce="n", whole=False
    )
    assert [turn.complete for turn in group(messages)] == [True, True]
    messages, _ = read_messages(
        [_user("one"), _agent("two"), _user("three")], Seen(), session_id="s", nonce="n", whole=False
    )
    assert [turn.complete for turn in group(messages)] == [True, False]
