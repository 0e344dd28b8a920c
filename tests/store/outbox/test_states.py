"""The life of a batch, walked whole."""

from __future__ import annotations

import itertools

import pytest

from bankclient.store.outbox.states import TABLE, Effect, Event, IllegalMove, State, Step, move

# One line a state, one column an event; "." cannot happen, "gone" takes the row away.
_EVENTS = "seal claim lapse accept defer hold discarded rename halve fail resend complete kill revive drop"
_GRID = """
open     sealed .       .      .        .        .        .      .      .      .       .       .      .    open     gone
sealed   .      sending .      .        waiting  sealed   sealed .      .      .       .       .      .    sealed   gone
sending  .      .       sealed accepted waiting  sealed   .      sealed sealed .       .       .      dead .        gone
waiting  .      sending .      accepted waiting  waiting  sealed .      .      .       .       .      .    waiting  gone
accepted .      .       .      .        accepted accepted .      .      sealed waiting waiting stored dead accepted gone
stored   .      .       .      .        .        .        .      .      .      .       .       .      .    .        .
dead     .      .       .      .        .        .        .      .      .      .       .       .      .    sealed   gone
"""
_EXPECTED = {
    (State(state), Event(event)): target
    for state, *targets in (line.split() for line in _GRID.split("\n") if line)
    for event, target in zip(_EVENTS.split(), targets, strict=True)
}


def test_the_grid_names_every_pair() -> None:
    """No state and no event is missing from what is expected below."""
    assert set(_EXPECTED) == set(itertools.product(State, Event))


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, Event)))
def test_every_pair_leads_where_it_should(state: State, event: Event) -> None:
    """Each event in each state leads to one state, takes the row away, or is refused by name."""
    target = _EXPECTED[state, event]
    if target == ".":
        with pytest.raises(IllegalMove, match=f"{state} cannot {event.value}"):
            move(state, event)
    else:
        assert move(state, event).state == (None if target == "gone" else State(target))


@pytest.mark.parametrize(("pair", "to"), list(TABLE.items()))
def test_a_next_step_fits_the_state(pair: tuple[State, Event], to: object) -> None:
    """Polls are for what was accepted, retries for what waits after that; what is over, open or under way has none."""
    steps: dict[State | None, set[Step]] = {
        State.SEALED: {Step.SEND},
        State.WAITING: {Step.SEND, Step.RETRY},
        State.ACCEPTED: {Step.POLL},
    }
    nothing: set[Step | None] = {None}
    made = move(*pair)
    assert made == to
    if made.keeps_step:
        assert made.step is None
        assert made.state == pair[0] or (pair[0], made.state) == (State.SEALED, State.WAITING)
    else:
        assert made.step in steps.get(made.state, nothing)


def test_every_live_state_can_be_left() -> None:
    """From each state but `stored` a batch can come to be stored."""
    reach = {State.STORED}
    for _ in State:
        reach |= {state for (state, _), to in TABLE.items() if to.state in reach}
    assert reach == set(State)


def test_bytes_are_fixed_anew_only_under_a_new_id() -> None:
    """What may be on the server already keeps its bytes: only these moves seal, and each draws an id."""
    sealing = {pair for pair, to in TABLE.items() if {Effect.SEAL_ANEW, Effect.SPLIT} & to.effects}
    assert sealing == {
        (State.OPEN, Event.SEAL),
        (State.SENDING, Event.RENAME),
        (State.SENDING, Event.HALVE),
        (State.ACCEPTED, Event.HALVE),
        (State.DEAD, Event.REVIVE),
    }


def test_only_what_is_stored_loses_its_text() -> None:
    """The text goes when the operation was seen completed, and is proof for others of its kind then alone."""
    for effect in (Effect.CLEAR_TEXT, Effect.PROVE):
        assert {to.state for to in TABLE.values() if effect in to.effects} == {State.STORED}


def test_a_known_operation_is_discarded_before_another_id_is_sent() -> None:
    """Where the server has an operation under the old id, it is deleted there first."""
    discarding = {pair for pair, to in TABLE.items() if Effect.DISCARD in to.effects}
    assert discarding == {(State.ACCEPTED, Event.HALVE), (State.DEAD, Event.REVIVE)}
