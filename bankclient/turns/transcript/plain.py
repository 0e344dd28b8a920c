"""A plain list of `{role, content}`, as programs hold their conversations.

Owns which items of a list are new: all of them, or, of a list that is handed over whole each time, those behind what
was seen before, compared by content. Knows no program's own types: items are mappings.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bankclient.turns.event import Message
from bankclient.turns.speech import has_words, person_words
from bankclient.turns.transcript.dialect import Record, as_list, as_record, as_role, as_text, text_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Seen", "read_messages"]

_RECENT = 32


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a conversation: how many items, a digest of them all in order, one of each of the last."""

    count: int = 0
    digest: str = ""
    recent: tuple[str, ...] = ()
    turn_id: str | None = None


def read_messages(
    items: Sequence[Record], seen: Seen, *, session_id: str, nonce: str, whole: bool
) -> tuple[list[Message], Seen]:
    """Return the new messages in `items`, and what was seen then.

    With `whole`, `items` is the whole conversation: its head is compared with what was seen, by content; where the
    list was shortened in front (compaction), what follows the last items seen is new; where nothing of them is left,
    all of it is. Without `whole`, all items are new. A message is known by session, `nonce`, its count and its role:
    give a new nonce to a session that starts anew under an old name. The last answer counts as final.
    """
    digests = [_digest(item) for item in items]
    new = _first_new(digests, seen) if whole else 0
    messages: list[Message] = []
    turn_id = seen.turn_id
    for place, item in enumerate(items[new:], start=seen.count):
        role = as_role(item.get("role"))
        if role == "user":
            text = _typed(item.get("content"))
        else:
            text = "\n".join(text_blocks(item.get("content"))) if role else ""
        if role is None or not has_words(text):
            continue
        key = f"{session_id}:{nonce}:{place}:{role}"
        turn_id = key if role == "user" else turn_id
        at = as_text(item.get("timestamp"))
        final = role == "assistant" and place - seen.count == len(items) - new - 1
        messages.append(
            Message(role=role, text=text, key=key, ordinal=place, turn_id=turn_id, at=at, final=final),
        )
    chain = seen.digest
    for digest in digests[new:]:
        chain = _chained(chain, digest)
    recent = (*seen.recent, *digests[new:])[-_RECENT:]
    return messages, Seen(seen.count + len(items) - new, chain, recent, turn_id)


def _first_new(digests: Sequence[str], seen: Seen) -> int:
    """Return the index of the first item that was not seen, in a list that holds the whole conversation."""
    if seen.count <= len(digests):
        chain = ""
        for digest in digests[: seen.count]:
            chain = _chained(chain, digest)
        if chain == seen.digest:
            return seen.count
    best = new = 0
    for end in range(1, len(digests) + 1):
        common = _common_end(digests, end, seen.recent)
        if common and common >= best:
            best, new = common, end
    return new


def _common_end(digests: Sequence[str], end: int, recent: Sequence[str]) -> int:
    """Return how many items before `end` are the last of `recent`."""
    count = 0
    while count < min(end, len(recent)) and digests[end - count - 1] == recent[-count - 1]:
        count += 1
    return count


def _typed(content: object) -> str:
    if any(as_record(block).get("type") == "tool_result" for block in as_list(content)):
        return ""
    return "\n".join(words for text in text_blocks(content) if (words := person_words(text)))


def _digest(item: Record) -> str:
    said = json.dumps([item.get("role"), item.get("content")], sort_keys=True, default=repr)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _chained(chain: str, digest: str) -> str:
    return hashlib.sha256((chain + digest).encode()).hexdigest()[:32]
