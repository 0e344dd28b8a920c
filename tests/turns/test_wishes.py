"""Private parts, and prompts that decline memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.turns.wishes import declines_memory, without_private


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <private>b</private> c", "a  c"),
        ("<private>all</private>", ""),
        ("a <private>b</private> c <private>d</private> e", "a  c  e"),
        ("a <private>b <private>c</private> d</private> e", "a  e"),
        ("a <private>b", "a "),
        ("a <private>b</private> c <private>d", "a  c "),
        ("a <PRIVATE>b</Private> c", "a  c"),
        ("a <private reason='x'>b\nc</private> d", "a  d"),
        ("```\n<private>b</private>\n```", "```\n\n```"),
        ("a </private> b", "a </private> b"),
        ("a <privateer>b</privateer>", "a <privateer>b</privateer>"),
        ("private words", "private words"),
    ],
)
def test_private_parts_are_gone(text: str, kept: str) -> None:
    """Nested, repeated, unclosed, in any case; the words around stay, and halves without a beginning."""
    assert without_private(text) == kept


@given(st.lists(st.tuples(st.text(st.characters(exclude_characters="<>")), st.booleans())))
def test_what_is_outside_stays_what_is_inside_goes(parts: list[tuple[str, bool]]) -> None:
    """Any sequence of public and private parts leaves the public ones, in order."""
    text = "".join(f"<private>{part}</private>" if private else part for part, private in parts)
    assert without_private(text) == "".join(part for part, private in parts if not private)


@pytest.mark.parametrize(
    "prompt",
    [
        "Don't use your memory. What is 2 + 2?",
        "don\u2019t use memory for this",
        "Please do not consult any stored memories for this one: which port?",
        "do not look at memory, just answer",
        "Without using memory, tell me the port",
        "without your memory please",
        "Answer without consulting the memory bank.",
        "ignore your memories and start over",
        "Ignore previous memories here",
        "skip memory this time",
        "no memory for this question",
        "Don't recall anything; I want a fresh view",
        "What is the port?\nDo not check your memory",
        "DO NOT USE MEMORY",
    ],
)
def test_prompts_that_decline_memory(prompt: str) -> None:
    """Each way of saying it that is documented."""
    assert declines_memory(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "Which port did we choose?",
        "Use your memory: which port?",
        "don't use memory-mapped files",
        "do not use memory allocation in the loop",
        "rewrite it without memory leaks",
        "ignore memory warnings from the linter",
        "The parser must not read memory it does not own",
        "don't forget to check memory usage",
        "without memory of earlier states the machine fails",
        "skip memory tests",
        "there is no memory for this",
        "I have no memories of that",
        "never mind",
        "",
    ],
)
def test_prompts_that_do_not(prompt: str) -> None:
    """Other memories, and prompts that ask for ours."""
    assert not declines_memory(prompt)
