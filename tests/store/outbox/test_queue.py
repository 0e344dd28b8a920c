"""A person's view of the queue and acts on it, on the disk and in memory alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bankclient.store.outbox import Address, Destination, Limits, Loss, Outbox, State, Step, Tally
from bankclient.store.outbox.answers import (
    Accepted,
    Busy,
    Cancelled,
    Closed,
    Completed,
    Conflict,
    Discarded,
    NoAnswer,
    Unexpected,
)
from bankclient.testing.outbox_sender import ScriptedSender

if TYPE_CHECKING:
    from collections.abc import Callable


_SERVER = Destination("http://one.invalid", "key-1")
_OTHER = Destination("http://two.invalid", "key-1")
_HERE = Address(_SERVER, "bank", ("project:a",))


def _items(body: bytes | None) -> list[dict[str, Any]]:
    assert body is not None
    items: list[dict[str, Any]] = json.loads(body)["items"]
    return items


def test_an_empty_outbox_shows_nothing(sender: ScriptedSender) -> None:
    """Nothing queued, nothing lost, nothing to show or act on."""
    overview = sender.outbox.overview(now=sender.now)
    assert (dict(overview.states), overview.lanes, overview.losses) == ({}, (), ())
    assert sender.outbox.batches() == ()
    assert sender.outbox.batch(1) is None
    assert sender.outbox.batch_of_item(1) is None
    assert sender.outbox.batch_of_operation(_SERVER.url, "x") is None
    assert sender.outbox.text(1) is None
    assert sender.outbox.documents(1) == ()
    assert not sender.outbox.revive(1, now=sender.now)
    assert not sender.outbox.drop(1, now=sender.now)
    assert sender.outbox.rekey("u", "a", "b", now=sender.now) == 0


def test_the_overview_counts_by_state_and_destination(sender: ScriptedSender) -> None:
    """How much, how old, what next, and when something was last stored."""
    sender.session("a")
    sender.store()
    stored_at = sender.now
    sender.session("b")
    sender.send()
    sender.now += 1
    sender.step(Cancelled(), Step.POLL)
    first = sender.session("c")
    second = sender.fact("d")
    sender.fact("e")
    sizes = [sender.batch(number).size for number in (first, second)]
    overview = sender.outbox.overview(now=sender.now)
    assert {state: (tally.batches, tally.items) for state, tally in overview.states.items()} == {
        State.STORED: (1, 1),
        State.DEAD: (1, 1),
        State.SEALED: (1, 1),
        State.OPEN: (1, 2),
    }
    (lane,) = overview.lanes
    assert lane.destination == _SERVER
    assert lane.queued == Tally(2, 3, sum(sizes))
    assert (lane.oldest, lane.next_try, lane.stored_at) == (sender.now, sender.now, stored_at)
    assert not lane.leased
    assert lane.error == "its operation was cancelled on the server"


def test_batches_are_listed_by_page_state_and_destination(sender: ScriptedSender) -> None:
    """A list shows what was asked for, in order of acknowledgement."""
    first = sender.session("s.0")
    sender.store()
    numbers = [first, *(sender.session(f"s.{number}") for number in range(1, 5))]
    elsewhere = sender.session("x", address=Address(_OTHER, "bank"))
    queue = sender.outbox
    assert [batch.id for batch in queue.batches()] == [*numbers, elsewhere]
    assert [batch.id for batch in queue.batches(limit=2)] == numbers[:2]
    assert [batch.id for batch in queue.batches(after=numbers[1], limit=2)] == numbers[2:4]
    assert [batch.id for batch in queue.batches(states={State.STORED})] == numbers[:1]
    assert [batch.id for batch in queue.batches(states=set())] == []
    assert [batch.id for batch in queue.batches(destination=_OTHER)] == [elsewhere]
    assert [batch.id for batch in queue.batches(states=[State.SEALED], destination=_SERVER)] == numbers[1:]


def test_an_open_batch_shows_what_would_be_sent(sender: ScriptedSender) -> None:
    """A person can read what waits before it is sealed."""
    number = sender.fact("a")
    sender.fact("b")
    assert [item["content"] for item in _items(sender.outbox.text(number))] == ["a", "b"]


def test_a_revived_dead_batch_goes_under_a_new_id_behind_its_old_operation(sender: ScriptedSender) -> None:
    """The old operation is deleted on the server first, else the server would answer with it."""
    number = sender.session("a", "text")
    old = sender.send().operation_id
    sender.now += 1
    assert sender.step(Cancelled(), Step.POLL).state is State.DEAD
    assert sender.nothing_due()
    assert sender.outbox.revive(number, now=sender.now)
    discard = sender.claim(Step.DISCARD)
    assert discard.operation == old
    later = sender.settle(discard, Conflict("not over"))
    assert (later.state, later.step) == (State.WAITING, Step.DISCARD)
    sender.now = later.until
    sender.step(Discarded(), Step.DISCARD)
    fresh = sender.claim(Step.SEND)
    assert fresh.operation != old
    assert _items(fresh.body)[0]["content"] == "text"
    sender.settle(fresh, Accepted(fresh.operation))
    sender.now += 1
    assert sender.step(Completed(), Step.POLL).state is State.STORED
    assert not sender.outbox.revive(number, now=sender.now)


def test_a_revived_batch_discards_the_operation_that_the_server_named(sender: ScriptedSender) -> None:
    """A server that knows no ids of callers knows the operation by its own."""
    number = sender.session("a")
    sender.step(Accepted("theirs"), Step.SEND)
    sender.now += 1
    sender.step(Cancelled(), Step.POLL)
    sender.outbox.revive(number, now=sender.now)
    assert sender.claim(Step.DISCARD).operation == "theirs"


def test_what_the_server_never_took_is_revived_without_deleting(sender: ScriptedSender) -> None:
    """The id that was in conflict is somebody else's operation, which is left alone."""
    number = sender.session("a")
    sender.step(Conflict("409"))
    assert sender.step(Conflict("409")).state is State.DEAD
    sender.outbox.revive(number, now=sender.now)
    assert sender.claim().step is Step.SEND


def test_a_revived_request_of_a_caller_keeps_its_id(sender: ScriptedSender) -> None:
    """Its operation is deleted on the server, which frees the id, and the same bytes go again."""
    number = sender.request("id-1", "a")
    before = sender.outbox.text(number)
    sender.send()
    sender.now += 1
    sender.step(Cancelled(), Step.POLL)
    sender.outbox.revive(number, now=sender.now)
    assert sender.claim(Step.DISCARD).operation == "id-1"
    sender.step(Discarded(), Step.DISCARD)
    again = sender.claim(Step.SEND)
    assert (again.operation, again.body) == ("id-1", before)


def test_a_dead_batch_does_not_bring_an_old_text_back(sender: ScriptedSender) -> None:
    """Where a later batch has written the document, or is queued to, the dead one can only be dropped."""
    first = sender.request("id-1", "notes")
    sender.send()
    sender.now += 1
    sender.step(Cancelled(), Step.POLL)
    sender.request("id-2", "notes")
    assert not sender.outbox.revive(first, now=sender.now)
    sender.store_all()
    assert not sender.outbox.revive(first, now=sender.now)
    assert sender.batch(first).state is State.DEAD
    assert sender.outbox.drop(first, now=sender.now)


def test_reviving_what_waits_ends_its_wait_and_its_destinations(sender: ScriptedSender) -> None:
    """A person who has mended the server need not wait for the next try."""
    number = sender.session("a")
    sender.step(Unexpected("500"))
    sender.session("b")
    sender.step(Closed("401"))
    assert sender.nothing_due()
    assert sender.outbox.revive(number, now=sender.now)
    assert sender.claim(Step.SEND).batch.id == number
    assert sender.outbox.revive(number, now=sender.now)
    batch = sender.batch(number)
    assert (batch.state, batch.handed_out) == (State.SENDING, True)


def test_a_person_in_a_hurry_waits_for_nothing_but_what_the_server_asked(sender: ScriptedSender) -> None:
    """Waits and pauses of our own making end, for that destination alone; a Retry-After is kept to."""
    waiting, held = sender.session("a"), sender.session("b")
    sender.step(Unexpected("500"))
    sender.step(NoAnswer("connection refused"))
    sender.outbox.hurry(Destination("http://two.invalid", "key-1"), now=sender.now)
    assert sender.nothing_due()
    sender.outbox.hurry(sender.destination, now=sender.now)
    assert (sender.batch(waiting).until, sender.batch(held).until) == (0.0, 0.0)
    sender.step(Busy("503: full", 30.0))
    sender.outbox.hurry(sender.destination, now=sender.now)
    (lane,) = sender.outbox.overview(now=sender.now).lanes
    assert (lane.is_asked, lane.until) == (True, sender.now + 30)
    assert sender.nothing_due()
    sender.now += 30
    sender.send()
    (lane,) = sender.outbox.overview(now=sender.now).lanes
    assert lane.is_asked is False


def test_a_dropped_batch_is_gone_and_counted(sender: ScriptedSender) -> None:
    """In whatever state, also on its way; a late answer to it changes nothing; what is stored cannot be dropped."""
    stored = sender.session("z")
    sender.store()
    first = sender.session("a")
    job = sender.claim(Step.SEND)
    second = sender.fact("b")
    sizes = [sender.batch(number).size for number in (first, second)]
    assert sender.outbox.drop(first, now=sender.now)
    assert sender.outbox.drop(second, now=sender.now)
    assert not sender.outbox.drop(first, now=sender.now)
    assert not sender.outbox.drop(stored, now=sender.now)
    assert sender.outbox.settle(job, Accepted("x"), now=sender.now, jitter=0.0) is None
    assert [batch.id for batch in sender.outbox.batches()] == [stored]
    assert sender.outbox.overview(now=sender.now).losses == (Loss("dropped by the person", 2, sum(sizes), sender.now),)
    sender.outbox.lose("spool full", items=3, size=10, now=sender.now)
    assert Loss("spool full", 3, 10, sender.now) in sender.outbox.overview(now=sender.now).losses


def test_a_new_key_takes_over_what_waits_for_the_old(sender: ScriptedSender) -> None:
    """All of that URL and key moves, what was on its way is sent again the same; other destinations stay."""
    first = sender.session("a")
    sender.session("b")
    elsewhere = sender.session("c", address=Address(_OTHER, "bank"))
    job = sender.claim(Step.SEND)
    new = Destination(_SERVER.url, "key-2")
    assert sender.outbox.rekey(_SERVER.url, "key-1", "key-2", now=sender.now) == 2
    assert sender.outbox.settle(job, Accepted("x"), now=sender.now, jitter=0.0) is None
    assert [batch.id for batch in sender.outbox.batches(destination=_OTHER)] == [elsewhere]
    assert sender.outbox.batches(destination=_SERVER) == ()
    assert sender.outbox.lease(_SERVER, holder="sender", seconds=20, now=sender.now) is None
    sender.destination = new
    again = sender.claim(Step.SEND)
    assert (again.batch.id, again.body, again.operation) == (first, job.body, job.operation)
    assert again.batch.address == Address(new, "bank", ("project:a",))
    assert sender.outbox.rekey(_SERVER.url, "key-2", "key-2", now=sender.now) == 0


def test_two_keys_on_one_server_and_bank_stay_apart(sender: ScriptedSender) -> None:
    """What waits for one key is neither handed out with the other nor held up by its pause."""
    other = Address(Destination(_SERVER.url, "key-2"), "bank", ("project:a",))
    sender.session("a", "a")
    sender.session("b", "b", other)
    sender.step(Closed("401"))
    sender.destination = other.destination
    sender.send()
    assert sender.nothing_due()
    assert sender.sent == [["a"], ["b"]]


def test_lines_of_account_are_bounded(make_outbox: Callable[[Limits], Outbox]) -> None:
    """Of what was stored the newest lines stay; what is not stored is never cut."""
    sender = ScriptedSender(make_outbox(Limits(kept=3)), _HERE)
    numbers = [sender.session(f"s.{number}") for number in range(6)]
    waiting = sender.session("waiting", address=Address(_OTHER, "bank"))
    sender.store_all()
    sender.session("one more")
    sender.lease()
    kept = [batch.id for batch in sender.outbox.batches(states={State.STORED})]
    assert kept == numbers[-3:]
    assert sender.outbox.batch(waiting) is not None


def test_the_next_time_is_told_exactly(sender: ScriptedSender) -> None:
    """Sealing, sending, waiting, asking: whoever sleeps until then finds something to do, and not before."""
    due = sender.outbox.next_due
    sender.fact("a")
    assert due(_SERVER, now=sender.now) == sender.now + 5
    sender.now += 5
    sender.outbox.seal(now=sender.now)
    assert due(_SERVER, now=sender.now) == sender.now
    lease = sender.lease()
    job = sender.outbox.claim(lease, now=sender.now)
    assert job is not None
    assert due(_SERVER, now=sender.now) == sender.now + 20
    sender.settle(job, Unexpected("500"))
    assert due(_SERVER, now=sender.now) == sender.now + 2
    sender.now += 2
    sender.send()
    assert due(_SERVER, now=sender.now) == sender.now + 0.5
