"""When a retain is due, and of which turns: counting, batches, and answers that come before their line does.

Owns turns as groups of messages and the rule of sealing. Knows no store and no clock: the unsealed messages, the ids
that events told, and the reason to seal are arguments.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias

from bankclient.turns.event import Message, Turn

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from bankclient.turns.event import Event, Role

__all__ = [
    "IDLE_AFTER",
    "SealReason",
    "adopter",
    "captured",
    "due",
    "group",
    "heard_by_text",
    "lacks_answer",
    "overlap",
    "stand_in",
]

SealReason: TypeAlias = Literal["cadence", "pre_compact", "flush", "leaving", "idle", "session_end"]
"""`cadence`: enough turns came together. The others seal what is open; only `session_end` the turn in progress too."""

IDLE_AFTER = 3600.0
"""Seconds after a transcript last grew when what is open is sealed; it does not end the session."""

_SAME_PROMPT = timedelta(minutes=2)


def captured(messages: Iterable[Message], turn_ids: Container[str]) -> tuple[list[Message], int]:
    """Return the messages of turns whose own event reached us, by their ids, and how many others were passed over.

    What was said while memory was off, before it was installed, or under another shell's settings has no such event.
    """
    kept: list[Message] = []
    passed = 0
    for message in messages:
        if message.turn_id is not None and message.turn_id in turn_ids:
            kept.append(message)
        else:
            passed += 1
    return kept, passed


def heard_by_text(messages: Iterable[Message], prompts: Iterable[Event]) -> dict[str, str]:
    """Return event id → turn id for prompts of agents that tell no turn ids, found by their text and time.

    Each prompt is one message with the same words, said within two minutes of the event where both tell the time; the
    earliest one not taken yet. Events and messages must have been prepared alike (redacted or not).
    """
    open_messages = [message for message in messages if message.role == "user" and message.turn_id is not None]
    found: dict[str, str] = {}
    for event in prompts:
        for message in open_messages:
            if _words(message.text) == _words(event.prompt or "") and _near(message.at, event.at):
                found[event.event_id] = message.turn_id or ""
                open_messages.remove(message)
                break
    return found


def stand_in(event: Event, ordinal: int) -> Message | None:
    """Return what an event says was said, for a transcript that does not hold it yet, or for want of one.

    `ordinal` is its place: the offset that the transcript was read to. None where the event tells nothing.
    """
    role: Role
    if event.kind == "prompt":
        role, text = "user", event.prompt
    elif event.kind == "stop":
        role, text = "assistant", event.last_answer
    else:
        return None
    if not text:
        return None
    return Message(
        role=role,
        text=text,
        key=f"{event.session_id}:{event.event_id}:{role}",
        ordinal=ordinal,
        turn_id=event.turn_id,
        at=event.at,
        final=role == "assistant",
    )


def lacks_answer(messages: Iterable[Message], stop: Event) -> bool:
    """Whether the messages of the turn that `stop` ended are still without the answer it ended with.

    Agents may call their hooks before the last line is written. There it is once a final answer is, or one with the
    words that the event told; of an event that tells none, any answer will do. Both must have been prepared alike.
    """
    answers = [message for message in messages if message.role == "assistant" and message.turn_id == stop.turn_id]
    if stop.last_answer:
        return not any(answer.final or _words(answer.text) == _words(stop.last_answer) for answer in answers)
    return not answers


def adopter(standing: Message, read: Sequence[Message], *, session_over: bool = False) -> Message | None:
    """Return the line that a stand-in stood for, of the messages read since; None while it is not there.

    Of an answer that is the turn's first final line, whatever its text; of agents that do not tell which is final, the
    one with the same words, or the last once the turn is over. Of a prompt it is the one with the same words, else the
    turn's first: a line may hold more than the event told, and a turn that is steered has several. The caller lets
    that line's key replace the stand-in's, and hands lines already adopted in no second time.
    """
    lines = [line for line in read if line.turn_id == standing.turn_id and line.role == standing.role]
    same = next((line for line in lines if _words(line.text) == _words(standing.text)), None)
    if standing.role == "user":
        return same or next(iter(lines), None)
    final = next((line for line in lines if line.final), None)
    if final or same or not lines:
        return final or same
    behind = read[read.index(lines[-1]) + 1 :]
    over = session_over or any(line.turn_id != standing.turn_id for line in behind)
    return lines[-1] if over else None


def group(messages: Iterable[Message], answered: Container[str] = ()) -> list[Turn]:
    """Return the turns of a session's messages, in order.

    A turn is complete when the next one began, or when it was answered: by a final answer, or by any one if its id is
    in `answered`, the turns that stopped and lack no answer. Answers without their prompt, which was sealed before, are
    a turn that does not count.
    """
    groups: list[list[Message]] = []
    for message in messages:
        begins = message.turn_id is None and message.role == "user"
        if not groups or begins or message.turn_id != groups[-1][-1].turn_id:
            groups.append([])
        groups[-1].append(message)
    turns = [Turn(tuple(group), complete=True) for group in groups[:-1]]
    return [*turns, *(Turn(tuple(last), complete=_is_answered(last, answered)) for last in groups[-1:])]


def due(turns: Sequence[Turn], every: int, reason: SealReason = "cadence") -> list[tuple[Turn, ...]]:
    """Return the batches to seal now, each of at most `every` user turns, from a session's unsealed turns in order.

    On `cadence` these are the full ones only: 7 turns at 3 are 3, 3 and one that waits. Any other reason seals the
    rest too. The turn in progress is sealed only by `session_end`.
    """
    batches: list[tuple[Turn, ...]] = []
    batch: list[Turn] = []
    for turn in turns:
        if not turn.complete and reason != "session_end":
            break
        batch.append(turn)
        if sum(turn.counts for turn in batch) == every:
            batches.append(tuple(batch))
            batch = []
    if batch and reason != "cadence":
        batches.append(tuple(batch))
    return batches


def overlap(sealed: Sequence[Turn], turns: int) -> tuple[Turn, ...]:
    """Return the last `turns` turns that were sealed before a batch, to stand in front of it as context."""
    return tuple(sealed[-turns:]) if turns > 0 else ()


def _is_answered(messages: Sequence[Message], answered: Container[str]) -> bool:
    last = messages[-1]
    return last.role == "assistant" and (last.final or (last.turn_id is not None and last.turn_id in answered))


def _words(text: str) -> str:
    return " ".join(text.split())


def _near(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return True
    try:
        return abs(datetime.fromisoformat(one) - datetime.fromisoformat(other)) <= _SAME_PROMPT
    except (ValueError, TypeError):  # no times, or one with a zone and one without
        return True
