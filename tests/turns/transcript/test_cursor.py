"""Where to go on in a file that may have been cut, replaced, rewritten or renamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.turns.transcript.cursor import Cursor, Start, find_start, line_digest, mark_digest

if TYPE_CHECKING:
    from bankclient.turns.transcript.cursor import ReadAt


class _File:
    """Bytes to read at, and how many were asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.read = 0

    def __call__(self, offset: int, length: int) -> bytes:
        piece = self.data[offset : offset + length]
        self.read += len(piece)
        return piece


def _cursor(data: bytes) -> Cursor:
    """Return the cursor of whoever read all of `data`, whole lines."""
    read_at: ReadAt = _File(data)
    last = data[:-1].rpartition(b"\n")[2]
    return Cursor(offset=len(data), before=mark_digest(read_at, len(data)), line=line_digest(last))


def _start(cursor: Cursor, data: bytes, tail_limit: int = 1 << 20) -> Start:
    return find_start(cursor, _File(data), len(data), tail_limit=tail_limit)


_LINES = st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), min_size=1, max_size=12)
_OLD = b"".join(b'{"line": %d}\n' % number for number in range(20))


@given(old=_LINES, new=_LINES)
def test_a_file_that_only_grew_goes_on_where_it_was_left(old: list[bytes], new: list[bytes]) -> None:
    """Whatever was appended, under whatever name the file is now: the saved place holds."""
    before = b"\n".join(old) + b"\n"
    assert _start(_cursor(before), before + b"\n".join(new)) == Start(len(before))


@given(old=_LINES, new=_LINES)
def test_nothing_new_is_ever_behind_the_start(old: list[bytes], new: list[bytes]) -> None:
    """However a file was replaced, the start is never behind a line that was not there before."""
    before, after = b"\n".join(old) + b"\n", b"\n".join(new) + b"\n"
    start = _start(_cursor(before), after)
    assert start.how in {"same", "moved", "whole"}
    assert start.offset == 0 or after[: start.offset].endswith(b"\n")
    passed = after[: start.offset].removeprefix(b"\xef\xbb\xbf").split(b"\n")[:-1]
    assert start.offset == 0 or passed[-1].removesuffix(b"\r") == old[-1].removeprefix(b"\xef\xbb\xbf").removesuffix(
        b"\r"
    )


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (_OLD, Start(len(_OLD))),
        (_OLD[26:] + b"new\n", Start(len(_OLD) - 26, how="moved")),
        (b'{"summary": 1}\n' + _OLD[-14:] + b"new\n", Start(29, how="moved")),
        (_OLD[:100], Start(0, how="whole")),
        (b"", Start(0, how="whole")),
        (b"another\nfile\n" * 40, Start(0, how="whole")),
    ],
    ids=["same", "shortened in front", "rewritten", "cut", "emptied", "replaced"],
)
def test_a_file_that_did_more_than_grow(now: bytes, expected: Start) -> None:
    """What was read last is looked for; where it is nowhere, the file is read anew."""
    assert _start(_cursor(_OLD), now) == expected


def test_a_cut_file_that_grew_past_the_old_place_is_read_anew() -> None:
    """That the size fits says nothing: the bytes before the place are other ones."""
    assert _start(_cursor(_OLD), _OLD[:100] + b"x" * 400 + b"\n") == Start(0, how="whole")


def test_inside_a_long_line_it_goes_on_inside() -> None:
    """A cursor that was left within a line too long is right about that, too."""
    data = b"x" * 5000
    cursor = Cursor(offset=3000, skipping=True, before=mark_digest(_File(data), 3000))
    assert _start(cursor, data + b"\nnext\n") == Start(3000, skipping=True)


def test_a_long_file_never_read_is_read_from_its_tail() -> None:
    """The start is the first whole line of the tail, and the tail says so."""
    data = b"0123456789\n" * 1000
    start = _start(Cursor(), data, tail_limit=100)
    assert start == Start(990 * 11 + 11, how="tail")
    assert data[start.offset - 1 : start.offset] == b"\n"


def test_a_tail_that_is_one_line_is_passed_over() -> None:
    """Without a line end in the tail, reading goes on inside the line."""
    assert _start(Cursor(), b"x" * 1000, tail_limit=100) == Start(900, skipping=True, how="tail")


def test_the_usual_case_reads_a_thousand_bytes() -> None:
    """On a file that only grew, what is read does not depend on its size."""
    file = _File(b"0123456789\n" * 500_000)
    cursor = _cursor(file.data)
    assert find_start(cursor, file, len(file.data)).how == "same"
    assert file.read <= 1024


def test_a_rewritten_file_costs_no_more_than_the_tail() -> None:
    """The search for what was read last is bounded as well."""
    file = _File(b"0123456789\n" * 500_000)
    find_start(_cursor(_OLD), file, len(file.data), tail_limit=100_000)
    assert file.read < 400_000


@given(st.builds(Cursor, st.integers(0), st.booleans(), st.text(), st.text(), st.none() | st.text()))
def test_a_saved_cursor_is_the_cursor(cursor: Cursor) -> None:
    """A cursor comes back from its JSON as it was."""
    assert Cursor.loads(cursor.dumps()) == cursor


def test_a_cursor_holds_nothing_of_what_was_said() -> None:
    """The mark is digests: no word of the transcript is in it."""
    secret = b'{"text": "the launch code is 0000"}\n'
    assert "launch" not in _cursor(secret).dumps()
