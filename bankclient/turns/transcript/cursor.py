"""Where to go on in a transcript, found by content: it may have been cut, replaced, rewritten or renamed since.

Owns the mark that is saved between two readings and the decision from it. It reads nothing itself: bytes come from a
callable, and the mark holds digests, never what was said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from bankclient.turns.transcript.lines import LineSplitter

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CHUNK", "TAIL_LIMIT", "Cursor", "ReadAt", "Start", "find_start", "line_digest", "mark_digest"]

ReadAt: TypeAlias = Callable[[int, int], bytes]
"""Bytes of the file from an offset on, at most so many; fewer only where the file ends."""

TAIL_LIMIT = 32 << 20
"""Bytes of a file that are read where nothing tells how far it was read before."""

_WINDOW = 1024
CHUNK = 1 << 20
"""Bytes that are read at a time."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a transcript was read. The default is that of one never read."""

    offset: int = 0
    skipping: bool = False
    """Whether `offset` lies inside a line that is too long to be held."""
    before: str = ""
    """Digest of the bytes just before `offset`."""
    line: str = ""
    """Length and digest of the last whole line, by which the place is found in a file that was rewritten."""
    turn_id: str | None = None
    """The turn that was going on."""

    def dumps(self) -> str:
        """Return it as JSON, for keeping."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def loads(cls, text: str) -> Cursor:
        """Return what `dumps` made; raises `ValueError` or `TypeError` on anything else."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Start:
    """Where to go on, and how it was found."""

    offset: int
    skipping: bool = False
    how: Literal["same", "moved", "whole", "tail"] = "same"
    """`same`: the file only grew. `moved`: what was read last stands elsewhere now. `whole`: never read, or nothing in
    it was. `tail`: the same, but only the end is read, since the file is long."""


def find_start(cursor: Cursor, read_at: ReadAt, size: int, *, tail_limit: int = TAIL_LIMIT) -> Start:
    """Return where to go on in a file of `size` bytes that may not be the file that `cursor` was made on.

    What is read again does no harm: a message is known by its key. What is not read again would be lost, so wherever
    the content does not speak for the saved place, reading starts earlier rather than later. Costs one small read,
    unless the file was changed other than by growing; then at most `tail_limit` bytes.
    """
    if 0 < cursor.offset <= size and mark_digest(read_at, cursor.offset) == cursor.before:
        return Start(cursor.offset, cursor.skipping)
    floor = max(0, size - tail_limit)
    if cursor.line:
        splitter = LineSplitter(floor)
        for chunk in _chunks(read_at, floor):
            for line in splitter.feed(chunk):
                if line_digest(line.data, cursor.line) == cursor.line:
                    return Start(line.end, how="moved")
    if floor == 0:
        return Start(0, how="whole")
    at = floor
    for chunk in _chunks(read_at, floor):
        if (end := chunk.find(b"\n")) >= 0:
            return Start(at + end + 1, how="tail")
        at += len(chunk)
    return Start(floor, skipping=True, how="tail")


def _chunks(read_at: ReadAt, offset: int) -> Iterator[bytes]:
    while chunk := read_at(offset, CHUNK):
        yield chunk
        offset += len(chunk)


def mark_digest(read_at: ReadAt, offset: int) -> str:
    """Return the digest of the bytes just before `offset`."""
    start = max(0, offset - _WINDOW)
    return hashlib.sha256(read_at(start, offset - start)).hexdigest()[:32]


def line_digest(line: bytes, like: str | None = None) -> str:
    """Return length and digest of a line; empty where its length says already that it is not the one of `like`."""
    if like is not None and like.partition(":")[0] != str(len(line)):
        return ""
    return f"{len(line)}:{hashlib.sha256(line).hexdigest()[:32]}"
