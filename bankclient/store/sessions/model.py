"""The values that go in and out of the sessions' part of the store.

Plain frozen records and the rules that are theirs alone: no I/O, no SQL, no clock. Times are seconds since the epoch.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bankclient.project import Project
from bankclient.scope import scope_of
from bankclient.store.outbox.model import Address
from bankclient.text import clean_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bankclient.scope import Scoping
    from bankclient.store.outbox.model import Destination

__all__ = [
    "ANSWER_SECONDS",
    "Filing",
    "PassedOver",
    "Recorded",
    "Sealed",
    "Session",
    "SessionKey",
    "Taken",
    "Terms",
]

ANSWER_SECONDS: Final = 2.0
"""So long after a turn has stopped its answer is waited for in the transcript; then the event's word stands in."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """What tells sessions apart: the agent's name and its id for the session; in process the project's name too."""

    agent: str
    id: str
    project: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", clean_text(self.id))


@dataclass(frozen=True, slots=True)
class Filing:
    """What an event's settings say of where its words go; the project says the rest."""

    destination: Destination
    bank_id: str
    bank_id_prefix: str | None = None
    scoping: Scoping = "per-project-tagged"

    @property
    def project(self) -> None:
        """No name of its own: the session's project counts, whatever this event's settings call it."""

    def address(self, project: Project) -> Address | None:
        """Return where words of `project` go, `None` while the project is unresolved and matters.

        Raises `InvalidInput` where bank and prefix make a name that no server takes.
        """
        return _address(self, project.name)


@lru_cache(maxsize=64)
def _address(filing: Filing, name: str | None) -> Address | None:
    scope = scope_of(filing, Project(name, None, ""))
    if not scope.resolved:
        return None
    target = scope.retain_target()
    return Address(filing.destination, target.bank, target.tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a session is kept, by the settings of its newest event."""

    every: int
    """User turns in a batch."""
    context: str
    """The label on what is retained."""
    overlap: int = 0
    """Turns that stand in front of a batch as context; 0 unless the retain mode is `last-turn`."""
    retain: bool = True
    """Whether the event captures anything (HINDSIGHT_AUTO_RETAIN)."""
    redact: bool = True


@dataclass(frozen=True, slots=True)
class Recorded:
    """The acknowledgement of an event: it is on the disk."""

    key: SessionKey
    fresh: bool
    """Whether it changed anything: not if it was known already, nor if it is the end of what never began."""
    project: Project
    """The one that counts for the session, or for its parent's where it is a subagent's."""
    parent: SessionKey | None = None
    """Whose subagent the session is, from its first event on; nothing of it is captured."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a reading of the transcript brought."""

    messages: int = 0
    """So many were kept."""
    unread: int = 0
    """Bytes in front that were not read, where nothing told how far a long file was read before: worth a log line."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """What sealing put into the outbox."""

    documents: int = 0
    turns: int = 0
    full: bool = False
    """The outbox took no more; what is left stays open, and nothing is lost."""
    again_at: float | None = None
    """When there is something to do next without an event: an answer is awaited, or an idle hour ends."""
    taken: Taken = Taken()


class PassedOver(enum.StrEnum):
    """Why something that was said is not kept."""

    UNHEARD = "no event of its turn reached us"
    TURNLESS = "said before any turn"
    UNANSWERED = "a prompt that got neither an answer nor a line in the transcript"
    NOTHING_KEPT = "all of it was private, or our own"
    NO_RECORD = "a line of the transcript that is no record"
    TOO_LONG = "a line of the transcript too long to be held"
    FULL = "told while as much of the session was open as may be; its line may still be read"


@dataclass(frozen=True, slots=True)
class Session:
    """A session as it stands, without what was said in it."""

    key: SessionKey
    open: bool
    """Whether it has not ended since it last began."""
    began: float
    seen: float
    """When its last event came."""
    grew: float
    """When something last came to be said in it."""
    project: Project
    parent: SessionKey | None
    transcript: str | None
    turns_open: int
    """Turns with something that is not sealed yet."""
    turns_unresolved: int
    """Those of them that wait for a project to have a name."""
    turns_sealed: int
    """User turns sealed in all."""
    due: float | None
    """When it is to be looked at next, `None` if only an event can change it."""
    passed_over: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many messages or lines were not kept, by the reason (`PassedOver`)."""
