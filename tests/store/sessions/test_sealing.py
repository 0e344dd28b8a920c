"""What becomes a document, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

Said = "Callable[[], list[list[str]]]"


def test_seven_turns_at_three_are_three_three_and_one(agent, said) -> None:
    """The last one waits for the session's end."""
    agent.start()
    for number in range(1, 8):
        agent.exchange(number)
    assert said() == [["q1", "a1", "q2", "a2", "q3", "a3"], ["q4", "a4", "q5", "a5", "q6", "a6"]]
    agent.end()
    assert said()[2:] == [["q7", "a7"]]
