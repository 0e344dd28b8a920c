"""Working the outbox off against a server with the real one's identity rules, under every kind of fault."""

from __future__ import annotations

import asyncio
import email.utils
from typing import TYPE_CHECKING

import pytest

from bankclient.store.outbox import Kind, State, Step
from bankclient.store.outbox.states import Event
from bankclient.testing.answers import Cut, Reply, Reset, gateway_page
from bankclient.testing.fake_hindsight import lost_reply, turned_away, twice
from bankclient.testing.model_server import OperationState

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.errors import CallError
    from bankclient.store.outbox import Job, Lane
    from bankclient.store.outbox.answers import Answer, Decision
    from bankclient.testing.fake_hindsight import FakeHindsight, Fault
    from tests.flusher.conftest import Rig

FULL = Reply(503, json={"detail": "full"})
NO = Reply(401, json={"detail": "Authentication failed: Invalid API key"})


def well(act: Callable[[], Reply]) -> Reply:
    """Let nothing go wrong."""
    return act()


class Told:
    """A watcher that hands on what it is told of steps."""

    def __init__(self, tell: Callable[[Job, Decision], object]) -> None:
        self.tell = tell

    def failed(self, job: Job, error: CallError) -> None:
        """Pass it over."""

    def settled(self, job: Job, answer: Answer, decision: Decision) -> None:
        """Hand it on."""
        del answer
        self.tell(job, decision)

    def keyless(self, lane: Lane) -> None:
        """Refuse: every key is known."""
        raise AssertionError(lane)


def test_what_is_queued_is_stored(rig: Rig) -> None:
    """Facts and pieces are sent, confirmed and gone from the queue."""
    rig.fact("one")
    rig.fact("two")
    rig.piece("three")
    rig.flush()
    assert rig.fake.texts("bank") == ["one", "three", "two"]
    assert rig.states() == {State.STORED: 3}
    assert rig.fake.count("retain") == 2


def test_nothing_queued_is_nothing_asked(rig: Rig) -> None:
    """An empty outbox ends at once, without a request, as does one whose batches are all stored."""
    rig.flush()
    rig.fact("one")
    rig.flush()
    before = len(rig.fake.requests)
    rig.flush()
    assert (len(rig.fake.requests), rig.clock.slept) == (before, rig.clock.slept)


@pytest.mark.parametrize("fault", [lost_reply, twice, turned_away(Reset()), turned_away(gateway_page())])
@pytest.mark.parametrize("times", [1, 3])
def test_a_reply_that_is_lost_and_one_that_comes_twice(rig: Rig, fault: Fault, times: int) -> None:
    """What may or may not have arrived is sent again, the same bytes under the same id, and is there once."""
    rig.piece("one")
    rig.fact("two")
    rig.fake.fail("retain", *[fault] * times)
    rig.flush(patience=60)
    assert rig.fake.texts("bank") == ["one", "two"]
    sent = [body["operation_id"] for kind, body in rig.fake.requests if kind == "retain"]
    assert len(set(sent)) == 2
    assert sorted(text for _, text in rig.fake.model.banks["bank"].writes) == ["one", "two"]


def test_a_request_that_timed_out_is_the_same_in_the_next_flush(rig: Rig) -> None:
    """The server has it, the first process never heard; what the second sends is known to the server."""
    rig.piece("one")
    rig.fake.fail("retain", lost_reply)
    rig.flush(patience=0)
    assert rig.states() == {State.WAITING: 1}
    rig.clock.advance(60)
    rig.flush()
    first, second = (body for kind, body in rig.fake.requests if kind == "retain")
    assert first == second
    assert (rig.states(), len(rig.fake.model.banks["bank"].writes)) == ({State.STORED: 1}, 1)


@pytest.mark.parametrize("fault", [lost_reply, turned_away(Reset()), turned_away(Cut(Reply(json={})))])
def test_a_poll_that_is_lost_is_asked_again(rig: Rig, fault: Fault) -> None:
    """A question changes nothing, and the batch is stored when one is answered."""
    rig.piece("one")
    rig.fake.fail("get_operation", fault)
    rig.flush()
    assert rig.states() == {State.STORED: 1}
    assert rig.fake.count("retain") == 1


def test_a_server_that_is_away_is_tried_once_more_and_then_left(rig: Rig) -> None:
    """Within its patience a flush tries again; then it ends, long before its time is over, and everything waits."""
    for text in "abc":
        rig.piece(text)
    rig.fake.fail("retain", *[turned_away(Reset())] * 50)
    rig.flush()
    assert rig.fake.count("retain") == 2
    assert rig.clock.slept == [2.0]
    assert rig.states() == {State.WAITING: 1, State.SEALED: 2}
    (lane,) = rig.outbox.overview(now=rig.clock.now()).lanes
    assert (lane.why, lane.until > rig.clock.now()) == ("the connection broke", True)


def test_a_flush_that_has_time_keeps_trying(rig: Rig) -> None:
    """With more patience it goes on as long as a next try fits into its time."""
    rig.piece("a")
    rig.fake.fail("retain", *[turned_away(Reset())] * 50)
    rig.flush(timeout=20, patience=20)
    assert rig.clock.slept == [2.0, 4.0, 8.0]
    assert rig.fake.count("retain") == 4


# One that the server will not have


@pytest.mark.parametrize("status", [400, 413, 422])
def test_one_bad_fact_among_good_ones(rig: Rig, status: int) -> None:
    """The others are stored in the same flush, alone or in company; the bad one is given up with its reason."""
    texts = [f"fact {number}" for number in range(11)]
    for text in texts:
        rig.fact(text)
    refuse(rig.fake, status, "fact 6")
    rig.flush(patience=0)
    good = [text for text in texts if text != "fact 6"]
    assert rig.fake.texts("bank") == sorted(good)
    assert rig.states() == {State.STORED: 10, State.WAITING: 1}
    rig.clock.advance(60)
    rig.flush()
    assert rig.states() == {State.STORED: 10, State.DEAD: 1}
    (dead,) = rig.outbox.batches(states=[State.DEAD])
    assert dead.why.startswith(f"answered {status}: ")
    assert "fact 6" not in dead.why


def test_the_last_bad_fact_waits_until_another_went_well(rig: Rig) -> None:
    """Before that it may be the server that takes nothing, and not the fact that is bad."""
    number = rig.fact("bad")
    refuse(rig.fake, 422, "bad")
    for _ in range(3):
        rig.flush(patience=0)
        rig.clock.advance(600)
    assert rig.batch(number).state is State.WAITING
    rig.fact("good")
    rig.flush()
    rig.clock.advance(600)
    rig.flush()
    assert rig.batch(number).state is State.DEAD


def refuse(fake: FakeHindsight, status: int, text: str) -> None:
    """Let the server refuse every request that holds the text, in its own shape, which echoes it."""

    def answer(act: Callable[[], Reply]) -> Reply:
        body = fake.requests[-1][1]
        if any(item["content"] == text for item in body["items"]):
            return Reply(status, json={"detail": [{"loc": ["body"], "msg": "is bad", "input": body}]})
        return act()

    fake.fail("retain", *[answer] * 1000)


@pytest.mark.parametrize("reply", [Reply(500, json={"detail": "no"}), gateway_page(400), gateway_page(413)])
def test_one_batch_that_never_works_holds_up_no_other(rig: Rig, reply: Reply) -> None:
    """A 500, or a gateway's refusal, may be anybody's fault: that batch waits and the others go on."""
    poison = rig.piece("poison")
    for text in "bcde":
        rig.piece(text)
    rig.fake.fail("retain", turned_away(reply))
    rig.flush(patience=0)
    assert rig.fake.texts("bank") == ["b", "c", "d", "e"]
    assert (rig.batch(poison).state, rig.batch(poison).progress.tries) == (State.WAITING, 1)


def test_an_id_that_is_in_use_is_changed_once(rig: Rig) -> None:
    """After a 409 the same text goes under a new id; after a second one it is given up."""
    first = rig.piece("one")
    rig.fake.fail("retain", turned_away(Reply(409, json={"detail": "already in use"})))
    rig.flush()
    assert rig.batch(first).state is State.STORED
    one, two = (body["operation_id"] for kind, body in rig.fake.requests if kind == "retain")
    assert one != two
    second = rig.piece("two")
    rig.fake.fail("retain", *[turned_away(Reply(409, json={"detail": "already in use"}))] * 2)
    rig.flush()
    assert (rig.batch(second).state, rig.batch(second).why) == (State.DEAD, "answered 409: already in use")


# A destination that takes nothing


@pytest.mark.parametrize(
    "reply",
    [
        NO,
        Reply(402, json={"detail": "pay"}),
        Reply(403, json={"detail": "no"}),
        Reply(404, json={"detail": "Not Found"}),
        Reply(302, headers={"location": "http://login.invalid"}),
        Reply(200, body=b"<html>", headers={"content-type": "text/html"}),
        Reply(200, json={"name": "another API"}),
        gateway_page(403),
        gateway_page(404),
    ],
)
def test_a_destination_that_takes_nothing_waits_as_a_whole(rig: Rig, reply: Reply) -> None:
    """Nothing is given up, nothing else is tried there, and why is told; when it is mended everything goes."""
    for text in "abc":
        rig.piece(text)
    rig.fake.fail("retain", *[turned_away(reply)] * 2)
    rig.flush(patience=0)
    assert rig.fake.count("retain") == 1
    assert rig.states() == {State.SEALED: 3}
    (lane,) = rig.outbox.overview(now=rig.clock.now()).lanes
    assert str(reply.status) in lane.why or "Hindsight" in lane.why or "cannot read" in lane.why
    rig.flush(patience=10)
    assert rig.states() == {State.STORED: 3}


@pytest.mark.parametrize(
    ("asked", "wait"), [("2", 2.0), ("3600", 600.0), ("-1", 2.0), ("soon", 2.0), (None, 2.0), ("0.5", 0.5)]
)
@pytest.mark.parametrize("status", [429, 503])
def test_nothing_is_sent_before_the_server_wants_it(rig: Rig, status: int, asked: str | None, wait: float) -> None:
    """The time is kept with the queue: the next flush knows it; no newer batch goes ahead of the one turned away."""
    rig.piece("first")
    headers = {} if asked is None else {"retry-after": asked}
    rig.fake.fail("retain", turned_away(Reply(status, json={"detail": "full"}, headers=headers)))
    rig.flush(timeout=1, patience=0)
    rig.piece("second")
    (lane,) = rig.outbox.overview(now=rig.clock.now()).lanes
    assert lane.until == pytest.approx(rig.clock.now() + wait)
    before = rig.fake.count("retain")
    rig.flush(timeout=wait / 2, patience=wait)
    assert rig.fake.count("retain") == before
    rig.clock.advance(wait)
    rig.flush()
    sent = [body["items"][0]["content"] for kind, body in rig.fake.requests if kind == "retain"]
    assert sent == ["first", "first", "second"]


def test_a_date_to_wait_for_is_a_time_too(rig: Rig) -> None:
    """Retry-After may be an HTTP date, by the client's own clock."""
    rig.piece("first")
    moment = email.utils.formatdate(4e9, usegmt=True)
    rig.fake.fail("retain", turned_away(Reply(503, json={"detail": "full"}, headers={"retry-after": moment})))
    rig.flush(patience=0)
    (lane,) = rig.outbox.overview(now=rig.clock.now()).lanes
    assert lane.until == rig.clock.now() + 600


# What becomes of an operation


def test_an_operation_is_waited_for(rig: Rig) -> None:
    """While the server works on it a flush goes on asking, ever more sparsely, and never sends it again."""
    rig.piece("slow")
    rig.fake.is_busy = True
    rig.flush(timeout=60)
    assert rig.states() == {State.ACCEPTED: 1}
    assert rig.clock.slept == [0.5, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
    rig.fake.is_busy = False
    rig.clock.advance(86_400)
    rig.flush()
    assert rig.states() == {State.STORED: 1}
    assert rig.fake.count("retain") == 1


def test_many_questions_without_an_answer_are_one_try(rig: Rig) -> None:
    """They are asked at once, so the pause after them is that of one; what was answered meanwhile counts."""
    for number in range(20):
        rig.piece(f"{number:02}")
    rig.flush(until=lambda: rig.states().get(State.ACCEPTED) == 20)
    rig.fake.fail("get_operation", *[well] * 3, *[turned_away(Reset())] * 40)
    rig.clock.advance(1)
    rig.flush(patience=0)
    assert rig.fake.count("get_operation") == 16
    assert rig.states() == {State.STORED: 3, State.ACCEPTED: 17}
    (lane,) = rig.outbox.overview(now=rig.clock.now()).lanes
    assert lane.until == rig.clock.now() + 2
    rig.fake.faults.clear()
    rig.flush()
    assert rig.states() == {State.STORED: 20}


def test_an_operation_that_fails_for_minutes_while_a_newer_one_of_its_document_waits(rig: Rig) -> None:
    """The server is asked to try again; the newer text is sent when the older is stored, and is what stays."""
    old = rig.fact("old text", document_id="notes")
    rig.outbox.seal(now=rig.clock.now(), everything=True)
    new = rig.fact("new text", document_id="notes")
    rig.fake.model.failing.add("old text")
    for _ in range(5):
        rig.flush(patience=0)
        rig.clock.advance(300)
    assert rig.batch(old).progress.failures == 5
    assert rig.batch(new).state is State.SEALED
    assert rig.fake.count("retain") == 1
    rig.fake.model.failing.clear()
    rig.flush()
    rig.flush()
    assert rig.states() == {State.STORED: 2}
    assert rig.fake.model.banks["bank"].writes == [("notes", "old text"), ("notes", "new text")]


def test_a_failed_operation_is_given_up_after_a_day_if_others_go(rig: Rig) -> None:
    """Of a batch of several, what is well is stored; the record of the failed operation is deleted before."""
    rig.fact("bad")
    rig.fact("good")
    rig.fake.model.failing.add("bad")
    for number in range(14):
        rig.flush(patience=0)
        rig.fact(f"another {number}")
        rig.flush(patience=0)
        rig.clock.advance(20_000)
    rig.flush()
    assert "good" in rig.fake.texts("bank")
    (dead,) = rig.outbox.batches(states=[State.DEAD])
    assert (dead.items, dead.why) == (1, "RuntimeError: it failed")
    assert rig.fake.count("delete_operation") == 2  # for each half, whichever comes first


def test_a_cancelled_operation_is_given_up(rig: Rig) -> None:
    """Somebody wanted it so."""
    number = rig.piece("unwanted")
    rig.fake.is_busy = True
    rig.flush(timeout=2)
    rig.fake.model.end(rig.batch(number).operation_id or "", OperationState.CANCELLED)
    rig.clock.advance(60)
    rig.flush()
    assert rig.batch(number).why == "its operation was cancelled on the server"


def test_a_bank_that_was_deleted_stays_deleted(rig: Rig) -> None:
    """What was accepted for it and never seen stored is given up, and makes no new bank."""
    number = rig.piece("one")
    rig.fake.is_busy = True
    rig.flush(timeout=2)
    rig.fake.model.delete_bank("bank")
    rig.clock.advance(60)
    rig.flush()
    assert (rig.batch(number).state, rig.batch(number).why) == (State.DEAD, "bank deleted")
    assert rig.fake.model.banks == {}


@pytest.mark.parametrize("is_written", [True, False])
def test_an_operation_that_the_server_forgot(rig: Rig, *, is_written: bool) -> None:
    """Its documents tell whether it was stored; what is not there is sent again."""
    number = rig.piece("one")
    rig.fake.is_busy = True
    rig.flush(timeout=2)
    if is_written:
        rig.fake.model.work()
    rig.fake.model.lose(rig.batch(number).operation_id or "")
    rig.fake.is_busy = False
    rig.clock.advance(60)
    rig.flush()
    rig.clock.advance(60)
    rig.flush()
    assert rig.states() == {State.STORED: 1}
    assert rig.fake.count("retain") == (1 if is_written else 2)
    assert rig.fake.texts("bank") == ["one"]


def test_a_callers_request_that_may_be_stored_is_not_sent_again(rig: Rig) -> None:
    """Without a document id nothing tells whether it arrived: it is given up and says so."""
    number = rig.request({"content": "loose"})
    rig.flush(until=lambda: rig.batch(number).state is State.ACCEPTED)
    rig.fake.model.lose(rig.batch(number).operation_id or "")
    rig.clock.advance(60)
    rig.flush()
    assert rig.batch(number).why == "perhaps stored: the server knows its operation no more"
    assert rig.fake.count("retain") == 1


@pytest.mark.parametrize("version", ["0.4.22", "0.8.5"])
def test_a_server_that_knows_no_operation_ids(rig: Rig, version: str) -> None:
    """Ours may be sent again, for they replace a document; a caller's loose text is sent once and then given up."""
    rig.fake.version = version
    rig.piece("piece")
    rig.fact("fact")
    loose = rig.request({"content": "loose"})
    rig.fake.fail("retain", lost_reply, well, well, lost_reply)
    rig.flush(patience=120)
    assert rig.fake.texts("bank") == ["fact", "loose", "piece"]
    assert rig.batch(loose).state is State.DEAD
    assert rig.batch(loose).why.startswith(f"perhaps stored: the server ({version})")
    assert rig.states() == {State.STORED: 2, State.DEAD: 1}


def test_what_was_forgotten_on_its_way_is_deleted_when_it_has_arrived(rig: Rig) -> None:
    """The document goes from the server once its operation has completed, also where deleting takes two tries."""
    rig.fact("keep this")
    rig.fact("forget this", document_id="secret")
    rig.fake.is_busy = True
    rig.flush(timeout=2)
    assert rig.outbox.forget(rig.destination.url, "bank", "secret", now=rig.clock.now()).in_flight == 1
    rig.fake.is_busy = False
    rig.fake.fail("delete_document", turned_away(FULL))
    rig.clock.advance(60)
    rig.flush(patience=60)
    assert rig.fake.texts("bank") == ["keep this"]
    assert rig.fake.count("delete_document") == 2
    assert rig.states() == {State.STORED: 2}


# Order, company, clocks


def test_what_is_sent_goes_one_at_a_time_and_in_order(rig: Rig) -> None:
    """The server gets everything as it was acknowledged; the questions come after it."""
    texts = [f"{number:02}" for number in range(40)]
    for text in texts:
        rig.piece(text)
    rig.flush()
    kinds = [kind for kind, _ in rig.fake.requests]
    assert [body["items"][0]["content"] for kind, body in rig.fake.requests if kind == "retain"] == texts
    assert kinds == ["retain"] * 40 + ["get_operation"] * 40


def test_six_turns_of_one_session_are_six_turns_in_the_bank(rig: Rig) -> None:
    """Each piece is a document of its own, so that no later one takes the place of an earlier one."""
    for number in range(0, 6, 2):
        rig.piece(f"turn {number}, turn {number + 1}", document=f"session.{number}")
        rig.flush()
    held = rig.fake.model.banks["bank"].documents
    assert [held[f"session.{number}"] for number in (0, 2, 4)] == [f"turn {n}, turn {n + 1}" for n in (0, 2, 4)]


def test_a_request_of_somebody_else_is_sent_as_it_came(rig: Rig) -> None:
    """It is never halved or renamed, and waits where it is refused."""
    number = rig.request({"content": "bad"}, {"content": "good"})
    operation = rig.batch(number).operation_id
    refuse(rig.fake, 422, "bad")
    rig.flush(patience=0)
    batch = rig.batch(number)
    assert (batch.kind, batch.state, batch.items, batch.operation_id) == (Kind.CALLER, State.WAITING, 2, operation)


@pytest.mark.parametrize("step", [-7200.0, 7200.0, -10 * 365 * 86_400.0])
def test_a_clock_that_steps_neither_loses_nor_doubles_anything(rig: Rig, step: float) -> None:
    """Whatever was waited for by the old clock is due within ten minutes by the new one."""
    rig.piece("one")
    rig.fake.fail("retain", lost_reply)
    rig.flush(patience=0)
    rig.clock.advance(step)
    rig.piece("two")
    rig.flush(timeout=700, patience=700)
    assert rig.states() == {State.STORED: 2}
    assert sorted(rig.fake.model.banks["bank"].writes) == [("s.one", "one"), ("s.two", "two")]


def test_until_ends_a_flush_sooner(rig: Rig) -> None:
    """Who waits for one thing need not wait for the others."""
    rig.fake.is_busy = True
    number = rig.piece("one")
    rig.piece("two")
    rig.flush(until=lambda: rig.batch(number).state is State.ACCEPTED)
    assert rig.states() == {State.ACCEPTED: 1, State.SEALED: 1}


def test_a_flusher_that_runs_for_ever_takes_what_comes(rig: Rig) -> None:
    """It seals what is old enough, is woken for what is new, and ends when it is cancelled, at once."""
    stored: asyncio.Queue[Job] = asyncio.Queue()

    def tell(job: Job, decision: Decision) -> None:
        if decision.event is Event.COMPLETE:
            stored.put_nowait(job)

    rig.watcher = Told(tell)
    rig.fact("old")
    flusher = rig.flusher()

    async def live() -> None:
        running = asyncio.create_task(flusher.run())
        async with asyncio.timeout(30):
            await stored.get()
            rig.piece("new")
            flusher.wake()
            await stored.get()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(live())
    assert rig.fake.texts("bank") == ["new", "old"]


def test_the_steps_are_told(rig: Rig) -> None:
    """Who watches is told of each step with what followed from it."""
    told: list[tuple[Step, Event]] = []
    rig.watcher = Told(lambda job, decision: told.append((job.step, decision.event)))
    rig.piece("one")
    rig.flush()
    assert told == [(Step.SEND, Event.ACCEPT), (Step.POLL, Event.COMPLETE)]
