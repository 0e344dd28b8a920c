"""Transcripts to read: recorded ones, and lines made up in a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.turns.transcript import claude_code, codex
from bankclient.turns.transcript.cursor import Cursor
from bankclient.turns.transcript.reader import TranscriptReader, read_new

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.turns.event import Message
    from bankclient.turns.transcript.dialect import Dialect
    from bankclient.turns.transcript.reader import Reading

_FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def recorded() -> Callable[[str], bytes]:
    """Give the bytes of a recorded transcript, its texts made up, by name."""
    return lambda name: (_FIXTURES / f"{name}.jsonl").read_bytes()


@pytest.fixture
def said() -> Callable[[bytes], list[Message]]:
    """Give what a transcript says, read whole; Codex's are told by their first line."""

    def read(data: bytes) -> list[Message]:
        dialect = codex.read_record if b'"session_meta"' in data[:400] else claude_code.read_record
        reader = TranscriptReader(dialect, "s1")
        return [*reader.feed(data), *reader.finish()]

    return read


@pytest.fixture
def user_line() -> Callable[..., bytes]:
    """Make a line of Claude Code's in which the person says something."""

    def make(content: Any, uuid: str = "u1", **fields: Any) -> bytes:  # noqa: ANN401 - content is any JSON
        record = {"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}, **fields}
        return json.dumps(record).encode() + b"\n"

    return make


@pytest.fixture
def answer_line() -> Callable[..., bytes]:
    """Make a line of Claude Code's in which the agent answers for good."""

    def make(text: str, uuid: str = "a1", **fields: Any) -> bytes:  # noqa: ANN401 - fields are any JSON
        message = {"role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
        return json.dumps({"type": "assistant", "uuid": uuid, "message": message, **fields}).encode() + b"\n"

    return make


@pytest.fixture
def read_from() -> Callable[..., Reading]:
    """Read what is new in a file, given as bytes, from a cursor on; Claude Code's if not said otherwise."""

    def read(
        data: bytes,
        cursor: Cursor | None = None,
        dialect: Dialect = claude_code.read_record,
        **options: Any,  # noqa: ANN401 - any option
    ) -> Reading:
        return read_new(
            dialect,
            "s1",
            cursor or Cursor(),
            lambda offset, length: data[offset : offset + length],
            len(data),
            **options,
        )

    return read
