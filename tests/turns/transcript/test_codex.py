"""What Codex's lines say: on recorded rollouts, and line by line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.turns.cadence import group
from bankclient.turns.transcript import codex
from bankclient.turns.transcript.reader import TranscriptReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.turns.event import Message

    Said = Callable[[bytes], list[Message]]

_YES = ("assistant", "Understood. I will remember that.")


def _spoken(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def _read(*records: dict[str, Any]) -> list[Message]:
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    return TranscriptReader(codex.read_record, "s1").feed(data)


def _item(role: str, *texts: str, ordinal: int | None = None, **payload: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    content = [{"type": "input_text" if role == "user" else "output_text", "text": text} for text in texts]
    record = {"type": "response_item", "payload": {"type": "message", "role": role, "content": content, **payload}}
    return record if ordinal is None else {**record, "ordinal": ordinal}


def test_a_resumed_session(recorded: Callable[[str], bytes], said: Said) -> None:
    """Two turns, without the project's instructions and the environment in front of them."""
    turns = group(said(recorded("codex_resumed")))
    assert [_spoken(turn.messages) for turn in turns] == [
        [("user", "Note that the port is 4711"), _YES],
        [("user", "Which port was it?"), _YES],
    ]


def test_an_interactive_session(recorded: Callable[[str], bytes], said: Said) -> None:
    """Steered, interrupted, compacted: no shell command, no summary, no injected context; one turn per turn id."""
    turns = group(said(recorded("codex_interactive")))
    assert [_spoken(turn.messages) for turn in turns] == [
        [("user", "Note that the port is 4711"), _YES],
        [("user", "Look for the slow test"), _YES],
        [("user", "Explain the parser"), _YES],
        [("user", "In one sentence"), _YES],
        [("user", "And which port did we choose in the end?"), _YES],
        [("user", "Rewrite everything in another language")],
        [("user", "Explain the store to me"), ("user", "and keep it short"), _YES],
    ]
    assert [turn.counts for turn in turns] == [True] * 7


def test_keys_are_session_and_ordinal(recorded: Callable[[str], bytes], said: Said) -> None:
    """Ids of answers repeat within a rollout; what tells messages apart is the line's ordinal."""
    messages = said(recorded("codex_interactive"))
    assert len({message.key for message in messages}) == len(messages)
    assert messages[0].key == "s1:8"


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n  <cwd>/r/main</cwd>\n</environment_context>",
        "<user_instructions>\nUse tabs.\n</user_instructions>",
        "# AGENTS.md instructions for /r/main\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>",
        "<turn_aborted>\nThe user interrupted.\n</turn_aborted>",
        "<user_shell_command>\n<command>ls</command>\n</user_shell_command>",
    ],
)
def test_versions_that_name_no_kinds(text: str) -> None:
    """What the harness says is told by its looks, block by block."""
    assert _read(_item("user", text, ordinal=1)) == []
    assert [message.text for message in _read(_item("user", text, "rename it", ordinal=1))] == ["rename it"]


def test_named_kinds_decide() -> None:
    """Where the blocks' kinds are named, the person's are kept as they are, whatever they look like."""
    kinds = {"content_item_kinds": ["environments.environment_context", "user.text"]}
    item = _item("user", "plain words of the harness", "<user_instructions> is what?", ordinal=1)
    item["payload"]["internal_chat_message_metadata_passthrough"] = kinds
    assert [message.text for message in _read(item)] == ["<user_instructions> is what?"]


@pytest.mark.parametrize("role", ["developer", "system", "tool", None, 7])
def test_other_roles_say_nothing(role: Any) -> None:  # noqa: ANN401 - any JSON
    """Neither developers' messages, where hooks' context stands, nor tools' are anybody's words."""
    assert _read(_item(role, "words", ordinal=1)) == []


@pytest.mark.parametrize("kind", ["function_call", "function_call_output", "reasoning", "custom_tool_call"])
def test_other_items_say_nothing(kind: str) -> None:
    """Calls, their results and reasoning are not kept."""
    assert _read({"type": "response_item", "payload": {"type": kind, "role": "assistant", "content": "words"}}) == []


def test_the_summary_of_a_compaction_is_no_answer() -> None:
    """It stands in an answer's place, also in the middle of a turn, and its line says what it is."""
    summary = {**_item("assistant", "a summary", ordinal=2), "metadata": {"compaction_output": True}}
    assert [message.text for message in _read(_item("user", "ask", ordinal=1), summary)] == ["ask"]


def test_the_turn_is_that_of_the_context_line() -> None:
    """Older lines tell their turn only through the `turn_context` in front of them."""
    context = {"type": "turn_context", "payload": {"turn_id": "t1"}}
    started = {"type": "event_msg", "payload": {"type": "task_started", "turn_id": "t2"}}
    messages = _read(context, _item("user", "one", ordinal=1), _item("assistant", "yes", ordinal=2), started)
    messages += _read(started, _item("user", "two", ordinal=4))
    assert [message.turn_id for message in messages] == ["t1", "t1", "t2"]


def test_versions_without_ordinals_and_turn_ids() -> None:
    """A line is known by its place then, and a prompt opens a turn called as its line."""
    first, second, third = _read(_item("user", "one"), _item("assistant", "yes"), _item("user", "two"))
    assert first.turn_id == second.turn_id == first.key
    assert third.turn_id == third.key != first.key


def test_an_answer_before_any_turn_belongs_to_none() -> None:
    """It has no turn that could be captured."""
    assert [message.turn_id for message in _read(_item("assistant", "yes", ordinal=1))] == [None]


def test_a_final_answer_says_so_where_the_version_tells() -> None:
    """A phase that is not final, or no phase, leaves it open."""
    phases = ["final_answer", "commentary", None]
    messages = _read(*(_item("assistant", "words", ordinal=number, phase=phase) for number, phase in enumerate(phases)))
    assert [message.final for message in messages] == [True, False, False]
