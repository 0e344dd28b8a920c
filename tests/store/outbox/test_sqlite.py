"""What only the outbox on the disk must show: it shares transactions, threads and processes, and finds rows fast."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.errors import OutboxFull, StoreError
from bankclient.store.database import Database
from bankclient.store.outbox import Address, Destination, Limits, SqliteOutbox, State
from bankclient.store.outbox.answers import Accepted, Completed
from bankclient.testing.outbox_sender import ScriptedSender

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from pathlib import Path

_HERE = Address(Destination("http://one.invalid", "key-1"), "bank", ("project:a",))


@pytest.fixture
def store(database: Database) -> SqliteOutbox:
    """Give an empty outbox on the disk."""
    return SqliteOutbox(database)


def _texts(outbox: SqliteOutbox) -> list[bytes | None]:
    return [outbox.text(batch.id) for batch in outbox.batches()]


def test_sealing_is_one_with_what_the_caller_writes(database: Database, store: SqliteOutbox) -> None:
    """A piece of a session is queued together with its caller's own rows, or not at all."""
    with database.write() as tx:
        tx.execute("CREATE TABLE cursors (at INTEGER)")

    def capture(*, fails: bool) -> None:
        with database.write() as tx:
            tx.execute("INSERT INTO cursors VALUES (1)")
            store.add_session(_HERE, {"content": "text", "document_id": "s.1"}, now=1.0)
            if fails:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        capture(fails=True)
    assert store.batches() == ()
    capture(fails=False)
    with database.read() as tx:
        assert tx.execute("SELECT count(*) FROM cursors").fetchone()[0] == len(store.batches()) == 1


def test_a_full_outbox_leaves_the_callers_transaction_to_the_caller(database: Database) -> None:
    """Whoever gives up loses nothing of its own: there is no loss to count either, as nothing was given up."""
    full = SqliteOutbox(database, limits=Limits(items=0))
    with pytest.raises(OutboxFull), database.write():
        full.add_session(_HERE, {"content": "text", "document_id": "s.1"}, now=1.0)
    assert full.overview(now=1.0).losses == ()


def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    """Open facts, sealed pieces, what was handed out, waits and pauses: all of it is on the disk."""
    path = tmp_path / "state" / "store.db"
    with closing(Database(path)) as database:
        sender = ScriptedSender(SqliteOutbox(database), _HERE)
        sender.session("s.1")
        job = sender.claim()
        sender.fact("open")
        sender.request("id-1", "a")
        before = sender.outbox.batches(), sender.outbox.overview(now=sender.now)
    with closing(Database(path)) as database:
        again = ScriptedSender(SqliteOutbox(database), _HERE, now=sender.now + 60)
        assert (again.outbox.batches(), again.outbox.overview(now=sender.now)) == before
        assert again.claim().body == job.body
        again.store_all()
        assert {batch.state for batch in again.outbox.batches()} == {State.STORED}


def test_counts_are_kept_right(database: Database, store: SqliteOutbox) -> None:
    """What the bounds are measured by equals what is there, after everything that changes it."""
    sender = ScriptedSender(store, _HERE)

    def check() -> None:
        with database.read() as tx:
            kept = tuple(tx.execute("SELECT items, bytes FROM counters").fetchone())
            truth = tx.execute("SELECT total(items), total(size) FROM batches WHERE state <> 'stored'").fetchone()
            rows = tx.execute(
                "SELECT count(*) FROM items i JOIN batches b ON b.id = i.batch WHERE b.state <> 'stored'"
            ).fetchone()
        assert kept == tuple(truth)
        assert kept[0] == rows[0]

    numbers = [sender.fact(f"fact {number}") for number in range(5)]
    check()
    store.forget(_HERE.destination.url, "bank", store.documents(numbers[0])[1].id or "", now=1.0)
    check()
    sender.request("id-1", "a", None)
    sender.seal()
    sender.send()
    check()
    store.drop(store.batches(states=[State.SEALED])[0].id, now=1.0)
    check()
    sender.store_all()
    check()
    with database.read() as tx:
        assert tuple(tx.execute("SELECT items, bytes FROM counters").fetchone()) == (0, 0)


def _at_once(work: Callable[[int], None], count: int) -> None:
    """Run `work` in so many threads, with a number each; raise the first error of one."""
    errors: list[BaseException] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - told to the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_threads_add_and_send_at_once(store: SqliteOutbox) -> None:
    """Every item is taken in once, handed out to one thread alone, and stored."""
    handed: list[int] = []

    def add(name: int) -> None:
        for number in range(25):
            store.add_session(_HERE, {"content": "x", "document_id": f"{name}.{number}"}, now=100.0)

    _at_once(add, 4)
    lease = store.lease(_HERE.destination, holder="sender", seconds=20, now=100.0)
    assert lease is not None

    def send(_: int) -> None:
        while (job := store.claim(lease, now=200.0)) is not None:
            handed.extend([job.batch.id] if job.body else [])
            store.settle(job, Accepted("x") if job.body else Completed(), now=100.0, jitter=0.0)

    _at_once(send, 3)
    assert len(handed) == len(set(handed)) == 100
    assert len(store.batches(states=[State.STORED], limit=200)) == 100


def test_one_of_many_gets_the_lease(store: SqliteOutbox) -> None:
    """Of several that ask at once, one may send."""
    ScriptedSender(store, _HERE).session("s.1")
    leases: list[object] = []
    destination = _HERE.destination
    _at_once(lambda name: leases.append(store.lease(destination, holder=f"{name}", seconds=20, now=100.0)), 6)
    assert len([lease for lease in leases if lease is not None]) == 1


class _Small(Database):
    """A store on a disk that is almost full."""

    def _prepare(self, connection: sqlite3.Connection) -> None:
        super()._prepare(connection)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {max(pages, 40)}")


def test_a_full_disk_refuses_the_new_and_keeps_the_old(tmp_path: Path) -> None:
    """Each item is taken whole or not at all; what was acknowledged is sent when the disk has room again."""
    path = tmp_path / "state" / "store.db"
    taken: list[str] = []
    with closing(_Small(path)) as database:
        sender = ScriptedSender(SqliteOutbox(database), _HERE)
        for number in range(100):
            try:
                sender.session(f"s.{number}", "words " * 500)
            except StoreError as error:
                assert "its disk is full; free some space" in str(error)  # noqa: PT017 - some come before it is full
            else:
                taken.append(f"s.{number}")
        assert 0 < len(taken) < 100
        documents = [sender.outbox.documents(batch.id)[0].id for batch in sender.outbox.batches()]
        assert documents == taken
    with closing(Database(path)) as database:
        sender = ScriptedSender(SqliteOutbox(database), _HERE)
        sender.store_all()
        assert len(sender.sent) == len(taken)


def test_nothing_is_looked_for_by_reading_all(database: Database, store: SqliteOutbox) -> None:
    """Taking in, handing out and settling find their rows by an index, however many there are; of few they read all."""
    sender = ScriptedSender(store, _HERE)
    asked: list[str] = []
    with database.write() as tx:
        tx.set_trace_callback(asked.append)
        sender.fact("a")
        sender.session("s.1")
        sender.store_all()
        sender.outbox.next_due(_HERE.destination, now=sender.now)
        tx.set_trace_callback(None)
        statements = {statement for statement in asked if statement.startswith(("SELECT", "UPDATE", "DELETE"))}
        plans = [(statement, _plan(tx, statement)) for statement in statements]
    scans = [
        (statement, step)
        for statement, steps in plans
        for step in steps
        if step.startswith("SCAN") and not step.endswith(("counters", "lanes", "batches_open", "batches_stored"))
    ]
    sorts = [(statement, steps) for statement, steps in plans if any("TEMP B-TREE" in step for step in steps)]
    assert scans == []
    assert sorts == []
    assert len(statements) > 20


def _plan(tx: sqlite3.Connection, statement: str) -> list[Any]:
    return [row["detail"] for row in tx.execute(f"EXPLAIN QUERY PLAN {statement}")]
