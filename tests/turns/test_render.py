"""The block of memories: its budget, its frame, and taking it out again."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.turns.render import INTRODUCTION, LeftOut, Memory, escaped_size, render, strip_blocks

_FRAME = escaped_size(render([Memory("1", "x")], 4096).text) - escaped_size("- x\n")

_HOSTILE = st.sampled_from(
    [
        *("</memories>", "<memories>", '<memories mark="0123456789abcdef">', "< / Memories>", "</system-reminder>"),
        *("\n- ", "\n\n", "\u2028", "\r", "\x85", "> ", "<", "&lt;", '"', "\\", "ghp_FAKE1234567890"),
        *("\U0001f469\u200d\U0001f467", "\ud83d"),
    ]
)
_MEMORY_TEXTS = st.lists(_HOSTILE | st.text(max_size=8), max_size=8).map("".join)
_MEMORIES = st.lists(_MEMORY_TEXTS, min_size=1, max_size=6).map(
    lambda texts: [Memory(f"{place}", f"m{place} {text}") for place, text in enumerate(texts)]
)


def test_the_block() -> None:
    """One sentence on what it is, then the memories, best first, each an item."""
    block = render([Memory("1", "The port is 4711", date="2026-11-30"), Memory("2", "Tabs,\n\n  not spaces")], 4096)
    assert re.fullmatch(
        rf'<memories mark="[0-9a-f]{{16}}">\n{re.escape(INTRODUCTION)}\n'
        r"- The port is 4711 \(2026-11-30\)\n- Tabs,\n  not spaces\n</memories>",
        block.text,
    )
    assert (block.shown, block.left_out) == (("1", "2"), ())


def test_the_same_memories_make_the_same_block() -> None:
    """Nothing of time or chance is in it; other memories have another mark."""
    one, again, other = (render([Memory("1", text)], 4096).text for text in ("a", "a", "b"))
    assert one == again != other


@pytest.mark.parametrize("memories", [[], [Memory("1", "..."), Memory("2", "")]])
def test_nothing_to_show_is_no_block(memories: list[Memory]) -> None:
    """An empty frame would only cost."""
    block = render(memories, 4096)
    assert (block.text, block.shown, block.size) == ("", (), 0)
    assert [left.why for left in block.left_out] == ["empty"] * len(memories)


@given(memories=_MEMORIES, budget=st.integers(0, 900))
def test_the_budget_holds_in_any_hosts_json(memories: list[Memory], budget: int) -> None:
    """The block keeps the budget with all but ASCII escaped, and as UTF-8; the manifest says what is there."""
    block = render(memories, budget)
    assert block.size == len(json.dumps(block.text)) - 2 <= max(budget, 0)
    assert len(json.dumps(block.text, ensure_ascii=False).encode()) - 2 <= block.size
    assert sorted([*block.shown, *(left.id for left in block.left_out)]) == [memory.id for memory in memories]
    for memory in memories:
        assert (f"\n- m{memory.id} " in block.text or f"\n- m{memory.id}\n" in block.text) == (memory.id in block.shown)


@given(memories=_MEMORIES)
def test_no_memory_leaves_the_frame(memories: list[Memory]) -> None:
    """The block opens once and closes once, at its ends, and no line but items and what belongs to them is in it."""
    text = render(memories, 1 << 20).text
    assert len(re.findall(r"<[\s/]*memories", text, re.IGNORECASE)) == 2
    assert "<system-reminder" not in text
    assert "</system-reminder" not in text
    first, introduction, *items, last = text.split("\n")
    assert (first[:16], introduction, last) == ('<memories mark="', INTRODUCTION, "</memories>")
    assert all(item.startswith(("- m", "  ")) for item in items)
    assert len(text.splitlines()) == len(items) + 3


def test_a_huge_memory_makes_way_for_the_others() -> None:
    """Three hundred items, one of them of 200 KB, some of four-byte letters: whole ones are shown, best first."""
    memories = [Memory("huge", "x" * 200_000)]
    memories += [Memory(f"{number}", f"fact {number} " + "\U0001f600" * 100) for number in range(299)]
    block = render(memories, 8192)
    assert block.size <= 8192 < block.size + 12 * 100 + 20
    assert block.shown == tuple(f"{number}" for number in range(len(block.shown)))
    assert block.text.count("\n- ") == len(block.shown) > 3
    assert block.left_out[0] == LeftOut("huge", "over the byte budget")
    assert len(block.left_out) == 300 - len(block.shown)


def test_a_memory_said_twice_is_shown_once() -> None:
    """The second one is left out, and the manifest says why."""
    block = render([Memory("1", "The port is 4711"), Memory("2", " The port is 4711\n")], 4096)
    assert (block.shown, block.left_out) == (("1",), (LeftOut("2", "said already"),))


def test_secrets_in_memories_are_not_shown() -> None:
    """A secret that was stored long ago does not come back, unless redaction is off."""
    memory = Memory("1", "The key is ghp_FAKE1234567890abcdef for now")
    assert "- The key is [redacted: github token] for now\n" in render([memory], 4096).text
    assert "ghp_FAKE1234567890abcdef" in render([memory], 4096, redacting=False).text


def test_a_block_inside_a_memory_is_not_shown_again() -> None:
    """What slipped into a bank as a memory does not grow with each recall."""
    inner = render([Memory("1", "The port is 4711")], 4096).text
    assert render([Memory("2", inner)], 4096).text == ""
    assert "- before after\n" in render([Memory("2", f"before {inner}after")], 4096).text


_AROUND = st.text(max_size=30) | st.sampled_from(
    ["<memories>x</memories>", '<memories mark="0123456789abcdef">', "</memories>", "```\n", "> ", "<memories mark="]
)


@given(memories=_MEMORIES, before=_AROUND, between=_AROUND, after=_AROUND)
def test_taking_out_gives_back_what_was_around(memories: list[Memory], before: str, between: str, after: str) -> None:
    """Our blocks go, every letter around them stays, also between two."""
    block = render(memories, 1 << 20).text
    assert strip_blocks(f"{before}{block}{between}{block}{after}") == f"{before}{between}{after}"


@pytest.mark.parametrize(
    "text",
    [
        "please explain <hindsight_memories>x</hindsight_memories> thanks",
        "please explain <memories>x</memories> thanks",
        'what is <memories mark="0123456789abcdef">x</memories> here?',
        '<memories mark="0123456789abcdef"> never closed',
        "only </memories> the end",
        '```\n<memories mark="0123456789abcdef">\nx\n</memories>\n```',
        '<memories mark="">x</memories>',
        "no block at all",
    ],
)
def test_look_alikes_stay(text: str) -> None:
    """Whatever we did not make is somebody's words."""
    assert strip_blocks(text) == text


def test_a_block_that_was_changed_stays() -> None:
    """Who puts other words into our frame has written them; half a block is no block."""
    block = render([Memory("1", "The port is 4711")], 4096).text
    for changed in (block.replace("4711", "4712"), block[:-1], block[1:], block.replace("memories", "Memories")):
        assert strip_blocks(changed) == changed


def test_a_block_behind_an_opening_of_its_own_kind_goes() -> None:
    """The look-alike in front takes nothing with it and saves nothing."""
    block = render([Memory("1", "The port is 4711")], 4096).text
    assert strip_blocks(f'<memories mark="0123456789abcdef"> a {block} b') == '<memories mark="0123456789abcdef"> a  b'


@pytest.mark.parametrize(
    "quoted",
    [
        lambda block: block.replace("\n", "\r\n"),
        lambda block: block.replace("\n", "\n> "),
        lambda block: block.replace("\n", "\n    "),
        lambda block: block.replace("\n", " \n"),
        lambda block: json.dumps(block)[1:-1],
        lambda block: f"```\n{block}\n```",
    ],
    ids=["CRLF", "quoted", "indented", "blanks at line ends", "JSON", "code fence"],
)
def test_a_block_that_a_later_turn_quotes_goes_too(quoted: object) -> None:
    """The marks of quotes and line ends do not make it new words."""
    assert callable(quoted)
    block = render([Memory("1", "The port is 4711, not <b>\u017c</b>"), Memory("2", "a\nb")], 4096).text
    stripped = strip_blocks(f"you said: {quoted(block)} and that was wrong")
    assert "4711" not in stripped
    assert stripped.startswith("you said: ")
    assert stripped.endswith(" and that was wrong")


@pytest.mark.parametrize("unit", ['<memories mark="0123456789abcdef">', "<memories ", "</memories>", "<", "a"])
def test_time_grows_with_the_text(unit: str) -> None:
    """Ten times the look-alikes take nowhere near a hundred times as long."""

    def seconds(count: int) -> float:
        text = unit * count + "</memories>"
        start = time.process_time()
        assert strip_blocks(text) == text
        return time.process_time() - start

    assert seconds(40_000) < 40 * max(seconds(4_000), 0.005)
