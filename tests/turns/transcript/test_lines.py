"""Bytes into lines: where they end, what is cut off, how long they may be."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.turns.transcript.lines import Line, LineSplitter


def _split(pieces: list[bytes], limit: int = 64) -> tuple[list[Line], LineSplitter]:
    splitter = LineSplitter(limit=limit)
    return [line for piece in pieces for line in splitter.feed(piece)], splitter


_FILES = st.lists(st.binary(max_size=90), max_size=8).map(b"\n".join)


@given(data=_FILES, cuts=st.lists(st.integers(0, 400), max_size=6))
def test_pieces_do_not_matter(data: bytes, cuts: list[int]) -> None:
    """A file gives the same lines, and the same place to go on, whole, byte by byte, and in any pieces."""
    places = sorted({0, len(data), *(cut for cut in cuts if cut <= len(data))})
    pieces = [data[start:end] for start, end in pairwise(places)]
    whole, at_once = _split([data])
    for other, splitter in (_split([data[place : place + 1] for place in range(len(data))]), _split(pieces)):
        assert other == whole
        state = (splitter.offset, splitter.skipping, splitter.too_long, splitter.partial())
        assert state == (at_once.offset, at_once.skipping, at_once.too_long, at_once.partial())


@given(data=_FILES, place=st.integers(0, 400))
def test_goes_on_where_it_stopped(data: bytes, place: int) -> None:
    """Whoever stops anywhere and goes on at `offset` with `skipping` gets each line once."""
    whole, _ = _split([data])
    before, first = _split([data[:place]])
    second = LineSplitter(first.offset, skipping=first.skipping, limit=64)
    assert before + second.feed(data[first.offset :]) == whole


@given(data=_FILES)
def test_lines_end_at_line_feeds_alone(data: bytes) -> None:
    """The lines are what stands between the line feeds, less the carriage return and the mark at the file's head."""
    lines, splitter = _split([data], limit=10_000)
    *expected, _ = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    assert [line.data for line in lines] == [line.removesuffix(b"\r") for line in expected]
    assert splitter.offset == len(data) - len(data.rpartition(b"\n")[2])


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0c", "\x0b", "\x1c", "\r"])
def test_other_separators_are_text(separator: str) -> None:
    """What other tools take for a line's end stays inside the line."""
    lines, _ = _split([f"one{separator}two\nthree\n".encode()])
    assert [line.data.decode() for line in lines] == [f"one{separator}two", "three"]


def test_offsets_are_those_of_first_bytes() -> None:
    """A line knows where in the file it begins, ends of two bytes and empty lines counted."""
    lines, splitter = _split([b"ab\r\n\ncd\nrest"])
    assert lines == [Line(0, 4, b"ab"), Line(4, 5, b""), Line(5, 8, b"cd")]
    assert (splitter.offset, splitter.partial()) == (8, Line(8, 12, b"rest"))


def test_a_line_too_long_is_passed_over_and_counted() -> None:
    """Neither its bytes nor its neighbours' are lost or mixed; one of just the limit is a line."""
    lines, splitter = _split([b"a" * 64 + b"\n" + b"b" * 65 + b"\nlast\n"])
    assert [line.data for line in lines] == [b"a" * 64, b"last"]
    assert (splitter.too_long, splitter.offset, splitter.skipping) == (1, 136, False)


def test_memory_is_bounded_by_the_limit() -> None:
    """Forty megabytes without a line end are read without being held."""
    splitter = LineSplitter(limit=1 << 20)
    piece = b"x" * (1 << 18)
    tracemalloc.start()
    for _ in range(160):
        splitter.feed(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20
    assert (splitter.skipping, splitter.offset) == (True, 40 << 20)
    assert splitter.feed(b"\nnext\n") == [Line((40 << 20) + 1, (40 << 20) + 6, b"next")]


def test_the_partial_line_is_looked_at_before_it_is_taken() -> None:
    """A last line without an end is seen without being taken; taken, it is behind us."""
    splitter = LineSplitter()
    assert (splitter.feed(b"half"), splitter.partial(), splitter.offset) == ([], Line(0, 4, b"half"), 0)
    splitter.take_partial()
    assert (splitter.partial(), splitter.offset) == (None, 4)
