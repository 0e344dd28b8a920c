"""Operations: what the server does in the background, how far it is, and what to do with one."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from bankclient.api.models.base import Part, Reply
from bankclient.api.models.fields import Count, Many, Moment, Named, Object, Text

__all__ = ["TERMINAL", "ChildOperation", "Operation", "OperationProgress"]

TERMINAL = frozenset({"completed", "failed", "cancelled", "not_found"})
"""The statuses that do not change by themselves. One that this version does not know is taken for a passing one."""


class OperationProgress(Part):
    """How far a running operation is; on a parent there is none, its children have it."""

    stage: Text = ""
    at: Moment = None
    processed: int | None = None
    total: int | None = None
    detail: Named[int] = Field(default_factory=dict)


class ChildOperation(Part):
    """One part of the work of a parent."""

    operation_id: str
    status: Text = ""
    sub_batch_index: int | None = None
    items_count: Count = 0
    error_message: str | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the status changes no more by itself."""
        return self.status in TERMINAL


class Operation(Reply):
    """An operation.

    `status` is `pending`, `processing`, `completed`, `failed`, `cancelled` or `not_found` (an id that the server does
    not know, or no longer). A retain is a parent whose children do the work: it stays `pending` until all of them are
    terminal. `error_message` may be a whole traceback; `failure` is its one line.
    """

    operation_id: str = Field(validation_alias=AliasChoices("operation_id", "id"))
    operation_type: Text = Field(default="", validation_alias=AliasChoices("operation_type", "task_type"))
    status: Text
    created_at: Moment = None
    updated_at: Moment = None
    completed_at: Moment = None
    error_message: str | None = None
    retry_count: Count = 0
    next_retry_at: Moment = None
    progress: OperationProgress | None = None
    result_metadata: Object = Field(default_factory=dict)
    details: Object = Field(default_factory=dict)
    children: Many[ChildOperation] = Field(default=(), validation_alias=AliasChoices("child_operations", "children"))
    task_payload: Object = Field(default_factory=dict)
    items_count: Count = 0
    document_id: str | None = None
    filename: str | None = None
    mental_model_id: str | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the status changes no more by itself."""
        return self.status in TERMINAL

    @property
    def ids_to_cancel(self) -> tuple[str, ...]:
        """The operations to cancel so that this one stops.

        Of a parent these are its children: cancelled itself, it reads `cancelled` while they go on and write; once they
        are cancelled, it becomes so by itself. Nothing is left to cancel in what is terminal.
        """
        if self.children:
            return tuple(child.operation_id for child in self.children if not child.is_terminal)
        return () if self.is_terminal else (self.operation_id,)

    @property
    def extraction_errors(self) -> int:
        """How many pieces of text no facts could be drawn from; `completed` alone does not say that there are none."""
        count = self.result_metadata.get("extraction_errors_count")
        return count if isinstance(count, int) else 0

    @property
    def failure(self) -> str:
        """Why it failed, in one line: the last of the message, which in a traceback is the error itself."""
        messages = (self.error_message, *(child.error_message for child in self.children))
        lines = next((message.strip().splitlines() for message in messages if message and message.strip()), [""])
        return lines[-1].strip()
