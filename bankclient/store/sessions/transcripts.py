"""Opening a transcript: the one place where a file of somebody else's is touched.

Owns what counts as one: a regular file at an absolute path, opened without ever waiting. Whatever else stands there, or
nothing, is no transcript. Knows nothing of what is in it.
"""

from __future__ import annotations

import os
import stat
from typing import Protocol

__all__ = ["Transcript", "TranscriptFile", "open_transcript"]


class Transcript(Protocol):
    """An open transcript, as long as it was when it was opened."""

    @property
    def size(self) -> int:
        """Its length in bytes."""
        ...

    def read_at(self, offset: int, length: int) -> bytes:
        """Return bytes from `offset` on, fewer than `length` only where the file ends. Raises `OSError`."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class TranscriptFile:
    """A transcript on the disk."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self.size = size

    def read_at(self, offset: int, length: int) -> bytes:
        """Return bytes from `offset` on."""
        pieces: list[bytes] = []
        while length > 0 and (piece := os.pread(self._fd, length, offset)):
            pieces.append(piece)
            offset += len(piece)
            length -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def open_transcript(path: str) -> TranscriptFile | None:
    """Return the transcript at `path`, `None` where there is none that could be read."""
    if not os.path.isabs(path):  # noqa: PTH117 - as the host wrote it; a Path would raise for some of these
        return None
    try:
        # O_NONBLOCK: a FIFO must not hold us.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):  # ValueError: no path of any system (NUL, half a surrogate pair)
        return None
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        return None
    return TranscriptFile(fd, found.st_size)
