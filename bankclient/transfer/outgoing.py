"""Writing an export: the banks of the embedded bank's file, as they stand at one moment, line by line."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from bankclient.embedded.snapshot import open_snapshot
from bankclient.errors import InvalidInput
from bankclient.transfer.lines import (
    BankLine,
    Change,
    Contents,
    DocumentLine,
    Edits,
    End,
    Header,
    Item,
    NamedEntity,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from bankclient.embedded.snapshot import SavedBank
    from bankclient.embedded.unfiling import Curated, SavedDocument, SavedItem
    from bankclient.transfer.lines import Scopes

__all__ = ["Exported", "export"]


@dataclasses.dataclass(slots=True)
class Exported:
    """What went into an export."""

    banks: int = 0
    documents: int = 0
    memories: int = 0
    edited: int = 0
    invalidated: int = 0

    def __str__(self) -> str:
        return (
            f"{self.banks} banks, {self.documents} documents, {self.memories} memories "
            f"({self.edited} edited, {self.invalidated} invalidated)"
        )


def export(path: Path, write: Callable[[bytes], object], *, banks: Collection[str] = ()) -> Exported:
    """Hand the embedded bank at `path` to `write`, line by line; only some banks of it where these are named.

    Raises `StoreError` where the file cannot be read and `InvalidInput` for a bank that is not in it.
    """
    with open_snapshot(path) as snapshot:
        missing = sorted(set(banks) - {bank.bank_id for bank in snapshot.banks})
        if missing:
            there = ", ".join(bank.bank_id for bank in snapshot.banks) or "none"
            raise InvalidInput(f"there is no bank {missing[0]!r} in the embedded bank (there are: {there})")
        chosen = [bank for bank in snapshot.banks if not banks or bank.bank_id in banks]
        exported = Exported(banks=len(chosen), memories=sum(bank.memories for bank in chosen))
        write(encode(_header(chosen)))
        for bank in chosen:
            write(encode(BankLine(bank=bank.bank_id, name=bank.name, config=dict(bank.config))))
            for document in snapshot.documents(bank.bank_id):
                if document.items:
                    write(encode(_document(bank.bank_id, document)))
                    exported.documents += 1
                exported.edited += sum(bool(change.edits) for change in document.curated)
                exported.invalidated += sum(change.is_invalidated for change in document.curated)
    write(encode(End(lines=2 + exported.banks + exported.documents)))
    return exported


def _header(banks: list[SavedBank]) -> Header:
    contents = [Contents(bank=bank.bank_id, documents=bank.documents, memories=bank.memories) for bank in banks]
    return Header(exported_at=datetime.now(UTC).isoformat(timespec="seconds"), banks=contents)


def _document(bank_id: str, document: SavedDocument) -> DocumentLine:
    return DocumentLine(
        bank=bank_id,
        document_id=document.document_id,
        created_at=document.created_at,
        items=[_item(item) for item in document.items],
        changes=[_change(change) for change in document.curated],
    )


def _item(item: SavedItem) -> Item:
    return Item(
        content=item.content,
        timestamp=item.timestamp,
        context=item.context,
        tags=list(item.tags),
        metadata=dict(item.metadata),
        entities=[NamedEntity(text=entity["text"], type=entity["type"]) for entity in item.entities],
        resolve_entities=item.resolve_entities,
        observation_scopes=cast("Scopes | None", item.observation_scopes),
        strategy=item.strategy,
    )


def _change(change: Curated) -> Change:
    return Change(
        index=change.index,
        chunk=change.chunk,
        edits=Edits.model_validate(change.edits),
        invalidated=change.is_invalidated,
        reason=change.reason,
    )
