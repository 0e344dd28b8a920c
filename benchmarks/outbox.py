"""The outbox: what the acknowledgement of an item costs beside an fsynced insert of the same bytes."""

from __future__ import annotations

import tempfile
import uuid
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

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

    Work: TypeAlias = Callable[[], object]

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

            def fact(number: int) -> tuple[Work, Work]:
                item = _fact(number)
                body = encode_json(item)
                return lambda: outbox.add_fact(_ADDRESS, item, now=_NOW), lambda: insert(body)

            def piece(number: int) -> tuple[Work, Work]:
                item = _piece(number)
                body = encode_json(item)
                return lambda: outbox.add_session(_ADDRESS, item, now=_NOW), lambda: insert(body)

            def request(number: int) -> tuple[Work, Work]:
                items, operation = [_fact(number)], str(uuid.uuid4())
                body = request_body(map(encode_json, items), operation)
                return (
                    lambda: outbox.add_request(_ADDRESS, items, body=body, operation_id=operation, now=_NOW),
                    lambda: insert(body),
                )

            for what, pair in (("a fact", fact), ("a piece of a session", piece), ("a caller's request", request)):
                ours, bare = compare(rounds, _each(pair, waiting, 0), _each(pair, waiting, 1))
                yield figure(f"taking in {what}", "an fsynced insert", quickest(ours), quickest(bare), target=2.0)
                yield figure(f"taking in {what}, whatever the disk does", "an fsynced insert", ours, bare)


def _each(pair: Callable[[int], tuple[Work, Work]], start: int, which: int) -> Callable[[], float]:
    """Return what does one of the two for the next number, and returns how long that took."""
    numbers = count(start)
    return lambda: timed(pair(next(numbers))[which])


def _fact(number: int) -> dict[str, Any]:
    return memories(1, number)[0] | {"document_id": None}


def _piece(number: int) -> dict[str, Any]:
    return _fact(number) | {"content": " ".join(words(seeded(number), _SAID)), "document_id": f"piece-{number}"}
