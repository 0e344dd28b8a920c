"""`bankclient recall` and `reflect`: what is asked, how the answer is shown, and that nothing found is no failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bankclient.testing.answers import Reply
from bankclient.testing.scripted import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

VERSION = Reply(json={"api_version": "1.1.0"})
FIRST = {"id": "1", "text": "The port is 4711.", "tags": ["project:api"], "scores": {"final": 1.1}, "a new field": [1]}
SECOND = {
    "id": "2",
    "text": "Deploys run\nfrom the release branch.",
    "tags": None,
    "mentioned_at": "2026-01-31T09:30:00Z",
}
FOUND = Reply(json={"results": [FIRST, SECOND], "trace": None})
ANSWER = Reply(json={"text": "The port is **4711**.", "based_on": {"memories": [FIRST]}, "usage": None})
NO_BANK = Reply(404, json={"detail": "Bank 'bankclient' not found"})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, repository: Path) -> Iterator[ScriptedServer]:
    """Give a server whose answers a test scripts, asked from the repository."""
    del repository
    with ScriptedServer() as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        yield server


def test_in_a_pipe_each_memory_is_one_line(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """The texts alone, best first."""
    server.then(FOUND)
    done = cli("recall", "port")
    assert (done.code, done.err) == (0, "")
    assert done.out == "The port is 4711.\nDeploys run from the release branch.\n"


def test_recall_asks_for_the_project_with_what_was_typed(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """The project's tags and the settings hold, and each option is in the request."""
    server.then(FOUND, VERSION, FOUND)
    cli("recall", "port")
    options = ("--budget", "high", "--max-tokens", "99", "--type", "world", "--type", "experience")
    cli("recall", "port", "--tag", "infra", "--tags-match", "all_strict", "--bank", "team", *options)
    plain, _, full = server.requests
    assert plain.path == "/v1/default/banks/bankclient/memories/recall"
    assert plain.json() == {
        "query": "port",
        "tags": ["project:api"],
        "tags_match": "any",
        "budget": "mid",
        "max_tokens": 1024,
        "prefer_observations": True,
    }
    assert full.path == "/v1/default/banks/team/memories/recall"
    assert full.json() == {
        "query": "port",
        "types": ["world", "experience"],
        "budget": "high",
        "max_tokens": 99,
        "tag_groups": [
            {"tags": ["project:api"], "match": "any_strict"},
            {"tags": ["infra"], "match": "all_strict"},
        ],
    }


def test_reflect_asks_for_the_project_with_what_was_typed(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """The same filters hold, and what the answer rests on is asked for."""
    server.then(ANSWER)
    cli("reflect", "port?", "--tags-match", "all", "--budget", "low", "--max-tokens", "9", "--type", "world")
    (request,) = server.requests
    assert request.path == "/v1/default/banks/bankclient/reflect"
    assert request.json() == {
        "query": "port?",
        "tags": ["project:api"],
        "tags_match": "all",
        "fact_types": ["world"],
        "budget": "low",
        "max_tokens": 9,
        "include": {"facts": {}},
    }


def test_an_answer_in_a_pipe_is_its_text_as_it_is(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """Markdown stays markdown."""
    server.then(ANSWER)
    done = cli("reflect", "port?")
    assert (done.code, done.out, done.err) == (0, "The port is **4711**.\n", "")


def test_an_answer_on_a_terminal_is_laid_out_with_what_it_rests_on(
    terminal: Callable[..., Any], server: ScriptedServer
) -> None:
    """Markdown becomes type, and the memories stand below."""
    server.then(ANSWER)
    done = terminal("reflect", "port?")
    assert done.code == 0
    assert "The port is \x1b[1m4711\x1b[0m." in done.out
    assert "based on" in done.out
    assert "The port is 4711." in done.out


def test_json_is_the_whole_reply(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """Every field that the server sent is there, new ones too."""
    server.then(FOUND, ANSWER)
    found = cli("recall", "port", "--json").json()
    assert [memory["text"] for memory in found["results"]] == [FIRST["text"], SECOND["text"]]
    assert found["results"][0]["a new field"] == [1]
    assert found["results"][0]["scores"]["final"] == 1.1
    assert found["results"][1]["mentioned_at"] == "2026-01-31T09:30:00+00:00"
    assert "degraded" not in found
    answer = cli("reflect", "port?", "--json").json()
    assert answer["based_on"]["memories"][0]["id"] == "1"


@pytest.mark.parametrize("nothing", [Reply(json={"results": []}), Reply(json={"results": None}), NO_BANK])
def test_nothing_found_is_an_answer(cli: Callable[..., Any], server: ScriptedServer, nothing: Reply) -> None:
    """No memory, or no bank yet: nothing on stdout, a note on stderr, exit code 0."""
    server.then(nothing)
    done = cli("recall", "port")
    assert (done.code, done.out, done.err) == (0, "", "nothing found in bank bankclient for project api\n")


def test_nothing_found_as_json_is_an_empty_list(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """A program reads it from the JSON alone."""
    server.then(Reply(json={"results": []}))
    done = cli("recall", "port", "--json")
    assert (done.code, done.err, done.json()["results"]) == (0, "", [])


def test_no_answer_to_reflect_is_said(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """An empty text is nothing found."""
    server.then(Reply(json={"text": " "}))
    done = cli("reflect", "port?", "--bank", "team")
    assert (done.code, done.out, done.err) == (0, "", "nothing found in bank team for project api\n")


def test_both_banks_are_named_where_a_project_has_its_own(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a bank for each project the global one is asked too, and named."""
    monkeypatch.setenv("HINDSIGHT_SCOPING", "per-project")
    server.then(NO_BANK, Reply(json={"results": []}))
    done = cli("recall", "port")
    assert [request.path.split("/")[4] for request in server.requests] == ["bankclient-api", "bankclient"]
    assert done.err == "nothing found in bank bankclient-api and bank bankclient\n"


def test_a_failure_is_not_nothing_found(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """An error has another exit code and other words."""
    server.then(Reply(400, json={"detail": "Reflect requires an LLM provider to be configured"}))
    done = cli("reflect", "port?")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"error: {server.url} refuses the reflect (400: Reflect requires an LLM provider to be configured)\n"
    )


@pytest.mark.parametrize("name", ["recall", "reflect"])
def test_without_a_project_a_warning_says_what_is_searched(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """In a folder that belongs to no project only what counts for all is found, and that is said."""
    monkeypatch.chdir("/")
    server.then(FOUND if name == "recall" else ANSWER)
    done = cli(name, "port")
    assert done.code == 0
    assert done.err == (
        "warning: this folder belongs to no project (unresolved: the folder / has no name), so only what counts for all"
        " projects is found; name it with HINDSIGHT_PROJECT or a [[project]] rule\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["recall", ""], "query has no letter or digit"),
        (["recall", "?!"], "query has no letter or digit"),
        (["reflect", " "], "query is empty"),
        (["recall", "x", "--tag", ""], "--tag is empty; give it a value, or leave it out"),
        (["reflect", "x", "--tag", ""], "--tag is empty; give it a value, or leave it out"),
        (["recall", "x", "--bank", "a/b"], "the bank's name is 'a/b'"),
        (["reflect", "x", "--bank", "_x"], "the bank's name is '_x'"),
    ],
)
def test_what_no_server_would_take_is_refused_before_anything_is_sent(
    cli: Callable[..., Any], server: ScriptedServer, arguments: list[str], said: str
) -> None:
    """Each is one line that names the thing and the mend."""
    done = cli(*arguments)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {said}")
    assert done.err.count("\n") == 1
    assert server.requests == ()


def test_a_strict_mode_without_any_tag_is_refused(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server would take it for no filter at all."""
    monkeypatch.setenv("HINDSIGHT_SCOPING", "global")
    done = cli("recall", "port", "--tags-match", "any_strict")
    assert (done.code, server.requests) == (1, ())
    assert "then finds everything: give a tag" in done.err


def test_a_query_that_is_no_text_is_mended(process: Callable[..., Any], server: ScriptedServer) -> None:
    """Invalid UTF-8 in an argument is asked as U+FFFD."""
    server.then(FOUND)
    assert process("recall", b"caf\xe9").code == 0
    assert server.requests[0].json()["query"] == "caf\ufffd"


def test_a_secret_in_a_question_is_not_asked(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """A key in the query does not leave the machine."""
    server.then(FOUND, ANSWER)
    for name in ("recall", "reflect"):
        assert "a secret was taken out" in cli(name, "what is AKIAIOSFODNN7EXAMPLE for").err
    assert {request.json()["query"] for request in server.requests} == {"what is [redacted: aws key] for"}
