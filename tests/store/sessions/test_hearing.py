"""What an event changes, and what it does not: sessions, their projects, their subagents, and captured turns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bankclient.errors import InvalidInput
from bankclient.project import Project
from bankclient.scope import scope_of
from bankclient.settings import Settings
from bankclient.store.outbox import Address, Destination
from bankclient.store.sessions import Filing, PassedOver, SessionKey, Sessions
from bankclient.turns.render import Memory, render

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.scope import Scoping
    from bankclient.store.database import Database
    from bankclient.store.sessions import Session
    from tests.store.sessions.conftest import Agent, Stored

    Documents = Callable[[], list[Stored]]
    Said = Callable[[], list[list[str]]]

_ELSEWHERE = Project("elsewhere", Path("/r/elsewhere"), "git checkout")
_NOWHERE = Project(None, None, "unresolved: no folder was named")


def _known(agent: Agent) -> Session:
    session = agent.sessions.session(agent.key)
    assert session is not None
    return session


def _logical(database: Database) -> list[str]:
    """Return all that the store holds, but for which events it has seen."""
    with database.read() as tx:
        return [line for line in tx.iterdump() if not line.startswith('INSERT INTO "events"')]


def test_the_same_event_again_changes_nothing(agent: Agent, database: Database) -> None:
    """Whatever is said with it the second time: not a row of the store is another."""
    agent.turn = "p1"
    events = [agent.event("session_start"), agent.event("prompt", prompt="q"), agent.event("stop", last_answer="a")]
    assert [agent.deliver(event).fresh for event in events] == [True, True, True]
    before = _logical(database)
    agent.now += 100
    agent.filing, agent.project = replace(agent.filing, bank_id="other"), _ELSEWHERE
    again = [agent.deliver(event) for event in reversed(events)]
    assert [recorded.fresh for recorded in again] == [False, False, False]
    assert {recorded.project.name for recorded in again} == {"general"}
    assert _logical(database) == before


def test_an_acknowledged_turn_is_there_after_a_restart(agent: Agent, database: Database, said: Said) -> None:
    """The process died right after the acknowledgement; what starts next finds it due, reads, and seals it."""
    agent.prompt("q1")
    agent.answer("a1")
    agent.say("session_end")
    again = Sessions(database, agent.sessions._outbox)
    assert again.next_due(now=agent.now) == agent.now
    again.sweep(now=agent.now)
    assert said() == [["q1", "a1"]]
    assert again.next_due(now=agent.now) is None


def test_the_project_is_fixed_from_start_to_end(agent: Agent, documents: Documents) -> None:
    """A shell that changes its folder changes nothing; a resume elsewhere begins anew there."""
    agent.start()
    agent.project = _ELSEWHERE
    assert agent.say("prompt", prompt="q").project.name == "general"
    agent.exchange(1)
    agent.end()
    assert agent.start("resume").project == _ELSEWHERE
    agent.exchange(2)
    agent.end()
    assert [(document.tags, document.said) for document in documents()] == [
        (("project:general",), ["q1", "a1"]),
        (("project:elsewhere",), ["q2", "a2"]),
    ]


def test_a_resume_elsewhere_leaves_open_turns_where_they_belong(agent: Agent, documents: Documents) -> None:
    """The session was killed, not ended: its turns of before keep their address, and are not mixed with new ones."""
    agent.start()
    agent.exchange(1)
    agent.project = _ELSEWHERE
    agent.start("resume")
    agent.exchange(2)
    agent.end()
    assert [(document.tags, document.said) for document in documents()] == [
        (("project:general",), ["q1", "a1"]),
        (("project:elsewhere",), ["q2", "a2"]),
    ]


def test_a_compaction_begins_no_session(agent: Agent) -> None:
    """Its start goes on in the same project."""
    agent.start()
    agent.project = _ELSEWHERE
    assert agent.start("compact").project.name == "general"


def test_a_prompt_without_a_start_begins_its_session_anew(agent: Agent) -> None:
    """A start that was lost, after an end that was not: the prompt's folder counts."""
    agent.start()
    agent.end()
    agent.project = _ELSEWHERE
    assert agent.say("prompt", prompt="q").project.name == "elsewhere"
    assert _known(agent).open


def test_a_late_stop_does_not_open_its_session(agent: Agent, said: Said) -> None:
    """It belongs to the run that has ended, and is sealed as that was."""
    agent.prompt("q1")
    agent.say("session_end")
    agent.answer("a1")
    assert not _known(agent).open
    agent.advance()
    assert said() == [["q1", "a1"]]


@pytest.mark.parametrize("source", ["startup", "resume", "clear", None])
def test_an_unresolved_project_fixes_nothing(agent: Agent, source: str) -> None:
    """The next event that knows one does; why it was unknown can be shown."""
    agent.project = _NOWHERE
    agent.start(source)
    assert _known(agent).project == _NOWHERE
    agent.project = _ELSEWHERE
    assert agent.say("step").project == _ELSEWHERE
    agent.project = _NOWHERE
    assert agent.say("step").project == _ELSEWHERE


@pytest.mark.parametrize("path", ["/nowhere/s1.jsonl", None])
def test_an_end_out_of_nowhere_changes_nothing(agent: Agent, database: Database, path: str | None) -> None:
    """It has no transcript and follows no start: of a session never heard of, or of one that has ended before.

    Nor does it later, when the session runs and the event is delivered again.
    """
    event = agent.event("session_end", transcript_path=path)
    before = _logical(database)
    assert not agent.deliver(event).fresh
    assert _logical(database) == before
    agent.exchange(1)
    assert not agent.deliver(event).fresh
    assert _known(agent).open
    agent.end()
    before = _logical(database)
    assert not agent.say("session_end", transcript_path=path).fresh
    assert _logical(database) == before


def test_a_resume_in_the_wrong_folder_ends_nothing(agent: Agent) -> None:
    """While the session runs, an end that names another file, which is not there, is not its."""
    agent.start()
    agent.exchange(1)
    assert not agent.say("session_end", transcript_path="/other/folder/s1.jsonl").fresh
    assert _known(agent).open


def test_an_end_without_transcript_that_follows_its_start_counts(agent: Agent, said: Said) -> None:
    """A session that writes no file ends as any other."""
    agent.with_file = False
    agent.start()
    agent.exchange(1)
    agent.end()
    assert said() == [["q1", "a1"]]
    agent.start("resume")
    agent.exchange(2)
    agent.path = agent.path.with_name("never.jsonl")
    agent.say("step", transcript_path=str(agent.path))
    agent.say("session_end", transcript_path=str(agent.path))
    assert not _known(agent).open


def test_what_happens_inside_a_subagent_captures_nothing(agent: Agent, said: Said) -> None:
    """Its events carry the session's id; they neither add a turn, nor move the project or the transcript."""
    agent.start()
    agent.exchange(1)
    before = _known(agent)
    agent.project = _ELSEWHERE
    agent.now += 1
    for kind in ("prompt", "stop", "subagent_stop", "step"):
        recorded = agent.say(kind, subagent_id="x", prompt="look", last_answer="found", transcript_path="/x.jsonl")
        assert recorded.project.name == "general"
    assert _known(agent) == replace(before, seen=agent.now)
    agent.end()
    assert said() == [["q1", "a1"]]


def test_a_subagents_event_may_be_the_first(agent: Agent, said: Said) -> None:
    """The session's own first event then says whose project it is."""
    agent.project = _ELSEWHERE
    agent.say("step", subagent_id="x")
    agent.project = Project("general", Path("/r/general"), "git checkout")
    agent.exchange(1)
    assert _known(agent).project.name == "general"
    agent.end()
    assert said() == [["q1", "a1"]]


def test_a_session_started_by_a_sessions_shell_is_its_subagent(agent: Agent, said: Said) -> None:
    """Nothing of it is captured or read; it is in its parent's project. So is what it starts itself."""
    agent.start()
    child = agent.other("child", project=_ELSEWHERE)
    assert child.say("session_start", parent="s1").parent == agent.key
    child.prompt("q1")
    child.answer("a1")
    recorded = child.say("stop", last_answer="a1")
    assert (recorded.parent, recorded.project.name) == (agent.key, "general")
    assert child.advance().again_at is None
    child.end()
    grandchild = agent.other("grandchild")
    assert grandchild.say("session_start", parent="child").parent is None  # the child has ended
    child.start("resume")
    other = agent.other("other grandchild")
    assert other.say("session_start", parent="child").parent == agent.key
    agent.sessions.sweep("flush", now=agent.now)
    assert said() == []


@pytest.mark.parametrize("whose", ["a subagent's", "one that retains nothing", "one that ended unheard"])
def test_a_file_of_which_nothing_is_kept_is_not_read(agent: Agent, whose: str) -> None:
    """It costs nothing, however long it is."""

    def refuse(path: str) -> None:
        raise AssertionError(path)

    agent.start()
    other = agent.other("s2", terms=replace(agent.terms, retain=whose != "one that retains nothing"))
    other.say("session_start", parent="s1" if whose == "a subagent's" else None)
    other.exchange(1, heard=False)
    if whose == "one that ended unheard":
        other.say("session_end")
    else:
        other.say("stop", last_answer="a1")
    agent.sessions._open = refuse
    assert other.advance().again_at is None


def test_a_parent_counts_while_it_is_open(agent: Agent, said: Said) -> None:
    """In a terminal that outlives the session the variable stays, and means nothing any more."""
    agent.start()
    agent.end()
    child = agent.other("child")
    child.say("session_start", parent="s1")
    child.exchange(1)
    child.end()
    assert said() == [["q1", "a1"]]


def test_whose_subagent_it_is_is_decided_at_the_first_event(agent: Agent) -> None:
    """Neither the parent's end nor a variable that comes or goes changes it."""
    agent.start()
    child, own = agent.other("child"), agent.other("own")
    child.say("session_start", parent="s1")
    own.start()
    assert own.say("prompt", prompt="q", parent="s1").parent is None
    agent.end()
    assert child.say("session_start", source="resume").parent == agent.key
    assert _known(child).parent == agent.key


def test_no_session_is_its_own_subagent(agent: Agent) -> None:
    """The variable with its own id means nothing."""
    assert agent.say("session_start", parent="s1").parent is None
    assert agent.say("session_start", source="resume", parent="s1").parent is None


def test_with_retaining_off_nothing_is_captured(agent: Agent, said: Said) -> None:
    """The session is known; what was said in it is not read, and stays out when retaining is on again."""
    agent.terms = replace(agent.terms, retain=False)
    agent.start()
    agent.exchange(1)
    agent.terms = replace(agent.terms, retain=True)
    agent.exchange(2)
    agent.end()
    assert said() == [["q2", "a2"]]
    assert _known(agent).passed_over == {PassedOver.UNHEARD: 2}


def test_what_is_off_leaves_what_is_queued(agent: Agent, said: Said) -> None:
    """Turns that were captured before are sealed all the same; those spoken while no event reaches us are not."""
    agent.exchange(1)
    agent.exchange(2)
    agent.exchange(3, heard=False)
    agent.exchange(4, heard=False)
    agent.sessions.sweep("flush", now=agent.now)
    assert said() == [["q1", "a1", "q2", "a2"]]
    agent.exchange(5)
    agent.end()
    assert said()[1:] == [["q5", "a5"]]


SECRET = "ghp_" + "A1b2" * 9
BLOCK = render([Memory("1", "what-was-remembered")], 8192).text


@pytest.mark.parametrize("with_file", [True, False])
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"the key is {SECRET}, use it", "the key is [redacted: github token], use it"),
        (f"which port?\n{BLOCK}\nsay it twice", "which port?\n\nsay it twice"),
        ("rename it <private>for-nobody-else</private> now", "rename it  now"),
        ("half an emoji \ud83d and a NUL \x00", "half an emoji \ufffd and a NUL"),
        ("one line\u2028not two\u0085really", "one line\u2028not two\u0085really"),
        ("<system-reminder>\nbe kind\n</system-reminder>\nrename it", "rename it"),
    ],
    ids=["secret", "block", "private", "surrogate", "separators", "harness"],
)
def test_nothing_that_may_not_be_kept_is_ever_on_the_disk(
    agent: Agent, database: Database, said: Said, text: str, kept: str, *, with_file: bool
) -> None:
    """Neither of an event's words nor of a line's, before or after sealing."""
    agent.with_file = with_file
    agent.start()
    agent.prompt(text)
    agent.answer(text)
    on_disk = [database.path.read_bytes(), database.path.with_name("store.db-wal").read_bytes()]
    agent.end()
    on_disk += [database.path.read_bytes(), database.path.with_name("store.db-wal").read_bytes()]
    hidden = (SECRET.encode(), b"what-was-remembered", b"for-nobody-else")
    assert [word for data in on_disk for word in hidden if word in data] == []
    (texts,) = said()
    assert texts[0] == kept
    assert texts[1] == (kept if "system-reminder" not in text else text)


@pytest.mark.parametrize("with_file", [True, False])
def test_a_message_of_which_nothing_may_be_kept_is_none(agent: Agent, said: Said, *, with_file: bool) -> None:
    """A prompt that is our block, or private, altogether is no turn of the person's."""
    agent.with_file = with_file
    agent.prompt(BLOCK)
    agent.answer("a1")
    agent.prompt("<private>nobody's business</private>")
    agent.answer("a2")
    agent.exchange(3)
    agent.end()
    assert said() == [["a1", "a2", "q3", "a3"]]
    assert _known(agent).passed_over == ({PassedOver.NOTHING_KEPT: 2} if with_file else {})


def test_redaction_is_as_the_events_settings_say(agent: Agent, said: Said) -> None:
    """Switched off for a turn, for its event's words and its lines alike."""
    agent.terms = replace(agent.terms, redact=False, every=1)
    agent.prompt(f"use {SECRET}")
    agent.terms = replace(agent.terms, redact=True)
    agent.answer("a1")
    agent.advance()
    assert said() == [[f"use {SECRET}", "a1"]]


def test_ids_that_are_no_text_are_taken(agent: Agent, said: Said) -> None:
    """Half a surrogate pair in an id, a turn's name or a path neither fails nor poisons anything."""
    agent.id = "s\ud83d"
    agent.turn = "p\udc8f"
    agent.say("session_start", transcript_path="/t/\ud83d.jsonl", event_id="e\ud83d", cwd="\udc8f")
    agent.say("prompt", prompt="q1", transcript_path=None)
    agent.line("user", "q1")
    agent.answer("a1")
    agent.end()
    assert said() == [["q1", "a1"]]


@pytest.mark.parametrize("scoping", ["global", "per-project", "per-project-tagged"])
@pytest.mark.parametrize("prefix", [None, "team-a"])
@pytest.mark.parametrize("project", [_ELSEWHERE, Project("a/b", None, ""), _NOWHERE])
def test_a_filing_goes_where_the_settings_scope_does(scoping: Scoping, prefix: str | None, project: Project) -> None:
    """An address that is made when the project is known at last is the one that the settings gave."""
    here = Destination("http://one.invalid", "key-1")
    scope = scope_of(Settings(bank_id="bank", bank_id_prefix=prefix, scoping=scoping, project=None), project)
    address = Filing(here, "bank", prefix, scoping).address(project)
    if not scope.resolved:
        assert address is None
    else:
        target = scope.retain_target()
        assert address == Address(here, target.bank, target.tags)


def test_a_bank_that_no_server_takes_is_said_before_anything_is_kept(agent: Agent, database: Database) -> None:
    """The event is refused whole."""
    before = _logical(database)
    agent.filing = replace(agent.filing, bank_id="x" * 150, bank_id_prefix="y" * 150)
    with pytest.raises(InvalidInput, match="at most 192 bytes"):
        agent.say("prompt", prompt="q")
    assert _logical(database) == before


def test_sessions_in_process_are_told_apart_by_project_too(agent: Agent) -> None:
    """The same id in two projects is two sessions; an agent's hooks know no such thing."""
    for realm in ("general", "elsewhere", ""):
        event = agent.event("session_start")
        agent.sessions.record(event, agent.filing, agent.project, agent.terms, now=agent.now, realm=realm)
    keys = {session.key for session in agent.sessions.sessions()}
    assert keys == {SessionKey("claude_code", "s1", realm) for realm in ("general", "elsewhere", "")}


def test_the_same_id_of_two_agents_is_two_sessions(agent: Agent) -> None:
    """Agents do not know each other's ids."""
    agent.start()
    agent.say("session_start", agent="codex")
    assert len(agent.sessions.sessions()) == 2


def test_sessions_are_listed_last_seen_first(agent: Agent) -> None:
    """Page by page."""
    for number in range(5):
        agent.now += 1
        agent.other(f"s{number}").start()
    assert [session.key.id for session in agent.sessions.sessions(limit=2)] == ["s4", "s3"]
    last = agent.sessions.sessions(limit=2)[-1]
    assert [session.key.id for session in agent.sessions.sessions(before=last.seen)] == ["s2", "s1", "s0"]
    assert agent.sessions.session(SessionKey("claude_code", "nobody's")) is None
