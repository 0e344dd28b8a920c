"""`bankclient retain`: what is sent, what is said about it, and what is refused before anything is sent."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from bankclient.store.database import STORE_FILE, Database
from bankclient.store.outbox import Limits, SqliteOutbox
from bankclient.testing.answers import Drip, Reply, Reset, Silence, gateway_page
from bankclient.testing.scripted import ScriptedServer

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator

    from bankclient.testing.answers import Answer
    from bankclient.testing.scripted import ScriptedRequest


def accept(request: ScriptedRequest) -> Answer:
    """Answer a retain as a server that goes on working in the background, and its operation as completed."""
    if request.method == "GET":
        operation = request.path.rpartition("/")[2]
        return Reply(json={"operation_id": operation, "status": "completed"})
    sent = request.json()
    return Reply(json={"success": True, "async": True, "items_count": 1, "operation_id": sent["operation_id"]})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, repository: Path) -> Iterator[ScriptedServer]:
    """Give a server that takes every retain, asked from the repository."""
    del repository
    with ScriptedServer(handler=accept) as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        yield server


def test_a_text_is_sent_in_the_background_under_an_id_of_its_own(
    cli: Callable[..., Any], server: ScriptedServer
) -> None:
    """One request files it under the project, as a document named after it, and the operation's id is printed."""
    done = cli("retain", "The port is 4711.", "--tag", "infra", "--context", "ops")
    (request,) = server.requests
    sent = request.json()
    operation = str(UUID(sent["operation_id"]))
    assert request.path == "/v1/default/banks/bankclient/memories"
    assert sent["async"] is True
    (item,) = sent["items"]
    assert item.pop("document_id").startswith("fact-")
    assert item == {"content": "The port is 4711.", "tags": ["infra", "project:api"], "context": "ops"}
    assert (done.code, done.err) == (0, "")
    assert done.out == f"accepted: bank bankclient, project api, tags project:api infra, operation {operation}\n"


def test_the_same_text_is_one_document(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """Said again, it takes the place of what was said; each time it is stored is an operation of its own."""
    for _ in range(2):
        cli("retain", "The port is 4711.", "--wait")
    sent = [request.json() for request in server.requests if request.method == "POST"]
    assert len({each["operation_id"] for each in sent}) == 2
    assert len({each["items"][0]["document_id"] for each in sent}) == 1


def test_the_same_text_is_queued_once(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """While the first is on its way the second is the first, which is said; in two banks they are two."""
    cli("retain", "The port is 4711.")
    done = cli("retain", "The port is 4711.")
    assert (done.code, done.err) == (0, "the same text is queued already\n")
    assert cli("retain", "The port is 4711.", "--bank", "team").err == ""
    assert [request.method for request in server.requests].count("POST") == 2


def test_the_whole_story_as_json(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """--json says how far it is, and where it went."""
    said = cli("retain", "x", "--document", "notes", "--json").json()
    assert said == {
        "status": "accepted",
        "bank": "bankclient",
        "project": "api",
        "tags": ["project:api"],
        "document_id": "notes",
        "operation_id": server.requests[0].json()["operation_id"],
        "queue_id": 1,
    }


def test_a_text_for_all_projects_has_no_tag(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """--scope global files it beside the projects."""
    done = cli("retain", "x", "--scope", "global")
    assert server.requests[0].json()["items"][0]["tags"] == []
    assert done.out.startswith("accepted: bank bankclient, all projects, operation ")


@pytest.mark.parametrize(
    ("scoping", "arguments", "bank", "said"),
    [
        ("per-project", [], "bankclient-api", "bank bankclient-api, project api, "),
        ("per-project", ["--scope", "global"], "bankclient", "bank bankclient, all projects, "),
        ("per-project", ["--bank", "team"], "team", "bank team, all projects, "),
        ("per-project-tagged", ["--bank", "team"], "team", "bank team, project api, tags project:api, "),
        ("per-project-tagged", ["--bank", ".."], "%2E%2E", "bank .., project api, "),
        ("global", [], "bankclient", "bank bankclient, all projects, "),
    ],
)
def test_the_scoping_says_where_it_goes(
    cli: Callable[..., Any],
    server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    *,
    scoping: str,
    arguments: list[str],
    bank: str,
    said: str,
) -> None:
    """What is printed is where it was really sent; --bank is a bank's exact name, and climbs nowhere."""
    monkeypatch.setenv("HINDSIGHT_SCOPING", scoping)
    done = cli("retain", "x", *arguments)
    assert server.requests[0].path == f"/v1/default/banks/{bank}/memories"
    assert done.out.startswith(f"accepted: {said}")


def test_wait_returns_when_it_is_stored(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """--wait asks for the operation that was sent, in the bank that it was sent to."""
    done = cli("retain", "x", "--wait", "--bank", "team")
    sent, asked, *_ = server.requests
    assert asked.path == f"/v1/default/banks/team/operations/{sent.json()['operation_id']}"
    assert (done.code, done.out.partition(":")[0]) == (0, "stored")


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (
            {"status": "failed", "error_message": "Traceback:\n  x\nValueError: no model"},
            "kept",
            "the server took it and failed to store it: ValueError: no model; the next retain or `bankclient flush`",
        ),
        (
            {"status": "pending"},
            "accepted",
            "it is not stored after 1 s, and URL goes on; `bankclient status` shows what is pending",
        ),
        (
            {"status": "cancelled"},
            "dead",
            "it was given up: its operation was cancelled on the server",
        ),
    ],
)
def test_wait_says_when_it_is_not_stored(
    cli: Callable[..., Any],
    server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    *,
    answer: dict[str, str],
    status: str,
    said: str,
) -> None:
    """An operation that failed, one that takes too long and one that was cancelled are failures, each with its word."""
    monkeypatch.setenv("HINDSIGHT_RETAIN_TIMEOUT_MS", "1000")
    operation = str(UUID(int=1))
    sent = {"success": True, "async": True, "items_count": 1, "operation_id": operation}
    server.then(Reply(json=sent), *[Reply(json={"operation_id": operation, **answer})] * 20)
    done = cli("retain", "x", "--wait")
    assert (done.code, done.out.partition(":")[0]) == (1, status)
    assert said in done.err.replace(server.url, "URL")


def test_parts_without_facts_are_a_warning(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """An operation can be completed though the server's model failed on parts of the text."""
    operation = str(UUID(int=1))
    accepted = {"success": True, "async": True, "items_count": 1, "operation_id": operation}
    completed = {"operation_id": operation, "status": "completed", "result_metadata": {"extraction_errors_count": 2}}
    server.then(Reply(json=accepted), *[Reply(json=completed)] * 2)
    done = cli("retain", "x", "--wait")
    assert done.code == 0
    assert done.err == ("warning: from 2 parts of the text no facts could be drawn; the server's log says why\n")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Silence(), "URL gave no answer to retain within 0.2 s"),
        (Drip(Reply(json={}), every=0.05, head=True), "URL gave no answer to retain within 0.2 s"),
        (Reset(), "URL broke off its answer to retain"),
        (Reply(401, json={"detail": "Invalid API key"}), "URL refuses the key (401: Invalid API key)"),
        (Reply(503, json={"detail": "full"}, headers={"retry-after": "60"}), "URL is busy (503: full)"),
        (Reply(422, json={"detail": "too odd"}), "URL refuses the retain (422: too odd)"),
        (gateway_page(200), "what answers at URL is not a Hindsight server"),
    ],
)
def test_what_the_server_does_not_take_is_kept(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, *, answer: Answer, said: str
) -> None:
    """It was acknowledged, so the exit code is 0, and why it is not there yet is a warning; --wait makes it a failure.

    It goes later, under the id that it had.
    """
    monkeypatch.setenv("HINDSIGHT_RETAIN_TIMEOUT_MS", "200")
    server.then(answer)
    done = cli("retain", "x")
    assert (done.code, done.out) == (0, "kept: bank bankclient, project api, tags project:api, queued as 1\n")
    warning = done.err.replace(server.url, "URL")
    assert warning.startswith("warning: it is kept, and not sent yet: ")
    assert said in warning
    assert warning.endswith("; the next retain or `bankclient flush` tries again\n")
    server.then(*[answer] * 6)
    done = cli("retain", "y", "--wait")
    assert (done.code, done.out.partition(":")[0], done.err.partition(":")[0]) == (1, "kept", "error")
    assert len({request.json()["operation_id"] for request in server.requests if b'"x"' in request.body}) == 1


@pytest.mark.parametrize("trouble", ["bound", "disk"])
def test_a_full_queue_and_a_full_disk_take_nothing_more(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """Either is one clear line; what was kept before is there, and goes when there is a server again."""
    server.then(Reset())
    assert cli("retain", "before").out.startswith("kept: ")
    with monkeypatch.context() as patch:
        if trouble == "bound":
            patch.setattr("bankclient.cli.store.SqliteOutbox", partial(SqliteOutbox, limits=Limits(items=1)))
        else:
            prepare = Database._prepare

            def crowded(self: Database, connection: sqlite3.Connection) -> None:
                prepare(self, connection)
                connection.execute("PRAGMA max_page_count = 1")  # no page more than there are

            patch.setattr(Database, "_prepare", crowded)
        done = cli("retain", "more " * 10_000)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    said = {"bound": "the outbox holds 1 items", "disk": "cannot grow: its disk is full; free some space"}
    assert said[trouble] in done.err
    assert cli("flush").out == "stored: 1 item\n"


def test_ctrl_c_says_that_it_is_kept(command: list[str], server: ScriptedServer) -> None:
    """Whoever does not wait for the server need not say it again."""
    server.then(Silence())
    with subprocess.Popen([*command, "retain", "x", "--wait"], stderr=subprocess.PIPE) as waiting:
        server.wait_for(lambda server: len(server.requests) == 1)
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=30)
    said = b"it is kept; the next retain or `bankclient flush` sends what is not there yet\n"
    assert (waiting.returncode, err) == (130, said)
    done = subprocess.run([*command, "flush"], capture_output=True, check=False)
    assert done.stdout == b"stored: 1 item\n"


def test_what_was_kept_goes_with_the_next_retain(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order in which it was said, whatever pause was on, and to where it was meant to go."""
    monkeypatch.setenv("HINDSIGHT_API_URL", "http://127.0.0.1:9")
    assert cli("retain", "elsewhere").code == 0
    monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
    server.then(*[Reset()] * 2)
    for text in ("first", "second"):
        assert cli("retain", text).out.startswith("kept: ")
    assert cli("retain", "third", "--wait").out.startswith("stored: ")
    sent = [each["content"] for request in server.requests if request.body for each in request.json()["items"]]
    assert sent[-3:] == ["first", "second", "third"]
    assert "elsewhere" not in sent


def test_a_document_gets_its_texts_in_order(cli: Callable[..., Any], server: ScriptedServer) -> None:
    """What is said later of one document is sent when what was said before is stored, so that it stays."""
    server.then(*[Reset()] * 2)
    for text in ("one", "two"):
        cli("retain", text, "--document", "notes")
    assert cli("retain", "three", "--document", "notes", "--wait").out.startswith("stored: ")
    kinds = [request.method for request in server.requests[2:]]
    assert kinds[:6] == ["POST", "GET"] * 3
    assert [request.json()["items"][0]["content"] for request in server.requests[2:] if request.body] == [
        "one",
        "two",
        "three",
    ]


def test_what_was_forgotten_is_stored_again_only_if_the_person_says_so(
    cli: Callable[..., Any], terminal: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for on a terminal, told elsewhere, and --yes says it beforehand."""
    monkeypatch.setenv("HINDSIGHT_STATE_DIR", str(Path.home() / "state"))
    document = cli("retain", "x", "--wait", "--json").json()["document_id"]
    with closing(Database(Path.home() / "state" / STORE_FILE)) as database:
        SqliteOutbox(database).forget(server.url, "bankclient", document, now=1_000_000_000)
    done = cli("retain", "x")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: This was forgotten on 2001-09-09. Store it again? Nobody is there to answer; say it with --yes\n"
    )
    asked = terminal("retain", "x", typed=b"n\n")
    assert (asked.code, "nothing was kept" in asked.out) == (1, True)
    assert cli("retain", "x", "--yes", "--wait").out.startswith("stored: ")


def test_switches_for_what_happens_by_itself_do_not_concern_it(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HINDSIGHT_AUTO_RETAIN is about conversations, and this was said by a person."""
    monkeypatch.setenv("HINDSIGHT_AUTO_RETAIN", "false")
    assert cli("retain", "x").out.startswith("accepted: ")
    assert len(server.requests) == 1


def test_a_store_that_cannot_be_written_is_said(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What could not be kept was not acknowledged, and nothing was sent."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / STORE_FILE).write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("HINDSIGHT_STATE_DIR", str(tmp_path / "state"))
    done = cli("retain", "x")
    assert (done.code, done.out) == (1, "")
    assert "is not an SQLite database; move it away" in done.err
    assert server.requests == ()


@pytest.mark.parametrize(
    ("stdin", "content"),
    [
        (b"one\ntwo\n", "one\ntwo\n"),
        (b"\xef\xbb\xbfwith a mark", "with a mark"),
        (b"nul \0 inside", "nul  inside"),
        ("zażółć 💡".encode(), "zażółć 💡"),
    ],
)
def test_a_text_comes_from_stdin(cli: Callable[..., Any], server: ScriptedServer, stdin: bytes, content: str) -> None:
    """`-` reads UTF-8 from stdin, to its end."""
    assert cli("retain", "-", stdin=stdin).code == 0
    assert server.requests[0].json()["items"][0]["content"] == content


def test_ten_megabytes_on_stdin_are_one_text(process: Callable[..., Any], server: ScriptedServer) -> None:
    """A large text is sent whole."""
    text = "The port is 4711. " * (10 * 2**20 // 18)
    done = process("retain", "-", stdin=text.encode())
    assert (done.code, done.err) == (0, "")
    assert server.requests[0].json()["items"][0]["content"] == text


def test_more_than_a_memory_can_be_is_refused(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What never ends is not read to its end."""
    monkeypatch.setattr("bankclient.cli.retain._LARGEST", 2**20)
    done = cli("retain", "-", stdin=b"x" * (2**20 + 1))
    assert (done.code, done.err) == (1, "error: stdin holds more than 1 MiB; retain it in parts\n")
    assert server.requests == ()


def test_bytes_that_are_no_text_are_replaced_and_said(process: Callable[..., Any], server: ScriptedServer) -> None:
    """Invalid UTF-8 in an argument or on stdin is retained as U+FFFD, with one warning, everywhere it may stand."""
    warning = "warning: the text is not UTF-8 throughout; what is not is retained as U+FFFD\n"
    for done in (
        process("retain", b"caf\xe9", "--tag", b"t\xff", "--context", b"c\xff"),
        process("retain", "-", stdin=b"caf\xe9"),
    ):
        assert (done.code, done.err) == (0, warning)
    first, second = (request.json()["items"][0] for request in server.requests)
    assert (first["content"], second["content"]) == ("caf\ufffd", "caf\ufffd")
    assert (first["tags"][1], first["context"]) == ("t\ufffd", "c\ufffd")
    refused = process("retain", "x", "--document", b"d\xff")  # mended, it might be another document's name
    assert (refused.code, "document_id holds a NUL or a lone surrogate" in refused.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        ([""], b"", "the text is empty; give some to retain"),
        ([" \t\n"], b"", "the text is empty; give some to retain"),
        (["-"], b"", "the text is empty; give some to retain"),
        (["-"], b"\0 \0\n", "the text is empty; give some to retain"),
        (
            ["x", "--bank", "a/b"],
            b"",
            "the bank's name is 'a/b': a bank name holds no '/'; write '-' or '.' in its place",
        ),
        (
            ["x", "--bank", "_x"],
            b"",
            "the bank's name is '_x': a bank name cannot begin with '_', which the server keeps",
        ),
        (["x", "--bank", ""], b"", "the bank's name is '': a bank name cannot be empty"),
        (["x", "--bank", "b" * 193], b"", "a bank name has at most 192 bytes of UTF-8, and this has 193; shorten it"),
        (["x", "--bank", "a\nb"], b"", "the bank's name is 'a\\nb': a bank name holds no control characters"),
        (["x", "--tag", " "], b"", "--tag is empty; give it a value, or leave it out"),
        (["x", "--document", ""], b"", "--document is empty; give it a value, or leave it out"),
        (["x", "--tag", "project:other"], b"", "the tag 'project:other' would file this under another project"),
    ],
)
def test_what_no_server_would_take_is_refused_before_anything_is_sent(
    cli: Callable[..., Any], server: ScriptedServer, arguments: list[str], stdin: bytes, said: str
) -> None:
    """Each is one line that names the thing and the mend."""
    done = cli("retain", *arguments, stdin=stdin)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert said in done.err
    assert done.err.count("\n") == 1
    assert server.requests == ()


def test_secrets_are_taken_out_unless_the_person_says_otherwise(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key in the text does not leave the machine, and that is said; HINDSIGHT_REDACT=false leaves it in."""
    text = "the key is AKIAIOSFODNN7EXAMPLE, use it"
    done = cli("retain", text)
    assert (done.code, done.err) == (
        0,
        "warning: a secret was taken out of the text; HINDSIGHT_REDACT=false leaves it in\n",
    )
    cli("retain", "x", "--context", text)
    monkeypatch.setenv("HINDSIGHT_REDACT", "false")
    assert cli("retain", text).err == ""
    redacted, context, whole = (request.json()["items"][0] for request in server.requests)
    assert redacted["content"] == context["context"] == "the key is [redacted: aws key], use it"
    assert whole["content"] == text


def test_without_a_project_only_what_is_for_all_can_be_retained(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that belongs to no project the mend is named, and works."""
    monkeypatch.chdir("/")
    done = cli("retain", "x")
    assert (done.code, done.err) == (
        1,
        (
            "error: this folder belongs to no project (unresolved: the folder / has no name); add --scope global, or"
            " name the project with HINDSIGHT_PROJECT\n"
        ),
    )
    assert server.requests == ()
    assert cli("retain", "x", "--scope", "global").code == 0
    monkeypatch.setenv("HINDSIGHT_PROJECT", "Named")
    assert ", project named, tags project:named, " in cli("retain", "x").out


@pytest.mark.parametrize("name", ["retain", "recall", "reflect", "status"])
def test_switched_off_sends_nothing(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """HINDSIGHT_DISABLED stops every command that would send something, and says so."""
    monkeypatch.setenv("HINDSIGHT_DISABLED", "1")
    done = cli(name, *(["x"] if name != "status" else []))
    assert (done.code, done.out, done.err) == (
        1,
        "",
        (
            "error: bankclient is switched off here, by environment HINDSIGHT_DISABLED, and nothing was sent; take that"
            " away to switch it on\n"
        ),
    )
    assert server.requests == ()
    assert list(Path.home().iterdir()) == []


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HINDSIGHT_API_URL", "localhost:8888"),
        ("HINDSIGHT_API_URL", "http://host name"),
        ("HINDSIGHT_BANK_ID", "a/b"),
        ("HINDSIGHT_BANK_ID", "_x"),
        ("HINDSIGHT_BANK_ID", "b" * 193),
        ("HINDSIGHT_BANK_ID_PREFIX", "_p"),
        ("HINDSIGHT_SCOPING", "per-folder"),
        ("HINDSIGHT_PROJECT", "a\nb"),
    ],
)
def test_a_variable_that_says_where_to_and_cannot_be_used_stops_it(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """Nothing is sent to the default in place of what a person meant."""
    monkeypatch.setenv(variable, value)
    done = cli("retain", "x")
    warning, error = done.err.splitlines()
    assert done.code == 1
    assert warning.startswith(f"warning: {variable}")
    assert error == f"error: {variable} cannot be used as it is, and nothing was sent; mend it, or unset it"
    assert server.requests == ()


@pytest.mark.parametrize("form", ["{}/", " {} ", "{}/prefix", "{}/prefix/", "http://ann:secret@{host}"])
def test_the_forms_of_a_url_that_can_be_mended_are(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Spaces and closing slashes are dropped, a path is kept, a password is used and never shown."""
    url = form.format(server.url, host=server.url.removeprefix("http://"))
    monkeypatch.setenv("HINDSIGHT_API_URL", url)
    done = cli("retain", "x")
    assert (done.code, done.err) == (0, "")
    (request,) = server.requests
    prefix = "/prefix" if "prefix" in form else ""
    assert request.path == f"{prefix}/v1/default/banks/bankclient/memories"
    assert ("authorization" in request.headers) == ("ann" in form)


def test_ipv6_in_brackets_is_a_host(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, repository: Path) -> None:
    """`http://[::1]:PORT` is reached."""
    del repository
    with ScriptedServer(handler=accept, host="::1") as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        assert cli("retain", "x").code == 0


@pytest.mark.parametrize("key", ["the\nkey", "the\rkey", "the key\x00", "klucz-ż"])
def test_a_key_that_no_header_can_carry_is_said_and_not_sent(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """A broken key is a warning that does not show it."""
    if "\x00" in key:
        key = key.replace("\x00", "\x01")  # no environment can hold a NUL
    monkeypatch.setenv("HINDSIGHT_API_TOKEN", key)
    done = cli("retain", "x")
    assert done.err.startswith("warning: HINDSIGHT_API_TOKEN from environment is not used: a token is one line")
    assert key not in done.err
    assert "authorization" not in server.requests[0].headers


def test_a_key_is_trimmed_and_sent(
    cli: Callable[..., Any], server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newline behind a key, as files have it, does no harm."""
    monkeypatch.setenv("HINDSIGHT_API_TOKEN", "the-key\n")
    assert cli("retain", "x").err == ""
    assert server.requests[0].headers["authorization"] == "Bearer the-key"


def test_typed_text_is_read_to_its_end(terminal: Callable[..., Any], server: ScriptedServer) -> None:
    """On a terminal `-` says what it waits for."""
    done = terminal("retain", "-", typed=b"typed\n\x04")
    assert "reading the text from the terminal; Ctrl-D ends it" in done.out
    assert server.requests[0].json()["items"][0]["content"] == "typed\n"


def test_what_was_retained_is_in_the_bank(process: Callable[..., Any], embedded: Path) -> None:
    """The main job through processes, on the embedded bank: retained by one, recalled by the next."""
    del embedded
    stored = process("retain", "The staging port is 4711.", "--wait", "--json")
    assert json.loads(stored.out)["status"] == "stored"
    assert process("recall", "staging port").out == "The staging port is 4711.\n"
