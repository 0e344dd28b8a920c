"""Turns, batches, capture, and answers that come before their line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.turns.cadence import adopter, captured, due, group, heard_by_text, lacks_answer, overlap, stand_in
from bankclient.turns.event import Message, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bankclient.turns.cadence import SealReason
    from bankclient.turns.event import Event

    Make = Callable[..., Message]


def _texts(turns: Sequence[Turn]) -> list[list[str]]:
    return [[message.text for message in turn.messages] for turn in turns]


@pytest.fixture
def turns(message: Make, answer: Make) -> Callable[[int], list[Turn]]:
    """Give so many complete turns, called 1, 2 and so on."""

    def make(count: int) -> list[Turn]:
        numbers = range(1, count + 1)
        return [
            Turn((message(f"{number}", f"t{number}"), answer(f"a{number}", f"t{number}")), complete=True)
            for number in numbers
        ]

    return make


def test_seven_turns_at_three_are_three_three_and_one(turns: Callable[[int], list[Turn]]) -> None:
    """The last one waits for its time, and goes with any reason to seal."""
    assert [len(batch) for batch in due(turns(7), 3)] == [3, 3]
    assert [len(batch) for batch in due(turns(7), 3, "flush")] == [3, 3, 1]


def test_the_count_begins_anew_at_each_seal(turns: Callable[[int], list[Turn]]) -> None:
    """What was sealed is no longer among the turns: two more do not make three with it."""
    seven = turns(7)
    assert due(seven[6:], 3) == []
    assert due([*seven[:3]], 3) == [tuple(seven[:3])]


@pytest.mark.parametrize("reason", ["cadence", "pre_compact", "flush", "leaving", "idle"])
def test_the_turn_in_progress_waits(reason: SealReason, turns: Callable[[int], list[Turn]], message: Make) -> None:
    """No reason but the session's end seals it, not even where it would make the batch full."""
    open_turns = [*turns(2), Turn((message("3", "t3"),), complete=False)]
    assert [len(batch) for batch in due(open_turns, 3, reason)] == ([] if reason == "cadence" else [2])


def test_the_sessions_end_seals_the_turn_in_progress(turns: Callable[[int], list[Turn]], message: Make) -> None:
    """What will not be answered any more is kept as it is."""
    open_turns = [*turns(3), Turn((message("4", "t4"),), complete=False)]
    assert [len(batch) for batch in due(open_turns, 3, "session_end")] == [3, 1]


def test_an_answer_that_came_late_goes_with_the_next_batch(turns: Callable[[int], list[Turn]], answer: Make) -> None:
    """It does not count as a turn, so it neither fills a batch nor is left behind by one."""
    late = Turn((answer("late", "t0"),), complete=True)
    assert due([late, *turns(2)], 3) == []
    assert due([late, *turns(3)], 3) == [(late, *turns(3))]
    assert due([late], 3) == []
    assert due([late], 3, "flush") == [(late,)]


@given(
    kinds=st.lists(st.sampled_from(["turn", "late"]), max_size=30),
    every=st.integers(1, 5),
    reason=st.sampled_from(["cadence", "pre_compact", "flush", "leaving", "idle", "session_end"]),
    going=st.booleans(),
)
def test_batches_are_the_turns_in_order(kinds: list[str], every: int, reason: SealReason, going: bool) -> None:
    """Nothing is sealed twice or skipped; no batch counts more than `every`; what waits is less than a batch."""
    roles = {"turn": "user", "late": "assistant"}
    open_turns = [
        Turn(
            (Message(role="user" if roles[kind] == "user" else "assistant", text="x", key=f"{place}", ordinal=place),),
            complete=not (going and place == len(kinds) - 1),
        )
        for place, kind in enumerate(kinds)
    ]
    batches = due(open_turns, every, reason)
    sealed = [turn for batch in batches for turn in batch]
    assert sealed == open_turns[: len(sealed)]
    assert all(batch and sum(turn.counts for turn in batch) <= every for batch in batches)
    left = [turn for turn in open_turns[len(sealed) :] if turn.complete or reason == "session_end"]
    assert sum(turn.counts for turn in left) < every if reason == "cadence" else left == []


def test_a_turn_is_answered_or_the_next_one_begins(message: Make, answer: Make) -> None:
    """A turn without an answer ends where the next begins; one with words before a tool call goes on."""
    interrupted = [message("one", "t1"), message("two", "t2")]
    assert [turn.complete for turn in group(interrupted)] == [True, False]
    working = [message("one", "t1"), answer("let me see", "t1", final=False)]
    assert [turn.complete for turn in group(working)] == [False]
    assert [turn.complete for turn in group(working, answered={"t1"})] == [True]
    assert [turn.complete for turn in group([*working, answer("done", "t1")])] == [True]


def test_a_stop_without_an_answer_completes_nothing(message: Make) -> None:
    """The answer is still to come: by its line, or by the event's word."""
    assert [turn.complete for turn in group([message("one", "t1")], answered={"t1"})] == [False]


def test_what_is_typed_within_a_turn_is_part_of_it(message: Make, answer: Make) -> None:
    """Steering a turn makes no second one."""
    messages = [message("one"), answer("yes", final=False), message("but short"), answer("done")]
    assert _texts(group(messages)) == [["one", "yes", "but short", "done"]]


def test_prompts_without_a_turns_name_are_turns_of_their_own(message: Make, answer: Make) -> None:
    """Where nobody names turns, each prompt begins one."""
    messages = [message("one", None), answer("yes", None), message("two", None), message("three", None)]
    assert _texts(group(messages)) == [["one", "yes"], ["two"], ["three"]]


def test_no_messages_are_no_turns() -> None:
    """And nothing is due."""
    assert group([]) == []
    assert due([], 3, "session_end") == []


def test_only_turns_that_reached_us_are_captured(message: Make, answer: Make) -> None:
    """What was said while memory was off stays out, answers included, and so does what belongs to no turn."""
    messages = [
        answer("recap", None),
        message("off", "t1"),
        answer("yes", "t1"),
        message("on", "t2"),
        answer("no", "t2"),
    ]
    kept, passed = captured(messages, {"t2", "t9"})
    assert [kept_message.text for kept_message in kept] == ["on", "no"]
    assert passed == 3


def test_a_prompt_without_an_id_is_found_by_its_words(message: Make, event: Callable[..., Event]) -> None:
    """Blanks do not matter; the earliest message with the words is it, and each only once."""
    messages = [message("go on", "u1"), message("port?", "u2"), message("go on", "u3")]
    prompts = [
        event("prompt", event_id="e1", prompt=" go  on\n"),
        event("prompt", event_id="e2", prompt="go on"),
        event("prompt", event_id="e3", prompt="go on"),
        event("prompt", event_id="e4"),
    ]
    assert heard_by_text(messages, prompts) == {"e1": "u1", "e2": "u3"}


@pytest.mark.parametrize(
    ("said", "heard", "found"),
    [
        ("2026-11-30T13:00:00.000Z", "2026-11-30T13:00:01+00:00", True),
        ("2026-11-30T13:00:00Z", "2026-11-30T14:00:05+01:00", True),
        ("2026-11-30T12:00:00Z", "2026-11-30T13:00:00Z", False),
        (None, "2026-11-30T13:00:00Z", True),
        ("yesterday", "2026-11-30T13:00:00Z", True),
        ("2026-11-30T13:00:00", "2026-11-30T13:00:00Z", True),
    ],
)
def test_the_same_words_at_another_time_are_others(
    said: str | None, heard: str, found: bool, message: Make, event: Callable[..., Event]
) -> None:
    """A prompt an hour before, spoken while memory was off, is not this one; an unreadable time tells nothing."""
    prompts = [event("prompt", prompt="go on", at=heard)]
    assert bool(heard_by_text([message("go on", "u1", at=said)], prompts)) is found


def test_an_event_stands_in_for_what_the_file_lacks(event: Callable[..., Event]) -> None:
    """A prompt's and a stop's words become messages of the turn; other events, and empty ones, say nothing."""
    prompt = stand_in(event("prompt", prompt="which port?", turn_id="t1", at="2026-11-30T13:00:00Z"), 7)
    assert prompt == Message(
        role="user", text="which port?", key="s1:e-prompt:user", ordinal=7, turn_id="t1", at="2026-11-30T13:00:00Z"
    )
    stop = stand_in(event("stop", last_answer="4711", turn_id="t1"), 9)
    assert stop == Message(
        role="assistant", text="4711", key="s1:e-stop:assistant", ordinal=9, turn_id="t1", final=True
    )
    assert stand_in(event("stop", last_answer=""), 0) is None
    assert stand_in(event("session_end", last_answer="x", prompt="y"), 0) is None


def test_the_answers_line_adopts_its_stand_in(message: Make, answer: Make, event: Callable[..., Event]) -> None:
    """Whatever its text, the turn's final line is what the event's word stood for, and words before a tool are not."""
    standing = stand_in(event("stop", last_answer="It is 4711", turn_id="t1"), 5)
    assert standing is not None
    working = answer("let me see", "t1", final=False, ordinal=6)
    final = answer("It is 4711 (I looked twice)", "t1", ordinal=7)
    assert adopter(standing, []) is None
    assert adopter(standing, [working]) is None
    assert adopter(standing, [working, final, message("next", "t2")]) == final
    assert adopter(standing, [answer("other turn", "t2")]) is None


def test_where_nothing_tells_which_answer_is_final(message: Make, answer: Make, event: Callable[..., Event]) -> None:
    """It is the one with the same words, else the last one once the turn is over."""
    standing = stand_in(event("stop", last_answer="It is 4711", turn_id="t1"), 5)
    assert standing is not None
    lines = [answer("one", "t1", final=False), answer("two", "t1", final=False)]
    same = answer("It  is 4711", "t1", final=False)
    assert adopter(standing, [*lines, same]) == same
    assert adopter(standing, lines) is None
    assert adopter(standing, [*lines, message("next", "t2")]) == lines[1]
    assert adopter(standing, lines, session_over=True) == lines[1]


def test_a_prompts_line_adopts_its_stand_in(message: Make, event: Callable[..., Event]) -> None:
    """By its words, for a turn that is steered has several prompts; else it is the turn's first line."""
    standing = stand_in(event("prompt", prompt="but short", turn_id="t1"), 5)
    assert standing is not None
    first, second = message("explain"), message("but short")
    assert adopter(standing, [first, second]) == second
    assert adopter(standing, [message("but short, with a file pasted"), message("next", "t2")]) == message(
        "but short, with a file pasted"
    )
    assert adopter(standing, [message("next", "t2")]) is None
    assert adopter(standing, []) is None


@pytest.mark.parametrize(
    ("answers", "told", "lacking"),
    [
        ([], "4711", True),
        ([], None, True),
        ([("let me see", False)], "4711", True),
        ([("let me see", False)], None, False),
        ([("let me see", False), ("4711", False)], " 4711\n", False),
        ([("It is 4711.", True)], "4711", False),
    ],
)
def test_whether_the_answer_is_there(
    *,
    answers: list[tuple[str, bool]],
    told: str | None,
    lacking: bool,
    message: Make,
    answer: Make,
    event: Callable[..., Event],
) -> None:
    """Words before a tool call are not the answer that the event tells of; a final line is, whatever its words."""
    messages = [answer("4711", "t0"), message("which port?"), *(answer(text, final=final) for text, final in answers)]
    assert lacks_answer(messages, event("stop", turn_id="t1", last_answer=told)) is lacking


def test_question_and_answer_come_once_and_together(message: Make, answer: Make) -> None:
    """The question alone makes no batch; the answer's line completes it, and the batch is both."""
    question, reply = message("which port?"), answer("4711")
    assert due(group([question], answered={"t1"}), 1) == []
    (batch,) = due(group([question, reply], answered={"t1"}), 1)
    assert _texts(batch) == [["which port?", "4711"]]


def test_the_overlap_is_the_end_of_what_was_sealed(turns: Callable[[int], list[Turn]]) -> None:
    """As many turns as asked for, or as there are."""
    assert _texts(overlap(turns(4), 2)) == [["3", "a3"], ["4", "a4"]]
    assert _texts(overlap(turns(1), 2)) == [["1", "a1"]]
    assert overlap(turns(4), 0) == ()
