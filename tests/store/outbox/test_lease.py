"""Who sends for a destination, and what clocks do to it, on the disk and in memory alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.store.outbox import Address, Destination, State, Step
from bankclient.store.outbox.answers import Accepted, Busy, Unexpected

if TYPE_CHECKING:
    from bankclient.testing.outbox_sender import ScriptedSender


_SERVER = Destination("http://one.invalid", "key-1")
_OTHER = Destination("http://two.invalid", "key-1")
_DAY = 86_400.0


def test_one_holder_sends_at_a_time(sender: ScriptedSender) -> None:
    """Nobody else gets the destination until it is given back; another destination is free."""
    sender.session("a")
    sender.session("b", address=Address(_OTHER, "bank"))
    lease = sender.lease()
    assert sender.outbox.lease(_SERVER, holder="other", seconds=20, now=sender.now) is None
    assert sender.outbox.lease(_OTHER, holder="other", seconds=20, now=sender.now) is not None
    sender.outbox.release(lease)
    assert sender.outbox.lease(_SERVER, holder="other", seconds=20, now=sender.now) is not None


def test_a_destination_without_anything_has_no_lease(sender: ScriptedSender) -> None:
    """There is nothing to send, so there is nothing to hold."""
    assert sender.outbox.lease(_SERVER, holder="x", seconds=20, now=sender.now) is None
    assert sender.outbox.next_due(_SERVER, now=sender.now) is None


def test_a_lease_runs_out(sender: ScriptedSender) -> None:
    """Who died or hangs is replaced after its seconds; renewing and claiming let it run on."""
    sender.session("a")
    lease = sender.lease()
    sender.now += 15
    assert sender.outbox.renew(lease, now=sender.now)
    sender.now += 15
    assert sender.outbox.claim(lease, now=sender.now) is not None
    sender.now += 15
    assert sender.outbox.lease(_SERVER, holder="other", seconds=20, now=sender.now) is None
    sender.now += 5
    assert sender.outbox.lease(_SERVER, holder="other", seconds=20, now=sender.now) is not None
    assert not sender.outbox.renew(lease, now=sender.now)
    assert sender.outbox.claim(lease, now=sender.now) is None


def test_a_lease_that_was_lost_cannot_be_released_for_others(sender: ScriptedSender) -> None:
    """A late release changes nothing for who has the destination now."""
    sender.session("a")
    old = sender.lease()
    sender.now += 21
    assert sender.outbox.lease(_SERVER, holder="other", seconds=20, now=sender.now) is not None
    sender.outbox.release(old)
    assert sender.outbox.lease(_SERVER, holder="third", seconds=20, now=sender.now) is None


def test_a_successor_of_the_same_name_takes_over_at_once(sender: ScriptedSender) -> None:
    """A name belongs to one that lives once, so its lease is that of a dead one."""
    sender.session("a")
    old = sender.lease()
    first = sender.outbox.claim(old, now=sender.now)
    assert first is not None
    second = sender.claim(Step.SEND)
    assert (second.body, second.operation, second.batch.sent) == (first.body, first.operation, 2)
    assert sender.outbox.settle(first, Accepted("x"), now=sender.now, jitter=0.0) is None
    assert sender.outbox.claim(old, now=sender.now) is None


def test_a_lease_from_the_future_is_none(sender: ScriptedSender) -> None:
    """A clock that was an hour ahead does not lock the queue for an hour."""
    sender.session("a")
    ahead = sender.now + 3600
    assert sender.outbox.lease(_SERVER, holder="ahead", seconds=20, now=ahead) is not None
    assert sender.outbox.lease(_SERVER, holder="sender", seconds=20, now=sender.now) is not None


def test_a_clock_that_steps_back_delays_by_ten_minutes_at_most(sender: ScriptedSender) -> None:
    """Waits, pauses, polls and gathering that were noted by a clock a year ahead are cut when they are loaded."""
    year = 365 * _DAY
    sender.now += year
    sender.session("waiting")
    sender.step(Unexpected("500"))
    sender.session("polled")
    sender.send()
    sender.fact("open")
    sender.session("held")
    sender.step(Busy("503", 600.0))
    sender.now -= year
    assert sender.outbox.next_due(_SERVER, now=sender.now) == sender.now + 600
    assert sender.outbox.seal(now=sender.now) == 1
    assert sender.nothing_due()
    sender.now += 600
    sender.store_all()
    assert {batch.state for batch in sender.outbox.batches()} == {State.STORED}


def test_age_alone_drops_nothing(sender: ScriptedSender) -> None:
    """What waited for ninety days is reported with its age, and sent."""
    added = sender.now
    sender.session("old")
    sender.now += 90 * _DAY
    (lane,) = sender.outbox.overview(now=sender.now).lanes
    assert lane.oldest == added
    assert sender.store().state is State.STORED


def test_a_pause_outlasts_an_answer_that_was_under_way(sender: ScriptedSender) -> None:
    """Of two steps handed out at once, the success of one does not end what the server asked of the other."""
    sender.session("a")
    sender.session("b")
    lease = sender.lease()
    first, second = (sender.outbox.claim(lease, now=sender.now) for _ in range(2))
    assert first is not None
    assert second is not None
    sender.outbox.settle(first, Busy("503", 30.0), now=sender.now, jitter=0.0)
    sender.outbox.settle(second, Accepted(second.operation), now=sender.now + 1, jitter=0.0)
    sender.now += 29
    assert sender.nothing_due()
    sender.now += 1
    assert sender.claim(Step.SEND).batch.id == first.batch.id
