"""Splitting a text: bounds, what is kept, and the places where it is cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.embedded.chunking import chunks

TEXTS = st.text(alphabet=st.sampled_from("ab .!?;,\n\té漢") | st.characters(), max_size=200)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=30), max_size=2), max_size=6)


@given(TEXTS, st.integers(2, 50))
def test_prose_loses_nothing_but_blanks_and_keeps_its_bound(text: str, size: int) -> None:
    """Joined again the chunks hold all letters in their order; none is empty or longer than the size."""
    found = list(chunks(text, size))
    assert "".join("".join(found).split()) == "".join(text.split())
    if len(text) > size:
        assert all(chunk.strip() and len(chunk) <= size for chunk in found)


@given(OBJECTS, st.integers(10, 100))
def test_turns_of_a_conversation_stay_whole(turns: list[dict[str, str]], size: int) -> None:
    """As long as a turn may be kept whole, a chunk is a JSON array of whole turns."""
    text = json.dumps(turns)
    found = list(chunks(text, size, structured_size=10_000))
    assert [turn for chunk in found for turn in json.loads(chunk)] == turns


@given(TEXTS, st.integers(1, 50), st.none() | st.integers(1, 100))
def test_a_chunk_is_not_cut_again(text: str, size: int, structured: int | None) -> None:
    """Splitting what was split changes nothing."""
    assert all(list(chunks(chunk, size, structured)) == [chunk] for chunk in chunks(text, size, structured))


@pytest.mark.parametrize(
    ("text", "size", "expected"),
    [
        ("short", 10, ["short"]),
        ("  kept as it is  ", 100, ["  kept as it is  "]),
        ("one\n\ntwo\n\nthree", 9, ["one\n\ntwo", "three"]),
        ("First one. Second one. Third.", 20, ["First one", ". Second one. Third."]),
        ("word " * 4, 10, ["word word", "word word"]),
        ("x" * 25, 10, ["x" * 10, "x" * 10, "x" * 5]),
    ],
)
def test_the_cut_is_at_the_best_place_there_is(text: str, size: int, expected: list[str]) -> None:
    """Paragraphs before sentences before words before letters."""
    assert list(chunks(text, size)) == expected


def test_json_lines_are_cut_between_lines_and_a_long_one_as_text() -> None:
    """Lines are packed; one beyond the bound is split like prose."""
    short, long = json.dumps({"a": "b"}), json.dumps({"text": "word " * 20})
    assert list(chunks(f"{short}\n{short}\n{short}", 25)) == [f"{short}\n{short}", short]
    found = list(chunks(f"{short}\n{long}", 30))
    assert found[0] == short
    assert all(len(chunk) <= 30 for chunk in found)
    assert list(chunks(f"{short}\n{long}", 30, structured_size=1000)) == [short, long]


def test_a_single_object_stays_whole_up_to_the_structured_size() -> None:
    """A JSON object alone is one unit."""
    text = json.dumps({"text": "word " * 10})
    assert list(chunks(text, 20, structured_size=100)) == [text]
    assert len(list(chunks(text, 20))) > 1
