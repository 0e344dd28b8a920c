"""Sessions: what acknowledging an event costs, and whether a turn costs more where the transcript is long."""

from __future__ import annotations

import json
import os
import tempfile
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from bankclient.project import Project
from bankclient.store.database import Database
from bankclient.store.outbox import Destination, SqliteOutbox
from bankclient.store.sessions import Filing, SessionKey, Sessions, Terms
from bankclient.turns.event import Event
from benchmarks.disk import fsynced_inserts
from benchmarks.measure import figure, quickest, timed
from benchmarks.transcripts import transcript_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bankclient.turns.event import EventKind
    from benchmarks.measure import Figure
    from benchmarks.transcripts import WrittenTurn

__all__ = ["acknowledgement", "long_transcript"]

_FILING = Filing(Destination("http://localhost:8888", "keyless"), "b")
_PROJECT = Project("general", Path("/home/ann/general"), "git checkout")
_TERMS = Terms(every=3, context="claude_code")
_NOW = 1_800_000_000.0
_AGENT = "claude_code"


def acknowledgement(rounds: int = 500) -> Iterator[Figure]:
    """Compare acknowledging an event with an fsynced insert of the same bytes.

    The busier the disk, the less our own work weighs beside it. So the target is for the quickest tenth, which hardly
    changes from run to run, and the medians of all are information.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with closing(Database(folder / "store")) as database, fsynced_inserts(folder / "bare") as insert:
            session = _Session(Sessions(database, SqliteOutbox(database)), folder / "transcript")
            session.turn()
            taken: list[_Times] = []
            bare: list[float] = []
            body = json.dumps(asdict(session.event("stop", transcript_turn(0)))).encode()
            for _ in range(rounds):
                taken.append(session.turn())
                bare.append(timed(lambda: insert(body)))
    for what, times in (("a prompt", [each.prompt for each in taken]), ("a Stop", [each.stop for each in taken])):
        yield figure(f"{what} acknowledged", "an fsynced insert", quickest(times), quickest(bare), target=2.0)
        yield figure(f"{what} acknowledged, whatever the disk does", "an fsynced insert", times, bare)


def long_transcript(rounds: int = 300, short: int = 60_000, long: int = 600_000_000) -> Iterator[Figure]:
    """Compare a Stop, with what it brings read and sealed, on a transcript of 600 MB and on one of 60 KB."""
    with tempfile.TemporaryDirectory() as name, closing(Database(Path(name) / "store")) as database:
        sessions = Sessions(database, SqliteOutbox(database))
        one = _Session(sessions, Path(name) / "long", long)
        other = _Session(sessions, Path(name) / "short", short, first=1_000_000)  # other turns than those
        ours: list[_Times] = []
        reference: list[_Times] = []
        for number in range(rounds + 1):
            pairs = [(one, ours), (other, reference)]
            for session, times in pairs if number % 2 else reversed(pairs):
                times.append(session.turn())
    what, than = f"a Stop, {long:,} bytes of transcript", f"{short:,} bytes"
    whole = [each.whole for each in ours[1:]], [each.whole for each in reference[1:]]
    cpu = [each.cpu for each in ours[1:]], [each.cpu for each in reference[1:]]
    yield figure(what, than, *whole, target=1.2)
    yield figure(f"{what}, processor time", than, *cpu, target=1.2)


@dataclass(frozen=True, slots=True)
class _Times:
    """What a turn took, in seconds: its prompt and its Stop acknowledged, and the Stop with all that follows."""

    prompt: float
    stop: float
    whole: float
    cpu: float


class _Session:
    """An agent's session with a transcript that is so long already, and takes no room on the disk."""

    def __init__(self, sessions: Sessions, path: Path, size: int = 0, *, first: int = 0) -> None:
        self._sessions = sessions
        self._path = path
        self._key = SessionKey(_AGENT, path.name)
        with path.open("wb") as file:
            file.seek(size)
            file.write(b"\n")
        self._record(Event(kind="session_start", agent=_AGENT, session_id=path.name, event_id=f"{path.name}-start"))
        self._numbers = count(first)

    def turn(self) -> _Times:
        """Have one more turn."""
        turn = transcript_turn(next(self._numbers))
        prompt = timed(lambda: self._record(self.event("prompt", turn)))
        with self._path.open("ab") as file:
            file.write(turn.lines)
            file.flush()
            os.fsync(file.fileno())  # or the next commit, of whatever, takes it to the disk too
        began, cpu = time.perf_counter(), time.process_time()
        stop = timed(lambda: self._record(self.event("stop", turn)))
        kept = self._sessions.take_in(self._key, now=_NOW).messages
        self._sessions.seal(self._key, now=_NOW)
        times = _Times(prompt, stop, time.perf_counter() - began, time.process_time() - cpu)
        if not kept:
            raise RuntimeError("nothing of the turn was kept")
        return times

    def event(self, kind: EventKind, turn: WrittenTurn) -> Event:
        """Return an event of the turn."""
        return Event(
            kind=kind,
            agent=_AGENT,
            session_id=self._path.name,
            event_id=f"{turn.id}-{kind}",
            at="2026-01-02T03:04:05.678+00:00",
            cwd="/home/ann/general",
            transcript_path=str(self._path),
            turn_id=turn.id,
            prompt=turn.prompt if kind == "prompt" else None,
            last_answer=turn.answer if kind == "stop" else None,
        )

    def _record(self, event: Event) -> None:
        self._sessions.record(event, _FILING, _PROJECT, _TERMS, now=_NOW)
