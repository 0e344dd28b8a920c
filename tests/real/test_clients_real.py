"""Both clients against a real Hindsight server: every method, and the main job in real git checkouts."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from bankclient import AsyncBankClient, BankClient, InvalidInput, MemoryItem, OperationFailed, Settings, calls
from bankclient.errors import BadRequest, Conflict, NotFound, TimedOut, Unauthorized
from bankclient.testing.hindsight import HindsightServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.real


class Face:
    """A client of either kind behind a sync face: coroutines are run, async iterators become lists."""

    def __init__(self, part: Any, runner: asyncio.Runner | None) -> None:  # noqa: ANN401 - a client or a part of one
        self._part = part
        self._runner = runner

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the client has
        value = getattr(self._part, name)
        if name in {"banks", "memories", "documents", "operations"}:
            return Face(value, self._runner)
        return self._wrapped(value) if callable(value) else value

    def _wrapped(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the client has it
            result = method(*args, **options)
            if inspect.isgenerator(result):
                return list(result)
            return result if self._runner is None else self._runner.run(_gathered(result))

        return called


async def _gathered(result: Any) -> Any:  # noqa: ANN401 - whatever a method returns
    return await result if inspect.isawaitable(result) else [entry async for entry in result]


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest, real_url: str, bank: str, tmp_path: Path) -> Iterator[Face]:
    """Give each client in turn, for a bank and a project of its own."""
    folder = tmp_path / "general"
    folder.mkdir()
    with asyncio.Runner() as runner:
        if request.param == "sync":
            face = Face(BankClient(real_url, bank=bank, folder=folder), None)
        else:
            face = Face(AsyncBankClient(real_url, bank=bank, folder=folder), runner)
        yield face
        face.close()


def texts(result: Any) -> list[str]:  # noqa: ANN401 - a recall's result
    """Return what was recalled."""
    return [memory.text for memory in result.results]


def test_a_fact_is_retained_recalled_and_reflected_upon(client: Face) -> None:
    """The main job."""
    kept = client.retain("The service listens on port 4711.", context="shell", metadata={"turn": "1"})
    assert (kept.success, kept.items_count, kept.is_async) == (True, 1, False)
    found = client.recall(
        "which port does the service listen on", include_chunks=True, include_entities=True, trace=True
    )
    assert texts(found) == ["The service listens on port 4711."]
    assert (found.results[0].tags, found.results[0].metadata) == (("project:general",), {"turn": "1"})
    assert found.chunks
    assert found.trace
    assert client.reflect("which port", include_facts=True, include_tool_calls=True).text


def test_a_background_retain_is_waited_for_and_known_by_its_id(client: Face, bank: str) -> None:
    """The same id again is the same operation, with one copy in the bank."""
    operation = str(uuid.uuid4())
    first = client.retain("The database is Postgres 15.", background=True, operation_id=operation)
    again = client.retain("The database is Postgres 15.", background=True, operation_id=operation)
    assert first.operation_id == again.operation_id == operation
    assert client.operations.wait(operation).status == "completed"
    assert [memory.text for memory in client.memories.iterate()] == ["The database is Postgres 15."]
    assert client.operations.get(operation, include_payload=True).operation_type == "batch_retain"
    assert operation in {each.operation_id for each in client.operations.iterate()}
    assert client.operations.list(status="completed", limit=1).items
    with pytest.raises(Conflict):
        client.operations.retry(operation)
    client.operations.delete(operation)
    assert client.operations.get(operation).status == "not_found"
    with pytest.raises(OperationFailed):
        client.operations.wait(operation, bank=bank)


def test_several_items_are_one_request(client: Face) -> None:
    """Texts, mappings and items, each with what belongs to it."""
    client.retain_many(
        [
            "The lint step runs ruff.",
            {"content": "The deploy runs on Friday.", "document_id": "deploy", "timestamp": "2026-01-02T03:04:05Z"},
            MemoryItem("The cache is Redis.", tags=["cache"], entities=["Redis"], document_id="cache"),
        ]
    )
    assert len(client.memories.list().items) == 3
    assert texts(client.recall("cache redis", tags="cache")) == ["The cache is Redis."]
    assert texts(client.recall("cache redis", tag_groups=[{"tags": ["nothing"]}])) == []


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        ("any", {"a", "b", "none"}),
        ("all", {"a", "b", "none"}),
        ("any_strict", {"a", "b"}),
        ("all_strict", {"a", "b"}),
        ("exact", {"a"}),
    ],
)
def test_every_mode_keeps_to_the_project(client: Face, mode: str, found: set[str]) -> None:
    """Another project's memory is in no answer; which of ours are depends on the mode."""
    client.retain("the port a", document_id="a")
    client.retain("the port b", document_id="b", tags=["extra"])
    client.retain("the port none", document_id="none", scope="global")
    client.call(calls.retain(client.scope.bank, "the port other", document_id="other", tags=["project:other"]))
    assert {memory.document_id for memory in client.recall("the port", tags_match=mode).results} == found


def test_the_other_options_of_a_recall_are_taken(client: Face) -> None:
    """Types, budget, tokens, floors, times: none is refused, and each that filters does."""
    client.retain("The port is 4711, decided long ago.", timestamp="2026-01-02T03:04:05Z")
    full = client.recall(
        "port",
        types=["world", "experience", "observation"],
        budget="high",
        max_tokens=500,
        min_scores={"final": 0.0},
        prefer_observations=False,
        include_source_facts=True,
        query_timestamp="2026-01-03T00:00:00Z",
        temporal_window=("2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
    )
    assert len(full.results) == 1
    assert full.results[0].scores is not None
    assert texts(client.recall("port", types="observation")) == []
    assert texts(client.recall("port", max_tokens=0)) == []
    assert texts(client.recall("port", min_scores={"final": 2.0})) == []


def test_reflect_takes_its_options(client: Face) -> None:
    """A schema gives structured output, tags narrow, facts come along."""
    client.retain("The port is 4711.")
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    answer = client.reflect(
        "which port", response_schema=schema, tags="x", budget="low", max_tokens=200, fact_types="world"
    )
    assert answer.structured_output is not None or answer.structured_output_error is not None


def test_a_memory_is_read_corrected_invalidated_and_restored(client: Face) -> None:
    """What is invalid is out of recall and lists, stays readable, and comes back."""
    client.retain("The port is 4711.")
    (memory,) = client.memories.list(q="4711").items
    assert client.memories.get(memory.id).text == "The port is 4711."
    assert client.memories.patch(memory.id, text="The port is 4712.", context="shell").text == "The port is 4712."
    assert client.memories.invalidate(memory.id, reason="wrong").state == "invalidated"
    assert texts(client.recall("port")) == []
    assert client.memories.list().items == ()
    assert [each.id for each in client.memories.iterate(state="invalidated")] == [memory.id]
    client.memories.restore(memory.id)
    assert texts(client.recall("port")) == ["The port is 4712."]
    assert client.memories.history(memory.id).changes == ()
    client.memories.clear(client.scope.bank)
    assert client.memories.list().items == ()
    with pytest.raises(NotFound):
        client.memories.get(memory.id)


def test_a_document_is_read_tagged_and_deleted(client: Face) -> None:
    """With its pieces, and the tags in use."""
    client.retain("The port is 4711.", document_id="notes/a b", tags=["net"])
    assert [each.id for each in client.documents.list(q="notes").items] == ["notes/a b"]
    assert client.documents.get("notes/a b").original_text == "The port is 4711."
    assert len(client.documents.chunks("notes/a b")) == 1
    assert {each.tag for each in client.documents.tags()} == {"project:general", "net"}
    client.documents.patch("notes/a b", tags=["other"])
    assert [each.id for each in client.documents.iterate(tags="other")] == ["notes/a b"]
    client.documents.delete("notes/a b")
    with pytest.raises(NotFound):
        client.documents.delete("notes/a b")


def test_a_bank_is_made_changed_counted_and_deleted(client: Face) -> None:
    """By its name, or as the client's own."""
    bank = client.scope.bank
    assert client.banks.put(reflect_mission="You keep notes.").bank_id == bank
    assert client.banks.patch(name="Notes").bank_id == bank
    client.retain("The port is 4711.")
    assert client.banks.stats(refresh=True).total_nodes == 1
    assert client.banks.list(q=bank).items[0].bank_id == bank
    assert bank in {each.bank_id for each in client.banks.iterate()}
    assert client.banks.config().config["reflect_mission"] == "You keep notes."
    assert client.banks.configure({"recall_max_tokens": 500}).config["recall_max_tokens"] == 500
    client.banks.reset_config()
    assert client.banks.delete(bank).success
    assert client.banks.delete(bank).success
    with pytest.raises(NotFound) as caught:
        client.banks.stats()
    assert caught.value.is_missing_bank


def test_a_bank_that_is_not_there_recalls_nothing(client: Face) -> None:
    """The first question of a newcomer is no error."""
    assert client.recall("anything").results == ()


def test_a_configured_mission_is_set_where_there_is_none(real_url: str, bank: str) -> None:
    """In front of the first reflect, and a bank's own is left alone."""
    settings = Settings(api_url=real_url, bank_id=bank, bank_mission="You keep notes.")
    with BankClient(settings=settings) as client:
        client.reflect("why")
        assert client.banks.config().config["reflect_mission"] == "You keep notes."
    with BankClient(settings=settings.model_copy(update={"bank_mission": "Another."})) as client:
        client.reflect("why")
        assert client.banks.config().config["reflect_mission"] == "You keep notes."


def test_an_operation_is_cancelled_with_its_parts(client: Face) -> None:
    """What is cancelled in time is never written."""
    accepted = client.retain_many([f"Fact {number}." + " pad" * 3000 for number in range(60)], background=True)
    cancelled = client.operations.cancel(accepted.operation_id)
    assert cancelled.status in {"cancelled", "completed", "pending"}
    with pytest.raises((OperationFailed, TimedOut)) as caught:
        client.operations.wait(accepted.operation_id, timeout=60)
    assert isinstance(caught.value, OperationFailed)
    assert caught.value.status == "cancelled"


def test_health_and_version_are_read(client: Face) -> None:
    """And what the version can do."""
    assert client.health().status == "healthy"
    assert client.version().api_version == "1.1.0"
    assert client.capabilities().operation_ids


def test_a_stream_reads_the_servers_metrics(real_url: str) -> None:
    """A large text reply, piece by piece."""
    with BankClient(real_url) as client, client.stream(calls.request("GET", "/metrics")) as answer:
        assert b"".join(answer.iter_bytes())


@pytest.mark.parametrize(
    "text", ["a\x00b port", "lone \ud83d port", "x port " + "y" * 10_000, "\u202e port \u2028 \x85"]
)
def test_odd_texts_are_mended_and_stored(client: Face, text: str) -> None:
    """NUL is dropped, a lone surrogate replaced, everything else kept."""
    client.retain(text, tags=["odd\x00"], metadata={"k\ud83d": "v\x00"}, document_id="odd")
    assert client.documents.get("odd").original_text == text.replace("\x00", "").replace("\ud83d", "\ufffd")


def test_ten_megabytes_are_accepted(client: Face) -> None:
    """In the background: the server takes minutes for them."""
    accepted = client.retain("word " * 2_000_000, background=True)
    assert accepted.operation_id
    client.operations.cancel(accepted.operation_id)


@pytest.mark.parametrize("content", ["", "   ", "\x00", "\n\t"])
def test_blank_text_is_refused_before_it_is_sent(client: Face, content: str) -> None:
    """The server answers 422 to it."""
    with pytest.raises(InvalidInput):
        client.retain(content)


def test_a_refusal_names_what_the_server_dislikes(client: Face) -> None:
    """Without repeating what was sent."""
    with pytest.raises(BadRequest) as caught:
        client.call(
            calls.request("POST", f"/v1/default/banks/{client.scope.bank}/memories", body={"items": ["my secret"]})
        )
    assert caught.value.status == 422
    assert "my secret" not in str(caught.value)


@pytest.mark.parametrize("bank_name", ["..", "a?b#c", "a::b", "ż é %2F", "x" * 192])
def test_odd_bank_names_reach_a_bank_of_that_name(real_url: str, bank: str, bank_name: str) -> None:
    """One escaped segment each; the server knows them by the same name."""
    name = (bank + bank_name)[-192:] if bank_name != ".." else f"..{bank}"
    with BankClient(real_url, bank=name) as client:
        client.retain("The port is 4711.")
        assert client.recall("port").results
        assert client.banks.list(q=name[:50]).items[0].bank_id == name
        client.banks.delete(name)


def git(*arguments: str, cwd: Path) -> None:
    """Run git, on its own."""
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.mark.parametrize("scoping", ["per-project-tagged", "per-project"])
def test_a_worktree_shares_its_projects_memory_and_another_repository_does_not(
    real_url: str,
    bank: str,
    tmp_path: Path,
    scoping: Any,  # noqa: ANN401 - one of the literals
) -> None:
    """Retained in a linked worktree, recalled in the main checkout; never elsewhere, also not under a strict mode."""
    for name in ("general", "other"):
        (tmp_path / name).mkdir()
        git("init", cwd=tmp_path / name)
        git("commit", "--allow-empty", "-m", "first", cwd=tmp_path / name)
    git("worktree", "add", "../elsewhere/wt", cwd=tmp_path / "general")
    settings = Settings(api_url=real_url, bank_id=bank, scoping=scoping)

    def in_folder(folder: str) -> BankClient:
        return BankClient(settings=settings, folder=tmp_path / folder)

    with in_folder("elsewhere/wt") as worktree, in_folder("general") as main, in_folder("other") as other:
        worktree.retain("The port is 4711.")
        worktree.retain("I prefer tabs and port numbers above 4000.", scope="global")
        assert "The port is 4711." in texts(main.recall("port 4711"))
        assert texts(
            other.recall("port 4711", tags_match="any_strict" if scoping == "per-project-tagged" else None)
        ) in (
            [],
            ["I prefer tabs and port numbers above 4000."],
        )
        assert "The port is 4711." not in texts(other.recall("port 4711"))
        assert "I prefer tabs and port numbers above 4000." in texts(other.recall("port tabs"))
        for client in (worktree, other):
            client.banks.delete(client.scope.bank)


def test_a_wrong_key_is_unauthorized_and_not_shown() -> None:
    """On a server that asks for one; the right key is let in."""
    import os  # noqa: PLC0415 - for one variable

    with HindsightServer(os.environ["BANKCLIENT_HINDSIGHT"], key="hsk-right") as server:
        with BankClient(server.url, token="hsk-wrong") as client, pytest.raises(Unauthorized) as caught:
            client.banks.list()
        assert "hsk-wrong" not in str(caught.value)
        with BankClient(server.url, token="hsk-right") as client:
            assert client.banks.list().total >= 0
