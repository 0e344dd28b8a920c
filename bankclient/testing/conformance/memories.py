"""Checks on single memories and their list: filters, editing, forgetting and clearing."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from bankclient.testing.conformance.probe import faults

if TYPE_CHECKING:
    from bankclient.testing.conformance.probe import Fields, Probe

_UNKNOWN = str(uuid.UUID(int=11, version=4))


def _edit(probe: Probe, memory_id: str, **fields: object) -> Any:  # noqa: ANN401 - any JSON value
    answer = probe.ask("PATCH", f"/memories/{memory_id}", fields)
    assert answer.status == 200, (fields, answer.body)
    return answer.json


def check_the_list_is_in_order_of_mention_and_paged(probe: Probe) -> None:
    """The last mentioned first, the undated last; a limit of 0 still counts."""
    stamps = {"old": "2020-01-01", "new": "2024-01-01", "undated": "unset"}
    probe.retain(*({"content": text, "document_id": text, "timestamp": stamp} for text, stamp in stamps.items()))
    assert [memory["text"] for memory in probe.memories()] == ["new", "old", "undated"]
    page = probe.get("/memories/list", limit=1, offset=1)
    assert ([m["text"] for m in page["items"]], page["total"], page["limit"], page["offset"]) == (["old"], 3, 1, 1)
    none = probe.get("/memories/list", limit=0)
    assert (none["items"], none["total"]) == ([], 3)


def check_the_list_is_filtered(probe: Probe) -> None:
    """By part of text or context in any case, document, type, and a time window on an axis."""
    probe.retain(
        {"content": "Tea in Berlin", "document_id": "a", "timestamp": "2020-01-01"},
        {"content": "Coffee", "document_id": "b", "timestamp": "2024-01-01", "context": "in berlin"},
        {"content": "Water", "document_id": "c", "timestamp": "unset"},
    )

    def found(**query: object) -> set[str]:
        return {memory["text"] for memory in probe.memories(**query)}

    assert found(q="BERLIN") == {"Tea in Berlin", "Coffee"}
    assert found(q="%") == ({"Tea in Berlin", "Coffee", "Water"} if probe.expected(_LIKE) else set())
    assert found(document_id="b") == {"Coffee"}
    assert found(type="world") == {"Tea in Berlin", "Coffee", "Water"}
    assert found(type="bogus") == found(type="experience") == set()
    assert found(consolidation_state="pending") == {"Tea in Berlin", "Coffee", "Water"}
    assert found(consolidation_state="done") == set()
    assert found(time_field="mentioned_at") == {"Tea in Berlin", "Coffee"}
    assert found(time_field="mentioned_at", start_date="2020-01-01", end_date="2024-01-01") == {"Tea in Berlin"}
    assert found(start_date="2020-01-01", end_date="2024-06-01") == set(), "the default axis is creation"


_LIKE = "q of the memory list takes % and _ for any letters"


def check_filters_of_the_list_are_validated(probe: Probe) -> None:
    """A wrong date, id or state is 400, a wrong number or word of a fixed set 422."""
    probe.ask("PUT", "", {})
    for query, status in {
        "state=zz": 400,
        "consolidation_state=zz": 400,
        "start_date=zz": 400,
        "entity_id=zz": 400,
        "start_date=2024-02-01&end_date=2024-01-01": 400,
        "limit=-1": 422,
        "limit=x": 422,
        "offset=-1": 422,
        "tags_match=zz": 422,
        "time_field=zz": 422,
    }.items():
        assert probe.ask("GET", f"/memories/list?{query}").status == status, query


def check_one_memory_is_read_by_id(probe: Probe) -> None:
    """Its type is called type and its entities are a list; a wrong id is 400, an unknown one 404."""
    probe.retain({"content": "Alice came", "entities": [{"text": "Alice"}], "observation_scopes": "combined"})
    memory_id = probe.memory("Alice came")["id"]
    memory = probe.get(f"/memories/{memory_id}")
    assert (memory["id"], memory["text"], memory["type"]) == (memory_id, "Alice came", "world")
    assert (memory["entities"], memory["observation_scopes"], memory["state"]) == (["Alice"], "combined", "valid")
    assert probe.get(f"/memories/{memory_id}/history") == []
    for method, below in (("GET", ""), ("PATCH", ""), ("GET", "/history")):
        body = {"text": "x"} if method == "PATCH" else None
        bad = probe.ask(method, f"/memories/zz{below}", body)
        assert (bad.status, bad.detail) == (400, "Invalid memory_id: 'zz' is not a valid UUID")
        unknown = probe.ask(method, f"/memories/{_UNKNOWN}{below}", body)
        assert (unknown.status, unknown.detail) == (404, f"Memory unit '{_UNKNOWN}' not found")


def check_a_memory_belongs_to_its_bank(probe: Probe) -> None:
    """Another bank does not know it."""
    probe.retain("Here")
    probe.ask("PUT", "", {}, bank=probe.other)
    memory_id = probe.memory("Here")["id"]
    assert probe.ask("GET", f"/memories/{memory_id}", bank=probe.other).status == 404
    assert probe.ask("PATCH", f"/memories/{memory_id}", {"text": "x"}, bank=probe.other).status == 404


def check_a_memory_is_edited_field_by_field(probe: Probe) -> None:
    """Each field on its own; '' clears a date or the context; the edit is dated."""
    probe.retain({"content": "Tea", "context": "first", "timestamp": "2024-01-01"})
    memory_id = probe.memory("Tea")["id"]
    assert probe.get(f"/memories/{memory_id}")["edited_at"] is None
    assert _edit(probe, memory_id, text="Coffee")["edited_at"] is not None
    assert _edit(probe, memory_id, context="second")["context"] == "second"
    assert _edit(probe, memory_id, context="")["context"] == ""
    dated = _edit(probe, memory_id, occurred_start="2024-02-01", occurred_end="2024-02-02T00:00:00+01:00")
    assert dated["date"] == dated["occurred_start"] == "2024-02-01T00:00:00+00:00"
    assert dated["occurred_end"] == "2024-02-01T23:00:00+00:00"
    assert _edit(probe, memory_id, occurred_start="")["occurred_start"] is None
    assert _edit(probe, memory_id, mentioned_at="")["date"] == ""
    assert _edit(probe, memory_id, fact_type="experience")["type"] == "experience"
    assert sorted(_edit(probe, memory_id, entities=["A", "B"])["entities"]) == ["A", "B"]
    assert _edit(probe, memory_id, entities=[])["entities"] == []
    assert probe.get(f"/memories/{memory_id}")["text"] == "Coffee"


def check_an_edited_text_is_what_is_found(probe: Probe) -> None:
    """The new words find the memory; the chunk stays what was retained."""
    probe.retain({"content": "The gate is green", "document_id": "d"})
    memory_id = probe.memory("The gate is green")["id"]
    _edit(probe, memory_id, text="The gate is crimson")
    assert probe.texts("crimson gate") == ["The gate is crimson"]
    assert probe.get("/documents/d/chunks")["items"][0]["chunk_text"] == "The gate is green"
    assert probe.get("/documents/d")["original_text"] == "The gate is green"


def check_bad_edits_are_refused(probe: Probe) -> None:
    """An empty text, a wrong date, nothing known at all; nothing is changed by them."""
    probe.retain("Tea")
    path = f"/memories/{probe.memory('Tea')['id']}"
    for body, detail in (
        ({"text": " "}, "text must not be empty."),
        ({"occurred_start": "zz"}, "Invalid isoformat string: 'zz'"),
        ({"mentioned_at": "9999-01-01"}, "Date year 9999 is a placeholder, not a date; send '' to clear it."),
    ):
        answer = probe.ask("PATCH", path, body)
        assert (answer.status, answer.detail) == (400, detail)
    senseless: tuple[Fields, ...] = ({}, {"bogus": 1}, {"text": None}, {"reason": "x"}, {"state": "zz"})
    for fields in (*senseless, {"fact_type": "observation"}):
        assert faults(probe.ask("PATCH", path, fields)) == [("value_error", ["body"])]
    assert probe.get(path)["edited_at"] is None


def check_a_forgotten_memory_is_kept_and_can_be_brought_back(probe: Probe) -> None:
    """It is gone from recall, list and counts, still read by id, not edited, and the reason may be corrected."""
    probe.retain({"content": "The ferry leaves at seven", "document_id": "d"})
    memory_id = probe.memory("The ferry leaves at seven")["id"]
    gone = _edit(probe, memory_id, state="invalidated", reason="old")
    assert (gone["state"], gone["invalidation_reason"]) == ("invalidated", "old")
    assert gone["invalidated_at"] is not None
    assert probe.texts("ferry") == []
    assert probe.memories() == []
    assert [memory["id"] for memory in probe.memories(state="invalidated")] == [memory_id]
    assert probe.get("/stats", refresh="true")["total_nodes"] == 0
    assert probe.get("/documents/d")["memory_unit_count"] == 0
    again = _edit(probe, memory_id, state="invalidated", reason="older")
    assert (again["invalidated_at"], again["invalidation_reason"]) == (gone["invalidated_at"], "older")
    refused = probe.ask("PATCH", f"/memories/{memory_id}", {"text": "x"})
    assert (refused.status, refused.detail) == (
        400,
        "Cannot edit an invalidated memory; revert it to 'valid' first.",
    )
    back = _edit(probe, memory_id, state="valid")
    assert (back["state"], back["invalidated_at"], back["invalidation_reason"]) == ("valid", None, None)
    assert probe.texts("ferry") == ["The ferry leaves at seven"]


def check_a_memory_cannot_be_deleted_alone(probe: Probe) -> None:
    """The server has no such endpoint."""
    probe.retain("Tea")
    assert probe.ask("DELETE", f"/memories/{probe.memory('Tea')['id']}").status == 405


def check_clearing_by_type_keeps_documents_and_clearing_all_does_not(probe: Probe) -> None:
    """Without a type the documents go too; an unknown type clears nothing."""
    probe.retain({"content": "Tea", "document_id": "d"})
    bogus = probe.ask("DELETE", "/memories?type=bogus").json
    message = f"Cleared 0 memory unit(s) of type 'bogus' from bank '{probe.bank}'"
    assert bogus == {"success": True, "message": message, "deleted_count": 0}
    assert probe.ask("DELETE", "/memories?type=world").json["deleted_count"] == 1
    assert probe.texts("tea") == []
    assert probe.get("/documents")["total"] == 1
    probe.retain({"content": "Coffee", "document_id": "e"})
    assert probe.ask("DELETE", "/memories").json["deleted_count"] == 1
    assert probe.get("/documents")["total"] == 0


def check_entities_are_counted(probe: Probe) -> None:
    """A named entity is listed with its mentions, read by id, and filters the memory list."""
    probe.retain(
        {"content": "Alice came", "entities": [{"text": "Alice"}], "document_id": "1"},
        {"content": "Alice went", "entities": [{"text": "Alice"}, {"text": "Harbour"}], "document_id": "2"},
    )
    entities = {item["canonical_name"]: item for item in probe.get("/entities")["items"]}
    assert {name: item["mention_count"] for name, item in entities.items()} == {"Alice": 2, "Harbour": 1}
    harbour = entities["Harbour"]["id"]
    assert probe.get(f"/entities/{harbour}") == {**entities["Harbour"], "observations": []}
    assert [memory["text"] for memory in probe.memories(entity_id=harbour)] == ["Alice went"]
    assert probe.memories(entity_id=_UNKNOWN) == []
    assert probe.ask("GET", f"/entities/{_UNKNOWN}").detail == f"Entity {_UNKNOWN} not found"
    assert probe.ask("GET", "/entities/zz").status == 400
