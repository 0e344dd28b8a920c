"""Checks on recall: what is found, what comes along, how much, and what a query must be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.testing.conformance.probe import faults

if TYPE_CHECKING:
    from bankclient.testing.conformance.probe import Fields, Probe


def check_a_result_has_the_fields_of_its_memory(probe: Probe) -> None:
    """Every field is there, null where it has nothing; what was not asked for is null."""
    probe.retain(
        {
            "content": "Alice likes tea in Berlin",
            "document_id": "d",
            "context": "a talk",
            "tags": ["a"],
            "metadata": {"k": "v"},
            "timestamp": "2024-01-02T03:04:05Z",
            "entities": [{"text": "Alice"}],
        }
    )
    answer = probe.ask("POST", "/memories/recall", {"query": "Alice tea"}).json
    (result,) = answer["results"]
    scores = result.pop("scores")
    assert result == {
        "id": probe.memory("Alice likes tea in Berlin")["id"],
        "text": "Alice likes tea in Berlin",
        "type": "world",
        "entities": ["Alice"],
        "context": "a talk",
        "occurred_start": None,
        "occurred_end": None,
        "mentioned_at": "2024-01-02T03:04:05+00:00",
        "document_id": "d",
        "metadata": {"k": "v"},
        "chunk_id": f"{probe.bank}_d_0",
        "tags": ["a"],
        "source_fact_ids": None,
        "attachments": None,
    }
    assert set(scores) == {"final", "reranker", "semantic", "keyword"}
    assert scores["final"] > 0
    assert answer["entities"]["Alice"]["canonical_name"] == "Alice"
    assert answer["entities"]["Alice"]["observations"] == []
    others = ("trace", "chunks", "source_facts", "source_facts_truncated")
    assert [answer[name] for name in others] == [None] * 4


def check_what_comes_along_is_asked_for(probe: Probe) -> None:
    """Chunks by id, cut at their own budget; entities can be left out; source facts need observations."""
    text = "The tide table hangs in the harbour office"
    probe.retain({"content": text, "document_id": "d", "entities": [{"text": "Harbour"}]})
    include: Fields = {"chunks": {}, "entities": None, "source_facts": {}}
    answer = probe.ask("POST", "/memories/recall", {"query": "tide", "include": include, "trace": True}).json
    chunk = {"id": f"{probe.bank}_d_0", "text": text, "chunk_index": 0, "truncated": False, "attachments": None}
    assert answer["chunks"] == {f"{probe.bank}_d_0": chunk}
    assert (answer["entities"], answer["results"][0]["entities"]) == (None, None)
    assert (answer["source_facts"], answer["source_facts_truncated"]) == (None, False)
    assert answer["trace"]["query"]["query_text"] == "tide"
    cut = {"query": "tide", "include": {"chunks": {"max_tokens": 3}}}
    (short,) = probe.ask("POST", "/memories/recall", cut).json["chunks"].values()
    assert short["truncated"] is True
    assert text.startswith(short["text"])
    assert 0 < len(short["text"]) < len(text)


def check_nothing_found_is_an_empty_answer(probe: Probe) -> None:
    """A bank without memories answers with no results and nothing along."""
    probe.ask("PUT", "", {})
    answer = probe.ask("POST", "/memories/recall", {"query": "anything"}).json
    assert answer == {
        "results": [],
        "trace": None,
        "entities": None,
        "chunks": None,
        "source_facts": None,
        "source_facts_truncated": None,
    }


def check_max_tokens_bounds_the_results_but_for_the_first(probe: Probe) -> None:
    """0 or less is nothing; the first result comes however large it is; more budget brings more, in the same order."""
    probe.retain(*(f"The quick brown fox number {n} jumps over the lazy dog" for n in range(6)))
    found = {budget: probe.texts("quick brown fox", max_tokens=budget) for budget in (-1, 0, 1, 40, 4096, "4096")}
    assert found[-1] == found[0] == []
    assert len(found[1]) == 1
    assert 1 < len(found[40]) < 6
    assert len(found[4096]) == len(found["4096"]) == 6


def check_the_words_of_the_query_decide(probe: Probe) -> None:
    """The memory that holds the query's words comes before those that do not."""
    probe.retain(
        "The invoice archive moved to the cellar",
        "Deployments of the billing service happen on Friday afternoon",
        "Maria prefers green tea without sugar",
    )
    assert probe.texts("when do deployments of the billing service happen?")[0].startswith("Deployments")
    assert probe.texts("green tea for Maria")[0].startswith("Maria")
    if probe.expected("finds only what shares a word with the query"):
        assert probe.texts("zebra") == []


def check_types_filter(probe: Probe) -> None:
    """Retained facts are of the world until they are edited; an unknown type is refused, an old one finds nothing."""
    probe.retain("The lamp is green")
    probe.retain("The lamp was repaired")
    repaired = probe.memory("The lamp was repaired")["id"]
    assert probe.ask("PATCH", f"/memories/{repaired}", {"fact_type": "experience"}).status == 200
    assert probe.texts("lamp", types=["world"]) == ["The lamp is green"]
    assert probe.texts("lamp", types=["experience"]) == ["The lamp was repaired"]
    assert len(probe.texts("lamp", types=[])) == 2
    assert len(probe.texts("lamp", types=["world", "experience", "observation"])) == 2
    assert probe.texts("lamp", types=["opinion"]) == []
    assert probe.texts("lamp", types=["observation"]) == []
    answer = probe.ask("POST", "/memories/recall", {"query": "lamp", "types": ["world", "bogus"]})
    detail = "Invalid fact type(s): bogus. Must be one of: experience, observation, world"
    assert (answer.status, answer.detail) == (422, detail)


def check_a_query_needs_a_word(probe: Probe) -> None:
    """Punctuation, emoji and nothing are refused at the query's place."""
    probe.ask("PUT", "", {})
    for query in ("", "  ", "!!!", "🎉", "…—"):
        answer = probe.ask("POST", "/memories/recall", {"query": query})
        assert faults(answer) == [("value_error", ["body", "query"])]
    for query in ("x", "żółw", "東京", "_"):
        assert probe.ask("POST", "/memories/recall", {"query": query}).status == 200


def check_a_query_is_text_and_never_an_expression(probe: Probe) -> None:
    """Quotes, operators and stars of search languages are words or nothing."""
    probe.retain("The parser takes quoted strings")
    for query in (
        '"',
        'parser"',
        "parser AND (",
        "NOT parser",
        "parser*",
        "text:parser",
        "parser NEAR/2 x",
        "a'b",
        "x" * 20_000,
        "{parser}",
    ):
        answer = probe.ask("POST", "/memories/recall", {"query": query})
        assert answer.status in {200, 422}, (query, answer.body)
    assert probe.texts("parser AND (")[0] == "The parser takes quoted strings"


def check_a_long_query_is_answered(probe: Probe) -> None:
    """More than 500 tokens are no error."""
    probe.retain("The lighthouse keeper writes every evening")
    assert probe.texts("lighthouse keeper " + "and so on and so forth " * 300)[0].startswith("The lighthouse")


def check_fields_of_the_body_are_validated(probe: Probe) -> None:
    """Each fault stands at its place."""
    probe.ask("PUT", "", {})
    cases: tuple[tuple[Fields, str, list[object]], ...] = (
        ({}, "missing", ["query"]),
        ({"query": 5}, "string_type", ["query"]),
        ({"query": "x", "budget": "zz"}, "enum", ["budget"]),
        ({"query": "x", "budget": None}, "enum", ["budget"]),
        ({"query": "x", "max_tokens": 1.5}, "int_from_float", ["max_tokens"]),
        ({"query": "x", "include": None}, "model_attributes_type", ["include"]),
        ({"query": "x", "tags": "a"}, "list_type", ["tags"]),
        ({"query": "x", "tags_match": "zz"}, "literal_error", ["tags_match"]),
        ({"query": "x", "tags": [], "tag_groups": []}, "value_error", []),
        ({"query": "x", "min_scores": {"final": "a"}}, "float_parsing", ["min_scores", "final"]),
        ({"query": "x", "temporal_window": {"start": "2024-01-02"}}, "missing", ["temporal_window", "end"]),
        (
            {"query": "x", "temporal_window": {"start": "2024-01-02", "end": "2024-01-01"}},
            "value_error",
            ["temporal_window"],
        ),
    )
    for body, kind, place in cases:
        assert faults(probe.ask("POST", "/memories/recall", body)) == [(kind, ["body", *place])], body


def check_a_query_timestamp_must_be_iso(probe: Probe) -> None:
    """A good one ranks, a bad one is 400."""
    probe.retain("The ferry leaves at seven")
    assert probe.texts("ferry", query_timestamp="2024-01-01T00:00:00Z") == ["The ferry leaves at seven"]
    answer = probe.ask("POST", "/memories/recall", {"query": "ferry", "query_timestamp": "zz"})
    assert answer.status == 400
    assert answer.detail.startswith("Invalid query_timestamp format.")


def check_a_temporal_window_ranks_and_does_not_filter(probe: Probe) -> None:
    """Memories outside the window still come."""
    probe.retain(
        {"content": "The ferry was late in spring", "timestamp": "2024-04-01", "document_id": "a"},
        {"content": "The ferry was late in autumn", "timestamp": "2024-10-01", "document_id": "b"},
    )
    window = {"start": "2024-03-01T00:00:00Z", "end": "2024-05-01T00:00:00Z"}
    found = probe.texts("late ferry", temporal_window=window)
    assert sorted(found) == ["The ferry was late in autumn", "The ferry was late in spring"]


def check_a_final_floor_is_a_floor(probe: Probe) -> None:
    """No result is below `min_scores.final`; a floor above all leaves none."""
    probe.retain("The crane lifts ten tons", "The crane stands still")
    final = min(result["scores"]["final"] for result in probe.recall("crane"))
    assert probe.recall("crane", min_scores={"final": 50}) == []
    kept = probe.recall("crane", min_scores={"final": final + 0.001})
    assert all(result["scores"]["final"] > final for result in kept)


def check_every_budget_is_taken(probe: Probe) -> None:
    """Low, mid and high find the same in a small bank."""
    probe.retain("The buoy is red")
    assert {budget: probe.texts("buoy", budget=budget) for budget in ("low", "mid", "high")} == {
        "low": ["The buoy is red"],
        "mid": ["The buoy is red"],
        "high": ["The buoy is red"],
    }
