"""Taking items in, on the disk and in memory alike."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.errors import InvalidInput, OutboxFull
from bankclient.store.outbox import Address, Destination, Document, Kind, Limits, Outbox, State, Step
from bankclient.store.outbox.answers import Cancelled
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


def test_a_fact_is_gathered_then_sealed(sender: ScriptedSender) -> None:
    """It is open for five seconds, then its bytes, its operation and its place are fixed."""
    number = sender.fact("the port is 4711", context="talk")
    batch = sender.batch(number)
    assert (batch.state, batch.kind, batch.items, batch.address) == (State.OPEN, Kind.FACT, 1, _HERE)
    assert batch.operation_id is None
    sender.now += 4.9
    assert sender.outbox.seal(now=sender.now) == 0
    sender.now += 0.1
    assert sender.outbox.seal(now=sender.now) == 1
    job = sender.claim(Step.SEND)
    assert json.loads(job.body) == {
        "items": [
            {
                "content": "the port is 4711",
                "context": "talk",
                "document_id": sender.outbox.documents(number)[0].id,
                "tags": ["project:a"],
            }
        ],
        "async": True,
        "operation_id": job.operation,
    }


def test_sixteen_facts_are_a_batch(sender: ScriptedSender) -> None:
    """Full batches are sealed at once; the rest waits for company."""
    numbers = [sender.fact(f"fact {number}") for number in range(35)]
    assert sender.outbox.seal(now=sender.now) == 2
    assert [batch.items for batch in sender.outbox.batches()] == [16, 16, 3]
    assert [batch.state for batch in sender.outbox.batches()] == [State.SEALED, State.SEALED, State.OPEN]
    found = sender.outbox.batch_of_item(numbers[20])
    assert found is not None
    assert found.id == numbers[16]


def test_a_flush_seals_what_is_open(sender: ScriptedSender) -> None:
    """Where it is asked for, nothing waits for company."""
    sender.fact("one")
    assert sender.outbox.seal(now=sender.now, everything=True) == 1
    assert sender.outbox.seal(now=sender.now, everything=True) == 0


def test_a_batch_never_mixes_destination_bank_or_tags(sender: ScriptedSender) -> None:
    """Facts that go to different places go in different requests; the order of tags is no difference."""
    places = [
        _HERE,
        Address(_SERVER, "bank", ("project:b",)),
        Address(_SERVER, "other bank", ("project:a",)),
        Address(Destination(_SERVER.url, "key-2"), "bank", ("project:a",)),
        Address(_OTHER, "bank", ("project:a",)),
        Address(_SERVER, "bank", ("project:a", "x")),
        Address(_SERVER, "bank", ("x", "project:a", "x")),
    ]
    for place in places:
        sender.fact("the same words", place)
        sender.fact("other words", place)
    assert [batch.items for batch in sender.outbox.batches()] == [2] * 6


def test_the_same_fact_is_queued_once(sender: ScriptedSender) -> None:
    """Said again while it is queued, whatever its context, it is the same; in another project it is another."""
    first = sender.outbox.add_fact(_HERE, {"content": "x", "context": "a"}, now=sender.now)
    again = sender.outbox.add_fact(_HERE, {"content": "x", "context": "b"}, now=sender.now)
    assert (first.fresh, again.fresh, again.item) == (True, False, first.item)
    sender.seal()
    sender.claim(Step.SEND)
    assert not sender.outbox.add_fact(_HERE, {"content": "x"}, now=sender.now).fresh
    elsewhere = Address(_SERVER, "bank", ("project:b",))
    assert sender.outbox.add_fact(elsewhere, {"content": "x"}, now=sender.now).fresh


def test_a_fact_that_was_stored_or_given_up_can_be_said_again(sender: ScriptedSender) -> None:
    """Uniqueness ends with the row: a later word is a new one, sent under the same document."""
    first = sender.fact("x")
    sender.store_all()
    second = sender.fact("x")
    assert second != first
    assert sender.outbox.documents(second) == sender.outbox.documents(first)
    sender.seal()
    sender.send()
    sender.now += 1
    assert sender.step(Cancelled()).state is State.DEAD
    assert sender.fact("x") not in {first, second}


@pytest.mark.parametrize("fields", [{}, {"content": ""}, {"content": " \n"}, {"content": None}, {"content": ["block"]}])
def test_a_fact_needs_text(sender: ScriptedSender, fields: dict[str, Any]) -> None:
    """What the server would refuse for want of text is refused before anything is kept."""
    with pytest.raises(InvalidInput, match="needs text"):
        sender.outbox.add_fact(_HERE, fields, now=sender.now)
    assert sender.outbox.batches() == ()


def test_one_document_is_never_twice_in_a_request(sender: ScriptedSender) -> None:
    """A document that the caller names may be written again while it is queued: behind, in a batch of its own."""
    sender.fact("version 1", document_id="notes")
    sender.fact("version 2", document_id="notes")
    sender.fact("something else")
    sender.fact("version 3", document_id="notes")
    sender.seal()
    assert [batch.items for batch in sender.outbox.batches()] == [1, 2, 1]


def test_a_piece_of_a_session_is_sealed_as_it_comes(sender: ScriptedSender) -> None:
    """It is one document, with the tags of its place, ready to be sent."""
    number = sender.session("s1.abc", "[role: user] hello")
    batch = sender.batch(number)
    assert (batch.state, batch.kind, batch.step) == (State.SEALED, Kind.SESSION, Step.SEND)
    assert _items(sender.outbox.text(number)) == [
        {"content": "[role: user] hello", "document_id": "s1.abc", "tags": ["project:a"]}
    ]
    with pytest.raises(InvalidInput, match="document_id"):
        sender.outbox.add_session(_HERE, {"content": "x"}, now=sender.now)


def test_a_callers_request_keeps_its_bytes_and_its_id(sender: ScriptedSender) -> None:
    """What a caller sent goes on as it came, and once: the same operation id again is the same request."""
    number = sender.request("id-1", "a", None)
    again = sender.outbox.add_request(
        _HERE,
        [{"content": "other"}],
        body=b"other",
        operation_id="id-1",
        now=sender.now,
    )
    assert (again.item, again.fresh) == (number, False)
    elsewhere = sender.request("id-1", "a", address=Address(_OTHER, "bank"))
    assert elsewhere != number
    job = sender.claim(Step.SEND)
    assert job.operation == "id-1"
    assert job.body == sender.outbox.text(number)
    assert [item["content"] for item in _items(job.body)] == ["text of a", "text of None"]
    found = sender.outbox.batch_of_operation(_SERVER.url, job.operation)
    assert found is not None
    assert (found.id, found.items, found.size) == (number, 2, len(job.body))
    with pytest.raises(InvalidInput, match="without items"):
        sender.outbox.add_request(_HERE, [], body=b"{}", operation_id="x", now=sender.now)


def test_text_that_is_no_unicode_is_kept_as_the_server_can_store_it(sender: ScriptedSender) -> None:
    """Lone surrogates and NUL neither stop an item nor spoil the hash by which it is recognised."""
    number = sender.session("s1.abc", "bad \ud83d and \x00")
    (document,) = sender.outbox.documents(number)
    assert document.content_hash == hashlib.sha256("bad \ufffd and ".encode()).hexdigest()
    assert _items(sender.outbox.text(number))[0]["content"].startswith("bad \ufffd")


def test_documents_say_what_the_server_will_tell(sender: ScriptedSender) -> None:
    """The hash is that of the text alone; none is known of blocks and of what is appended."""
    items: list[dict[str, Any]] = [
        {"content": "plain", "document_id": "a"},
        {"content": [{"type": "text", "text": "x"}], "document_id": "b"},
        {"content": "more", "document_id": "c", "update_mode": "append"},
        {"content": "free"},
    ]
    added = sender.outbox.add_request(_HERE, items, body=b"{}", operation_id="id", now=sender.now)
    assert sender.outbox.documents(added.item or 0) == (
        Document("a", hashlib.sha256(b"plain").hexdigest()),
        Document("b", None),
        Document("c", None),
        Document(None, hashlib.sha256(b"free").hexdigest()),
    )


@pytest.mark.parametrize("document", [5, ["a"], "\x00"])
def test_a_document_id_is_text(sender: ScriptedSender, document: object) -> None:
    """What the server would refuse or replace as an id is refused before anything is kept."""
    with pytest.raises(InvalidInput, match="`document_id` is text"):
        sender.fact("x", document_id=document)


@pytest.mark.parametrize("limits", [Limits(items=3), Limits(size=230)])
def test_a_full_outbox_refuses_and_counts(make_outbox: Callable[[Limits], Outbox], limits: Limits) -> None:
    """What is over the bound is refused by name and counted; what was taken stays, and room comes with storing."""
    sender = ScriptedSender(make_outbox(limits), _HERE)
    for number in range(3):
        sender.session(f"s.{number}")
    size = sum(batch.size for batch in sender.outbox.batches())
    refusal = rf"holds 3 items \({size} bytes\)"
    with pytest.raises(OutboxFull, match=refusal):
        sender.session("s.3")
    with pytest.raises(OutboxFull, match=refusal):
        sender.fact("a fact")
    with pytest.raises(OutboxFull, match=refusal):
        sender.request("id", "a")
    (loss,) = sender.outbox.overview(now=sender.now).losses
    assert (loss.reason, loss.items, loss.at) == ("refused: the outbox was full", 3, sender.now)
    assert len(sender.outbox.batches()) == 3
    sender.store_all()
    sender.session("s.3")
    assert len(sender.outbox.batches(states={State.SEALED})) == 1
