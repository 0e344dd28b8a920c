"""The calls on banks, memories, documents, tags and operations: what each sends, and what is refused before."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from bankclient.api import Repeat, calls
from bankclient.api.calls import BankFields
from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.api import Call

ID = UUID("5b1f6f2e-6f0e-4c39-8a43-0d2b5f3c9a10")
BANK = "/v1/default/banks/lighthouse"

REQUESTS: list[tuple[Callable[[], Call[Any]], str, list[tuple[str, str]], object]] = [
    (calls.health, "GET /health", [], None),
    (calls.live, "GET /health/live", [], None),
    (calls.version, "GET /v1/version", [], None),
    (lambda: calls.version(path="/version"), "GET /version", [], None),
    (calls.list_banks, "GET /v1/default/banks", [], None),
    (
        lambda: calls.list_banks(q="a&b", limit=0, offset=5),
        "GET /v1/default/banks",
        [("q", "a&b"), ("limit", "0"), ("offset", "5")],
        None,
    ),
    (lambda: calls.put_bank("lighthouse"), f"PUT {BANK}", [], {}),
    (
        lambda: calls.put_bank("lighthouse", reflect_mission="Keep the log.", name=None, enable_reranking=False),
        f"PUT {BANK}",
        [],
        {"reflect_mission": "Keep the log.", "enable_reranking": False},
    ),
    (
        lambda: calls.patch_bank("lighthouse", disposition_empathy=5, retain_extraction_mode="verbatim"),
        f"PATCH {BANK}",
        [],
        {"disposition_empathy": 5, "retain_extraction_mode": "verbatim"},
    ),
    (lambda: calls.delete_bank("lighthouse"), f"DELETE {BANK}", [], None),
    (lambda: calls.get_bank_stats("lighthouse"), f"GET {BANK}/stats", [], None),
    (lambda: calls.get_bank_stats("lighthouse", refresh=True), f"GET {BANK}/stats", [("refresh", "true")], None),
    (lambda: calls.get_bank_config("lighthouse"), f"GET {BANK}/config", [], None),
    (
        lambda: calls.patch_bank_config("lighthouse", {"retain_mission": None}),
        f"PATCH {BANK}/config",
        [],
        {"updates": {"retain_mission": None}},
    ),
    (lambda: calls.reset_bank_config("lighthouse"), f"DELETE {BANK}/config", [], None),
    (lambda: calls.list_memories("lighthouse"), f"GET {BANK}/memories/list", [], None),
    (
        lambda: calls.list_memories(
            "lighthouse",
            q="lamp",
            fact_type="observation",
            tags=["a", "b,c"],
            tags_match="all_strict",
            document_id="log/1",
            entity_id=str(ID).upper(),
            state="invalidated",
            consolidation_state="pending",
            time_field="mentioned_at",
            start_date="2031-05-06",
            end_date=datetime(2031, 5, 7, tzinfo=UTC),
            limit=10,
            offset=20,
        ),
        f"GET {BANK}/memories/list",
        [
            ("q", "lamp"),
            ("type", "observation"),
            ("tags", "a"),
            ("tags", "b,c"),
            ("tags_match", "all_strict"),
            ("document_id", "log/1"),
            ("entity_id", str(ID)),
            ("state", "invalidated"),
            ("consolidation_state", "pending"),
            ("time_field", "mentioned_at"),
            ("start_date", "2031-05-06T00:00:00+00:00"),
            ("end_date", "2031-05-07T00:00:00+00:00"),
            ("limit", "10"),
            ("offset", "20"),
        ],
        None,
    ),
    (lambda: calls.get_memory("lighthouse", ID), f"GET {BANK}/memories/{ID}", [], None),
    (lambda: calls.get_memory("lighthouse", ID.hex.upper()), f"GET {BANK}/memories/{ID}", [], None),
    (
        lambda: calls.patch_memory(
            "lighthouse",
            ID,
            text="The lamp is out.",
            context="",
            occurred_start="2031-05-06",
            occurred_end="",
            fact_type="world",
            entities=[],
            resolve_entities=False,
            state="valid",
            reason="seen",
        ),
        f"PATCH {BANK}/memories/{ID}",
        [],
        {
            "text": "The lamp is out.",
            "context": "",
            "occurred_start": "2031-05-06T00:00:00+00:00",
            "occurred_end": "",
            "fact_type": "world",
            "entities": [],
            "resolve_entities": False,
            "state": "valid",
            "reason": "seen",
        },
    ),
    (
        lambda: calls.invalidate_memory("lighthouse", ID, reason="out"),
        f"PATCH {BANK}/memories/{ID}",
        [],
        {"state": "invalidated", "reason": "out"},
    ),
    (lambda: calls.restore_memory("lighthouse", ID), f"PATCH {BANK}/memories/{ID}", [], {"state": "valid"}),
    (lambda: calls.get_memory_history("lighthouse", ID), f"GET {BANK}/memories/{ID}/history", [], None),
    (lambda: calls.clear_memories("lighthouse"), f"DELETE {BANK}/memories", [], None),
    (
        lambda: calls.clear_memories("lighthouse", fact_type="world"),
        f"DELETE {BANK}/memories",
        [("type", "world")],
        None,
    ),
    (lambda: calls.list_documents("lighthouse"), f"GET {BANK}/documents", [], None),
    (
        lambda: calls.list_documents("lighthouse", q="log", tags="a", time_field="updated_at", limit=1),
        f"GET {BANK}/documents",
        [("q", "log"), ("tags", "a"), ("time_field", "updated_at"), ("limit", "1")],
        None,
    ),
    (lambda: calls.get_document("lighthouse", "log/1"), f"GET {BANK}/documents/log%2F1", [], None),
    (
        lambda: calls.patch_document("lighthouse", "log/1", tags=[]),
        f"PATCH {BANK}/documents/log%2F1",
        [],
        {"tags": []},
    ),
    (
        lambda: calls.patch_document("lighthouse", "..", tags="ab", observation_scopes="shared"),
        f"PATCH {BANK}/documents/%2E%2E",
        [],
        {"tags": ["ab"], "observation_scopes": "shared"},
    ),
    (lambda: calls.delete_document("lighthouse", "a/chunks"), f"DELETE {BANK}/documents/a%2Fchunks", [], None),
    (lambda: calls.list_chunks("lighthouse", "log/1"), f"GET {BANK}/documents/log%2F1/chunks", [], None),
    (lambda: calls.list_tags("lighthouse"), f"GET {BANK}/tags", [], None),
    (
        lambda: calls.list_tags("lighthouse", q="project:*", source="mental_models", limit=3),
        f"GET {BANK}/tags",
        [("q", "project:*"), ("source", "mental_models"), ("limit", "3")],
        None,
    ),
    (
        lambda: calls.list_operations("lighthouse", status="failed", operation_type="retain", exclude_parents=False),
        f"GET {BANK}/operations",
        [("status", "failed"), ("type", "retain"), ("exclude_parents", "false")],
        None,
    ),
    (lambda: calls.get_operation("lighthouse", ID), f"GET {BANK}/operations/{ID}", [], None),
    (
        lambda: calls.get_operation("lighthouse", ID, include_payload=True),
        f"GET {BANK}/operations/{ID}",
        [("include_payload", "true")],
        None,
    ),
    (lambda: calls.cancel_operation("lighthouse", ID), f"DELETE {BANK}/operations/{ID}", [], None),
    (lambda: calls.retry_operation("lighthouse", ID), f"POST {BANK}/operations/{ID}/retry", [], None),
    (lambda: calls.delete_operation("lighthouse", ID), f"DELETE {BANK}/operations/{ID}/delete", [], None),
    (
        lambda: calls.request(
            "POST", f"{BANK}/webhooks", body={"url": "https://h"}, query={"dry": True, "a": [1, "b"]}
        ),
        f"POST {BANK}/webhooks",
        [("dry", "true"), ("a", "1"), ("a", "b")],
        {"url": "https://h"},
    ),
]


@pytest.mark.parametrize(("make", "line", "query", "body"), REQUESTS, ids=[row[1] for row in REQUESTS])
def test_each_call_sends_what_it_says(
    make: Callable[[], Call[Any]], line: str, query: list[tuple[str, str]], body: object
) -> None:
    """Method, path, query and body are those of the server's API; what is not given is not sent."""
    call = make()
    assert f"{call.method} {call.path}" == line
    assert list(call.query) == query
    assert (None if call.body is None else json.loads(call.body)) == body


REFUSED: list[tuple[Callable[[], Call[Any]], str]] = [
    (lambda: calls.put_bank("lighthouse", mision="x"), "no field 'mision': give any of name, reflect_mission"),  # type: ignore[call-arg] # the slip that is refused
    (lambda: calls.put_bank("lighthouse", retain_extraction_mode="brief"), "give one of concise"),  # type: ignore[arg-type] # the same
    (lambda: calls.patch_bank("lighthouse", retain_chunk_size=1.5), "retain_chunk_size is float"),  # type: ignore[arg-type] # the same
    (lambda: calls.patch_bank("lighthouse", enable_observations="no"), "enable_observations is str"),  # type: ignore[arg-type] # the same
    (lambda: calls.list_banks(limit=-1), "limit is int -1"),
    (lambda: calls.list_banks(offset=True), "offset is bool"),
    (lambda: calls.get_bank_stats("lighthouse", refresh=1), "refresh is int"),  # type: ignore[arg-type] # the same
    (lambda: calls.patch_bank_config("lighthouse", {}), "updates is empty"),
    (lambda: calls.list_memories("lighthouse", entity_id="Maren"), "entity_id is str 'Maren': give a UUID"),
    (lambda: calls.list_memories("lighthouse", fact_type="dream"), "fact_type is str"),  # type: ignore[arg-type] # the same
    (lambda: calls.list_memories("lighthouse", state="gone"), "state is str"),  # type: ignore[arg-type] # the same
    (lambda: calls.list_memories("lighthouse", start_date="soon"), "start_date is str"),
    (lambda: calls.get_memory("lighthouse", "list"), "memory_id is str 'list': give a UUID"),
    (lambda: calls.get_memory("lighthouse", "recall"), "memory_id is str"),
    (lambda: calls.patch_memory("lighthouse", ID), "nothing to change in the memory"),
    (lambda: calls.patch_memory("lighthouse", ID, reason="why"), "nothing to change in the memory"),
    (lambda: calls.patch_memory("lighthouse", ID, text=" "), "text is empty"),
    (lambda: calls.patch_memory("lighthouse", ID, fact_type="observation"), "give one of world, experience"),  # type: ignore[arg-type] # the same
    (lambda: calls.get_document("lighthouse", ""), "document_id is empty"),
    (lambda: calls.get_document("lighthouse", "a/chunks"), "ends like a route of the server"),
    (lambda: calls.get_document("lighthouse", "a/history"), "ends like a route of the server"),
    (lambda: calls.delete_document("lighthouse", " "), "document_id is empty"),
    (lambda: calls.patch_document("lighthouse", "log/1"), "nothing to change in the document"),
    (lambda: calls.list_chunks("lighthouse", ""), "document_id is empty"),
    (lambda: calls.list_tags("lighthouse", source="documents"), "give one of memories, mental_models"),  # type: ignore[arg-type] # the same
    (lambda: calls.get_operation("lighthouse", "one"), "operation_id is str 'one': give a UUID"),
    (lambda: calls.cancel_operation("lighthouse", ""), "operation_id is str '': give a UUID"),
    (lambda: calls.list_operations("lighthouse", exclude_parents="yes"), "exclude_parents is str"),  # type: ignore[arg-type] # the same
    (lambda: calls.request("get", "/version"), "method is 'get'"),
    (lambda: calls.request("GET", "version"), "path is 'version'"),
    (lambda: calls.request("GET", ""), "path is ''"),
    (lambda: calls.request("GET", "/"), "path is '/'"),
    (lambda: calls.request("GET", "//host/version"), "path is"),
    (lambda: calls.request("GET", "/v1/../version"), "path is"),
    (lambda: calls.request("GET", "/v1/.."), "path is"),
    (lambda: calls.request("GET", "/v1/version/"), "path is"),
    (lambda: calls.request("GET", "/v1/version?x=1"), "path is"),
    (lambda: calls.request("GET", "/v1/a b"), "path is"),
    (lambda: calls.request("GET", "/v1/ż"), "path is"),
    (lambda: calls.request("GET", "/v1/%2"), "path is"),
    (lambda: calls.request("GET", "/v1/version\n"), "path is"),
    (lambda: calls.request("POST", "/v1/x", body={"a": float("nan")}), "JSON cannot carry"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[row[1] for row in REFUSED])
def test_slips_are_refused_before_anything_is_sent(make: Callable[[], Call[Any]], message: str) -> None:
    """A value that the server refuses, takes for another route, or ignores in silence is named with its mend."""
    with pytest.raises(InvalidInput, match=message):
        make()


def test_every_field_of_a_bank_is_known_and_checked() -> None:
    """The fields that a caller may name are the ones that are checked."""
    for name in BankFields.__annotations__:
        with pytest.raises(InvalidInput, match=f"{name} is list"):
            calls.put_bank("lighthouse", **{name: []})  # type: ignore[arg-type] # the wrong kind for all


def test_health_takes_a_503_for_an_answer() -> None:
    """A server with its database down says so in its own shape; no other call reads a 503."""
    assert calls.health().accept == {503}
    assert calls.health().parse(b'{"status":"unhealthy","database":"error","error":"away"}').error == "away"
    assert calls.live().accept == frozenset()


def test_a_request_is_repeated_only_if_it_can_bear_it() -> None:
    """A GET changes nothing; of others only the caller knows."""
    assert calls.request("GET", "/v1/x").repeat is Repeat.READ
    assert calls.request("DELETE", "/v1/x").repeat is Repeat.NEVER
    assert calls.request("PUT", "/v1/x", repeat=Repeat.IDENTIFIED, time_limit="reflect").repeat is Repeat.IDENTIFIED


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"", None),
        (b" \n", None),
        (b"null", None),
        (b"[1,2.5]", [1, 2.5]),
        (b'{"a":{"b":"\xc5\xbc"}}', {"a": {"b": "ż"}}),
        (rb'{"a":"\ud83d"}', {"a": "\ufffd"}),
        (b'{"a":NaN}', {"a": None}),
        (b"\xef\xbb\xbf[]", []),
    ],
)
def test_a_request_reads_any_json(raw: bytes, value: object) -> None:
    """Whatever the endpoint answers comes as plain values; no body is `None`."""
    assert calls.request("GET", "/v1/x").parse(raw) == value


@pytest.mark.parametrize("raw", [b"<html>", b"{", b"1" * 5000, b"[" * 50_000, b'{"a":' * 500 + b"1" + b"}" * 500])
def test_a_request_refuses_what_is_no_json(raw: bytes) -> None:
    """HTML, cut JSON, numbers without end and endless nesting are each a `ValueError`."""
    with pytest.raises(ValueError):  # noqa: PT011 - any of json's and pydantic's own
        calls.request("GET", "/v1/x").parse(raw)


def test_the_bank_in_a_request_is_only_named() -> None:
    """The bank that errors and logs name changes nothing of what is sent."""
    assert calls.request("GET", "/v1/x", bank="lighthouse").path == "/v1/x"
    assert calls.request("GET", "/v1/x", bank="lighthouse").bank == "lighthouse"
