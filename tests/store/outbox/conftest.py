"""What the tests of the outbox stand on: both of its kinds, ids in a row, a batch to judge."""

from __future__ import annotations

import itertools
import uuid
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from bankclient.store.database import Database
from bankclient.store.outbox import Address, Destination, Limits, Outbox, SqliteOutbox
from bankclient.testing.outbox import MemoryOutbox
from bankclient.testing.outbox_sender import ScriptedSender

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def _ids_in_a_row() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: str(uuid.UUID(int=next(numbers)))


@pytest.fixture
def ids_in_a_row() -> Callable[[], Callable[[], str]]:
    """Give a maker of sources of operation ids, each of which gives the same ids in the same order."""
    return _ids_in_a_row


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Give a new store."""
    with closing(Database(tmp_path / "state" / "store.db")) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "memory"])
def make_outbox(request: pytest.FixtureRequest) -> Callable[[Limits], Outbox]:
    """Give the maker of an outbox with limits: on the disk, and its twin in memory."""
    if request.param == "memory":
        return lambda limits: MemoryOutbox(limits=limits, new_id=_ids_in_a_row())
    store: Database = request.getfixturevalue("database")
    return lambda limits: SqliteOutbox(store, limits=limits, new_id=_ids_in_a_row())


@pytest.fixture
def sender(outbox: Outbox) -> ScriptedSender:
    """Give a sender for an empty outbox of either kind."""
    return ScriptedSender(outbox, Address(Destination("http://one.invalid", "key-1"), "bank", ("project:a",)))


@pytest.fixture
def outbox(make_outbox: Callable[[Limits], Outbox]) -> Outbox:
    """Give an empty outbox of either kind."""
    return make_outbox(Limits())
