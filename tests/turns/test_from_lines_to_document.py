"""All the way: lines of a transcript, capture, cleaning, turns, batches, documents."""

from __future__ import annotations

import json
from typing import Any

from bankclient.turns.cadence import captured, due, group, overlap
from bankclient.turns.event import Turn
from bankclient.turns.frame import Document, document
from bankclient.turns.intake import kept_messages
from bankclient.turns.render import Memory, render
from bankclient.turns.transcript import claude_code
from bankclient.turns.transcript.reader import TranscriptReader

_BLOCK = render([Memory("1", "The port is 4711"), Memory("2", "We use tabs")], 4096).text


def _line(kind: str, uuid: str, turn: str, content: Any, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    message = {"role": kind, "content": content, "stop_reason": "end_turn"}
    return {"type": kind, "uuid": uuid, "promptId": turn, "message": message, **fields}


def _documents(records: list[dict[str, Any]], heard: set[str], every: int = 1, around: int = 0) -> list[Document]:
    """Return what would be stored of a session that has ended."""
    reader = TranscriptReader(claude_code.read_record, "s1")
    messages, _ = captured(reader.feed("".join(json.dumps(record) + "\n" for record in records).encode()), heard)
    made, sealed, number = [], list[Turn](), 1
    for batch in due(group(kept_messages(messages)), every, "session_end"):
        before = overlap(sealed, around)
        made.append(document(batch, session_id="s1", agent="claude_code", first_turn=number, before=before))
        sealed += batch
        number += sum(turn.counts for turn in batch)
    return made


def test_what_was_recalled_is_not_stored() -> None:
    """Not as the person's text, as context, as a result of a recall, nor when a later turn quotes it."""
    tool = [{"type": "tool_result", "tool_use_id": "t", "content": json.dumps({"memories": _BLOCK})}]
    context = {"type": "hook_additional_context", "content": [_BLOCK], "hookEvent": "UserPromptSubmit"}
    quoted = _BLOCK.replace("\n", "\n> ")
    records = [
        _line("user", "u1", "p1", f"{_BLOCK}\n\nRename the parser, please"),
        {"type": "attachment", "uuid": "x1", "attachment": context},
        _line("user", "r1", "p1", tool),
        _line("assistant", "a1", "p1", [{"type": "text", "text": "Renamed."}]),
        _line("user", "u2", "p2", f"Why did you say this?\n> {quoted}\nI never did."),
        _line("assistant", "a2", "p2", [{"type": "text", "text": f"It said:\n```\n{_BLOCK}\n```\nSorry."}]),
        _line("user", "u3", "p3", _BLOCK),
    ]
    text = "\n".join(made.content for made in _documents(records, {"p1", "p2", "p3"}))
    assert "4711" not in text
    assert "tabs" not in text
    for words in (
        "Rename the parser, please",
        "Renamed.",
        "Why did you say this?",
        "I never did.",
        "It said:",
        "Sorry.",
    ):
        assert words in text
    assert text.count("[role: user]") == 2


def test_seven_turns_are_three_documents_that_hold_each_turn_once() -> None:
    """Every three turns and the rest at the end, numbered, in order, the one before each as context in front."""
    records = []
    for number in range(1, 8):
        records.append(_line("user", f"u{number}", f"p{number}", f"question {number}"))
        records.append(_line("assistant", f"a{number}", f"p{number}", [{"type": "text", "text": f"answer {number}"}]))
    made = _documents(records, {f"p{number}" for number in range(1, 8)}, every=3, around=1)
    assert [part.metadata["turns"] for part in made] == ["1-3", "4-6", "7-7"]
    assert len({part.document_id for part in made}) == 3
    assert [part.content.count("[context: ") for part in made] == [0, 2, 2]
    new = "\n".join(part.content for part in made)
    for number in range(1, 8):
        assert new.count(f"question {number}\n") == (2 if number in {3, 6} else 1)
        assert new.count(f"answer {number}\n") == (2 if number in {3, 6} else 1)


def test_a_turn_spoken_while_memory_was_off_is_not_stored() -> None:
    """No event came for it; its neighbours are stored."""
    records = [_line("user", f"u{number}", f"p{number}", f"question {number}") for number in range(1, 4)]
    text = "\n".join(made.content for made in _documents(records, {"p1", "p3"}))
    assert "question 1" in text
    assert "question 2" not in text
    assert "question 3" in text
