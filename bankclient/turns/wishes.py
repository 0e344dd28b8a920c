"""What the person wished for memory, in the words of the prompt itself: keep this out, do not look it up.

Owns the `<private>` element and the phrases that decline memory for one turn. Knows nothing of settings: a wish in a
prompt holds whatever they say.
"""

from __future__ import annotations

import re

__all__ = ["declines_memory", "without_private"]

_PRIVATE = re.compile(r"<(/?)private(?:\s[^<>]{0,200})?>", re.IGNORECASE)

_NOT = r"(?:do\s+not|don['\u2019]?t|please\s+don['\u2019]?t|never)"
_LOOK = r"(?:use|consult|check|search|read|access|query|recall|rely\s+on|draw\s+on|look\s+(?:at|in|into|through|up))"
_WITHOUT = r"(?:without|ignore|ignoring|skip|skipping|leave\s+out)"
_LOOKING = r"(?:(?:using|consulting|checking|searching|reading|accessing|recalling|looking\s+(?:at|in|into))\s+)?"
_WHOSE = r"(?:(?:any|all|of|the|your|our|my|stored|saved|past|previous|earlier|old|long-term|hindsight)\s+)*"
_MEMORY = r"(?:memory|memories)(?:\s+(?:bank|banks|tools?|recall))?"
_THEN = (
    r"(?=\s*(?:[.,;:!?)\u2014]|-\s|\Z|\n)"
    r"|\s+(?:for\s+(?:this|that|now|it)|here|now|this\s+time|in\s+this|on\s+this|when|while|to\s+answer|please|and|but|at\s+all)\b)"
)
_DECLINES = re.compile(
    rf"\b(?:{_NOT}\s+{_LOOK}|{_WITHOUT}\s+{_LOOKING})\s*{_WHOSE}{_MEMORY}{_THEN}"
    rf"|\b(?:no\s+(?:memory|memories|recall)\s+(?:for|in|on)\s+this\b)"
    rf"|\b(?:{_NOT})\s+recall\s+anything\b",
    re.IGNORECASE,
)


def declines_memory(prompt: str) -> bool:
    """Whether the prompt asks, in plain English, that memory be left alone for this turn.

    Understood are a negation and a verb of looking, or a word of leaving out, before "memory" or "memories", whose
    owner may be named, and that end the phrase or go on with "for this", "here", "when", "and" …: "don't use your
    memory", "do not consult any stored memories for this", "without using memory, …", "ignore previous memories"; also
    "no memory for this" and "don't recall anything". "Without memory leaks" and "don't use memory-mapped files" are
    about something else.
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
