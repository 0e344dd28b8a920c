"""Splitting a text into chunks, each of which becomes one memory.

The boundaries are those of Hindsight's `chunks` extraction mode, so that the same text gives the same memories there
and here. Sizes are in characters. Pure text work.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["chunks"]

_SEPARATORS = ("\n\n", "\n", ". ", "! ", "? ", "; ", ", ", " ", "")
"""From the most to the least preferred place to cut; the last cuts anywhere."""


def chunks(text: str, size: int, structured_size: int | None = None) -> Iterator[str]:
    """Yield the chunks of `text`.

    A text of up to `size` is one chunk, as it is. A JSON array of objects (a conversation) and JSON lines are cut
    between objects, and an object is cut only beyond `structured_size` (default: `size`); other text is cut at
    paragraphs, lines, sentences, words, whichever comes first.
    """
    whole = size if structured_size is None else structured_size
    if len(text) <= size:
        yield text
        return
    value = _json(text)
    if isinstance(value, list) and all(isinstance(turn, dict) for turn in cast("list[object]", value)):
        turns = [json.dumps(turn, ensure_ascii=False) for turn in cast("list[object]", value)]
        yield from _packed(turns, size, whole, 2, lambda part: f"[{', '.join(part)}]")
    elif isinstance(value, dict) and len(text) <= whole:
        yield text
    elif not isinstance(value, dict) and (lines := _json_lines(text)):
        yield from _packed(lines, size, whole, 0, "\n".join)
    else:
        yield from _cut(text, size, _SEPARATORS)


def _json(text: str) -> object:
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return None


def _json_lines(text: str) -> list[str]:
    """Return the lines of JSON lines, or nothing where the text is something else."""
    if not text.lstrip().startswith("{"):
        return []
    lines = [line.removesuffix("\r") for line in text.split("\n") if line.strip()]
    return lines if len(lines) > 1 and all(isinstance(_json(line), dict) for line in lines) else []


def _packed(
    units: Iterable[str], size: int, whole: int, overhead: int, join: Callable[[list[str]], str]
) -> Iterator[str]:
    """Yield as many whole units a chunk as fit into `size`; a unit longer than `whole` is cut as text."""
    part: list[str] = []
    length = overhead
    for unit in units:
        if part and (len(unit) > whole or length + len(unit) + 1 > size):
            yield join(part)
            part, length = [], overhead
        if len(unit) > whole:
            yield from _cut(unit, min(whole, size), _SEPARATORS)
        else:
            part.append(unit)
            length += len(unit) + 1
    if part:
        yield join(part)


def _cut(text: str, size: int, separators: Sequence[str]) -> Iterator[str]:
    """Yield `text` cut at the first separator it holds, packed up to `size`; what is still too long is cut again."""
    at = next(index for index, separator in enumerate(separators) if separator in text)
    part: list[str] = []
    length = 0
    for piece in _pieces(text, separators[at]):
        if len(piece) >= size or length + len(piece) > size:
            yield from _stripped(part)
            part, length = [], 0
        if len(piece) < size:
            part.append(piece)
            length += len(piece)
        elif separators[at + 1 :]:
            yield from _cut(piece, size, separators[at + 1 :])
        else:
            yield piece
    yield from _stripped(part)


def _pieces(text: str, separator: str) -> Iterator[str]:
    """Yield `text` cut before each separator."""
    if not separator:
        yield from text
        return
    first, *others = text.split(separator)
    if first:
        yield first
    for other in others:
        yield separator + other


def _stripped(part: list[str]) -> Iterator[str]:
    if chunk := "".join(part).strip():
        yield chunk
