r"""Bytes of a growing file into whole lines, whatever pieces they come in.

Owns where a line ends (at `\n` and nowhere else), what is cut off it (the carriage return, a byte-order mark at the
head of the file) and how long it may be. Knows nothing of what stands in a line.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LINE_LIMIT", "Line", "LineSplitter"]

LINE_LIMIT = 8 << 20
"""Bytes of a line that are held; a longer one is passed over. What a person types and an agent says is far shorter."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end; the places in the file of its first byte, and behind its end."""

    offset: int
    end: int
    data: bytes


class LineSplitter:
    """Takes a file's bytes in order, from `offset` on, and gives out whole lines.

    `offset` is where to go on: behind the last line given out, or inside a line that is too long (`skipping`).
    `too_long` counts the lines passed over.
    """

    def __init__(self, offset: int = 0, *, skipping: bool = False, limit: int = LINE_LIMIT) -> None:
        self.offset = offset
        self.skipping = skipping
        self.too_long = 0
        self._limit = limit
        self._partial = bytearray()

    def feed(self, data: bytes) -> list[Line]:
        """Return the lines that end in `data`, the next bytes of the file."""
        lines: list[Line] = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._hold(data[start:end])
            if self.skipping:
                self.skipping = False
                self.too_long += 1
                self.offset += 1
            else:
                lines.append(self._take(ending=1))
            start = end + 1
        self._hold(data[start:])
        return lines

    def partial(self) -> Line | None:
        """Return what follows the last line end, without taking it; None where nothing does."""
        return self._line(ending=0) if self._partial else None

    def take_partial(self) -> None:
        """Count the partial line as given out: the file has ended."""
        self._take(ending=0)

    def _hold(self, piece: bytes) -> None:
        if not self.skipping and len(self._partial) + len(piece) > self._limit:
            self.skipping = True
            self.offset += len(self._partial)
            self._partial.clear()
        if self.skipping:
            self.offset += len(piece)
        else:
            self._partial += piece

    def _take(self, ending: int) -> Line:
        line = self._line(ending)
        self.offset = line.end
        self._partial.clear()
        return line

    def _line(self, ending: int) -> Line:
        data = bytes(self._partial)
        end = self.offset + len(data) + ending
        return Line(self.offset, end, (data.removeprefix(_BOM) if self.offset == 0 else data).removesuffix(b"\r"))
