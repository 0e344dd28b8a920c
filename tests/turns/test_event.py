"""The values that turns are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.turns.event import Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.turns.event import Event, Message


def test_an_event_of_a_subagent_says_so(event: Callable[..., Event]) -> None:
    """It carries the parent's session and the subagent's id."""
    assert event("stop", subagent_id="a1").is_subagent
    assert not event("stop").is_subagent


def test_a_turn_counts_if_a_person_spoke_in_it(message: Callable[..., Message], answer: Callable[..., Message]) -> None:
    """An answer alone is the rest of a turn that was counted before."""
    assert Turn((message("one"), answer("yes")), complete=True).counts
    assert not Turn((answer("yes"),), complete=True).counts


def test_the_text_of_a_turn_is_all_that_was_said(
    message: Callable[..., Message], answer: Callable[..., Message]
) -> None:
    """Question and answer, in order."""
    assert Turn((message("one"), answer("yes")), complete=True).text == "one\nyes"
