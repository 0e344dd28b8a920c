"""The life of a batch, as a table: what may happen in which state, what it is then, and what must be done with it.

Pure: no I/O, no clock, no answer of a server (`answers` turns those into events). Whoever keeps batches moves them by
`move` alone; a pair that is not in the table is a fault of the caller and raises.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

__all__ = ["TABLE", "Effect", "Event", "IllegalMove", "Move", "State", "Step", "move"]


class State(enum.StrEnum):
    """Where a batch stands; the words that a person sees."""

    OPEN = "open"
    """Takes further items; nothing of it is fixed."""
    SEALED = "sealed"
    """Its bytes and its operation id are fixed; it can be sent."""
    SENDING = "sending"
    """Handed out to be sent: whether the server has it is not known until an answer is here."""
    ACCEPTED = "accepted"
    """The server has an operation for it, which is asked for until it has ended."""
    STORED = "stored"
    """The operation was seen completed. The text is gone, the line of account stays."""
    WAITING = "waiting"
    """Set aside until a time, for a reason of its own."""
    DEAD = "dead"
    """Given up, for a reason; its text is kept for the person who may try it again or drop it."""


class Step(enum.StrEnum):
    """What is to be done next for a batch over the network."""

    DISCARD = "discard"
    """Delete its obsolete operation on the server, so that the new one cannot meet it."""
    SEND = "send"
    """Send its bytes."""
    RETRY = "retry"
    """Ask the server to try its failed operation again."""
    POLL = "poll"
    """Ask how its operation stands."""


class Event(enum.Enum):
    """What happens to a batch."""

    SEAL = "seal"
    """It is complete: full, old enough, or asked for."""
    CLAIM = "claim"
    """A holder of the destination's lease takes it to send it."""
    LAPSE = "lapse"
    """Who was sending it lost the lease, or died."""
    ACCEPT = "accept"
    """The server took it, or took up its operation again."""
    DEFER = "defer"
    """It is to be tried again later; nothing is known to have changed."""
    HOLD = "hold"
    """The destination takes nothing at present; that is no fault of this batch."""
    DISCARDED = "discarded"
    """Its obsolete operation is gone from the server."""
    RENAME = "rename"
    """Its operation id cannot be used."""
    HALVE = "halve"
    """One of its items must be at fault: each half goes on alone."""
    FAIL = "fail"
    """Its operation failed on the server."""
    RESEND = "resend"
    """The server knows neither its operation nor its documents."""
    COMPLETE = "complete"
    """Its operation was seen completed."""
    KILL = "kill"
    """It is given up."""
    REVIVE = "revive"
    """A person wants it tried now; what is handed out is being tried anyway."""
    DROP = "drop"
    """A person wants it gone."""


class Effect(enum.Enum):
    """What must be done with a batch when it moves."""

    SEAL_ANEW = "seal anew"
    """Draw an operation id and fix the bytes, without forgotten documents. A caller's own batch keeps both."""
    SPLIT = "split"
    """Make its later half a batch of its own; both are sealed anew."""
    DISCARD = "discard"
    """If the server took it: that operation is obsolete, and is deleted there before anything else is sent."""
    CLEAR_TEXT = "clear text"
    """The bytes go, the line of account stays."""
    PROVE = "prove"
    """The destination has now stored something of this kind that was accepted when this was."""


@dataclass(frozen=True, slots=True)
class Move:
    """Where an event leads: the state (`None`: the row goes), the next step (`None`: none) and what to do."""

    state: State | None
    step: Step | None = None
    effects: frozenset[Effect] = frozenset()
    keeps_step: bool = False
    """The next step is the one that it was before."""


class IllegalMove(ValueError):
    """An event that cannot happen in that state."""


def _to(state: State | None, step: Step | None, *effects: Effect) -> Move:
    return Move(state, step, frozenset(effects))


def _stay(state: State) -> Move:
    return Move(state, keeps_step=True)


TABLE: Final = MappingProxyType(
    {
        (State.OPEN, Event.SEAL): _to(State.SEALED, Step.SEND, Effect.SEAL_ANEW),
        (State.OPEN, Event.REVIVE): _stay(State.OPEN),
        (State.OPEN, Event.DROP): _to(None, None),
        # Sealed: its step is SEND, or DISCARD while the operation it had before is still to be deleted.
        (State.SEALED, Event.CLAIM): _to(State.SENDING, None),
        (State.SEALED, Event.DEFER): Move(State.WAITING, keeps_step=True),
        (State.SEALED, Event.HOLD): _stay(State.SEALED),
        (State.SEALED, Event.DISCARDED): _to(State.SEALED, Step.SEND),
        (State.SEALED, Event.REVIVE): _stay(State.SEALED),
        (State.SEALED, Event.DROP): _to(None, None),
        (State.SENDING, Event.LAPSE): _to(State.SEALED, Step.SEND),
        (State.SENDING, Event.ACCEPT): _to(State.ACCEPTED, Step.POLL),
        (State.SENDING, Event.DEFER): _to(State.WAITING, Step.SEND),
        (State.SENDING, Event.HOLD): _to(State.SEALED, Step.SEND),
        (State.SENDING, Event.RENAME): _to(State.SEALED, Step.SEND, Effect.SEAL_ANEW),
        (State.SENDING, Event.HALVE): _to(State.SEALED, Step.SEND, Effect.SPLIT),
        (State.SENDING, Event.KILL): _to(State.DEAD, None),
        (State.SENDING, Event.DROP): _to(None, None),
        # Waiting: SEND or DISCARD after an answer that decided nothing, RETRY after its operation failed.
        (State.WAITING, Event.CLAIM): _to(State.SENDING, None),
        (State.WAITING, Event.ACCEPT): _to(State.ACCEPTED, Step.POLL),
        (State.WAITING, Event.DEFER): _stay(State.WAITING),
        (State.WAITING, Event.HOLD): _stay(State.WAITING),
        (State.WAITING, Event.DISCARDED): _to(State.SEALED, Step.SEND),
        (State.WAITING, Event.REVIVE): _stay(State.WAITING),
        (State.WAITING, Event.DROP): _to(None, None),
        (State.ACCEPTED, Event.DEFER): _stay(State.ACCEPTED),
        (State.ACCEPTED, Event.HOLD): _stay(State.ACCEPTED),
        (State.ACCEPTED, Event.FAIL): _to(State.WAITING, Step.RETRY),
        (State.ACCEPTED, Event.HALVE): _to(State.SEALED, Step.SEND, Effect.SPLIT, Effect.DISCARD),
        (State.ACCEPTED, Event.RESEND): _to(State.WAITING, Step.SEND),
        (State.ACCEPTED, Event.COMPLETE): _to(State.STORED, None, Effect.CLEAR_TEXT, Effect.PROVE),
        (State.ACCEPTED, Event.KILL): _to(State.DEAD, None),
        (State.ACCEPTED, Event.REVIVE): _stay(State.ACCEPTED),
        (State.ACCEPTED, Event.DROP): _to(None, None),
        (State.DEAD, Event.REVIVE): _to(State.SEALED, Step.SEND, Effect.SEAL_ANEW, Effect.DISCARD),
        (State.DEAD, Event.DROP): _to(None, None),
    }
)
"""Every pair that can happen. What is stored stays as it is, whatever happens."""


def move(state: State, event: Event) -> Move:
    """Return where `event` leads from `state`. Raises `IllegalMove` for a pair that is not in `TABLE`."""
    try:
        return TABLE[state, event]
    except KeyError:
        raise IllegalMove(f"a batch that is {state} cannot {event.value}") from None
