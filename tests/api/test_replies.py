"""How replies are read: recorded ones of three versions, with fields missing, new, null or of unknown words."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bankclient.api.models import (
    Bank,
    Document,
    Done,
    Health,
    Memory,
    MemoryHistory,
    Operation,
    Page,
    RecallResult,
    ReflectResult,
    RetainResult,
    Version,
)
from bankclient.api.models.base import Part, Reply, reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bankclient.api import Call

    EveryCall = Callable[[str], dict[str, Call[Any]]]
    Recorded = Callable[[str], bytes]

FOLDER = Path(__file__).parent / "replies"
RECORDED = sorted(str(file.relative_to(FOLDER).with_suffix("")) for file in FOLDER.glob("*/*.json"))
ANOTHER_NAME = {"get_operation_not_found": "get_operation", "retain_background": "retain_many"}
REQUIRED = {"id", "bank_id", "chunk_id", "operation_id", "tag", "api_version"}
"""Fields that tell a thing from others: a null for these is no thing."""
BY_NAME = {"entities", "chunks", "source_facts"}
"""Objects that hold things by name: one more key there is one more thing."""
DATA = {"config", "overrides", "metadata", "document_metadata", "retain_params", "result_metadata", "structured_output"}
DATA |= {"input", "output", "nodes_by_fact_type", "links_by_link_type", "links_by_fact_type", "links_breakdown"}
DATA |= {"operations_by_status"}
"""Objects that are data themselves."""


@pytest.fixture
def parse(every_call: EveryCall) -> Callable[[str, bytes], Any]:
    """Give the function that reads bytes as the reply to the call of a recorded name."""
    parsers = {name: call.parse for name, call in every_call("lighthouse").items()}

    def read(recorded: str, raw: bytes) -> Any:  # noqa: ANN401 - the model of that call
        name = recorded.rpartition("/")[2]
        return parsers[ANOTHER_NAME.get(name, name)](raw)

    return read


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - any JSON value
    """Yield the path of every value inside a JSON value."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(item, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a copy of a JSON value with another value at a path."""
    copy = json.loads(json.dumps(value))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return copy


def without_nulls(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value as a server from 0.8.3 to 0.10 sends it, which leaves null fields out."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def known(model: Any) -> Any:  # noqa: ANN401 - any value of a field
    """Return what a model holds in its own fields."""
    if isinstance(model, Part):
        return {name: known(getattr(model, name)) for name in type(model).model_fields}
    if isinstance(model, dict):
        return {key: known(item) for key, item in model.items()}
    return tuple(map(known, model)) if isinstance(model, tuple) else model


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_reply_is_read(name: str, parse: Callable[[str, bytes], Any], recorded: Recorded) -> None:
    """Each reply that a real server gave is read, and is not taken for one of a degraded client."""
    reply = parse(name, recorded(name))
    assert isinstance(reply, Reply)
    assert not reply.degraded


@pytest.mark.parametrize("name", RECORDED)
def test_a_null_is_the_same_as_nothing(name: str, parse: Callable[[str, bytes], Any], recorded: Recorded) -> None:
    """A reply without its null fields is read as the same thing."""
    raw = recorded(name)
    plain = {"trace", "structured_output", "task_payload", "config"}  # JSON as it is, with its nulls
    full, short = known(parse(name, raw)), known(parse(name, json.dumps(without_nulls(json.loads(raw))).encode()))
    for field in full:
        if field not in plain:
            assert short[field] == full[field], field


@pytest.mark.parametrize("name", RECORDED)
def test_a_null_anywhere_is_borne(name: str, parse: Callable[[str, bytes], Any], recorded: Recorded) -> None:
    """Any one value but a name may be null, and the reply is still read."""
    value = json.loads(recorded(name))
    for path in places(value):
        if path[-1] not in REQUIRED:
            assert isinstance(parse(name, json.dumps(changed(value, path, None)).encode()), Reply), path


@pytest.mark.parametrize("name", RECORDED)
def test_a_new_field_anywhere_is_kept(name: str, parse: Callable[[str, bytes], Any], recorded: Recorded) -> None:
    """A field that this version does not know, at any level, changes nothing of what it does know."""
    value = json.loads(recorded(name))
    before = known(parse(name, json.dumps(value).encode()))
    for path in [(), *places(value)]:
        inner = value
        for key in path:
            inner = inner[key]
        if isinstance(inner, dict) and not DATA & set(path) and not BY_NAME & set(path[-1:]):
            after = parse(name, json.dumps(changed(value, (*path, "brand_new"), {"a": [1]})).encode())
            assert known(after) == before, path
            if not path:
                assert after.brand_new == {"a": [1]}


@pytest.mark.parametrize("name", RECORDED)
def test_a_server_cannot_call_itself_degraded(
    name: str, parse: Callable[[str, bytes], Any], recorded: Recorded
) -> None:
    """The mark of our own empty answers is never taken from a reply, well-formed or mended."""
    value = json.loads(recorded(name))
    if isinstance(value, dict):
        raw = json.dumps(value | {"degraded": True, "half": "\ud83d"}).encode()
        assert parse(name, raw).degraded is False
        assert parse(name, json.dumps(value | {"degraded": True}).encode()).degraded is False


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=8)
    | st.sampled_from(["", "valid", "2031-05-06T07:08:09Z", "9999-99-99", "a, b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_json_is_read_or_refused(data: st.DataObject, every_call: EveryCall) -> None:
    """Whatever JSON a server sends, a parser reads it or raises `ValueError`, and nothing else."""
    name, call = data.draw(st.sampled_from(sorted(every_call("lighthouse").items(), key=lambda pair: pair[0])))
    try:
        reply = call.parse(json.dumps(data.draw(JSON_VALUES)).encode())
    except ValueError:
        return
    assert name == "request" or not reply.degraded


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_spoilt_reply_is_read_or_refused(
    data: st.DataObject, parse: Callable[[str, bytes], Any], recorded: Recorded
) -> None:
    """A real reply with any value in it replaced by any other is read, or refused with `ValueError`."""
    name = data.draw(st.sampled_from(RECORDED))
    value = json.loads(recorded(name))
    for _ in range(data.draw(st.integers(1, 3))):
        paths = list(places(value))
        if paths:
            value = changed(value, data.draw(st.sampled_from(paths)), data.draw(JSON_VALUES))
    with suppress(ValueError):
        assert isinstance(parse(name, json.dumps(value).encode()), Reply)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=40), cut=st.integers(0, 1200))
def test_any_bytes_are_read_or_refused(
    raw: bytes, cut: int, parse: Callable[[str, bytes], Any], recorded: Recorded
) -> None:
    """Bytes that are no JSON, and a reply cut anywhere, raise `ValueError`, and nothing else."""
    for spoilt in (raw, recorded("recall")[:cut] + raw):
        with suppress(ValueError):
            assert isinstance(parse("recall", spoilt), RecallResult)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<html><body>gateway</body></html>",
        b"[]",
        b'"recall"',
        b"{}",
        b'{"detail":"Bank not found"}',
        b'{"results":"none"}',
        b'{"results":[{"text":"no id"}]}',
        b'{"results":[],"n":' + b"9" * 5000 + b"}",
        b'{"results":[],"trace":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}",
        b"[" * 100_000,
        b'{"results":[{"id":"a","text":"x","scores":{"final":"high"}}]}',
    ],
    ids=lambda raw: raw[:24].decode(),
)
def test_what_breaks_the_contract_is_one_named_error(raw: bytes) -> None:
    """Other JSON, HTML, numbers without end and endless nesting are each one `ValueError` that names the model."""
    with pytest.raises(ValueError, match=r"^not a RecallResult: "):
        reader(RecallResult)(raw)


def test_an_error_names_the_field_and_quotes_nothing() -> None:
    """The message says where the fault is; the server's text, which may be anyone's memory, is not in it."""
    raw = b'{"results":[{"id":"a","text":["the keeper is ill"]},{"id":1},{"id":2},{"id":3}]}'
    with pytest.raises(ValueError, match=r"results\.0\.text: .*more\)") as caught:
        reader(RecallResult)(raw)
    assert "keeper" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb'{"results":[{"id":"a","text":"half \ud83d of a pair"}]}', "half \ufffd of a pair"),
        (rb'{"results":[{"id":"a","text":"\ud83d\ude00"}]}', "😀"),
        (b'\xef\xbb\xbf{"results":[{"id":"a","text":"after a mark"}]}', "after a mark"),
        (b'{"results":[{"id":"a","text":"no \xff utf-8"}]}', "no \ufffd utf-8"),
        (b'{"results":[{"id":"a","text":"x","scores":{"final":NaN,"keyword":-Infinity}}]}', "x"),
        (b'{"results":[{"id":"a","text":"lines\xe2\x80\xa8\xc2\x85end"}]}', "lines\u2028\x85end"),
    ],
)
def test_json_that_strict_parsers_refuse_is_mended(raw: bytes, text: str) -> None:
    """Half pairs, marks, wrong bytes and NaN cost a letter or a number, never the recall."""
    (memory,) = reader(RecallResult)(raw).results
    assert memory.text == text
    assert memory.scores is None or memory.scores.final is None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2031-05-06T07:08:09+00:00", datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("2031-05-06T07:08:09Z", datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("2031-05-06T07:08:09", datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("2031-05-06T09:08:09+02:00", datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)),
        ("2031-05-06 07:08:09.9+00", datetime(2031, 5, 6, 7, 8, 9, 900_000, tzinfo=UTC)),
        ("2031-05-06", datetime(2031, 5, 6, tzinfo=UTC)),
        ("", None),
        ("yesterday", None),
        ("9999-99-99", None),
        (1_935_000_000, None),
        (None, None),
        ({"at": "noon"}, None),
    ],
)
def test_a_time_is_aware_or_none(text: object, moment: datetime | None) -> None:
    """A time is read with its offset, UTC where it has none; one that is no time never costs the reply."""
    read = reader(Memory)(json.dumps({"id": "a", "date": text}).encode()).date
    assert read == moment
    assert read is None or read.utcoffset() is not None


def test_a_memory_is_one_model_in_both_forms(recorded: Recorded) -> None:
    """A list says `fact_type` and joins entities into a text, a single one has `type` and a list: both read alike."""
    (listed,) = reader(Page[Memory])(recorded("list_memories")).items
    single = reader(Memory)(recorded("get_memory"))
    assert listed.type == single.type == "world"
    assert listed.entities == single.entities == ("Maren", "northern lamp")
    assert listed.metadata == single.metadata == {"page": "12"}
    assert reader(Memory)(b'{"id":"a","entities":""}').entities == ()


def test_metadata_is_text_without_nulls() -> None:
    """A null in metadata is left out, and a value that is no text is kept as its JSON."""
    raw = b'{"id":"a","metadata":{"a":null,"b":"x","c":3,"d":[true,null]}}'
    assert reader(Memory)(raw).metadata == {"b": "x", "c": "3", "d": "[true, null]"}


def test_words_that_are_new_are_kept_as_they_are() -> None:
    """A kind, state or status that this version does not know is read as its text."""
    (memory,) = reader(RecallResult)(b'{"results":[{"id":"a","text":"x","type":"dream"}]}').results
    assert memory.type == "dream"
    assert reader(Memory)(b'{"id":"a","state":"asleep"}').state == "asleep"
    operation = reader(Operation)(b'{"operation_id":"a","status":"paused"}')
    assert (operation.status, operation.is_terminal) == ("paused", False)


def test_a_null_list_inside_and_outside_is_empty() -> None:
    """`results: null` is nothing found, and a null among things is left out."""
    read = reader(RecallResult)
    assert read(b'{"results":null}').results == ()
    (memory,) = read(b'{"results":[null,{"id":"a","text":null,"tags":["x",null]}],"entities":{"b":null}}').results
    assert (memory.text, memory.tags) == ("", ("x",))


def test_recall_gives_what_was_recorded(recorded: Recorded) -> None:
    """The main facts of a recall come out as they went in."""
    result = reader(RecallResult)(recorded("recall"))
    best = result.results[0]
    assert best.text == "Maren lit the northern lamp at dusk."
    assert best.tags == ("harbour",)
    assert best.mentioned_at == datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert best.scores is not None
    assert best.scores.final is not None
    assert best.chunk_id is not None
    assert result.chunks[best.chunk_id].text == best.text
    assert result.entities["Maren"].canonical_name == "Maren"
    assert result.trace is None


def test_a_recall_of_an_old_server_has_no_scores(recorded: Recorded) -> None:
    """A server that knows neither scores nor offsets is read as well."""
    (memory,) = reader(RecallResult)(recorded("0.4.22/recall")).results
    assert memory.scores is None
    assert memory.mentioned_at == datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


def test_retain_names_all_its_operations(recorded: Recorded) -> None:
    """One operation or several are read from whichever field the server names them in."""
    read = reader(RetainResult)
    assert read(recorded("retain")).operation_ids == ()
    background = read(recorded("retain_background"))
    assert background.is_async
    assert background.operation_ids == (background.operation_id,)
    assert read(b'{"success":true,"operation_id":"a","operation_ids":["a","b"]}').operation_ids == ("a", "b")


def test_a_page_is_one_model_whatever_the_list_is_called(recorded: Recorded) -> None:
    """Banks, operations and the rest are `items` of a page; a total that is not sent is what was seen."""
    banks = reader(Page[Bank])
    assert banks(recorded("list_banks")).items[0].bank_id == "lighthouse"
    old = banks(recorded("0.4.22/list_banks"))
    assert (old.total, len(old.items), old.next_offset) == (2, 2, None)
    page = reader(Page[Operation])(recorded("list_operations"))
    assert (len(page.items), page.next_offset) == (2, 2)
    assert reader(Page[Operation])(recorded("0.4.22/list_operations")).items[0].operation_type == "retain"


@pytest.mark.parametrize(
    ("reply", "following"),
    [
        ({"items": [{"id": "a"}], "total": 3, "offset": 0}, 1),
        ({"items": [{"id": "a"}], "total": 3, "offset": 2}, None),
        ({"items": [], "total": 3, "offset": 9}, None),
        ({"items": [], "total": 3, "limit": 0}, None),
        ({"items": [{"id": "a"}], "total": None, "offset": 4}, None),
    ],
)
def test_a_page_knows_where_the_next_begins(reply: dict[str, object], following: int | None) -> None:
    """The next page begins where this one ends; an empty page is the last, so that no loop goes on for ever."""
    assert reader(Page[Document])(json.dumps(reply).encode()).next_offset == following


def test_done_counts_what_was_removed(recorded: Recorded) -> None:
    """Memories of a bank and of a document are counted under two names and read under one."""
    read = reader(Done)
    assert read(recorded("clear_memories")).deleted_count is not None
    assert read(recorded("delete_document")).deleted_count == 1
    assert read(recorded("0.4.22/clear_memories")).deleted_count is None
    assert read(recorded("patch_document")).success


def test_history_is_a_list_made_a_reply() -> None:
    """The bare list that the server sends becomes the changes of a history."""
    read = reader(MemoryHistory)
    assert read(b"[]").changes == ()
    (change,) = read(b'[{"previous_text":"dark","changed_at":"2031-05-06T07:08:09Z","degraded":true}]').changes
    assert change.previous_text == "dark"
    with pytest.raises(ValueError, match="MemoryHistory"):
        read(b'{"detail":"no"}')


def test_reflect_has_its_basis_and_trace(recorded: Recorded) -> None:
    """What the answer rests on and how it was made are typed; structured output keeps its nulls."""
    result = reader(ReflectResult)(recorded("reflect"))
    assert result.based_on is not None
    assert result.based_on.memories[0].document_id == "log/1"
    assert result.trace is not None
    assert [call.tool for call in result.trace.tool_calls] == ["search_observations", "recall"]
    assert result.structured_output == {"name": None}


def test_health_is_healthy_only_by_its_word() -> None:
    """A 503 in the server's own shape is read, and a gateway's is not taken for one."""
    read = reader(Health)
    assert read(b'{"status":"healthy","database":"connected"}').healthy
    sick = read(b'{"status":"unhealthy","database":"error","error":"no route"}')
    assert (sick.healthy, sick.error) == (False, "no route")
    with pytest.raises(ValueError, match="status"):
        read(b'{"detail":"busy"}')


def test_a_feature_that_is_not_named_is_off(recorded: Recorded) -> None:
    """An old server names fewer features, and a new one is kept by its name."""
    features = reader(Version)(recorded("0.4.22/version")).features
    assert features.observations
    assert not features.audit_log
    assert reader(Version)(b'{"api_version":"2.0.0"}').features.mcp is False


def test_replies_are_frozen() -> None:
    """A reply is a value: its fields cannot be set, and our mark is set on a copy."""
    reply = RecallResult(results=())
    with pytest.raises(ValueError, match="frozen"):
        reply.results = ()  # type: ignore[misc] # what the test is about
    assert RecallResult(results=(), degraded=True).degraded
    assert reply.model_copy(update={"degraded": True}).degraded


@pytest.mark.parametrize(
    ("operation", "to_cancel"),
    [
        ({"status": "pending", "child_operations": [{"operation_id": "c", "status": "pending"}]}, ("c",)),
        (
            {
                "status": "pending",
                "child_operations": [
                    {"operation_id": "c", "status": "completed"},
                    {"operation_id": "d", "status": "processing"},
                ],
            },
            ("d",),
        ),
        ({"status": "cancelled", "child_operations": [{"operation_id": "c", "status": "pending"}]}, ("c",)),
        ({"status": "pending", "child_operations": None}, ("a",)),
        ({"status": "processing"}, ("a",)),
        ({"status": "completed"}, ()),
        ({"status": "not_found"}, ()),
    ],
)
def test_a_parent_is_cancelled_by_its_children(operation: dict[str, Any], to_cancel: tuple[str, ...]) -> None:
    """Cancelling a parent stops nothing, so its children that still work are to be cancelled."""
    assert reader(Operation)(json.dumps({"operation_id": "a"} | operation).encode()).ids_to_cancel == to_cancel


@pytest.mark.parametrize(
    ("status", "terminal"),
    [
        ("pending", False),
        ("processing", False),
        ("completed", True),
        ("failed", True),
        ("cancelled", True),
        ("not_found", True),
    ],
)
def test_which_statuses_end(status: str, terminal: bool) -> None:
    """An operation that ended changes no more by itself."""
    assert Operation(operation_id="a", status=status).is_terminal is terminal


@pytest.mark.parametrize(
    ("operation", "failure"),
    [
        ({}, ""),
        ({"error_message": "no model"}, "no model"),
        (
            {"error_message": 'Traceback (most recent call last):\n  File "x", line 1\nOSError: no room\n'},
            "OSError: no room",
        ),
        ({"child_operations": [{"operation_id": "c", "status": "failed", "error_message": "child"}]}, "child"),
        ({"error_message": " \n "}, ""),
    ],
)
def test_a_failure_is_one_line(operation: dict[str, Any], failure: str) -> None:
    """Of a traceback the error itself is told, and a parent without a message tells its child's."""
    raw = json.dumps({"operation_id": "a", "status": "failed"} | operation).encode()
    assert reader(Operation)(raw).failure == failure


@pytest.mark.parametrize(
    ("metadata", "count"),
    [({"extraction_errors_count": 2}, 2), ({"extraction_errors_count": None}, 0), ({}, 0), (None, 0)],
)
def test_a_completed_operation_tells_what_it_could_not_read(metadata: object, count: int) -> None:
    """`completed` is no proof that facts were drawn from all of the text."""
    raw = json.dumps({"operation_id": "a", "status": "completed", "result_metadata": metadata}).encode()
    assert reader(Operation)(raw).extraction_errors == count


def test_a_reply_becomes_json_again_without_a_warning() -> None:
    """Times as ISO 8601, and what is absent as null."""
    read = reader(RecallResult)
    answer = read(b'{"results": [{"id": "a", "text": "t", "mentioned_at": "2026-01-02T03:04:05Z"}]}')
    assert read(answer.model_dump_json().encode()) == answer
    assert '"mentioned_at":"2026-01-02T03:04:05+00:00"' in answer.model_dump_json()
