"""The clients on answers of every shape, mocked with respx: old servers and new ones, more fields and fewer, nulls."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import respx

from bankclient import AsyncBankClient, BankClient
from bankclient.errors import BadRequest, NotFound, ServerBusy, Unauthorized, UnexpectedReply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bankclient.api.models.recall import RecallResult

URL = "http://memory.invalid:8888"
REPLIES = Path(__file__).resolve().parents[1] / "api" / "replies"
RECALL = respx.patterns.M(method="POST", path__regex=r"^/v1/default/banks/bankclient/memories/recall$")


@pytest.fixture
def mock() -> Iterator[respx.MockRouter]:
    """Give the router that stands where the network would be."""
    with respx.mock(assert_all_called=False) as router:
        yield router


def recall_sync() -> RecallResult:
    """Ask with the sync client."""
    with BankClient(URL) as client:
        return client.recall("which port")


def recall_async() -> RecallResult:
    """Ask with the async client."""

    async def ask() -> RecallResult:
        async with AsyncBankClient(URL) as client:
            return await client.recall("which port")

    return asyncio.run(ask())


BOTH = pytest.mark.parametrize("recall", [recall_sync, recall_async])


def memory(**fields: object) -> dict[str, Any]:
    """Return a memory with the two fields that each server sends, and these."""
    return {"id": "5b1f6f2e-6f0e-4c39-8a43-0d2b5f3c9a10", "text": "The port is 4711.", **fields}


@BOTH
@pytest.mark.parametrize(
    "reply",
    [
        {"results": [memory()]},
        {"results": [memory(type="world", tags=None, metadata=None, entities=None, scores=None)], "trace": None},
        {"results": [memory(type="an unheard-of type", tags=["a"], metadata={"a": None, "b": "c"})]},
        {"results": [memory(new_field={"deep": [1]}, scores={"final": 1, "new": 2})], "new": {"x": 1}, "chunks": {}},
        {"results": [memory(mentioned_at="2026-11-30 09:46:16.9+00", occurred_start="soon")], "entities": {}},
    ],
)
def test_answers_with_more_or_less_in_them_are_read(
    mock: respx.MockRouter, recall: Callable[[], RecallResult], reply: dict[str, Any]
) -> None:
    """New fields are kept, nulls are absent, unknown words stay as they are."""
    mock.route(RECALL).respond(json=reply)
    (found,) = recall().results
    assert found.text == "The port is 4711."
    assert None not in (found.tags, found.metadata, found.entities)


@BOTH
@pytest.mark.parametrize("version", sorted(path.name for path in REPLIES.iterdir()))
def test_recorded_answers_of_each_server_are_read(
    mock: respx.MockRouter, recall: Callable[[], RecallResult], version: str
) -> None:
    """As they came over the wire."""
    recorded = sorted((REPLIES / version).glob("recall*.json"))
    assert recorded
    for path in recorded:
        mock.route(RECALL).respond(content=path.read_bytes(), headers={"content-type": "application/json"})
        assert all(found.text for found in recall().results)


@BOTH
@pytest.mark.parametrize("body", ["{}", '{"results": {}}', '{"results": [{}]}', "[1]", "null", '{"results": "x"}'])
def test_a_real_break_of_the_contract_is_one_named_error(
    mock: respx.MockRouter, recall: Callable[[], RecallResult], body: str
) -> None:
    """Not an empty memory, and not a library's exception."""
    mock.route(RECALL).respond(content=body, headers={"content-type": "application/json"})
    with pytest.raises(UnexpectedReply):
        recall()


@BOTH
def test_nulls_for_the_results_are_none_found(mock: respx.MockRouter, recall: Callable[[], RecallResult]) -> None:
    """A null is as good as an empty list."""
    mock.route(RECALL).respond(json={"results": None})
    assert recall().results == ()


@BOTH
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"detail": "Invalid query_timestamp"}, BadRequest),
        (401, {"detail": "Authentication failed: Invalid API key"}, Unauthorized),
        (404, {"detail": "Not Found"}, NotFound),
        (422, {"detail": [{"type": "missing", "loc": ["body", "query"], "msg": "Field required"}]}, BadRequest),
        (422, {"detail": {"violations": [{"rule": "pii"}]}}, BadRequest),
    ],
)
def test_refusals_of_each_shape_have_their_error(
    mock: respx.MockRouter, recall: Callable[[], RecallResult], status: int, body: dict[str, Any], kind: type[Exception]
) -> None:
    """A sentence, a list of faults, or an object."""
    mock.route(RECALL).respond(status, json=body)
    with pytest.raises(kind):
        recall()


@BOTH
def test_a_server_that_is_full_is_waited_for_and_then_answers(
    mock: respx.MockRouter, recall: Callable[[], RecallResult]
) -> None:
    """The whole way: 503 with `Retry-After`, a wait, the answer."""
    busy = httpx.Response(503, json={"detail": "busy"}, headers={"retry-after": "0"})
    route = mock.route(RECALL).mock(side_effect=[busy, httpx.Response(200, json={"results": []})])
    assert recall().results == ()
    assert route.call_count == 2


@BOTH
def test_a_server_that_stays_full_says_when_to_come_back(
    mock: respx.MockRouter, recall: Callable[[], RecallResult]
) -> None:
    """Beyond the limit nobody waits."""
    mock.route(RECALL).respond(503, json={"detail": "busy"}, headers={"retry-after": "3600"})
    with pytest.raises(ServerBusy) as caught:
        recall()
    assert caught.value.retry_after == 3600
