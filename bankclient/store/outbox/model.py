"""The values that go in and out of an outbox.

Plain frozen records: no I/O, no SQL, no clock. Times are seconds since the epoch, sizes are bytes.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bankclient.store.outbox.states import State, Step

__all__ = [
    "BATCH_FACTS",
    "DROPPED",
    "FORGOTTEN",
    "REFUSED",
    "SEAL_SECONDS",
    "Added",
    "Address",
    "Batch",
    "Destination",
    "Document",
    "Forgotten",
    "Job",
    "Kind",
    "Lane",
    "Lease",
    "Limits",
    "Loss",
    "Overview",
    "Progress",
    "Tally",
]


BATCH_FACTS: Final = 16
"""So many facts are a full batch."""
SEAL_SECONDS: Final = 5.0
"""A batch of facts takes in further ones for so long."""

DROPPED: Final = "dropped by the person"
FORGOTTEN: Final = "forgotten before it was sent"
REFUSED: Final = "refused: the outbox was full"
"""The reasons under which losses are counted here; whoever gives up something elsewhere names a reason of its own."""


class Kind(enum.StrEnum):
    """What a batch holds. One kind's success says nothing about another's."""

    SESSION = "session"
    """A piece of a session, sealed as it comes."""
    FACT = "fact"
    """Explicit facts, gathered until they are a batch."""
    CALLER = "caller"
    """A request of somebody else's: never merged, halved or given another id."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A server (its URL, without credentials) and the fingerprint of the key for it: what is leased, and pauses."""

    url: str
    key: str


@dataclass(frozen=True, slots=True)
class Address:
    """Where one item goes. The server keeps neither order nor doubles of tags, so neither counts here."""

    destination: Destination
    bank: str
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", tuple(sorted(set(self.tags))))


@dataclass(frozen=True, slots=True)
class Document:
    """A document that a batch writes; `None` is an id that the server chooses, or a hash that we cannot know."""

    id: str | None
    content_hash: str | None
    """sha256 of the text, in hexadecimal, as the server tells it."""
    forgotten: bool = False
    """A person has forgotten it: once the operation has completed, it is deleted on the server."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What earlier answers left behind; `answers.decide` alone reads and writes it."""

    tries: int = 0
    """Answers in a row that decided nothing."""
    unanswered: int = 0
    """How many of the latest tries had no answer at all."""
    polls: int = 0
    lost: int = 0
    """How often the server did not know its operation."""
    refused: int | None = None
    """The tick of the last refusal."""
    renamed: bool = False
    failures: int = 0
    """How often its operation failed."""
    failed: int | None = None
    """The tick of the last failure."""
    failing_since: float | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as it stands, without its text. Ids order batches as they were acknowledged."""

    id: int
    kind: Kind
    address: Address
    state: State
    step: Step | None
    """What is to be done next; `None` while it is open or being sent, and when nothing is left to do."""
    operation_id: str | None
    """The id that it is sent under; `None` while it is open."""
    server_operation: str | None
    """The id that the server answered with. Another than ours means that it knows no operation ids of callers."""
    obsolete: str | None
    """An earlier operation, to be deleted on the server before anything is sent."""
    items: int
    size: int
    added: float
    """When its first item was acknowledged."""
    changed: float
    until: float
    """Nothing is done for it before this time."""
    why: str
    """Why it waits or is dead."""
    sent: int
    """How often it was handed out to be sent under its present id."""
    accepted: int | None
    """The tick at which the server last took it."""
    handed_out: bool
    """Somebody works on its next step right now, or died at it."""
    progress: Progress


@dataclass(frozen=True, slots=True)
class Added:
    """The acknowledgement of an item or a batch: it is on the disk, unless it was forgotten."""

    item: int | None
    """The number of its (first) item, by which it is found whatever batch it is in."""
    fresh: bool
    """Whether it came in now; else the same was queued already."""
    forgotten_at: float | None = None
    """When a person forgot it: it was not taken."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to send for one destination, until it is released, taken over or has run out."""

    destination: Destination
    token: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Job:
    """One step of one batch, handed out to the holder of a lease; `settle` takes its answer, once."""

    batch: Batch
    ticket: int
    step: Step
    body: bytes = field(default=b"", repr=False)
    """The bytes to send, for `Step.SEND`."""
    documents: tuple[Document, ...] = ()
    """What it writes, for `Step.POLL`."""

    @property
    def operation(self) -> str:
        """The operation that the step is about."""
        batch = self.batch
        return batch.obsolete or batch.server_operation or batch.operation_id or ""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What forgetting a document did to the queue."""

    dropped: int
    """So many queued items are gone, unsent."""
    in_flight: int
    """So many may have reached the server: the document is deleted there when their operation has completed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an outbox holds at most, of what is not stored; more is refused. `kept` lines of account stay beside it."""

    items: int = 200_000
    size: int = 512 * 2**20
    kept: int = 1_000


@dataclass(frozen=True, slots=True)
class Tally:
    """How much of something there is."""

    batches: int = 0
    items: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Lane:
    """A destination with what is queued for it, and why it pauses if it does."""

    destination: Destination
    queued: Tally
    """What is neither stored nor dead."""
    oldest: float | None
    """When the oldest of that was acknowledged."""
    next_try: float | None
    """When something can be done for it next; `None` if nothing is queued."""
    until: float
    """It pauses until then, if that is in the future."""
    is_asked: bool
    """Its server asked for that pause."""
    why: str
    since: float | None
    """Since when it pauses, with all tries between."""
    leased: bool
    stored_at: float | None
    """When something was last seen stored."""
    error: str
    """The last answer that was not as wanted."""
    error_at: float | None


@dataclass(frozen=True, slots=True)
class Loss:
    """What was given up for one reason, in all, and when last."""

    reason: str
    items: int
    size: int
    at: float


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole outbox at a glance."""

    states: Mapping[State, Tally]
    lanes: tuple[Lane, ...]
    losses: tuple[Loss, ...]
