"""The two clients: what they send for which project, what they make of several answers, how they page and wait."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import bankclient.client.aio
import bankclient.client.sync
from bankclient import AsyncBankClient, BankClient, ConfigError, InvalidInput, MemoryItem, Settings, Unavailable, calls
from bankclient.api.models.recall import RecalledMemory, RecallResult
from bankclient.client.merge import merge
from bankclient.errors import Disabled, NotFound, OperationFailed, Refused, TimedOut, UnexpectedReply
from bankclient.testing.answers import Drip, Reply, Reset, Silence
from bankclient.testing.scripted import ScriptedRequest, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bankclient.testing.answers import Answer

ROOT = Path(__file__).resolve().parents[2]


class Face:
    """A client of either kind behind a sync face: coroutines are run, async iterators become lists."""

    def __init__(self, client: Any, runner: asyncio.Runner | None) -> None:  # noqa: ANN401 - of either kind, or a part
        self._client = client
        self._runner = runner

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the client has
        value = getattr(self._client, name)
        if name in {"banks", "memories", "documents", "operations"}:
            return Face(value, self._runner)
        if not callable(value):
            return value

        def called(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the client has it
            result = value(*args, **options)
            if inspect.isawaitable(result) and self._runner is not None:
                return self._runner.run(result)  # type: ignore[arg-type] # a coroutine
            if hasattr(result, "__aiter__") and self._runner is not None:

                async def gather() -> list[Any]:
                    return [entry async for entry in result]

                return self._runner.run(gather())
            return list(result) if inspect.isgenerator(result) else result

        return called


@pytest.fixture(params=["sync", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., Face]]:
    """Give a function that makes a client of each kind in turn; they are closed afterwards."""
    with asyncio.Runner() as runner:
        made: list[Face] = []

        def make(*args: Any, **options: Any) -> Face:  # noqa: ANN401 - as the clients take them
            if request.param == "sync":
                face = Face(BankClient(*args, **options), None)
            else:
                face = Face(AsyncBankClient(*args, **options), runner)
            made.append(face)
            return face

        yield make
        for face in made:
            face.close()


def memory(text: str, **fields: object) -> dict[str, object]:
    """Return a memory as the server sends it."""
    return {"id": text, "text": text, "type": "world", **fields}


def answer(request: ScriptedRequest) -> Reply:
    """Answer as a server of version 1.1.0 does, just enough."""
    if request.path == "/v1/version":
        return Reply(json={"api_version": "1.1.0", "features": {}})
    if request.path.endswith("/recall"):
        return Reply(json={"results": [memory(f"from {request.path.split('/')[4]}")]})
    if request.path.endswith("/reflect"):
        return Reply(json={"text": "an answer"})
    if request.path.endswith("/config"):
        return Reply(json={"bank_id": "b", "config": {"reflect_mission": None}, "overrides": {}})
    if request.method == "POST":
        asked = request.json()
        operation = asked.get("operation_id") if asked.get("async") else None
        return Reply(json={"success": True, "items_count": 1, "async": asked["async"], "operation_id": operation})
    return Reply(json={"bank_id": "b"})


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """Give a server that answers everything."""
    with ScriptedServer(handler=answer) as scripted:
        yield scripted


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a folder that is a project of its own, named `general`."""
    folder = tmp_path / "General"
    folder.mkdir()
    return folder


def bodies(server: ScriptedServer) -> list[Any]:
    """Return what was posted so far."""
    return [request.json() for request in server.requests if request.method == "POST"]


def test_a_fact_is_filed_under_the_project(connect: Callable[..., Face], server: ScriptedServer, project: Path) -> None:
    """Bank and tag follow from the folder; the caller's own tags come beside them."""
    client = connect(server.url, folder=project)
    client.retain("the port is 4711", tags=["net"])
    (request,) = server.requests
    assert request.path == "/v1/default/banks/bankclient/memories"
    assert request.json()["items"] == [{"content": "the port is 4711", "tags": ["project:general", "net"]}]


def test_a_global_fact_bears_no_project(connect: Callable[..., Face], server: ScriptedServer, project: Path) -> None:
    """Untagged memories are those of all projects."""
    connect(server.url, folder=project).retain("I prefer tabs", scope="global")
    assert bodies(server)[0]["items"] == [{"content": "I prefer tabs"}]


def test_items_of_every_form_get_the_tag_and_the_label(
    connect: Callable[..., Face], server: ScriptedServer, project: Path
) -> None:
    """Texts, mappings and `MemoryItem`s alike; a context of the item's own stays."""
    client = connect(folder=project, settings=Settings(api_url=server.url, retain_context="shell"))
    client.retain_many(["a", {"content": "b", "tags": "x"}, MemoryItem("c", context="own", tags=["project:general"])])
    assert bodies(server)[0]["items"] == [
        {"content": "a", "tags": ["project:general"], "context": "shell"},
        {"content": "b", "tags": ["project:general", "x"], "context": "shell"},
        {"content": "c", "tags": ["project:general"], "context": "own"},
    ]


@pytest.mark.parametrize(
    "case",
    [
        ("global", "per-project-tagged", ["net"], True),
        ("global", "per-project", ["net"], True),
        ("global", "global", ["net"], False),
        ("project", "per-project", ["net"], False),
        ("project", "per-project-tagged", ["project:other"], True),
        ("global", "global", ["project:other"], True),
        ("project", "per-project-tagged", ["project:general"], False),
    ],
)
def test_a_tag_that_would_hide_or_misfile_a_memory_is_refused(
    connect: Callable[..., Face],
    server: ScriptedServer,
    project: Path,
    case: tuple[str, Any, list[str], bool],
) -> None:
    """What no recall would find, or another project's would, is not stored."""
    scope, scoping, tags, refused = case
    client = connect(folder=project, settings=Settings(api_url=server.url, scoping=scoping))
    if refused:
        with pytest.raises(InvalidInput, match=tags[0]):
            client.retain("x", scope=scope, tags=tags)
    else:
        assert client.retain("x", scope=scope, tags=tags).success
    assert len(server.requests) == (0 if refused else 1)


@pytest.mark.parametrize("tag", ["pro\x00ject:other", "\x00project:other", "project:\x00other"])
def test_a_tag_is_judged_as_it_would_be_stored(
    connect: Callable[..., Face], server: ScriptedServer, project: Path, tag: str
) -> None:
    """The server drops a NUL, and with it what hid another project's tag."""
    with pytest.raises(InvalidInput, match="another project"):
        connect(server.url, folder=project).retain("x", tags=[tag])
    assert server.requests == ()


@pytest.mark.parametrize(
    "arguments",
    [
        {"tags": [1]},
        {"tags": 5},
        {"tags": b"x"},
        {"tags": [["a"]]},
        {"scope": "Global"},
        {"scope": None},
        {"document_id": "a\x00"},
        {"document_id": "\udcff"},
        {"document_id": " "},
    ],
    ids=repr,
)
def test_arguments_of_the_wrong_kind_are_refused(
    connect: Callable[..., Face], server: ScriptedServer, arguments: dict[str, Any]
) -> None:
    """With a named error, and before anything is sent: mended ids would make two documents one."""
    with pytest.raises(InvalidInput):
        connect(server.url).retain("x", **arguments)
    assert server.requests == ()


@pytest.mark.parametrize("items", ["hello", {"content": "x"}, 5, None, b"x"], ids=repr)
def test_one_thing_in_place_of_a_list_is_refused(
    connect: Callable[..., Face], server: ScriptedServer, items: object
) -> None:
    """A text is not a list of its letters."""
    with pytest.raises(InvalidInput, match="retain"):
        connect(server.url).retain_many(items)
    assert server.requests == ()


@pytest.mark.parametrize("arguments", [{"tags": 5}, {"tags": [["a"]]}, {"tag_groups": 5}, {"tag_groups": {}}], ids=repr)
def test_filters_of_the_wrong_kind_are_refused(
    connect: Callable[..., Face], server: ScriptedServer, arguments: dict[str, Any]
) -> None:
    """Nothing is asked for instead."""
    with pytest.raises(InvalidInput):
        connect(server.url).recall("x", **arguments)
    assert server.requests == ()


def test_the_global_bank_named_outright_keeps_its_filter(
    connect: Callable[..., Face], server: ScriptedServer, project: Path
) -> None:
    """With a bank for each project, the shared one may hold what other scopings filed there."""
    client = connect(folder=project, settings=Settings(api_url=server.url, bank_id="base", scoping="per-project"))
    client.recall("x", bank="base")
    client.reflect("x", bank="base")
    assert all(body["tags"] == ["project:general"] for body in bodies(server))


def test_settings_may_be_overruled_by_arguments(connect: Callable[..., Face], server: ScriptedServer) -> None:
    """All else of them stays; a new URL brings its own password, or none."""
    settings = Settings(api_url="http://me:pw@memory.invalid", recall_budget="low", bank_id="old")
    client = connect(server.url, settings=settings, bank="new", token="hsk-1")
    client.recall("x")
    (request,) = server.requests
    assert request.path.split("/")[4] == "new"
    assert request.json()["budget"] == "low"
    assert request.headers["authorization"] == "Bearer hsk-1"
    with pytest.raises(ConfigError, match="bank_id"):
        connect(settings=settings, bank="a/b")


def test_a_user_without_a_password_is_basic_too(connect: Callable[..., Face], server: ScriptedServer) -> None:
    """The form has a colon in any case."""
    connect(server.url.replace("http://", "http://only@")).recall("x")
    assert server.requests[0].headers["authorization"] == "Basic b25seTo="


def test_no_part_of_a_password_is_shown(connect: Callable[..., Face]) -> None:
    """Not where the server echoes the password alone, or the header."""
    echo = Reply(401, json={"detail": "bad password p@ss / p%40ss / bWU6cEBzcw=="})
    with ScriptedServer(echo) as server, pytest.raises(Refused) as caught:
        connect(server.url.replace("http://", "http://me:p%40ss@")).recall("x")
    assert not any(form in str(caught.value) for form in ("p@ss", "p%40ss", "bWU6"))


def test_a_deleted_current_folder_is_no_crash(
    connect: Callable[..., Face], server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an unresolved project."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert not connect(server.url).scope.resolved


def test_a_background_retain_gets_an_identity(connect: Callable[..., Face], server: ScriptedServer) -> None:
    """An operation id is made where none is given, so that a lost reply can be asked for again."""
    client = connect(server.url)
    first, second = (client.retain("x", background=True) for _ in range(2))
    assert re.fullmatch(r"[0-9a-f-]{36}", first.operation_id)
    assert first.operation_id != second.operation_id


def test_recall_asks_for_the_project_and_for_what_is_global(
    connect: Callable[..., Face], server: ScriptedServer, project: Path
) -> None:
    """The mode `any` also finds untagged memories; the rest comes from the settings."""
    connect(server.url, folder=project).recall("which port")
    assert bodies(server) == [
        {
            "query": "which port",
            "tags": ["project:general"],
            "tags_match": "any",
            "budget": "mid",
            "max_tokens": 1024,
            "prefer_observations": True,
        }
    ]


def test_a_callers_tags_narrow_the_project_and_never_widen_it(
    connect: Callable[..., Face], server: ScriptedServer, project: Path
) -> None:
    """Asking for a tag finds it in this project, not everybody's."""
    client = connect(server.url, folder=project)
    client.recall("which port", tags="net")
    client.recall("which port", tag_groups=[{"not": {"tags": ["old"]}}], tags=["net"], tags_match="all")
    client.recall("which port", tag_groups=[{"not": {"tags": ["old"]}}])
    ours = {"tags": ["project:general"], "match": "any"}
    assert [body["tag_groups"] for body in bodies(server)] == [
        [ours, {"tags": ["net"], "match": "any_strict"}],
        [ours, {"tags": ["net"], "match": "all"}, {"not": {"tags": ["old"]}}],
        [ours, {"not": {"tags": ["old"]}}],
    ]


def test_settings_shape_a_recall_and_arguments_overrule_them(
    connect: Callable[..., Face], server: ScriptedServer
) -> None:
    """Budget, tokens and types."""
    settings = Settings(api_url=server.url, recall_budget="low", recall_max_tokens=100, recall_types=("world",))
    client = connect(settings=settings)
    client.recall("which port")
    client.recall("which port", budget="high", max_tokens=7, types=["observation"])
    found = [(body["budget"], body["max_tokens"], body["types"]) for body in bodies(server)]
    assert found == [("low", 100, ["world"]), ("high", 7, ["observation"])]
    assert "prefer_observations" not in bodies(server)[0]


def test_a_bank_named_outright_is_that_bank(
    connect: Callable[..., Face], server: ScriptedServer, project: Path
) -> None:
    """The project's tag stays; the name is taken as it is."""
    client = connect(server.url, folder=project)
    client.retain("x", bank="other")
    client.recall("x", bank="other")
    client.reflect("x", bank="other")
    assert {request.path.split("/")[4] for request in server.requests} == {"other"}
    assert all("project:general" in json.dumps(body) for body in bodies(server))


@pytest.mark.parametrize("bank", ["..", "a?b#c", "a::b", "ä ö%2F"])
def test_an_odd_bank_stays_one_segment(connect: Callable[..., Face], server: ScriptedServer, bank: str) -> None:
    """No name can reach another endpoint, or start a query."""
    connect(server.url).recall("x", bank=bank)
    (request,) = server.requests
    assert re.fullmatch(r"/v1/default/banks/[^/?#]+/memories/recall", request.target)
    assert "/../" not in request.target


@pytest.mark.parametrize("bank", ["", "a/b", "_x", "x" * 193, "a\x00b", "ż" * 97])
def test_a_bank_that_no_server_takes_is_refused_before_anything_is_sent(
    connect: Callable[..., Face], server: ScriptedServer, bank: str
) -> None:
    """Here and in the settings."""
    with pytest.raises(InvalidInput):
        connect(server.url).recall("x", bank=bank)
    with pytest.raises((ConfigError, InvalidInput)):
        connect(server.url, bank=bank or "a/b")
    assert server.requests == ()


def test_per_project_banks_are_asked_with_the_global_one(
    connect: Callable[..., Face], server: ScriptedServer, project: Path
) -> None:
    """Two questions, one answer: the best of each in turn."""
    client = connect(folder=project, settings=Settings(api_url=server.url, bank_id="base", scoping="per-project"))
    found = client.recall("which port")
    assert [memory.text for memory in found.results] == ["from base-general", "from base"]
    client.retain("x")
    client.retain("y", scope="global")
    assert [request.path.split("/")[4] for request in server.requests[2:]] == ["base-general", "base"]


def test_an_unresolved_project_files_nothing_and_finds_global_memories_only(
    connect: Callable[..., Face], server: ScriptedServer
) -> None:
    """`/` is nobody's project; a fact for all projects is still welcome."""
    client = connect(server.url, folder="/")
    with pytest.raises(InvalidInput, match="scope"):
        client.retain("x")
    client.retain("x", scope="global")
    client.recall("x")
    assert "tags" not in bodies(server)[0]["items"][0]
    assert bodies(server)[1]["tags_match"] == "any"
    assert bodies(server)[1]["tags"][0].startswith("project:")


def test_a_bank_that_is_not_there_yet_has_no_memories(connect: Callable[..., Face]) -> None:
    """Servers before 1.0 answered so; the first recall of a newcomer is no error."""
    with ScriptedServer(Reply(404, json={"detail": "Bank 'bankclient' not found"})) as server:
        found = connect(server.url).recall("x")
    assert (found.results, found.degraded) == ((), False)


def test_a_route_that_is_not_there_is_an_error(connect: Callable[..., Face]) -> None:
    """A wrong path in the URL must not look like an empty memory."""
    with ScriptedServer(Reply(404, json={"detail": "Not Found"})) as server, pytest.raises(NotFound):
        connect(server.url + "/wrong").recall("x")


@pytest.mark.parametrize("path", ["", "/", "/mem", "/mem/"])
def test_the_servers_url_may_have_a_path(connect: Callable[..., Face], server: ScriptedServer, path: str) -> None:
    """It stays in front, with one slash."""
    connect(server.url + path).retain("x")
    assert server.requests[0].path == f"{path.rstrip('/')}/v1/default/banks/bankclient/memories"


def test_the_key_travels_as_a_bearer_and_a_password_as_basic(
    connect: Callable[..., Face], server: ScriptedServer
) -> None:
    """The key wins where both are given; neither is ever part of the address."""
    address = server.url.replace("http://", "http://me:p%40ss@")
    connect(server.url, token="hsk-1").recall("x")
    connect(address).recall("x")
    connect(address, token="hsk-1").recall("x")
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer hsk-1", "Basic bWU6cEBzcw==", "Bearer hsk-1"]
    assert all("@" not in request.target for request in server.requests)


def test_a_bad_argument_is_refused_with_its_mend(connect: Callable[..., Face]) -> None:
    """A URL without a scheme is one clear message."""
    with pytest.raises(ConfigError, match="http://"):
        connect("localhost:8888")


def test_a_bad_variable_is_one_warning_and_no_crash(
    connect: Callable[..., Face], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The environment is not the caller's mistake."""
    monkeypatch.setenv("HINDSIGHT_RECALL_TIMEOUT_MS", "nan")
    with caplog.at_level(logging.WARNING):
        assert connect().settings.recall_timeout_ms == 30000
    assert [record for record in caplog.records if "HINDSIGHT_RECALL_TIMEOUT_MS" in record.getMessage()]


@pytest.mark.parametrize("path", ["General", "wt"])
def test_a_project_rule_counts_for_a_worktrees_folder_and_for_its_root(
    connect: Callable[..., Face], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str
) -> None:
    """Whichever of the two the person wrote down."""
    (tmp_path / "General/.git/worktrees/wt").mkdir(parents=True)
    (tmp_path / "wt").mkdir()
    (tmp_path / "General/.git/worktrees/wt/commondir").write_text("../..\n")
    (tmp_path / "General/.git/worktrees/wt/gitdir").write_text(f"{tmp_path}/wt/.git\n")
    for git in ("General/.git", "General/.git/worktrees/wt"):
        (tmp_path / git / "HEAD").write_text("ref: refs/heads/main\n")
    for folder in ("objects", "refs"):
        (tmp_path / "General/.git" / folder).mkdir()
    (tmp_path / "wt/.git").write_text(f"gitdir: {tmp_path}/General/.git/worktrees/wt\n")
    config = tmp_path / "config/bankclient/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[[project]]\npath = "{tmp_path / path}"\nname = "ruled"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert connect(folder=tmp_path / "wt").scope.project.name == "ruled"


def test_a_mission_is_given_to_a_bank_that_has_none(connect: Callable[..., Face], server: ScriptedServer) -> None:
    """Once, in front of the first reflect; a bank's own stays."""
    client = connect(settings=Settings(api_url=server.url, bank_mission="You keep notes."))
    client.reflect("why")
    client.reflect("why")
    assert [request.method for request in server.requests] == ["GET", "PUT", "POST", "POST"]
    assert server.requests[1].json() == {"reflect_mission": "You keep notes."}


@pytest.mark.parametrize("trouble", [Reply(403, json={"detail": "no"}), Reset(), Silence(), Reply(502)], ids=repr)
def test_a_mission_that_cannot_be_set_does_not_cost_the_answer(connect: Callable[..., Face], trouble: Answer) -> None:
    """It is an extra: neither the breaker nor the call's limit is used up by it."""

    def handle(request: ScriptedRequest) -> Answer:
        return Reply(json={"text": "an answer"}) if request.path.endswith("/reflect") else trouble

    with ScriptedServer(handler=handle) as server:
        client = connect(settings=Settings(api_url=server.url, bank_mission="You keep notes."))
        assert client.reflect("why", timeout=4.0).text == "an answer"


def page(total: int) -> Callable[[ScriptedRequest], Reply]:
    """Return a server of so many memories."""

    def handle(request: ScriptedRequest) -> Reply:
        query = dict(request.query)
        offset, limit = int(query.get("offset", 0)), int(query["limit"])
        items = [memory(str(number)) for number in range(offset, min(offset + limit, total))]
        return Reply(json={"items": items, "total": total, "limit": limit, "offset": offset})

    return handle


@pytest.mark.parametrize(("total", "requests"), [(0, 1), (1, 1), (100, 1), (101, 2), (250, 3)])
def test_iterators_go_through_all_pages(connect: Callable[..., Face], total: int, requests: int) -> None:
    """Every entry once, in as many requests as needed and no more."""
    with ScriptedServer(handler=page(total)) as server:
        found = connect(server.url).memories.iterate()
        assert [memory.id for memory in found] == [str(number) for number in range(total)]
        assert len(server.requests) == requests


@pytest.mark.parametrize("offset", [0, -3, 10**9, None])
def test_an_iterator_ends_on_a_server_that_knows_no_pages(connect: Callable[..., Face], offset: int | None) -> None:
    """It sends the same again, whatever it says of offset and total."""
    said = {} if offset is None else {"offset": offset}
    same = Reply(json={"items": [memory("1")], "total": 10**6, "limit": 1} | said)
    with ScriptedServer(handler=lambda _: same) as server:
        assert len(connect(server.url).memories.iterate()) == 1


def test_an_operation_is_waited_for(connect: Callable[..., Face]) -> None:
    """Until it is completed, however often that must be asked."""
    states = ["pending", "pending", "completed"]
    with ScriptedServer(*(Reply(json={"operation_id": "o", "status": state}) for state in states)) as server:
        operation = connect(server.url).operations.wait("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
        assert operation.status == "completed"
        assert len(server.requests) == 3


@pytest.mark.parametrize("status", ["failed", "cancelled", "not_found"])
def test_an_operation_that_ended_otherwise_is_an_error(connect: Callable[..., Face], status: str) -> None:
    """With the reason in one line, not a traceback."""
    reply = Reply(json={"operation_id": "o", "status": status, "error_message": "Traceback\n  File\nValueError: no"})
    with ScriptedServer(reply) as server, pytest.raises(OperationFailed) as caught:
        connect(server.url).operations.wait("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
    assert (caught.value.status, caught.value.detail) == (status, "ValueError: no")


def test_waiting_ends_at_its_limit(connect: Callable[..., Face]) -> None:
    """The operation goes on, and the error says so."""
    reply = Reply(json={"operation_id": "o", "status": "pending"})
    with ScriptedServer(handler=lambda _: reply) as server, pytest.raises(TimedOut, match="still pending"):
        connect(server.url).operations.wait("6ba7b810-9dad-11d1-80b4-00c04fd430c8", timeout=0.2)


def test_waiting_for_a_silent_server_ends_at_its_limit_too(connect: Callable[..., Face]) -> None:
    """Each question has no more than what is left."""
    with ScriptedServer(Silence()) as server, pytest.raises(TimedOut):
        connect(server.url).operations.wait("6ba7b810-9dad-11d1-80b4-00c04fd430c8", timeout=0.2)


def test_cancelling_cancels_the_parts(connect: Callable[..., Face]) -> None:
    """A parent that is cancelled itself says so while its parts write on; one that ended meanwhile is fine."""
    parts = [{"operation_id": name, "status": state} for name, state in (("a", "completed"), ("b", "pending"))]
    script = [
        Reply(json={"operation_id": "o", "status": "pending", "child_operations": parts}),
        Reply(409, json={"detail": "not pending"}),
        Reply(json={"operation_id": "o", "status": "cancelled"}),
    ]
    parts[1]["operation_id"] = "6ba7b810-9dad-11d1-80b4-00c04fd430c9"
    with ScriptedServer(*script) as server:
        done = connect(server.url).operations.cancel("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
        assert done.status == "cancelled"
        deleted = [request.path for request in server.requests if request.method == "DELETE"]
    assert [path.split("/")[-1] for path in deleted] == ["6ba7b810-9dad-11d1-80b4-00c04fd430c9"]


def test_a_dripping_server_cannot_hold_a_call(connect: Callable[..., Face]) -> None:
    """The wall clock cuts it, through the whole client."""
    slow = Drip(Reply(json={"results": [], "pad": "x" * 1000}), every=0.05)
    with ScriptedServer(slow) as server, pytest.raises(TimedOut):
        connect(server.url).recall("x", timeout=0.3)


def test_any_call_can_be_sent_as_it_is(connect: Callable[..., Face], server: ScriptedServer) -> None:
    """For what has no method of its own."""
    client = connect(server.url)
    assert client.call(calls.request("GET", "/v1/version"))["api_version"] == "1.1.0"


def test_a_stream_gives_status_and_pieces(server: ScriptedServer) -> None:
    """Sync and async, and an error before the first piece."""
    call = calls.request("GET", "/v1/version")
    with BankClient(server.url) as client, client.stream(call) as answer:
        assert (answer.status, b"1.1.0" in b"".join(answer.iter_bytes())) == (200, True)

    async def read() -> tuple[int, bytes]:
        async with AsyncBankClient(server.url) as aio, aio.stream(call) as piecewise:
            return piecewise.status, b"".join([piece async for piece in piecewise.iter_bytes()])

    assert asyncio.run(read())[0] == 200


def test_a_streams_refusal_is_raised_at_its_beginning() -> None:
    """With the server's sentence, as for any call."""
    with (
        ScriptedServer(Reply(404, json={"detail": "no such file"})) as server,
        BankClient(server.url) as client,
        pytest.raises(NotFound, match="no such file"),
        client.stream(calls.request("GET", "/v1/x")),
    ):
        raise AssertionError("there is nothing to read")


def test_a_streams_refusal_is_read_in_part_only() -> None:
    """However long or slow its body is."""
    endless = Reply(500, body=b"x" * 5_000_000)
    with (
        ScriptedServer(endless, Drip(Reply(500, body=b"x" * 1000), every=0.05)) as server,
        BankClient(server.url) as client,
    ):
        for _ in range(2):
            with pytest.raises(Refused), client.stream(calls.request("GET", "/v1/x"), timeout=0.3):
                raise AssertionError("there is nothing to read")


def test_html_in_place_of_json_is_one_named_error(connect: Callable[..., Face]) -> None:
    """A login page under 200."""
    page = Reply(body=b"<html>", headers={"content-type": "text/html"})
    with ScriptedServer(page) as server, pytest.raises(UnexpectedReply, match="text/html"):
        connect(server.url).recall("x")


def test_a_degraded_client_says_so_on_each_kind_of_answer(connect: Callable[..., Face]) -> None:
    """Nothing raises while there is no server, and nothing looks like a real answer."""
    client = connect("http://127.0.0.1:9", degrade=True)
    answers = [
        client.retain("x"),
        client.recall("x"),
        client.reflect("x"),
        client.version(),
        client.health(),
        client.banks.list(),
        client.banks.stats(),
        client.memories.list(),
        client.memories.get("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        client.documents.list(),
        client.documents.get("d"),
        client.documents.delete("d"),
        client.operations.get("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        client.operations.wait("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
    ]
    assert all(answer.degraded for answer in answers)
    assert client.memories.iterate() == []


def test_without_degrade_no_server_is_an_error(connect: Callable[..., Face]) -> None:
    """And one that says where it looked."""
    with pytest.raises(Unavailable, match=r"http://127\.0\.0\.1:9"):
        connect("http://127.0.0.1:9").recall("x")


def test_a_disabled_client_sends_nothing(connect: Callable[..., Face], server: ScriptedServer, tmp_path: Path) -> None:
    """It says why, or degrades; no bank is made on the disk either."""
    for url in (server.url, "embedded"):
        off = Settings(api_url=url, disabled=True, state_dir=tmp_path / "state")
        with pytest.raises(Disabled, match="HINDSIGHT_DISABLED"):
            connect(settings=off).retain("x")
        assert connect(settings=off, degrade=True).recall("x").degraded
    assert server.requests == ()
    assert not (tmp_path / "state").exists()


def test_a_client_works_after_a_fork(server: ScriptedServer) -> None:
    """The child's calls go over connections of its own, the parent's go on."""
    with BankClient(server.url) as client:
        client.recall("before")
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if client.recall("child").results else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert client.recall("after").results
    assert server.accepted == 2


def test_a_client_is_shared_by_threads(server: ScriptedServer) -> None:
    """Each gets its own answer."""
    found: list[str] = []
    with BankClient(server.url) as client:

        def work(number: int) -> None:
            found.extend(each.text for each in client.recall("x", bank=f"b{number}").results)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == sorted(f"from b{number}" for number in range(16))


# --- Merging ---------------------------------------------------------------------------------------------------------


def recalled(*texts: str, degraded: bool = False) -> RecallResult:
    """Return an answer with these memories."""
    return RecallResult(results=tuple(RecalledMemory(id=text, text=text) for text in texts), degraded=degraded)


def test_merging_takes_turns_and_drops_doubles() -> None:
    """Each bank's best comes before any bank's second."""
    merged = merge([recalled("a", "b", "c"), recalled("x", "b")], None)
    assert [memory.text for memory in merged.results] == ["a", "x", "b", "c"]


def test_merging_keeps_to_the_tokens_and_to_the_first() -> None:
    """Four bytes count as a token; the first memory always stays."""
    merged = merge([recalled("a" * 40, "b" * 40), recalled("c" * 40)], 20)
    assert [memory.text[0] for memory in merged.results] == ["a", "c"]
    assert len(merge([recalled("a" * 400), recalled("b")], 1).results) == 1


def test_merging_is_degraded_where_a_part_is() -> None:
    """Half an answer is no whole one."""
    assert merge([recalled("a"), recalled(degraded=True)], None).degraded


# --- The twin --------------------------------------------------------------------------------------------------------


def test_the_sync_client_is_what_the_async_one_makes_it(tmp_path: Path) -> None:
    """Made anew from its source, it is to the letter what is committed."""
    for part in (".ci", "bankclient/client/aio", "pyproject.toml"):
        source, target = ROOT / part, tmp_path / part
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", str(source), str(target)], check=True)
    subprocess.run([sys.executable, str(tmp_path / ".ci" / "sync_twin.py")], check=True, cwd=tmp_path)
    made = {path.name: path.read_text() for path in (tmp_path / "bankclient/client/sync").glob("*.py")}
    committed = {path.name: path.read_text() for path in (ROOT / "bankclient/client/sync").glob("*.py")}
    assert made == committed


def test_both_clients_offer_the_same() -> None:
    """Every public name of the one is on the other, with the same parameters."""

    def offered(package: Any) -> dict[str, str]:  # noqa: ANN401 - a module
        names = ("client", "banks", "documents", "memories", "operations")
        found: dict[str, str] = {}
        for name in names:
            module = sys.modules[f"{package.__name__}.{name}"]
            for kind in module.__all__:
                cls = getattr(module, kind)
                for method, function in inspect.getmembers(cls, inspect.isfunction):
                    if not method.startswith("_"):
                        parameters = list(inspect.signature(function).parameters)
                        found[f"{kind.removeprefix('Async')}.{method}"] = ",".join(parameters)
        return found

    assert offered(bankclient.client.aio) == offered(bankclient.client.sync)
