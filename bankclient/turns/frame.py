r"""A sealed batch as one document: how its messages are written down, and what it is called.

Owns the frame that Hindsight's integrations share (`[role: user]`, text, `[user:end]`), the escape that keeps text
from faking it, and the document's id, time and metadata. Knows neither who sends it nor how.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bankclient.turns.event import Message, Turn

__all__ = ["Document", "document", "framed", "iso_time"]

_LINE_START = r"(?:\A|(?<=[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]))"
_FAKE = re.compile(
    _LINE_START + r"(?P<indent>[^\S\r\n]*)(?P<rest>\\*\[[^\S\r\n]*(?:(?:role|timestamp|context)[^\S\r\n]*:|"
    r"(?:user|assistant):end))",
    re.IGNORECASE,
)
_FIRST_YEAR, _LAST_YEAR = 2, 9998
"""The server answers 422 to the years 1 and 9999."""


@dataclass(frozen=True, slots=True)
class Document:
    """What one sealed batch is to the server."""

    document_id: str
    content: str
    metadata: Mapping[str, str]
    timestamp: str | None = None
    """ISO 8601; None where the messages tell no time that the server would take."""
    context: str | None = None
    tags: tuple[str, ...] = field(default=())


def document(
    turns: Sequence[Turn],
    *,
    session_id: str,
    agent: str,
    first_turn: int,
    context: str | None = None,
    tags: Sequence[str] = (),
    before: Sequence[Turn] = (),
) -> Document:
    """Return the document of a batch of `turns`, which must hold a message.

    Its id is the session's with a short hash of the first new message's key: the same batch is always the same
    document, and a store that was lost cannot overwrite what it did not write. `first_turn` is the number in its
    session, from 1, of the batch's first user turn; `before` are turns that were stored already and stand in front as
    context; `context` is the label of the item.
    """
    messages = [message for turn in turns for message in turn.messages]
    counting = sum(turn.counts for turn in turns)
    metadata = {"session_id": session_id, "agent": agent}
    if counting:
        metadata["turns"] = f"{first_turn}-{first_turn + counting - 1}"
    return Document(
        document_id=f"{session_id}.{hashlib.sha256(messages[0].key.encode()).hexdigest()[:12]}",
        content=framed(messages, context=[message for turn in before for message in turn.messages]),
        metadata=metadata,
        timestamp=next((time for message in messages if (time := iso_time(message.at))), None),
        context=context,
        tags=tuple(tags),
    )


def framed(messages: Iterable[Message], *, context: Iterable[Message] = ()) -> str:
    r"""Return messages as the server reads conversations, `context` first and marked as such.

    A line of the text that looks like one of the frame, or like an escaped one, gets a backslash before its bracket;
    taking one away there gives the text back.
    """
    parts = [_one(message, "[context: said earlier, stored already]\n") for message in context]
    return "\n\n".join([*parts, *(_one(message, "") for message in messages)])


def iso_time(text: str | None) -> str | None:
    """Return a time as the server takes it, None for anything that it would refuse with 422."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.isoformat() if _FIRST_YEAR <= time.year <= _LAST_YEAR else None


def _one(message: Message, mark: str) -> str:
    time = iso_time(message.at)
    stamp = f"[timestamp: {time}]\n" if time else ""
    text = _FAKE.sub(r"\g<indent>\\\g<rest>", message.text)
    return f"[role: {message.role}]\n{mark}{stamp}{text}\n[{message.role}:end]"
