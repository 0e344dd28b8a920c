"""What each answer means for a batch and its destination."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.store.outbox.answers import (
    LONGEST_WAIT,
    Accepted,
    Answer,
    Busy,
    Cancelled,
    Closed,
    Completed,
    Conflict,
    Decision,
    Discarded,
    Evidence,
    Failed,
    NoAnswer,
    NotFound,
    Pending,
    Refused,
    Unexpected,
    decide,
)
from bankclient.store.outbox.model import Address, Batch, Destination, Document, Kind, Progress
from bankclient.store.outbox.states import Event, State, Step

_NOW = 1_000_000.0
_DAY = 86_400.0

_BATCH = Batch(
    id=1,
    kind=Kind.FACT,
    address=Address(Destination("http://h", "k"), "bank"),
    state=State.SENDING,
    step=Step.SEND,
    operation_id="ours",
    server_operation=None,
    obsolete=None,
    items=1,
    size=100,
    added=0.0,
    changed=0.0,
    until=0.0,
    why="",
    sent=1,
    accepted=None,
    handed_out=True,
    progress=Progress(),
)
"""A single fact that is being sent."""

_ANSWERS: tuple[Answer, ...] = (
    NoAnswer("gone"),
    Unexpected("500"),
    Closed("401"),
    Busy("503"),
    Refused("bad"),
    Conflict("in use"),
    Accepted("ours"),
    Discarded(),
    Pending(),
    Completed(),
    Failed("broken"),
    Cancelled(),
    NotFound({}),
)
_TO_ANY: set[type] = {NoAnswer, Unexpected, Closed, Busy, Refused, Conflict}
_TO: dict[Step, set[type]] = {
    Step.DISCARD: _TO_ANY | {Discarded},
    Step.SEND: _TO_ANY | {Accepted},
    Step.RETRY: _TO_ANY | {Accepted, NotFound},
    Step.POLL: _TO_ANY | {Pending, Completed, Failed, Cancelled, NotFound},
}


def _decide(
    batch: Batch,
    answer: Answer,
    *,
    tick: int = 100,
    proved: int = 0,
    holds: int = 0,
    now: float = _NOW,
    jitter: float = 0.0,
) -> Decision:
    return decide(batch, answer, Evidence(tick, proved, holds), now=now, jitter=jitter)


def test_every_answer_is_tried() -> None:
    """The rows below know every class of answer."""
    assert {type(answer) for answer in _ANSWERS} == set(get_args(Answer))


@pytest.mark.parametrize(("step", "answer"), list(itertools.product(Step, _ANSWERS)))
def test_an_answer_fits_its_step_or_is_a_mistake(step: Step, answer: Answer) -> None:
    """Each pair of step and answer has one meaning; a pair that cannot be is refused by name."""
    batch = replace(_BATCH, step=step)
    if type(answer) in _TO[step]:
        assert isinstance(_decide(batch, answer), Decision)
    else:
        with pytest.raises(ValueError, match=f"{type(answer).__name__} is no answer to the step {step}"):
            _decide(batch, answer)


@pytest.mark.parametrize("step", Step)
def test_without_an_answer_the_batch_and_its_destination_wait(step: Step) -> None:
    """Nobody answered: the same again later, and nothing else of that destination meanwhile."""
    decision = _decide(replace(_BATCH, step=step), NoAnswer("connection refused"), holds=3)
    assert (decision.event, decision.why) == (Event.DEFER, "connection refused")
    assert (decision.wait, decision.hold) == (2.0, 16.0)
    assert decision.progress == Progress(tries=1, unanswered=1)


@pytest.mark.parametrize("step", Step)
def test_what_is_not_named_is_tried_again_later(step: Step) -> None:
    """A 500 is the batch's own trouble: the others of the destination go on."""
    decision = _decide(replace(_BATCH, step=step), Unexpected("HTTP 500"), holds=3)
    assert (decision.event, decision.wait, decision.hold) == (Event.DEFER, 2.0, None)


def test_waits_double_up_to_a_bound_with_the_jitter_on_top() -> None:
    """Two seconds, doubled at each try, at most five minutes, and up to a quarter more."""
    waits, longest = [], []
    batch = _BATCH
    for _ in range(10):
        decision = _decide(batch, Unexpected("500"))
        waits.append(decision.wait)
        longest.append(_decide(batch, Unexpected("500"), jitter=1.0).wait)
        batch = replace(batch, progress=decision.progress)
    assert waits == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert longest == [wait * 1.25 for wait in waits]


@given(
    tries=st.integers(0, 10**9),
    answer=st.sampled_from(_ANSWERS),
    step=st.sampled_from(Step),
    jitter=st.floats(0, 1),
    retry_after=st.none() | st.floats(allow_nan=False),
)
def test_no_wait_is_endless_or_negative(
    tries: int, answer: Answer, step: Step, jitter: float, retry_after: float | None
) -> None:
    """Whatever the counts and whatever a server asks for, a wait is from nothing to the longest (and its jitter)."""
    counts = Progress(tries=tries, unanswered=tries, polls=tries, failures=tries, lost=tries)
    batch = replace(_BATCH, step=step, progress=counts)
    for told in (answer, Busy("busy", retry_after)):
        if type(told) in _TO[step]:
            decision = _decide(batch, told, holds=tries, jitter=jitter)
            assert 0 <= decision.wait <= 375
            assert 0 <= (decision.hold or 0) <= LONGEST_WAIT + 1


def test_an_answer_ends_a_row_of_silence() -> None:
    """What counts the tries without any answer begins anew with one."""
    silent = replace(_BATCH, progress=Progress(tries=4, unanswered=4))
    assert _decide(silent, NoAnswer("reset")).progress.unanswered == 5
    assert _decide(silent, Unexpected("500")).progress == Progress(tries=5, unanswered=0)
    assert _decide(silent, Closed("401")).progress == Progress(tries=4, unanswered=0)


@pytest.mark.parametrize("step", Step)
def test_a_closed_destination_holds_everything_and_blames_nothing(step: Step) -> None:
    """A wrong key, a missing route, a login page: all of it waits, longer each time, and none of it is at fault."""
    batch = replace(_BATCH, step=step, progress=Progress(tries=2, refused=7))
    decision = _decide(batch, Closed("401: Invalid API key"), holds=2)
    assert decision == Decision(Event.HOLD, batch.progress, "401: Invalid API key", hold=8.0)


@pytest.mark.parametrize(
    ("asked", "hold"), [(None, 2.0), (0.0, 0.0), (1.5, 1.5), (3600.0, 600.0), (-5.0, 0.0), (float("inf"), 600.0)]
)
@pytest.mark.parametrize("step", Step)
def test_a_busy_server_is_not_asked_before_its_time(step: Step, asked: float | None, hold: float) -> None:
    """Retry-After is kept for the whole destination, up to ten minutes; without it the usual waits stand."""
    decision = _decide(replace(_BATCH, step=step), Busy("503", asked))
    assert (decision.event, decision.hold, decision.progress) == (Event.HOLD, hold, Progress())


def test_a_refused_batch_is_halved() -> None:
    """One of several items must be at fault, so each half is judged alone, with nothing held against it."""
    batch = replace(_BATCH, items=5, progress=Progress(tries=3, refused=2, renamed=True))
    assert _decide(batch, Refused("bad item")) == Decision(Event.HALVE, Progress(), "bad item")


def test_a_callers_batch_is_refused_as_a_whole() -> None:
    """It is never halved: it waits like a single item."""
    decision = _decide(replace(_BATCH, items=5, kind=Kind.CALLER), Refused("bad item"))
    assert (decision.event, decision.progress.refused) == (Event.DEFER, 100)


def test_a_refused_item_waits_until_others_of_its_kind_went_through() -> None:
    """Only a success of its kind after its last refusal shows that the item is at fault, and not the server."""
    first = _decide(_BATCH, Refused("too odd"), tick=10, proved=9)
    assert (first.event, first.wait, first.progress.refused) == (Event.DEFER, 2.0, 10)
    waiting = replace(_BATCH, progress=first.progress)
    again = _decide(waiting, Refused("too odd"), tick=20, proved=9)
    assert (again.event, again.wait, again.progress.refused) == (Event.DEFER, 4.0, 20)
    assert _decide(waiting, Refused("too odd"), tick=20, proved=11).event is Event.KILL
    assert _decide(replace(_BATCH, progress=again.progress), Refused("too odd"), proved=19).event is Event.DEFER


@pytest.mark.parametrize("step", [Step.DISCARD, Step.RETRY, Step.POLL])
def test_a_refusal_of_a_question_is_no_fault_of_the_item(step: Step) -> None:
    """Only what the server says to the bytes themselves counts against them."""
    decision = _decide(replace(_BATCH, step=step, items=5), Refused("no"), proved=99)
    assert (decision.event, decision.progress.refused) == (Event.DEFER, None)


def test_a_conflict_is_worth_one_new_id() -> None:
    """The id was taken: once another is drawn, the second time the batch is given up with the server's reason."""
    first = _decide(_BATCH, Conflict("id in use"))
    assert (first.event, first.progress.renamed) == (Event.RENAME, True)
    second = _decide(replace(_BATCH, progress=first.progress), Conflict("id in use"))
    assert (second.event, second.why) == (Event.KILL, "id in use")


def test_a_callers_id_is_its_own() -> None:
    """No other id is drawn for it, so a conflict ends it."""
    assert _decide(replace(_BATCH, kind=Kind.CALLER), Conflict("id in use")).event is Event.KILL


def test_an_accepted_batch_is_polled_soon() -> None:
    """Its waits begin anew; the operation that the server named is the one to ask for."""
    decision = _decide(replace(_BATCH, progress=Progress(tries=5, polls=9)), Accepted("theirs"))
    assert decision == Decision(Event.ACCEPT, Progress(), wait=0.5, server_operation="theirs")


def test_polls_become_sparser_for_as_long_as_it_takes() -> None:
    """A pending operation is asked for after twice the time, at most each five minutes, and is never sent again."""
    batch, waits = replace(_BATCH, step=Step.POLL), list[float]()
    for _ in range(1000):
        decision = _decide(batch, Pending(), now=_NOW + sum(waits))
        assert decision.event is Event.DEFER
        waits.append(decision.wait)
        batch = replace(batch, progress=decision.progress)
    assert waits[:11] == [0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert sum(waits) > 3 * _DAY


def test_what_was_completed_is_stored() -> None:
    """The operation was seen completed: that alone is stored."""
    assert _decide(replace(_BATCH, step=Step.POLL), Completed()).event is Event.COMPLETE


def test_a_forgotten_document_is_deleted_before_its_batch_is_over() -> None:
    """While one was not deleted after the operation completed, the batch is asked for again at once."""
    batch = replace(_BATCH, step=Step.POLL)
    evidence = Evidence(1, documents=(Document("a", "1"), Document("b", "2", forgotten=True)))
    for deleted, event in ((frozenset[str](), Event.DEFER), (frozenset({"b"}), Event.COMPLETE)):
        decision = decide(batch, Completed(deleted), evidence, now=_NOW, jitter=0.0)
        assert (decision.event, decision.wait) == (event, 0.0)


def _failing(batch: Batch, *, failures: int, days: float, failed: int = 50) -> Batch:
    progress = Progress(failures=failures, failed=failed, failing_since=_NOW - days * _DAY)
    return replace(batch, step=Step.POLL, progress=progress)


def test_a_failed_operation_is_tried_again_by_the_server() -> None:
    """It is not sent anew: the server is asked to retry it, after waits that double."""
    batch, waits = replace(_BATCH, step=Step.POLL), list[float]()
    for _ in range(4):
        decision = _decide(batch, Failed("no embeddings"))
        assert (decision.event, decision.why) == (Event.FAIL, "no embeddings")
        waits.append(decision.wait)
        batch = replace(batch, progress=decision.progress)
    assert waits == [2, 4, 8, 16]
    assert batch.progress == Progress(failures=4, failed=100, failing_since=_NOW)


@pytest.mark.parametrize(
    ("failures", "days", "proved", "event"),
    [
        (6, 1.0, 51, Event.KILL),
        (5, 1.0, 51, Event.FAIL),
        (6, 0.9, 51, Event.FAIL),
        (6, 1.0, 50, Event.FAIL),
        (600, 30.0, 50, Event.FAIL),
    ],
)
def test_a_failing_item_is_dead_when_all_speaks_against_it(
    failures: int, days: float, proved: int, event: Event
) -> None:
    """Five retries, a day, and others of its kind stored since its last failure: short of one, it is tried again."""
    assert _decide(_failing(_BATCH, failures=failures, days=days), Failed("broken"), proved=proved).event is event


def test_a_failing_batch_is_halved_before_anything_in_it_dies() -> None:
    """The good items of a batch do not die with the one that fails; a caller's batch is not taken apart."""
    failing = _failing(replace(_BATCH, items=4), failures=6, days=2)
    assert _decide(failing, Failed("broken"), proved=99) == Decision(Event.HALVE, Progress(), "broken")
    assert _decide(replace(failing, kind=Kind.CALLER), Failed("broken"), proved=99).event is Event.KILL


@pytest.mark.parametrize("answer", [Conflict("completed"), NotFound({})])
def test_a_retry_that_comes_too_late_looks_again(answer: Answer) -> None:
    """The operation is in another state than it was seen in: how it stands is asked at once."""
    batch = replace(_BATCH, step=Step.RETRY, server_operation="theirs")
    decision = _decide(batch, answer)
    assert (decision.event, decision.wait, decision.server_operation) == (Event.ACCEPT, 0.0, "theirs")


def test_a_retry_that_was_taken_is_polled() -> None:
    """The failures so far are not forgotten."""
    decision = _decide(replace(_BATCH, step=Step.RETRY, progress=Progress(failures=3)), Accepted("ours"))
    assert (decision.event, decision.wait, decision.progress.failures) == (Event.ACCEPT, 0.5, 3)


def test_a_cancelled_operation_is_given_up() -> None:
    """Somebody cancelled it on purpose."""
    decision = _decide(replace(_BATCH, step=Step.POLL), Cancelled())
    assert (decision.event, decision.why) == (Event.KILL, "its operation was cancelled on the server")


def test_an_operation_that_cannot_be_discarded_yet_is_tried_again() -> None:
    """Nothing is sent under the new id while the old operation is not over."""
    batch = replace(_BATCH, step=Step.DISCARD, progress=Progress(tries=1))
    assert _decide(batch, Conflict("still pending")).event is Event.DEFER
    done = _decide(batch, Discarded())
    assert (done.event, done.progress.tries) == (Event.DISCARDED, 0)


_OURS = (Document("a", "hash-a"), Document("b", "hash-b"))


@pytest.mark.parametrize(
    ("kind", "documents", "answer", "event", "why"),
    [
        (Kind.FACT, _OURS, NotFound(None), Event.KILL, "bank deleted"),
        (Kind.FACT, _OURS, NotFound({"a": "hash-a", "b": "hash-b"}), Event.COMPLETE, ""),
        (Kind.FACT, _OURS, NotFound({"a": "hash-a"}), Event.RESEND, "neither its operation nor its text"),
        (Kind.FACT, _OURS, NotFound({"a": "hash-a", "b": "other"}), Event.RESEND, "neither its operation"),
        (Kind.FACT, _OURS, NotFound({"a": "hash-a", "b": None}), Event.RESEND, "neither its operation"),
        (Kind.FACT, _OURS, NotFound({}), Event.RESEND, "neither its operation"),
        (Kind.CALLER, _OURS, NotFound({}), Event.RESEND, "neither its operation"),
        (Kind.CALLER, (Document(None, "hash-a"),), NotFound({}), Event.KILL, "perhaps stored"),
        (Kind.CALLER, (Document("a", None),), NotFound({"a": "x"}), Event.KILL, "perhaps stored"),
        (Kind.CALLER, (Document(None, None),), NotFound(None), Event.KILL, "bank deleted"),
    ],
)  # fmt: skip
def test_a_lost_operation_is_judged_by_its_documents(
    kind: Kind, documents: tuple[Document, ...], answer: NotFound, event: Event, why: str
) -> None:
    """Stored where all texts are there; sent anew where they are not; given up where that could store it twice."""
    batch = replace(_BATCH, kind=kind, step=Step.POLL)
    decision = decide(batch, answer, Evidence(1, documents=documents), now=_NOW, jitter=0.0)
    assert decision.event is event
    assert why in decision.why


def test_a_server_that_keeps_losing_operations_is_asked_ever_less() -> None:
    """Sending anew waits longer each time, acceptance between or not."""
    batch, waits = replace(_BATCH, step=Step.POLL), list[float]()
    for _ in range(3):
        lost = decide(batch, NotFound({}), Evidence(1, documents=_OURS), now=_NOW, jitter=0.0)
        waits.append(lost.wait)
        taken = _decide(replace(batch, step=Step.SEND, progress=lost.progress), Accepted("ours"))
        batch = replace(batch, progress=taken.progress)
    assert waits == [2, 4, 8]


@pytest.mark.parametrize(("left", "event"), [({"b": "hash-b"}, Event.DEFER), ({}, Event.COMPLETE)])
def test_a_lost_operation_does_not_bring_back_what_was_forgotten(left: dict[str, str], event: Event) -> None:
    """A forgotten document that is still there is to be deleted; one that is gone is as it should be."""
    documents = (Document("a", "hash-a"), Document("b", "hash-b", forgotten=True))
    answer = NotFound({"a": "hash-a", **left})
    batch = replace(_BATCH, step=Step.POLL)
    assert decide(batch, answer, Evidence(1, documents=documents), now=_NOW, jitter=0.0).event is event
