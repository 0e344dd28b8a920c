"""Checks on banks: creating, listing, changing, deleting, their configuration and statistics, and missing banks."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bankclient.testing.conformance.probe import Fields, Probe

_READS = ("/memories/list", "/documents", "/tags", "/operations", "/stats", "/entities", "/config")
_CREATING: tuple[tuple[str, str, Fields], ...] = (
    ("PUT", "", {}),
    ("POST", "/memories", {"items": [{"content": "x"}]}),
    ("PATCH", "/config", {"updates": {}}),
)
_NOBODY = str(uuid.UUID(int=7, version=4))


def check_a_missing_bank_is_404_to_recall_and_to_every_list(probe: Probe) -> None:
    """A read of a bank that does not exist names it in a 404, and does not create it."""
    answers = [probe.ask("GET", below) for below in _READS]
    answers.append(probe.ask("POST", "/memories/recall", {"query": "anything"}))
    answers.append(probe.ask("PATCH", "", {"name": "x"}))
    for answer in answers:
        assert (answer.status, answer.detail) == (404, f"Bank '{probe.bank}' not found")


def check_deleting_or_clearing_a_missing_bank_succeeds(probe: Probe) -> None:
    """What is not there counts as deleted."""
    for method, below in (("DELETE", ""), ("DELETE", "/memories"), ("DELETE", "/memories?type=world")):
        answer = probe.ask(method, below)
        assert (answer.status, answer.json["deleted_count"]) == (200, 0)
    assert probe.ask("DELETE", "/config").status == 200
    assert probe.ask("GET", "/stats").status == 404


def check_single_things_of_a_missing_bank_are_not_found(probe: Probe) -> None:
    """Memories and documents are 404 by their own name; an operation has the status not_found."""
    assert probe.ask("GET", f"/memories/{_NOBODY}").detail == f"Memory unit '{_NOBODY}' not found"
    assert probe.ask("GET", "/documents/d").detail == "Document not found"
    assert probe.get(f"/operations/{_NOBODY}")["status"] == "not_found"


def check_retain_creates_the_bank_but_an_empty_one_does_not(probe: Probe) -> None:
    """A first item makes the bank; no item makes none."""
    assert probe.retain()["items_count"] == 0
    assert probe.ask("GET", "/stats").status == 404
    probe.retain("The first memory.")
    assert probe.get("/stats", refresh="true")["total_nodes"] == 1


def check_put_creates_and_then_changes_only_what_is_given(probe: Probe) -> None:
    """PUT with a field sets it, PUT with nothing keeps all, and traits are 3 until they are set."""
    made = probe.ask("PUT", "", {"reflect_mission": "Remember the harbour."}).json
    assert made == {
        "bank_id": probe.bank,
        "name": probe.bank,
        "disposition": {"skepticism": 3, "literalism": 3, "empathy": 3},
        "mission": "Remember the harbour.",
        "background": "Remember the harbour.",
    }
    assert probe.ask("PUT", "", {}).json == made
    changed = probe.ask("PATCH", "", {"name": "Harbour", "disposition_empathy": 5}).json
    assert changed == {**made, "name": "Harbour", "disposition": {**made["disposition"], "empathy": 5}}


def check_a_trait_out_of_range_is_refused(probe: Probe) -> None:
    """Traits go from 1 to 5."""
    answer = probe.ask("PUT", "", {"disposition": {"skepticism": 9, "literalism": 1, "empathy": 1}})
    assert answer.status == 422
    assert answer.detail[0]["loc"] == ["body", "disposition", "skepticism"]


def check_the_list_of_banks_is_paged_and_searched(probe: Probe) -> None:
    """`q` is part of the id in any letters' case; a limit of 0 still counts."""
    probe.retain("Counted.")
    found = probe.request("GET", f"/v1/default/banks?q={probe.bank.upper()}").json
    assert (found["total"], found["limit"], found["offset"]) == (1, 100, 0)
    listed = found["banks"][0]
    assert (listed["bank_id"], listed["fact_count"], listed["matched_aliases"]) == (probe.bank, 1, [])
    assert listed["last_document_at"] is not None
    empty = probe.request("GET", f"/v1/default/banks?q={probe.bank}&limit=0").json
    assert (empty["total"], empty["banks"]) == (1, [])
    assert probe.request("GET", "/v1/default/banks?limit=-1").status == 422


def check_bank_ids_have_the_rules_of_the_server(probe: Probe) -> None:
    """At most 192 bytes, no control character, no leading underscore; only creating a bank asks."""
    for bank, detail in (
        ("_x", "Bank id must not start with '_': that prefix is reserved"),
        ("ł" * 97, "Bank id is too long: at most 192 bytes of UTF-8 are allowed"),
        ("a\x01", "Bank id must not contain control characters"),
    ):
        for method, below, body in _CREATING:
            answer = probe.ask(method, below, body, bank=bank)
            assert (answer.status, answer.detail) == (400, detail), (method, bank)
        assert probe.ask("POST", "/memories/recall", {"query": "x"}, bank=bank).status == 404
    nul = probe.ask("PUT", "", {}, bank="a\x00")
    assert nul.status == probe.expected("status of a write to a bank whose id holds NUL")


def check_any_other_text_is_a_bank_id(probe: Probe) -> None:
    """Blanks, question marks, plus, percent and letters of any script are kept apart and kept as they are."""
    for tail in (" b", "?b", "#b", "%41", "+b", ";b", "ż", "é", "e\u0301", "B", "b"):
        name = f"{probe.bank}{tail}"
        try:
            assert probe.ask("PUT", "", {}, bank=name).json["bank_id"] == name
        finally:
            probe.ask("DELETE", "", bank=name)


def check_deleting_a_bank_deletes_what_it_holds(probe: Probe) -> None:
    """Memories and documents go with it, a new bank of the name is empty, and its operation ids are free again."""
    operation_id = probe.retain_later("Gone with the bank.")
    answer = probe.ask("DELETE", "").json
    assert answer["success"] is True
    assert answer["deleted_count"] == 2
    assert probe.get(f"/operations/{operation_id}")["status"] == "not_found"
    probe.ask("PUT", "", {})
    assert probe.memories() == []
    assert probe.texts("Gone with the bank") == []


def check_configuration_is_read_set_and_reset(probe: Probe) -> None:
    """Overrides show what was set, an environment name is taken too, and DELETE takes all of it back."""
    probe.ask("PUT", "", {})
    before = probe.get("/config")
    assert before["overrides"] == {}
    updates = {"retain_chunk_size": 500, "HINDSIGHT_API_RETAIN_MISSION": "m"}
    changed = probe.ask("PATCH", "/config", {"updates": updates}).json
    assert changed["overrides"] == {"retain_chunk_size": 500, "retain_mission": "m"}
    assert changed["config"]["retain_chunk_size"] == 500
    back = probe.ask("PATCH", "/config", {"updates": {"retain_chunk_size": None}}).json
    assert back["overrides"] == {"retain_mission": "m"}
    assert probe.ask("DELETE", "/config").json == before


def check_configuration_refuses_unknown_fields_and_other_types(probe: Probe) -> None:
    """Both are a 400 that names the field."""
    for updates, part in (
        ({"nope": 5}, "Unknown configuration fields: ['nope']"),
        ({"retain_chunk_size": "x"}, "retain_chunk_size must be an integer, got str"),
        ({"retain_chunk_size": 0}, "retain_chunk_size must be >= 1, got 0"),
    ):
        answer = probe.ask("PATCH", "/config", {"updates": updates})
        assert answer.status == 400
        assert part in answer.detail
    assert probe.ask("PATCH", "/config", {}).status == 422


def check_statistics_count_what_is_there(probe: Probe) -> None:
    """Nodes by type, documents, and no operation that waits."""
    probe.retain({"content": "One.", "document_id": "a"}, {"content": "Two.", "document_id": "b"})
    stats = probe.get("/stats", refresh="true")
    assert (stats["total_nodes"], stats["total_documents"]) == (2, 2)
    assert stats["nodes_by_fact_type"] == {"world": 2}
    assert (stats["total_observations"], stats["failed_operations"]) == (0, 0)
    waiting = probe.expected("memories that wait for consolidation")
    assert stats["pending_consolidation"] == 2 * waiting
    assert stats["last_memory_write_at"] is not None


def check_the_old_profile_endpoints_are_gone(probe: Probe) -> None:
    """They were removed, which is not the same as never having been."""
    assert probe.ask("GET", "/profile").status == 410
