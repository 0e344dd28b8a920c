"""Filing backwards: what is retained again from an unfiled document is the same document with the same memories."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankclient.embedded import EmbeddedServer
from bankclient.embedded.snapshot import open_snapshot
from bankclient.embedded.unfiling import SavedDocument, StoredDocument, StoredMemory, unfiled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

JSON = {"content-type": "application/json"}
KEPT = ("text", "context", "mentioned_at", "tags", "metadata", "entities", "state", "invalidation_reason", "chunk_id")


class Banks:
    """An embedded bank, spoken to by paths."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.server = EmbeddedServer(path)

    def call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - any JSON value
        """Return the JSON of an answer that must be a success."""
        content = b"" if body is None else json.dumps(body).encode()
        reply = self.server.answer(method, f"/v1/default/banks/{path}", content, JSON)
        assert reply.status == 200, reply.body
        return json.loads(reply.body)

    def begin(self, bank: str, **config: object) -> None:
        """Make a bank anew."""
        self.call("DELETE", bank)
        self.call("PATCH", f"{bank}/config", {"updates": config})

    def contents(self, bank: str) -> list[Any]:
        """Return a bank's documents and memories, as far as a retain makes them."""
        documents = [self.call("GET", f"{bank}/documents/{each['id']}") for each in self._items(f"{bank}/documents")]
        memories = [
            {name: each[name] for name in KEPT} | {"chunk_id": each["chunk_id"].removeprefix(bank)}
            for state in ("valid", "invalidated")
            for each in self._items(f"{bank}/memories/list?state={state}")
        ]
        shown = [{name: each[name] for name in ("id", "content_hash", "document_metadata")} for each in documents]
        return [*sorted(shown, key=str), *sorted(memories, key=str)]

    def _items(self, path: str) -> list[Any]:
        return list(self.call("GET", path)["items"])

    def saved(self, bank: str) -> list[SavedDocument]:
        """Return a bank's documents, unfiled."""
        with open_snapshot(self.path) as snapshot:
            return list(snapshot.documents(bank))

    def refile(self, bank: str, documents: Sequence[SavedDocument]) -> None:
        """Retain unfiled documents."""
        for document in documents:
            items = [
                {
                    "content": item.content,
                    "document_id": document.document_id,
                    "timestamp": item.timestamp or "unset",
                    "context": item.context,
                    "tags": item.tags,
                    "metadata": item.metadata,
                    "entities": item.entities,
                }
                for item in document.items
            ]
            self.call("POST", f"{bank}/memories", {"items": items})


@pytest.fixture(scope="module")
def banks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Banks]:
    """Give an embedded bank."""
    banks = Banks(tmp_path_factory.mktemp("unfiling") / "bank.sqlite3")
    yield banks
    banks.server.close()


def words_by_labels(contents: list[Any]) -> dict[str, str]:
    """Return for each set of labels the letters of all memories that bear it."""
    words: dict[str, str] = {}
    for each in contents:
        if "text" in each:
            labels = repr([each[name] for name in ("context", "mentioned_at", "tags")])
            words[labels] = words.get(labels, "") + "".join(filter(str.isalnum, each["text"]))
    return {labels: "".join(sorted(letters)) for labels, letters in words.items()}


ITEM = st.fixed_dictionaries(
    {
        "content": st.text("abé \n\r.,", min_size=1, max_size=60).filter(str.strip),
        "timestamp": st.sampled_from(["2024-01-02T03:04:05+00:00", "2024-05-06T07:08:09+00:00", "unset"]),
        "context": st.sampled_from(["", "planning"]),
        "tags": st.sampled_from([[], ["x"], ["y", "z"]]),
    }
)


@given(st.lists(ITEM, min_size=1, max_size=5), st.sampled_from([8, 20, 3000]))
@settings(max_examples=200)
def test_every_word_keeps_its_text_and_labels(banks: Banks, items: list[dict[str, Any]], size: int) -> None:
    """Whatever the items of a document were and however they were cut, it is the same text, each word under its labels.

    A memory that took the tags of its neighbour would be found by another project.
    """
    for bank in ("old", "new"):
        banks.begin(bank, retain_chunk_size=size)
    banks.call("POST", "old/memories", {"items": [{**item, "document_id": "d"} for item in items]})
    banks.refile("new", banks.saved("old"))
    old, new = banks.contents("old"), banks.contents("new")
    assert [each for each in new if "text" not in each] == [each for each in old if "text" not in each]
    assert words_by_labels(new) == words_by_labels(old)


@pytest.mark.parametrize(
    "contents",
    [
        ["one", "two"],
        ["one", "two\nlines", "three"],
        ["one", "...", "three"],
        ["...", "two"],
        ["one", "..."],
        ["first line of it\n\nsecond line of it", "two"],
        ["first line of it\nsecond line of it", "two"],
        ["one", "first line of it, and no other one", "three"],
        ["漢字", "e\u0301t\u00e9 \u2028 line"],
        ['{"a": 1}\n{"b": 2}', "two"],
    ],
)
@pytest.mark.parametrize("labels", [["x", "y", "z"], ["x", "x", "x"]], ids=["each its own", "all alike"])
def test_several_items_make_the_same_memories_again(banks: Banks, contents: list[str], labels: list[str]) -> None:
    """Each item that was retained is one again, so that memories and chunks are the same."""
    for bank in ("old", "new"):
        banks.begin(bank, retain_chunk_size=20)
    items = [
        {"content": content, "tags": [tag], "document_id": "d", "timestamp": "unset"}
        for content, tag in zip(contents, labels, strict=False)
    ]
    banks.call("POST", "old/memories", {"items": items})
    banks.refile("new", banks.saved("old"))
    assert banks.contents("new") == banks.contents("old")


def test_one_item_stays_one_even_when_it_was_cut(banks: Banks) -> None:
    """A long text whose chunks all say the same is retained in one piece again."""
    banks.begin("old", retain_chunk_size=20)
    text = "one line\nanother line\n\na third line of text, which is longer"
    banks.call("POST", "old/memories", {"items": [{"content": text, "document_id": "d", "tags": ["t"]}]})
    (document,) = banks.saved("old")
    assert [item.content for item in document.items] == [text]
    assert document.items[0].tags == ("t",)


def test_a_changed_chunk_size_does_no_harm(banks: Banks) -> None:
    """Chunks that were cut under another configuration still show where items began."""
    banks.begin("old", retain_chunk_size=10)
    items = [{"content": "aaaa bbbb cccc dddd", "tags": ["x"]}, {"content": "eeee", "tags": ["y"]}]
    banks.call("POST", "old/memories", {"items": [{**item, "document_id": "d"} for item in items]})
    banks.call("PATCH", "old/config", {"updates": {"retain_chunk_size": 3000}})
    (document,) = banks.saved("old")
    assert [(item.content, item.tags) for item in document.items] == [
        ("aaaa bbbb cccc dddd", ("x",)),
        ("eeee", ("y",)),
    ]


def test_what_an_item_said_of_a_memory_is_told_from_what_was_edited(banks: Banks) -> None:
    """An edited memory keeps its item's words as they were retained, with the edit beside them."""
    banks.begin("old")
    item = {"content": "The port is 4000.", "context": "planning", "timestamp": "2024-01-02", "document_id": "d"}
    banks.call("POST", "old/memories", {"items": [item | {"entities": [{"text": "Port", "type": "THING"}]}]})
    (memory,) = banks.call("GET", "old/memories/list")["items"]
    edit = {"text": "The port is 4711.", "context": "", "mentioned_at": "", "fact_type": "experience", "entities": []}
    banks.call("PATCH", f"old/memories/{memory['id']}", edit)
    (document,) = banks.saved("old")
    (saved,) = document.items
    assert (saved.content, saved.context, saved.timestamp) == (
        "The port is 4000.",
        "planning",
        "2024-01-02T00:00:00+00:00",
    )
    assert list(saved.entities) == [{"text": "Port", "type": "THING"}]
    (change,) = document.curated
    assert (change.index, change.chunk, dict(change.edits)) == (0, "The port is 4000.", edit)


def test_an_invalidated_memory_is_named_by_its_chunk(banks: Banks) -> None:
    """What was forgotten comes with its reason, and the item that it came from is whole."""
    banks.begin("old", retain_chunk_size=20)
    banks.call("POST", "old/memories", {"items": [{"content": "first line of it\n\nsecond line of it"}]})
    memory = next(each for each in banks.call("GET", "old/memories/list")["items"] if "second" in each["text"])
    banks.call("PATCH", f"old/memories/{memory['id']}", {"state": "invalidated", "reason": "no"})
    (document,) = banks.saved("old")
    assert [item.content for item in document.items] == ["first line of it\n\nsecond line of it"]
    assert [(each.index, each.chunk, each.is_invalidated, each.reason) for each in document.curated] == [
        (1, "second line of it", True, "no")
    ]


def test_memories_that_were_cleared_are_known_to_be_gone(banks: Banks) -> None:
    """A document whose memories were deleted says so: made again, they would come back."""
    banks.begin("old")
    banks.call("POST", "old/memories", {"items": [{"content": "a fact", "document_id": "d", "context": "planning"}]})
    banks.call("DELETE", "old/memories?type=world")
    (document,) = banks.saved("old")
    assert [(each.chunk, each.is_invalidated, each.reason) for each in document.curated] == [
        ("a fact", True, "deleted before the export")
    ]
    assert [(item.content, item.context) for item in document.items] == [("a fact", "planning")]


def test_a_bank_that_keeps_no_texts_gives_its_chunks(banks: Banks) -> None:
    """Without the document's text its chunks are its items."""
    banks.begin("old", store_document_text=False, retain_chunk_size=20)
    banks.call("POST", "old/memories", {"items": [{"content": "first line of it\n\nsecond line of it"}]})
    (document,) = banks.saved("old")
    assert [item.content for item in document.items] == ["first line of it", "second line of it"]


def stored(text: str | None, *memories: StoredMemory) -> StoredDocument:
    """Return a document with these memories."""
    return StoredDocument("d", text, ("all",), {}, {}, None, "2024-01-01T00:00:00+00:00", memories)


def memory(index: int, chunk: str, tags: tuple[str, ...] = ("own",)) -> StoredMemory:
    """Return a memory of one chunk."""
    return StoredMemory(index, chunk, chunk, "", "world", None, None, None, False, False, None, tags, {}, (), None)  # noqa: FBT003 - as the fields stand


def test_chunks_that_are_not_in_the_text_leave_it_in_one_piece() -> None:
    """Where it does not work out, nothing of the text is lost, and the document's own labels hold."""
    document = unfiled(stored("one two", memory(0, "one"), memory(1, "three", ("other",))), lambda text: [text])
    assert [(item.content, item.tags) for item in document.items] == [("one two", ("all",))]


def test_a_document_of_which_nothing_is_left_has_no_items() -> None:
    """Neither text nor memory: there is nothing to retain."""
    assert unfiled(stored(None), lambda text: [text]).items == ()
