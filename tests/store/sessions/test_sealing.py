"""What becomes a document, when, and with what in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bankclient.project import Project
from bankclient.store.outbox import Destination, Limits, SqliteOutbox
from bankclient.store.sessions import ANSWER_SECONDS, Filing, PassedOver, Sessions
from bankclient.turns.cadence import IDLE_AFTER

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.store.database import Database
    from tests.store.sessions.conftest import Agent, Stored

    Documents = Callable[[], list[Stored]]
    Said = Callable[[], list[list[str]]]


def test_seven_turns_at_three_are_three_three_and_one(agent: Agent, said: Said) -> None:
    """The last one waits for the session's end; ending it again adds nothing."""
    agent.start()
    for number in range(1, 8):
        agent.exchange(number)
    assert said() == [["q1", "a1", "q2", "a2", "q3", "a3"], ["q4", "a4", "q5", "a5", "q6", "a6"]]
    agent.end()
    assert said()[2:] == [["q7", "a7"]]
    agent.end()
    assert len(said()) == 3


def test_a_session_shorter_than_a_batch_leaves_all_of_it(agent: Agent, said: Said) -> None:
    """Three turns at five are stored at the end."""
    agent.terms = replace(agent.terms, every=5)
    for number in range(1, 4):
        agent.exchange(number)
    assert said() == []
    agent.end()
    assert said() == [["q1", "a1", "q2", "a2", "q3", "a3"]]


def test_a_session_that_was_killed_is_sealed_after_an_idle_hour(agent: Agent, said: Said) -> None:
    """No end came; when the hour is over, whatever looks next finds it. The session has not ended by that."""
    agent.exchange(1)
    other = agent.other("s2")
    other.start()
    assert agent.sessions.next_due(now=agent.now) == agent.now
    agent.sessions.sweep(now=agent.now)
    assert agent.sessions.next_due(now=agent.now) == agent.now + IDLE_AFTER
    agent.sessions.sweep(now=agent.now + IDLE_AFTER - 1)
    assert said() == []
    agent.sessions.sweep(now=agent.now + IDLE_AFTER)
    assert said() == [["q1", "a1"]]
    session = agent.sessions.session(agent.key)
    assert session is not None
    assert session.open
    assert agent.sessions.next_due(now=agent.now + IDLE_AFTER) is None


def test_the_idle_hour_begins_anew_when_the_transcript_grows(agent: Agent, said: Said) -> None:
    """Also where no event says that it did."""
    agent.exchange(1)
    agent.prompt("q2")
    agent.advance()
    agent.line("assistant", "working", stop="tool_use")
    agent.now += IDLE_AFTER
    agent.sessions.sweep(now=agent.now)
    assert said() == []
    assert agent.sessions.next_due(now=agent.now) == agent.now + IDLE_AFTER
    agent.now += IDLE_AFTER
    agent.sessions.sweep(now=agent.now)
    assert said() == [["q1", "a1"]]


@pytest.mark.parametrize("reason", ["flush", "leaving", "pre_compact", "idle"])
def test_what_is_open_is_sealed_but_for_the_turn_in_progress(agent: Agent, said: Said, reason: str) -> None:
    """That one waits; the count of the next batch begins anew."""
    agent.exchange(1)
    agent.prompt("q2")
    agent.advance(reason)
    assert said() == [["q1", "a1"]]
    agent.answer("a2")
    agent.advance()
    agent.exchange(3)
    assert said() == [["q1", "a1"]]
    agent.exchange(4)
    assert said()[1:] == [["q2", "a2", "q3", "a3", "q4", "a4"]]


def test_the_sessions_end_seals_the_turn_in_progress(agent: Agent, said: Said) -> None:
    """What will not be answered any more is kept as it is."""
    agent.exchange(1)
    agent.prompt("q2")
    agent.end()
    assert said() == [["q1", "a1", "q2"]]


def test_the_counter_survives_processes_and_is_each_sessions_own(agent: Agent, database: Database, said: Said) -> None:
    """Each event in a process of its own, two sessions in turn: a batch for the one that is full."""
    other = agent.other("s2")
    for number, one in enumerate([agent, other, agent, other, agent], start=1):
        one.sessions = Sessions(database, SqliteOutbox(database))
        one.exchange(number)
    assert said() == [["q1", "a1", "q3", "a3", "q5", "a5"]]


def test_a_prompt_between_two_stops_changes_no_cursor(agent: Agent, said: Said) -> None:
    """Stop, prompt, Stop: the second document has the new turn alone."""
    agent.terms = replace(agent.terms, every=1)
    for number in range(1, 4):
        agent.exchange(number)
    agent.prompt("q4")
    agent.advance()
    agent.answer("a4")
    agent.advance()
    assert said() == [["q1", "a1"], ["q2", "a2"], ["q3", "a3"], ["q4", "a4"]]


def test_results_of_tools_are_no_turns(agent: Agent, said: Said) -> None:
    """A prompt with nine results of tools counts once; the batch is full after the third real prompt."""
    agent.prompt("q1")
    for number in range(9):
        result = [{"type": "tool_result", "content": f"result {number}"}]
        agent.line("user", "", message={"role": "user", "content": result})
    agent.answer("a1")
    agent.advance()
    agent.exchange(2)
    assert said() == []
    agent.exchange(3)
    assert said() == [["q1", "a1", "q2", "a2", "q3", "a3"]]


def test_a_document_says_what_it_is(agent: Agent, documents: Documents) -> None:
    """Session, agent, turns, time of the first message, context and tags; its id is the session's and a hash."""
    agent.start()
    agent.exchange(1)
    agent.exchange(2)
    agent.end()
    (document,) = documents()
    assert document.id.startswith("s1.")
    assert document.metadata == {"session_id": "s1", "agent": "claude_code", "turns": "1-2"}
    assert document.fields["timestamp"] == "2027-01-15T08:00:00+00:00"
    assert document.fields["context"] == "claude_code"
    assert document.fields["tags"] == ["project:general"]
    assert (document.bank, document.tags, document.key) == ("bank", ("project:general",), "key-1")
    assert document.fields["content"].startswith("[role: user]\n[timestamp: 2027-01-15T08:00:00+00:00]\nq1\n[user:end]")


def test_turn_numbers_go_on_over_resumes(agent: Agent, documents: Documents) -> None:
    """They are the session's, however often it ends; every batch has an id of its own."""
    for first in (1, 3, 5):
        agent.start("resume")
        agent.exchange(first)
        agent.exchange(first + 1)
        agent.end()
    assert [document.metadata["turns"] for document in documents()] == ["1-2", "3-4", "5-6"]
    assert len({document.id for document in documents()}) == 3


def test_a_change_of_address_cuts_the_batch(agent: Agent, documents: Documents) -> None:
    """A turn is filed as its own first event says, whatever is set when it is sealed."""
    agent.exchange(1)
    agent.filing = replace(agent.filing, bank_id_prefix="other")
    agent.prompt("q2")
    agent.filing = replace(agent.filing, destination=Destination("http://two.invalid", "key-2"))
    agent.answer("a2")
    agent.advance()
    agent.exchange(3)
    agent.end()
    assert [(document.bank, document.key, document.said) for document in documents()] == [
        ("bank", "key-1", ["q1", "a1"]),
        ("other-bank", "key-1", ["q2", "a2"]),
        ("other-bank", "key-2", ["q3", "a3"]),
    ]


def test_what_is_awaited_holds_up_what_comes_after_it(agent: Agent, documents: Documents) -> None:
    """Whatever address that goes to: a session's turns are sealed in their order."""
    agent.prompt("q1")
    agent.answer("a1", line=False)
    agent.filing = replace(agent.filing, bank_id="other")
    agent.exchange(2)
    agent.advance("flush")
    assert documents() == []
    agent.now += ANSWER_SECONDS
    agent.advance("flush")
    assert [document.said for document in documents()] == [["q1", "a1"], ["q2", "a2"]]


def test_full_batches_of_an_earlier_address_are_cut_by_the_count(agent: Agent, said: Said) -> None:
    """Turns that waited are sealed by three of one address, and the rest of it as it is."""
    for number in range(1, 6):
        agent.prompt(f"q{number}")
        agent.answer(f"a{number}")
        if number == 4:
            agent.filing = replace(agent.filing, bank_id="other")
    agent.advance()
    assert said() == [["q1", "a1", "q2", "a2", "q3", "a3"], ["q4", "a4"]]


@pytest.mark.parametrize("overlap", [1, 2, 5])
def test_overlap_stands_in_front_as_context(agent: Agent, documents: Documents, overlap: int) -> None:
    """The last turns that were sealed before, marked; they are in no other way part of the batch."""
    agent.terms = replace(agent.terms, every=2, overlap=overlap)
    for number in range(1, 7):
        agent.exchange(number)
    first, second, third = documents()
    assert first.context == []
    assert second.context == ["q1", "a1", "q2", "a2"][-2 * overlap :]
    assert third.context == ["q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4"][-2 * overlap :]
    assert [document.metadata["turns"] for document in documents()] == ["1-2", "3-4", "5-6"]
    assert third.said == ["q5", "a5", "q6", "a6"]


def test_overlap_of_batches_that_are_sealed_together(agent: Agent, documents: Documents) -> None:
    """The second has the first in front of it."""
    agent.terms = replace(agent.terms, every=1, overlap=1)
    for number in range(1, 4):
        agent.prompt(f"q{number}")
        agent.answer(f"a{number}")
    agent.advance()
    assert [document.context for document in documents()] == [[], ["q1", "a1"], ["q2", "a2"]]


def test_overlap_never_comes_from_another_address(agent: Agent, documents: Documents) -> None:
    """What was said for one bank is no context in another."""
    agent.terms = replace(agent.terms, every=1, overlap=2)
    agent.exchange(1)
    agent.filing = replace(agent.filing, bank_id="other")
    agent.exchange(2)
    agent.exchange(3)
    agent.filing = replace(agent.filing, bank_id="bank")
    agent.exchange(4)
    contexts = [(document.bank, document.context) for document in documents()]
    assert contexts == [("bank", []), ("other", []), ("other", ["q2", "a2"]), ("bank", [])]


def test_the_answer_is_waited_for_then_the_events_word_stands_in(agent: Agent, said: Said) -> None:
    """Two seconds from the stop on; until then nothing of the turn is sealed, not at the session's end either."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("q1")
    agent.answer("a1", line=False)
    assert agent.advance().again_at == agent.now + ANSWER_SECONDS
    assert agent.end().again_at == agent.now + ANSWER_SECONDS
    agent.now += ANSWER_SECONDS - 0.1
    agent.sessions.sweep(now=agent.now)
    assert said() == []
    agent.now += 0.1
    agent.sessions.sweep(now=agent.now)
    assert said() == [["q1", "a1"]]


def test_an_answer_that_comes_in_time_is_the_one(agent: Agent, said: Said) -> None:
    """The line is sealed in place of the event's word, whatever its text, once and with its question."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("q1")
    agent.answer("in short", line=False)
    agent.advance()
    agent.now += 0.3
    agent.line("assistant", "at length")
    agent.advance()
    assert said() == [["q1", "at length"]]
    agent.answer("again", heard=False)
    agent.end()
    assert said()[1:] == [["again"]]


def test_an_answer_that_comes_too_late_is_adopted(agent: Agent, said: Said) -> None:
    """The word that stood in for it was sealed: its line says nothing new."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("q1")
    agent.answer("in short", line=False)
    agent.now += ANSWER_SECONDS
    agent.advance()
    assert said() == [["q1", "in short"]]
    agent.line("assistant", "at length")
    assert agent.advance().taken.messages == 1
    session = agent.sessions.session(agent.key)
    assert session is not None
    assert session.turns_open == 0
    agent.exchange(2)
    agent.end()
    assert said() == [["q1", "in short"], ["q2", "a2"]]


def test_what_was_adopted_stands_once_as_context(agent: Agent, documents: Documents) -> None:
    """As it was sealed, without its line."""
    agent.terms = replace(agent.terms, every=1, overlap=1)
    agent.prompt("q1")
    agent.answer("in short", line=False)
    agent.now += ANSWER_SECONDS
    agent.advance()
    agent.line("assistant", "at length")
    agent.advance()
    agent.exchange(2)
    assert documents()[1].context == ["q1", "in short"]


def test_what_was_adopted_adopts_no_more(agent: Agent, said: Said) -> None:
    """A turn that goes on after its answer has a second one."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("q1")
    agent.answer("in short", line=False)
    agent.now += ANSWER_SECONDS
    agent.advance()
    agent.line("assistant", "at length")
    agent.advance()
    agent.line("assistant", "and another thing")
    agent.end()
    assert said() == [["q1", "in short"], ["and another thing"]]


def test_one_line_is_one_stops(agent: Agent, said: Said) -> None:
    """A turn that stopped twice, of which one answer is in the file: the other stands in."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("q1")
    agent.answer("a1", told=False, heard=False)
    agent.say("stop", last_answer="a1")
    agent.say("stop", last_answer="and more")
    agent.advance()
    assert said() == []
    agent.now += ANSWER_SECONDS
    agent.advance()
    assert said() == [["q1", "a1", "and more"]]


def test_words_that_are_the_events_are_the_answer(agent: Agent, said: Said) -> None:
    """Also where the agent does not tell which line is its last: nothing is waited for."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("q1")
    agent.line("assistant", "a1", stop="tool_use")
    agent.answer("a1", line=False)
    agent.advance()
    assert said() == [["q1", "a1"]]


def test_a_stop_that_comes_after_its_line_was_sealed_says_nothing_new(agent: Agent, said: Said) -> None:
    """Whether its words are those of the line or not."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("q1")
    agent.answer("at length", heard=False)
    agent.advance()
    assert said() == [["q1", "at length"]]
    agent.say("stop", last_answer="in short")
    agent.now += ANSWER_SECONDS
    agent.end()
    assert said() == [["q1", "at length"]]


def test_words_before_a_tool_are_not_taken_for_the_answer(agent: Agent, said: Said) -> None:
    """Where the agent died before it wrote the answer, the event's word is the answer."""
    agent.prompt("q1")
    agent.line("assistant", "I will look", stop="tool_use")
    agent.answer("a1", line=False)
    agent.end()
    agent.now += ANSWER_SECONDS
    agent.advance()
    assert said() == [["q1", "I will look", "a1"]]


def test_an_answer_that_comes_before_its_stop_needs_no_waiting(agent: Agent, said: Said) -> None:
    """A line that ends the turn, though the event tells no words: there is nothing to wait for."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("q1")
    agent.answer("a1", told=False)
    assert agent.advance().documents == 1
    assert said() == [["q1", "a1"]]


def test_a_clock_that_was_set_back_awaits_nothing(agent: Agent, said: Said) -> None:
    """A stop in the future is not waited for, nor is an idle hour that begins there."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("q1")
    agent.answer("a1", line=False)
    agent.prompt("q2")
    agent.advance()
    agent.now -= 86_400
    assert agent.sessions.next_due(now=agent.now) == agent.now
    agent.sessions.sweep(now=agent.now)
    assert said() == [["q1", "a1"]]
    assert agent.sessions.next_due(now=agent.now) == agent.now + IDLE_AFTER


def test_an_idle_hour_passes_after_a_clock_was_set_back(agent: Agent, said: Said) -> None:
    """It begins when that is first seen, not when the clock is again where it was."""
    agent.exchange(1)
    agent.now -= 86_400
    agent.sessions.sweep(now=agent.now)
    agent.now += IDLE_AFTER
    agent.sessions.sweep(now=agent.now)
    assert said() == [["q1", "a1"]]


def test_without_a_file_prompt_and_last_answer_are_the_turn(agent: Agent, said: Said) -> None:
    """And nothing is waited for."""
    agent.with_file = False
    agent.terms = replace(agent.terms, every=1)
    agent.exchange(1)
    assert said() == [["q1", "a1"]]


@pytest.mark.parametrize("with_file", [True, False])
def test_a_prompt_that_came_to_nothing_is_not_kept(agent: Agent, said: Said, *, with_file: bool) -> None:
    """Neither stop nor line: it is counted, and what comes next is not held up by it."""
    agent.with_file = with_file
    agent.prompt("lost", line=False)
    agent.exchange(2)
    agent.exchange(3)
    agent.exchange(4)
    assert said() == [["q2", "a2", "q3", "a3", "q4", "a4"]]
    agent.end()
    session = agent.sessions.session(agent.key)
    assert session is not None
    assert session.passed_over == {PassedOver.UNANSWERED: 1}
    assert session.turns_open == 0


def test_a_turn_without_lines_keeps_its_place(agent: Agent, said: Said) -> None:
    """Between the turns whose lines are there."""
    agent.terms = replace(agent.terms, every=4)
    agent.exchange(1)
    agent.exchange(2)
    agent.prompt("q3", line=False)
    agent.answer("a3", line=False)
    agent.now += ANSWER_SECONDS
    agent.exchange(4)
    assert said() == [["q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4"]]


def test_a_turn_that_was_interrupted_is_one(agent: Agent, said: Said) -> None:
    """After Esc there is no stop; the next prompt completes the turn that has a line, also before it has one."""
    agent.terms = replace(agent.terms, every=1)
    agent.prompt("q1")
    agent.prompt("q2", line=False)
    agent.advance()
    assert said() == [["q1"]]


def test_prompts_that_came_to_nothing_are_given_up_in_an_idle_hour(agent: Agent, said: Said) -> None:
    """But for the newest, which may still be answered."""
    agent.with_file = False
    agent.prompt("q1")
    agent.prompt("q2")
    agent.now += IDLE_AFTER
    agent.advance()
    session = agent.sessions.session(agent.key)
    assert session is not None
    assert (session.passed_over, session.turns_open) == ({PassedOver.UNANSWERED: 1}, 1)
    agent.answer("a2")
    agent.advance("flush")
    assert said() == [["q2", "a2"]]


def test_a_full_outbox_keeps_turns_open(agent: Agent, database: Database, documents: Documents) -> None:
    """Nothing is lost or counted as lost; it is tried again in a minute, and sealed once there is room."""
    agent.terms = replace(agent.terms, every=1)
    full = SqliteOutbox(database, limits=Limits(items=1))
    agent.sessions = Sessions(database, full)
    for number in range(1, 4):
        agent.prompt(f"q{number}")
        agent.answer(f"a{number}")
    sealed = agent.advance()
    assert (sealed.documents, sealed.turns, sealed.full, sealed.again_at) == (1, 1, True, agent.now + 60.0)
    assert full.overview(now=agent.now).losses == ()
    session = agent.sessions.session(agent.key)
    assert session is not None
    assert (session.turns_sealed, session.turns_open) == (1, 2)
    agent.sessions = Sessions(database, SqliteOutbox(database))
    agent.now += 60
    agent.sessions.sweep(now=agent.now)
    assert [(document.said, document.metadata["turns"]) for document in documents()] == [
        (["q1", "a1"], "1-1"),
        (["q2", "a2"], "2-2"),
        (["q3", "a3"], "3-3"),
    ]


def test_texts_go_when_they_are_sealed(agent: Agent, database: Database) -> None:
    """Only what stands in front of the next batch stays, and the turns that may still get late lines, without text."""
    agent.terms = replace(agent.terms, every=1)
    for number in range(1, 100):
        agent.exchange(number)
    with database.read() as tx:
        texts = tx.execute("SELECT count(text) FROM messages").fetchone()[0]
        turns = tx.execute("SELECT count(*) FROM turns").fetchone()[0]
        keys = tx.execute("SELECT count(*) FROM message_keys").fetchone()[0]
    assert (texts, turns, keys) == (0, 64, 198)
    agent.terms = replace(agent.terms, overlap=2)
    for number in range(100, 103):
        agent.exchange(number)
    with database.read() as tx:
        kept = [
            row["text"] for row in tx.execute("SELECT text FROM messages WHERE text IS NOT NULL ORDER BY turn, number")
        ]
    assert kept == ["q101", "a101", "q102", "a102"]


def test_sessions_never_share_a_batch(agent: Agent, documents: Documents) -> None:
    """Two at once, of one address: each document is one session's."""
    other = agent.other("s2")
    for number in range(1, 7):
        (agent if number % 2 else other).exchange(number)
    assert [(document.metadata["session_id"], document.said) for document in documents()] == [
        ("s1", ["q1", "a1", "q3", "a3", "q5", "a5"]),
        ("s2", ["q2", "a2", "q4", "a4", "q6", "a6"]),
    ]


def test_a_flush_seals_every_session(agent: Agent, said: Said) -> None:
    """It reads what is new first; what it did is told session by session."""
    other = agent.other("s2")
    agent.exchange(1)
    other.exchange(2)
    agent.prompt("q3")
    agent.answer("a3")
    done = agent.sessions.sweep("flush", now=agent.now)
    assert {key.id: (sealed.documents, sealed.turns) for key, sealed in done.items()} == {"s1": (1, 2), "s2": (1, 1)}
    assert sorted(said()) == [["q1", "a1", "q3", "a3"], ["q2", "a2"]]
    assert agent.sessions.sweep("flush", now=agent.now) == {}


def test_what_is_filed_nowhere_waits_for_a_project(agent: Agent, documents: Documents) -> None:
    """Turns of an unresolved project stay open, at any reason, and go where the next event that knows says."""
    agent.project = Project(None, None, "unresolved: /")
    agent.start()
    agent.exchange(1)
    agent.advance("flush")
    session = agent.sessions.session(agent.key)
    assert session is not None
    assert (session.turns_open, session.turns_unresolved, documents()) == (1, 1, [])
    agent.filing = replace(agent.filing, bank_id="other")
    agent.project = Project("late", Path("/r/late"), "git checkout")
    agent.exchange(2)
    agent.advance("flush")
    assert [(document.bank, document.tags, document.said) for document in documents()] == [
        ("bank", ("project:late",), ["q1", "a1"]),
        ("other", ("project:late",), ["q2", "a2"]),
    ]


def test_a_global_bank_needs_no_project(agent: Agent, documents: Documents) -> None:
    """With scoping `global` an unresolved project changes nothing."""
    agent.filing = Filing(agent.filing.destination, "bank", "pre", "global")
    agent.project = Project(None, None, "unresolved: /")
    agent.exchange(1)
    agent.end()
    assert [(document.bank, document.tags) for document in documents()] == [("pre-bank", ())]


def test_rekeying_moves_what_is_not_sealed(agent: Agent, documents: Documents) -> None:
    """A person's act on a destination reaches the turns that are still open."""
    agent.exchange(1)
    agent.sessions.rekey("http://one.invalid", "key-1", "key-9")
    agent.end()
    assert [document.key for document in documents()] == ["key-9"]
