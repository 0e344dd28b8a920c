"""Checks on operations: identity, parent and child, the list, and what a completed one refuses."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from bankclient.testing.conformance.probe import faults

if TYPE_CHECKING:
    from bankclient.testing.conformance.probe import Probe

_UNKNOWN = str(uuid.UUID(int=9, version=4))


def check_a_repeated_id_is_the_same_operation_and_one_write(probe: Probe) -> None:
    """Whatever is sent with it the second time is dropped, and the answer is the first one's."""
    operation_id = probe.retain_later("The first.", operation_id=str(uuid.uuid4()))
    again = probe.retain("Something else.", "And more.", **{"async": True, "operation_id": operation_id})
    assert (again["operation_id"], again["items_count"]) == (operation_id, 1)
    without_dashes = operation_id.replace("-", "").upper()
    assert probe.retain("x", **{"async": True, "operation_id": without_dashes})["operation_id"] == operation_id
    assert [memory["text"] for memory in probe.memories()] == ["The first."]


def check_an_id_is_taken_in_every_bank(probe: Probe) -> None:
    """Another bank gets 409 and is not created; a child's id is taken too."""
    operation_id = probe.retain_later("Here.")
    body = {"items": [{"content": "There."}], "async": True, "operation_id": operation_id}
    answer = probe.ask("POST", "/memories", body, bank=probe.other)
    assert (answer.status, answer.detail) == (409, f"operation_id {operation_id} is already in use")
    assert probe.ask("GET", "/stats", bank=probe.other).status == 404
    child = probe.get(f"/operations/{operation_id}")["child_operations"][0]["operation_id"]
    assert probe.ask("POST", "/memories", {**body, "operation_id": child}).status == 409


def check_an_id_must_be_a_uuid(probe: Probe) -> None:
    """422 in a body, 400 in a path."""
    body = {"items": [{"content": "x"}], "async": True, "operation_id": "zz"}
    assert faults(probe.ask("POST", "/memories", body)) == [("value_error", ["body", "operation_id"])]
    for method, below in (("GET", ""), ("DELETE", ""), ("POST", "/retry"), ("DELETE", "/delete")):
        answer = probe.ask(method, f"/operations/zz{below}")
        assert (answer.status, answer.detail) == (400, "Invalid operation_id format: zz")


def check_a_retain_is_a_parent_with_a_child(probe: Probe) -> None:
    """Both are completed; the child says what was done."""
    operation_id = probe.retain_later({"content": "One.", "document_id": "d"})
    parent = probe.get(f"/operations/{operation_id}")
    assert (parent["operation_type"], parent["task_type"], parent["status"]) == (
        "batch_retain",
        "batch_retain",
        "completed",
    )
    assert (parent["retry_count"], parent["error_message"], parent["progress"]) == (0, None, None)
    metadata = parent["result_metadata"]
    assert metadata["is_parent"] is True
    assert (metadata["items_count"], metadata["unit_ids_count"], metadata["num_sub_batches"]) == (1, 1, 1)
    (child,) = parent["child_operations"]
    assert (child["status"], child["sub_batch_index"], child["items_count"]) == ("completed", 1, 1)
    detail = probe.get(f"/operations/{child['operation_id']}")
    assert (detail["operation_type"], detail["child_operations"]) == ("retain", None)
    assert detail["result_metadata"]["parent_operation_id"] == operation_id
    assert detail["result_metadata"]["document_ids"] == ["d"]
    assert detail["progress"]["detail"] == {"facts_committed": 1}


def check_unknown_operations_are_not_found_and_another_banks_too(probe: Probe) -> None:
    """GET answers 200 with a status of its own; everything else is 404."""
    operation_id = probe.retain_later("Here.")
    assert probe.get(f"/operations/{_UNKNOWN}")["status"] == "not_found"
    probe.ask("PUT", "", {}, bank=probe.other)
    assert probe.ask("GET", f"/operations/{operation_id}", bank=probe.other).json["status"] == "not_found"
    for method, below in (("DELETE", ""), ("POST", "/retry"), ("DELETE", "/delete")):
        answer = probe.ask(method, f"/operations/{_UNKNOWN}{below}")
        assert (answer.status, answer.detail) == (404, f"Operation {_UNKNOWN} not found for bank {probe.bank}")


def check_a_completed_operation_is_neither_cancelled_nor_retried(probe: Probe) -> None:
    """Both are 409, for parent and child."""
    operation_id = probe.retain_later("Done.")
    child = probe.get(f"/operations/{operation_id}")["child_operations"][0]["operation_id"]
    for name in (operation_id, child):
        cancelled = probe.ask("DELETE", f"/operations/{name}")
        assert cancelled.status == 409
        assert cancelled.detail.startswith(f"Operation {name} cannot be cancelled: status is 'completed'")
        assert probe.ask("POST", f"/operations/{name}/retry").status == 409


def check_a_deleted_row_frees_its_id(probe: Probe) -> None:
    """After that the id stands for nothing, and a repeat is a second write."""
    operation_id = probe.retain_later("Once.")
    answer = probe.ask("DELETE", f"/operations/{operation_id}/delete").json
    assert (answer["success"], answer["operation_id"]) == (True, operation_id)
    assert probe.get(f"/operations/{operation_id}")["status"] == "not_found"
    probe.retain_later("Once more.", operation_id=operation_id)
    assert len(probe.memories()) == 2


def check_the_list_is_filtered_and_paged(probe: Probe) -> None:
    """By type and status, without parents, from 1 to 100 a page; an unknown word matches nothing."""
    probe.retain_later({"content": "One.", "document_id": "d"})
    whole = probe.get("/operations", type="batch_retain")
    assert (whole["bank_id"], whole["total"], whole["limit"], whole["offset"]) == (probe.bank, 1, 20, 0)
    listed = whole["operations"][0]
    assert (listed["operation_type"], listed["items_count"], listed["document_id"]) == ("batch_retain", 1, "d")
    children = probe.get("/operations", exclude_parents="true", type="retain")
    assert [item["operation_type"] for item in children["operations"]] == ["retain"]
    assert probe.get("/operations", status="zz")["operations"] == []
    for limit in (0, 101):
        assert probe.ask("GET", f"/operations?limit={limit}").status == 422
