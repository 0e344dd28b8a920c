"""Checks on reflect: its answer's shape, its evidence, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.testing.conformance.probe import faults

if TYPE_CHECKING:
    from bankclient.testing.conformance.probe import Fields, Probe


def check_an_answer_has_its_shape_and_the_bank_is_created(probe: Probe) -> None:
    """Text, usage, and null where nothing was asked for; a missing bank is made."""
    answer = probe.ask("POST", "/reflect", {"query": "What is known?"})
    assert answer.status == 200
    body = answer.json
    assert body["text"]
    assert (body["based_on"], body["structured_output"], body["structured_output_error"], body["trace"]) == (
        None,
        None,
        None,
        None,
    )
    assert set(body["usage"]) >= {"input_tokens", "output_tokens", "total_tokens"}
    assert probe.ask("GET", "/stats").status == 200


def check_evidence_is_the_memories_it_rests_on(probe: Probe) -> None:
    """`based_on` holds memories with their ids; without a model the text quotes them and says what it is."""
    probe.retain({"content": "The ferry leaves at seven", "document_id": "d", "tags": ["a"]})
    answer = probe.ask("POST", "/reflect", {"query": "When does the ferry leave?", "include": {"facts": {}}}).json
    (memory,) = answer["based_on"]["memories"]
    assert memory["id"] == probe.memory("The ferry leaves at seven")["id"]
    assert (memory["text"], memory["type"], memory["document_id"]) == ("The ferry leaves at seven", "world", "d")
    assert (answer["based_on"]["mental_models"], answer["based_on"]["directives"]) == ([], [])
    if probe.expected("reflect says that it has no model"):
        assert "no language model" in answer["text"]
        assert "The ferry leaves at seven" in answer["text"]


def check_tags_bound_the_evidence(probe: Probe) -> None:
    """What the filter keeps out is no evidence."""
    probe.retain(
        {"content": "The ferry leaves at seven", "tags": ["a"]}, {"content": "The ferry is blue", "tags": ["b"]}
    )
    body: Fields = {"query": "ferry", "tags": ["b"], "tags_match": "any_strict", "include": {"facts": {}}}
    found = probe.ask("POST", "/reflect", body).json["based_on"]["memories"]
    assert [memory["text"] for memory in found] == ["The ferry is blue"]


def check_a_question_of_punctuation_is_answered(probe: Probe) -> None:
    """Unlike recall, reflect takes it; a blank one it does not."""
    assert probe.ask("POST", "/reflect", {"query": "???"}).status == 200
    assert faults(probe.ask("POST", "/reflect", {"query": "  "})) == [("value_error", ["body"])]


def check_fields_of_the_body_are_validated(probe: Probe) -> None:
    """Each fault stands at its place."""
    cases: tuple[tuple[Fields, str, list[object]], ...] = (
        ({}, "missing", ["query"]),
        ({"query": "x", "fact_types": []}, "value_error", ["fact_types"]),
        ({"query": "x", "fact_types": ["zz"]}, "literal_error", ["fact_types", 0]),
        ({"query": "x", "tags": [], "tag_groups": []}, "value_error", []),
        ({"query": "x", "response_schema": {}}, "value_error", ["response_schema"]),
        ({"query": "x", "response_schema": {"type": "array"}}, "value_error", ["response_schema"]),
        ({"query": "x", "budget": "zz"}, "enum", ["budget"]),
    )
    for body, kind, place in cases:
        assert faults(probe.ask("POST", "/reflect", body)) == [(kind, ["body", *place])], body


def check_a_schema_needs_a_model(probe: Probe) -> None:
    """Without one it is refused as a server without a model refuses."""
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    answer = probe.ask("POST", "/reflect", {"query": "x", "response_schema": schema})
    assert answer.status == probe.expected("status of a reflect with response_schema")
    if answer.status == 400:
        assert answer.detail.startswith("Reflect requires an LLM provider")
