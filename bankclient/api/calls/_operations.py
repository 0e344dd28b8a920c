"""Operations: list, look at, cancel, try again, delete the record of. How to wait for one is the client's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.api.call import Call, Repeat
from bankclient.api.calls import _values as values
from bankclient.api.calls._bank import bank_call, not_done, page_fields
from bankclient.api.models.base import Done, Page, reader
from bankclient.api.models.operations import Operation

if TYPE_CHECKING:
    from uuid import UUID

__all__ = ["cancel_operation", "delete_operation", "get_operation", "list_operations", "retry_operation"]

_READ_PAGE, _READ_OPERATION, _READ_DONE = reader(Page[Operation]), reader(Operation), reader(Done)


def list_operations(
    bank: str,
    *,
    status: str | None = None,
    operation_type: str | None = None,
    exclude_parents: bool | None = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Call[Page[Operation]]:
    """List operations, newest first, up to 100 on a page; a status or type that the server does not know finds none.

    An operation in a list does not name its children: ask for it alone before `ids_to_cancel`.
    """
    return bank_call(
        "list_operations",
        "GET",
        bank,
        "operations",
        read=_READ_PAGE,
        empty=lambda: Page[Operation](items=(), degraded=True),
        query={
            "status": values.maybe(values.text, status, "status"),
            "type": values.maybe(values.text, operation_type, "operation_type"),
            "exclude_parents": values.maybe(values.switch, exclude_parents, "exclude_parents"),
            **page_fields(limit, offset),
        },
        repeat=Repeat.READ,
    )


def get_operation(bank: str, operation_id: UUID | str, *, include_payload: bool = False) -> Call[Operation]:
    """Look at an operation; one that the bank does not have is answered with the status `not_found`, not with 404.

    `include_payload` brings what was submitted, which may be large.
    """
    known_as = values.uuid_text(operation_id, "operation_id")
    return bank_call(
        "get_operation",
        "GET",
        bank,
        "operations",
        known_as,
        read=_READ_OPERATION,
        empty=lambda: Operation(operation_id=known_as, status="unknown", degraded=True),
        query={"include_payload": values.switch(include_payload, "include_payload") or None},
        repeat=Repeat.READ,
    )


def cancel_operation(bank: str, operation_id: UUID | str) -> Call[Done]:
    """Cancel this one operation. A parent's children go on and write: cancel each of its `ids_to_cancel` instead.

    The server answers 409 to one that is terminal, so also the second time.
    """
    return _operation_call("cancel_operation", "DELETE", bank, operation_id)


def retry_operation(bank: str, operation_id: UUID | str) -> Call[Done]:
    """Have a failed or cancelled operation tried again; 409 for a completed one. One that is waiting keeps waiting."""
    return _operation_call("retry_operation", "POST", bank, operation_id, "retry")


def delete_operation(bank: str, operation_id: UUID | str) -> Call[Done]:
    """Delete the record of a terminal operation, so that its id is free again; 404 where there is none (from 0.8.5)."""
    return _operation_call("delete_operation", "DELETE", bank, operation_id, "delete")


def _operation_call(operation: str, method: str, bank: str, operation_id: UUID | str, *verb: str) -> Call[Done]:
    return bank_call(
        operation,
        method,
        bank,
        "operations",
        values.uuid_text(operation_id, "operation_id"),
        *verb,
        read=_READ_DONE,
        empty=not_done,
        repeat=Repeat.IDENTIFIED,
    )
