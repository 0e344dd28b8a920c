"""What Claude Code's lines say: on recorded transcripts, and line by line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.turns.cadence import captured, group

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.turns.event import Message

    Said = Callable[[bytes], list[Message]]


def _spoken(messages: list[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def test_a_session_with_a_tool_a_subagent_a_compaction_and_resumes(
    recorded: Callable[[str], bytes], said: Said
) -> None:
    """Only what was said is there: no result, recap, command, nor what a resume adds."""
    assert _spoken(said(recorded("claude_code_resumed"))) == [
        ("user", "Run the tests, then say which port the proxy takes"),
        ("assistant", "I will run it."),
        ("assistant", "Understood. I will remember that."),
        ("user", "Let a helper look at the settings"),
        ("assistant", "I will run it."),
        ("assistant", "Understood. I will remember that."),
        ("user", "And which port did we choose in the end?"),
        ("assistant", "Understood. I will remember that."),
    ]


def test_an_interactive_session(recorded: Callable[[str], bytes], said: Said) -> None:
    """A prompt interrupted, one queued, one typed while a tool ran; no shell line, command or notice."""
    turns = group(said(recorded("claude_code_interactive")))
    assert [_spoken(list(turn.messages)) for turn in turns] == [
        [("user", "We use port 4711"), ("assistant", "Understood. I will remember that.")],
        [("user", "Rewrite everything in another language")],
        [("user", "No, only rename the module"), ("assistant", "Understood. I will remember that.")],
        [("user", "Explain the module to me"), ("assistant", "Understood. I will remember that.")],
        [
            ("user", "And keep it short"),
            ("assistant", "Understood. I will remember that."),
            ("assistant", "Understood. I will remember that."),
        ],
        [
            ("user", "Run the slow test"),
            ("assistant", "I will run it."),
            ("user", "only the tests of the parser, please"),
            ("assistant", "Understood. I will remember that."),
        ],
        [("user", "Run it once more"), ("assistant", "I will run it.")],
    ]
    assert [turn.complete for turn in turns] == [True] * 6 + [False]


def test_a_fork_says_its_parents_messages_under_their_keys(recorded: Callable[[str], bytes], said: Said) -> None:
    """By key, all that a fork adds is its own turn."""
    parent = {message.key for message in said(recorded("claude_code_resumed"))}
    own = [message for message in said(recorded("claude_code_fork")) if message.key not in parent]
    assert _spoken(own) == [
        ("user", "In the fork: take port 4712 instead"),
        ("assistant", "Understood. I will remember that."),
    ]


def test_a_subagents_transcript_says_nothing(recorded: Callable[[str], bytes], said: Said) -> None:
    """Every line of it is a sidechain's."""
    assert said(recorded("claude_code_subagent")) == []


def test_what_a_hook_injected_is_not_said(recorded: Callable[[str], bytes], said: Said) -> None:
    """Context that a hook added stands in attachments, and stays there."""
    data = recorded("claude_code_recalled")
    assert b"Known at UserPromptSubmit" in data
    assert _spoken(said(data)) == [
        ("user", "What do you know of the port?"),
        ("assistant", "Understood. I will remember that."),
    ]


def test_a_turn_is_captured_by_its_prompt_id(recorded: Callable[[str], bytes], said: Said) -> None:
    """Of a transcript, the turns whose event came are kept with their answers, the others counted."""
    data = recorded("claude_code_resumed")
    line = next(line for line in map(json.loads, data.splitlines()) if "helper" in str(line.get("message")))
    kept, passed = captured(said(data), {line["promptId"]})
    assert _spoken(kept) == [
        ("user", "Let a helper look at the settings"),
        ("assistant", "I will run it."),
        ("assistant", "Understood. I will remember that."),
    ]
    assert passed == 5


def test_nine_results_are_no_turns(
    user_line: Callable[..., bytes], answer_line: Callable[..., bytes], said: Said
) -> None:
    """Results of tools carry the user's role and count for nothing."""
    result = [{"type": "tool_result", "tool_use_id": "t", "content": "a result"}]
    lines = [user_line("one", "u1", promptId="p1")]
    lines += [user_line(result, f"r{number}", promptId="p1") for number in range(9)]
    lines += [answer_line("an answer"), user_line("two", "u2", promptId="p2"), user_line("three", "u3", promptId="p3")]
    turns = group(said(b"".join(lines)))
    assert [turn.messages[0].text for turn in turns] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        ("Continue with the work", {"isMeta": True}),
        ("A recap of all", {"isCompactSummary": True}),
        ("A recap of all", {"isVisibleInTranscriptOnly": True}),
        ("look around", {"isSidechain": True}),
        ("a task ended", {"origin": {"kind": "task-notification"}}),
        ("<task-notification>\n<task-id>b1</task-id>\n</task-notification>", {}),
        ("<task-notification> a task ended", {}),
        ("<system-reminder>\nThe date has changed.\n</system-reminder>", {}),
        ("<command-name>/model</command-name>\n<command-message>model</command-message>", {}),
        ("<local-command-stdout>done</local-command-stdout>", {}),
        ("<local-command-caveat>Caveat: nothing</local-command-caveat>", {}),
        ("<bash-input>ls</bash-input>", {}),
        ("<bash-stdout>a b</bash-stdout><bash-stderr></bash-stderr>", {}),
        ("# AGENTS.md instructions for /r/main\n\nUse tabs.", {}),
        ("[Request interrupted by user]", {}),
        ([{"type": "text", "text": "[Request interrupted by user for tool use]"}], {}),
        ([{"type": "text", "text": "Continue from where you left off."}], {"isMeta": True}),
        ([{"type": "image", "source": {"type": "base64", "data": "AAAA"}}], {}),
        ([{"type": "tool_result", "content": "words"}, {"type": "text", "text": "words"}], {}),
        ("...!?", {}),
        ("", {}),
        (None, {}),
    ],
)
def test_not_the_persons_words(
    content: Any,  # noqa: ANN401 - any JSON
    fields: dict[str, Any],
    user_line: Callable[..., bytes],
    said: Said,
) -> None:
    """What the harness writes in the user's place is neither counted nor kept."""
    assert said(user_line(content, **fields)) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('<pasted_content id="1">real text</pasted_content>', '<pasted_content id="1">real text</pasted_content>'),
        (
            "what does <system-reminder>x</system-reminder> mean?",
            "what does <system-reminder>x</system-reminder> mean?",
        ),
        ("<system-reminder>\nnew date\n</system-reminder>\nrename it", "rename it"),
        ("rename it\n<system-reminder>\nnew date\n</system-reminder>\n", "rename it"),
        (
            [{"type": "text", "text": "<ide_opened_file>a.py</ide_opened_file>"}, {"type": "text", "text": "fix it"}],
            "fix it",
        ),
        ([{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ("7", "7"),
        ("\u4f60\u597d", "\u4f60\u597d"),
    ],
)
def test_the_persons_words(content: Any, words: str, user_line: Callable[..., bytes], said: Said) -> None:  # noqa: ANN401 - any JSON
    """What the person wrote stays, also beside what the harness added, and when it speaks of the harness."""
    assert [message.text for message in said(user_line(content))] == [words]


@pytest.mark.parametrize(
    "record",
    [
        {"message": {"content": [{"type": "thinking", "thinking": "hm"}]}},
        {"message": {"content": [{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}]}},
        {"message": {"model": "<synthetic>", "content": [{"type": "text", "text": "No response requested."}]}},
        {"isApiErrorMessage": True, "message": {"content": [{"type": "text", "text": "API Error: 500"}]}},
        {"isSidechain": True, "message": {"content": [{"type": "text", "text": "found it"}]}},
        {"message": {"content": "\u2026"}},
    ],
)
def test_not_the_agents_words(record: dict[str, Any], said: Said) -> None:
    """Thinking, tool calls, lines written in the model's place and subagents' answers are not kept."""
    assert said(json.dumps({"type": "assistant", "uuid": "a", **record}).encode() + b"\n") == []


def test_one_answer_in_several_lines(
    answer_line: Callable[..., bytes], user_line: Callable[..., bytes], said: Said
) -> None:
    """Each line of an answer is a message of its own key, all of them of the turn before."""
    data = user_line("ask", promptId="p1") + answer_line("one", "a1") + answer_line("two", "a2")
    assert [(message.key, message.turn_id) for message in said(data)] == [("u1", "p1"), ("a1", "p1"), ("a2", "p1")]


@pytest.mark.parametrize(
    ("reason", "final"),
    [("end_turn", True), ("max_tokens", True), ("tool_use", False), ("pause_turn", False), (None, False)],
)
def test_which_answers_are_final(reason: str | None, final: bool, said: Said) -> None:
    """An answer that stopped for a tool, or of which nobody says why it stopped, may be followed by more."""
    message = {"content": [{"type": "text", "text": "words"}], "stop_reason": reason}
    line = json.dumps({"type": "assistant", "uuid": "a", "message": message}).encode() + b"\n"
    assert [message.final for message in said(line)] == [final]


def test_versions_without_prompt_ids(
    user_line: Callable[..., bytes], answer_line: Callable[..., bytes], said: Said
) -> None:
    """Each prompt opens a turn called as its line, and answers belong to it."""
    data = user_line("one", "u1") + answer_line("yes", "a1") + user_line("two", "u2") + answer_line("no", "a2")
    assert [message.turn_id for message in said(data)] == ["u1", "u1", "u2", "u2"]


def test_a_line_without_uuid_is_known_by_its_place(user_line: Callable[..., bytes], said: Said) -> None:
    """Two such lines are two messages, and each is itself when it is read again."""
    data = user_line("same", uuid="") + user_line("same", uuid="")
    keys = [message.key for message in said(data)]
    assert (len(set(keys)), keys) == (2, [message.key for message in said(data)])
