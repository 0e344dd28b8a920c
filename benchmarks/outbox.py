"""The outbox: what the acknowledgement of an item costs beside an fsynced insert of the same bytes."""

from __future__ import annotations

import tempfile
import uuid
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bankclient.api.call import encode_json
from bankclient.store.database import Database
from bankclient.store.outbox import Address, Destination, SqliteOutbox
from bankclient.store.outbox.sealing import request_body
from benchmarks.corpus import memories, seeded, words
from benchmarks.disk import fsynced_inserts
from benchmarks.measure import compare, figure, quickest, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.measure import Figure

__all__ = ["acknowledgement"]

_ADDRESS = Address(Destination("http://localhost:8888", "keyless"), "b", ("project:general",))
_NOW = 1_800_000_000.0
_SAID = 600
"""Words in a piece of a session; three turns without their tool calls are about so many."""


def acknowledgement(rounds: int = 500, waiting: int = 10_000) -> Iterator[Figure]:
    """Compare taking an item in, while 10,000 others wait, with an fsynced insert of the same bytes.

    The busier the disk, the less our own work weighs beside it. So the target is for the quickest tenth, which hardly
    changes from run to run, and the medians of all are information.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with closing(Database(folder / "ours")) as database, fsynced_inserts(folder / "bare") as insert:
            outbox = SqliteOutbox(database)
            with database.write():
                for number in range(waiting):
                    outbox.add_fact(_ADDRESS, _fact(number), now=_NOW)

            def add_fact(item: dict[str, Any]) -> object:
                return outbox.add_fact(_ADDRESS, item, now=_NOW)

            def add_piece(item: dict[str, Any]) -> object:
                return outbox.add_session(_ADDRESS, item, now=_NOW)

            def add_request(item: dict[str, Any]) -> object:
                operation = str(uuid.uuid4())
                body = request_body([encode_json(item)], operation)
                return outbox.add_request(_ADDRESS, [item], body=body, operation_id=operation, now=_NOW)

            for what, make, add in (
                ("a fact", _fact, add_fact),
                ("a piece of a session", _piece, add_piece),
                ("a caller's request", _fact, add_request),
            ):
                ours, bare = compare(
                    rounds, _adding(waiting, make, add), _adding(waiting, make, lambda item: insert(encode_json(item)))
                )
                yield figure(f"taking in {what}", "an fsynced insert", quickest(ours), quickest(bare), target=2.0)
                yield figure(f"taking in {what}, whatever the disk does", "an fsynced insert", ours, bare)


def _adding(
    start: int, make: Callable[[int], dict[str, Any]], add: Callable[[dict[str, Any]], object]
) -> Callable[[], float]:
    """Return what adds the next item, and returns how long that took."""
    numbers = count(start)

    def once() -> float:
        item = make(next(numbers))
        return timed(lambda: add(item))

    return once


def _fact(number: int) -> dict[str, Any]:
    return memories(1, number)[0] | {"document_id": None}


def _piece(number: int) -> dict[str, Any]:
    return _fact(number) | {"content": " ".join(words(seeded(number), _SAID)), "document_id": f"piece-{number}"}
