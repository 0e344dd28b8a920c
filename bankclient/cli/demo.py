"""`bankclient demo`: what bankclient is for, shown in one go on a bank of its own.

Everything is real but the conversation: folders, server, requests, outage. Nothing of the person's settings, bank,
server or state folder comes into it, and nothing is left of it.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import bankclient
from bankclient.cli import options, story
from bankclient.cli.playground import Playground, make_playground
from bankclient.cli.stopping import stoppable
from bankclient.embedded.serving import BankServer
from bankclient.errors import BankclientError
from bankclient.settings import Settings
from bankclient.turns.event import Message, Turn
from bankclient.turns.frame import document

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from bankclient import BankClient

__all__ = ["app", "demo"]

app = options.new_app()

_SESSION: Final = "demo-session"
_CONVERSATION: Final[Sequence[tuple[Literal["user", "assistant"], str]]] = (
    ("user", "The dev server does not start: port 4000 is taken."),
    ("assistant", "The metrics exporter listens on 4000. I moved the dev server to port 4711, in config/dev.toml."),
    ("user", "Good. And we never deploy by hand: ./release.sh does it, after the tests."),
    ("assistant", "Understood: deploys go through ./release.sh."),
)
_FOR_ALL: Final = "I like short commit messages, in the imperative."
_PROMPT: Final = "Which port does the dev server use?"
_QUESTION: Final = "How do we deploy?"
_PREFERENCE: Final = "How do I like commit messages?"
_ASK_SECONDS: Final = 0.1
_ASK_TIMES: Final = 100


@app.command()
def demo() -> None:
    """Show in a few seconds what bankclient does, with nothing configured.

    It works in a temporary folder, with a server of its own on this machine, and cleans up; your settings, your banks
    and your server are not touched.
    """
    with (
        stoppable(),
        tempfile.TemporaryDirectory(prefix="bankclient-demo-") as folder,
        _logged_here() as log,
    ):
        place = make_playground(Path(folder).resolve())
        with BankServer(place.state / "embedded.sqlite3") as server:
            _Demo(place, server, log).run()
    story.tell("Folder, bank and server are gone again.")


@contextlib.contextmanager
def _logged_here() -> Generator[list[str]]:
    """Give the list of what the clients log while the block runs; it belongs into the story, not on stderr."""

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    lines: list[str] = []
    logger, handler = logging.getLogger("bankclient.client"), Kept(logging.WARNING)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield lines
    finally:
        logger.propagate = True
        logger.removeHandler(handler)


@dataclass(frozen=True, slots=True)
class _Demo:
    """The steps, in their order; each is told as it is done."""

    place: Playground
    server: BankServer
    log: list[str]

    def run(self) -> None:
        """Run all steps. Raises as the calls of a client do."""
        story.heading("bankclient demo")
        story.tell("In a temporary folder, with a server of its own; nothing of yours is read or written.")
        story.tell("Real: the folders, the server, every request. Made up: the conversation; no agent runs.")
        self._projects()
        self._retain()
        self._recall()
        self._elsewhere()
        self._reflect()
        self._outage()
        story.heading("That was all")
        story.tell(
            "Next: export HINDSIGHT_API_URL=embedded, and `bankclient retain` and `recall` in a folder of yours."
        )

    def _projects(self) -> None:
        story.heading("1. Two projects and a server")
        place = self.place
        how = "made by git" if place.by_git else "git's files written by hand, for there is no git that works"
        rows = [
            (str(folder), f"{what}, project {client.scope.project.name}")
            for folder, what in (
                (place.repository, "a git repository"),
                (place.worktree, "its linked worktree"),
                (place.other, "another repository"),
            )
            for client in [self._client(folder)]
        ]
        story.facts([*rows, (self.server.url, "the embedded bank: SQLite, full-text search, no language model")])
        story.tell(f"(The folders were {how}.)")

    def _retain(self) -> None:
        story.heading("2. A session in orchard ends, and what was said is retained")
        for who, text in _CONVERSATION:
            story.said(who, text)
        messages = [
            Message(role=who, text=text, key=f"{_SESSION}-{number}", ordinal=number)
            for number, (who, text) in enumerate(_CONVERSATION)
        ]
        turns = [Turn(tuple(messages[start : start + 2]), complete=True) for start in range(0, len(messages), 2)]
        batch = document(turns, session_id=_SESSION, agent="demo", first_turn=1, context="demo")
        item = bankclient.MemoryItem(
            batch.content, document_id=batch.document_id, metadata=batch.metadata, context=batch.context
        )
        with self._client(self.place.repository) as client:
            client.retain_many([item])
            client.retain(_FOR_ALL, scope="global")
            scope = client.scope
        story.tell(f"stored in bank {scope.bank}, tagged {scope.retain_tags[0]}, as document {batch.document_id}")
        story.tell("And once, for all projects:")
        story.said("user", _FOR_ALL)
        story.tell(f"stored in bank {scope.bank}, without a tag: that is how a memory for all projects is known")

    def _recall(self) -> None:
        story.heading("3. A new session begins, in the linked worktree orchard-hotfix")
        self._ask(self.place.worktree, _PROMPT, expected=1)

    def _elsewhere(self) -> None:
        story.heading("4. A session in pantry asks the same, and one thing more")
        self._ask(self.place.other, _PROMPT, expected=0)
        story.tell("(What was said in orchard is orchard's.)")
        self._ask(self.place.other, _PREFERENCE, expected=1)

    def _ask(self, folder: Path, prompt: str, *, expected: int) -> None:
        story.said("prompt", prompt)
        with self._client(folder) as client:
            results = client.recall(prompt).results
        _check(len(results) == expected)
        story.tell(f"found: {len(results) or 'nothing'}")
        for memory in results:
            story.found(memory.text)

    def _reflect(self) -> None:
        story.heading("5. Reflect answers from memory, back in orchard-hotfix")
        story.said("question", _QUESTION)
        with self._client(self.place.worktree) as client:
            story.found(client.reflect(_QUESTION).text)
        story.tell("(A Hindsight server with a language model words an answer of its own.)")

    def _outage(self) -> None:
        story.heading("6. The server goes away, and the turn goes on")
        with self._client(self.place.worktree, degrade=True) as client:
            client.recall(_PROMPT)
            self.server.stop()
            story.tell(f"{self.server.url} is stopped; nothing listens there now.")
            story.said("prompt", _PROMPT)
            for _ in range(2):
                began = time.monotonic()
                answer = client.recall(_PROMPT)
                _check(answer.degraded)
                story.tell(
                    f"answered after {1000 * (time.monotonic() - began):.0f} ms: "
                    f"{len(answer.results)} memories, degraded={answer.degraded}"
                )
            self._tell_log()
            story.tell(
                "No error reaches the agent, and only the first turn waited: then nobody knocks at a dead server."
            )
            story.heading("7. It comes back")
            self.server.start()
            began = time.monotonic()
            times = 1
            while (answer := client.recall(_PROMPT)).degraded and times < _ASK_TIMES:
                times += 1
                time.sleep(_ASK_SECONDS)
        _check(not answer.degraded)
        story.tell(
            f"noticed after {time.monotonic() - began:.1f} s, at the next look at the server: "
            f"{len(answer.results)} memory found, degraded={answer.degraded}"
        )
        self._tell_log()

    def _tell_log(self) -> None:
        for line in self.log:
            story.tell(f"the log says: {line}")
        self.log.clear()

    def _client(self, folder: Path, *, degrade: bool = False) -> BankClient:
        # Made directly, settings come from nowhere but here.
        settings = Settings(api_url=self.server.url, state_dir=self.place.state)
        return bankclient.BankClient(settings=settings, folder=folder, degrade=degrade)


def _check(as_told: bool) -> None:
    if not as_told:
        raise BankclientError(
            "the demo did not go as it is told here, which is a fault of bankclient: please report it"
        )
