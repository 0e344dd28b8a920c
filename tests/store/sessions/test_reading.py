"""What is taken from a transcript, whatever it looks like and whenever it is read."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.store.sessions import ANSWER_SECONDS, PassedOver, Sessions, open_transcript

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bankclient.store.database import Database
    from bankclient.store.sessions import Transcript
    from bankclient.turns.event import Event
    from tests.store.sessions.conftest import Agent, Stored

    Documents = Callable[[], list[Stored]]
    Said = Callable[[], list[list[str]]]


def _watched(look: Callable[[int, int], None]) -> Callable[[str], Transcript | None]:
    """Return an opener of transcripts that has `look` see each place that is read before it is."""

    class Watched:
        def __init__(self, inner: Transcript) -> None:
            self._inner = inner
            self.size = inner.size

        def read_at(self, offset: int, length: int) -> bytes:
            look(offset, length)
            return self._inner.read_at(offset, length)

        def close(self) -> None:
            self._inner.close()

    def opened(path: str) -> Transcript | None:
        inner = open_transcript(path)
        return None if inner is None else Watched(inner)

    return opened


def _passed(agent: Agent) -> dict[str, int]:
    session = agent.sessions.session(agent.key)
    assert session is not None
    return dict(session.passed_over)


def test_only_captured_turns_are_kept(agent: Agent, said: Said) -> None:
    """What was said before we were there, or while no event reached us, is passed over and counted."""
    agent.exchange(1, heard=False)
    agent.start()
    agent.exchange(2)
    agent.exchange(3, heard=False)
    agent.exchange(4)
    agent.end()
    assert said() == [["q2", "a2", "q4", "a4"]]
    assert _passed(agent) == {PassedOver.UNHEARD: 4}


def test_the_files_first_turn_can_be_gone_back_to(agent: Agent, said: Said) -> None:
    """It stands before the others then, too."""
    agent.prompt("q1", heard=False)
    agent.answer("a1", heard=False)
    late = agent.event("stop", last_answer="a1")
    agent.exchange(2)
    agent.deliver(late)
    agent.exchange(3)
    assert said() == [["q1", "a1", "q2", "a2", "q3", "a3"]]


def test_an_event_during_the_reading_is_not_missed(agent: Agent, database: Database, said: Said) -> None:
    """The lines of its turn are being read while it is acknowledged: the reading is done again with it."""
    events: list[Event] = []

    def look(offset: int, length: int) -> None:
        del offset, length
        if events:
            agent.deliver(events.pop())

    agent.sessions = Sessions(database, agent.sessions._outbox, open_transcript=_watched(look))
    agent.exchange(1)
    agent.prompt("q2", heard=False)
    events.append(agent.event("prompt", prompt="q2"))
    agent.take_in()
    agent.answer("a2")
    agent.exchange(3)
    assert said() == [["q1", "a1", "q2", "a2", "q3", "a3"]]


@pytest.mark.parametrize("which", ["prompt", "stop"])
def test_one_event_of_a_turn_captures_it(agent: Agent, said: Said, which: str) -> None:
    """Its prompt or its stop, as the other may be lost; the lines tell all of it."""
    agent.prompt("q1", heard=which == "prompt")
    agent.advance()
    agent.answer("a1", heard=which == "stop")
    agent.exchange(2)
    agent.end()
    assert said() == [["q1", "a1", "q2", "a2"]]


def test_lines_that_were_passed_over_are_gone_back_to(agent: Agent, said: Said) -> None:
    """An event of their turn comes late, after others were read: the turn is kept, in its place, and once."""
    agent.exchange(1)
    agent.prompt("q2", heard=False)
    agent.advance("idle")
    late = agent.event("stop", last_answer="a2")
    agent.answer("a2", heard=False)
    agent.prompt("q3")
    agent.answer("a3")
    agent.take_in()
    assert _passed(agent) == {PassedOver.UNHEARD: 2}
    agent.deliver(late)
    agent.end()
    assert said() == [["q1", "a1"], ["q2", "a2", "q3", "a3"]]
    assert _passed(agent) == {}


def test_the_places_of_turns_that_were_passed_over_are_bounded(agent: Agent, said: Said) -> None:
    """The newest can be gone back to; of older ones the number is kept, and that they were."""
    events = []
    for number in range(100):
        agent.exchange(number, heard=False)
        events.append(agent.event("stop", last_answer=f"a{number}"))
    agent.start()
    agent.advance()
    assert _passed(agent) == {PassedOver.UNHEARD: 200}
    agent.deliver(events[0])
    agent.deliver(events[90])
    agent.now += ANSWER_SECONDS
    agent.end()
    assert said() == [["a0", "q90", "a90"]]
    assert _passed(agent) == {PassedOver.UNHEARD: 198}


def test_a_question_is_retained_with_its_answer(agent: Agent, said: Said) -> None:
    """The hook ran before the answer was written; it comes 0.3 s later, and once, at the next event."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("q1")
    agent.answer("a1", line=False, told=False)
    agent.advance()
    assert said() == []
    agent.now += 0.3
    agent.line("assistant", "a1")
    agent.say("stop")
    agent.advance()
    assert said() == [["q1", "a1"]]
    agent.end()
    assert said() == [["q1", "a1"]]


def test_a_turn_without_an_answer_waits_for_it(agent: Agent, said: Said) -> None:
    """After the two seconds too, where the event told no words: only the session's end seals the question alone."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("q1")
    agent.answer("a1", line=False, told=False)
    agent.now += ANSWER_SECONDS
    agent.advance()
    agent.advance("flush")
    assert said() == []
    agent.end()
    assert said() == [["q1"]]


def test_a_record_cut_inside_a_letter_waits_for_its_end(agent: Agent, said: Said) -> None:
    """The first reading stops at the last full line; the second has the record once, its letters whole."""
    agent.prompt("q1")
    data = json.dumps(agent.record("assistant", "za\u017c\u00f3\u0142\u0107"), ensure_ascii=False).encode()
    cut = data.index("\u017c".encode()) + 1
    agent.write(data[:cut])
    agent.advance()
    agent.write(data[cut:])
    agent.advance()
    agent.end()
    assert said() == [["q1", "za\u017c\u00f3\u0142\u0107"]]


def test_a_whole_last_line_without_end_is_taken_at_the_sessions_end(agent: Agent, said: Said) -> None:
    """And is not taken again when the session goes on behind it."""
    agent.prompt("q1")
    agent.write(json.dumps(agent.record("assistant", "a1")).encode())
    agent.advance()
    agent.end()
    assert said() == [["q1", "a1"]]
    agent.write(b"\n")
    agent.start("resume")
    agent.exchange(2)
    agent.end()
    assert said()[1:] == [["q2", "a2"]]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
def test_line_ends_marks_and_raw_separators(agent: Agent, said: Said, end: bytes, mark: bytes) -> None:
    """One record is one record: U+2028, U+0085 and a form feed end none of them."""
    text = "one\u2028two\u0085three\x0cfour"
    agent.write(mark)
    agent.prompt("x", line=False)
    for role in ("user", "assistant"):
        agent.write(json.dumps(agent.record(role, text), ensure_ascii=False).encode() + end)
    agent.end()
    assert said() == [[text, text]]
    assert _passed(agent) == {}


def test_broken_letters_are_replaced_and_garbage_is_counted(agent: Agent, said: Said) -> None:
    """One bad line costs itself alone."""
    agent.prompt("cut \ud83d here, \U0001f469\u200d\U0001f467 whole")
    agent.write(b'{"type": "us\n\x00\xff\n[1, 2]\n')
    agent.answer("cut \udc8f there")
    agent.end()
    assert said() == [["cut \ufffd here, \U0001f469\u200d\U0001f467 whole", "cut \ufffd there"]]
    assert _passed(agent) == {PassedOver.NO_RECORD: 3}


def test_a_line_too_long_costs_itself_alone(agent: Agent, said: Said) -> None:
    """It is counted, and what stands around it is kept."""
    agent.prompt("q1")
    agent.write(b'{"type": "user", "message": "' + b"x" * (9 << 20) + b'"}\n')
    agent.answer("a1")
    agent.end()
    assert said() == [["q1", "a1"]]
    assert _passed(agent) == {PassedOver.TOO_LONG: 1}


def test_what_hooks_and_tools_put_in_is_not_retained(agent: Agent, said: Said) -> None:
    """Memories as context, as a tool's result and quoted by the person; the person's own sentence stays."""
    from bankclient.turns.render import Memory, render  # noqa: PLC0415 - of this test alone

    block = render([Memory("1", "the port is 4711")], 8192).text
    agent.prompt("what do you know?")
    agent.write(
        {"type": "attachment", "uuid": "x1", "attachment": {"type": "hook_additional_context", "content": block}}
    )
    result = [{"type": "tool_result", "content": block}]
    agent.line("user", "", message={"role": "user", "content": result})
    agent.line("user", f"{block}\nand what is that?")
    agent.answer("a port")
    agent.prompt(f"you said:\n> {block.replace(chr(10), chr(10) + '> ')}\nis it so?")
    agent.answer("yes")
    agent.end()
    (texts,) = said()
    assert texts[:3] == ["what do you know?", "and what is that?", "a port"]
    assert "4711" not in "".join(texts)
    assert texts[3].startswith("you said:")
    assert texts[3].endswith("is it so?")


def test_plumbing_is_neither_counted_nor_retained(agent: Agent, said: Said) -> None:
    """Meta lines, recaps and notices in the user's place are nobody's words; pasted content is the person's."""
    agent.start()
    for number, (text, fields) in enumerate(
        [
            ("Continue", {"isMeta": True}),
            ("A recap of all", {"isCompactSummary": True}),
            ("<task-notification>\n<task-id>b1</task-id>\n</task-notification>", {}),
            ("<system-reminder>\nThe date has changed.\n</system-reminder>", {}),
            ("<local-command-stdout>done</local-command-stdout>", {}),
            ("# AGENTS.md instructions for /r/main\n\nUse tabs.", {}),
        ]
    ):
        agent.turn = f"plumbing-{number}"
        agent.say("prompt", prompt=text)
        agent.line("user", text, **fields)
    pasted = '<pasted_content id="1">real text</pasted_content>'
    agent.prompt(pasted)
    agent.answer("a1")
    agent.exchange(2)
    assert said() == []
    agent.exchange(3)
    assert said() == [[pasted, "a1", "q2", "a2", "q3", "a3"]]


def test_lines_of_subagents_are_not_the_sessions(agent: Agent, said: Said) -> None:
    """Whether they stand in its file, marked, or in one of their own beside it."""
    agent.prompt("q1")
    agent.line("user", "look around", isSidechain=True)
    agent.line("assistant", "found it", isSidechain=True)
    own = agent.path.with_name("s1") / "subagents" / "agent-x.jsonl"
    own.parent.mkdir(parents=True)
    own.write_bytes(agent.path.read_bytes())
    agent.say("subagent_stop", subagent_id="x", transcript_path=str(own), last_answer="found it")
    agent.answer("a1")
    agent.end()
    assert said() == [["q1", "a1"]]


@pytest.mark.parametrize("kind", ["missing", "null", "directory", "fifo", "relative", "NUL", "device"])
def test_what_is_no_file_changes_nothing(agent: Agent, said: Said, tmp_path: Path, kind: str) -> None:
    """Neither a wait nor an error; the cursor stays, and the true file is gone on with where it was left."""
    agent.exchange(1)
    folder, fifo = tmp_path / "folder", tmp_path / "fifo"
    folder.mkdir()
    os.mkfifo(fifo)
    path = {
        "missing": str(tmp_path / "missing.jsonl"),
        "null": None,
        "directory": str(folder),
        "fifo": str(fifo),
        "relative": "s1.jsonl",
        "NUL": "/t/\0.jsonl",
        "device": "/dev/zero",
    }[kind]
    agent.prompt("q2")
    agent.say("stop", last_answer="a2", transcript_path=path)
    agent.line("assistant", "a2 at length")
    agent.advance()
    agent.exchange(3)
    agent.end()
    assert said() == [["q1", "a1", "q2", "a2 at length", "q3", "a3"]]


def test_an_event_that_names_no_file_names_no_other(agent: Agent, said: Said) -> None:
    """The one that was named before is read on."""
    agent.prompt("q1")
    agent.line("assistant", "a1")
    agent.say("stop", transcript_path=None)
    agent.advance("flush")
    assert said() == [["q1", "a1"]]


def test_a_transcript_that_cannot_be_read_is_read_later(agent: Agent, database: Database, said: Said) -> None:
    """An error of its disk, in the middle of it, costs nothing but time."""
    broken = [True]

    def look(offset: int, length: int) -> None:
        del length
        if broken and offset > 100:
            raise OSError(5, "Input/output error")

    agent.sessions = Sessions(database, agent.sessions._outbox, open_transcript=_watched(look))
    agent.exchange(1)
    agent.now += ANSWER_SECONDS
    agent.exchange(2)
    agent.write(b"")
    broken.clear()
    agent.end()
    assert [text for texts in said() for text in texts] == ["q1", "a1", "q2", "a2"]


def test_a_fork_repeats_nothing(agent: Agent, documents: Documents) -> None:
    """Its file has the parent's lines under the same ids; its start names the parent, its events itself."""
    agent.start()
    agent.exchange(1)
    fork = agent.other("fork")
    fork.path.write_bytes(agent.path.read_bytes())
    agent.start("fork", transcript_path=str(fork.path))
    fork.exchange(2)
    agent.exchange(3)
    fork.end()
    agent.end()
    said = {document.metadata["session_id"]: document.said for document in documents()}
    assert said == {"fork": ["q2", "a2"], "s1": ["q1", "a1", "q3", "a3"]}


def test_a_message_that_another_session_keeps_is_known(agent: Agent, said: Said) -> None:
    """Wherever a line with its id turns up, under whatever turn."""
    agent.prompt("q1")
    agent.line("assistant", "a1", uuid="the same")
    agent.advance()
    other = agent.other("s2")
    other.prompt("q2")
    other.line("assistant", "a1", uuid="the same")
    for _ in range(2):
        other.line("assistant", "a2", uuid="twice")
    other.end()
    agent.end()
    assert said() == [["q2", "a2"], ["q1", "a1"]]


@pytest.mark.parametrize("change", ["compacted", "renamed", "cut", "emptied", "replaced", "shortened in front"])
def test_whatever_happens_to_the_file_each_turn_comes_once(agent: Agent, said: Said, change: str) -> None:
    """The place to go on is found by content; what is read again is known."""
    for number in range(1, 6):
        agent.exchange(number)
    lines = agent.path.read_bytes().splitlines(keepends=True)
    if change == "compacted":
        agent.say("pre_compact", source="manual")
        agent.write({"type": "system", "subtype": "compact_boundary", "uuid": "b"})
        agent.line("user", "a recap", isCompactSummary=True)
        agent.say("session_start", source="compact")
    elif change == "renamed":
        agent.path = agent.path.rename(agent.path.with_name("moved.jsonl"))
    else:
        kept = {
            "cut": lines[:3],
            "emptied": [],
            "replaced": [b'{"type":"mode"}\n'] * 50,
            "shortened in front": lines[4:],
        }
        agent.path.write_bytes(b"".join(kept[change]))
    for number in range(6, 9):
        agent.exchange(number)
    agent.end()
    texts = [text for texts in said() for text in texts]
    assert texts == [f"{role}{number}" for number in range(1, 9) for role in "qa"]


def test_new_lines_of_a_shorter_file_come_after_the_old_ones(agent: Agent, said: Said) -> None:
    """Though they stand further in front in it: order is that of the files, then of the places."""
    agent.terms = replace(agent.terms, every=5)
    agent.exchange(1)
    agent.exchange(2)
    agent.path.write_bytes(b"")
    agent.exchange(3)
    agent.end()
    assert said() == [["q1", "a1", "q2", "a2", "q3", "a3"]]


def _without_names(agent: Agent) -> None:
    """Let the agent be of a version that names no turns, neither in events nor in lines."""
    event, record = agent.event, agent.record

    def unnamed_event(kind: str, **fields: Any) -> Any:  # noqa: ANN401 - as the method
        return event(kind, turn_id=None, **fields)

    def unnamed_record(role: str, text: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - as the method
        return {name: value for name, value in record(role, text, **fields).items() if name != "promptId"}

    agent.event = unnamed_event  # type: ignore[method-assign]  # one agent's alone
    agent.record = unnamed_record  # type: ignore[method-assign]  # the same


def test_turns_without_names_are_found_by_words_and_time(agent: Agent, said: Said) -> None:
    """Same words said before memory was there, hours ago, are not those; each line is only one turn's."""
    _without_names(agent)
    agent.prompt("go on", heard=False)
    agent.answer("a0", heard=False)
    agent.now += 3600
    agent.start()
    for number in range(1, 4):
        agent.prompt("go on")
        agent.answer(f"a{number}")
        agent.advance()
    assert said() == [["go on", "a1", "go on", "a2", "go on", "a3"]]


def test_an_unnamed_turn_whose_prompt_was_lost_is_found_by_its_answer(agent: Agent, said: Said) -> None:
    """The stop's words are those of its last line, read before or after."""
    _without_names(agent)
    agent.exchange(1)
    agent.prompt("q2", heard=False)
    agent.advance()
    agent.now += 600
    agent.answer("a2", heard=False)
    agent.take_in()
    agent.say("stop", last_answer="a2")
    agent.exchange(3)
    assert said() == [["q1", "a1", "q2", "a2", "q3", "a3"]]


def test_an_unnamed_stop_is_that_of_the_turn_before_it(agent: Agent, said: Said) -> None:
    """Without a file the newest prompt and the answer are one turn, a second answer is another's."""
    _without_names(agent)
    agent.with_file = False
    agent.exchange(1)
    agent.exchange(2)
    agent.end()
    assert said() == [["q1", "a1", "q2", "a2"]]


def test_two_unnamed_events_of_one_turn_are_one(agent: Agent, said: Said) -> None:
    """A turn that stopped twice, as a hook had it go on: its lines tell that both are of it."""
    _without_names(agent)
    agent.prompt("q1")
    agent.answer("a1")
    agent.take_in()
    agent.line("assistant", "a1, and more")
    agent.say("stop", last_answer="a1, and more")
    agent.exchange(2)
    agent.end()
    assert said() == [["q1", "a1", "a1, and more", "q2", "a2"]]


def test_a_steered_turn_is_one_with_all_its_prompts(agent: Agent, said: Said) -> None:
    """What is typed while it goes on is told under its name; lines and words meet, each once."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("explain it")
    agent.line("assistant", "well", stop="tool_use")
    agent.say("prompt", prompt="but short")
    agent.line("user", "but short")
    agent.answer("it is this")
    agent.advance()
    assert said() == [["explain it", "well", "but short", "it is this"]]
    agent.end()
    assert len(said()) == 1


def test_a_prompt_that_steers_an_unnamed_turn_is_of_it(agent: Agent, said: Said) -> None:
    """The events name no turn and the lines do: what was heard as two is one, and its stop is known."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("explain it", heard=False)
    agent.say("prompt", prompt="explain it", turn_id=None)
    agent.line("assistant", "well", stop="tool_use")
    agent.say("prompt", prompt="but short", turn_id=None)
    agent.line("user", "but short")
    agent.line("assistant", "it is this", stop="tool_use")
    agent.say("stop", last_answer="it is this", turn_id=None)
    agent.advance()
    assert said() == [["explain it", "well", "but short", "it is this"]]
    agent.end()
    assert len(said()) == 1


def test_a_command_is_not_the_persons_words(agent: Agent, database: Database, said: Said) -> None:
    """The event tells what was typed; where the file has the turn's lines, they say what of it is a prompt."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("/review the parser", line=False)
    agent.line("user", "<command-name>/review</command-name>\n<command-args>the parser</command-args>")
    agent.answer("it is fine")
    agent.advance("flush")
    with database.read() as tx:
        assert tx.execute("SELECT count(text) FROM messages").fetchone()[0] == 0
    agent.exchange(2)
    agent.end()
    assert said() == [["it is fine"], ["q2", "a2"]]


def test_a_prompt_told_when_its_line_was_sealed_says_nothing_new(agent: Agent, said: Said) -> None:
    """Its event came last, in other words than the file's; another one, which has no line, is given up at the end."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("q1", heard=False)
    agent.answer("a1")
    agent.advance()
    agent.say("prompt", prompt="q1, as it was typed")
    agent.advance()
    assert _passed(agent) == {}
    agent.say("prompt", prompt="but short")
    agent.end()
    assert said() == [["q1", "a1"]]
    assert _passed(agent) == {PassedOver.UNANSWERED: 1}


def test_an_agent_without_known_transcripts_is_taken_by_its_word(agent: Agent, said: Said) -> None:
    """Its file is not opened, and its answers are not waited for."""

    def refuse(path: str) -> None:
        raise AssertionError(path)

    agent.sessions = Sessions(agent.sessions._database, agent.sessions._outbox, dialects={}, open_transcript=refuse)
    agent.terms = replace(agent.terms, every=1)
    agent.exchange(1)
    assert said() == [["q1", "a1"]]


def test_a_session_that_may_hold_no_more_reads_on_later(
    agent: Agent, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its turns cannot be sealed the file keeps what is new; nothing is lost, and what was told is counted."""
    monkeypatch.setattr("bankclient.store.sessions.rows.OPEN_LIMIT", 20)
    project = agent.project
    agent.project = replace(project, name=None)
    agent.prompt("a long question")
    agent.answer("a long answer", told=False)
    assert agent.take_in().messages == 2
    agent.prompt("q2")
    agent.answer("a2")
    assert agent.take_in().messages == 0
    agent.project = project
    agent.say("step")
    agent.advance("flush")
    assert said() == [["a long question", "a long answer"]]
    agent.end()
    assert said()[1:] == [["q2", "a2"]]
    assert _passed(agent) == {PassedOver.FULL: 2}


def test_a_long_file_never_read_is_read_from_its_tail(agent: Agent, said: Said) -> None:
    """That it was is told, with how much was not read; the turn that is captured is there."""
    filler = json.dumps(agent.record("user", "x" * 1000)).encode() + b"\n"
    agent.write(filler * ((40 << 20) // len(filler)))
    agent.prompt("q1")
    agent.answer("a1")
    taken = agent.take_in()
    assert taken.messages == 2
    assert (7 << 20) < taken.unread < (9 << 20)
    agent.end()
    assert said() == [["q1", "a1"]]


def test_a_stop_costs_the_new_bytes_whatever_the_file(agent: Agent, database: Database, said: Said) -> None:
    """On a file of 600 MB, most of it one line, little more is read than what came since the last time."""
    read: list[int] = []
    opened = _watched(lambda offset, length: read.append(min(length, max(0, agent.path.stat().st_size - offset))))
    agent.sessions = Sessions(database, agent.sessions._outbox, open_transcript=opened)
    with agent.path.open("wb") as file:
        file.truncate(600 << 20)  # sparse: nothing is written
    agent.write(b"\n")
    agent.start()
    agent.advance()
    assert sum(read) < 34 << 20
    read.clear()
    for number in range(1, 4):
        agent.exchange(number)
    assert said() == [["q1", "a1", "q2", "a2", "q3", "a3"]]
    assert sum(read) < 20_000
