"""From the bytes of a transcript to what was said in it since the last time.

Owns how lines, records and the saved cursor come together, and the counts of what was passed over. Knows no agent: a
dialect is handed in; and no file: bytes are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bankclient.turns.speech import has_words
from bankclient.turns.transcript.cursor import CHUNK, TAIL_LIMIT, Cursor, Start, find_start, line_digest, mark_digest
from bankclient.turns.transcript.dialect import Dialect, Place, Record, as_record
from bankclient.turns.transcript.lines import LINE_LIMIT, Line, LineSplitter

if TYPE_CHECKING:
    from bankclient.turns.event import Message
    from bankclient.turns.transcript.cursor import ReadAt

__all__ = ["Reading", "TranscriptReader", "read_new"]


class TranscriptReader:
    """Takes a transcript's bytes in order, in any pieces, and gives out the messages in them.

    `offset`, `skipping` and `turn_id` are where to go on; `garbage` counts the lines that are no records, `too_long`
    those that are longer than `line_limit` bytes.
    """

    def __init__(
        self,
        dialect: Dialect,
        session_id: str,
        *,
        offset: int = 0,
        skipping: bool = False,
        turn_id: str | None = None,
        line_limit: int = LINE_LIMIT,
    ) -> None:
        self.turn_id = turn_id
        self.garbage = 0
        self.last_line: bytes | None = None
        self._dialect = dialect
        self._session_id = session_id
        self._splitter = LineSplitter(offset, skipping=skipping, limit=line_limit)

    @property
    def offset(self) -> int:
        """The first byte that is not read yet."""
        return self._splitter.offset

    @property
    def skipping(self) -> bool:
        """Whether `offset` lies inside a line that is too long."""
        return self._splitter.skipping

    @property
    def too_long(self) -> int:
        """How many lines were passed over for their length."""
        return self._splitter.too_long

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages of the lines that end in `data`, the next bytes of the file."""
        messages: list[Message] = []
        for line in self._splitter.feed(data):
            self.last_line = line.data
            if not line.data.strip():
                continue
            record = _record(line.data)
            if record is None:
                self.garbage += 1
            elif message := self._read(record, line):
                messages.append(message)
        return messages

    def finish(self) -> list[Message]:
        """Return the message of a last line that has no end yet but is whole; a half one is left for the next time."""
        line = self._splitter.partial()
        record = _record(line.data) if line else None
        if line is None or record is None:
            return []
        self._splitter.take_partial()
        self.last_line = line.data
        message = self._read(record, line)
        return [message] if message else []

    def _read(self, record: Record, line: Line) -> Message | None:
        found = self._dialect(record, Place(self._session_id, line.offset, self.turn_id))
        self.turn_id = found.turn_id
        return found.message if found.message and has_words(found.message.text) else None


@dataclass(frozen=True, slots=True)
class Reading:
    """What was new in a transcript, where to go on next time, and what was passed over."""

    messages: tuple[Message, ...]
    cursor: Cursor
    start: Start
    garbage: int = 0
    too_long: int = 0


def read_new(
    dialect: Dialect,
    session_id: str,
    cursor: Cursor,
    read_at: ReadAt,
    size: int,
    *,
    session_over: bool = False,
    line_limit: int = LINE_LIMIT,
    tail_limit: int = TAIL_LIMIT,
) -> Reading:
    """Read what a transcript of `size` bytes holds beyond `cursor`.

    A last line without an end is taken only if `session_over`, and only if it is whole. The messages are raw: private
    parts, memory blocks and secrets are still in them. Costs the new bytes, whatever the size of the file.
    """
    start = find_start(cursor, read_at, size, tail_limit=tail_limit)
    reader = TranscriptReader(
        dialect,
        session_id,
        offset=start.offset,
        skipping=start.skipping,
        turn_id=cursor.turn_id if start.how in {"same", "moved"} else None,
        line_limit=line_limit,
    )
    messages: list[Message] = []
    at = start.offset
    while at < size and (chunk := read_at(at, min(CHUNK, size - at))):
        messages += reader.feed(chunk)
        at += len(chunk)
    if session_over:
        messages += reader.finish()
    reached = Cursor(
        offset=reader.offset,
        skipping=reader.skipping,
        before=mark_digest(read_at, reader.offset),
        line=cursor.line if reader.last_line is None else line_digest(reader.last_line),
        turn_id=reader.turn_id,
    )
    return Reading(tuple(messages), reached, start, reader.garbage, reader.too_long)


def _record(data: bytes) -> Record | None:
    """Return the JSON object of a line, None where it is none; broken letters become U+FFFD."""
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return as_record(value) or None
