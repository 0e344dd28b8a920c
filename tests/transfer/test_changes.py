"""Changes done again: which memories are meant, where a server made others of the same text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import pytest

from bankclient.api.models.documents import DocumentChunk
from bankclient.api.models.memories import Memory
from bankclient.errors import BankclientError
from bankclient.transfer.changes import apply_changes
from bankclient.transfer.lines import Change, DocumentLine, Edits, Item

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bankclient import BankClient


def an_id(chunk: int, number: int = 0) -> str:
    """Return the id of the memory of a chunk."""
    return str(UUID(int=16 * chunk + number))


class Server:
    """What a server made of one document: its chunks, and the memories of each; it stands in for a client."""

    def __init__(self, **memories: list[str]) -> None:
        self.documents = self.memories = self
        self.texts = list(memories)
        self.made = [
            Memory(id=an_id(number, each), text=text, chunk_id=str(number))
            for number, texts in enumerate(memories.values())
            for each, text in enumerate(texts)
        ]
        self.done: list[tuple[str, object]] = []

    def chunks(self, document: str, *, bank: str) -> Iterator[DocumentChunk]:
        """Yield the chunks."""
        assert (document, bank) == ("d", "b")
        for number, text in enumerate(self.texts):
            yield DocumentChunk(chunk_id=str(number), chunk_text=text, chunk_index=number)

    def iterate(self, *, document_id: str, state: str, bank: str) -> Iterator[Memory]:
        """Yield the memories in a state."""
        assert (document_id, bank) == ("d", "b")
        return (memory for memory in self.made if memory.state == state)

    def invalidate(self, memory: str, *, reason: str | None, bank: str) -> None:
        """Note what is invalidated, and let it be so."""
        assert bank == "b"
        self.done.append((memory, reason))
        self.made = [
            each.model_copy(update={"state": "invalidated"}) if each.id == memory else each for each in self.made
        ]

    def call(self, call: Any) -> None:  # noqa: ANN401 - a call of any kind
        """Note what is edited."""
        self.done.append((call.path.rpartition("/")[2], call.body.decode()))


def apply(server: Server, *changes: Change) -> int:
    """Do changes of the document `d` in the bank `b`."""
    item = Item(content="text", timestamp=None)
    line = DocumentLine(bank="b", document_id="d", created_at="", items=[item], changes=list(changes))
    return apply_changes(cast("BankClient", server), "b", line)


def test_all_that_was_made_of_a_forgotten_text_is_invalidated_once() -> None:
    """A language model may have drawn several facts from it; a second time there is nothing to do."""
    server = Server(one=["fact one"], two=["fact two", "another of two"])
    change = Change(index=1, chunk="two", invalidated=True, reason="no")
    assert apply(server, change) == 2
    assert server.done == [(an_id(1), "no"), (an_id(1, 1), "no")]
    assert apply(server, change) == 0


def test_of_two_chunks_that_are_alike_the_one_at_the_same_place_is_meant() -> None:
    """The same words twice in a document are two memories, of which one was forgotten."""
    server = Server(**{"same": ["first"], "same ": ["second"]})
    assert apply(server, Change(index=1, chunk="same", invalidated=True)) == 1
    assert server.done == [(an_id(1), None)]


def test_a_document_that_is_one_chunk_is_meant_whatever_it_says() -> None:
    """Where the server keeps the text otherwise, all of it is the one chunk."""
    server = Server(**{"Text, tidied": ["a fact"]})
    assert apply(server, Change(index=0, chunk="text", invalidated=True)) == 1


def test_a_text_that_no_memory_was_made_of_needs_nothing() -> None:
    """There is nothing to forget."""
    assert apply(Server(one=["fact"], two=[]), Change(index=1, chunk="two", invalidated=True)) == 0


def test_a_chunk_that_is_not_there_is_an_error() -> None:
    """It is said that the document is stored, and what is left to do."""
    with pytest.raises(BankclientError, match="a memory of it was invalidated and the server cut its text in another"):
        apply(Server(one=["fact"], two=["fact"]), Change(index=1, chunk="three", invalidated=True))
    with pytest.raises(BankclientError, match="a memory of it was edited and the server cut its text in another"):
        apply(Server(one=["fact"], two=["fact"]), Change(index=1, chunk="three", edits=Edits(text="new")))


def test_only_what_differs_is_edited() -> None:
    """A date in another form is the same date, and entities have no order; a second time nothing is sent."""
    server = Server(one=["old"])
    server.made[0] = Memory(
        id=an_id(0),
        text="new",
        chunk_id="0",
        mentioned_at="2024-01-01T02:00:00+02:00",
        entities=["b", "a"],
        context="c",
    )
    same = Edits(text="new", mentioned_at="2024-01-01T00:00:00+00:00", entities=["a", "b"], occurred_start="")
    assert apply(server, Change(index=0, chunk="one", edits=same)) == 0
    other = Edits(text="new", context="", fact_type="experience", mentioned_at="", occurred_start="2020-01-01")
    assert apply(server, Change(index=0, chunk="one", edits=other)) == 1
    assert server.done == [
        (
            an_id(0),
            '{"context":"","occurred_start":"2020-01-01T00:00:00+00:00","mentioned_at":"","fact_type":"experience"}',
        )
    ]


def test_an_edit_comes_before_the_invalidation() -> None:
    """The server edits nothing that is invalidated."""
    server = Server(one=["old"])
    assert apply(server, Change(index=0, chunk="one", edits=Edits(text="new"), invalidated=True)) == 2
    assert server.done == [(an_id(0), '{"text":"new"}'), (an_id(0), None)]


def test_an_edit_of_what_is_several_there_is_an_error_until_it_was_done_by_hand() -> None:
    """Which of them should read so cannot be told; it says what to do, and sees that it was done."""
    change = Change(index=0, chunk="one", edits=Edits(text="The port is 4711."))
    with pytest.raises(BankclientError, match=r"made 2 memories of a text .* what should read 'The port is 4711\.'"):
        apply(Server(one=["The port", "is 4000."]), change)
    assert apply(Server(one=["The port", "The port is 4711."]), change) == 0
