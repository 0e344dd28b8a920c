"""What is queued, in words and as JSON: how much, how old, where to, and why it is still here.

It knows the outbox's values and which keys are known, and changes nothing.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bankclient.settings import EMBEDDED
from bankclient.store.fingerprint import KEYLESS
from bankclient.store.outbox import State, Tally

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bankclient.cli.store import Store
    from bankclient.store.outbox import Destination, Lane, Loss, Queue

__all__ = ["Queued", "count", "duration", "moment", "server_of", "size"]

_UNSENT = frozenset(State) - {State.ACCEPTED, State.STORED, State.DEAD}
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


class Queued:
    """The outbox at one moment, as it stays when the store is closed."""

    def __init__(self, store: Store | None) -> None:
        self.now = time.time()
        self.states: Mapping[State, Tally] = {}
        self.lanes: tuple[Lane, ...] = ()
        self.losses: tuple[Loss, ...] = ()
        self._reasons: dict[Destination, str] = {}
        self._known: set[Destination] = set()
        if store is not None:
            overview = store.outbox.overview(now=self.now)
            self.states, self.lanes, self.losses = overview.states, overview.lanes, overview.losses
            self._known = {lane.destination for lane in self.lanes if store.keyring.knows(lane.destination)}
            self._reasons = {lane.destination: self._reason(lane, store.outbox) for lane in self.waiting}

    def _reason(self, lane: Lane, outbox: Queue) -> str:
        if lane.destination not in self._known:
            return "its key is not known here"
        if lane.why:
            return lane.why
        unsent = outbox.batches(states=_UNSENT, destination=lane.destination, limit=1)
        if not unsent:
            return "the server took it, and it was not seen stored yet"
        return unsent[0].why or ("it is being sent" if lane.leased else "it was not sent yet")

    @property
    def waiting(self) -> tuple[Lane, ...]:
        """The destinations for which something is neither stored nor given up."""
        return tuple(lane for lane in self.lanes if lane.queued.items)

    @property
    def items(self) -> int:
        """How many items that is."""
        return sum(lane.queued.items for lane in self.lanes)

    @property
    def given_up(self) -> int:
        """How many items were given up, and are kept for the person to try again or drop."""
        return self.states.get(State.DEAD, Tally()).items

    def why(self, lane: Lane) -> str:
        """Return why what is queued for a destination is still here; empty where nothing is."""
        return self._reasons.get(lane.destination, "")

    def next_try(self, lane: Lane) -> str:
        """Return when something is done for it next, in words."""
        if lane.destination not in self._known:
            return "when its key is known"
        wait = (lane.next_try or self.now) - self.now
        return "now" if wait <= 0 else f"in {duration(wait)}"

    def lines(self) -> list[str]:
        """Return all in words, one line a destination."""
        dead = [f"{count(self.given_up)} given up; `bankclient queue list --state dead` shows them"]
        waiting = [self.line(lane) for lane in self.waiting] or ["nothing waits to be sent"]
        return waiting + (dead if self.given_up else [])

    def line(self, lane: Lane) -> str:
        """Return one line on what waits for a destination."""
        age = "" if lane.oldest is None else f", the oldest for {duration(self.now - lane.oldest)}"
        return f"{count(lane.queued.items)} for {server_of(lane.destination)}{age}: {self.why(lane)}"

    def as_json(self) -> dict[str, object]:
        """Return all of it."""
        return {
            "states": {state.value: _tally(tally) for state, tally in self.states.items()},
            "destinations": [self._lane(lane) for lane in self.lanes],
            "losses": [
                {"reason": loss.reason, "items": loss.items, "bytes": loss.size, "at": moment(loss.at)}
                for loss in self.losses
            ],
        }

    def _lane(self, lane: Lane) -> dict[str, object]:
        return {
            "url": lane.destination.url,
            "key": lane.destination.key,
            "key_known": lane.destination in self._known,
            "queued": _tally(lane.queued),
            "oldest": moment(lane.oldest),
            "next_try": moment(lane.next_try),
            "paused_until": moment(lane.until) if lane.until > self.now else None,
            "why": self.why(lane) or None,
            "since": moment(lane.since),
            "sending": lane.leased,
            "last_stored": moment(lane.stored_at),
            "last_error": lane.error or None,
            "last_error_at": moment(lane.error_at),
        }


def _tally(tally: Tally) -> dict[str, int]:
    return {"batches": tally.batches, "items": tally.items, "bytes": tally.size}


def count(items: int) -> str:
    """Return a number of items in words."""
    return f"{items} item" if items == 1 else f"{items} items"


def duration(seconds: float) -> str:
    """Return a time span in its largest whole unit."""
    whole = max(round(seconds), 0)
    return next((f"{whole // unit} {name}" for unit, name in _UNITS if whole >= unit), "0 s")


def size(count: int) -> str:
    """Return a number of bytes in its largest unit."""
    amount, units = float(count), ["B", "KiB", "MiB", "GiB"]
    while amount >= 1024 and len(units) > 1:  # noqa: PLR2004 - the step between the units
        amount /= 1024
        units.pop(0)
    return f"{amount:.0f} {units[0]}" if units[0] == "B" else f"{amount:.1f} {units[0]}"


def moment(at: float | None) -> str | None:
    """Return a time as ISO 8601, in UTC."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def server_of(destination: Destination) -> str:
    """Return a destination in words: its URL, and which key it is for."""
    url = "the embedded bank" if destination.url == EMBEDDED else destination.url
    return url if destination.key == KEYLESS else f"{url} (key {destination.key[:8]})"
