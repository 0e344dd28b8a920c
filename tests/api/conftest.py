"""What the tests of the API share: one call of every kind, and replies that a real server gave."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from bankclient.api import calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.api import Call

SOME_ID = UUID("5b1f6f2e-6f0e-4c39-8a43-0d2b5f3c9a10")


def _every_call(bank: str) -> dict[str, Call[Any]]:
    return {
        "cancel_operation": calls.cancel_operation(bank, SOME_ID),
        "clear_memories": calls.clear_memories(bank, fact_type="world"),
        "delete_bank": calls.delete_bank(bank),
        "delete_document": calls.delete_document(bank, "log/1"),
        "delete_operation": calls.delete_operation(bank, SOME_ID),
        "get_bank_config": calls.get_bank_config(bank),
        "get_bank_stats": calls.get_bank_stats(bank, refresh=True),
        "get_document": calls.get_document(bank, "log/1"),
        "get_memory": calls.get_memory(bank, SOME_ID),
        "get_memory_history": calls.get_memory_history(bank, SOME_ID),
        "get_operation": calls.get_operation(bank, SOME_ID, include_payload=True),
        "health": calls.health(),
        "invalidate_memory": calls.invalidate_memory(bank, SOME_ID, reason="out"),
        "list_banks": calls.list_banks(q="light", limit=2, offset=1),
        "list_chunks": calls.list_chunks(bank, "log/1", limit=3),
        "list_documents": calls.list_documents(bank, q="lamp", tags="harbour", tags_match="all"),
        "list_memories": calls.list_memories(bank, q="lamp", tags=["a", "b"], fact_type="world", state="valid"),
        "list_operations": calls.list_operations(bank, status="pending", exclude_parents=True),
        "list_tags": calls.list_tags(bank, q="project:*", source="memories"),
        "live": calls.live(),
        "patch_bank": calls.patch_bank(bank, enable_observations=False),
        "patch_bank_config": calls.patch_bank_config(bank, {"retain_mission": None}),
        "patch_document": calls.patch_document(bank, "log/1", tags=[]),
        "patch_memory": calls.patch_memory(bank, SOME_ID, text="The lamp is lit.", occurred_end=""),
        "put_bank": calls.put_bank(bank, reflect_mission="Keep the log."),
        "recall": calls.recall(bank, "who lit the lamp?", tags="harbour", include_chunks=True),
        "reflect": calls.reflect(bank, "who lit the lamp?", include_facts=True),
        "request": calls.request("GET", "/v1/default/banks/lighthouse/webhooks", query={"limit": 1}),
        "reset_bank_config": calls.reset_bank_config(bank),
        "restore_memory": calls.restore_memory(bank, SOME_ID),
        "retain": calls.retain(bank, "The lamp is lit.", document_id="log/1"),
        "retain_many": calls.retain_many(bank, ["one", {"content": "two"}], background=True, operation_id=SOME_ID),
        "retry_operation": calls.retry_operation(bank, SOME_ID),
        "version": calls.version(),
    }


@pytest.fixture
def every_call() -> Callable[[str], dict[str, Call[Any]]]:
    """Give the function that makes one call of every kind for a bank, by the name of its function."""
    return _every_call


@pytest.fixture
def recorded() -> Callable[[str], bytes]:
    """Give the function that reads a recorded reply: `recall`, or that of another version, `0.4.22/recall`."""

    def read(name: str) -> bytes:
        version, _, name = name.rpartition("/")
        return (Path(__file__).parent / "replies" / (version or "1.1.0") / f"{name}.json").read_bytes()

    return read
