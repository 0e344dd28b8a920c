# Made from the async client by .ci/sync_twin.py: change that one.
"""What the server does in the background for a bank."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from bankclient.api import calls
from bankclient.client.sync.resource import PAGE_SIZE, Resource
from bankclient.errors import Conflict, OperationFailed, TimedOut

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from bankclient.api.models.base import Done, Page
    from bankclient.api.models.operations import Operation

__all__ = ["Operations"]

_FIRST_POLL: Final = 0.05
_LONGEST_POLL: Final = 2.0


class Operations(Resource):
    """Operations: list, read, wait for, cancel, retry, delete."""

    def list(
        self,
        *,
        status: str | None = None,
        operation_type: str | None = None,
        exclude_parents: bool | None = None,
        limit: int | None = None,
        offset: int | None = None,
        bank: str | None = None,
    ) -> Page[Operation]:
        """Return one page of operations, newest first; an unknown status or type finds none."""
        call = calls.list_operations(
            self._or_own(bank),
            status=status,
            operation_type=operation_type,
            exclude_parents=exclude_parents,
            limit=limit,
            offset=offset,
        )
        return self._caller.call(call)

    def iterate(
        self, *, status: str | None = None, operation_type: str | None = None, bank: str | None = None
    ) -> Iterator[Operation]:
        """Yield every such operation, page by page."""
        return self._pages(
            lambda offset: calls.list_operations(
                self._or_own(bank), status=status, operation_type=operation_type, limit=PAGE_SIZE, offset=offset
            )
        )

    def get(self, operation_id: UUID | str, *, include_payload: bool = False, bank: str | None = None) -> Operation:
        """Return an operation; one that the server does not know has the status `not_found`."""
        call = calls.get_operation(self._or_own(bank), operation_id, include_payload=include_payload)
        return self._caller.call(call)

    def wait(self, operation_id: UUID | str, *, timeout: float = 60.0, bank: str | None = None) -> Operation:
        """Return the operation once it is completed, asking ever more sparsely for up to `timeout` seconds.

        Raises `OperationFailed` where it ended otherwise, and `TimedOut` where it goes on: it is not lost by that. A
        degraded client whose server is away returns the empty operation.
        """
        began, pause = self._caller.core.now(), _FIRST_POLL
        while True:
            left = self._caller.core.left("request", timeout, began)
            call = calls.get_operation(self._or_own(bank), operation_id)
            operation = self._caller.call(call, timeout=min(left, self._caller.core.limits["request"]))
            if operation.degraded or operation.status == "completed":
                return operation
            if operation.is_terminal:
                raise OperationFailed(operation.operation_id, operation.status, operation.failure)
            elapsed = self._caller.core.now() - began
            if elapsed + pause > timeout:
                reason = f"operation {operation_id} is still {operation.status}; it goes on, ask for it later"
                raise TimedOut(reason, self._caller.core.context("wait", self._or_own(bank), elapsed, timeout))
            self._caller.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_POLL)

    def cancel(self, operation_id: UUID | str, *, bank: str | None = None) -> Operation:
        """Stop an operation with its parts, and return it.

        The parts are cancelled one by one: a parent that is cancelled itself says so while they go on and write.
        """
        operation = self.get(operation_id, bank=bank)
        for part in operation.ids_to_cancel:
            with contextlib.suppress(Conflict):  # it ended meanwhile
                self._caller.call(calls.cancel_operation(self._or_own(bank), part))
        return self.get(operation_id, bank=bank)

    def retry(self, operation_id: UUID | str, *, bank: str | None = None) -> Done:
        """Start a failed or cancelled operation again; raises `Conflict` for a completed one."""
        return self._caller.call(calls.retry_operation(self._or_own(bank), operation_id))

    def delete(self, operation_id: UUID | str, *, bank: str | None = None) -> Done:
        """Delete the record of an operation that has ended; raises `Conflict` for one that has not."""
        return self._caller.call(calls.delete_operation(self._or_own(bank), operation_id))
