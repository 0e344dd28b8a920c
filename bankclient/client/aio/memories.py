"""The memories of a bank, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from bankclient.api import calls
from bankclient.client.aio.resource import PAGE_SIZE, AsyncResource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from datetime import datetime
    from uuid import UUID

    from bankclient.api.models.base import Done, Page
    from bankclient.api.models.memories import Memory, MemoryHistory
    from bankclient.api.models.words import ConsolidationState, FactType, MemoryState, MemoryTimeField, TagsMatch

__all__ = ["AsyncMemories"]


class AsyncMemories(AsyncResource):
    """Memories: list, read, correct, invalidate and restore, clear."""

    async def list(
        self,
        *,
        q: str | None = None,
        fact_type: FactType | None = None,
        tags: Iterable[str] | str = (),
        tags_match: TagsMatch | None = None,
        document_id: str | None = None,
        entity_id: UUID | str | None = None,
        state: MemoryState | None = None,
        consolidation_state: ConsolidationState | None = None,
        time_field: MemoryTimeField | None = None,
        start_date: datetime | str | None = None,
        end_date: datetime | str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        bank: str | None = None,
    ) -> Page[Memory]:
        """Return one page of the memories; what is left out does not narrow it (`state` is `valid` if left out)."""
        call = calls.list_memories(
            self._or_own(bank),
            q=q,
            fact_type=fact_type,
            tags=tags,
            tags_match=tags_match,
            document_id=document_id,
            entity_id=entity_id,
            state=state,
            consolidation_state=consolidation_state,
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
        fact_type: FactType | None = None,
        tags: Iterable[str] | str = (),
        tags_match: TagsMatch | None = None,
        document_id: str | None = None,
        state: MemoryState | None = None,
        bank: str | None = None,
    ) -> AsyncIterator[Memory]:
        """Yield every such memory, page by page."""
        wanted = tags if isinstance(tags, str) else tuple(tags)
        return self._pages(
            lambda offset: calls.list_memories(
                self._or_own(bank),
                q=q,
                fact_type=fact_type,
                tags=wanted,
                tags_match=tags_match,
                document_id=document_id,
                state=state,
                limit=PAGE_SIZE,
                offset=offset,
            )
        )

    async def get(self, memory_id: UUID | str, *, bank: str | None = None) -> Memory:
        """Return a memory, an invalidated one too; raises `NotFound`."""
        return await self._caller.call(calls.get_memory(self._or_own(bank), memory_id))

    async def history(self, memory_id: UUID | str, *, bank: str | None = None) -> MemoryHistory:
        """Return how an observation came to be what it is; facts have none."""
        return await self._caller.call(calls.get_memory_history(self._or_own(bank), memory_id))

    async def patch(
        self,
        memory_id: UUID | str,
        *,
        text: str | None = None,
        context: str | None = None,
        occurred_start: datetime | str | None = None,
        occurred_end: datetime | str | None = None,
        mentioned_at: datetime | str | None = None,
        fact_type: Literal["world", "experience"] | None = None,
        entities: Iterable[str] | str | None = None,
        resolve_entities: bool | None = None,
        bank: str | None = None,
    ) -> Memory:
        """Correct a memory; an empty text clears a context or a date. Its tags and metadata are its document's."""
        call = calls.patch_memory(
            self._or_own(bank),
            memory_id,
            text=text,
            context=context,
            occurred_start=occurred_start,
            occurred_end=occurred_end,
            mentioned_at=mentioned_at,
            fact_type=fact_type,
            entities=entities,
            resolve_entities=resolve_entities,
        )
        return await self._caller.call(call)

    async def invalidate(self, memory_id: UUID | str, *, reason: str | None = None, bank: str | None = None) -> Memory:
        """Take a memory out of recall and lists; it can be read by its id, and restored.

        It stays so when the same text is retained again.
        """
        return await self._caller.call(calls.invalidate_memory(self._or_own(bank), memory_id, reason=reason))

    async def restore(self, memory_id: UUID | str, *, bank: str | None = None) -> Memory:
        """Bring an invalidated memory back."""
        return await self._caller.call(calls.restore_memory(self._or_own(bank), memory_id))

    async def clear(self, bank: str, *, fact_type: FactType | None = None) -> Done:
        """Delete the memories of a kind; without one, all memories *and all documents* of the bank."""
        return await self._caller.call(calls.clear_memories(bank, fact_type=fact_type))
