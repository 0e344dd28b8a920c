"""What is in the banks of a scope, as the server counts it; a bank that is not there yet is no fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bankclient.errors import NotFound

if TYPE_CHECKING:
    from bankclient import BankClient

__all__ = ["BankState", "bank_states"]


@dataclass(frozen=True, slots=True)
class BankState:
    """A bank and how much is in it."""

    bank: str
    exists: bool
    facts: int = 0
    observations: int = 0
    documents: int = 0
    pending_operations: int = 0
    failed_operations: int = 0

    def __str__(self) -> str:
        if not self.exists:
            return f"{self.bank}: not there yet, the first retain makes it"
        observations = f", observations {self.observations}" if self.observations else ""
        return (
            f"{self.bank}: facts {self.facts}{observations}, documents {self.documents}, "
            f"operations pending {self.pending_operations}, failed {self.failed_operations}"
        )


def bank_states(client: BankClient) -> list[BankState]:
    """Return the state of each bank that a recall in the client's scope asks; raises as its calls do."""
    return [_state(client, bank) for bank in dict.fromkeys(target.bank for target in client.scope.recall)]


def _state(client: BankClient, bank: str) -> BankState:
    try:
        stats = client.banks.stats(bank, refresh=True)
    except NotFound as error:
        if error.is_missing_bank:
            return BankState(bank, exists=False)
        raise
    observations = stats.nodes_by_fact_type.get("observation", 0)
    return BankState(
        bank,
        True,  # noqa: FBT003 - the field after the name
        stats.total_nodes - observations,
        observations,
        stats.total_documents,
        stats.pending_operations,
        stats.failed_operations,
    )
