"""The values that turns are made of: what an agent's hook said, what was said in a conversation, and its turns.

Owns these records alone. They are agent-neutral: which agent names what how is known to the readers of its events and
transcripts, not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Event", "EventKind", "Message", "Role", "Turn"]

Role = Literal["user", "assistant"]

EventKind = Literal["session_start", "prompt", "step", "stop", "subagent_stop", "pre_compact", "session_end"]
"""`prompt`: the person sent one. `step`: a tool call of the turn ended. `stop`: the turn was answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What an agent said at one of its hooks.

    Any text may be missing: agents differ, and so do their versions.
    """

    kind: EventKind
    agent: str
    """The agent's name, as its module's: `claude_code`, `codex`, …"""
    session_id: str
    event_id: str
    """One event delivered twice has one id."""
    at: str | None = None
    """When it happened, ISO 8601."""
    cwd: str = ""
    transcript_path: str | None = None
    turn_id: str | None = None
    """The agent's id for the turn, as its transcript repeats it: Claude Code's `prompt_id`, Codex's `turn_id`."""
    prompt: str | None = None
    last_answer: str | None = None
    """The answer that the turn ended with, as the event told it; the transcript may not hold it yet."""
    source: str | None = None
    """Why: startup, resume, clear or compact of a start; the reason of an end; the trigger of a compaction."""
    subagent_id: str | None = None
    """Set where the event comes from inside a subagent; `session_id` is then the parent's."""
    env_file: str | None = None
    """Where the host reads variables for the processes that it starts."""

    @property
    def is_subagent(self) -> bool:
        """Whether the event comes from inside a subagent: no automatic recall or retain for those."""
        return self.subagent_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One thing that the person or the agent said."""

    role: Role
    text: str
    key: str
    """What it is known by in the whole store: the same key twice is the same message."""
    ordinal: int
    """Its place among the messages of its transcript; only the order counts."""
    turn_id: str | None = None
    """The turn it belongs to; None for what stands before any turn, as the first lines of a fork do."""
    at: str | None = None
    """When it was said, as the agent wrote it."""
    final: bool = False
    """An answer after which the agent does nothing more of itself; False also where the agent does not tell."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What was said from one thing that the person typed to the next."""

    messages: tuple[Message, ...]
    complete: bool

    @property
    def counts(self) -> bool:
        """Whether it is a user turn, and not what came late for a turn whose beginning was sealed before."""
        return any(message.role == "user" for message in self.messages)

    @property
    def text(self) -> str:
        """All that was said in it."""
        return "\n".join(message.text for message in self.messages)
