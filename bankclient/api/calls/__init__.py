"""Every call of the API, each a function that returns a `Call`; nothing is sent here.

`recall` is in `_recall.py`, `retain` in `_retain.py`, and so on; the calls on one resource share its module.
"""

from __future__ import annotations

from bankclient.api.calls._banks import (
    BankFields,
    delete_bank,
    get_bank_config,
    get_bank_stats,
    list_banks,
    patch_bank,
    patch_bank_config,
    put_bank,
    reset_bank_config,
)
from bankclient.api.calls._documents import (
    delete_document,
    get_document,
    list_chunks,
    list_documents,
    list_tags,
    patch_document,
)
from bankclient.api.calls._memories import (
    clear_memories,
    get_memory,
    get_memory_history,
    invalidate_memory,
    list_memories,
    patch_memory,
    restore_memory,
)
from bankclient.api.calls._operations import (
    cancel_operation,
    delete_operation,
    get_operation,
    list_operations,
    retry_operation,
)
from bankclient.api.calls._recall import Included, recall
from bankclient.api.calls._reflect import reflect
from bankclient.api.calls._request import JSON, request
from bankclient.api.calls._retain import memory_item, retain, retain_many
from bankclient.api.calls._server import health, live, version
from bankclient.api.calls._values import tag_texts

__all__ = [
    "JSON",
    "BankFields",
    "Included",
    "cancel_operation",
    "clear_memories",
    "delete_bank",
    "delete_document",
    "delete_operation",
    "get_bank_config",
    "get_bank_stats",
    "get_document",
    "get_memory",
    "get_memory_history",
    "get_operation",
    "health",
    "invalidate_memory",
    "list_banks",
    "list_chunks",
    "list_documents",
    "list_memories",
    "list_operations",
    "list_tags",
    "live",
    "memory_item",
    "patch_bank",
    "patch_bank_config",
    "patch_document",
    "patch_memory",
    "put_bank",
    "recall",
    "reflect",
    "request",
    "reset_bank_config",
    "restore_memory",
    "retain",
    "retain_many",
    "retry_operation",
    "tag_texts",
    "version",
]
