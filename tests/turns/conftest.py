"""Messages, turns and events, made up with what a test does not care about filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bankclient.turns.event import Event, Message

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def message() -> Callable[..., Message]:
    """Make a message: the person's, called and numbered by its text, of the turn named."""

    def make(text: str, turn_id: str | None = "t1", **fields: Any) -> Message:  # noqa: ANN401 - any field
        values = {"role": "user", "key": text, "ordinal": 0, **fields}
        return Message(text=text, turn_id=turn_id, **values)

    return make


@pytest.fixture
def answer(message: Callable[..., Message]) -> Callable[..., Message]:
    """Make an answer, final if not said otherwise."""
    return lambda text, turn_id="t1", **fields: message(text, turn_id, **{"role": "assistant", "final": True, **fields})


@pytest.fixture
def event() -> Callable[..., Event]:
    """Make an event of a session, called by its kind."""

    def make(kind: str, **fields: Any) -> Event:  # noqa: ANN401 - any field
        values = {"agent": "claude_code", "session_id": "s1", "event_id": f"e-{kind}", **fields}
        return Event(kind=kind, **values)  # type: ignore[arg-type]  # tests name kinds as they are written

    return make
