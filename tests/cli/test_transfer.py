"""`bankclient export` and `bankclient import`: the files they make and read, what they print, and kill -9 between."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from bankclient import BankClient, MemoryItem
from bankclient.embedded import EmbeddedServer
from bankclient.embedded.serving import BankServer
from bankclient.testing.answers import Reply
from bankclient.testing.scripted import ScriptedRequest, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def filled(embedded: Path) -> Path:
    """Let the embedded bank hold 120 facts, one of them invalidated; give the folder."""
    with BankClient(folder=embedded) as client:
        client.retain_many([MemoryItem(f"fact {each}", document_id=str(each)) for each in range(120)])
        memory = next(client.memories.iterate(document_id="7"))
        client.memories.invalidate(memory.id, reason="no")
    return embedded


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BankServer]:
    """Give another embedded bank, at an address."""
    with BankServer(tmp_path / "new" / "embedded.sqlite3") as server:
        yield server


def texts(url: str, state: str = "valid") -> list[str]:
    """Return the memories that a server has in the bank `bankclient`, in order of their text."""
    listed = httpx.get(f"{url}/v1/default/banks/bankclient/memories/list?limit=1000&state={state}").json()
    return sorted(each["text"] for each in listed["items"])


FACTS = sorted(f"fact {each}" for each in range(120) if each != 7)


def test_there_and_back(cli: Callable[..., Any], filled: Path, server: BankServer) -> None:
    """What is exported to a file is imported from it, once, and the summary says how much."""
    del filled
    done = cli("export", "memories.jsonl")
    summary = "exported 1 banks, 120 documents, 120 memories (0 edited, 1 invalidated)"
    assert (done.code, done.out, done.err) == (0, f"ok: {summary} to memories.jsonl\n", "")
    done = cli("import", "memories.jsonl", "--to", server.url)
    assert (done.code, done.out, done.err) == (
        0,
        "ok: 120 documents stored, 0 there already, 1 edits and invalidations done again\n",
        "",
    )
    assert texts(server.url) == FACTS
    assert texts(server.url, "invalidated") == ["fact 7"]
    done = cli("import", "memories.jsonl", "--to", server.url)
    assert (done.code, done.out) == (0, "ok: 0 documents stored, 120 there already\n")


def test_through_a_pipe(process: Callable[..., Any], filled: Path, server: BankServer) -> None:
    """Without a file the export is on stdout, with nothing else; `-` reads it from stdin."""
    exported = process("export", cwd=filled)
    assert exported.code == 0
    assert [json.loads(line)["kind"] for line in exported.out.splitlines()] == [
        "header",
        "bank",
        *["document"] * 120,
        "end",
    ]
    assert exported.err == "exported 1 banks, 120 documents, 120 memories (0 edited, 1 invalidated)\n"
    done = process("import", "-", "--to", server.url, stdin=exported.out.encode(), cwd=filled)
    assert (done.code, done.err) == (0, "")
    assert texts(server.url) == FACTS


def test_the_file_is_private_and_whole(cli: Callable[..., Any], filled: Path) -> None:
    """It is readable by its owner alone, takes its name at the end, and replaces another only when asked to."""
    assert cli("export", "memories.jsonl").code == 0
    file = filled / "memories.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("mine")
    done = cli("export", "memories.jsonl")
    assert (done.code, done.err) == (
        1,
        "error: memories.jsonl is there already; add --force to replace it, or choose another name\n",
    )
    assert file.read_text() == "mine"
    assert cli("export", "memories.jsonl", "--bank", "nothing", "--force").code == 1
    assert file.read_text() == "mine"
    assert cli("export", "memories.jsonl", "--force").code == 0
    assert file.read_text().startswith('{"kind":"header"')
    assert [each.name for each in filled.iterdir() if each.name != ".git"] == ["memories.jsonl"]


def test_without_a_bank_there_is_no_file(cli: Callable[..., Any], embedded: Path) -> None:
    """Where nothing was ever retained, that is said, and neither a file nor a bank is made."""
    done = cli("export", "memories.jsonl")
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(r"error: there is no embedded bank yet: .* the first retain makes it\n", done.err)
    assert [each.name for each in embedded.iterdir()] == [".git"]
    assert not list(Path.home().rglob("*.sqlite3"))


def test_a_folder_that_is_not_there_is_one_line(cli: Callable[..., Any], filled: Path) -> None:
    """The file that cannot be made is named."""
    del filled
    done = cli("export", "nowhere/memories.jsonl")
    assert (done.code, done.err) == (1, "error: nowhere/memories.jsonl cannot be made: No such file or directory\n")
    done = cli("import", "nowhere.jsonl")
    assert (done.code, done.err) == (1, "error: No such file or directory: nowhere.jsonl\n")


def test_what_fails_is_told_with_its_reason_and_the_exit_code(
    cli: Callable[..., Any], filled: Path, server: BankServer
) -> None:
    """Broken lines are on stderr by number, the rest is stored, and the exit code is 1."""
    cli("export", "memories.jsonl")
    file = filled / "memories.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    lines[5] = lines[5][:40] + "\n"
    file.write_text("".join(lines[:-1]))
    done = cli("import", "memories.jsonl", "--to", server.url)
    assert done.code == 1
    assert done.out == (
        "warning: 119 documents stored, 0 there already, 1 edits and invalidations done again, 2 failed\n"
    )
    first, second = done.err.splitlines()
    assert first.startswith("error: line 6: ")
    assert second == "error: the file, after line 122: it is not whole: lines are missing; export it again"


def test_of_many_failures_some_are_told(cli: Callable[..., Any], filled: Path, server: BankServer) -> None:
    """Twenty are named, the others counted."""
    cli("export", "memories.jsonl")
    file = filled / "memories.jsonl"
    file.write_text("".join(line.replace('"document_id"', '"id"') + "\n" for line in file.read_text().splitlines()))
    done = cli("import", "memories.jsonl", "--to", server.url)
    assert done.code == 1
    assert len(done.err.splitlines()) == 21
    assert done.err.splitlines()[-1] == "warning: 100 more failed"


def test_a_newer_file_and_a_foreign_one_are_refused(cli: Callable[..., Any], filled: Path) -> None:
    """One line says what it is, and nothing is sent."""
    (filled / "newer").write_text('{"format": "bankclient-export", "version": 9}\n')
    done = cli("import", "newer", "--to", "http://127.0.0.1:9")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "format version 9, and this bankclient knows 1: upgrade bankclient" in done.err
    done = cli("import", ".git/HEAD", "--to", "http://127.0.0.1:9")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "no export of bankclient" in done.err


def test_a_server_that_is_away_is_one_line_that_says_how_to_go_on(cli: Callable[..., Any], filled: Path) -> None:
    """The error names the server; how far it came is beside it."""
    del filled
    cli("export", "memories.jsonl")
    done = cli("import", "memories.jsonl", "--to", "http://127.0.0.1:9")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith("error: nothing listens at http://127.0.0.1:9 (connection refused)")
    assert done.err.endswith("so far 0 documents stored, 0 there already; run it again to go on\n")


def test_the_key_goes_to_the_server_that_was_named(
    cli: Callable[..., Any], filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--to` takes the key of the environment, and never one of `config.toml` that is for another server."""
    del filled
    cli("export", "memories.jsonl")
    config = Path.home() / ".config" / "bankclient" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('api_url = "http://127.0.0.1:9"\napi_token = "of-the-file"\n')
    refusal = Reply(401, json={"detail": "Authentication failed: Invalid API key"})
    with ScriptedServer(handler=lambda _: refusal) as scripted:
        done = cli("import", "memories.jsonl", "--to", scripted.url)
        assert done.code == 1
        assert "api_token from config.toml is not sent to the URL that was given elsewhere" in done.err
        assert "refuses the key" in done.err
        monkeypatch.setenv("HINDSIGHT_API_TOKEN", "of-the-shell")
        cli("import", "memories.jsonl", "--to", scripted.url)
        assert [request.headers.get("authorization") for request in scripted.requests] == [None, "Bearer of-the-shell"]


def test_banks_are_renamed_and_mistakes_in_that_are_said(
    cli: Callable[..., Any], filled: Path, server: BankServer
) -> None:
    """`--bank OLD=NEW` is what it says; anything else is a mistake with its mend."""
    del filled
    cli("export", "memories.jsonl")
    assert cli("import", "memories.jsonl", "--to", server.url, "--bank", "bankclient=mine=yours").code == 0
    banks = httpx.get(f"{server.url}/v1/default/banks").json()["banks"]
    assert [bank["bank_id"] for bank in banks] == ["mine=yours"]
    for given, said in (("mine", "write OLD=NEW"), ("=mine", "write OLD=NEW"), ("x=y", "there is no bank 'x'")):
        done = cli("import", "memories.jsonl", "--to", server.url, "--bank", given)
        assert (done.code, said in done.err) == (1, True), done.err


def test_switched_off_nothing_is_sent(
    cli: Callable[..., Any], filled: Path, server: BankServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has switched bankclient off can still export, and imports nothing."""
    del filled
    monkeypatch.setenv("HINDSIGHT_DISABLED", "1")
    assert cli("export", "memories.jsonl").code == 0
    for options in ((), ("--to", server.url)):
        done = cli("import", "memories.jsonl", *options)
        assert (done.code, "switched off here" in done.err) == (1, True)
    assert httpx.get(f"{server.url}/v1/default/banks").json()["banks"] == []


def test_on_a_terminal_there_is_a_bar(terminal: Callable[..., Any], filled: Path, server: BankServer) -> None:
    """A person sees how far it is, and at the end only the summary."""
    del filled
    assert "exported" in terminal("export", "memories.jsonl").out
    done = terminal("import", "memories.jsonl", "--to", server.url)
    assert done.code == 0
    assert "importing" in done.out
    assert "120/120" in done.out
    assert "ok:" in done.out.splitlines()[-1]


def test_killed_in_the_middle_it_goes_on_the_next_time(
    command: list[str], cli: Callable[..., Any], filled: Path, tmp_path: Path
) -> None:
    """A kill -9 between two requests loses nothing and doubles nothing, and what was forgotten stays so."""
    del filled
    cli("export", "memories.jsonl")
    reached, killed = threading.Event(), threading.Event()
    with EmbeddedServer(tmp_path / "new" / "embedded.sqlite3") as bank:
        retains: list[ScriptedRequest] = []

        def answer(request: ScriptedRequest) -> Reply:
            reply = bank.answer(request.method, request.target, request.body, request.headers)
            if request.method == "POST":
                retains.append(request)
                if len(retains) == 2:
                    reached.set()
                    killed.wait(30)  # stored, and the answer is never read
            return Reply(reply.status, headers=reply.headers, body=reply.body)

        with ScriptedServer(handler=answer) as scripted:
            with subprocess.Popen([*command, "import", "memories.jsonl", "--to", scripted.url]) as process:
                assert reached.wait(30)
                process.kill()
            killed.set()
            assert process.returncode == -9
            done = cli("import", "memories.jsonl", "--to", scripted.url)
            assert (done.code, done.out) == (
                0,
                "ok: 20 documents stored, 100 there already, 1 edits and invalidations done again\n",
            )
            assert texts(scripted.url) == FACTS
            assert texts(scripted.url, "invalidated") == ["fact 7"]


def test_broken_off_by_hand_it_says_how_far_it_came(
    command: list[str], cli: Callable[..., Any], filled: Path, tmp_path: Path
) -> None:
    """Ctrl-C is exit code 130, with one line that says what is stored."""
    del filled
    cli("export", "memories.jsonl")
    reached, broken = threading.Event(), threading.Event()
    with EmbeddedServer(tmp_path / "new" / "embedded.sqlite3") as bank:

        def answer(request: ScriptedRequest) -> Reply:
            if request.method == "POST":
                reached.set()
                broken.wait(30)
            reply = bank.answer(request.method, request.target, request.body, request.headers)
            return Reply(reply.status, headers=reply.headers, body=reply.body)

        with ScriptedServer(handler=answer) as scripted:
            with subprocess.Popen(
                [*command, "import", "memories.jsonl", "--to", scripted.url],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ,
            ) as process:
                assert reached.wait(30)
                process.send_signal(2)
                out, err = process.communicate(timeout=30)
            broken.set()
    assert (process.returncode, out) == (130, "")
    assert err == "warning: so far 0 documents stored, 0 there already; run it again to go on\n"
