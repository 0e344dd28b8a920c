"""What is kept of what was said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bankclient.turns.intake import kept_messages, kept_text
from bankclient.turns.render import Memory, render

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.turns.event import Message

_BLOCK = render([Memory("1", "The port is 4711")], 4096).text


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (f"{_BLOCK}\nwhich port?", "which port?"),
        (f"which port?\n\n{_BLOCK}", "which port?"),
        (f"you said:\n> {_BLOCK.replace(chr(10), chr(10) + '> ')}\nis that right?", "you said:\n> \nis that right?"),
        (_BLOCK, ""),
        (f"{_BLOCK}{_BLOCK}...", ""),
        ("<private>all of it</private>", ""),
        ("keep <private>not</private> this", "keep  this"),
        ("the key is ghp_FAKE1234567890 ok", "the key is [redacted: github token] ok"),
        ("\ud83d half", "\ufffd half"),
        ("\ud83d\ude00 whole", "\U0001f600 whole"),
        ("nul\x00l", "null"),
        ("  words \n", "words"),
        ("...", ""),
    ],
)
def test_what_is_kept(said: str, kept: str) -> None:
    """No block of ours, no private part, no secret, no letter that cannot be stored; else every word."""
    assert kept_text(said) == kept
    assert kept_text(kept) == kept


def test_a_secret_inside_a_private_part_leaves_no_trace() -> None:
    """What is private is gone before anything is looked for in it."""
    assert kept_text("a <private>ghp_FAKE1234567890</private> b") == "a  b"


def test_redaction_can_be_off() -> None:
    """All else still holds."""
    said = f"{_BLOCK}password: hunter2 <private>x</private>"
    assert kept_text(said, redacting=False) == "password: hunter2"


def test_messages_of_which_nothing_is_left_are_gone(message: Callable[..., Message]) -> None:
    """A message that holds only our block counts as no turn; of the others all but the text stays as it was."""
    kept = kept_messages([message(_BLOCK, key="k1"), message("password: hunter2", "t2", key="k2", at="now", ordinal=5)])
    assert kept == [message("password: [redacted: secret]", "t2", key="k2", at="now", ordinal=5)]
