"""What may be kept of a message: everything that is kept or sent goes through here first.

Owns the order of the cleaning: broken letters, our own memory blocks, private parts, secrets. Knows no file and no
store.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bankclient.text import clean_text
from bankclient.turns.redact import redact
from bankclient.turns.render import strip_blocks
from bankclient.turns.speech import has_words
from bankclient.turns.wishes import without_private

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bankclient.turns.event import Message

__all__ = ["kept_messages", "kept_text"]


def kept_text(text: str, *, redacting: bool = True) -> str:
    """Return what may be kept of something that was said, without blanks around; empty if that is nothing.

    Lone surrogates and NUL are gone, memory blocks of ours, private parts, and, if `redacting`, secrets.
    """
    text = without_private(strip_blocks(clean_text(text)))
    if redacting:
        text = redact(text)
    return text.strip() if has_words(text) else ""


def kept_messages(messages: Iterable[Message], *, redacting: bool = True) -> list[Message]:
    """Return the messages with what may be kept of their text; those of which nothing is left are gone."""
    kept = ((message, kept_text(message.text, redacting=redacting)) for message in messages)
    return [replace(message, text=text) for message, text in kept if text]
