"""Random schedules of everything that can happen to sessions and their transcripts, against a plain model of them.

In the end the documents hold each captured turn once, in order, under the address that its first event named, and
nothing else: nothing that was not captured, no block of ours, no secret, nothing private.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from bankclient.project import Project
from bankclient.store.database import Database
from bankclient.store.outbox import Address, Destination, SqliteOutbox
from bankclient.store.sessions import Filing, SessionKey, Sessions, Terms
from bankclient.turns.event import Event
from bankclient.turns.render import Memory, render

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from bankclient.store.sessions import Transcript

_TOKEN = re.compile(r"\b[abq]\d+\b")
_SECRET = "ghp_" + "A1b2" * 9
_BLOCK = render([Memory("1", "the port is zz4711")], 8192).text
_EXTRAS = [
    "",
    f" use {_SECRET} now",
    f"\n{_BLOCK}\n",
    " <private>hush</private>",
    " \ud83d \u2028 \U0001f469\u200d\U0001f467",
]
_UNRESOLVED = Project(None, None, "unresolved: no folder was named")


class _Crash(Exception):
    """The process dies here."""


class _Mortal(Database):
    """A store that does not wait for the disk, in a process that dies at a commit if it is told to."""

    fuse: tuple[int, bool] | None = None
    """How many commits from now, and whether before it or behind it."""

    def _prepare(self, connection: sqlite3.Connection) -> None:
        super()._prepare(connection)
        connection.execute("PRAGMA synchronous = OFF")

    def _commit(self, connection: sqlite3.Connection) -> None:
        left, behind = self.fuse or (2, False)
        self.fuse = (left - 1, behind) if self.fuse else None
        if left > 1:
            super()._commit(connection)
            return
        self.fuse = None
        if behind:
            super()._commit(connection)
        raise _Crash


class _Bytes:
    """A transcript in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read_at(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]

    def close(self) -> None:
        pass


@dataclass
class Spoken:
    """A turn as the model sees it."""

    number: int
    name: str
    lines: list[str] = field(default_factory=list)
    """Tokens of lines in the file."""
    prompt_told: bool = False
    answer_told: bool = False
    stopped: bool = False
    captured: bool = False
    given_up: bool = False
    address: Address | None = None
    bank: str = ""

    @property
    def tokens(self) -> list[str]:
        """What is to be kept of it."""
        if not self.captured:
            return []
        prompt = [] if self.lines or not (self.stopped and self.prompt_told) else [f"q{self.number}"]
        answer = f"a{self.number}"
        told = [answer] if self.answer_told and answer not in self.lines else []
        return [*prompt, *self.lines, *told]


@dataclass
class Talk:
    """A session as the model sees it."""

    id: str
    named: bool
    has_file: bool
    path: str
    file: bytearray = field(default_factory=bytearray)
    tail: bytes = b""
    hidden: bool = False
    open: bool = False
    known: bool = False
    project: str | None = None
    at: Project = _UNRESOLVED
    bank: str = "one"
    turns: list[Spoken] = field(default_factory=list)
    disturbed: bool = False
    past: list[Event] = field(default_factory=list)
    late: list[tuple[Event, Spoken | None]] = field(default_factory=list)

    @property
    def turn(self) -> Spoken | None:
        """The turn that goes on, or went on last."""
        return self.turns[-1] if self.turns else None


class SessionsMachine(RuleBasedStateMachine):
    """Drives up to four sessions on one store."""

    @initialize(every=st.integers(1, 3))
    def begin(self, every: int) -> None:
        """Begin with nothing."""
        self.folder = Path(tempfile.mkdtemp())
        self.terms = Terms(every=every, context="x")
        self.numbers = itertools.count(1)
        self.now = 1_800_000_000.0
        self.talks: list[Talk] = []
        self.enabled = True
        self.open_store()

    def open_store(self) -> None:
        """Start as a process does."""
        self.database = _Mortal(self.folder / "store.db")
        self.outbox = SqliteOutbox(self.database)
        self.sessions = Sessions(self.database, self.outbox, open_transcript=self.open_file)

    def open_file(self, path: str) -> Transcript | None:
        """Open what stands at the path."""
        for talk in self.talks:
            if talk.path == path and talk.has_file and not talk.hidden:
                return _Bytes(bytes(talk.file))
        return None

    def alive(self, act: Callable[[], Any]) -> bool:
        """Do it; return whether the process lived through it. If not there is a new one."""
        try:
            act()
        except _Crash:
            self.database.close()
            self.open_store()
            return False
        return True

    def talk(self, number: int) -> Talk:
        """Return one of the sessions."""
        return self.talks[number % len(self.talks)]

    # What is written and said

    def write(self, talk: Talk, record: dict[str, Any], *, half: bool = False) -> None:
        """Append a line to the transcript, or the first half of one."""
        data = json.dumps(record).encode() + b"\n"
        talk.file += talk.tail
        cut = len(data) // 2 if half else len(data)
        talk.file += data[:cut]
        talk.tail = data[cut:]

    def line(self, talk: Talk, role: str, text: str, *, final: bool = True, half: bool = False) -> None:
        """Append what somebody says in the turn that goes on."""
        turn = talk.turn
        assert turn is not None
        record: dict[str, Any] = {
            "type": role,
            "uuid": f"u{next(self.numbers)}",
            "timestamp": datetime.fromtimestamp(self.now, UTC).isoformat(),
        }
        if role == "user":
            record["message"] = {"role": "user", "content": text}
            record |= {"promptId": turn.name} if talk.named else {}
        else:
            stop = "end_turn" if final else "tool_use"
            content = [{"type": "text", "text": text}]
            record["message"] = {"role": "assistant", "content": content, "stop_reason": stop}
        self.write(talk, record, half=half)
        token = _TOKEN.search(text)
        assert token is not None
        turn.lines.append(token[0])

    def say(
        self,
        talk: Talk,
        kind: str,
        turn: Spoken | None = None,
        *,
        fate: str = "heard",
        **fields: Any,  # noqa: ANN401 - any field
    ) -> None:
        """Deliver an event, unless it is lost, or late, or memory is off."""
        event = Event(
            kind=kind,  # type: ignore[arg-type]  # as the rules name kinds
            agent="claude_code",
            session_id=fields.pop("session_id", talk.id),
            event_id=f"e{next(self.numbers)}",
            at=datetime.fromtimestamp(self.now, UTC).isoformat(),
            transcript_path=talk.path if talk.has_file else None,
            turn_id=turn.name if turn is not None and talk.named else None,
            **fields,
        )
        if not self.enabled or fate == "lost":
            return
        if fate == "late":
            talk.late.append((event, turn))
            return
        self.deliver(talk, event, turn, again=fate == "twice")

    def deliver(self, talk: Talk, event: Event, turn: Spoken | None, *, again: bool = False) -> None:
        """Deliver an event; a process that dies finds it in the spool."""
        filing = Filing(Destination("http://one.invalid", "key"), talk.bank)

        def record() -> None:
            self.sessions.record(event, filing, talk.at, self.terms, now=self.now)

        for _ in range(3):
            if self.alive(record):
                break
        if again:
            self.alive(record)
        talk.past.append(event)
        self.heard(talk, event, turn)

    def heard(self, talk: Talk, event: Event, turn: Spoken | None) -> None:
        """Let the model hear what was acknowledged."""
        if event.session_id == talk.id:
            begins = event.kind == "session_start" and event.source != "compact"
            begins = begins or (event.kind == "prompt" and not talk.open)
            if begins or talk.project is None:
                talk.project = talk.at.name
            talk.open = begins or ((talk.open or not talk.known) and event.kind != "session_end")
            talk.known = True
            if event.kind == "session_end" and not talk.has_file:
                for waiting in talk.turns:  # their prompts are given up, and no line brings them back
                    waiting.given_up |= not waiting.stopped
        if turn is not None and event.kind in {"prompt", "stop"}:
            if not turn.captured:
                turn.captured, turn.bank = True, talk.bank
                turn.address = self.address(turn.bank, talk.project)
            turn.prompt_told |= event.kind == "prompt"
            turn.stopped |= event.kind == "stop"
            turn.answer_told |= event.kind == "stop" and bool(event.last_answer)
        if talk.project is not None:
            for waiting in talk.turns:
                if waiting.captured and waiting.address is None:
                    waiting.address = self.address(waiting.bank, talk.project)

    def address(self, bank: str, project: str | None) -> Address | None:
        """Return where a turn goes."""
        if project is None:
            return None
        return Address(Destination("http://one.invalid", "key"), bank, (f"project:{project}",))

    # What people and agents do

    @precondition(lambda self: len(self.talks) < 4)
    @rule(
        named=st.booleans(),
        has_file=st.sampled_from([True, True, True, False]),
        project=st.sampled_from(["a", "b", None]),
    )
    def start(self, *, named: bool, has_file: bool, project: str | None) -> None:
        """Begin a session."""
        number = next(self.numbers)
        talk = Talk(f"s{number}", named or not has_file, has_file, f"/t/{number}.jsonl")
        talk.at = _UNRESOLVED if project is None else Project(project, Path("/r") / project, "git checkout")
        self.talks.append(talk)
        self.say(talk, "session_start", source="startup")

    @precondition(lambda self: self.talks)
    @rule(
        number=st.integers(0, 3),
        extra=st.sampled_from(_EXTRAS),
        fate=st.sampled_from(["heard", "heard", "heard", "twice", "lost", "late"]),
        half=st.booleans(),
    )
    def prompt(self, number: int, extra: str, fate: str, *, half: bool) -> None:
        """Begin a turn."""
        talk = self.talk(number)
        last = talk.turn
        if fate == "late" and not (talk.named and talk.has_file):
            fate = "heard"
        if not talk.named and last is not None and last.captured and not last.stopped:
            # What stops without a name is what was prompted last: both are lost in a row only where turns have names.
            if not self.enabled:
                return
            fate = "heard"
        serial = next(self.numbers)
        turn = Spoken(serial, f"p{serial}")
        talk.turns.append(turn)
        text = f"q{serial} says{extra}"
        talk.disturbed |= fate == "late"
        self.say(talk, "prompt", turn, fate=fate, prompt=text)
        if talk.has_file:
            self.line(talk, "user", text, half=half and talk.named)

    @precondition(lambda self: any(talk.has_file and talk.turn for talk in self.talks))
    @rule(number=st.integers(0, 3))
    def comment(self, number: int) -> None:
        """Say something before a tool is called, and have its result."""
        talk = self.talk(number)
        if not talk.has_file or talk.turn is None or f"a{talk.turn.number}" in talk.turn.lines:
            return
        serial = next(self.numbers)
        self.line(talk, "assistant", f"b{serial} working", final=False)
        result = [{"type": "tool_result", "content": "b9999999 result"}]
        self.write(talk, {"type": "user", "uuid": f"u{serial}r", "message": {"role": "user", "content": result}})
        self.write(talk, {"type": "attachment", "uuid": f"u{serial}x", "attachment": {"content": _BLOCK}})

    @precondition(lambda self: any(talk.turn for talk in self.talks))
    @rule(
        number=st.integers(0, 3),
        fate=st.sampled_from(["heard", "heard", "heard", "twice", "lost", "late"]),
        told=st.sampled_from(["same", "other", "nothing"]),
        line=st.sampled_from(["before", "before", "before", "after", "never"]),
        half=st.booleans(),
    )
    def answer(self, number: int, fate: str, told: str, line: str, *, half: bool) -> None:
        """End a turn; its line may be written before the hook runs, after it, or never."""
        talk = self.talk(number)
        turn = talk.turn
        if turn is None or turn.stopped or f"a{turn.number}" in turn.lines:
            return
        if turn.given_up:
            return
        if not talk.named or not talk.has_file:
            fate = "heard" if fate == "late" else fate
        if not talk.named:
            told, line = "same", "before"
        text = f"a{turn.number} is said\n{_BLOCK}"
        written = talk.has_file and line != "never"
        if written and line == "before":
            self.line(talk, "assistant", text, half=half and talk.named)
        last = {"same": text, "other": f"a{turn.number} in other words, {_SECRET}", "nothing": None}[told]
        talk.disturbed |= fate == "late" or line == "after"
        self.say(talk, "stop", turn, fate=fate, last_answer=last)
        if written and line == "after":
            self.line(talk, "assistant", text)

    @precondition(lambda self: any(talk.late for talk in self.talks))
    @rule(number=st.integers(0, 3))
    def come_late(self, number: int) -> None:
        """Deliver what was left in the spool."""
        talk = self.talk(number)
        if talk.late:
            self.deliver(talk, *talk.late.pop(0))

    @precondition(lambda self: any(talk.past for talk in self.talks))
    @rule(number=st.integers(0, 3), which=st.integers(0, 100))
    def come_again(self, number: int, which: int) -> None:
        """Deliver an event again."""
        talk = self.talk(number)
        if talk.past:
            filing = Filing(Destination("http://one.invalid", "other key"), "other bank")
            event = talk.past[which % len(talk.past)]
            self.alive(lambda: self.sessions.record(event, filing, Project("x", None, ""), self.terms, now=self.now))

    @precondition(lambda self: self.talks)
    @rule(number=st.integers(0, 3), bank=st.sampled_from(["one", "two"]))
    def change_bank(self, number: int, bank: str) -> None:
        """Change a setting in a session's shell."""
        self.talk(number).bank = bank

    @precondition(lambda self: self.talks)
    @rule(number=st.integers(0, 3), project=st.sampled_from(["a", "b", None]), ends=st.booleans())
    def resume(self, number: int, project: str | None, *, ends: bool) -> None:
        """End a session, or kill its process, and begin it again, perhaps elsewhere."""
        talk = self.talk(number)
        if ends:
            self.say(talk, "session_end", source="exit")
        talk.at = _UNRESOLVED if project is None else Project(project, Path("/r") / project, "git checkout")
        self.say(talk, "session_start", source="resume")

    @precondition(lambda self: self.talks)
    @rule(number=st.integers(0, 3))
    def end(self, number: int) -> None:
        """End a session."""
        self.say(self.talk(number), "session_end", source="exit")

    @precondition(lambda self: any(talk.has_file for talk in self.talks) and len(self.talks) < 4)
    @rule(number=st.integers(0, 3))
    def fork(self, number: int) -> None:
        """Fork a session: a new file with all its lines, and a start that names the old one."""
        parent = self.talk(number)
        if not parent.has_file:
            return
        serial = next(self.numbers)
        talk = Talk(f"s{serial}", parent.named, has_file=True, path=f"/t/{serial}.jsonl")
        talk.at, talk.bank, talk.file = parent.at, parent.bank, bytearray(parent.file)
        if parent.tail:
            talk.file += parent.tail
        self.talks.append(talk)
        self.say(parent, "session_start", source="fork")

    @precondition(lambda self: self.talks)
    @rule(number=st.integers(0, 3))
    def compact(self, number: int) -> None:
        """Compact a session: the recap is no words of anybody's."""
        talk = self.talk(number)
        self.say(talk, "pre_compact", source="manual")
        self.alive(lambda: self.sessions.seal(self.key(talk), "pre_compact", now=self.now))
        self.write(talk, {"type": "system", "subtype": "compact_boundary"})
        recap = {"role": "user", "content": "b8888888 recap"}
        self.write(talk, {"type": "user", "uuid": f"u{next(self.numbers)}", "isCompactSummary": True, "message": recap})
        self.say(talk, "session_start", source="compact")

    @precondition(lambda self: self.talks)
    @rule(number=st.integers(0, 3), keep=st.integers(0, 3))
    def truncate(self, number: int, keep: int) -> None:
        """Cut a transcript that was read down to its last lines."""
        talk = self.talk(number)
        if talk.hidden or talk.late or talk.tail or not self.read_whole(talk):
            return
        talk.file = bytearray(b"".join(bytes(talk.file).splitlines(keepends=True)[-keep:] if keep else []))
        talk.disturbed = True

    def read_whole(self, talk: Talk) -> bool:
        """Read a transcript to its end, as whoever rewrites it would wish it were."""
        self.database.fuse = None
        self.sessions.take_in(self.key(talk), now=self.now)
        known = self.sessions.session(self.key(talk))
        if known is None or known.transcript != talk.path:
            return False
        # What goes on in another file belongs to no turn, and an event that comes later could make us go back.
        return talk.turn is None or (talk.turn.captured and f"a{talk.turn.number}" in talk.turn.lines)

    @precondition(lambda self: self.talks)
    @rule(number=st.integers(0, 3))
    def rename(self, number: int) -> None:
        """Move a transcript; the next event tells where to."""
        talk = self.talk(number)
        if talk.named:  # what is found by its words must be there when it is looked for
            talk.path = f"/t/moved-{next(self.numbers)}.jsonl"

    @precondition(lambda self: self.talks)
    @rule(number=st.integers(0, 3))
    def hide(self, number: int) -> None:
        """Take a transcript away, or give it back."""
        talk = self.talk(number)
        if talk.named:  # what is found by its words must be there when it is looked for
            talk.hidden = not talk.hidden
            talk.disturbed = True

    @rule()
    def switch(self) -> None:
        """Switch memory off, or on again."""
        self.enabled = not self.enabled

    # What we do

    def key(self, talk: Talk) -> SessionKey:
        """Return a session's key."""
        return SessionKey("claude_code", talk.id)

    @precondition(lambda self: self.talks)
    @rule(number=st.integers(0, 3), seals=st.booleans())
    def advance(self, number: int, *, seals: bool) -> None:
        """Do what follows an event, or a part of it."""
        key = self.key(self.talk(number))
        act = self.sessions.seal if seals else self.sessions.take_in
        self.alive(lambda: act(key, now=self.now))

    @rule(reason=st.sampled_from(["cadence", "flush", "leaving"]))
    def sweep(self, reason: str) -> None:
        """Do what is due."""
        self.alive(lambda: self.sessions.sweep(reason, now=self.now))  # type: ignore[arg-type]  # as rules name reasons

    @rule(seconds=st.sampled_from([0.5, 2.0, 30.0, 4000.0, -5000.0]))
    def wait(self, seconds: float) -> None:
        """Let the clock go on, or step."""
        self.now += seconds
        for talk in self.talks:
            talk.disturbed |= bool(talk.tail)  # what stands in for half a line is sealed before the line is whole

    @rule(commits=st.integers(1, 4), behind=st.booleans())
    def arm(self, commits: int, *, behind: bool) -> None:
        """Let the process die at one of the next commits."""
        self.database.fuse = (commits, behind)

    @rule()
    def restart(self) -> None:
        """Kill the process between two steps."""
        self.database.close()
        self.open_store()

    # What must have come of it

    def teardown(self) -> None:
        """End all sessions and look at what there is."""
        if not hasattr(self, "folder"):
            return
        try:
            self.finish()
            self.check()
        finally:
            self.database.close()
            shutil.rmtree(self.folder)

    def finish(self) -> None:
        """Let everything that was begun come to its end."""
        self.database.fuse = None
        self.enabled = True
        for talk in self.talks:
            talk.hidden = False
            talk.file += talk.tail
            talk.tail = b""
            while talk.late:
                self.deliver(talk, *talk.late.pop(0))
            if talk.at.name is None:
                talk.at = Project("late", None, "")
            self.say(talk, "session_start", source="compact")
            self.say(talk, "session_end", source="exit")
        self.sessions.sweep(now=self.now)
        self.now += 3.0
        self.sessions.sweep(now=self.now)

    def check(self) -> None:
        """Compare the documents with the model."""
        owners = {token: talk for talk in self.talks for turn in talk.turns for token in turn.tokens}
        turns = {token: turn for talk in self.talks for turn in talk.turns for token in turn.tokens}
        kept: dict[str, list[str]] = {talk.id: [] for talk in self.talks}
        numbers: dict[str, int] = {}
        for batch in self.outbox.batches(limit=10_000):
            text = (self.outbox.text(batch.id) or b"").decode()
            assert _SECRET not in text
            assert "zz4711" not in text
            assert "hush" not in text
            (item,) = json.loads(text)["items"]
            session = item["metadata"]["session_id"]
            assert item["document_id"].startswith(f"{session}.")
            tokens = _TOKEN.findall(item["content"])
            kept[session] += tokens
            for token in tokens:
                assert owners.get(token) is not None, f"{token} was not to be kept"
                assert owners[token].id == session
                assert turns[token].address == batch.address
            prompts = [token for token in tokens if token.startswith("q")]
            if "turns" in item["metadata"]:
                first, last = map(int, item["metadata"]["turns"].split("-"))
                assert first == numbers.get(session, 0) + 1
                assert last - first + 1 <= self.terms.every
                numbers[session] = last
            assert len(prompts) <= self.terms.every
        for talk in self.talks:
            expected = [token for turn in talk.turns for token in turn.tokens]
            assert Counter(kept[talk.id]) == Counter(expected), talk
            if not talk.disturbed:
                assert kept[talk.id] == expected, talk
        assert not [session for session in self.sessions.sessions() if session.turns_open]


TestSessions = SessionsMachine.TestCase
TestSessions.settings = settings(max_examples=60, stateful_step_count=40, print_blob=True)
