"""The bytes of a batch: one item's JSON, the request made of several, ids of facts, hashes of texts.

Pure. A request is made once, when its batch is sealed, and kept: nothing here is asked again for the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bankclient.api.call import clean_text, encode_json
from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bankclient.store.outbox.model import Address

__all__ = ["Fact", "Item", "fact_document", "read_items", "request_body"]


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a retain request, encoded."""

    body: bytes
    document: str | None
    content_hash: str | None

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Item:
        """Return the fields of the API's `MemoryItem`, encoded. Raises `InvalidInput` where JSON cannot carry them."""
        content, document = fields.get("content"), fields.get("document_id")
        # Blocks are stored with placeholders of the server's own, and appended text is not the whole document.
        whole = content if isinstance(content, str) and fields.get("update_mode") != "append" else None
        return cls(
            encode_json(fields),
            clean_text(document) or None if isinstance(document, str) else None,
            None if whole is None else hashlib.sha256(clean_text(whole).encode()).hexdigest(),
        )


@dataclass(frozen=True, slots=True)
class Fact:
    """An explicit fact, encoded: its document, and whether the caller named that."""

    item: Item
    document: str
    named: bool

    @classmethod
    def of(cls, address: Address, fields: Mapping[str, Any]) -> Fact:
        """Return the fields of the API's `MemoryItem` as a fact for that address. Raises `InvalidInput`."""
        content, named = fields.get("content"), fields.get("document_id")
        if not isinstance(content, str) or not content.strip():
            raise InvalidInput("a fact needs text in `content`")
        document = named or fact_document(address, content)
        item = Item.of({**fields, "document_id": document, "tags": [*address.tags]})
        if item.document is None:
            raise InvalidInput("a `document_id` is text")
        return cls(item, item.document, bool(named))


def fact_document(address: Address, text: str) -> str:
    """Return the document id of an explicit fact: the same for the same text, bank and tags, and for nothing else."""
    named = json.dumps([address.bank, address.tags, clean_text(text)])
    return f"fact-{hashlib.sha256(named.encode()).hexdigest()[:40]}"


def request_body(items: Iterable[bytes], operation_id: str) -> bytes:
    """Return the bytes of an asynchronous retain request of encoded items."""
    return b'{"items":[%b],"async":true,"operation_id":"%b"}' % (b",".join(items), operation_id.encode())


def read_items(body: bytes) -> Sequence[bytes]:
    """Return the encoded items of a request that `request_body` made."""
    return [encode_json(item) for item in json.loads(body)["items"]]
