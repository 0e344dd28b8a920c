"""Which words are a person's."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.turns.speech import HARNESS_TAGS, has_words, person_words


@pytest.mark.parametrize("tag", HARNESS_TAGS)
def test_each_element_of_a_harness_is_its_own(tag: str) -> None:
    """Alone, in front of words, behind them on a line of its own, and never closed."""
    assert person_words(f"<{tag}>something</{tag}>") == ""
    assert person_words(f"  <{tag} id='1'>\nsomething\n</{tag}>\n") == ""
    assert person_words(f"<{tag}>something</{tag}>\nmy words") == "my words"
    assert person_words(f"my words\n<{tag}>\nsomething\n</{tag}>\n") == "my words"
    assert person_words(f"<{tag}>something") == ""


@pytest.mark.parametrize(
    "text",
    [
        "why does <system-reminder>x</system-reminder> appear?",
        "it printed <bash-stdout>x</bash-stdout>",
        "what is a <task-notification>?",
        "<system-reminders>x</system-reminders>",
        "<div>a div</div>",
        "<pasted_content id='1'>\npasted\n</pasted_content>",
        "</system-reminder> is left over",
        "The file # AGENTS.md instructions is wrong",
    ],
)
def test_writing_about_a_harness_is_writing(text: str) -> None:
    """Elements inside of a sentence, other elements and halves are the person's words, all of them."""
    assert person_words(text) == text


def test_several_elements_at_both_ends() -> None:
    """They go one by one, down to the words between them."""
    before = "<ide_opened_file>a</ide_opened_file> <system-reminder>b</system-reminder>\n"
    after = "\n<system-reminder>c</system-reminder>\n<new-diagnostics>d</new-diagnostics>\n"
    assert person_words(f"{before}my words{after}") == "my words"


@given(st.text())
def test_plain_words_are_left_alone(text: str) -> None:
    """Whatever holds no element, and is no notice, comes back without the blanks around it."""
    if "<" not in text:
        assert person_words(text) == text.strip()


@given(st.text(st.sampled_from("<>/ \n-systemrd")), st.sampled_from(HARNESS_TAGS))
def test_taking_twice_takes_no_more(text: str, tag: str) -> None:
    """What is left is the person's, also on a second look."""
    words = person_words(f"<{tag}>x</{tag}>{text}")
    assert person_words(words) == words


@pytest.mark.parametrize(("text", "expected"), [("a", True), ("7", True), ("\u0119", True), ("\u6f22", True)])
def test_letters_and_digits_say_something(text: str, expected: bool) -> None:
    """Of any script."""
    assert has_words(text) is expected


@pytest.mark.parametrize("text", ["", " \n", "...", "\u2014!?", "\U0001f600\U0001f680", "___"])
def test_signs_alone_say_nothing(text: str) -> None:
    """Punctuation, blanks and emoji are no words."""
    assert not has_words(text)


@pytest.mark.parametrize(
    "unit", ["<system-reminder>x</system-reminder>", "\n<system-reminder>x</system-reminder>", "<system-reminder ", " "]
)
def test_time_grows_with_the_text(unit: str) -> None:
    """Ten times the text takes nowhere near a hundred times as long."""

    def seconds(count: int) -> float:
        text = "w" + unit * count if unit.startswith("\n") else unit * count + "w"
        start = time.process_time()
        person_words(text)
        return time.process_time() - start

    assert seconds(20_000) < 40 * max(seconds(2_000), 0.005)
