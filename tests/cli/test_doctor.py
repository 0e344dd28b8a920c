"""`bankclient doctor`: each thing that can be wrong is found, told from the others, and has its mend."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.settings import VARIABLES
from bankclient.testing.answers import Reply, Silence, gateway_page
from bankclient.testing.scripted import ScriptedRequest, ScriptedServer, black_hole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bankclient.testing.answers import Answer

WELL: dict[str, Answer] = {
    "version": Reply(json={"api_version": "1.1.0"}),
    "health": Reply(json={"status": "healthy"}),
    "banks": Reply(json={"banks": [], "total": 0}),
    "stats": Reply(404, json={"detail": "Bank 'bankclient' not found"}),
}
WRONG_KEY = Reply(401, json={"detail": "Authentication failed: Invalid API key"})


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, repository: Path) -> Iterator[dict[str, Answer]]:
    """Give the answers of a server that is well, by the last step of the path; a test makes it ill."""
    del repository
    answers = dict(WELL)

    def answer(request: ScriptedRequest) -> Answer:
        return answers.get(request.path.rpartition("/")[2], Reply(404, json={"detail": "Not Found"}))

    with ScriptedServer(handler=answer) as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        yield answers


@pytest.fixture
def examined(cli: Callable[..., Any]) -> Callable[..., dict[str, dict[str, str]]]:
    """Give the doctor's checks by name, after holding the exit code to what they say."""

    def run(*arguments: str) -> dict[str, dict[str, str]]:
        done = cli("doctor", "--json", *arguments)
        said = done.json()
        problems = [check for check in said["checks"] if check["state"] == "problem"]
        assert said["ok"] == (not problems)
        assert done.code == (1 if problems else 0)
        assert all(check["what"] for check in problems)
        return {check["check"]: check for check in said["checks"]}

    return run


@pytest.mark.usefixtures("served")
def test_all_is_well(examined: Callable[..., Any]) -> None:
    """Every check is there, and none complains."""
    checks = examined()
    assert {check["state"] for check in checks.values()} == {"ok"}
    here = ["config.toml", "settings", "project", "scope", "queue"]
    assert [*checks] == [*here, "server", "version", "health", "key", "bank"]
    assert checks["key"]["what"] == "none is set, and the server asks for none"
    assert checks["bank"]["what"] == "bankclient: not there yet, the first retain makes it"


@pytest.mark.usefixtures("served")
def test_each_setting_is_shown_with_its_source_and_no_secret(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Key and password are said to be set; config.toml is named as a source."""
    file = tmp_path / "bankclient" / "config.toml"
    file.parent.mkdir()
    file.write_text('recall_budget = "high"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HINDSIGHT_API_TOKEN", "the-token")
    monkeypatch.setenv("HINDSIGHT_API_URL", "http://ann:the-password@127.0.0.1:9")
    for done in (cli("doctor"), cli("doctor", "--json")):
        assert "the-token" not in done.out + done.err
        assert "the-password" not in done.out + done.err
    rows = {row["name"]: (row["value"], row["source"]) for row in done.json()["settings"]}
    assert rows["HINDSIGHT_API_TOKEN"] == ("set (hidden)", "environment HINDSIGHT_API_TOKEN")
    assert rows["HINDSIGHT_API_URL"] == ("http://***@127.0.0.1:9", "environment HINDSIGHT_API_URL")
    assert rows["HINDSIGHT_RECALL_BUDGET"] == ("high", "config.toml")
    assert rows["HINDSIGHT_SCOPING"] == ("per-project-tagged", "default")
    assert rows.keys() == {row.name for row in VARIABLES} - {"HINDSIGHT_API_KEY"}


@pytest.mark.usefixtures("served")
def test_in_a_pipe_each_finding_is_one_line(cli: Callable[..., Any]) -> None:
    """State, check and finding, aligned, below the settings."""
    lines = cli("doctor").out.splitlines()
    assert lines[0].split() == ["setting", "value", "source"]
    assert "ok  key          none is set, and the server asks for none" in lines


ILL: dict[str, tuple[dict[str, Answer], str, str, str]] = {
    "a web page": (
        dict.fromkeys(WELL, Reply(body=b"<html>", headers={"content-type": "text/html"})),
        "server",
        "what answers at URL is not a Hindsight server: answered with a body that is not Hindsight's (text/html)",
        "check HINDSIGHT_API_URL",
    ),
    "a gateway alone": (
        dict.fromkeys(WELL, gateway_page()),
        "server",
        "a gateway answers at URL, and the server behind it does not (502)",
        "start the Hindsight server, or wait for it",
    ),
    "another API": (
        dict.fromkeys(WELL, Reply(404, json={"detail": "Not Found"})),
        "server",
        "there is no Hindsight API under URL (404: Not Found)",
        "check HINDSIGHT_API_URL, above all its path",
    ),
    "silence": (
        dict.fromkeys(WELL, Silence()),
        "server",
        "URL gave no answer to version within 0.3 s",
        ("try again, or allow more time by HINDSIGHT_REQUEST_TIMEOUT_MS; if it stays so, check HINDSIGHT_API_URL"),
    ),
    "no database": (
        {"health": Reply(503, json={"status": "unhealthy", "database": "error", "error": "no route"})},
        "health",
        "the server says that it is unhealthy (no route)",
        "its log says more",
    ),
    "no counting": (
        {"stats": Reply(500, json={"detail": "no such table"})},
        "bank",
        "URL failed at get bank stats (500: no such table)",
        "its log says more",
    ),
    "no key": (
        {"banks": WRONG_KEY},
        "key",
        "URL asks for a key, and none is set",
        "set HINDSIGHT_API_TOKEN",
    ),
}


@pytest.mark.parametrize("kind", ILL)
def test_each_illness_has_its_own_words_and_mend(
    examined: Callable[..., Any], served: dict[str, Answer], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The check that it belongs to says what is wrong, and what to do."""
    ill, check, what, mend = ILL[kind]
    if kind == "silence":
        monkeypatch.setenv("HINDSIGHT_REQUEST_TIMEOUT_MS", "300")
    served.update(ill)
    found = examined()[check]
    url = os.environ["HINDSIGHT_API_URL"]
    assert (found["state"], found["what"].replace(url, "URL"), found["mend"]) == ("problem", what, mend)


@pytest.mark.parametrize("token", ["wrong", "right"])
def test_a_key_is_tried_by_a_call_that_needs_one(
    examined: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, repository: Path, token: str
) -> None:
    """A wrong key is told from none."""
    del repository

    def answer(request: ScriptedRequest) -> Answer:
        needs_key = "banks" in request.path
        if needs_key and request.headers.get("authorization") != "Bearer right":
            return WRONG_KEY
        return WELL[request.path.rpartition("/")[2]]

    monkeypatch.setenv("HINDSIGHT_API_TOKEN", token)
    with ScriptedServer(handler=answer) as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        found = examined()["key"]
    if token == "right":
        assert (found["state"], found["what"]) == ("ok", "it was accepted")
    else:
        assert found["what"] == f"{server.url} refuses the key (401: Authentication failed: Invalid API key)"
        assert found["mend"] == "set HINDSIGHT_API_TOKEN to one that it takes"


@pytest.mark.parametrize(
    ("prefix", "given"),
    [("", "/mem"), ("", "/v1/default"), ("/mem", "/mem/v1"), ("/mem", "/mem/a/b/c")],
)
def test_a_path_too_much_is_found_out(
    examined: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, repository: Path, prefix: str, given: str
) -> None:
    """Where the API is on that very server under a shorter path, that is the mend; no key goes there to find out."""
    del repository

    def answer(request: ScriptedRequest) -> Answer:
        if request.path in {f"{prefix}/v1/version", f"{prefix}/version"}:
            return WELL["version"]
        return WRONG_KEY if request.path == f"{prefix}/v1/default/banks" else Reply(404, json={"detail": "Not Found"})

    monkeypatch.setenv("HINDSIGHT_API_TOKEN", "the-token")
    with ScriptedServer(handler=answer) as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url + given)
        found = examined()["server"]
        found_by = [request for request in server.requests if request.path == f"{prefix}/v1/default/banks"]
    assert found["what"] == (
        f"there is no Hindsight API under {server.url}{given}, but there is one under {server.url}{prefix}"
    )
    assert found["mend"] == f"set HINDSIGHT_API_URL={server.url}{prefix}"
    assert ["authorization" in request.headers for request in found_by] == [False]


def test_a_path_on_a_server_without_the_api_is_said_so(
    examined: Callable[..., Any], served: dict[str, Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no shorter path has it either, only the URL can be doubted."""
    served.clear()
    monkeypatch.setenv("HINDSIGHT_API_URL", os.environ["HINDSIGHT_API_URL"] + "/a/b")
    assert examined()["server"]["mend"] == "check HINDSIGHT_API_URL, above all its path"


def test_a_gateway_that_hides_health_is_a_warning(examined: Callable[..., Any], served: dict[str, Answer]) -> None:
    """The API works without it."""
    del served["health"]
    assert examined()["health"]["state"] == "warning"


def test_connections_that_fail_are_told_apart(
    examined: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    """Nobody listening, a name unknown and a black hole are three things."""
    del repository
    monkeypatch.setenv("HINDSIGHT_REQUEST_TIMEOUT_MS", "2300")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refusing = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with black_hole() as hole:
        said = []
        for url in (refusing, "http://hindsight.invalid", hole):
            monkeypatch.setenv("HINDSIGHT_API_URL", url)
            said.append(examined()["server"]["what"].replace(url, "URL"))
    assert said == [
        "nothing listens at URL (connection refused)",
        "the host name in URL is not known",
        "URL does not answer attempts to connect",
    ]


def test_what_an_old_server_lacks_is_a_warning(examined: Callable[..., Any], served: dict[str, Answer]) -> None:
    """The version is shown with what is missing."""
    served["version"] = Reply(json={"api_version": "0.9.1"})
    found = examined()["version"]
    assert (found["state"], found["mend"]) == ("warning", "bring the server up to date")
    assert found["what"] == (
        "0.9.1 has not, or is not known to have: bank pages, content blocks, long query is cut, missing bank is 404"
    )


@pytest.mark.usefixtures("served")
def test_a_value_that_cannot_be_used_is_a_warning(
    examined: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is part of the report, and the default that stands is used."""
    monkeypatch.setenv("HINDSIGHT_RECALL_TIMEOUT_MS", "nan")
    found = examined()["settings"]
    assert found["state"] == "warning"
    assert found["what"].startswith("HINDSIGHT_RECALL_TIMEOUT_MS='nan' from environment is not used")


@pytest.mark.usefixtures("served")
def test_no_server_is_asked_that_was_not_meant(examined: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL that cannot be used is the problem, not what answers at the default."""
    monkeypatch.setenv("HINDSIGHT_API_URL", "localhost:8888")
    found = examined()["server"]
    assert (found["state"], found["what"]) == ("problem", "not asked: HINDSIGHT_API_URL cannot be used as it is")


@pytest.mark.usefixtures("served")
def test_switched_off_is_said_and_nothing_is_asked(
    examined: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is a state and no fault."""
    monkeypatch.setenv("HINDSIGHT_DISABLED", "1")
    found = examined("--write")["server"]
    assert (found["state"], found["what"]) == (
        "warning",
        "not asked: bankclient is switched off here, by environment HINDSIGHT_DISABLED",
    )


@pytest.mark.usefixtures("served")
def test_a_folder_without_a_project_is_a_warning(examined: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The mend is named."""
    monkeypatch.chdir("/")
    found = examined()["project"]
    assert found["state"] == "warning"
    assert "HINDSIGHT_PROJECT" in found["what"]


def test_write_tries_the_whole_way_and_leaves_nothing(process: Callable[..., Any], embedded: Path) -> None:
    """On the embedded bank: retained, recalled, deleted, and the bank of the trial is gone."""
    del embedded
    done = process("doctor", "--write")
    assert (done.code, done.err) == (0, "")
    for line in (
        "ok  retain       a text was stored, in a bank made for this",
        "ok  recall       it was found",
        "ok  delete       it was deleted",
    ):
        assert line in done.out.splitlines()
    assert "not there yet" in process("status").out


class Trial:
    """A server that takes the doctor's trial, but for one kind of request."""

    def __init__(self, fails: str) -> None:
        self.fails = fails
        self.deleted: list[str] = []

    def __call__(self, request: ScriptedRequest) -> Answer:
        """Answer one request."""
        last = request.path.rpartition("/")[2]
        kind = {"memories": "retain", "recall": "recall", "trial": "delete"}.get(last, "operation")
        if request.method == "DELETE" and last.startswith("bankclient-doctor-"):
            kind = "clean-up"
            self.deleted.append(last)
        if kind == self.fails:
            return Reply(500, json={"detail": "no"})
        answers: dict[str, Answer] = {
            "retain": Reply(json={"success": True, "async": True, "operation_id": "1"}),
            "recall": Reply(json={"results": [{"id": "1", "text": "pebbles"}] if self.fails != "nothing" else []}),
            "operation": Reply(json={"operation_id": "1", "status": "completed"}),
        }
        return WELL.get(last) or answers.get(kind) or Reply(json={"success": True})


@pytest.mark.parametrize(
    ("fails", "tried"),
    [
        ("retain", {"retain": "problem"}),
        ("recall", {"retain": "ok", "recall": "problem"}),
        ("nothing", {"retain": "ok", "recall": "problem"}),
        ("delete", {"retain": "ok", "recall": "ok", "delete": "problem"}),
        ("clean-up", {"retain": "ok", "recall": "ok", "delete": "ok", "clean-up": "problem"}),
    ],
)
def test_a_trial_that_fails_is_cleaned_up(
    examined: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, repository: Path, fails: str, tried: dict[str, str]
) -> None:
    """The step that failed is the last, and the bank is deleted whatever happened, or named where it could not be."""
    del repository
    trial = Trial(fails)
    with ScriptedServer(handler=trial) as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        checks = examined("--write")
    written = {
        name: check["state"] for name, check in checks.items() if name in {"retain", "recall", "delete", "clean-up"}
    }
    assert written == tried
    banks = {request.path.split("/")[4] for request in server.requests if "bankclient-doctor-" in request.path}
    assert set(trial.deleted) == banks
    assert len(banks) == 1
    if fails == "clean-up":
        assert banks.pop() in checks["clean-up"]["what"]


def test_ctrl_c_in_a_trial_cleans_up(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    """A person who gives up waiting leaves nothing behind either."""
    del repository
    trial = Trial("")

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bankclient.client.sync.operations.Operations.wait", interrupt)
    with ScriptedServer(handler=trial) as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        done = cli("doctor", "--write")
    assert (done.code, done.out) == (130, "")
    assert len(trial.deleted) == 1


@pytest.mark.usefixtures("served")
def test_without_write_nothing_is_written(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor only reads unless it is told otherwise."""
    with ScriptedServer(handler=Trial("")) as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        cli("doctor")
        assert {request.method for request in server.requests} == {"GET"}
