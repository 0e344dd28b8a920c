"""Random schedules of everything that can happen, on the disk and in memory at once, against a model of a server.

After each step both outboxes look the same. In the end the server has what was acknowledged: every document with its
newest text, every loose text once, nothing that was forgotten, and each document written in order.
"""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from bankclient.store.database import Database
from bankclient.store.outbox import Address, Batch, Destination, Job, Kind, Lease, SqliteOutbox, State
from bankclient.store.outbox.answers import (
    Answer,
    Busy,
    Closed,
    Completed,
    Conflict,
    NoAnswer,
    NotFound,
    Refused,
    Unexpected,
)
from bankclient.store.outbox.sealing import fact_document
from bankclient.testing.model_server import ModelServer, OperationState
from bankclient.testing.outbox import MemoryOutbox

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

_URL = "http://one.invalid"
_KEYS = st.sampled_from(["key-1", "key-2"])
_BANKS = st.sampled_from(["bank-1", "bank-2"])
_TAGS = st.sampled_from([(), ("project:a",)])
_SHARED = st.sampled_from(["notes", "plan"])
_FACTS = st.integers(0, 5)
_JITTERS = st.sampled_from([0.0, 0.5, 1.0])
_TROUBLES: list[Answer] = [
    NoAnswer("connection refused"),
    Unexpected("HTTP 500"),
    Closed("401"),
    Busy("503", 30.0),
    Busy("429"),
    Conflict("409"),
    Refused("422"),
]


def _ids() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: str(uuid.UUID(int=next(numbers)))


class _Fast(Database):
    """A store that does not wait for the disk: no power fails here."""

    def _prepare(self, connection: sqlite3.Connection) -> None:
        super()._prepare(connection)
        connection.execute("PRAGMA synchronous = OFF")


class OutboxMachine(RuleBasedStateMachine):
    """Does the same to both outboxes, and lets one model server answer both."""

    jobs: Bundle[Job] = Bundle("jobs")
    answers: Bundle[tuple[Job, Answer, int]] = Bundle("answers")

    @initialize()
    def begin(self) -> None:
        """Begin with nothing."""
        self.folder = Path(tempfile.mkdtemp())
        self.disk_ids = _ids()
        self.database = _Fast(self.folder / "store.db")
        self.disk = SqliteOutbox(self.database, new_id=self.disk_ids)
        self.memory = MemoryOutbox(new_id=_ids())
        self.server = ModelServer()
        self.server.failing.add("fact 0")
        self.server.poison.add("fact 1")
        self.now = 1_000_000.0
        self.count = itertools.count(1)
        self.leases: dict[str, Lease | None] = {}
        self.texts: dict[int, tuple[str, str | None]] = {}
        self.epochs: dict[str, int] = {}
        self.expected: dict[tuple[str, str], int] = {}
        self.loose: set[tuple[str, str]] = set()
        self.doubtful: set[str] = set()
        self.stored: set[int] = set()
        self.forgotten: set[tuple[str, str]] = set()
        self.keys = {"key-1": "key-1", "key-2": "key-2"}

    def at(self, key: str) -> Destination:
        """Return the destination that the key is for, or whichever has taken its place."""
        return Destination(_URL, self.keys[key])

    def both(self, act: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - whatever the act returns
        """Do it to both, and see that both answer the same."""
        on_disk, in_memory = act(self.disk), act(self.memory)
        assert on_disk == in_memory
        return on_disk

    def remember(self, item: int | None, text: str, document: str | None) -> None:
        """Note an acknowledged item."""
        if item is not None:
            self.texts.setdefault(item, (text, document))

    # What callers do

    @rule(key=_KEYS, bank=_BANKS, tags=_TAGS, numbers=st.lists(_FACTS, min_size=1, max_size=4), restore=st.booleans())
    def say_facts(self, key: str, bank: str, tags: tuple[str, ...], numbers: list[int], *, restore: bool) -> None:
        """Say facts, of a few, so that the same is often said again."""
        address = Address(self.at(key), bank, tags)
        for number in numbers:
            self.say(address, f"fact {number}", restore=restore)

    def say(self, address: Address, text: str, *, restore: bool) -> None:
        """Say one fact."""
        fields = {"content": text}
        added = self.both(lambda outbox: outbox.add_fact(address, fields, now=self.now, restore=restore))
        if added.item is not None:
            document = self.document_of(added.item)
            if restore:
                self.forgotten.discard((address.bank, document))
            self.remember(added.item, text, document)

    def document_of(self, item: int) -> str:
        """Return the document of a queued item."""
        with self.database.read() as tx:
            return str(tx.execute("SELECT document FROM items WHERE id = ?", (item,)).fetchone()[0])

    @rule(key=_KEYS, bank=_BANKS, document=_SHARED)
    def write_a_document(self, key: str, bank: str, document: str) -> None:
        """Give a named document a new text."""
        text = f"version {next(self.count)}"
        address = Address(self.at(key), f"{bank}-{key}")
        fields = {"content": text, "document_id": document}
        added = self.both(lambda outbox: outbox.add_fact(address, fields, now=self.now, restore=True))
        self.forgotten -= {(address.bank, document)}
        self.remember(added.item, text, document)

    @rule(key=_KEYS, bank=_BANKS, tags=_TAGS)
    def end_a_turn(self, key: str, bank: str, tags: tuple[str, ...]) -> None:
        """Seal a piece of a session."""
        number = next(self.count)
        address = Address(self.at(key), bank, tags)
        fields = {"content": f"piece {number}", "document_id": f"s.{number}"}
        added = self.both(lambda outbox: outbox.add_session(address, fields, now=self.now))
        self.remember(added.item, f"piece {number}", f"s.{number}")

    @rule(
        key=_KEYS,
        bank=_BANKS,
        documents=st.lists(st.none() | _SHARED, min_size=1, max_size=3, unique=True),
        again=st.booleans(),
    )
    def call(self, key: str, bank: str, documents: list[str | None], *, again: bool) -> None:
        """Take a caller's request, and perhaps its repetition."""
        address = Address(self.at(key), f"{bank}-{key}")
        number = next(self.count)
        items: list[dict[str, Any]] = [{"content": f"call {number} {document}"} for document in documents]
        for item, document in zip(items, documents, strict=True):
            item.update({"document_id": document} if document else {})
        operation_id = str(uuid.UUID(int=2**64 + number))
        body = json.dumps({"items": items, "async": True, "operation_id": operation_id}).encode()
        fixed = {"body": body, "operation_id": operation_id, "now": self.now}
        added = self.both(lambda outbox: outbox.add_request(address, items, **fixed))
        if again:
            repeated = self.both(lambda outbox: outbox.add_request(address, items, **fixed))
            assert (repeated.item, repeated.fresh) == (added.item, False)
        for offset, (item, document) in enumerate(zip(items, documents, strict=True)):
            self.remember((added.item or 0) + offset, item["content"], document)

    @rule(everything=st.booleans())
    def seal(self, *, everything: bool) -> None:
        """Seal what is due, or all."""
        self.both(lambda outbox: outbox.seal(now=self.now, everything=everything))

    @rule(bank=_BANKS, tags=_TAGS, number=_FACTS)
    def forget(self, bank: str, tags: tuple[str, ...], number: int) -> None:
        """Forget a fact as a person's command does, which deletes it on the server as well."""
        document = fact_document(Address(Destination(_URL, ""), bank, tags), f"fact {number}")
        self.both(lambda outbox: outbox.forget(_URL, bank, document, now=self.now))
        self.server.delete_document(bank, document)
        self.expected.pop((bank, document), None)
        self.forgotten.add((bank, document))

    # What happens to the machine and its clock

    @rule(seconds=st.sampled_from([0.3, 2.0, 6.0, 30.0, 400.0, 90_000.0]))
    def time_passes(self, seconds: float) -> None:
        """Let the clock go on."""
        self.now += seconds

    @rule(seconds=st.sampled_from([60.0, 86_400.0]))
    def clock_steps_back(self, seconds: float) -> None:
        """Set a clock that was ahead."""
        self.now -= seconds

    @rule()
    def restart(self) -> None:
        """End the process and begin another, without the leases."""
        self.database.close()
        self.database = _Fast(self.folder / "store.db")
        self.disk = SqliteOutbox(self.database, new_id=self.disk_ids)
        self.leases.clear()

    # What senders do

    @rule(key=_KEYS, holder=st.sampled_from(["a", "b"]))
    def lease(self, key: str, holder: str) -> None:
        """Ask for the lease."""
        destination = self.at(key)
        lease = self.both(lambda outbox: outbox.lease(destination, holder=holder, seconds=20.0, now=self.now))
        self.leases[key] = lease or self.leases.get(key)

    @rule(key=_KEYS)
    def release(self, key: str) -> None:
        """Give the lease back."""
        if (lease := self.leases.pop(key, None)) is not None:
            self.both(lambda outbox: outbox.release(lease))

    @rule(target=jobs, key=_KEYS)
    def claim(self, key: str) -> Any:  # noqa: ANN401 - hypothesis' own type for none or one
        """Take a step under the lease."""
        lease = self.leases.get(key)
        job = None if lease is None else self.both(lambda outbox: outbox.claim(lease, now=self.now))
        return multiple() if job is None else job

    @rule(target=answers, job=consumes(jobs), twice=st.booleans())
    def ask(self, job: Job, *, twice: bool) -> tuple[Job, Answer, int]:
        """Send the step over the network, perhaps twice; the answer is on its way back."""
        answer = self.server.answer(job)
        if twice:
            answer = self.server.answer(job)
        return job, answer, self.epochs.get(job.batch.address.bank, 0)

    @rule(target=answers, job=consumes(jobs), answer=st.sampled_from(_TROUBLES))
    def fail_to_ask(self, job: Job, answer: Answer) -> tuple[Job, Answer, int]:
        """Let the step not reach the server, or be turned away in front of it."""
        return job, answer, 0

    @rule(target=answers, job=consumes(jobs))
    def lose_the_reply(self, job: Job) -> tuple[Job, Answer, int]:
        """Let the server do it, and nobody hear."""
        self.server.answer(job)
        return job, NoAnswer("connection lost"), 0

    @rule(found=consumes(answers), twice=st.booleans(), jitter=_JITTERS)
    def settle(self, found: tuple[Job, Answer, int], *, twice: bool, jitter: float) -> None:
        """Let an answer arrive, however late, perhaps twice."""
        job, answer, epoch = found
        for _ in range(2 if twice else 1):
            self.both(lambda outbox: outbox.settle(job, answer, now=self.now, jitter=jitter))
        self.note_stored(job.batch, answer, epoch)

    def note_stored(self, batch: Batch, answer: Answer, epoch: int) -> None:
        """Note what was seen stored: it has to stay, unless somebody deletes it afterwards."""
        after = self.disk.batch(batch.id)
        if after is None or after.state is not State.STORED or batch.id in self.stored:
            return
        self.stored.add(batch.id)
        assert isinstance(answer, Completed | NotFound)
        bank = batch.address.bank
        if epoch != self.epochs.get(bank, 0):
            return
        with self.database.read() as tx:
            items = tx.execute("SELECT id, document, forgotten FROM items WHERE batch = ?", (batch.id,)).fetchall()
        for item in items:
            if item["document"] is None:
                self.loose.add((bank, self.texts[item["id"]][0]))
            elif not item["forgotten"] and (bank, item["document"]) not in self.forgotten:
                self.expected[bank, item["document"]] = item["id"]

    @rule(key=_KEYS, ways=st.lists(st.sampled_from(["well", "unheard", "twice", *_TROUBLES]), min_size=1, max_size=8))
    def send(self, key: str, ways: list[str | Answer]) -> None:
        """Take step after step, each when it is due, each with a fate of its own."""
        self.both(lambda outbox: outbox.seal(now=self.now, everything=True))
        for way in ways:
            if (at := self.next_due(key)) is None:
                return
            self.now = max(self.now, at)
            self.take_a_step(key, way)
            self.server.work()

    @rule(key=_KEYS)
    def a_day_goes_by(self, key: str) -> None:
        """Let new facts come and everything be tried, every few hours."""
        for _ in range(8):
            self.now += 12_000.0
            self.say(Address(self.at(key), "bank-1"), f"fact {next(self.count)} of today", restore=False)
            self.both(lambda outbox: outbox.seal(now=self.now, everything=True))
            for _ in range(12):
                if self.next_due(key) != self.now:
                    break
                self.take_a_step(key)
                self.server.work()
                self.now += 1.0

    # What happens on the server

    @rule()
    def work(self) -> None:
        """Run the server's worker."""
        self.server.work()

    @rule(number=_FACTS, fails=st.booleans())
    def trouble_with_a_fact(self, number: int, *, fails: bool) -> None:
        """Have the server refuse a text, or fail to store it, or no more."""
        (self.server.failing if fails else self.server.poison).symmetric_difference_update({f"fact {number}"})

    @rule(data=st.data(), how=st.sampled_from([OperationState.FAILED, OperationState.CANCELLED, None]))
    def end_an_operation(self, data: st.DataObject, how: OperationState | None) -> None:
        """Have an operation that was accepted fail, be cancelled, or be cleaned away once it has completed."""
        accepted = self.disk.batches(states=[State.ACCEPTED], limit=1000)
        known = [batch.server_operation or "" for batch in accepted if batch.server_operation in self.server.operations]
        if known:
            operation_id = data.draw(st.sampled_from(known))
            if how is not None:
                self.server.end(operation_id, how)
            elif self.server.operations[operation_id].state is OperationState.COMPLETED:
                self.server.lose(operation_id)

    @rule(bank=st.sampled_from(["bank-1", "bank-2", "bank-1-key-1"]))
    def delete_a_bank(self, bank: str) -> None:
        """Delete a bank."""
        self.server.delete_bank(bank)
        self.epochs[bank] = self.epochs.get(bank, 0) + 1
        self.expected = {name: item for name, item in self.expected.items() if name[0] != bank}
        self.loose = {name for name in self.loose if name[0] != bank}

    # A person's acts

    @rule(data=st.data(), drops=st.booleans())
    def act_on_a_batch(self, data: st.DataObject, *, drops: bool) -> None:
        """Drop a batch, or have it tried now, as a person does."""
        if batches := self.disk.batches(states=set(State) - {State.STORED}):
            batch = data.draw(st.sampled_from(batches))
            act = "drop" if drops else "revive"
            if batch.state is State.DEAD and not drops and batch.kind is Kind.CALLER:
                # The person has read that it may be stored already.
                self.doubtful |= {text for text, document in self.texts.values() if document is None}
            self.both(lambda outbox: getattr(outbox, act)(batch.id, now=self.now))

    @rule(key=_KEYS)
    def hurry(self, key: str) -> None:
        """Have everything tried now."""
        self.both(lambda outbox: outbox.hurry(self.at(key), now=self.now))

    @rule(old=_KEYS)
    def rekey(self, old: str) -> None:
        """Give one key what waits for the other, which is used no more."""
        before, new = self.keys[old], self.keys["key-1" if old == "key-2" else "key-2"]
        self.both(lambda outbox: outbox.rekey(_URL, before, new, now=self.now))
        self.keys = dict.fromkeys(self.keys, new)
        self.leases.clear()

    # What always holds

    @invariant()
    def both_look_the_same(self) -> None:
        """See that batches, texts, documents, overview and times are the same on the disk and in memory."""
        batches = self.both(lambda outbox: outbox.batches(limit=1000))
        self.both(lambda outbox: [(outbox.text(batch.id), outbox.documents(batch.id)) for batch in batches])
        self.both(lambda outbox: outbox.overview(now=self.now))

    def teardown(self) -> None:
        """Deliver everything that can be to a server that is well again, and look at the promise."""
        if not hasattr(self, "database"):
            return
        try:
            self.drain()
            self.look_at_the_promise()
        finally:
            self.database.close()
            shutil.rmtree(self.folder)

    def drain(self) -> None:
        """Send until nothing is queued; a poison that stays is given up on the way."""
        self.server.failing.clear()
        self.server.poison.clear()
        self.both(lambda outbox: outbox.seal(now=self.now, everything=True))
        for _ in range(20_000):
            due = [(at, key) for key in self.keys if (at := self.next_due(key)) is not None]
            if not due:
                return
            at, key = min(due)
            self.now = max(self.now, at)
            self.take_a_step(key)
            self.server.work()
        raise AssertionError("the queue never became empty")

    def next_due(self, key: str) -> float | None:
        """Return when something can be done for the key next."""
        due: float | None = self.both(lambda outbox: outbox.next_due(self.at(key), now=self.now))
        return due

    def take_a_step(self, key: str, way: str | Answer = "well") -> None:
        """Take the next step for the key, if there is one."""
        lease = self.both(lambda outbox: outbox.lease(self.at(key), holder="last", seconds=20, now=self.now))
        job = self.both(lambda outbox: outbox.claim(lease, now=self.now))
        if job is not None:
            answer = self.server.answer(job) if isinstance(way, str) else way
            answer = self.server.answer(job) if way == "twice" else answer
            answer = NoAnswer("connection lost") if way == "unheard" else answer
            self.both(lambda outbox: outbox.settle(job, answer, now=self.now, jitter=0.5))
            self.note_stored(job.batch, answer, self.epochs.get(job.batch.address.bank, 0))
        self.both(lambda outbox: outbox.release(lease))

    def look_at_the_promise(self) -> None:
        """Compare what the server has with what was seen stored."""
        assert {batch.state for batch in self.disk.batches(limit=1000)} <= {State.STORED, State.DEAD}
        self.server.work()
        for (bank, document), item in self.expected.items():
            # A later text may be there too: of a batch that was given up or dropped after the server had it.
            text = self.server.banks[bank].documents.get(document)
            assert any(self.texts[later] == (text, document) for later in self.texts if later >= item)
        for bank, text in self.loose:
            assert self.server.banks[bank].loose[text] >= 1
        for name, bank_now in self.server.banks.items():
            assert all(count == 1 for text, count in bank_now.loose.items() if text not in self.doubtful)
            for document in bank_now.documents:
                assert (name, document) not in self.forgotten
            self.look_at_the_order(bank_now.writes)

    def look_at_the_order(self, writes: list[tuple[str, str]]) -> None:
        """See that no document went back to an older text."""
        newest: dict[str, int] = {}
        for document, text in writes:
            with suppress(ValueError, IndexError):
                number = int(text.split()[1])
                if text.split()[0] in {"version", "call"}:
                    assert number >= newest.get(document, 0), (document, writes)
                    newest[document] = number


OutboxMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSchedules = OutboxMachine.TestCase
