"""Checks on retain: what becomes of items, documents and their memories, and what is refused."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

from bankclient.testing.conformance.probe import faults

if TYPE_CHECKING:
    from bankclient.testing.conformance.probe import Probe

_NO_USAGE = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, "cached_tokens": 0, "thoughts_tokens": 0}
_PARAGRAPH = "A long paragraph about the harbour, its cranes and its tides. " * 20


def _long(*numbers: int) -> str:
    """Return a text whose paragraphs take more than half a chunk each, so that each becomes one."""
    return "\n\n".join(f"Paragraph {number}. {_PARAGRAPH * 2}".strip() for number in numbers)


def check_a_synchronous_retain_answers_with_usage(probe: Probe) -> None:
    """The answer counts the items and has neither operation nor memory ids."""
    assert probe.retain("One.", "Two.") == {
        "success": True,
        "bank_id": probe.bank,
        "items_count": 2,
        "async": False,
        "operation_id": None,
        "operation_ids": None,
        "usage": _NO_USAGE,
    }


def check_an_asynchronous_retain_answers_with_its_operation(probe: Probe) -> None:
    """The answer names the operation, and when that is completed the memory is recalled."""
    operation_id = str(uuid.uuid4())
    answer = probe.retain("The ferry leaves at seven.", **{"async": True, "operation_id": operation_id})
    assert answer == {
        "success": True,
        "bank_id": probe.bank,
        "items_count": 1,
        "async": True,
        "operation_id": operation_id,
        "operation_ids": None,
        "usage": None,
    }
    probe.finished(operation_id)
    assert probe.texts("ferry") == ["The ferry leaves at seven."]


def check_a_memory_carries_what_its_item_said(probe: Probe) -> None:
    """Context, tags, metadata, entities and time of the item are the memory's."""
    probe.retain(
        {
            "content": "Alice likes tea in Berlin",
            "document_id": "d_1",
            "context": "a talk",
            "tags": ["b", "a", "a"],
            "metadata": {"source": "slack"},
            "timestamp": "2024-01-02T03:04:05+02:00",
            "entities": [{"text": "Alice", "type": "PERSON"}],
        }
    )
    memory = probe.memory("Alice likes tea in Berlin")
    assert sorted(memory["tags"]) == ["a", "b"]
    assert memory["metadata"] == {"source": "slack"}
    assert (memory["context"], memory["entities"], memory["document_id"]) == ("a talk", "Alice", "d_1")
    assert memory["mentioned_at"] == memory["date"] == "2024-01-02T01:04:05+00:00"
    assert (memory["fact_type"], memory["state"], memory["proof_count"]) == ("world", "valid", 1)
    assert memory["chunk_id"] == f"{probe.bank}_d~5F1_0"
    document = probe.get("/documents/d_1")
    assert document["document_metadata"] == {"source": "slack"}
    assert document["retain_params"] == {
        "context": "a talk",
        "metadata": {"source": "slack"},
        "entities": [{"text": "Alice", "type": "PERSON"}],
        "resolve_entities": True,
        "event_date": "2024-01-02T03:04:05+02:00",
    }


def check_items_without_a_document_id_share_one_document(probe: Probe) -> None:
    """A request without any id makes one document, its texts on lines of their own."""
    probe.retain("one", "two")
    (document,) = probe.get("/documents")["items"]
    assert probe.get(f"/documents/{document['id']}")["original_text"] == "one\ntwo"
    assert {memory["text"] for memory in probe.memories()} == {"one", "two"}
    assert str(uuid.UUID(document["id"])) == document["id"]


def check_items_beside_one_with_an_id_have_documents_of_their_own(probe: Probe) -> None:
    """As soon as one item has an id, the others do not share."""
    probe.retain("one", "two", {"content": "three", "document_id": "k"})
    assert len({memory["document_id"] for memory in probe.memories()}) == 3


def check_the_same_text_without_an_id_is_stored_twice(probe: Probe) -> None:
    """Nothing is taken for a repeat unless its id says so; a synchronous retain ignores an operation id."""
    operation_id = str(uuid.uuid4())
    for _ in range(2):
        probe.retain("Twice.", operation_id=operation_id)
    twice = probe.memories()
    assert [memory["text"] for memory in twice] == ["Twice.", "Twice."]
    expected = probe.expected("proof_count after the same text was retained twice")
    assert {memory["proof_count"] for memory in twice} == {expected}
    assert probe.get("/operations", type="batch_retain")["total"] == 0


def check_identical_text_keeps_the_memory_and_replaces_tags_and_metadata(probe: Probe) -> None:
    """The id, context and time stay; what this call does not send is cleared."""
    first = {"content": "alpha", "document_id": "d", "context": "c1", "timestamp": "2024-01-01T00:00:00Z"}
    probe.retain({**first, "tags": ["a"], "metadata": {"x": "1"}})
    before = probe.memory("alpha")
    probe.retain({"content": "alpha", "document_id": "d", "tags": ["q"], "context": "new", "timestamp": "2025-01-01"})
    after = probe.memory("alpha")
    assert after["id"] == before["id"]
    assert (after["tags"], after["metadata"]) == (["q"], {})
    assert (after["context"], after["mentioned_at"]) == ("c1", "2024-01-01T00:00:00+00:00")
    assert probe.texts("alpha", tags=["a"], tags_match="any_strict") == []
    probe.retain({"content": "alpha", "document_id": "d"})
    assert probe.memory("alpha")["tags"] == []


def check_another_text_replaces_the_document(probe: Probe) -> None:
    """The old memory goes, the new one is found."""
    probe.retain({"content": "The port is 4711", "document_id": "d"})
    probe.retain({"content": "The gate is 8080", "document_id": "d"})
    assert [memory["text"] for memory in probe.memories()] == ["The gate is 8080"]
    assert probe.texts("port 4711 gate") == ["The gate is 8080"]
    assert probe.get("/documents/d")["original_text"] == "The gate is 8080"


def check_a_longer_text_keeps_the_memories_of_unchanged_chunks(probe: Probe) -> None:
    """What stands unchanged at the beginning of a document is not stored anew."""
    probe.retain({"content": _long(1, 2), "document_id": "d"})
    before = {memory["chunk_id"]: memory["id"] for memory in probe.memories()}
    probe.retain({"content": _long(1, 2, 3), "document_id": "d"})
    after = {memory["chunk_id"]: memory["id"] for memory in probe.memories()}
    assert len(before) == 2
    assert len(after) == 3
    assert all(after[chunk] == memory for chunk, memory in before.items())


def check_append_adds_to_the_text_and_relabels_the_whole_document(probe: Probe) -> None:
    """The old text comes first; tags and metadata of earlier memories become this call's; twice is twice."""
    probe.retain({"content": "alpha", "document_id": "d", "tags": ["a"], "metadata": {"x": "1"}})
    appended = {"content": "gamma", "document_id": "d", "update_mode": "append"}
    probe.retain({**appended, "tags": ["t"]})
    assert probe.get("/documents/d")["original_text"] == "alpha\ngamma"
    assert {memory["text"]: (memory["tags"], memory["metadata"]) for memory in probe.memories()} == {
        "alpha": (["t"], {}),
        "gamma": (["t"], {}),
    }
    probe.retain(appended)
    assert probe.get("/documents/d")["original_text"] == "alpha\ngamma\ngamma"
    assert {tuple(memory["tags"]) for memory in probe.memories()} == {()}


def check_append_creates_a_missing_document_and_needs_an_id(probe: Probe) -> None:
    """Appending to nothing is creating; appending to nobody is refused."""
    probe.retain({"content": "zeta", "document_id": "n", "update_mode": "append"})
    assert probe.get("/documents/n")["original_text"] == "zeta"
    answer = probe.ask("POST", "/memories", {"items": [{"content": "x", "update_mode": "append"}]})
    assert (answer.status, answer.detail) == (400, "update_mode='append' requires a document_id")


def check_append_needs_the_stored_text(probe: Probe) -> None:
    """A bank that keeps no texts has nothing to append to, and does not show any."""
    probe.ask("PUT", "", {})
    probe.ask("PATCH", "/config", {"updates": {"store_document_text": False}})
    probe.retain({"content": "alpha", "document_id": "d"})
    assert not probe.get("/documents/d")["original_text"]
    item = {"content": "x", "document_id": "d", "update_mode": "append"}
    answer = probe.ask("POST", "/memories", {"items": [item]})
    assert answer.status == 400
    assert "update_mode='append' is not supported" in answer.detail


def check_one_document_twice_is_merged_at_once_and_refused_later(probe: Probe) -> None:
    """A synchronous retain takes both items, each with its own labels; an asynchronous one takes none."""
    items = [{"content": text, "document_id": "d", "tags": [text]} for text in ("alpha", "beta")]
    answer = probe.ask("POST", "/memories", {"items": items, "async": True})
    assert answer.status == 400
    assert "Batch contains duplicate document_ids: ['d']" in answer.detail
    assert probe.ask("GET", "/stats").status == 404
    probe.retain(*items)
    assert {memory["text"]: memory["tags"] for memory in probe.memories()} == {"alpha": ["alpha"], "beta": ["beta"]}
    assert sorted(probe.get("/documents/d")["tags"]) == ["alpha", "beta"]


def check_an_invalidated_memory_stays_so_when_its_text_comes_again(probe: Probe) -> None:
    """What was forgotten is not remembered by a repeat; only a person brings it back."""
    probe.retain({"content": "The port is 4711", "document_id": "d"})
    memory_id = probe.memory("The port is 4711")["id"]
    probe.ask("PATCH", f"/memories/{memory_id}", {"state": "invalidated"})
    probe.retain_later({"content": "The port is 4711", "document_id": "d"})
    assert probe.texts("port") == []
    assert probe.memories() == []
    probe.ask("PATCH", f"/memories/{memory_id}", {"state": "valid"})
    assert [(m["id"], m["text"]) for m in probe.memories()] == [(memory_id, "The port is 4711")]


def check_an_edited_memory_stays_so_when_its_text_comes_again(probe: Probe) -> None:
    """The correction outlives a repeat of what was corrected."""
    probe.retain({"content": "The port is 4711", "document_id": "d"})
    probe.ask("PATCH", f"/memories/{probe.memory('The port is 4711')['id']}", {"text": "The port is 8080"})
    probe.retain({"content": "The port is 4711", "document_id": "d"})
    assert [memory["text"] for memory in probe.memories()] == ["The port is 8080"]


def check_a_long_text_is_cut_where_the_server_cuts(probe: Probe) -> None:
    """Chunks are cut at paragraphs, at most 3000 letters, and come back in their order."""
    probe.retain({"content": _long(1, 2, 3), "document_id": "d"})
    chunks = probe.get("/documents/d/chunks")
    assert chunks["total"] == 3
    assert [chunk["chunk_text"] for chunk in chunks["items"]] == _long(1, 2, 3).split("\n\n")
    assert [chunk["chunk_index"] for chunk in chunks["items"]] == [0, 1, 2]


def check_a_conversation_is_cut_between_turns(probe: Probe) -> None:
    """A JSON array of turns stays whole turns, and so do JSON lines."""
    turns = [{"role": "user", "content": f"{number} " + "word " * 400} for number in range(3)]
    probe.retain({"content": json.dumps(turns), "document_id": "array"})
    probe.retain({"content": "\n".join(map(json.dumps, turns)), "document_id": "lines"})
    for document in ("array", "lines"):
        texts = [chunk["chunk_text"] for chunk in probe.get(f"/documents/{document}/chunks")["items"]]
        whole = texts if document == "array" else [f"[{text}]" for text in texts]
        assert [json.loads(text) for text in whole] == [[turn] for turn in turns]


def check_the_chunk_size_is_the_banks(probe: Probe) -> None:
    """`retain_chunk_size` of the configuration decides."""
    probe.ask("PUT", "", {"retain_chunk_size": 40})
    probe.retain({"content": "One sentence is here. Another sentence is there. A third.", "document_id": "d"})
    assert [chunk["chunk_text"] for chunk in probe.get("/documents/d/chunks")["items"]] == [
        "One sentence is here",
        ". Another sentence is there. A third.",
    ]


def check_timestamps_are_iso_8601_in_its_usual_forms(probe: Probe) -> None:
    """A date, the basic form, Z, an offset, a blank; without offset it is UTC; unset and null are their own."""
    forms = {
        "2024-01-05": "2024-01-05T00:00:00+00:00",
        "20240105T101112Z": "2024-01-05T10:11:12+00:00",
        "2024-01-05 10:11:12+05:30": "2024-01-05T04:41:12+00:00",
        "2024-W01-3": "2024-01-03T00:00:00+00:00",
        "2024-01-05T10:11:12.123456789Z": "2024-01-05T10:11:12.123456+00:00",
        "unset": None,
        "UNSET": None,
    }
    probe.retain(*({"content": form, "document_id": form, "timestamp": form} for form in forms))
    assert {memory["text"]: memory["mentioned_at"] for memory in probe.memories()} == forms
    assert probe.memory("unset")["date"] == ""
    probe.retain({"content": "now", "document_id": "now", "timestamp": None}, {"content": "also", "timestamp": ""})
    assert probe.memory("now")["mentioned_at"] is not None
    assert probe.memory("also")["mentioned_at"] is not None


def check_other_timestamps_are_refused(probe: Probe) -> None:
    """Numbers, free text, small letters, and the years that mean for ever are 422 at their place."""
    stamps: tuple[object, ...] = (
        "tomorrow",
        123,
        "1700000000",
        "2024-01-05t10:11:12z",
        "0001-01-01",
        "9999-12-31",
        True,
    )
    for stamp in stamps:
        answer = probe.ask("POST", "/memories", {"items": [{"content": "x", "timestamp": stamp}]})
        assert faults(answer) == [("value_error", ["body", "items", 0, "timestamp"])], stamp
    assert probe.ask("GET", "/stats").status == 404


def check_content_must_hold_something(probe: Probe) -> None:
    """Blank content and no blocks are refused; punctuation makes no memory; blocks of text become one text."""
    for content in ("", "  ", "\n", [], [{"type": "text", "text": " "}]):
        answer = probe.ask("POST", "/memories", {"items": [{"content": content}]})
        assert faults(answer) == [("value_error", ["body", "items", 0, "content"])]
    probe.retain({"content": "!!!", "document_id": "d"}, "...", "-")
    assert probe.memories() == []
    document = probe.get("/documents/d")
    assert (document["original_text"], document["memory_unit_count"]) == ("!!!", 0)
    probe.retain({"content": [{"type": "text", "text": "aa"}, {"type": "text", "text": "bb"}]})
    assert [memory["text"] for memory in probe.memories()] == ["aabb"]


def check_one_bad_item_refuses_the_request(probe: Probe) -> None:
    """Nothing of a request is stored if part of it is refused, and the place of the fault is told."""
    for item, kind, place in (
        ({}, "missing", ["content"]),
        ({"content": "x", "metadata": {"a": 1}}, "string_type", ["metadata", "a"]),
        ({"content": "x", "metadata": {"a": None}}, "string_type", ["metadata", "a"]),
        ({"content": "x", "tags": 5}, "list_type", ["tags"]),
        ({"content": "x", "update_mode": "zz"}, "literal_error", ["update_mode"]),
        ({"content": "x", "entities": ["q"]}, "model_attributes_type", ["entities", 0]),
        ({"content": "x", "document_id": 5}, "string_type", ["document_id"]),
    ):
        answer = probe.ask("POST", "/memories", {"items": [{"content": "good"}, item]})
        assert faults(answer) == [(kind, ["body", "items", 1, *place])]
    assert probe.ask("GET", "/stats").status == 404


def check_tags_are_a_set_of_any_texts(probe: Probe) -> None:
    """A lone string is one tag, JSON in a string a list, doubles are one; blanks, commas and case are kept."""
    probe.retain({"content": "one", "tags": "x,y"}, {"content": "two", "tags": '["p", "q", "p"]'})
    probe.retain({"content": "three", "tags": ["", " ", "A", "a", "*", "ł"]}, document_tags=["doc"])
    assert probe.memory("one")["tags"] == ["x,y"]
    assert sorted(probe.memory("two")["tags"]) == ["p", "q"]
    assert sorted(probe.memory("three")["tags"]) == sorted(["", " ", "A", "a", "*", "ł", "doc"])


def check_nul_and_lone_surrogates_are_stripped(probe: Probe) -> None:
    """They go from text, tags, metadata and ids; an id of nothing else is replaced by a generated one."""
    body = (
        b'{"items": [{"content": "a\\u0000b \\ud83d c", "tags": ["t\\u0000"], "metadata": {"k\\u0000": "v\\u0000"},'
        b' "document_id": "\\u0000"}]}'
    )
    assert probe.request("POST", probe.path("/memories"), content=body).status == 200
    memory = probe.memory("ab  c")
    assert (memory["tags"], memory["metadata"]) == (["t"], {"k": "v"})
    assert str(uuid.UUID(memory["document_id"])) == memory["document_id"]


def check_document_ids_are_any_text(probe: Probe) -> None:
    """Slashes, blanks and 3000 letters are kept, and underscores cannot mix up chunk ids."""
    ids = ["a/b c?d", "ż#é", "x" * 3000, "a_b", "a"]
    probe.retain(*({"content": f"text {number}", "document_id": name} for number, name in enumerate(ids)))
    assert {memory["document_id"] for memory in probe.memories()} == set(ids)
    assert probe.memory("text 3")["chunk_id"] == f"{probe.bank}_a~5Fb_0"


def check_mixed_strategies_make_an_operation_each(probe: Probe) -> None:
    """An id for them all is then refused."""
    items = [{"content": "s1", "strategy": "x"}, {"content": "s2"}]
    body = {"items": items, "async": True, "operation_id": str(uuid.uuid4())}
    assert probe.ask("POST", "/memories", body).status == 400
    answer = probe.retain(*items, **{"async": True})
    assert len(answer["operation_ids"]) == 2
    assert answer["operation_id"] == answer["operation_ids"][0]
    assert answer["items_count"] == 2
    assert all(probe.finished(operation)["status"] == "completed" for operation in answer["operation_ids"])
