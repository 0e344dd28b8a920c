"""From bytes to messages: pieces, halves, broken letters, garbage, and going on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.turns.intake import kept_messages
from bankclient.turns.transcript import claude_code, codex
from bankclient.turns.transcript.cursor import Cursor, mark_digest
from bankclient.turns.transcript.reader import TranscriptReader, read_new

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.turns.event import Message
    from bankclient.turns.transcript.dialect import Dialect
    from bankclient.turns.transcript.reader import Reading

_RECORDED = [
    ("claude_code_resumed", claude_code.read_record),
    ("claude_code_interactive", claude_code.read_record),
    ("claude_code_fork", claude_code.read_record),
    ("codex_interactive", codex.read_record),
]


@pytest.mark.parametrize(("name", "dialect"), _RECORDED)
def test_pieces_do_not_matter(name: str, dialect: Dialect, recorded: Callable[[str], bytes]) -> None:
    """A recorded transcript says the same whole, byte by byte, and with a tail behind it."""
    data = recorded(name)
    whole = TranscriptReader(dialect, "s1").feed(data)
    reader = TranscriptReader(dialect, "s1")
    assert [message for place in range(len(data)) for message in reader.feed(data[place : place + 1])] == whole
    reader = TranscriptReader(dialect, "s1")
    assert reader.feed(data + b'{"type":"us') == whole
    assert (reader.offset, reader.finish(), reader.offset) == (len(data), [], len(data))
    assert whole


@pytest.mark.parametrize(("name", "dialect"), _RECORDED)
def test_stopping_anywhere_loses_and_doubles_nothing(
    name: str, dialect: Dialect, recorded: Callable[[str], bytes], read_from: Callable[..., Reading]
) -> None:
    """A transcript read in steps, each from the saved cursor, says what it says in one."""
    data = recorded(name)
    whole = TranscriptReader(dialect, "s1").feed(data)
    cursor, messages = Cursor(), list[Any]()
    for size in range(0, len(data) + 997, 997):
        reading = read_from(data[:size], Cursor.loads(cursor.dumps()), dialect)
        messages += reading.messages
        cursor = reading.cursor
    assert messages == whole


def test_a_record_cut_inside_a_letter_is_read_once_it_is_whole(read_from: Callable[..., Reading]) -> None:
    """The first reading stops at the last line end, the second has the record, its letters whole."""
    record = json.dumps(
        {"type": "user", "uuid": "u", "message": {"role": "user", "content": "za\u017c\u00f3\u0142\u0107"}},
        ensure_ascii=False,
    ).encode()
    head = b'{"type":"mode"}\n'
    cut = head + record[: record.index(b"\xc5") + 1]
    first = read_from(cut)
    assert (first.messages, first.cursor.offset, first.garbage) == ((), len(head), 0)
    second = read_from(head + record + b"\n", first.cursor)
    assert [message.text for message in second.messages] == ["za\u017c\u00f3\u0142\u0107"]
    assert read_from(head + record + b"\n", second.cursor).messages == ()


def test_a_whole_last_line_without_end_is_taken_when_the_session_is_over(
    read_from: Callable[..., Reading], user_line: Callable[..., bytes], answer_line: Callable[..., bytes]
) -> None:
    """Until then it may still grow; afterwards it counts once, also when more is written behind it."""
    data = user_line("a question")[:-1]
    assert read_from(data).messages == ()
    over = read_from(data, session_over=True)
    assert [message.text for message in over.messages] == ["a question"]
    later = read_from(data + b"\n" + answer_line("an answer"), over.cursor)
    assert [message.text for message in later.messages] == ["an answer"]


def test_a_half_last_line_waits_even_at_the_end(
    read_from: Callable[..., Reading], user_line: Callable[..., bytes]
) -> None:
    """A half record is no record when the session ends, and one when a resumed session completes it."""
    data = user_line("a question")
    over = read_from(data[:-9], session_over=True)
    assert (over.messages, over.cursor.offset) == ((), 0)
    assert [message.text for message in read_from(data, over.cursor).messages] == ["a question"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
def test_line_ends_and_byte_order_marks(
    end: bytes, mark: bytes, read_from: Callable[..., Reading], user_line: Callable[..., bytes]
) -> None:
    """Either line end is read, and a mark at the head of the file."""
    data = mark + user_line("one", "u1")[:-1] + end + user_line("two", "u2")[:-1] + end
    reading = read_from(data)
    assert ([message.text for message in reading.messages], reading.garbage) == (["one", "two"], 0)


def test_raw_separators_stay_inside_the_record(read_from: Callable[..., Reading]) -> None:
    """U+2028, U+0085 and a form feed in a text end no line."""
    text = "one\u2028two\u0085three\u2029four"
    record = {"type": "user", "uuid": "u", "message": {"role": "user", "content": text}}
    reading = read_from(json.dumps(record, ensure_ascii=False).encode() + b"\n")
    assert [message.text for message in reading.messages] == [text]


@pytest.mark.parametrize(
    ("escaped", "kept"),
    [
        ("cut \\ud83d here", "cut \ufffd here"),
        ("cut \\udc8f here", "cut \ufffd here"),
        ("whole \\ud83d\\ude00 here", "whole \U0001f600 here"),
    ],
)
def test_lone_surrogates_become_the_replacement_letter(
    escaped: str, kept: str, read_from: Callable[..., Reading]
) -> None:
    """At capture half an emoji is replaced, a whole one is not, and what is kept can be encoded."""
    line = f'{{"type":"user","uuid":"u","message":{{"role":"user","content":"{escaped}"}}}}\n'.encode()
    messages = kept_messages(read_from(line).messages)
    assert [message.text for message in messages] == [kept]
    assert messages[0].text.encode().decode() == kept


def test_bytes_that_are_no_text_spoil_only_their_letter(read_from: Callable[..., Reading]) -> None:
    """A stray byte in a line becomes U+FFFD, and the record is read."""
    line = b'{"type":"user","uuid":"u","message":{"role":"user","content":"a\xffb"}}\n'
    assert [message.text for message in read_from(line).messages] == ["a\ufffdb"]


def test_garbage_is_passed_over_and_counted(read_from: Callable[..., Reading], user_line: Callable[..., bytes]) -> None:
    """Lines that are no JSON objects cost themselves alone; empty ones are nothing."""
    garbage = [b"not json", b"[1, 2]", b'"text"', b"{", b"\x00\x01", b"[" * 5000, b"\n", b"  "]
    reading = read_from(user_line("one", "u1") + b"\n".join(garbage) + b"\n" + user_line("two", "u2"))
    assert [message.text for message in reading.messages] == ["one", "two"]
    assert reading.garbage == 6


def test_a_line_too_long_costs_itself_alone(read_from: Callable[..., Reading], user_line: Callable[..., bytes]) -> None:
    """Before and behind it everything is read; it is counted; the cursor may stand inside of it."""
    data = user_line("one", "u1") + b'{"type":"user","text":"' + b"x" * 9000 + b'"}\n' + user_line("two", "u2")
    reading = read_from(data, line_limit=1000)
    assert ([message.text for message in reading.messages], reading.too_long) == (["one", "two"], 1)
    inside = read_from(data[:5000], line_limit=1000)
    assert (inside.cursor.skipping, inside.too_long) == (True, 0)
    rest = read_from(data, inside.cursor, line_limit=1000)
    assert ([message.text for message in rest.messages], rest.too_long) == (["two"], 1)


def test_the_cost_is_that_of_the_new_bytes(user_line: Callable[..., bytes]) -> None:
    """On a file of 600 MB with the cursor near its end, little more than the new bytes is read."""
    old, new = user_line("old"), b"".join(user_line(f"new {number}", f"n{number}") for number in range(3))
    size = 600 << 20
    asked: list[int] = []

    def read_at(offset: int, length: int) -> bytes:
        # A sparse file: zeros, then an old line, then the new ones.
        asked.append(length)
        tail = old + new
        start = size - len(tail)
        window = bytes(max(0, min(start - offset, length)))
        return window + tail[max(0, offset - start) : max(0, offset + length - start)]

    place = size - len(new)
    cursor = Cursor(offset=place, before=mark_digest(read_at, place))
    asked.clear()
    reading = read_new(claude_code.read_record, "s1", cursor, read_at, size)
    assert [message.text for message in reading.messages] == ["new 0", "new 1", "new 2"]
    assert sum(asked) < len(new) + 4096


def test_a_fresh_cursor_on_a_long_file_reads_its_tail_and_says_so(
    read_from: Callable[..., Reading], user_line: Callable[..., bytes]
) -> None:
    """Only whole lines of the tail are read, and `how` tells the caller what to log."""
    data = b"".join(user_line(f"turn {number}", f"u{number}") for number in range(100))
    reading = read_from(data, tail_limit=200)
    assert [message.text for message in reading.messages] == ["turn 98", "turn 99"]
    assert (reading.start.how, reading.garbage, reading.too_long) == ("tail", 0, 0)


@pytest.mark.parametrize("change", ["grown", "renamed", "shortened in front", "cut", "replaced"])
def test_every_message_comes_once_whatever_happens_to_the_file(
    change: str, read_from: Callable[..., Reading], user_line: Callable[..., bytes]
) -> None:
    """By their keys, the messages of both readings are all there are, each once."""
    lines = [user_line(f"turn {number}", f"u{number}") for number in range(9)]
    first = read_from(b"".join(lines[:6]))
    after = {
        "grown": lines,
        "renamed": lines,
        "shortened in front": lines[4:],
        "cut": lines[:3],
        "replaced": [user_line(f"other {number}", f"o{number}") for number in range(30)],
    }[change]
    second = read_from(b"".join(after), first.cursor)
    known: dict[str, Message] = {message.key: message for message in first.messages}
    new = [message for message in second.messages if message.key not in known]
    expected = {"cut": [], "replaced": [f"other {number}" for number in range(30)]}
    assert [message.text for message in new] == expected.get(change, ["turn 6", "turn 7", "turn 8"])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_FIELDS = st.sampled_from(
    """type message content role payload promptId uuid timestamp isMeta origin attachment ordinal metadata text
    internal_chat_message_metadata_passthrough content_item_kinds turn_id commandMode prompt kind""".split()  # noqa: SIM905 - reads better than a list
)
_VALUES = st.sampled_from(["user", "assistant", "attachment", "response_item", "message", "text", "queued_command"])
_RECORDS = st.recursive(
    _JSON | _VALUES,
    lambda inner: st.dictionaries(_FIELDS, inner, max_size=6) | st.lists(inner, max_size=3),
    max_leaves=20,
)


@pytest.mark.parametrize("dialect", [claude_code.read_record, codex.read_record], ids=["claude_code", "codex"])
@given(records=st.lists(_RECORDS, max_size=5))
def test_no_record_breaks_a_reader(dialect: Dialect, records: list[Any]) -> None:
    """Whatever JSON stands in a line, reading goes on; every message has a key, a text with a word, and a role."""
    reader = TranscriptReader(dialect, "s1")
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    for message in reader.feed(data):
        assert message.key
        assert any(letter.isalnum() for letter in message.text)
        assert message.role in {"user", "assistant"}
    assert reader.offset == len(data)
