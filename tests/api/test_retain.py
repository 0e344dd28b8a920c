"""Retain: what is sent, what may be sent twice, and what is refused before."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.api import Repeat, calls
from bankclient.api.models import MemoryItem
from bankclient.errors import InvalidInput

ID = "5b1f6f2e-6f0e-4c39-8a43-0d2b5f3c9a10"
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def body_of(items: Any, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - also what is wrong
    """Return what a retain of these items sends."""
    body = calls.retain_many("lighthouse", items, **options).body
    assert body is not None
    answer: dict[str, Any] = json.loads(body)
    return answer


def sent(content: Any = "The lamp is lit.", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - also what is wrong
    """Return the one item that a retain sends."""
    (item,) = json.loads(calls.retain("lighthouse", content, **fields).body or b"")["items"]
    answer: dict[str, Any] = item
    return answer


def test_a_plain_retain_sends_what_is_given_alone() -> None:
    """What is not given is left to the server, which works before it answers; one entity is one name."""
    assert body_of(["The lamp is lit."]) == {"items": [{"content": "The lamp is lit."}], "async": False}
    assert sent() == {"content": "The lamp is lit."}
    assert sent(entities="Maren")["entities"] == [{"text": "Maren"}]


def test_every_field_of_an_item_is_sent() -> None:
    """Every field goes out in the server's own form, from arguments, an item or a mapping alike."""
    fields: dict[str, Any] = {
        "document_id": "log/1",
        "tags": "harbour",
        "timestamp": datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC),
        "context": "log book",
        "metadata": {"page": "12"},
        "entities": ["Maren", {"text": "lamp", "type": "OBJECT"}, {"text": "gull", "type": None}],
        "resolve_entities": False,
        "observation_scopes": [["harbour"], ("a", "b")],
        "strategy": "brief",
        "update_mode": "replace",
    }
    as_sent = fields | {
        "content": "The lamp is lit.",
        "tags": ["harbour"],
        "timestamp": "2031-05-06T07:08:09+00:00",
        "entities": [{"text": "Maren"}, {"text": "lamp", "type": "OBJECT"}, {"text": "gull"}],
        "observation_scopes": [["harbour"], ["a", "b"]],
    }
    assert sent(**fields) == as_sent
    assert body_of([MemoryItem("The lamp is lit.", **fields)])["items"] == [as_sent]
    assert body_of([{"content": "The lamp is lit."} | fields])["items"] == [as_sent]


def test_items_may_be_texts_items_and_mappings_of_any_iterable() -> None:
    """The three forms mix, and null fields of a mapping are as good as absent."""
    mixed = ("a", MemoryItem("b"), {"content": "c", "tags": None, "metadata": None, "entities": None})
    assert body_of(iter(mixed))["items"] == [{"content": "a"}, {"content": "b"}, {"content": "c"}]


@pytest.mark.parametrize(
    ("timestamp", "as_sent"),
    [
        ("unset", "unset"),
        (" Unset ", "unset"),
        ("", None),
        (None, None),
        ("2031-05-06", "2031-05-06T00:00:00+00:00"),
        ("2031-05-06T07:08:09Z", "2031-05-06T07:08:09+00:00"),
        (datetime(2031, 5, 6), "2031-05-06T00:00:00+00:00"),  # noqa: DTZ001 - naive on purpose
    ],
)
def test_a_timestamp_is_a_time_none_or_unset(timestamp: Any, as_sent: str | None) -> None:  # noqa: ANN401 - any form
    """A naive time is UTC, nothing is now, and `unset` is timeless."""
    assert sent(timestamp=timestamp).get("timestamp") == as_sent


@pytest.mark.parametrize(
    ("fields", "cleaned"),
    [
        ({"content": "a\x00b \ud83d"}, "ab \ufffd"),
        ({"tags": ["a\x00", "\ud83d"]}, ["a", "\ufffd"]),
        ({"metadata": {"k\x00": "\udc8f"}}, {"k": "\ufffd"}),
        ({"context": "\ud83d\ude00"}, "😀"),
        ({"entities": ["\ud83d"]}, [{"text": "\ufffd"}]),
    ],
)
def test_text_that_cannot_be_stored_is_mended(fields: dict[str, Any], cleaned: object) -> None:
    """NULs and half pairs are mended wherever text goes, so that one bad letter blocks nothing."""
    ((name, _),) = fields.items()
    assert sent(**fields)[name] == cleaned


@pytest.mark.parametrize("content", ["", "  \n", "\x00", "\x00 \x00", "\u2003"])
def test_an_empty_text_is_refused(content: str) -> None:
    """There is nothing to retain in a blank text; the message says which item it is."""
    with pytest.raises(InvalidInput, match=r"^content is empty"):
        sent(content)
    with pytest.raises(InvalidInput, match=r"^items\[1\]\.content is empty"):
        body_of(["a", content])


def test_content_blocks_are_passed_through() -> None:
    """Blocks go out as they are, their text cleaned, and the call says that it rests on them."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": "see\x00:"}, PICTURE]
    call = calls.retain("lighthouse", blocks)
    assert json.loads(call.body or b"")["items"][0]["content"] == [{"type": "text", "text": "see:"}, PICTURE]
    assert call.needs == {"content_blocks"}
    assert sent([PICTURE])["content"] == [PICTURE]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "no block with anything in it"),
        ([{"type": "text", "text": " "}], "no block with anything in it"),
        (["text"], r"content\[0\] is str"),
        ([{"text": "no type"}], r"content\[0\] is dict"),
        ([{"type": "text"}], r"content\[0\]\.text is NoneType"),
        (b"bytes", "content is bytes"),
        (3, "content is int"),
        (None, "content is NoneType"),
    ],
)
def test_content_that_is_none_is_refused(content: object, message: str) -> None:
    """Blocks without anything in them, and what is neither text nor blocks, never leave."""
    with pytest.raises(InvalidInput, match=message):
        sent(content)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"metadata": {"n": 3}}, r"metadata\['n'\] is int 3: the server takes texts only, so pass it through str\(\)"),
        ({"metadata": {"n": True}}, r"metadata\['n'\] is bool True"),
        ({"metadata": {"n": None}}, r"metadata\['n'\] is NoneType None: leave the key out"),
        ({"metadata": {"n": {"a": "b"}}}, r"metadata\['n'\] is dict"),
        ({"metadata": {3: "n"}}, "a key of metadata is int"),
        ({"metadata": [("a", "b")]}, "metadata is list"),
        ({"tags": 3}, "tags is int"),
        ({"document_id": " "}, "document_id is empty"),
        ({"document_id": "d\x00"}, "document_id holds a NUL"),
        ({"document_id": "d\ud83d"}, "document_id holds a NUL"),
        ({"document_id": 3}, "document_id is int"),
        ({"context": 3}, "context is int"),
        ({"timestamp": 1_935_000_000}, "timestamp is int"),
        ({"timestamp": "yesterday"}, "timestamp is str 'yesterday'"),
        ({"timestamp": "1935000000"}, "timestamp is str"),
        ({"timestamp": "0001-01-01"}, "of the year 1,"),
        ({"timestamp": datetime(9999, 12, 31, tzinfo=UTC)}, "of the year 9999"),
        ({"entities": [3]}, r"entities\[0\] is int"),
        ({"entities": [{"name": "Maren"}]}, r"entities\[0\] is dict"),
        ({"entities": [{"text": "Maren", "kind": "person"}]}, r"entities\[0\] is dict"),
        ({"entities": {"text": "Maren"}}, "entities is dict"),
        ({"resolve_entities": "no"}, "resolve_entities is str"),
        ({"observation_scopes": "everything"}, "observation_scopes is str 'everything': give one of per_tag"),
        ({"observation_scopes": 3}, "observation_scopes is int"),
        ({"observation_scopes": [3]}, r"observation_scopes\[0\] is int"),
        ({"strategy": ""}, "strategy is empty"),
        ({"update_mode": "merge"}, "update_mode is str 'merge': give one of replace, append"),
        ({"update_mode": "append"}, "append without a document_id: say what to append to"),
        ({"background": "yes"}, "background is str"),
        ({"background": True, "operation_id": "one"}, "operation_id is str 'one': give a UUID"),
        ({"background": True, "operation_id": 1}, "operation_id is int 1: give a UUID"),
        ({"operation_id": ID}, "operation_id needs background=True"),
    ],
)
def test_what_the_server_would_refuse_or_misread_is_refused(fields: dict[str, Any], message: str) -> None:
    """A value of the wrong kind is named with its mend before anything is sent."""
    with pytest.raises(InvalidInput, match=message):
        sent(**fields)


@pytest.mark.parametrize(
    ("items", "options", "message"),
    [
        ([], {}, "items is empty"),
        ("text", {}, "items is a single one"),
        ({"content": "text"}, {}, "items is a single one"),
        ([3], {}, r"items\[0\] is int"),
        ([{"text": "a"}], {}, r"items\[0\] has no field 'text'"),
        ([{"content": "a", "documentId": "d"}], {}, r"items\[0\] has no field 'documentId': give any of"),
        ([{"tags": ["a"]}], {}, r"items\[0\] has no content"),
        ([{"content": "a", "metadata": {"n": 1}}], {}, r"items\[0\]\.metadata\['n'\] is int"),
        (
            [{"content": "a", "document_id": "d"}, {"content": "b", "document_id": "d"}],
            {"background": True},
            "document_id 'd' stands twice",
        ),
        (
            [{"content": "a", "document_id": "d"}, "b", {"content": "c", "document_id": "d"}],
            {"background": True},
            "document_id 'd' stands twice",
        ),
        (
            [{"content": "a", "strategy": "x"}, {"content": "b"}],
            {"background": True, "operation_id": ID},
            "different strategies",
        ),
    ],
)
def test_items_that_do_not_go_together_are_refused(items: Any, options: dict[str, Any], message: str) -> None:  # noqa: ANN401 - also what is wrong
    """What the server answers 400 to as a whole, or ignores in silence, is refused with the place of the fault."""
    with pytest.raises(InvalidInput, match=message):
        body_of(items, **options)


def test_an_operation_id_is_sent_in_its_plain_form() -> None:
    """A UUID in any spelling is one and the same id."""
    for spelt in (ID, ID.upper(), ID.replace("-", ""), UUID(ID), f"{{{ID}}}"):
        assert body_of(["a"], background=True, operation_id=spelt) == {
            "items": [{"content": "a"}],
            "operation_id": ID,
            "async": True,
        }


REPLACED = {"content": "a", "document_id": "d"}
APPENDED = REPLACED | {"update_mode": "append"}


@pytest.mark.parametrize(
    ("items", "options", "repeat", "needs"),
    [
        (["a"], {}, Repeat.NEVER, set()),
        (["a"], {"background": True}, Repeat.NEVER, set()),
        (["a"], {"background": True, "operation_id": ID}, Repeat.IDENTIFIED, {"operation_ids"}),
        ([REPLACED], {}, Repeat.IDENTIFIED, set()),
        ([REPLACED], {"background": True}, Repeat.IDENTIFIED, set()),
        ([REPLACED], {"background": True, "operation_id": ID}, Repeat.IDENTIFIED, set()),
        ([REPLACED, {"content": "b", "document_id": "e", "update_mode": "replace"}], {}, Repeat.IDENTIFIED, set()),
        ([REPLACED, "a"], {}, Repeat.NEVER, set()),
        ([REPLACED, REPLACED], {}, Repeat.NEVER, set()),
        ([APPENDED], {}, Repeat.NEVER, {"append"}),
        ([APPENDED], {"background": True, "operation_id": ID}, Repeat.IDENTIFIED, {"append", "operation_ids"}),
        ([REPLACED, APPENDED | {"document_id": "e"}], {}, Repeat.NEVER, {"append"}),
    ],
)
def test_only_a_write_with_an_identity_may_be_sent_twice(
    items: list[Any], options: dict[str, Any], repeat: Repeat, needs: set[str]
) -> None:
    """An operation id, or a document of its own that each item replaces, makes a repeat harmless; nothing else does."""
    call = calls.retain_many("lighthouse", items, **options)
    assert call.repeat is repeat
    assert call.needs == needs


def test_the_answer_to_a_background_retain_names_an_operation() -> None:
    """A 2xx that names no operation is not the answer of a Hindsight server that took the items in."""
    background = calls.retain("lighthouse", "a", background=True)
    assert background.parse(b'{"success":true,"async":true,"operation_id":"a"}').operation_ids == ("a",)
    for raw in (b'{"success":true}', b'{"success":true,"operation_id":null,"operation_ids":[]}'):
        with pytest.raises(ValueError, match="names no operation"):
            background.parse(raw)
        assert calls.retain("lighthouse", "a").parse(raw).success


def test_ten_megabytes_are_taken() -> None:
    """The server has no limit for a text, and neither has the call."""
    text = "ż" * 5_000_000
    assert sent(text)["content"] == text


ANYTHING = st.text(st.characters(exclude_categories=()), max_size=12)


@given(
    content=ANYTHING,
    tags=st.lists(ANYTHING, max_size=3),
    metadata=st.dictionaries(ANYTHING, ANYTHING | st.integers() | st.none(), max_size=3),
    document_id=st.none() | ANYTHING,
    timestamp=st.none() | ANYTHING | st.datetimes(),
)
def test_any_item_makes_valid_json_or_is_refused(
    content: str,
    tags: list[str],
    metadata: dict[str, str],
    document_id: str | None,
    timestamp: datetime | str | None,
) -> None:
    """Whatever an item holds, what is sent is UTF-8 JSON of the kinds that the server takes."""
    try:
        item = sent(content, tags=tags, metadata=metadata, document_id=document_id, timestamp=timestamp)
    except InvalidInput:
        return
    assert item["content"].strip()
    assert all(isinstance(value, str) for value in item.get("metadata", {}).values())
    assert "\x00" not in json.dumps(item)
