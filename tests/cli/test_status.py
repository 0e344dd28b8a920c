"""`bankclient status`: the server, the banks of this folder's scope, and what is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bankclient.testing.answers import Reply
from bankclient.testing.scripted import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

VERSION = Reply(json={"api_version": "1.1.0"})
STATS = Reply(
    json={
        "bank_id": "bankclient",
        "total_nodes": 7,
        "total_documents": 4,
        "nodes_by_fact_type": {"world": 5, "observation": 2},
        "pending_operations": 1,
        "failed_operations": 3,
    }
)
NO_BANK = Reply(404, json={"detail": "Bank 'bankclient-api' not found"})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, repository: Path) -> Iterator[ScriptedServer]:
    """Give a server whose answers a test scripts, asked from the repository."""
    del repository
    with ScriptedServer() as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        yield server


def test_it_shows_the_server_and_what_is_in_the_bank(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """The counts are fresh ones, observations apart from facts."""
    server.then(VERSION, STATS)
    done = cli("status")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        f"server: {server.url}\n"
        "reachable: yes\n"
        "version: 1.1.0\n"
        "project: api (git checkout)\n"
        "bank: bankclient: facts 5, observations 2, documents 4, operations pending 1, failed 3\n"
        "queue: nothing waits to be sent\n"
    )
    assert server.requests[1].target == "/v1/default/banks/bankclient/stats?refresh=true"


def test_json_has_the_same(cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bank that is asked is there, the one that does not exist too."""
    monkeypatch.setenv("HINDSIGHT_SCOPING", "per-project")
    server.then(VERSION, NO_BANK, STATS)
    done = cli("status", "--json")
    assert (done.code, done.err) == (0, "")
    said = done.json()
    assert (said["server"], said["reachable"], said["version"], said["error"]) == (server.url, True, "1.1.0", None)
    assert [(bank["bank"], bank["exists"], bank["facts"]) for bank in said["banks"]] == [
        ("bankclient-api", False, 0),
        ("bankclient", True, 5),
    ]
    assert said["scope"]["bank"] == "bankclient-api"


def test_a_bank_that_is_not_there_yet_is_no_fault(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """It comes with the first retain."""
    server.then(VERSION, NO_BANK)
    done = cli("status")
    assert done.code == 0
    assert "bank: bankclient: not there yet, the first retain makes it\n" in done.out


@pytest.mark.parametrize("as_json", [False, True])
def test_a_server_that_cannot_be_reached_is_said_and_fails(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, repository: Path, as_json: bool
) -> None:
    """What is known without it is shown all the same."""
    del repository
    monkeypatch.setenv("HINDSIGHT_API_URL", "http://hindsight.invalid")
    done = cli("status", *(["--json"] if as_json else []))
    why = "the host name in http://hindsight.invalid is not known; check HINDSIGHT_API_URL"
    assert (done.code, done.err) == (1, f"error: {why}\n")
    if as_json:
        assert (done.json()["reachable"], done.json()["error"]) == (False, why)
    else:
        assert done.out == (
            "server: http://hindsight.invalid\nreachable: no\nproject: api (git checkout)\n"
            "queue: nothing waits to be sent\n"
        )


def test_a_refused_key_is_reachable_and_fails(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """The version needs no key, the counts do."""
    server.then(VERSION, Reply(401, json={"detail": "Authentication failed: Invalid API key"}))
    done = cli("status")
    assert done.code == 1
    assert "reachable: yes\nversion: 1.1.0\n" in done.out
    assert "refuses the key" in done.err


def test_the_embedded_bank_is_a_server_too(process: Callable[..., Any], embedded: Path) -> None:
    """Nothing has to run for it."""
    del embedded
    process("retain", "The port is 4711.", "--wait")
    done = process("status")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("server: the embedded bank\nreachable: yes\n")
    assert "bank: bankclient: facts 1, documents 1, operations pending 0, failed 0\n" in done.out


def test_a_file_that_is_no_bank_is_named_with_its_mend(
    cli: Callable[..., Any], embedded: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What the embedded bank says of its file is passed on, and no log is spoken of that it does not have."""
    del embedded
    (tmp_path / "embedded.sqlite3").write_text("not a database")
    monkeypatch.setenv("HINDSIGHT_STATE_DIR", str(tmp_path))
    done = cli("status")
    assert done.code == 1
    assert done.err.startswith("error: the embedded bank failed at get bank stats: ")
    assert str(tmp_path / "embedded.sqlite3") in done.err
    assert "log" not in done.err
