"""Transcripts to measure with, as Claude Code writes them: made up, the same at every run."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass

from benchmarks.corpus import seeded, words

__all__ = ["WrittenTurn", "transcript_turn"]

_STEPS = 3
"""Tool calls in a turn."""
_PROMPT, _COMMAND, _RESULT, _ANSWER = 40, 10, 300, 80
"""Words of each."""


@dataclass(frozen=True, slots=True)
class WrittenTurn:
    """A turn: its id, what the person typed, what the agent answered in the end, and its lines in the file."""

    id: str
    prompt: str
    answer: str
    lines: bytes


def transcript_turn(number: int) -> WrittenTurn:
    """Return the turn of that number: a prompt, some tool calls with their results, an answer."""
    chance = seeded(number)
    turn_id = str(uuid.UUID(int=chance.getrandbits(128)))

    def line(role: str, content: object, **more: object) -> bytes:
        record = {
            "type": role,
            "uuid": str(uuid.UUID(int=chance.getrandbits(128))),
            "sessionId": "s",
            "timestamp": "2026-01-02T03:04:05.678Z",
            "cwd": "/home/ann/general",
            "isSidechain": False,
            "message": {"role": role, "content": content, **more},
        }
        return json.dumps(record | ({"promptId": turn_id} if role == "user" else {})).encode() + b"\n"

    def said(length: int) -> str:
        return " ".join(words(chance, length))

    prompt, answer = said(_PROMPT), said(_ANSWER)
    lines = [line("user", prompt)]
    for step in range(_STEPS):
        call = {"type": "tool_use", "id": f"call-{step}", "name": "Bash", "input": {"command": said(_COMMAND)}}
        lines.append(line("assistant", [call], stop_reason="tool_use"))
        lines.append(line("user", [{"type": "tool_result", "tool_use_id": f"call-{step}", "content": said(_RESULT)}]))
    lines.append(line("assistant", [{"type": "text", "text": answer}], stop_reason="end_turn"))
    return WrittenTurn(turn_id, prompt, answer, b"".join(lines))
