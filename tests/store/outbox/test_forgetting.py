"""Facts that were forgotten stay so, on the disk and in memory alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.store.outbox import Address, Destination, Forgotten, State, Step
from bankclient.store.outbox.answers import Cancelled, Completed, Conflict, Discarded, Refused

if TYPE_CHECKING:
    from bankclient.testing.outbox_sender import ScriptedSender


_SERVER = Destination("http://one.invalid", "key-1")
_HERE = Address(_SERVER, "bank", ("project:a",))


def _items(body: bytes | None) -> list[dict[str, Any]]:
    assert body is not None
    items: list[dict[str, Any]] = json.loads(body)["items"]
    return items


def _document(sender: ScriptedSender, number: int, index: int = 0) -> str:
    document = sender.outbox.documents(number)[index].id
    assert document is not None
    return document


def test_a_forgotten_fact_is_not_taken_in_again(sender: ScriptedSender) -> None:
    """Whoever says it again is told since when; only a restore lets it in."""
    number = sender.fact("x")
    document = _document(sender, number)
    sender.store_all()
    forgotten_at = sender.now
    assert sender.outbox.forget(_SERVER.url, "bank", document, now=forgotten_at) == Forgotten(0, 0)
    sender.now += 60
    again = sender.outbox.add_fact(_HERE, {"content": "x"}, now=sender.now)
    assert (again.item, again.fresh, again.forgotten_at) == (None, False, forgotten_at)
    other_key = Address(Destination(_SERVER.url, "key-2"), "bank", ("project:a",))
    assert sender.outbox.add_fact(other_key, {"content": "x"}, now=sender.now).forgotten_at == forgotten_at
    other_bank = Address(_SERVER, "other bank", ("project:a",))
    assert sender.outbox.add_fact(other_bank, {"content": "x"}, now=sender.now).fresh
    assert sender.outbox.forgotten(_SERVER.url, "bank", document) == forgotten_at
    assert sender.outbox.add_fact(_HERE, {"content": "x"}, now=sender.now, restore=True).fresh
    assert sender.outbox.forgotten(_SERVER.url, "bank", document) is None


def test_restoring_says_whether_there_was_something(sender: ScriptedSender) -> None:
    """A document that was not forgotten is nothing to restore."""
    sender.outbox.forget(_SERVER.url, "bank", "doc", now=sender.now)
    assert sender.outbox.restore(_SERVER.url, "bank", "doc")
    assert not sender.outbox.restore(_SERVER.url, "bank", "doc")


@pytest.mark.parametrize("sealed", [False, True])
def test_a_fact_that_is_forgotten_while_queued_is_never_sent(sender: ScriptedSender, sealed: bool) -> None:
    """It is taken out of its batch, counted, and nothing of it is left; the others go."""
    numbers = [sender.fact(text) for text in ("keep", "to be forgotten", "keep too")]
    if sealed:
        sender.seal()
    document = _document(sender, numbers[0], 1)
    assert sender.outbox.forget(_SERVER.url, "bank", document, now=sender.now) == Forgotten(1, 0)
    assert b"to be forgotten" not in (sender.outbox.text(numbers[0]) or b"")
    (loss,) = sender.outbox.overview(now=sender.now).losses
    assert (loss.reason, loss.items) == ("forgotten before it was sent", 1)
    sender.store_all()
    assert sender.sent == [["keep", "keep too"]]


def test_a_batch_of_which_all_is_forgotten_is_gone(sender: ScriptedSender) -> None:
    """Nothing is left to send."""
    number = sender.fact("x")
    sender.seal()
    sender.outbox.forget(_SERVER.url, "bank", _document(sender, number), now=sender.now)
    assert sender.outbox.batches() == ()
    assert sender.outbox.next_due(_SERVER, now=sender.now) is None


def test_a_fact_forgotten_on_its_way_is_deleted_when_it_has_arrived(sender: ScriptedSender) -> None:
    """The batch is not over until the document was deleted after its operation completed."""
    number = sender.fact("x")
    sender.fact("y")
    sender.seal()
    sender.send()
    sender.now += 1
    early = sender.claim(Step.POLL)
    document = _document(sender, number)
    assert sender.outbox.forget(_SERVER.url, "bank", document, now=sender.now) == Forgotten(0, 1)
    batch = sender.settle(early, Completed())
    assert batch.state is State.ACCEPTED
    poll = sender.claim(Step.POLL)
    assert [found.id for found in poll.documents if found.forgotten] == [document]
    assert sender.settle(poll, Completed(frozenset({document}))) != batch
    assert sender.outbox.batches(states={State.STORED}) != ()


def test_what_is_sealed_anew_leaves_out_what_was_forgotten(sender: ScriptedSender) -> None:
    """A half, a new id and a second life carry only what is still wanted."""
    numbers = [sender.fact(text) for text in ("a", "b", "c")]
    sender.seal()
    job = sender.claim(Step.SEND)
    documents = [document.id or "" for document in sender.outbox.documents(numbers[0])]
    sender.outbox.forget(_SERVER.url, "bank", documents[1], now=sender.now)
    sender.settle(job, Refused("bad"))
    assert [batch.items for batch in sender.outbox.batches()] == [1, 1]
    sender.store_all()
    assert sender.sent == [["a", "b", "c"], ["a"], ["c"]]


def test_a_half_of_which_all_is_forgotten_is_gone(sender: ScriptedSender) -> None:
    """The other half goes on alone."""
    number = sender.fact("a")
    sender.fact("b")
    sender.seal()
    for index, left in ((1, ["a"]), (0, [])):
        job = sender.claim(Step.SEND)
        sender.outbox.forget(_SERVER.url, "bank", sender.outbox.documents(number)[index].id or "", now=sender.now)
        sender.outbox.settle(job, Refused("bad") if index else Conflict("409"), now=sender.now, jitter=0.0)
        texts = [_items(sender.outbox.text(batch.id))[0]["content"] for batch in sender.outbox.batches()]
        assert texts == left


def test_a_dead_fact_that_is_forgotten_cannot_be_revived(sender: ScriptedSender) -> None:
    """Its text goes from the queue; of a dead batch the rest stays for the person."""
    numbers = [sender.fact("a"), sender.fact("b")]
    sender.seal()
    sender.send()
    sender.now += 1
    sender.step(Cancelled(), Step.POLL)
    document = sender.outbox.documents(numbers[0])[0].id or ""
    assert sender.outbox.forget(_SERVER.url, "bank", document, now=sender.now) == Forgotten(1, 0)
    assert sender.outbox.revive(numbers[0], now=sender.now)
    sender.step(Discarded(), Step.DISCARD)
    sender.send()
    assert sender.sent[-1] == ["b"]


def test_a_callers_request_is_not_touched_by_forgetting(sender: ScriptedSender) -> None:
    """What a program sends through us is its own."""
    number = sender.request("id-1", "doc")
    before = sender.outbox.text(number)
    assert sender.outbox.forget(_SERVER.url, "bank", "doc", now=sender.now) == Forgotten(0, 0)
    assert sender.outbox.text(number) == before
    assert not sender.outbox.documents(number)[0].forgotten


def test_a_fact_that_is_wanted_again_while_its_forgotten_copy_is_on_its_way_is_sent_anew(
    sender: ScriptedSender,
) -> None:
    """The copy is deleted when it has arrived, so the new one goes behind it, and is what stays."""
    number = sender.fact("x")
    sender.seal()
    sender.send()
    document = _document(sender, number)
    sender.outbox.forget(_SERVER.url, "bank", document, now=sender.now)
    again = sender.outbox.add_fact(_HERE, {"content": "x"}, now=sender.now, restore=True)
    assert (again.fresh, again.item != number) == (True, True)
    assert sender.outbox.add_fact(_HERE, {"content": "x"}, now=sender.now).item == again.item
    sender.seal()
    assert sender.nothing_due()
    sender.now += 1
    poll = sender.claim(Step.POLL)
    assert [found.forgotten for found in poll.documents] == [True]
    sender.settle(poll, Completed(frozenset({document})))
    sender.store()
    assert sender.sent == [["x"], ["x"]]
