"""Documents: list, read, retag, delete; their chunks; and the tags of a bank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.api.call import Call, Repeat
from bankclient.api.calls import _values as values
from bankclient.api.calls._bank import bank_call, not_done, page_fields
from bankclient.api.calls._filters import filter_needs, tag_filter
from bankclient.api.models.base import Done, Page, reader
from bankclient.api.models.documents import Document, DocumentChunk, TagCount
from bankclient.api.models.words import DocumentTimeField, TagSource
from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from bankclient.api.models.words import ObservationScopes, TagsMatch

__all__ = ["delete_document", "get_document", "list_chunks", "list_documents", "list_tags", "patch_document"]

_READ_PAGE, _READ_DOCUMENT, _READ_DONE = reader(Page[Document]), reader(Document), reader(Done)
_READ_CHUNKS, _READ_TAGS = reader(Page[DocumentChunk]), reader(Page[TagCount])
_time_field, _source = values.word(DocumentTimeField), values.word(TagSource)


def list_documents(
    bank: str,
    *,
    q: str | None = None,
    tags: Iterable[str] | str = (),
    tags_match: TagsMatch | None = None,
    time_field: DocumentTimeField | None = None,
    start_date: datetime | str | None = None,
    end_date: datetime | str | None = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Call[Page[Document]]:
    """List documents, last changed first, those whose id or text holds `q`.

    `start_date` (inclusive) and `end_date` (exclusive) bound `time_field`. Here `tags_match` is `any_strict` unless
    given, so that untagged documents are left out, unlike in recall and `list_memories`.
    """
    filters = tag_filter(tags, tags_match)
    return bank_call(
        "list_documents",
        "GET",
        bank,
        "documents",
        read=_READ_PAGE,
        empty=lambda: Page[Document](items=(), degraded=True),
        query={
            "q": values.maybe(values.text, q, "q"),
            **filters,
            "time_field": values.maybe(_time_field, time_field, "time_field"),
            "start_date": values.maybe(values.moment, start_date, "start_date"),
            "end_date": values.maybe(values.moment, end_date, "end_date"),
            **page_fields(limit, offset),
        },
        repeat=Repeat.READ,
        needs=filter_needs(filters),
    )


def get_document(bank: str, document_id: str) -> Call[Document]:
    """Read a document. One whose id ends in `/chunks` or `/history` cannot be read: the server takes it for a route."""
    name = values.document_id(document_id, "document_id")
    if name.endswith(("/chunks", "/history")):
        raise InvalidInput(f"document_id {name!r} ends like a route of the server: find it with list_documents(q=…)")
    return bank_call(
        "get_document",
        "GET",
        bank,
        "documents",
        name,
        read=_READ_DOCUMENT,
        empty=lambda: Document(id=name, bank_id=bank, degraded=True),
        repeat=Repeat.READ,
    )


def patch_document(
    bank: str,
    document_id: str,
    *,
    tags: Iterable[str] | str | None = None,
    observation_scopes: ObservationScopes | None = None,
) -> Call[Done]:
    """Give a document and its memories other tags: these *replace* what it had, and an empty list takes all away."""
    body = values.given(
        tags=values.maybe(values.texts, tags, "tags"),
        observation_scopes=values.maybe(values.scopes, observation_scopes, "observation_scopes"),
    )
    if not body:
        raise InvalidInput("there is nothing to change in the document: give tags or observation_scopes")
    return bank_call(
        "patch_document",
        "PATCH",
        bank,
        "documents",
        values.document_id(document_id, "document_id"),
        read=_READ_DONE,
        empty=not_done,
        body=body,
        repeat=Repeat.IDENTIFIED,
    )


def delete_document(bank: str, document_id: str) -> Call[Done]:
    """Delete a document and its memories; the server answers 404 where it is not there, so also the second time."""
    return bank_call(
        "delete_document",
        "DELETE",
        bank,
        "documents",
        values.document_id(document_id, "document_id"),
        read=_READ_DONE,
        empty=not_done,
        repeat=Repeat.IDENTIFIED,
    )


def list_chunks(
    bank: str, document_id: str, *, limit: int | None = None, offset: int | None = None
) -> Call[Page[DocumentChunk]]:
    """List the pieces of a document in their order, up to 1000 on a page."""
    return bank_call(
        "list_chunks",
        "GET",
        bank,
        "documents",
        values.document_id(document_id, "document_id"),
        "chunks",
        read=_READ_CHUNKS,
        empty=lambda: Page[DocumentChunk](items=(), degraded=True),
        query=page_fields(limit, offset),
        repeat=Repeat.READ,
    )


def list_tags(
    bank: str,
    *,
    q: str | None = None,
    source: TagSource | None = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Call[Page[TagCount]]:
    """List the tags in the bank, most used first; `q` may hold `*` for anything (`project:*`)."""
    return bank_call(
        "list_tags",
        "GET",
        bank,
        "tags",
        read=_READ_TAGS,
        empty=lambda: Page[TagCount](items=(), degraded=True),
        query={
            "q": values.maybe(values.text, q, "q"),
            "source": values.maybe(_source, source, "source"),
            **page_fields(limit, offset),
        },
        repeat=Repeat.READ,
    )
