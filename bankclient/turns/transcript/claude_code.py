"""Claude Code's transcripts: one JSON object a line, as versions from 2.0 on write them.

Owns what each kind of record means: what is the person's, what the agent's, what the harness's. Seen of the format:
one answer is several `assistant` lines of one `message.id`, each with its own `uuid`; results of tools are `user`
lines; what is typed while a tool runs is an `attachment`; a fork repeats its parent's lines with their uuids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.turns.event import Message
from bankclient.turns.speech import person_words
from bankclient.turns.transcript.dialect import Found, Place, Record, as_list, as_record, as_text, text_blocks

if TYPE_CHECKING:
    from bankclient.turns.event import Role
    from bankclient.turns.transcript.dialect import Dialect

__all__ = ["read_record"]

_HARNESS_MARKS = ("isCompactSummary", "isMeta", "isVisibleInTranscriptOnly")
_GOES_ON = frozenset({None, "pause_turn", "tool_use"})
"""Reasons to stop after which the agent goes on by itself."""


def read_record(record: Record, place: Place) -> Found:
    """Return what a line says.

    Lines of subagents say nothing here, not even which turn goes on: a subagent has a transcript of its own.
    """
    read = _READERS.get(as_text(record.get("type")))
    if read is None or record.get("isSidechain") is True:
        return Found(place.turn_id)
    return read(record, place)


def _user(record: Record, place: Place) -> Found:
    content = as_record(record.get("message")).get("content")
    prompt_id = as_text(record.get("promptId"))
    if (
        any(record.get(mark) is True for mark in _HARNESS_MARKS)
        or not _from_person(record)
        or any(as_record(block).get("type") == "tool_result" for block in as_list(content))
    ):
        return Found(prompt_id or place.turn_id)
    text = "\n".join(words for block in text_blocks(content) if (words := person_words(block)))
    if not text:
        return Found(prompt_id or place.turn_id)
    key = _key(record, place)
    # Versions that know no prompt ids: a turn is called as the line that opens it.
    turn_id = prompt_id or key
    return Found(turn_id, _message("user", text, record, place, turn_id))


def _assistant(record: Record, place: Place) -> Found:
    message = as_record(record.get("message"))
    text = "\n".join(text_blocks(message.get("content")))
    # "No response requested." and reports of errors are written by the harness in the model's place.
    if not text or message.get("model") == "<synthetic>" or record.get("isApiErrorMessage") is True:
        return Found(place.turn_id)
    final = as_text(message.get("stop_reason")) not in _GOES_ON
    return Found(place.turn_id, _message("assistant", text, record, place, place.turn_id, final=final))


def _attachment(record: Record, place: Place) -> Found:
    attachment = as_record(record.get("attachment"))
    queued = attachment.get("type") == "queued_command" and attachment.get("commandMode", "prompt") == "prompt"
    if not queued or attachment.get("isMeta") is True or not _from_person(attachment):
        return Found(place.turn_id)
    text = "\n".join(words for block in text_blocks(attachment.get("prompt")) if (words := person_words(block)))
    if not text:
        return Found(place.turn_id)
    turn_id = place.turn_id or _key(record, place)
    return Found(turn_id, _message("user", text, record, place, turn_id))


_READERS: dict[str | None, Dialect] = {"assistant": _assistant, "attachment": _attachment, "user": _user}


def _from_person(record: Record) -> bool:
    """Whether a record that tells where it comes from says: from the person. Older versions do not tell."""
    origin = as_text(as_record(record.get("origin")).get("kind"))
    return origin in {None, "human"}


def _key(record: Record, place: Place) -> str:
    return as_text(record.get("uuid")) or f"{place.session_id}:@{place.offset}:{record.get('type')}"


def _message(
    role: Role, text: str, record: Record, place: Place, turn_id: str | None, *, final: bool = False
) -> Message:
    return Message(
        role=role,
        text=text,
        key=_key(record, place),
        ordinal=place.offset,
        turn_id=turn_id,
        at=as_text(record.get("timestamp")),
        final=final,
    )
