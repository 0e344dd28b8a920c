"""Checks on documents and their chunks."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bankclient.testing.conformance.probe import Fields, Probe


def check_a_document_is_read_with_its_text(probe: Probe) -> None:
    """Text, hash of the text, counts and what it was retained with."""
    probe.retain({"content": "Zażółć gęślą jaźń", "document_id": "d", "tags": ["a"], "observation_scopes": [["a"]]})
    document = probe.get("/documents/d")
    assert (document["id"], document["bank_id"]) == ("d", probe.bank)
    assert document["original_text"] == "Zażółć gęślą jaźń"
    assert document["content_hash"] == hashlib.sha256("Zażółć gęślą jaźń".encode()).hexdigest()
    assert document["nodes_by_fact_type"] == {"world": 1, "experience": 0, "observation": 0}
    assert (document["memory_unit_count"], document["tags"]) == (1, ["a"])
    assert (document["document_metadata"], document["attachments"]) == (None, None)
    assert (document["observation_scopes"], document["retain_params"]) == ([["a"]], {"observation_scopes": [["a"]]})


def check_documents_are_listed_newest_update_first(probe: Probe) -> None:
    """A document that is retained again moves to the front; `q` is part of the id or the text and says which."""
    for name in ("first", "second"):
        probe.retain({"content": f"Text of {name}", "document_id": name})
    assert [item["id"] for item in probe.get("/documents")["items"]] == ["second", "first"]
    probe.retain({"content": "Text of first", "document_id": "first"})
    whole = probe.get("/documents")
    assert [item["id"] for item in whole["items"]] == ["first", "second"]
    assert (whole["total"], whole["limit"], whole["offset"], whole["total_is_estimate"]) == (2, 100, 0, False)
    item = whole["items"][0]
    assert (item["text_length"], item["memory_unit_count"], item["matched_fields"]) == (13, 1, [])
    (found,) = probe.get("/documents", q="SECOND")["items"]
    assert found["id"] == "second"
    assert "original_text" in found["matched_fields"] or "id" in found["matched_fields"]
    assert probe.get("/documents", q="zzz")["total"] == 0
    assert (probe.get("/documents", limit=0)["items"], probe.get("/documents", limit=0)["total"]) == ([], 2)


def check_an_unknown_document_is_404(probe: Probe) -> None:
    """Whatever is asked of it."""
    probe.ask("PUT", "", {})
    cases: tuple[tuple[str, str, Fields | None], ...] = (
        ("GET", "", None),
        ("GET", "/chunks", None),
        ("DELETE", "", None),
        ("PATCH", "", {"tags": []}),
    )
    for method, below, body in cases:
        answer = probe.ask(method, f"/documents/x{below}", body)
        assert (answer.status, answer.detail) == (404, "Document not found")


def check_retagging_a_document_retags_its_memories(probe: Probe) -> None:
    """The tags replace the old ones, also in recall; an empty list clears them; nothing given is refused."""
    probe.retain({"content": "The lamp is green", "document_id": "d", "tags": ["a"]})
    assert probe.ask("PATCH", "/documents/d", {"tags": ["n", "m"]}).json == {"success": True}
    assert sorted(probe.memory("The lamp is green")["tags"]) == ["m", "n"]
    assert probe.texts("lamp", tags=["a"], tags_match="any_strict") == []
    assert probe.texts("lamp", tags=["m"], tags_match="any_strict") == ["The lamp is green"]
    probe.ask("PATCH", "/documents/d", {"tags": []})
    assert probe.get("/documents/d")["tags"] == []
    answer = probe.ask("PATCH", "/documents/d", {})
    detail = "At least one field (tags, observation_scopes) must be provided"
    assert (answer.status, answer.detail) == (422, detail)


def check_deleting_a_document_deletes_its_memories(probe: Probe) -> None:
    """Also forgotten ones are counted out; ids may hold slashes."""
    probe.retain({"content": "The lamp is green", "document_id": "a/b"}, {"content": "The lamp is red"})
    answer = probe.ask("DELETE", "/documents/a/b").json
    assert answer == {
        "success": True,
        "message": "Document 'a/b' and 1 associated memory units deleted successfully",
        "document_id": "a/b",
        "memory_units_deleted": 1,
    }
    assert probe.texts("green lamp") == ["The lamp is red"]


def check_chunks_are_paged_and_read_by_id(probe: Probe) -> None:
    """From 1 to 1000 a page; a chunk's id needs no bank in the path."""
    probe.retain({"content": "one", "document_id": "d_x"}, {"content": "two", "document_id": "d_x"})
    page = probe.get("/documents/d_x/chunks", limit=1, offset=1)
    (chunk,) = page["items"]
    assert (page["total"], chunk["chunk_text"], chunk["chunk_index"]) == (2, "two", 1)
    assert chunk["chunk_id"] == f"{probe.bank}_d~5Fx_1"
    assert probe.request("GET", f"/v1/default/chunks/{chunk['chunk_id']}").json == chunk
    unknown = probe.request("GET", f"/v1/default/chunks/{probe.bank}_d~5Fx_9")
    assert (unknown.status, unknown.detail) == (404, "Chunk not found")
    for limit in (0, 1001):
        assert probe.ask("GET", f"/documents/d_x/chunks?limit={limit}").status == 422
