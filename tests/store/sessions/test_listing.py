"""Conversations that a program hands over as lists of messages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankclient.errors import OutboxFull
from bankclient.project import Project
from bankclient.store.database import Database
from bankclient.store.outbox import Destination, SqliteOutbox
from bankclient.store.sessions import Filing, PassedOver, SessionKey, Sessions, Terms
from bankclient.turns.event import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Said = Callable[[], list[list[str]]]

_PROJECT = Project("general", None, "git checkout")
_NOW = 1_800_000_000.0
_KEY = SessionKey("my-agent", "s1", "general")
_FILING = Filing(Destination("http://one.invalid", "key-1"), "bank")
_TERMS = Terms(every=3, context="my-agent")


@dataclass
class Program:
    """A program with a conversation of its own."""

    sessions: Sessions
    key: SessionKey = _KEY
    terms: Terms = _TERMS
    items: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0

    def say(self, role: str, content: Any) -> None:  # noqa: ANN401 - any JSON
        """Add a message to the conversation."""
        self.items.append({"role": role, "content": content})

    def hand_over(
        self, items: Sequence[dict[str, Any]] | None = None, *, whole: bool = True, again: bool = False
    ) -> int:
        """Hand messages over, all of them if not said otherwise; return how many were kept."""
        self.calls += not again
        taken = self.sessions.take_messages(
            self.key,
            self.items if items is None else items,
            _FILING,
            _PROJECT,
            self.terms,
            event_id=f"{self.key}-{self.calls}",
            whole=whole,
            now=_NOW,
        )
        return taken.messages

    def exchange(self, number: int) -> None:
        """Have a turn."""
        self.say("user", f"q{number}")
        self.say("assistant", f"a{number}")

    def say_event(self, kind: str) -> None:
        """Begin or end the session."""
        event = Event(
            kind=kind,  # type: ignore[arg-type]  # as tests write kinds
            agent=self.key.agent,
            session_id=self.key.id,
            event_id=f"{self.key}-{kind}-{self.calls}",
        )
        self.sessions.record(event, _FILING, _PROJECT, self.terms, now=_NOW, realm=self.key.project)

    def seal(self, reason: str = "cadence") -> None:
        """Seal what is due."""
        self.sessions.seal(self.key, reason, now=_NOW)  # type: ignore[arg-type]  # as tests write reasons


@pytest.fixture
def program(sessions: Sessions) -> Program:
    """Give a program with an empty conversation."""
    return Program(sessions)


@pytest.mark.parametrize("whole", [True, False], ids=["the whole list", "the new part"])
def test_seven_turns_at_three(program: Program, said: Said, *, whole: bool) -> None:
    """Each turn comes once, whichever way the list is handed over; the last with the end."""
    program.say_event("session_start")
    for number in range(1, 8):
        program.exchange(number)
        assert program.hand_over(program.items if whole else program.items[-2:], whole=whole) == 2
        program.seal()
    assert [len(texts) for texts in said()] == [6, 6]
    program.say_event("session_end")
    program.seal()
    assert [text for texts in said() for text in texts] == [f"{role}{n}" for n in range(1, 8) for role in "qa"]


def test_the_same_call_again_changes_nothing(program: Program) -> None:
    """A reply that was lost, and the call made again: its event is known."""
    program.exchange(1)
    assert program.hand_over(whole=False) == 2
    assert program.hand_over(whole=False, again=True) == 0


def test_the_same_words_again_are_said_again(program: Program, said: Said) -> None:
    """A person may repeat himself."""
    for _ in range(3):
        program.exchange(1)
        program.hand_over()
    program.seal()
    assert said() == [["q1", "a1"] * 3]


def test_a_list_shortened_in_front_goes_on_behind(program: Program, said: Said) -> None:
    """After a compaction of the program's own, only what is new is new."""
    for number in range(1, 6):
        program.exchange(number)
    program.hand_over()
    program.items = [{"role": "system", "content": "a recap"}, *program.items[-3:]]
    program.exchange(6)
    program.hand_over()
    program.say_event("session_end")
    program.seal()
    assert [text for texts in said() for text in texts] == [f"{role}{n}" for n in range(1, 7) for role in "qa"]


def test_a_turn_in_progress_waits(program: Program, said: Said) -> None:
    """A prompt alone, or one whose tool was called, has not stopped; its answer completes it, in another call."""
    program.terms = replace(program.terms, every=1)
    program.say("user", "q1")
    program.hand_over()
    program.seal()
    program.say("assistant", [{"type": "tool_use", "name": "x"}])
    program.say("tool", "a result")
    program.hand_over()
    program.seal("flush")
    assert said() == []
    program.say("assistant", "a1")
    program.hand_over()
    program.seal()
    assert said() == [["q1", "a1"]]


def test_a_turn_that_was_handed_over_has_stopped(program: Program, said: Said) -> None:
    """Its answer is the last thing said in it, whatever else stands behind that in the list."""
    program.terms = replace(program.terms, every=1)
    program.exchange(1)
    program.say("tool", "logged")
    program.hand_over()
    program.seal()
    assert said() == [["q1", "a1"]]


def test_what_may_not_be_kept_is_not(program: Program, said: Said) -> None:
    """Secrets, private parts, messages of neither side, and what stands before any turn."""
    program.say("assistant", "hello, I am a helper")
    program.say("system", "be kind")
    program.say("user", "use ghp_" + "A1b2" * 9)
    program.say("assistant", [{"type": "text", "text": "used"}, {"type": "thinking", "thinking": "hm"}])
    program.say("user", "<private>hush</private>")
    program.say("assistant", "half \ud83d")
    program.hand_over()
    program.seal("flush")
    assert said() == [["use [redacted: github token]", "used", "half \ufffd"]]
    session = program.sessions.session(program.key)
    assert session is not None
    assert session.passed_over == {PassedOver.TURNLESS: 1, PassedOver.NOTHING_KEPT: 1}


def test_what_is_said_with_retaining_off_stays_out(program: Program, said: Said) -> None:
    """It is seen, so that it is not new when retaining is on again."""
    program.terms = replace(program.terms, retain=False)
    program.exchange(1)
    assert program.hand_over() == 0
    program.terms = replace(program.terms, retain=True)
    program.exchange(2)
    program.hand_over()
    program.seal("flush")
    assert said() == [["q2", "a2"]]


def test_one_id_in_two_projects_is_two_conversations(program: Program, said: Said) -> None:
    """Neither is compared with the other."""
    other = Program(program.sessions, key=replace(program.key, project="elsewhere"))
    for one in (program, other):
        one.exchange(1)
        one.hand_over()
        one.seal("flush")
    assert said() == [["q1", "a1"], ["q1", "a1"]]


def test_a_session_that_may_hold_no_more_refuses(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no file that would keep it, so the program is told, and may hand it over again."""
    monkeypatch.setattr("bankclient.store.sessions.rows.OPEN_LIMIT", 3)
    program.exchange(1)
    program.hand_over()
    program.exchange(2)
    with pytest.raises(OutboxFull, match="unsealed"):
        program.hand_over()
    program.seal("flush")
    assert program.hand_over(again=True) == 2


def test_two_that_hand_over_the_same_at_once_say_it_once(program: Program, said: Said) -> None:
    """What another call has kept meanwhile is not new any more."""
    other = replace(program, calls=100)

    class Slow(list[dict[str, Any]]):
        """A list during whose reading the other call is made."""

        others: ClassVar[list[Program]] = [other]

        def __iter__(self) -> Iterator[dict[str, Any]]:
            while self.others:
                self.others.pop().hand_over()
            return super().__iter__()

    program.exchange(1)
    assert program.hand_over(Slow(program.items)) == 0
    program.seal("flush")
    assert said() == [["q1", "a1"]]


_ROLES = st.sampled_from(["user", "assistant", "system", "tool"])
_CALLS = st.lists(st.tuples(st.lists(_ROLES, max_size=5), st.booleans(), st.booleans()), max_size=8)


@settings(max_examples=50)
@given(calls=_CALLS, every=st.integers(1, 3), whole=st.booleans())
def test_whatever_is_handed_over_comes_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[list[str], bool, bool]], every: int, *, whole: bool
) -> None:
    """Calls in any cuts, made again, with sealing and restarts between: every message of a turn once, in order."""
    database = Database(tmp_path_factory.mktemp("store") / "store.db")
    outbox = SqliteOutbox(database)
    program = Program(Sessions(database, outbox), terms=Terms(every=every, context="x"))
    program.say_event("session_start")
    expected: list[str] = []
    for roles, again, seals in calls:
        new = [{"role": role, "content": f"{role} {len(program.items) + place}"} for place, role in enumerate(roles)]
        program.items += new
        for message in new:
            if message["role"] == "user" or (message["role"] == "assistant" and expected):
                expected.append(message["content"])
        program.hand_over(None if whole else new, whole=whole)
        if again:
            program.hand_over(None if whole else new, whole=whole, again=True)
        if seals:
            program.sessions = Sessions(database, outbox)
            program.seal()
    program.say_event("session_end")
    program.seal()
    texts = [outbox.text(batch.id) or b"" for batch in outbox.batches()]
    database.close()
    said = [line for text in texts for line in text.decode().split("\\n") if line.startswith(("user ", "assistant "))]
    assert said == expected
