"""Codex's rollouts: lines `{timestamp, ordinal, type, payload}`, as versions from 0.100 on write them.

Owns what each kind of record means. Seen of the format: what was said is a `response_item`; the harness speaks in the
user's place too and newer versions name the kind of each block; the summary that a compaction makes stands there as an
answer, marked in the line's metadata; a turn that is steered holds several prompts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.turns.event import Message
from bankclient.turns.speech import person_words
from bankclient.turns.transcript.dialect import Found, Place, Record, as_list, as_record, as_role, as_text, text_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["read_record"]

_OPENS_TURN = frozenset({"task_started", "turn_started"})


def read_record(record: Record, place: Place) -> Found:
    """Return what a line says."""
    payload = as_record(record.get("payload"))
    kind = record.get("type")
    if kind == "turn_context" or (kind == "event_msg" and as_text(payload.get("type")) in _OPENS_TURN):
        return Found(as_text(payload.get("turn_id")) or place.turn_id)
    role = as_role(payload.get("role"))
    if kind != "response_item" or payload.get("type") != "message" or role is None:
        return Found(place.turn_id)
    passthrough = as_record(payload.get("internal_chat_message_metadata_passthrough"))
    turn_id = as_text(passthrough.get("turn_id")) or place.turn_id
    if as_record(record.get("metadata")).get("compaction_output") is True:
        return Found(turn_id)
    if role == "user":
        text = _typed(payload.get("content"), as_list(passthrough.get("content_item_kinds")))
    else:
        text = "\n".join(text_blocks(payload.get("content")))
    if not text:
        return Found(turn_id)
    ordinal = record.get("ordinal")
    place_in_file = f"{ordinal}" if isinstance(ordinal, int) else f"@{place.offset}"
    key = f"{place.session_id}:{place_in_file}"
    if role == "user" and (turn_id is None or turn_id.startswith(f"{place.session_id}:")):
        turn_id = key  # versions that know no turn ids: a turn is called as the line that opens it
    message = Message(
        role=role,
        text=text,
        key=key,
        ordinal=place.offset,
        turn_id=turn_id,
        at=as_text(record.get("timestamp")),
        final=payload.get("phase") == "final_answer",
    )
    return Found(turn_id, message)


def _typed(content: object, kinds: Sequence[object]) -> str:
    """Return what the person typed: by the blocks' kinds where the line names them, else by their looks."""
    named = [as_text(kind) for kind in kinds]
    blocks = as_list(content)
    if len(named) == len(blocks):
        texts = [
            text
            for kind, block in zip(named, blocks, strict=True)
            if kind is None or kind.startswith("user.")
            for text in text_blocks([block])
        ]
        return "\n".join(texts)
    return "\n".join(words for text in text_blocks(content) if (words := person_words(text)))
