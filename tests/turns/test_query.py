"""The query of a recall: what it asks, and where it is cut."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.turns.query import compose_query, half_query, shortened
from bankclient.turns.render import Memory, render
from bankclient.turns.tokens import tokens

_FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
_CLUSTERS = [
    "a",
    "\u00e9",
    "e\u0301",
    _FAMILY,
    "\U0001f44d\U0001f3fd",
    "\U0001f1f5\U0001f1f1",
    "\u6f22",
    "\u0928\u093f",
    " ",
]
_CLUSTERS += ["\u1112\u1161\u11ab", "1\ufe0f\u20e3", "\r\n"]


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "  \n",
        "...",
        "\U0001f600",
        "/compact",
        " /help me",
        "/plugin:do it",
        "!ls -la",
        "! ls",
        "<private>a</private>",
    ],
)
def test_nothing_is_asked_for(prompt: str) -> None:
    """Empty prompts, signs alone, commands, shell lines, and prompts that are all private."""
    assert compose_query(prompt, ["an earlier turn"], max_chars=800) is None


@pytest.mark.parametrize(
    "prompt", ["/etc/hosts is wrong, why?", "/", "/2 is half of it", "what does /compact do?", "7", "wow!"]
)
def test_paths_and_numbers_are_asked_for(prompt: str) -> None:
    """What only looks like a command in part is a question, as long as there is a word in it."""
    expected = None if prompt == "/" else prompt
    assert compose_query(prompt, max_chars=800) == expected


def test_earlier_turns_stand_in_front() -> None:
    """Oldest first, the prompt last; without any it stands alone."""
    assert compose_query("three", ["one", "two"], max_chars=800) == "one\ntwo\nthree"
    assert compose_query("three", max_chars=800) == "three"


def test_the_oldest_turns_are_dropped_first() -> None:
    """The prompt stays whole, the newest turns too; the oldest that has room is shortened, older ones are gone."""
    turns = [f"{number} begins " + "and goes on " * 8 + f"{number} ends" for number in (1, 2, 3)]
    assert compose_query("which port?", turns, max_chars=800) == "\n".join([*turns, "which port?"])
    query = compose_query("which port?", ["...", *turns], max_chars=200)
    assert query is not None
    first, second, last = query.split("\n")
    assert (second, last) == (turns[2], "which port?")
    assert first.startswith("2 begins")
    assert " \u2026 " in first
    assert first.endswith("2 ends")
    assert compose_query("which port?", turns, max_chars=30) == "which port?"


def test_the_question_behind_a_log_is_asked() -> None:
    """Of six thousand letters and a question, head and tail stay."""
    prompt = "Look at this: " + "error 42 in worker " * 320 + "which port did we pick?"
    query = compose_query(prompt, ["an earlier turn"], max_chars=800)
    assert query is not None
    assert query.startswith("Look at this: error 42")
    assert query.endswith("which port did we pick?")
    assert 500 < len(query) <= 800
    assert tokens(query) <= 500


@pytest.mark.parametrize("letter", ["\U0001f600", "\u6f22", "\u3042", "\ud55c", "x7", "QZ", "{}", "\n"])
def test_no_script_is_over_the_servers_cap(letter: str) -> None:
    """Two thousand emoji, CJK letters, noise: the query is under the cap, and has the question in it."""
    query = compose_query(letter * 2000 + " which port? " + letter * 10, max_chars=800)
    assert query is not None
    assert "which port?" in query
    assert tokens(query) <= 500


@given(
    text=st.lists(st.sampled_from(_CLUSTERS) | st.text(max_size=3), max_size=200).map("".join),
    earlier=st.lists(st.text(max_size=40), max_size=3),
    max_chars=st.integers(1, 120),
    max_tokens=st.integers(8, 200),
)
def test_both_limits_hold(text: str, earlier: list[str], max_chars: int, max_tokens: int) -> None:
    """Whatever is asked, a query is within letters and tokens, has a word in it, and can be encoded."""
    query = compose_query(text, earlier, max_chars=max_chars, max_tokens=max_tokens)
    if query is not None:
        assert len(query) <= max_chars
        assert tokens(query) <= max_tokens
        assert any(letter.isalnum() for letter in query)
        assert query.encode()


@given(
    clusters=st.lists(st.sampled_from(_CLUSTERS), min_size=1, max_size=120),
    max_chars=st.integers(20, 60),
    max_tokens=st.integers(40, 120),
)
def test_no_letter_is_torn_apart(clusters: list[str], max_chars: int, max_tokens: int) -> None:
    """Cuts fall between what people see as letters: families, flags, accents, syllables, keycaps."""
    text = "".join(clusters)
    cut = shortened(text, max_chars, max_tokens)
    if cut == text:
        return
    head, mark, tail = cut.partition(" \u2026 ")
    assert mark
    starts = {0, len(text)}
    place = 0
    for cluster in clusters:
        starts.add(place)
        place += len(cluster)
    # Blanks at the seams are dropped, and a mark or half of a flag behind a cluster joins it: both are within a cut.
    flags = "\U0001f1f5\U0001f1f1" * 2 in text
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) in starts or flags or text[len(head)].isspace()
    assert len(text) - len(tail) in starts or flags or text[len(text) - len(tail) - 1].isspace()


def test_a_heap_of_marks_is_cut_all_the_same() -> None:
    """A thousand accents on one letter are not a reason to ask nothing."""
    query = compose_query("a" + "\u0301" * 1000 + " port?", max_chars=100)
    assert query is not None
    assert len(query) <= 100
    assert query.endswith("port?")


def test_what_must_not_leave_is_gone_before_the_cut() -> None:
    """Secrets that would straddle an edge, private parts, our own block."""
    secret = "ghp_FAKE1234567890abcdefghijklmnopqrstuv"
    for offset in range(30, 80):
        query = compose_query("x" * offset + f" {secret} " + "y " * 200, max_chars=120)
        assert query is not None
        assert not any(secret[place : place + 8] in query for place in range(len(secret) - 8))
    block = render([Memory("1", "The port is 4711")], 4096).text
    assert compose_query(f"{block}which <private>secret</private>port?", [block], max_chars=800) == "which port?"


def test_redaction_can_be_off() -> None:
    """Then the words are asked for as they are."""
    assert compose_query("password: hunter2", max_chars=800, redacting=False) == "password: hunter2"


def test_half_a_query_keeps_head_and_tail() -> None:
    """What a server called too long is asked once more with half of it."""
    query = "alpha " + "beta " * 100 + "which port?"
    half = half_query(query)
    assert len(half) <= len(query) // 2
    assert tokens(half) <= tokens(query) / 2
    assert half.startswith("alpha")
    assert half.endswith("which port?")


def test_lone_surrogates_are_not_asked_for() -> None:
    """The query can always be sent."""
    query = compose_query("which \ud83d port?", max_chars=800)
    assert query == "which \ufffd port?"
    assert unicodedata.name(query[6]) == "REPLACEMENT CHARACTER"
