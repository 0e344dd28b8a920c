"""The value of a call: segments, clean text, JSON, and what holds for the calls of every kind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.api import Call, Repeat, calls, clean_text, encode_json, segment
from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    EveryCall = Callable[[str], dict[str, Call[Any]]]

BANKS = "/v1/default/banks/"


def not_json(constant: str) -> object:
    """Refuse what Python's reader takes and JSON does not know."""
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("plain", "plain"),
        ("a/b", "a%2Fb"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("...", "..."),
        ("a?b#c", "a%3Fb%23c"),
        ("a::b", "a%3A%3Ab"),
        ("100%", "100%25"),
        ("%2e%2e", "%252e%252e"),
        ("projekt-ż é", "projekt-%C5%BC%20%C3%A9"),
    ],
)
def test_a_name_is_one_escaped_segment(name: str, escaped: str) -> None:
    """A name is escaped so that it neither ends its segment, nor climbs, nor starts a query."""
    assert segment(name, "the name") == escaped
    assert unquote(escaped) == name


def test_a_segment_that_no_path_can_hold_is_refused() -> None:
    """An empty segment would be another path, and half a surrogate pair is no text."""
    with pytest.raises(InvalidInput, match="the bank's name is empty"):
        segment("", "the bank's name")
    with pytest.raises(InvalidInput, match="surrogate"):
        segment("\ud83d", "the bank's name")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain 👩‍👩‍👧", "plain 👩‍👩‍👧"),
        ("a\x00b", "ab"),
        ("\ud83d", "\ufffd"),
        ("x \udc8f", "x \ufffd"),
        ("\ud83d x \udc8f", "\ufffd x \ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\x00\ude00", "😀"),
    ],
)
def test_text_is_cleaned_and_valid_letters_stay(text: str, clean: str) -> None:
    """NULs go, halves of pairs that meet become their letter, those that stand alone become U+FFFD."""
    assert clean_text(text) == clean


@given(st.text(st.characters(exclude_categories=())))
def test_clean_text_can_always_be_sent(text: str) -> None:
    """Whatever the text, what is left is UTF-8 without NUL, and cleaning it again changes nothing."""
    clean = clean_text(text)
    assert clean.encode().decode() == clean
    assert "\x00" not in clean
    assert clean_text(clean) == clean


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -float("inf"), 10**5000, object(), b"bytes", {1, 2}], ids=type
)
def test_what_json_cannot_carry_is_refused(value: object) -> None:
    """A value that is no JSON is an error of ours, since the server would answer a bare 500 or worse."""
    with pytest.raises(InvalidInput, match="JSON cannot carry"):
        encode_json({"a": [value]})


def test_circular_and_deep_values_are_refused() -> None:
    """A value within itself, or nested without end, is an error and no crash."""
    circular: list[object] = []
    circular.append(circular)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (circular, deep):
        with pytest.raises(InvalidInput, match="JSON cannot carry"):
            encode_json({"a": value})
    while deep:  # taken apart level by level: freeing it at once would recurse as deep
        deep = deep.pop()  # type: ignore[assignment] # each level is a list


def test_json_is_compact_utf8_with_letters_as_they_are() -> None:
    """Letters are not escaped, halves of pairs are mended in keys and values."""
    assert (
        encode_json({"ż": "\ud83d", "\udc8f": [1.5, True, None]}) == '{"ż":"\ufffd","\ufffd":[1.5,true,null]}'.encode()
    )


def test_there_is_a_call_of_every_kind_here(every_call: EveryCall) -> None:
    """The table of these tests has every function of `calls`, so that what holds for all is tried with all."""
    functions = {name for name in calls.__all__ if name.islower()} - {"memory_item", "tag_texts"}  # which make no call
    assert functions == every_call("lighthouse").keys()


def test_every_call_makes_its_path_query_and_body_well(every_call: EveryCall) -> None:
    """Every path is escaped, every query is pairs of text, every body is strict JSON."""
    for name, call in every_call("projekt-ż é").items():
        assert call.path.isascii(), name
        assert all(isinstance(part, str) for pair in call.query for part in pair), name
        if call.body is not None:
            assert isinstance(json.loads(call.body.decode(), parse_constant=not_json), dict), name
        assert call.content_type == "application/json"


def test_the_answer_of_a_degraded_client_is_marked(every_call: EveryCall) -> None:
    """Each empty answer says of itself that it is one; only plain JSON has no place for that."""
    for name, call in every_call("lighthouse").items():
        answer = call.empty()
        assert answer is None if name == "request" else answer.degraded, name


def test_reads_may_be_repeated_and_writes_say_why(every_call: EveryCall) -> None:
    """Whatever is a GET, and recall and reflect, is a read; no other call is."""
    for name, call in every_call("lighthouse").items():
        reads = call.method == "GET" or name in {"recall", "reflect"}
        assert (call.repeat is Repeat.READ) == reads, name


def test_each_call_has_the_time_limit_of_its_kind(every_call: EveryCall) -> None:
    """Recall, retain and reflect have limits of their own, everything else the common one."""
    limits = {name: call.time_limit for name, call in every_call("lighthouse").items()}
    own = {"recall": "recall", "reflect": "reflect", "retain": "retain", "retain_many": "retain"}
    assert limits == dict.fromkeys(limits, "request") | own


BANK_TEXT = st.text(st.characters(exclude_categories=()), max_size=40) | st.sampled_from(
    ["..", ".", "a/b", "a?b#c", "a::b", "%2e%2e", "a%2Fb", "_x", "\x00", "ż" * 96, "ż" * 97, "\\", ";", " "]
)


@given(bank=BANK_TEXT)
def test_no_bank_reaches_another_endpoint(bank: str) -> None:
    """Any text is refused, or is exactly the one segment after the banks, also after a client's own normalising."""
    try:
        call = calls.recall(bank, "word")
    except InvalidInput:
        return
    for path in (call.path, httpx.URL("http://h").join(call.path).raw_path.decode()):
        assert path.startswith(BANKS)
        assert path.endswith("/memories/recall")
        inner = path.removeprefix(BANKS).removesuffix("/memories/recall")
        assert "/" not in inner
        assert inner not in {".", ".."}
        assert unquote(inner) == bank


@given(name=st.text(st.characters(exclude_categories=()), min_size=1, max_size=20) | st.sampled_from(["..", "a/../b"]))
def test_no_document_reaches_another_endpoint(name: str) -> None:
    """A document is exactly the one segment after the documents."""
    try:
        call = calls.delete_document("lighthouse", name)
    except InvalidInput:
        return
    path = httpx.URL("http://h").join(call.path).raw_path.decode()
    assert path.count("/") == 6
    assert unquote(path.rpartition("/")[2]) == clean_text(name)


def test_every_path_of_a_bank_lies_within_it(every_call: EveryCall) -> None:
    """No call on a bank leaves it; those without one are the server's own."""
    for name, call in every_call("a?b#c").items():
        inside = call.path.startswith(f"{BANKS}a%3Fb%23c/") or call.path == f"{BANKS}a%3Fb%23c"
        assert inside == (call.bank is not None), name


@pytest.mark.parametrize("bank", ["", "a/b", "_a", "a\nb", "a\x00", "ż" * 97, "\ud83d"], ids=ascii)
def test_a_bank_that_the_server_refuses_is_refused_before(bank: str, every_call: EveryCall) -> None:
    """Names that the server answers 400, 404 or 500 to never leave."""
    with pytest.raises(InvalidInput, match="bank"):
        every_call(bank)


@pytest.mark.parametrize("bank", [None, 3, b"lighthouse", ["lighthouse"]])
def test_a_bank_that_is_no_text_is_refused(bank: Any) -> None:  # noqa: ANN401 - what is wrong
    """A bank that was never set, the commonest slip, is named and no `AttributeError`."""
    with pytest.raises(InvalidInput, match=r"the bank's name is .*: give a text"):
        calls.recall(bank, "lamp")


def test_a_call_shows_no_text_that_it_sends() -> None:
    """The text of memories is in neither the representation nor the comparison by accident."""
    call = calls.retain("lighthouse", "a secret of the keeper")
    assert "secret" not in repr(call)
    assert call == calls.retain("lighthouse", "a secret of the keeper")
    assert call != calls.retain("lighthouse", "another")
