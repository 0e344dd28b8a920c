"""What a dialect of transcripts is, and how its records are looked into.

Owns the seam between the reader of lines and the modules that each know one agent's records, and the few helpers those
share for JSON that may hold anything anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:
    from bankclient.turns.event import Message, Role

__all__ = ["Dialect", "Found", "Place", "Record", "as_list", "as_record", "as_role", "as_text", "text_blocks"]

Record: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands: its session, the offset of its line, the turn that was going on."""

    session_id: str
    offset: int
    turn_id: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """What a record says: a message or none, and the turn that goes on from here."""

    turn_id: str | None
    message: Message | None = None


Dialect: TypeAlias = Callable[[Record, Place], Found]
"""Reads one record; raises nothing, whatever the record holds."""


def as_record(value: object) -> Record:
    """Return `value` if it is a JSON object, else an empty one."""
    return cast("Record", value) if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[object]:
    """Return `value` if it is a JSON array, else an empty one."""
    return cast("Sequence[object]", value) if isinstance(value, list) else ()


def as_role(value: object) -> Role | None:
    """Return `value` if it is the role of one who speaks, else None: tools and systems do not."""
    return "user" if value == "user" else "assistant" if value == "assistant" else None


def as_text(value: object) -> str | None:
    """Return `value` if it is a string with something in it, else None."""
    return value if isinstance(value, str) and value else None


def text_blocks(content: object) -> list[str]:
    """Return the texts of a message's content, a string or a list of blocks; images, tools and thinking are no text."""
    if isinstance(content, str):
        return [content]
    blocks = map(as_record, as_list(content))
    return [
        text for block in blocks if as_text(block.get("type")) in _TEXT_TYPES and (text := as_text(block.get("text")))
    ]


_TEXT_TYPES = frozenset({"input_text", "output_text", "text"})
