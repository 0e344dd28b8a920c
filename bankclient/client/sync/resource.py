# Made from the async client by .ci/sync_twin.py: change that one.
"""What the resources of a client share: whom they call through, which bank they mean, and how pages become a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bankclient.api.call import Call
    from bankclient.api.models.base import Page
    from bankclient.client.sync.caller import Caller

__all__ = ["PAGE_SIZE", "Resource"]

T = TypeVar("T")
PAGE_SIZE = 100
"""How many entries an iterator asks for at a time; the server's own page size, and its most for operations."""


class Resource:
    """One kind of thing on the server. Methods take `bank`; left out, it is the bank of the client's scope."""

    def __init__(self, caller: Caller, bank: str) -> None:
        self._caller = caller
        self._bank = bank

    def _or_own(self, bank: str | None) -> str:
        return self._bank if bank is None else bank

    def _pages(self, page_at: Callable[[int], Call[Page[T]]]) -> Iterator[T]:
        """Yield the entries of all pages.

        What is added or removed meanwhile shifts the pages: an entry may then come twice or not at all, as on any such
        server. One that knows no pages sends the same again, which ends it.
        """
        offset = 0
        before: tuple[T, ...] = ()
        while True:
            page = self._caller.call(page_at(offset))
            if page.items == before:
                return
            for entry in page.items:
                yield entry
            offset, before = offset + len(page.items), page.items
            if not page.items or offset >= page.total:
                return
