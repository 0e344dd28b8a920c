"""Banks to take elsewhere, a server to take them to, and a look at everything that a bank holds."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from bankclient import BankClient, MemoryItem
from bankclient.embedded.serving import BankServer
from bankclient.errors import NotFound
from bankclient.settings import Settings
from bankclient.transfer import export

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_DOCUMENT = ("id", "content_hash", "original_text", "document_metadata")
_MEMORY = (
    "text",
    "type",
    "context",
    "occurred_start",
    "occurred_end",
    "mentioned_at",
    "metadata",
    "state",
    "invalidation_reason",
)


@pytest.fixture
def old(tmp_path: Path) -> Iterator[BankClient]:
    """Give a client of the embedded bank that is to be exported."""
    with BankClient(settings=Settings(api_url="embedded", state_dir=tmp_path / "old"), folder=tmp_path) as client:
        yield client


@pytest.fixture
def old_file(tmp_path: Path) -> Path:
    """Give the file of that bank."""
    return tmp_path / "old" / "embedded.sqlite3"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BankServer]:
    """Give a server with an empty bank file of its own, at an address."""
    with BankServer(tmp_path / "new" / "embedded.sqlite3") as server:
        yield server


@pytest.fixture
def new(server: BankServer, tmp_path: Path) -> Iterator[BankClient]:
    """Give a client of that server."""
    with BankClient(settings=Settings(api_url=server.url, state_dir=tmp_path), folder=tmp_path) as client:
        yield client


@pytest.fixture
def exported(old_file: Path) -> Callable[..., bytes]:
    """Give the function that returns the export of the old bank."""

    def write(*banks: str) -> bytes:
        out = io.BytesIO()
        export(old_file, out.write, banks=banks)
        return out.getvalue()

    return write


@pytest.fixture
def fill() -> Callable[[BankClient], None]:
    """Give the function that puts one of everything into two banks."""

    def fill(client: BankClient) -> None:
        bank = "bänk one"
        client.banks.put(bank, name="Orchard", reflect_mission="be brief")
        client.banks.configure({"retain_chunk_size": 400}, bank)
        put = client.retain
        put(
            "kurz ü 漢字 🌳 \u2028 line\r\n\ttab",
            bank=bank,
            document_id="a/b ?#%",
            tags=["x", "y"],
            metadata={"k": "v", "ключ": ""},
            context="planning",
            timestamp="2024-05-06T07:08:09+02:00",
            entities=[{"text": "Bob", "type": "PERSON"}],
        )
        put("timeless", bank=bank, document_id="timeless", timestamp="unset")
        put("paragraph of a long text.\n\n" * 60, bank=bank, document_id="long")
        put("A fact that is wrong.", bank=bank, document_id="wrong")
        put("An old wording.", bank=bank, document_id="edited", context="before")
        put("An old wording that is wrong too.", bank=bank, document_id="both")
        client.retain_many(
            [
                MemoryItem("one", document_id="several", timestamp="2024-01-01", tags=["p"], context="first"),
                MemoryItem("two\nlines", document_id="several", timestamp="2024-02-01", tags=["q"]),
                MemoryItem("long " * 200, document_id="several", timestamp="unset"),
            ],
            bank=bank,
        )
        for document, reason in (("wrong", "it never was so"), ("both", None)):
            (memory,) = client.memories.iterate(document_id=document, bank=bank)
            if document == "both":
                client.memories.patch(memory.id, text="A new wording that is wrong.", bank=bank)
            client.memories.invalidate(memory.id, reason=reason, bank=bank)
        (memory,) = client.memories.iterate(document_id="edited", bank=bank)
        client.memories.patch(
            memory.id,
            text="A new wording.",
            context="",
            fact_type="experience",
            occurred_start="2020-01-01",
            entities=["Eve", "Zoë"],
            bank=bank,
        )
        second = list(client.memories.iterate(document_id="long", bank=bank))[1]
        client.memories.invalidate(second.id, bank=bank)
        put("Known in the other bank.", bank="other", document_id="timeless")
        client.banks.put("empty")

    return fill


@pytest.fixture
def contents() -> Callable[..., dict[str, Any]]:
    """Give the function that returns everything in banks, as far as it can be taken to another server."""

    def look(client: BankClient, *banks: str) -> dict[str, Any]:
        return {bank: _bank(client, bank) for bank in banks}

    return look


def _bank(client: BankClient, bank: str) -> object:
    try:
        overrides = dict(client.banks.config(bank).overrides)
    except NotFound:
        return None
    documents = [client.documents.get(each.id, bank=bank) for each in client.documents.iterate(bank=bank)]
    chunks = {chunk.chunk_id: chunk for each in documents for chunk in client.documents.chunks(each.id, bank=bank)}
    memories = [
        {name: getattr(memory, name) for name in _MEMORY}
        | {
            "tags": sorted(memory.tags),
            "chunk": chunks[memory.chunk_id or ""].chunk_text,
            "document": memory.document_id,
        }
        for state in ("valid", "invalidated")
        for memory in client.memories.iterate(state=state, bank=bank)
    ]
    shown = [{name: getattr(each, name) for name in _DOCUMENT} | {"tags": sorted(each.tags)} for each in documents]
    return overrides, sorted(shown, key=str), sorted(memories, key=str)
