"""The documents of a bank, and the tags in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bankclient.api import calls
from bankclient.client.aio.resource import PAGE_SIZE, AsyncResource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from datetime import datetime

    from bankclient.api.models.base import Done, Page
    from bankclient.api.models.documents import Document, DocumentChunk, TagCount
    from bankclient.api.models.words import DocumentTimeField, ObservationScopes, TagsMatch, TagSource

__all__ = ["AsyncDocuments"]


class AsyncDocuments(AsyncResource):
    """Documents: list, read, tag, delete; and which tags there are."""

    async def list(
        self,
        *,
        q: str | None = None,
        tags: Iterable[str] | str = (),
        tags_match: TagsMatch | None = None,
        time_field: DocumentTimeField | None = None,
        start_date: datetime | str | None = None,
        end_date: datetime | str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        bank: str | None = None,
    ) -> Page[Document]:
        """Return one page of the documents whose id or text holds `q`, newest update first.

        Without `tags_match` only documents that bear one of the tags are found: here the server's own choice is
        `any_strict`.
        """
        call = calls.list_documents(
            self._or_own(bank),
            q=q,
            tags=tags,
            tags_match=tags_match,
            time_field=time_field,
            start_date=start_date,
            end_date=end_date,
            limit=limit,
            offset=offset,
        )
        return await self._caller.call(call)

    def iterate(
        self,
        *,
        q: str | None = None,
        tags: Iterable[str] | str = (),
        tags_match: TagsMatch | None = None,
        bank: str | None = None,
    ) -> AsyncIterator[Document]:
        """Yield every such document, page by page."""
        wanted = tags if isinstance(tags, str) else tuple(tags)
        return self._pages(
            lambda offset: calls.list_documents(
                self._or_own(bank), q=q, tags=wanted, tags_match=tags_match, limit=PAGE_SIZE, offset=offset
            )
        )

    async def get(self, document_id: str, *, bank: str | None = None) -> Document:
        """Return a document with its text; raises `NotFound`."""
        return await self._caller.call(calls.get_document(self._or_own(bank), document_id))

    async def patch(
        self,
        document_id: str,
        *,
        tags: Iterable[str] | str | None = None,
        observation_scopes: ObservationScopes | None = None,
        bank: str | None = None,
    ) -> Done:
        """Replace a document's tags, and so those of its memories; an empty list clears them."""
        call = calls.patch_document(self._or_own(bank), document_id, tags=tags, observation_scopes=observation_scopes)
        return await self._caller.call(call)

    async def delete(self, document_id: str, *, bank: str | None = None) -> Done:
        """Delete a document with its memories; raises `NotFound`."""
        return await self._caller.call(calls.delete_document(self._or_own(bank), document_id))

    def chunks(self, document_id: str, *, bank: str | None = None) -> AsyncIterator[DocumentChunk]:
        """Yield the pieces that the server cut a document into."""
        return self._pages(
            lambda offset: calls.list_chunks(self._or_own(bank), document_id, limit=PAGE_SIZE, offset=offset)
        )

    def tags(
        self, *, q: str | None = None, source: TagSource | None = None, bank: str | None = None
    ) -> AsyncIterator[TagCount]:
        """Yield the tags in use with how often each is; `q` may end in `*`."""
        return self._pages(
            lambda offset: calls.list_tags(self._or_own(bank), q=q, source=source, limit=PAGE_SIZE, offset=offset)
        )
