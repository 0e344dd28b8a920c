"""Handing batches out in order, on the disk and in memory alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bankclient.store.outbox import Address, Destination, State, Step
from bankclient.store.outbox.answers import (
    Accepted,
    Busy,
    Cancelled,
    Closed,
    Completed,
    Failed,
    NoAnswer,
    Pending,
    Unexpected,
)

if TYPE_CHECKING:
    from bankclient.testing.outbox_sender import ScriptedSender


_SERVER = Destination("http://one.invalid", "key-1")
_OTHER = Destination("http://two.invalid", "key-1")


def test_a_batch_is_sent_accepted_and_stored(sender: ScriptedSender) -> None:
    """Stored is what was seen completed: the text goes then, not before, and the line of account stays."""
    number = sender.session("a", "a long text")
    job = sender.claim(Step.SEND)
    assert job.batch.state is State.SENDING
    sending = sender.settle(job, Accepted(job.operation))
    assert (sending.state, sending.step, sending.server_operation) == (State.ACCEPTED, Step.POLL, job.operation)
    assert sender.nothing_due()
    sender.now += 0.5
    poll = sender.claim(Step.POLL)
    assert (poll.operation, poll.body) == (job.operation, b"")
    assert poll.documents == sender.outbox.documents(number)
    pending = sender.settle(poll, Pending())
    assert pending.state is State.ACCEPTED
    assert sender.outbox.text(number) is not None
    sender.now += 1
    stored = sender.step(Completed(), Step.POLL)
    assert (stored.state, stored.step, stored.items, stored.changed) == (State.STORED, None, 1, sender.now)
    assert sender.outbox.text(number) is None
    assert sender.nothing_due()
    assert sender.outbox.next_due(_SERVER, now=sender.now) is None


def test_what_died_while_sending_is_sent_again_the_same(sender: ScriptedSender) -> None:
    """Whether it arrived is not known, so the same bytes go under the same id, by which the server knows them."""
    sender.fact("x")
    sender.seal()
    first = sender.claim(Step.SEND)
    sender.now += 21
    sender.holder = "successor"
    second = sender.claim(Step.SEND)
    assert (second.body, second.operation) == (first.body, first.operation)


def test_a_job_is_settled_once(sender: ScriptedSender) -> None:
    """A second or late answer changes nothing."""
    sender.session("a")
    job = sender.claim(Step.SEND)
    sender.settle(job, Unexpected("500"))
    assert sender.outbox.settle(job, Accepted("late"), now=sender.now, jitter=0.0) is None
    sender.now += 2
    again = sender.claim(Step.SEND)
    assert sender.outbox.settle(job, Accepted("late"), now=sender.now, jitter=0.0) is None
    batch = sender.settle(again, Accepted(again.operation))
    assert batch.state is State.ACCEPTED


def test_batches_go_in_order(sender: ScriptedSender) -> None:
    """The oldest first; what the server has is asked for when nothing is left to send."""
    for name in "abc":
        sender.session(name, name)
    for _ in range(3):
        sender.send()
    assert sender.sent == [["a"], ["b"], ["c"]]
    sender.now += 1
    assert sender.step(Completed(), Step.POLL).state is State.STORED


def test_sending_comes_before_asking(sender: ScriptedSender) -> None:
    """What the server has not got is more urgent than what it has."""
    sender.session("a")
    sender.send()
    sender.now += 60
    sender.session("b")
    assert sender.claim().step is Step.SEND


def test_a_poison_batch_does_not_hold_up_the_others(sender: ScriptedSender) -> None:
    """One that the server answers with 500 waits alone, longer each time; it keeps its id and its bytes."""
    sender.session("poison")
    sender.session("good", "good")
    first = sender.claim(Step.SEND)
    batch = sender.settle(first, Unexpected("HTTP 500"))
    assert (batch.state, batch.why, batch.until) == (State.WAITING, "HTTP 500", sender.now + 2)
    sender.store()
    sender.now = batch.until
    second = sender.claim(Step.SEND)
    assert (second.body, second.operation) == (first.body, first.operation)
    batch = sender.settle(second, Unexpected("HTTP 500"))
    assert batch.until == sender.now + 4


def test_an_outage_keeps_the_order(sender: ScriptedSender) -> None:
    """While nobody answers the destination pauses, and when somebody does the oldest comes first."""
    for name in "ab":
        sender.session(name, name)
    for pause in (2, 4):
        sender.step(NoAnswer("connection refused"))
        assert sender.nothing_due()
        sender.now += pause
    sender.send()
    sender.send()
    assert sender.sent == [["a"], ["a"], ["a"], ["b"]]


def test_a_batch_that_silences_the_server_steps_back(sender: ScriptedSender) -> None:
    """After three tries without any answer the others go first, for the batch itself may be the cause."""
    sender.session("huge", "huge")
    sender.session("good", "good")
    for pause in (2, 4, 8):
        sender.step(NoAnswer("connection reset"))
        sender.now += pause
    sender.send()
    assert sender.sent == [["huge"]] * 3 + [["good"]]
    sender.step(NoAnswer("connection reset"))
    sender.session("next", "next")
    sender.now += 600
    sender.send()
    assert sender.sent[-1] == ["next"]


def test_a_busy_server_gets_nothing_before_its_time(sender: ScriptedSender) -> None:
    """No newer batch goes ahead of the one that was turned away, across holders, and it is the first after."""
    sender.session("a", "a")
    batch = sender.step(Busy("503: full", 30.0))
    assert (batch.state, batch.progress.tries) == (State.SEALED, 0)
    sender.session("b", "b")
    sender.now += 29.9
    assert sender.nothing_due()
    assert sender.outbox.next_due(_SERVER, now=sender.now) == pytest.approx(sender.now + 0.1)
    (lane,) = sender.outbox.overview(now=sender.now).lanes
    assert lane.why == "503: full"
    sender.now += 0.2
    sender.send()
    assert sender.sent == [["a"], ["a"]]


def test_a_closed_destination_waits_whole_and_says_why(sender: ScriptedSender) -> None:
    """A wrong key stops sending and asking for that destination alone; nothing is dead; one success ends it."""
    sender.session("a")
    sender.session("b")
    sender.session("c", address=Address(_OTHER, "bank"))
    since = sender.now
    for pause in (2, 4, 8):
        batch = sender.step(Closed("401: Invalid API key"))
        assert batch.state is State.SEALED
        assert sender.nothing_due()
        sender.now += pause
    one, two = sender.outbox.overview(now=sender.now).lanes
    assert (one.why, one.since, one.until) == ("401: Invalid API key", since, sender.now)
    assert (two.why, two.since) == ("", None)
    assert one.error == "401: Invalid API key"
    sender.send()
    one, _ = sender.outbox.overview(now=sender.now).lanes
    assert (one.why, one.since, one.until) == ("", None, 0.0)
    assert not sender.nothing_due()


def test_a_pause_stops_asking_too(sender: ScriptedSender) -> None:
    """An accepted batch is not polled while its destination is closed, and is as it was after."""
    sender.session("a")
    sender.send()
    sender.now += 1
    batch = sender.step(Closed("401"), Step.POLL)
    assert (batch.state, batch.step) == (State.ACCEPTED, Step.POLL)
    assert sender.nothing_due()
    sender.now += 2
    assert sender.step(Completed(), Step.POLL).state is State.STORED


def test_batches_that_share_a_document_go_one_at_a_time(sender: ScriptedSender) -> None:
    """The next is sent when the one before is stored or dead, however it fares; others pass."""
    sender.request("id-1", "notes", "x")
    sender.request("id-2", "notes")
    sender.fact("version 3", document_id="notes")
    sender.request("id-4", "other")
    sender.request("id-5", "notes", address=Address(_SERVER, "other bank"))
    sender.seal()
    sent = [sender.send().operation_id for _ in range(3)]
    assert sent == ["id-1", "id-4", "id-5"]
    assert sender.outbox.next_due(_SERVER, now=sender.now) == sender.now + 0.5
    sender.now += 0.5
    for answer, state in ((Failed("broken"), State.WAITING), (Completed(), None), (Completed(), None)):
        batch = sender.step(answer, Step.POLL)
        assert state in {None, batch.state}
    assert sender.nothing_due()
    sender.now += 2
    sender.step(Accepted("id-1"), Step.RETRY)
    assert sender.nothing_due()
    sender.now += 1
    sender.step(Cancelled(), Step.POLL)
    assert sender.send().operation_id == "id-2"
    assert sender.nothing_due()
    sender.now += 1
    sender.step(Completed(), Step.POLL)
    sender.send()
    assert sender.sent[-1] == ["version 3"]


def test_an_old_server_answers_with_an_id_of_its_own(sender: ScriptedSender) -> None:
    """A server that knows no operation ids of callers is asked for the one that it named."""
    number = sender.session("a")
    ours = sender.claim(Step.SEND)
    sender.settle(ours, Accepted("theirs"))
    sender.now += 1
    assert sender.claim(Step.POLL).operation == "theirs"
    found = sender.outbox.batch_of_operation(_SERVER.url, ours.operation)
    assert found is not None
    assert found.id == number
