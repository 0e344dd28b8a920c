"""Every call on a real server: it takes what we send, ignores no part of it, and its answer is read."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import httpx
import pytest

from bankclient.api import Call, Capabilities, calls, segment
from bankclient.api.models import MemoryItem, Operation
from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.real

T = TypeVar("T")
LAMP = "Maren lit the northern lamp at dusk."


class Sender:
    """Sends calls by plain httpx."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=60.0, trust_env=False)

    def answer(self, call: Call[Any]) -> httpx.Response:
        """Return the answer to a call, whatever it is."""
        url = httpx.URL(call.path, params=list(call.query)) if call.query else httpx.URL(call.path)
        headers = {} if call.body is None else {"content-type": call.content_type}
        return self._http.request(call.method, url, content=call.body, headers=headers)

    def __call__(self, call: Call[T]) -> T:
        """Return the model of the answer to a call, which must be a success that ignored nothing."""
        answer = self.answer(call)
        assert answer.is_success or answer.status_code in call.accept, f"{call}: {answer.status_code} {answer.text}"
        assert "x-ignored-params" not in answer.headers, f"{call}: ignored {answer.headers['x-ignored-params']}"
        return call.parse(answer.content)

    def ended(self, bank: str, operation_id: str) -> Operation:
        """Return an operation once it has ended; each look is a round trip, so that nothing needs to sleep."""
        before = datetime.now(UTC) + timedelta(seconds=60)
        while datetime.now(UTC) < before:
            operation = self(calls.get_operation(bank, operation_id))
            if operation.is_terminal:
                return operation
        raise AssertionError(f"operation {operation_id} did not end")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


@pytest.fixture
def send(real_url: str) -> Iterator[Sender]:
    """Give the sender of calls."""
    sender = Sender(real_url)
    yield sender
    sender.close()


def test_the_server_says_what_it_is(send: Sender) -> None:
    """Health, liveness and version are read, and the version is one that we know what to make of."""
    assert send(calls.health()).healthy
    alive = send(calls.live())
    version = send(calls.version())
    assert alive.status == "alive"
    assert alive.version == version.api_version
    assert version.features.worker
    assert send(calls.version(path="/version")) == version
    assert Capabilities.of(version.api_version).operation_ids


def test_a_bank_from_its_making_to_its_end(send: Sender, bank: str) -> None:
    """A bank is made, changed, set, measured, listed and deleted."""
    made = send(
        calls.put_bank(
            bank,
            name="Lighthouse",
            reflect_mission="Keep the log.",
            retain_mission="Lamps only.",
            observations_mission="Ships.",
            disposition_skepticism=1,
            disposition_literalism=2,
            disposition_empathy=5,
            retain_extraction_mode="chunks",
            retain_custom_instructions="Short.",
            retain_chunk_size=2000,
            retain_structured_chunk_size=3000,
            retain_max_attachments_per_chunk=2,
            enable_observations=False,
            enable_text_search=True,
            enable_temporal_retrieval=True,
            enable_graph_retrieval=True,
            enable_reranking=True,
        )
    )
    assert (made.bank_id, made.mission) == (bank, "Keep the log.")
    assert made.disposition is not None
    assert made.disposition.empathy == 5
    assert send(calls.put_bank(bank)).mission == "Keep the log."
    assert send(calls.patch_bank(bank, reflect_mission="Keep the lamp.")).mission == "Keep the lamp."

    config = send(calls.get_bank_config(bank))
    assert config.overrides["retain_mission"] == "Lamps only."
    assert send(calls.patch_bank_config(bank, {"retain_mission": None})).overrides.get("retain_mission") is None
    assert send(calls.reset_bank_config(bank)).overrides == {}

    send(calls.retain(bank, LAMP))
    stats = send(calls.get_bank_stats(bank, refresh=True))
    assert (stats.bank_id, stats.total_documents, stats.nodes_by_fact_type) == (bank, 1, {"world": 1})
    page = send(calls.list_banks(q=bank, limit=1, offset=0))
    assert [found.bank_id for found in page.items] == [bank]
    assert (page.total, page.limit, page.next_offset) == (1, 1, None)
    assert page.items[0].fact_count == 1

    assert send(calls.delete_bank(bank)).success
    assert send(calls.delete_bank(bank)).success
    assert send.answer(calls.patch_bank(bank, name="x")).status_code == 404
    assert send.answer(calls.recall(bank, "lamp")).status_code == 404


@pytest.mark.parametrize("odd", ["..", ".", "a?b#c", "a::b", "ż é", "a%2Fb", "100% & more=less", "\u200b", "' \" \\"])
def test_a_bank_of_any_name_is_one_bank(send: Sender, bank: str, odd: str) -> None:
    """A name that a URL would take for something else reaches exactly its bank, also where it is nothing but dots."""
    name = odd if odd in {"..", "."} else f"{bank}{odd}"
    try:
        assert send(calls.put_bank(name)).bank_id == name
        assert send(calls.get_bank_config(name)).bank_id == name
    finally:
        assert send(calls.delete_bank(name)).success


def test_every_field_of_an_item_arrives(send: Sender, bank: str) -> None:
    """What an item holds is what the document and its memory hold."""
    item = MemoryItem(
        LAMP,
        document_id="log/1",
        tags={"harbour", "north"},
        timestamp="2031-05-06t07:08:09z",
        context="log book",
        metadata={"page": "12"},
        entities=["Maren", {"text": "northern lamp", "type": "OBJECT"}],
        resolve_entities=False,
        observation_scopes=[["harbour"]],
        strategy="brief",
        update_mode="replace",
    )
    retained = send(calls.retain_many(bank, [item, {"content": "The horn is silent.", "timestamp": "unset"}]))
    assert (retained.success, retained.items_count, retained.is_async) == (True, 2, False)
    assert retained.usage is not None
    assert retained.operation_ids == ()

    document = send(calls.get_document(bank, "log/1"))
    assert document.original_text == LAMP
    assert sorted(document.tags) == ["harbour", "north"]
    assert document.document_metadata == {"page": "12"}
    assert document.observation_scopes == (("harbour",),)
    (memory,) = send(calls.list_memories(bank, document_id="log/1")).items
    assert (memory.text, memory.type, memory.context) == (LAMP, "world", "log book")
    assert memory.metadata == {"page": "12"}
    assert sorted(memory.entities) == ["Maren", "northern lamp"]
    assert memory.mentioned_at is not None
    assert abs(memory.mentioned_at - datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)) < timedelta(seconds=1)
    (timeless,) = send(calls.list_memories(bank, q="horn")).items
    assert (timeless.date, timeless.mentioned_at) == (None, None)


def test_content_blocks_are_taken(send: Sender, bank: str) -> None:
    """A text block is retained like a text."""
    send(calls.retain(bank, [{"type": "text", "text": LAMP}], document_id="blocks"))
    assert send(calls.get_document(bank, "blocks")).original_text == LAMP


def test_text_of_any_letters_is_stored(send: Sender, bank: str) -> None:
    """What we mend before sending is what the server stores."""
    send(calls.retain(bank, "half \ud83d, nothing \x00, 👩‍👩‍👧", document_id="d", tags="\udc8f"))
    document = send(calls.get_document(bank, "d"))
    assert document.original_text == "half \ufffd, nothing , 👩‍👩‍👧"
    assert document.tags == ("\ufffd",)


def test_what_may_be_sent_twice_is_stored_once(send: Sender, bank: str) -> None:
    """A document of its own and an operation id each make a second send harmless, as the calls say of themselves."""
    by_document = calls.retain(bank, LAMP, document_id="log/1")
    by_operation = calls.retain(bank, "The horn is silent.", background=True, operation_id=uuid4())
    for call in (by_document, by_document, by_operation):
        send(call)
    again = send(by_operation)
    assert again.operation_id is not None
    assert send.ended(bank, again.operation_id).status == "completed"
    (memory,) = send(calls.list_memories(bank, q="lamp")).items
    send(by_document)
    assert [item.id for item in send(calls.list_memories(bank, q="lamp")).items] == [memory.id]
    assert send(calls.list_memories(bank)).total == 2


def test_append_adds_to_a_document(send: Sender, bank: str) -> None:
    """`append` keeps the old text; done twice it adds twice, which is why it is never repeated by itself."""
    append = calls.retain(bank, "It rained.", document_id="log/1", update_mode="append")
    send(calls.retain(bank, LAMP, document_id="log/1"))
    send(append)
    send(append)
    assert send(calls.get_document(bank, "log/1")).original_text == f"{LAMP}\nIt rained.\nIt rained."


def test_recall_takes_every_option(send: Sender, bank: str) -> None:
    """Every option is known to the server, and the answer brings what was asked for."""
    send(calls.retain(bank, LAMP, document_id="log/1", tags="harbour", entities=["Maren"], metadata={"page": "12"}))
    result = send(
        calls.recall(
            bank,
            "who lit the northern lamp?",
            tags="harbour",
            tags_match="exact",
            types=["world", "experience", "observation"],
            budget="low",
            max_tokens=100,
            min_scores={"semantic": 0.0, "keyword": 0.0, "reranker": 0.0, "final": 0.0},
            prefer_observations=True,
            include_entities=True,
            include_chunks=500,
            include_source_facts={"max_tokens": 100, "max_tokens_per_observation": -1},
            query_timestamp="2031-05-06",
            temporal_window=("2031-05-01", "2031-05-07"),
            trace=True,
        )
    )
    (memory,) = result.results
    assert (memory.text, memory.type, memory.tags) == (LAMP, "world", ("harbour",))
    assert memory.metadata == {"page": "12"}
    assert memory.scores is not None
    assert memory.scores.final is not None
    assert memory.chunk_id is not None
    assert result.chunks[memory.chunk_id].text == LAMP
    assert result.entities["Maren"].entity_id
    assert result.trace is not None


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, {"none", "a", "b", "ab"}),
        ({"tags": "a"}, {"none", "a", "ab"}),
        ({"tags": ["a", "b"], "tags_match": "all"}, {"none", "ab"}),
        ({"tags": "a", "tags_match": "any_strict"}, {"a", "ab"}),
        ({"tags": ["a", "b"], "tags_match": "all_strict"}, {"ab"}),
        ({"tags": "a", "tags_match": "exact"}, {"a"}),
        ({"tags_match": "exact"}, {"none"}),
        ({"tag_groups": [{"tags": "a"}]}, {"a", "ab"}),
        ({"tag_groups": [{"not": {"tags": ["a"]}}]}, {"none", "b"}),
        ({"tag_groups": [{"or": [{"tags": "a", "match": "exact"}, {"tags": "b", "match": "exact"}]}]}, {"a", "b"}),
        ({"tag_groups": [{"and": [{"tags": "a"}, {"tags": "b"}]}]}, {"ab"}),
        ({"tag_groups": [{"tags": ["aa"], "resolve": "fuzzy"}]}, set()),
        ({"tag_groups": [{"tags": []}]}, set()),
    ],
)
def test_filters_find_what_they_say(send: Sender, bank: str, filters: dict[str, Any], found: set[str]) -> None:
    """Each mode and each kind of group lets through the memories it is documented to."""
    tagged = {"none": "", "a": "a", "b": "b", "ab": "ab"}
    send(calls.retain_many(bank, [MemoryItem(f"lamp {name}", tags=list(tags)) for name, tags in tagged.items()]))
    results = send(calls.recall(bank, "lamp", **filters)).results
    assert {memory.text.removeprefix("lamp ") for memory in results} == found


def test_what_we_refuse_the_server_takes_for_no_filter(send: Sender, bank: str) -> None:
    """A strict mode without tags, and no groups, find everything: our guards are still needed."""
    send(calls.retain(bank, "lamp", tags="a"))
    plain = calls.recall(bank, "lamp")
    refused: list[dict[str, Any]] = [{"tags_match": "any_strict", "tags": []}, {"tag_groups": []}]
    for filters in refused:
        with pytest.raises(InvalidInput):
            calls.recall(bank, "lamp", **filters)
        body = json.dumps({"query": "lamp"} | filters).encode()
        unguarded = Call(
            operation="unguarded", method="POST", path=plain.path, parse=plain.parse, empty=plain.empty, body=body
        )
        assert [memory.text for memory in send(unguarded).results] == ["lamp"]


def test_reflect_takes_every_option(send: Sender, bank: str) -> None:
    """Every option is known to the server, and the answer brings what was asked for."""
    send(calls.retain(bank, LAMP, tags="harbour"))
    result = send(
        calls.reflect(
            bank,
            "who lit the northern lamp?",
            tags="harbour",
            tags_match="all_strict",
            fact_types=["world", "observation"],
            budget="low",
            max_tokens=200,
            response_schema={"type": "object", "properties": {"name": {"type": "string"}}},
            include_facts=True,
            include_tool_calls=True,
            apply_all_directives=True,
            exclude_mental_models=True,
            exclude_mental_model_ids=["m"],
            search_observations_max_tokens=100,
            search_observations_include_entities=False,
        )
    )
    assert result.text
    assert result.based_on is not None
    assert [fact.text for fact in result.based_on.memories] == [LAMP]
    assert result.trace is not None
    assert result.trace.tool_calls
    assert result.structured_output is not None or result.structured_output_error is not None
    inputs = send(calls.reflect(bank, "who?", tag_groups=[{"tags": "harbour"}], include_tool_calls="inputs"))
    assert inputs.trace is not None
    assert all(call.output is None for call in inputs.trace.tool_calls)


def test_memories_are_listed_read_corrected_and_taken_out(send: Sender, bank: str) -> None:
    """A memory goes out of recall and comes back, is corrected, and is cleared with its document."""
    send(calls.retain(bank, LAMP, document_id="log/1", tags="harbour", entities=["Maren"]))
    recalled = send(calls.recall(bank, "lamp"))
    page = send(
        calls.list_memories(
            bank,
            q="northern",
            fact_type="world",
            tags="harbour",
            tags_match="any_strict",
            document_id="log/1",
            entity_id=recalled.entities["Maren"].entity_id,
            state="valid",
            consolidation_state="pending",
            time_field="created_at",
            start_date=datetime(2020, 1, 1, tzinfo=UTC),
            end_date="9998-01-01",
            limit=5,
            offset=0,
        )
    )
    (memory,) = page.items
    assert (page.total, page.limit) == (1, 5)
    assert send(calls.get_memory(bank, memory.id)).text == LAMP
    assert send(calls.get_memory_history(bank, memory.id)).changes == ()

    gone = send(calls.invalidate_memory(bank, memory.id, reason="the lamp was out"))
    assert (gone.state, gone.invalidation_reason) == ("invalidated", "the lamp was out")
    assert send(calls.recall(bank, "lamp")).results == ()
    assert [item.id for item in send(calls.list_memories(bank, state="invalidated")).items] == [memory.id]
    assert send(calls.restore_memory(bank, memory.id)).state == "valid"
    assert len(send(calls.recall(bank, "lamp")).results) == 1

    edited = send(
        calls.patch_memory(
            bank,
            memory.id,
            text="Maren put the lamp out.",
            context="second log",
            occurred_start="2031-05-06",
            occurred_end=datetime(2031, 5, 7, tzinfo=UTC),
            mentioned_at="2031-05-08",
            fact_type="experience",
            entities=["Maren", "lamp"],
            resolve_entities=False,
        )
    )
    assert (edited.text, edited.type, edited.context) == ("Maren put the lamp out.", "experience", "second log")
    assert edited.occurred_start == datetime(2031, 5, 6, tzinfo=UTC)
    assert sorted(edited.entities) == ["Maren", "lamp"]
    cleared = send(calls.patch_memory(bank, memory.id, context="", occurred_end="", entities=[]))
    assert (cleared.context, cleared.occurred_end, cleared.entities) == ("", None, ())

    assert send(calls.clear_memories(bank, fact_type="world")).deleted_count == 0
    assert send(calls.clear_memories(bank)).deleted_count == 1
    assert send(calls.list_documents(bank)).items == ()


@pytest.mark.parametrize("name", ["log", "a/b", "..", "a/../b", "/a/", "a b?c#d%2F", "ż é"])
def test_a_document_of_any_name_is_reached(send: Sender, bank: str, name: str) -> None:
    """A document is read, cut into chunks, retagged, listed and deleted whatever its name is."""
    send(calls.retain(bank, LAMP, document_id=name))
    assert send(calls.get_document(bank, name)).id == name
    (chunk,) = send(calls.list_chunks(bank, name, limit=1, offset=0)).items
    assert (chunk.document_id, chunk.chunk_text) == (name, LAMP)
    assert send(calls.patch_document(bank, name, tags=["b", "a"], observation_scopes="shared")).success
    page = send(
        calls.list_documents(
            bank,
            q="northern lamp",
            tags="a",
            tags_match="all",
            time_field="updated_at",
            start_date="2020-01-01",
            end_date="9998-01-01",
            limit=1,
            offset=0,
        )
    )
    assert [(document.id, sorted(document.tags)) for document in page.items] == [(name, ["a", "b"])]
    tags = send(calls.list_tags(bank, q="a*", source="memories", limit=5, offset=0))
    assert [(tag.tag, tag.count) for tag in tags.items] == [("a", 1)]
    send(calls.patch_document(bank, name, tags=[]))
    assert send(calls.get_document(bank, name)).tags == ()
    assert send(calls.delete_document(bank, name)).deleted_count == 1
    assert send.answer(calls.delete_document(bank, name)).status_code == 404


def test_a_document_that_is_named_like_a_route_can_be_deleted(send: Sender, bank: str) -> None:
    """We refuse to read it, since the server answers with something else; all else works."""
    send(calls.retain(bank, LAMP, document_id="a/history"))
    with pytest.raises(InvalidInput, match="ends like a route"):
        calls.get_document(bank, "a/history")
    (document,) = send(calls.list_documents(bank, q="a/history")).items
    assert document.id == "a/history"
    assert send(calls.delete_document(bank, "a/history")).success


def test_operations_are_listed_looked_at_and_forgotten(send: Sender, bank: str) -> None:
    """A background retain is a parent with children, ends, and its record can be deleted, which frees its id."""
    operation_id = str(uuid4())
    submitted = send(calls.retain_many(bank, [LAMP, "It rained."], background=True, operation_id=operation_id))
    assert (submitted.is_async, submitted.operation_ids) == (True, (operation_id,))
    ended = send.ended(bank, operation_id)
    assert (ended.status, ended.operation_type, ended.extraction_errors) == ("completed", "batch_retain", 0)
    assert ended.ids_to_cancel == ()
    assert all(child.is_terminal for child in ended.children)
    child = send(calls.get_operation(bank, ended.children[0].operation_id, include_payload=True))
    assert child.operation_type == "retain"

    page = send(calls.list_operations(bank, status="completed", operation_type="batch_retain", limit=1, offset=0))
    assert [operation.operation_id for operation in page.items] == [operation_id]
    retains = send(calls.list_operations(bank, operation_type="retain", exclude_parents=True))
    assert [operation.operation_id for operation in retains.items] == [child.operation_id]
    assert send.answer(calls.cancel_operation(bank, operation_id)).status_code == 409
    assert send.answer(calls.retry_operation(bank, operation_id)).status_code == 409
    assert send(calls.delete_operation(bank, operation_id)).success
    assert send(calls.get_operation(bank, operation_id)).status == "not_found"


def test_a_parent_is_stopped_by_its_children_and_tried_again(send: Sender, bank: str) -> None:
    """Cancelling each of `ids_to_cancel` stops the work; a retry of the parent does it after all."""
    for _ in range(20):  # the worker may be done with one before it can be cancelled
        submitted = send(calls.retain(bank, "It rained.", document_id="log/1", background=True)).operation_id
        assert submitted is not None
        to_cancel = send(calls.get_operation(bank, submitted)).ids_to_cancel
        assert submitted not in to_cancel
        if to_cancel and all(send.answer(calls.cancel_operation(bank, child)).is_success for child in to_cancel):
            break
    else:
        pytest.fail("no operation could be cancelled in time")
    assert send.ended(bank, submitted).status == "cancelled"
    assert send(calls.retry_operation(bank, submitted)).success
    assert send.ended(bank, submitted).status == "completed"
    assert send(calls.list_memories(bank, q="rained")).total == 1


def test_any_other_endpoint_is_reached_by_request(send: Sender, bank: str) -> None:
    """What has no function of its own is called by its path."""
    send(calls.put_bank(bank))
    path = f"/v1/default/banks/{segment(bank, 'bank')}/directives"
    made = send(calls.request("POST", path, body={"name": "Tone", "content": "Be brief."}, bank=bank))
    assert made["name"] == "Tone"
    assert [item["id"] for item in send(calls.request("GET", path))["items"]] == [made["id"]]
    assert (
        send(calls.request("GET", path, query={"tags": ["a", "b"], "active_only": True, "limit": 1, "offset": 1}))[
            "items"
        ]
        == []
    )


SLIPS: list[tuple[Callable[[str], Call[Any]], int]] = [
    (lambda bank: calls.request("POST", f"/v1/default/banks/{bank}/memories/recall", body={"query": "!!!"}), 422),
    (lambda bank: calls.request("POST", f"/v1/default/banks/{bank}/memories", body={"items": [{"content": " "}]}), 422),
    (lambda bank: calls.request("GET", f"/v1/default/banks/{bank}/memories/list", query={"entity_id": "x"}), 400),
    (
        lambda bank: calls.request(
            "POST", f"/v1/default/banks/{bank}/memories", body={"items": [{"content": "a", "metadata": {"n": 1}}]}
        ),
        422,
    ),
]


@pytest.mark.parametrize(("make", "status"), SLIPS)
def test_what_we_refuse_the_server_refuses_too(
    send: Sender, bank: str, make: Callable[[str], Call[Any]], status: int
) -> None:
    """Our checks mirror the server's own rules."""
    send(calls.put_bank(bank))
    assert send.answer(make(bank)).status_code == status
