"""What follows from refusals and from how operations end, on the disk and in memory alike."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.store.outbox import Batch, Destination, Progress, State, Step
from bankclient.store.outbox.answers import Accepted, Answer, Completed, Conflict, Discarded, Failed, NotFound, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.testing.outbox_sender import ScriptedSender


_SERVER = Destination("http://one.invalid", "key-1")
_DAY = 86_400.0


def _items(body: bytes | None) -> list[dict[str, Any]]:
    assert body is not None
    items: list[dict[str, Any]] = json.loads(body)["items"]
    return items


def test_a_refused_batch_is_halved_down_to_the_item_at_fault(sender: ScriptedSender) -> None:
    """The good ones are stored at once, under new ids; the bad one waits, and is dead when it is refused again."""
    numbers = [sender.fact(f"fact {number}" if number != 2 else "poison") for number in range(5)]
    sender.seal()
    ids: set[str] = set()
    while not sender.nothing_due():
        job = sender.claim()
        if job.step is Step.SEND:
            assert job.operation not in ids
            ids.add(job.operation)
            bad = "poison" in sender.sent[-1]
            sender.settle(job, Refused("422: too odd") if bad else Accepted(job.operation))
        else:
            sender.settle(job, Completed())
        sender.now += 0.3
    stored = sender.outbox.batches(states={State.STORED})
    assert [batch.items for batch in stored] == [2, 2]
    (waiting,) = sender.outbox.batches(states={State.WAITING})
    assert waiting.why == "422: too odd"
    poison = sender.outbox.batch_of_item(numbers[2])
    assert poison == waiting
    sender.now = waiting.until
    dead = sender.step(Refused("422: too odd"), Step.SEND)
    assert (dead.state, dead.why, dead.items) == (State.DEAD, "422: too odd", 1)
    assert _items(sender.outbox.text(dead.id))[0]["content"] == "poison"
    assert sender.outbox.next_due(_SERVER, now=sender.now) is None


def test_halves_keep_the_order_of_acknowledgement(sender: ScriptedSender) -> None:
    """Each half stands where its first item was acknowledged, before whatever came later."""
    numbers = [sender.fact(f"fact {number}") for number in range(4)]
    sender.seal()
    later = sender.session("later")
    sender.step(Refused("bad"))
    assert [batch.id for batch in sender.outbox.batches()] == [numbers[0], numbers[2], later]
    assert [batch.items for batch in sender.outbox.batches()] == [2, 2, 1]
    assert len({batch.operation_id for batch in sender.outbox.batches()}) == 3
    sender.send()
    sender.send()
    assert sender.sent[1:] == [["fact 0", "fact 1"], ["fact 2", "fact 3"]]


def test_a_refused_item_lives_as_long_as_nothing_of_its_kind_goes_through(sender: ScriptedSender) -> None:
    """If all are refused the fault is the server's: nothing dies, and nothing stored of another kind counts."""
    sender.session("a")
    sender.request("id-1", "x")
    assert sender.step(Refused("no")).state is State.WAITING
    sender.store()
    for _ in range(5):
        sender.now += 600
        assert sender.step(Refused("no"), Step.SEND).state is State.WAITING
    sender.session("b")
    sender.now += 600
    sender.step(Refused("no"), Step.SEND)
    sender.store()
    sender.now += 600
    assert sender.step(Refused("no"), Step.SEND).state is State.DEAD


def test_a_success_from_before_proves_nothing(sender: ScriptedSender) -> None:
    """One that was accepted before the refusal, and completes after it, says nothing of how the server is now."""
    sender.session("a")
    sender.send()
    sender.session("b")
    sender.step(Refused("no"), Step.SEND)
    sender.now += 1
    sender.step(Completed(), Step.POLL)
    sender.now += 10
    assert sender.step(Refused("no"), Step.SEND).state is State.WAITING


def test_an_id_in_use_is_replaced_once(sender: ScriptedSender) -> None:
    """The same text goes under a new id; if that is taken too, the batch is dead and can be found."""
    sender.session("a")
    first = sender.claim(Step.SEND)
    sender.settle(first, Conflict("409: in use"))
    second = sender.claim(Step.SEND)
    assert second.operation != first.operation
    assert _items(second.body) == _items(first.body)
    assert json.loads(second.body)["operation_id"] == second.operation
    dead = sender.settle(second, Conflict("409: in use"))
    assert (dead.state, dead.why) == (State.DEAD, "409: in use")


def test_a_callers_request_is_never_taken_apart(sender: ScriptedSender) -> None:
    """Refused, it waits whole; in conflict, it is dead at once."""
    sender.request("id-1", "a", "b", "c")
    batch = sender.step(Refused("bad"))
    assert (batch.state, batch.items, batch.operation_id) == (State.WAITING, 3, "id-1")
    sender.now += 2
    assert sender.step(Conflict("409")).state is State.DEAD


def test_a_failed_operation_is_retried_by_the_server(sender: ScriptedSender) -> None:
    """The server is asked to retry it, with growing waits; it is not sent again, and can still be stored."""
    sender.session("a")
    operation = sender.send().operation_id
    for pause in (2, 4, 8):
        sender.now += 1
        batch = sender.step(Failed("no embeddings"), Step.POLL)
        assert (batch.state, batch.why, batch.until) == (State.WAITING, "no embeddings", sender.now + pause)
        assert sender.nothing_due()
        sender.now += pause
        job = sender.claim(Step.RETRY)
        assert job.operation == operation
        sender.settle(job, Accepted(job.operation))
    sender.now += 1
    assert sender.step(Completed(), Step.POLL).state is State.STORED
    assert len(sender.sent) == 1


def _fail_for_days(sender: ScriptedSender, number: int, other: Callable[[str], int]) -> Batch:
    """Let the batch's operation fail while others are stored, until it is not retried any more; return it."""
    for day in range(20):
        other(f"other {day}")
        sender.seal()
        while not sender.nothing_due():
            job = sender.claim()
            failing = job.batch.id == number and job.step is Step.POLL
            answer: Answer = Completed() if job.step is Step.POLL else Accepted(job.operation)
            sender.settle(job, Failed("broken") if failing else answer)
            if (batch := sender.batch(number)).state in {State.DEAD, State.SEALED}:
                return batch
            sender.now += 1
        sender.now += _DAY / 4
    pytest.fail("it never ended")


def test_an_operation_that_keeps_failing_is_dead_in_the_end(sender: ScriptedSender) -> None:
    """After five retries over a day, while others are stored."""
    number = sender.session("a")
    sender.send()
    sender.now += 1
    batch = _fail_for_days(sender, number, sender.session)
    assert (batch.state, batch.why, batch.progress) == (State.DEAD, "broken", Progress())
    assert batch.changed - batch.added >= _DAY


def test_a_batch_that_keeps_failing_is_halved_behind_its_deleted_operation(sender: ScriptedSender) -> None:
    """Its items go on apart, each half only after the failed operation is gone from the server."""
    number = sender.fact("one")
    sender.fact("two")
    sender.seal()
    failed = sender.send().operation_id
    sender.now += 1
    half = _fail_for_days(sender, number, sender.fact)
    assert (half.items, half.step) == (1, Step.DISCARD)
    for _ in range(2):
        discard = sender.claim(Step.DISCARD)
        assert discard.operation == failed
        sender.settle(discard, Discarded())
        sender.send()
    assert sender.sent[-2:] == [["one"], ["two"]]
    assert failed not in {batch.operation_id for batch in sender.outbox.batches()}


def test_a_lost_operation_is_sent_again_the_same(sender: ScriptedSender) -> None:
    """Where the server knows neither it nor the text, the same bytes go under the same id, which is free there."""
    sender.session("a")
    first = sender.claim(Step.SEND)
    sender.settle(first, Accepted(first.operation))
    sender.now += 1
    batch = sender.step(NotFound({}), Step.POLL)
    assert batch.state is State.WAITING
    sender.now = batch.until
    again = sender.claim(Step.SEND)
    assert (again.body, again.operation) == (first.body, first.operation)


def test_a_lost_operation_whose_text_is_there_is_stored(sender: ScriptedSender) -> None:
    """The document tells, by the hash of its text."""
    number = sender.session("a", "text")
    sender.send()
    sender.now += 1
    hashes = {"a": hashlib.sha256(b"text").hexdigest()}
    assert sender.step(NotFound(hashes), Step.POLL).state is State.STORED
    assert sender.outbox.text(number) is None


def test_a_deleted_bank_stays_deleted(sender: ScriptedSender) -> None:
    """What was accepted for it is dead with that reason, not sent into a new bank of that name."""
    sender.session("a")
    sender.send()
    sender.now += 1
    batch = sender.step(NotFound(None), Step.POLL)
    assert (batch.state, batch.why) == (State.DEAD, "bank deleted")
    assert sender.nothing_due()
