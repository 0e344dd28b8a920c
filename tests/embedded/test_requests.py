"""Foreign input: whatever is sent, the answer has the server's shape; and what only this bank refuses or adds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bankclient.embedded.routing import ROUTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.embedded import EmbeddedServer

_JSON = {"content-type": "application/json"}
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_FIELD_NAMES = """
    items content timestamp tags metadata document_id entities async operation_id update_mode query types budget
    max_tokens include tag_groups tags_match min_scores temporal_window and or not match resolve state text context
    updates name
"""
_FIELDS = _FIELD_NAMES.split()
_BODIES = st.dictionaries(
    st.sampled_from(_FIELDS),
    _VALUES | st.lists(st.dictionaries(st.sampled_from(_FIELDS), _VALUES, max_size=3), max_size=2),
)
_shared_server = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@_shared_server
@given(
    st.sampled_from(sorted({route.method for route in ROUTES})),
    st.sampled_from(sorted({route.path for route in ROUTES})),
    st.text(min_size=1, max_size=4),
    _BODIES,
)
def test_no_json_makes_the_server_fail(server: EmbeddedServer, method: str, path: str, name: str, body: Any) -> None:  # noqa: ANN401 - any JSON
    """Any JSON at any endpoint gets a 2xx, or a 4xx with a detail."""
    target = path.replace(":path", "").format(bank_id="bank", **dict.fromkeys(_NAMES, _escaped(name)))
    reply = server.answer(method, target, json.dumps(body).encode(), _JSON)
    assert reply.status < 500, (target, body, reply.body)
    assert reply.status in {200, 307} or "detail" in json.loads(reply.body)


_NAMES = ("memory_id", "document_id", "operation_id", "chunk_id", "entity_id")


def _escaped(name: str) -> str:
    return "".join(f"%{byte:02X}" for byte in name.encode("utf-8", "replace"))


@_shared_server
@given(
    st.binary(max_size=60),
    st.text(max_size=30).map(_escaped),
    st.sampled_from(["/memories", "/memories/recall", "/reflect"]),
)
def test_no_bytes_make_the_server_fail(server: EmbeddedServer, body: bytes, query: str, below: str) -> None:
    """Bodies that are no JSON, and queries that are no pairs, are refused or passed over; by chance one is good."""
    reply = server.answer("POST", f"/v1/default/banks/bank{below}?{query}", body, _JSON)
    assert reply.status < 500, reply.body


@_shared_server
@given(st.text(max_size=60))
def test_any_text_is_a_query(server: EmbeddedServer, query: str) -> None:
    """It is answered, or refused for want of a word."""
    server.answer("PUT", "/v1/default/banks/bank", b"{}", _JSON)
    reply = server.answer(
        "POST", "/v1/default/banks/bank/memories/recall", json.dumps({"query": query}).encode(), _JSON
    )
    assert reply.status in {200, 422}, reply.body


@_shared_server
@given(st.text(min_size=1, max_size=80))
def test_any_text_is_retained_as_it_is(server: EmbeddedServer, text: str) -> None:
    """But for NUL and lone surrogates, which no database holds."""
    server.answer("DELETE", "/v1/default/banks/bank")
    body = json.dumps({"items": [{"content": f"x{text}", "document_id": "d"}]}).encode()
    assert server.answer("POST", "/v1/default/banks/bank/memories", body, _JSON).status == 200
    document = json.loads(server.answer("GET", "/v1/default/banks/bank/documents/d").body)
    assert document["original_text"] == f"x{text}".replace("\x00", "")


def test_attachments_are_refused_with_the_reason(call: Callable[..., Any]) -> None:
    """The bank keeps text only, and nothing of the request is stored."""
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    blocks = [{"type": "text", "text": "see"}, {"type": "image", "source": source}]
    status, answer = call("POST", "/memories", {"items": [{"content": "good"}, {"content": blocks}]})
    assert status == 422
    assert answer["detail"].startswith("items[1].content carries an attachment; the embedded bank keeps text only")
    assert call("GET", "/stats")[0] == 404


def test_a_quote_of_reflect_is_cut_to_its_budget(call: Callable[..., Any]) -> None:
    """The closest memory is always quoted, others as long as there is room, each on a line of its own."""
    items = [{"content": f"The ferry number {n}\nleaves {'late ' * 30}", "document_id": str(n)} for n in range(5)]
    call("POST", "/memories", {"items": items})

    def lines(max_tokens: int) -> list[str]:
        status, answer = call("POST", "/reflect", {"query": "ferry", "max_tokens": max_tokens})
        assert status == 200
        return list(answer["text"].split("\n"))

    assert len(lines(4096)) == 6
    assert len(lines(120)) == 3
    assert len(lines(1)) == 2
    assert len(lines(1)[1]) <= 4 * 32
    assert all(line.startswith("- The ferry number") for line in lines(4096)[1:])


def test_reflect_without_evidence_says_so(call: Callable[..., Any]) -> None:
    """It does not make anything up."""
    status, answer = call("POST", "/reflect", {"query": "Who?", "include": {"facts": {}, "tool_calls": {}}})
    assert status == 200
    assert answer["text"] == "The embedded bank found no memory that shares a word with this question."
    assert answer["based_on"] == {"memories": [], "mental_models": [], "directives": []}
    assert answer["trace"] == {"tool_calls": [], "llm_calls": []}


@pytest.mark.parametrize("path", ["/mental-models", "/directives", "/webhooks", "/graph", "/files/retain"])
def test_what_is_not_offered_is_not_found(call: Callable[..., Any], path: str) -> None:
    """As on a server that is too old for it."""
    assert call("GET", path) == (404, {"detail": "Not Found"})


def test_features_say_what_is_there(server: EmbeddedServer) -> None:
    """None is claimed that a caller could not use."""
    features = json.loads(server.answer("GET", "/version").body)["features"]
    assert {name for name, there in features.items() if there} == {"worker", "bank_config_api", "store_document_text"}


def test_every_handler_says_what_it_answers() -> None:
    """The table has each method and path once, and a sentence for each public handler."""
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)
    assert all(route.handler.__doc__ for route in ROUTES if not route.handler.__name__.startswith("_"))
