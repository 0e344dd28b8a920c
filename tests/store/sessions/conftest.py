"""What the tests of sessions stand on: a store, and an agent with a transcript that says what it does by events."""

from __future__ import annotations

import itertools
import json
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.project import Project
from bankclient.store.database import Database
from bankclient.store.outbox import Destination, Outbox, SqliteOutbox
from bankclient.store.sessions import Filing, Recorded, Sealed, SessionKey, Sessions, Taken, Terms
from bankclient.turns.event import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Filing(Destination("http://one.invalid", "key-1"), "bank")
PROJECT = Project("general", Path("/r/general"), "git checkout")
TERMS = Terms(every=3, context="claude_code")


@dataclass(frozen=True)
class Stored:
    """A document in the outbox, taken apart."""

    id: str
    bank: str
    tags: tuple[str, ...]
    key: str
    metadata: dict[str, str]
    fields: dict[str, Any]
    said: list[str]
    """Its messages' texts in order, those in front as context left out."""
    context: list[str]


def stored(outbox: Outbox) -> list[Stored]:
    """Return the documents in the outbox, as they were sealed."""
    found: list[Stored] = []
    for batch in outbox.batches(limit=10_000):
        body = json.loads(outbox.text(batch.id) or b"{}")
        (item,) = body["items"]
        said: list[str] = []
        context: list[str] = []
        for part in item["content"].split("[role: ")[1:]:
            lines = part.split("\n")[1:]
            to = said
            if lines[0].startswith("[context: "):
                to, lines = context, lines[1:]
            if lines[0].startswith("[timestamp: "):
                lines = lines[1:]
            to.append("\n".join(lines).rsplit("\n[", 1)[0])
        address = batch.address
        found.append(
            Stored(
                item["document_id"],
                address.bank,
                address.tags,
                address.destination.key,
                item["metadata"],
                item,
                said,
                context,
            )
        )
    return found


@dataclass
class Agent:
    """An agent's session: what is done in it is written to its transcript, or said by an event, as the test wants."""

    sessions: Sessions
    path: Path
    id: str = "s1"
    now: float = 1_800_000_000.0
    filing: Filing = HERE
    project: Project = PROJECT
    terms: Terms = TERMS
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    turn: str = ""
    with_file: bool = True

    @property
    def key(self) -> SessionKey:
        """The session's key."""
        return SessionKey("claude_code", self.id)

    def event(self, kind: str, **fields: Any) -> Event:  # noqa: ANN401 - any field
        """Return an event of the session."""
        known: dict[str, Any] = {
            "agent": "claude_code",
            "session_id": self.id,
            "event_id": f"{self.id}-e{next(self.numbers)}",
            "turn_id": self.turn or None,
            "transcript_path": str(self.path) if self.with_file else None,
            "cwd": "/r/general",
        }
        return Event(kind=kind, **known | fields)  # type: ignore[arg-type]  # tests name kinds as they are written

    def say(self, kind: str, *, parent: str | None = None, **fields: Any) -> Recorded:  # noqa: ANN401 - any field
        """Deliver an event of the session."""
        return self.deliver(self.event(kind, **fields), parent=parent)

    def deliver(self, event: Event, *, parent: str | None = None) -> Recorded:
        """Deliver the event."""
        return self.sessions.record(event, self.filing, self.project, self.terms, now=self.now, parent=parent)

    def write(self, record: dict[str, Any] | bytes) -> None:
        """Append a line to the transcript, or bytes as they are."""
        if self.with_file:
            with self.path.open("ab") as file:
                file.write(record if isinstance(record, bytes) else json.dumps(record).encode() + b"\n")

    def line(self, role: str, text: str, **fields: Any) -> None:  # noqa: ANN401 - any JSON
        """Append what somebody said."""
        self.write(self.record(role, text, **fields))

    def record(self, role: str, text: str, *, stop: str = "end_turn", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
        """Return a line in which somebody says something."""
        at = datetime.fromtimestamp(self.now, UTC).isoformat()
        known: dict[str, Any] = {"type": role, "uuid": f"u-{self.id}-{next(self.numbers)}", "timestamp": at}
        if role == "user":
            known |= {"promptId": self.turn, "message": {"role": "user", "content": text}}
        else:
            content = [{"type": "text", "text": text}]
            known |= {"message": {"role": "assistant", "content": content, "stop_reason": stop}}
        return known | fields

    def start(self, source: str = "startup", **fields: Any) -> Recorded:  # noqa: ANN401 - any field
        """Begin the session."""
        return self.say("session_start", source=source, **fields)

    def prompt(self, text: str, *, heard: bool = True, line: bool = True) -> None:
        """Begin a turn."""
        self.turn = f"p-{self.id}-{next(self.numbers)}"
        if heard:
            self.say("prompt", prompt=text)
        if line:
            self.line("user", text)

    def answer(self, text: str, *, heard: bool = True, line: bool = True, told: bool = True) -> None:
        """End the turn."""
        if line:
            self.line("assistant", text)
        if heard:
            self.say("stop", last_answer=text if told else None)

    def exchange(self, number: int, *, heard: bool = True) -> None:
        """Have a whole turn, after which all that is due is done."""
        self.prompt(f"q{number}", heard=heard)
        self.answer(f"a{number}", heard=heard)
        if heard:
            self.advance()

    def advance(self, reason: str = "cadence") -> Sealed:
        """Do what follows an event."""
        return self.sessions.seal(self.key, reason, now=self.now)  # type: ignore[arg-type]  # as tests write reasons

    def take_in(self) -> Taken:
        """Read the transcript."""
        return self.sessions.take_in(self.key, now=self.now)

    def end(self) -> Sealed:
        """End the session, and do what follows."""
        self.say("session_end", source="exit")
        return self.advance()

    def other(self, session_id: str, **changes: Any) -> Agent:  # noqa: ANN401 - any field
        """Return another session on the same store."""
        path = self.path.with_name(f"{session_id}.jsonl")
        return replace(self, id=session_id, path=path, numbers=itertools.count(1), turn="", **changes)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Give a new store."""
    with closing(Database(tmp_path / "state" / "store.db")) as opened:
        yield opened


@pytest.fixture
def outbox(database: Database) -> SqliteOutbox:
    """Give its outbox."""
    return SqliteOutbox(database)


@pytest.fixture
def sessions(database: Database, outbox: SqliteOutbox) -> Sessions:
    """Give its sessions."""
    return Sessions(database, outbox)


@pytest.fixture
def agent(sessions: Sessions, tmp_path: Path) -> Agent:
    """Give an agent's session, not begun yet."""
    return Agent(sessions, tmp_path / "s1.jsonl")


@pytest.fixture
def documents(outbox: SqliteOutbox) -> Callable[[], list[Stored]]:
    """Give what is in the outbox by now."""
    return lambda: stored(outbox)


@pytest.fixture
def said(documents: Callable[[], list[Stored]]) -> Callable[[], list[list[str]]]:
    """Give the texts in the outbox by now, document by document."""
    return lambda: [document.said for document in documents()]
