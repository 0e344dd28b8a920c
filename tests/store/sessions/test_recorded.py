"""Recorded transcripts, with the events that their agents sent, read in any pieces."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bankclient.store.sessions import SessionKey, Sessions
from bankclient.turns.event import Event
from bankclient.turns.intake import kept_messages
from bankclient.turns.transcript import claude_code, codex
from bankclient.turns.transcript.reader import TranscriptReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.turns.event import EventKind, Message
    from tests.store.sessions.conftest import Agent

    Said = Callable[[], list[list[str]]]

_FIXTURES = Path(__file__).parents[2] / "turns" / "transcript" / "fixtures"
_DIALECTS = {"claude_code": claude_code.read_record, "codex": codex.read_record}
_NAMES = [
    ("claude_code", "claude_code_resumed"),
    ("claude_code", "claude_code_interactive"),
    ("claude_code", "claude_code_recalled"),
    ("codex", "codex_interactive"),
    ("codex", "codex_resumed"),
]


def _spoken(agent_name: str, data: bytes, session_id: str = "s1") -> list[Message]:
    return TranscriptReader(_DIALECTS[agent_name], session_id).feed(data)


def _say(agent: Agent, agent_name: str, kind: EventKind, turn: str | None = None, **fields: str | None) -> None:
    event = Event(
        kind=kind,
        agent=agent_name,
        session_id=agent.id,
        event_id=f"{agent.id}-{kind}-{turn}-{next(agent.numbers)}",
        transcript_path=str(agent.path),
        turn_id=turn,
        **fields,  # type: ignore[arg-type]  # texts, each of which may be missing
    )
    agent.deliver(event)


@pytest.mark.parametrize("step", [10_000_000, 4096, 311], ids=["whole", "pages", "pieces"])
@pytest.mark.parametrize(("agent_name", "name"), _NAMES)
def test_a_recorded_session_comes_once_in_any_pieces(
    agent: Agent, said: Said, agent_name: str, name: str, step: int
) -> None:
    """All that was said in it, in order: prompts' events come before their lines, stops' when the last one is there."""
    data = (_FIXTURES / f"{name}.jsonl").read_bytes()
    messages = _spoken(agent_name, data)
    turns = [list(group) for _, group in itertools.groupby(messages, key=lambda message: message.turn_id)]
    key = SessionKey(agent_name, agent.id)
    _say(agent, agent_name, "session_start")
    waiting = list(turns)
    running: list[list[Message]] = []
    for size in range(step, len(data) + step, step):
        while waiting and waiting[0][0].ordinal < size:
            running.append(waiting.pop(0))
            _say(agent, agent_name, "prompt", running[-1][0].turn_id, prompt=running[-1][0].text)
        agent.path.write_bytes(data[:size])
        agent.sessions.seal(key, now=agent.now)
        while running and running[0][-1].role == "assistant" and (waiting or size >= len(data)):
            done = running.pop(0)
            _say(agent, agent_name, "stop", done[0].turn_id, last_answer=done[-1].text)
            agent.sessions.seal(key, now=agent.now)
    _say(agent, agent_name, "session_end")
    agent.now += 2
    agent.sessions.seal(key, now=agent.now)
    assert [text for texts in said() for text in texts] == [message.text for message in kept_messages(messages)]
    session = agent.sessions.session(key)
    assert session is not None
    assert session.passed_over == {}


def test_a_recorded_fork_adds_its_own_turn_alone(agent: Agent, said: Said) -> None:
    """Both files are read whole, in either order of their sessions; the parent's messages are not said again."""
    agent.path.write_bytes((_FIXTURES / "claude_code_resumed.jsonl").read_bytes())
    fork = agent.other("fork")
    fork.path.write_bytes((_FIXTURES / "claude_code_fork.jsonl").read_bytes())
    parents = _spoken("claude_code", agent.path.read_bytes())
    own = [message for message in _spoken("claude_code", fork.path.read_bytes()) if message not in parents][-2:]
    for one, messages in ((agent, parents), (fork, own)):
        for turn in dict.fromkeys(message.turn_id for message in messages):
            _say(one, "claude_code", "prompt", turn, prompt="x")
        one.end()
    assert [len(texts) for texts in said()] == [len(parents), 2]
    assert said()[1] == [message.text for message in own]


def test_a_recorded_subagent_says_nothing(agent: Agent, said: Said) -> None:
    """Even if its file were taken for a session's."""
    agent.path.write_bytes((_FIXTURES / "claude_code_subagent.jsonl").read_bytes())
    agent.start()
    agent.say("prompt", prompt="", turn_id="00000000")
    agent.end()
    assert said() == []


def test_two_agents_files_do_not_meet(agent: Agent, said: Said, sessions: Sessions) -> None:
    """The same session id and ordinals under another agent's name are other messages."""
    data = (_FIXTURES / "codex_resumed.jsonl").read_bytes()
    agent.path.write_bytes(data)
    dialects = {"codex": codex.read_record, "other": codex.read_record}
    both = Sessions(sessions._database, sessions._outbox, dialects=dialects)
    agent.sessions = both
    for agent_name in ("codex", "other"):
        for turn in dict.fromkeys(message.turn_id for message in _spoken("codex", data)):
            _say(agent, agent_name, "prompt", turn, prompt="x")
        both.seal(SessionKey(agent_name, agent.id), "flush", now=agent.now)
        _say(agent, agent_name, "session_end")
        both.seal(SessionKey(agent_name, agent.id), now=agent.now)
    texts = [text for texts in said() for text in texts]
    assert texts[: len(texts) // 2] == texts[len(texts) // 2 :]
    assert len(texts) == 8
