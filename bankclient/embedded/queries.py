"""The query parameters that the endpoints take, as pydantic models.

Names and defaults are those of Hindsight 1.1.0. Nothing here knows the storage.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from bankclient.embedded.tags import TagsMatch

__all__ = [
    "ChunksQuery",
    "ClearQuery",
    "DocumentsQuery",
    "ListQuery",
    "MemoriesQuery",
    "OperationQuery",
    "OperationsQuery",
    "PageQuery",
    "StatsQuery",
    "TagsQuery",
]

NonNegative = Annotated[int, Field(ge=0)]
MemoryTimeField = Literal["created_at", "updated_at", "mentioned_at", "occurred_start", "occurred_end"]


class PageQuery(BaseModel):
    """A page of a list."""

    limit: NonNegative = 100
    offset: NonNegative = 0


class ListQuery(PageQuery):
    """A page of what matches a text."""

    q: str | None = None


class MemoriesQuery(ListQuery):
    """The filters of the memory list."""

    type: str | None = None
    consolidation_state: str | None = None
    state: str | None = None
    document_id: str | None = None
    entity_id: str | None = None
    tags: list[str] | None = None
    tags_match: TagsMatch = "any"
    time_field: MemoryTimeField | None = None
    start_date: str | None = None
    end_date: str | None = None


class DocumentsQuery(ListQuery):
    """The filters of the document list, whose tags are strict unless asked otherwise."""

    tags: list[str] | None = None
    tags_match: TagsMatch = "any_strict"
    time_field: Literal["created_at", "updated_at"] | None = None
    start_date: str | None = None
    end_date: str | None = None


class ChunksQuery(BaseModel):
    """A page of a document's chunks."""

    limit: int = Field(default=100, ge=1, le=1000)
    offset: NonNegative = 0


class TagsQuery(ListQuery):
    """The filters of the tag list; `q` may hold `*`."""

    source: Literal["memories", "mental_models"] = "memories"


class OperationsQuery(BaseModel):
    """The filters of the operation list."""

    status: str | None = None
    type: str | None = None
    limit: int = Field(default=20, ge=1, le=100)
    offset: NonNegative = 0
    exclude_parents: bool = False


class OperationQuery(BaseModel):
    """Whether an operation is shown with what it was given."""

    include_payload: bool = False


class StatsQuery(BaseModel):
    """Whether statistics are counted anew; here they always are."""

    refresh: bool = False


class ClearQuery(BaseModel):
    """Which type of memories is cleared; none = everything, documents included."""

    type: str | None = None
