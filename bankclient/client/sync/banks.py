# Made from the async client by .ci/sync_twin.py: change that one.
"""The banks of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bankclient.api import calls
from bankclient.client.sync.resource import PAGE_SIZE, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Unpack

    from bankclient.api.calls import BankFields
    from bankclient.api.models.banks import Bank, BankConfig, BankStats
    from bankclient.api.models.base import Done, Page

__all__ = ["Banks"]


class Banks(Resource):
    """Banks: list, make, change, delete, count, configure."""

    def list(self, *, q: str | None = None, limit: int | None = None, offset: int | None = None) -> Page[Bank]:
        """Return one page of the banks whose name holds `q`. A server before 1.0 returns all of them at once."""
        return self._caller.call(calls.list_banks(q=q, limit=limit, offset=offset))

    def iterate(self, *, q: str | None = None) -> Iterator[Bank]:
        """Yield every bank, page by page."""
        return self._pages(lambda offset: calls.list_banks(q=q, limit=PAGE_SIZE, offset=offset))

    def put(self, bank: str | None = None, **fields: Unpack[BankFields]) -> Bank:
        """Make a bank, or change one: only the fields that are given change."""
        return self._caller.call(calls.put_bank(self._or_own(bank), **fields))

    def patch(self, bank: str | None = None, **fields: Unpack[BankFields]) -> Bank:
        """Change a bank; raises `NotFound` where it is not there."""
        return self._caller.call(calls.patch_bank(self._or_own(bank), **fields))

    def delete(self, bank: str) -> Done:
        """Delete a bank with everything in it. One that is not there is as good as deleted."""
        return self._caller.call(calls.delete_bank(bank))

    def stats(self, bank: str | None = None, *, refresh: bool = False) -> BankStats:
        """Return how much is in a bank; the server keeps the numbers for a minute unless `refresh` is set."""
        return self._caller.call(calls.get_bank_stats(self._or_own(bank), refresh=refresh))

    def config(self, bank: str | None = None) -> BankConfig:
        """Return a bank's configuration and what of it was set for this bank."""
        return self._caller.call(calls.get_bank_config(self._or_own(bank)))

    def configure(self, updates: Mapping[str, Any], bank: str | None = None) -> BankConfig:
        """Set fields of a bank's configuration; the bank is made where it is not there."""
        return self._caller.call(calls.patch_bank_config(self._or_own(bank), updates))

    def reset_config(self, bank: str | None = None) -> BankConfig:
        """Take back everything that was set for this bank."""
        return self._caller.call(calls.reset_bank_config(self._or_own(bank)))
