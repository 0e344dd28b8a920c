"""Checks on the wire: routes, methods, bodies that are no JSON, unknown fields, health and version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.testing.conformance.probe import faults

if TYPE_CHECKING:
    from bankclient.testing.conformance.probe import Probe


def check_health_and_version_need_no_bank(probe: Probe) -> None:
    """Health, liveness, and the version at both of its paths."""
    assert probe.request("GET", "/health").json["status"] == "healthy"
    assert probe.request("GET", "/health/ready").json["database"] == "connected"
    alive = probe.request("GET", "/health/live").json
    assert (alive["status"], alive["version"]) == ("alive", "1.1.0")
    version = probe.request("GET", "/version").json
    assert version["api_version"] == "1.1.0"
    assert version["features"]["store_document_text"] is True
    assert version["features"]["observations"] is False
    assert probe.request("GET", "/v1/version").json == version


def check_an_unknown_route_is_404_and_a_wrong_method_405(probe: Probe) -> None:
    """405 names one method, that of the first route at the path; HEAD and OPTIONS are no exception."""
    unknown = probe.request("GET", "/nope")
    assert (unknown.status, unknown.json) == (404, {"detail": "Not Found"})
    for method, below, allowed in (
        ("GET", "", "PUT"),
        ("POST", "", "PUT"),
        ("PUT", "/memories", "POST"),
        ("DELETE", "/memories/recall", "GET"),
        ("OPTIONS", "/stats", "GET"),
    ):
        answer = probe.ask(method, below)
        assert (answer.status, answer.headers["allow"]) == (405, allowed)
        assert answer.json == {"detail": "Method Not Allowed"}
    assert probe.ask("HEAD", "/stats").status == 405
    assert probe.ask("GET", "/memories/recall").status == 400


def check_a_trailing_slash_is_redirected(probe: Probe) -> None:
    """307 to the path without it, the query kept."""
    answer = probe.ask("GET", "/memories/list/?limit=1")
    assert answer.status == 307
    assert answer.headers["location"].endswith(probe.path("/memories/list?limit=1"))


def check_a_slash_in_a_bank_id_is_another_path(probe: Probe) -> None:
    """Escaped or not, a slash parts segments."""
    assert probe.request("GET", "/v1/default/banks/a%2Fb/stats").status == 404
    assert probe.request("PUT", "/v1/default/banks/a%2Fb").detail == "Not Found"


def check_unknown_fields_are_ignored_and_named(probe: Probe) -> None:
    """Top-level ones and those of the query stand in a header, also on an error; deeper ones have no sign."""
    made = probe.ask("PUT", "?zork=1", {"foo": 1, "bar": 2})
    assert (made.status, made.headers["x-ignored-params"]) == (200, "zork, foo, bar")
    refused = probe.ask("POST", "/memories/recall", {"query": "!", "foo": 1})
    assert (refused.status, refused.headers["x-ignored-params"]) == (422, "foo")
    inside = probe.ask("POST", "/memories", {"items": [{"content": "x", "foo": 1}]})
    assert inside.status == 200
    assert "x-ignored-params" not in inside.headers
    assert "x-ignored-params" not in probe.ask("GET", "/memories/list?limit=1").headers


def check_a_body_that_is_no_json_is_refused(probe: Probe) -> None:
    """Broken JSON is 422 at its place, no body is a missing one, bytes that are no text are 400."""
    probe.ask("PUT", "", {})
    path = probe.path("/memories/recall")
    for content, kind, place in (
        (b"{", "json_invalid", [1]),
        (b'{"query":"x",}', "json_invalid", [13]),
        (b"", "missing", []),
        (b"null", "model_attributes_type", []),
        (b"[1]", "model_attributes_type", []),
    ):
        assert faults(probe.request("POST", path, content=content)) == [(kind, ["body", *place])], content
    broken = probe.request("POST", path, content=b'{"query":"a\xff"}')
    assert (broken.status, broken.detail) == (400, "There was an error parsing the body")


def check_a_body_is_json_only_where_it_says_so(probe: Probe) -> None:
    """Other content types are not looked into; UTF-16 and a byte order mark are JSON."""
    probe.ask("PUT", "", {})
    path = probe.path("/memories/recall")
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = probe.request("POST", path, content=b'{"query":"x"}', kind=kind)
        assert faults(answer) == [("model_attributes_type", ["body"])]
    for kind in ("application/json; charset=utf-8", "application/vnd.api+json"):
        assert probe.request("POST", path, content=b'{"query":"x"}', kind=kind).status == 200
    for content in ('{"query":"x"}'.encode("utf-16"), b'\xef\xbb\xbf{"query":"x"}'):
        assert probe.request("POST", path, content=content).status == 200


def check_a_fault_echoes_what_was_sent(probe: Probe) -> None:
    """`input` is the value refused, for the whole body the body."""
    answer = probe.ask("POST", "/memories", {"items": [{"content": ""}]})
    assert answer.detail == [
        {
            "type": "value_error",
            "loc": ["body", "items", 0, "content"],
            "msg": "Value error, content cannot be empty",
            "input": "",
            "ctx": {"error": {}},
        }
    ]


def check_nan_in_a_refused_value_is_a_bare_500(probe: Probe) -> None:
    """The echo cannot be written as JSON, and the server fails over it; nothing is stored."""
    body = b'{"items": [{"content": "x", "metadata": {"a": NaN}}]}'
    answer = probe.request("POST", probe.path("/memories"), content=body)
    assert (answer.status, answer.body) == (500, b"Internal Server Error")
    assert answer.headers["content-type"].startswith("text/plain")


def check_queries_are_validated(probe: Probe) -> None:
    """The place of a fault in the query is the parameter."""
    probe.ask("PUT", "", {})
    assert faults(probe.ask("GET", "/memories/list?limit=x")) == [("int_parsing", ["query", "limit"])]
    assert faults(probe.ask("GET", "/stats?refresh=zz")) == [("bool_parsing", ["query", "refresh"])]
    assert probe.ask("GET", "/memories/list?limit=0&limit=1").json["limit"] == 1
