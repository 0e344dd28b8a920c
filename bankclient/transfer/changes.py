"""What somebody did to memories of a document, done again to those that another server made of the same document.

A memory is found by the chunk of text that it was drawn from: its id is another on every server, and a language model
may have made several of one chunk. Doing it twice is as good as once.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from bankclient.api import calls
from bankclient.errors import BankclientError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bankclient.api.models.documents import DocumentChunk
    from bankclient.api.models.memories import Memory
    from bankclient.client import BankClient
    from bankclient.transfer.lines import Change, DocumentLine, Edits

__all__ = ["apply_changes"]


def apply_changes(client: BankClient, bank: str, line: DocumentLine) -> int:
    """Do to the document's memories in `bank` what the line says, and return how many were changed.

    Raises `BankclientError` where it cannot be told which memories are meant, and as the client's calls do.
    """
    if not line.changes:
        return 0
    document = line.document_id
    chunks = list(client.documents.chunks(document, bank=bank))
    made: dict[str | None, list[Memory]] = {}
    for state in ("valid", "invalidated"):
        for memory in client.memories.iterate(document_id=document, state=state, bank=bank):
            made.setdefault(memory.chunk_id, []).append(memory)
    changed = 0
    for change in line.changes:
        memories = made.get(_chunk_id(chunks, change), [])
        changed += sum(_edit(client, bank, memories, change.edits))
        if change.invalidated:
            changed += sum(_invalidate(client, bank, memory, change.reason) for memory in memories)
    return changed


def _chunk_id(chunks: Sequence[DocumentChunk], change: Change) -> str:
    """Return the chunk that the change is about: the one of the same text, at the same place if there are several."""
    alike = [chunk for chunk in chunks if chunk.chunk_text.strip() == change.chunk.strip()]
    if not alike and len(chunks) == 1:
        alike = list(chunks)
    if not alike:
        what = "invalidated" if change.invalidated else "edited"
        raise BankclientError(
            f"it is stored, but a memory of it was {what} and the server cut its text in another way, so that it "
            "cannot be found: do that there by hand"
        )
    return next((chunk for chunk in alike if chunk.chunk_index == change.index), alike[0]).chunk_id


def _edit(client: BankClient, bank: str, memories: Sequence[Memory], edits: Edits) -> list[bool]:
    wanted: dict[str, Any] = edits.model_dump(exclude_none=True)
    valid = [memory for memory in memories if memory.state == "valid"]
    if not wanted or not valid:
        return []
    if len(memories) > 1:
        if edits.text in {memory.text for memory in valid}:
            return []  # somebody did it by hand
        raise BankclientError(
            f"it is stored, but the server made {len(memories)} memories of a text that was one here, and that one was "
            f"edited: edit there by hand what should read {edits.text or valid[0].text!r}"
        )
    memory = valid[0]
    differing = {name: value for name, value in wanted.items() if _is_other(memory, name, value)}
    if differing:
        client.call(calls.patch_memory(bank, memory.id, **differing))
    return [bool(differing)]


def _is_other(memory: Memory, name: str, value: str | list[str]) -> bool:
    if isinstance(value, list):  # entities, in whatever order
        return set(value) != set(memory.entities)
    present: object = memory.type if name == "fact_type" else getattr(memory, name)
    if isinstance(present, datetime):
        return not value or datetime.fromisoformat(value) != present
    return present != value if present else bool(value)


def _invalidate(client: BankClient, bank: str, memory: Memory, reason: str | None) -> bool:
    if memory.state != "valid":
        return False
    client.memories.invalidate(memory.id, reason=reason, bank=bank)
    return True
