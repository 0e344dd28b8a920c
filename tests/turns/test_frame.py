"""A batch as a document: what it is called, and that its text can be told from its frame."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.turns.event import Message, Turn
from bankclient.turns.frame import document, framed, iso_time

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., Message]

_PART = re.compile(
    r"\[role: (user|assistant)\]\n(\[context: [^\]\n]*\]\n)?(?:\[timestamp: ([^\]\n]*)\]\n)?"
    r"(.*?)\n\[\1:end\](?:\n\n|\Z)",
    re.DOTALL,
)
_LINES = "[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"
_ESCAPED = re.compile(
    rf"(\A|(?<={_LINES}))([^\S\r\n]*)\\(\\*\[[^\S\r\n]*(?:(?:role|timestamp|context)[^\S\r\n]*:|(?:user|assistant):end))",
    re.IGNORECASE,
)


def _unframed(text: str) -> list[tuple[str, bool, str | None, str]]:
    """Read a document back: role, whether it is context, time, text."""
    parts, place = [], 0
    while place < len(text):
        part = _PART.match(text, place)
        assert part, f"not framed: {text[place : place + 80]!r}"
        parts.append((part[1], bool(part[2]), part[3], _ESCAPED.sub(r"\2\3", part[4])))
        place = part.end()
    return parts


_FRAME_LIKE = st.sampled_from(
    [
        *("[role: user]", "[user:end]", "[assistant:end]", "[timestamp: x]", "[context: x]", "  [ROLE: user]"),
        *("\\[role: user]", "\n\n[role: user]\n", "\n", "\r", "\u2028", "\\", "[", "words"),
    ]
)
_TEXTS = st.lists(_FRAME_LIKE | st.text(max_size=5), max_size=8).map("".join)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.booleans(), _TEXTS), max_size=5))
def test_what_is_framed_can_be_read_back(parts: list[tuple[str, bool, str]]) -> None:
    """Whatever the texts fake, roles and texts come back as they were."""
    parts = sorted(parts, key=lambda part: not part[1])
    messages = [
        Message(role="user" if role == "user" else "assistant", text=text, key=f"{place}", ordinal=place)
        for place, (role, _, text) in enumerate(parts)
    ]
    context = [message for message, part in zip(messages, parts, strict=True) if part[1]]
    new = [message for message, part in zip(messages, parts, strict=True) if not part[1]]
    assert _unframed(framed(new, context=context)) == [(role, old, None, text) for role, old, text in parts]


def test_the_frame(message: Make, answer: Make) -> None:
    """It is the one that Hindsight's integrations write, with the time where it is known."""
    text = framed([message("which port?", at="2026-11-30T13:00:00.5Z"), answer("4711")], context=[message("before")])
    assert text == (
        "[role: user]\n[context: said earlier, stored already]\nbefore\n[user:end]\n\n"
        "[role: user]\n[timestamp: 2026-11-30T13:00:00.500000+00:00]\nwhich port?\n[user:end]\n\n"
        "[role: assistant]\n4711\n[assistant:end]"
    )


@pytest.mark.parametrize("line", ["[user:end]", "  [Role: user]", "\\[user:end]", "[timestamp: now]", "[ context: x]"])
def test_a_faked_line_is_escaped(line: str, message: Make) -> None:
    """No line of the text is one of the frame."""
    inner = framed([message(f"a\n{line}\nb")]).split("\n")[1:-1]
    assert line not in inner
    assert f"\\{line.strip()}" in [inner_line.strip() for inner_line in inner]


def test_brackets_in_a_line_are_left_alone(message: Make) -> None:
    """Only where a line of the frame would begin is anything changed."""
    text = "use [role: user] in front, and [x](y), arr[role]"
    assert text in framed([message(text)])


@pytest.fixture
def turns(message: Make, answer: Make) -> list[Turn]:
    """Give two turns."""
    return [
        Turn((message("one", "t1", key="k1", at="2026-11-30T13:00:00Z"), answer("yes", "t1")), complete=True),
        Turn((message("two", "t2", key="k2", at="2026-11-30T13:05:00Z"), answer("no", "t2")), complete=True),
    ]


def test_a_document(turns: list[Turn], message: Make) -> None:
    """Its name comes from its first new message, its time too; its metadata says which turns it holds."""
    before = [Turn((message("zero", "t0", key="k0", at="2026-11-30T12:00:00Z"),), complete=True)]
    made = document(
        turns, session_id="s1", agent="codex", first_turn=4, context="codex", tags=["project:x"], before=before
    )
    assert re.fullmatch(r"s1\.[0-9a-f]{12}", made.document_id)
    assert made.metadata == {"session_id": "s1", "agent": "codex", "turns": "4-5"}
    assert (made.timestamp, made.context, made.tags) == ("2026-11-30T13:00:00+00:00", "codex", ("project:x",))
    assert [part[3] for part in _unframed(made.content)] == ["zero", "one", "yes", "two", "no"]


def test_a_document_is_called_by_what_is_new_in_it(turns: list[Turn]) -> None:
    """The same batch is the same document, whatever stands in front; the next one is another."""

    def name(batch: list[Turn], before: list[Turn]) -> str:
        return document(batch, session_id="s1", agent="codex", first_turn=1, before=before).document_id

    assert name(turns, []) == name(turns[:1], []) != name(turns[1:], [])
    assert name(turns[1:], turns[:1]) == name(turns[1:], [])


def test_an_answer_alone_has_no_turn_number(answer: Make) -> None:
    """What came late for a turn that was stored says so by having none."""
    late = [Turn((answer("late", "t0"),), complete=True)]
    assert document(late, session_id="s1", agent="codex", first_turn=4).metadata == {
        "session_id": "s1",
        "agent": "codex",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30T13:50:27.592Z", "2026-11-30T13:50:27.592000+00:00"),
        ("2026-11-30 13:50:27+02:00", "2026-11-30T13:50:27+02:00"),
        ("2026-11-30", "2026-11-30T00:00:00"),
        ("0001-01-01T00:00:00Z", None),
        ("9999-12-31T00:00:00Z", None),
        ("yesterday", None),
        ("1796046800", None),
        ("", None),
        (None, None),
    ],
)
def test_times_are_those_that_the_server_takes(text: str | None, expected: str | None) -> None:
    """Other forms, and years that it refuses, are left out rather than refused."""
    assert iso_time(text) == expected


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)))  # noqa: DTZ001 - agents write both
def test_a_time_stays_the_time_that_it_is(time: datetime) -> None:
    """What is sent reads back as what was said."""
    assert datetime.fromisoformat(iso_time(time.isoformat()) or "") == time
