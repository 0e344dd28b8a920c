"""What the person wished for memory, in the words of the prompt itself: keep this out, do not look it up.

Owns the `<private>` element and the phrases that decline memory for one turn. Knows nothing of settings: a wish in a
prompt holds whatever they say.
"""

from __future__ import annotations

import re

__all__ = ["declines_memory", "without_private"]

_PRIVATE = re.compile(r"<(/?)private(?:\s[^<>]{0,200})?>", re.IGNORECASE)

_NOT = r"(?:do\s{1,9}not|don['\u2019]?t|please\s{1,9}don['\u2019]?t|never)"
_LOOK = (
    r"(?:use|consult|check|search|read|access|query|recall"
    r"|rely\s{1,9}on|draw\s{1,9}on|look\s{1,9}(?:at|in|into|through|up))"
)
_WITHOUT = r"(?:without|ignore|ignoring|skip|skipping|leave\s{1,9}out)"
_LOOKING = (
    r"(?:(?:using|consulting|checking|searching|reading|accessing|recalling|looking\s{1,9}(?:at|in|into))\s{1,9})?"
)
_WHOSE = r"(?:(?:any|all|of|the|your|our|my|stored|saved|past|previous|earlier|old|long-term|hindsight)\s{1,9})*"
_MEMORY = r"(?:memory|memories)(?:\s{1,9}(?:bank|banks|tools?|recall))?"
_THEN = (
    r"(?=\s{0,9}(?:[.,;:!?)\u2014]|-\s|\Z|\n)"
    r"|\s{1,9}(?:for\s{1,9}(?:this|that|now|it)|here|now|this\s{1,9}time|in\s{1,9}this|on\s{1,9}this|when|while|to\s{1,9}answer|please|and|but|at\s{1,9}all)\b)"
)
_DECLINES = re.compile(
    rf"\b(?:{_NOT}\s{{1,9}}{_LOOK}|{_WITHOUT}\s{{1,9}}{_LOOKING})\s{{0,9}}{_WHOSE}{_MEMORY}{_THEN}"
    r"|(?:\A|[\n.!?;:,(])\s{0,9}no\s{1,9}(?:memory|memories|recall)\s{1,9}(?:for|in|on)\s{1,9}this\b"
    rf"|\b(?:{_NOT})\s{{1,9}}recall\s{{1,9}}anything\b",
    re.IGNORECASE,
)


def declines_memory(prompt: str) -> bool:
    """Whether the prompt asks, in plain English, that memory be left alone for this turn.

    Understood are a negation and a verb of looking, or a word of leaving out, before "memory" or "memories", whose
    owner may be named, and that end the phrase or go on with "for this", "here", "when", "and" …: "don't use your
    memory", "do not consult any stored memories for this", "without using memory, …", "ignore previous memories"; also
    "no memory for this" and "don't recall anything". "Without memory leaks" and "don't use memory-mapped files" are
    about something else, and so is "there is no memory for this".
    """
    return _DECLINES.search(prompt) is not None


def without_private(text: str) -> str:
    """Return `text` without its `<private>…</private>` elements; one that is never closed reaches to the end."""
    kept: list[str] = []
    start = depth = 0
    for tag in _PRIVATE.finditer(text):
        if not tag[1]:
            if not depth:
                kept.append(text[start : tag.start()])
            depth += 1
        elif depth:
            depth -= 1
            start = tag.end()
    if not depth:
        kept.append(text[start:])
    return "".join(kept)
