"""The commands on a real server, from a shell: what they are for, end to end."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from bankclient import BankClient
from bankclient.testing.hindsight import HindsightServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.real

KEY = "the right key, with spaces"


@pytest.fixture
def real(real_url: str, bank: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the commands use a bank of this test's own on a real server, and give its name."""
    monkeypatch.setenv("HINDSIGHT_API_URL", real_url)
    monkeypatch.setenv("HINDSIGHT_BANK_ID", bank)
    return bank


@pytest.fixture(scope="session")
def locked_url(hindsight_python: str) -> Iterator[str]:
    """Give the URL of a real server that demands a key."""
    with HindsightServer(hindsight_python, key=KEY) as server:
        yield server.url


@pytest.fixture
def locked(locked_url: str, monkeypatch: pytest.MonkeyPatch, repository: Path) -> Iterator[str]:
    """Let the commands use a bank of this test's own on the server that demands a key; its name is given."""
    del repository
    name = f"test-{uuid.uuid4().hex}"
    monkeypatch.setenv("HINDSIGHT_API_URL", locked_url)
    monkeypatch.setenv("HINDSIGHT_BANK_ID", name)
    yield name
    with BankClient(locked_url, token=KEY) as client:
        client.banks.delete(name)


def test_a_fact_of_a_worktree_is_recalled_in_its_repository_and_in_no_other(
    process: Callable[..., Any], real: str, git: Callable[..., None], repository: Path, tmp_path: Path
) -> None:
    """The main job: filed in a linked worktree, found in the main checkout, and kept from another repository."""
    worktree, other = tmp_path / "fix-login", tmp_path / "other"
    git(repository, "worktree", "add", str(worktree))
    git(other, "init")
    stored = process("retain", "The staging port is 4711.", "--wait", cwd=worktree)
    assert stored.out.startswith(f"stored: bank {real}, project api, tags project:api, operation ")
    for options in ([], ["--tags-match", "any_strict"]):
        assert process("recall", "staging port", *options, cwd=repository).out == "The staging port is 4711.\n"
        elsewhere = process("recall", "staging port", *options, cwd=other)
        assert (elsewhere.code, elsewhere.out) == (0, "")
        assert elsewhere.err == f"nothing found in bank {real} for project other\n"


def test_what_was_kept_while_the_server_was_away_is_flushed(
    process: Callable[..., Any], real: str, real_url: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retained with nobody there, shown in the queue, moved to nowhere else, and stored once when it is back."""
    del repository
    accepted = process("retain", "The linter is ruff.")
    assert accepted.out.startswith(f"accepted: bank {real}, project api, ")
    done = process("flush")
    assert (done.code, done.out, done.err) == (0, "stored: 1 item\n", "")
    monkeypatch.setenv("HINDSIGHT_API_URL", "http://127.0.0.1:9")
    assert process("retain", "The formatter is ruff.").out.startswith("kept: ")
    monkeypatch.setenv("HINDSIGHT_API_URL", real_url)
    assert process("retain", "The linter is ruff.", "--wait").out.startswith("stored: ")
    listed = process("queue", "list", "--json").json()
    assert [(each["url"], each["state"]) for each in listed] == [("http://127.0.0.1:9", "waiting")]
    assert process("queue", "drop", "--all", "--yes").code == 0
    assert process("flush").code == 0
    assert process("recall", "linter").out == "The linter is ruff.\n"


def test_what_counts_for_all_projects_is_found_in_each_unless_it_is_strict(
    process: Callable[..., Any], real: str, git: Callable[..., None], repository: Path, tmp_path: Path
) -> None:
    """--scope global files untagged, which `any` finds everywhere and `any_strict` nowhere."""
    del real
    git(tmp_path / "other", "init")
    process("retain", "-", "--scope", "global", "--wait", stdin=b"Answer in English.", cwd=repository)
    assert process("recall", "answer in English", cwd=tmp_path / "other").out == "Answer in English.\n"
    assert process("recall", "answer in English", "--tags-match", "any_strict", cwd=tmp_path / "other").out == ""


def test_a_document_is_replaced(process: Callable[..., Any], real: str, repository: Path) -> None:
    """--document says what a text takes the place of."""
    del real
    for port in ("4711", "4712"):
        done = process("retain", f"The port is {port}.", "--document", "port", "--wait", cwd=repository)
        assert ", document port, " in done.out
    assert process("recall", "port", cwd=repository).out == "The port is 4712.\n"


def test_status_counts_what_was_retained(process: Callable[..., Any], real: str, repository: Path) -> None:
    """The bank is not there, and after a retain it is."""
    assert f"bank: {real}: not there yet" in process("status", cwd=repository).out
    process("retain", "The port is 4711.", "--wait", cwd=repository)
    done = process("status", cwd=repository)
    assert f"bank: {real}: facts 1, documents 1, operations pending 0, failed 0\n" in done.out


def test_reflect_answers_and_names_its_memories(cli: Callable[..., Any], real: str, repository: Path) -> None:
    """The server's model here is a mock; what its answer rests on is real."""
    del real, repository
    cli("retain", "The port is 4711.", "--wait")
    assert cli("reflect", "Which port?").out == "mock response\n"
    answer = cli("reflect", "Which port?", "--json").json()
    assert [fact["text"] for fact in answer["based_on"]["memories"]] == ["The port is 4711."]


def test_the_doctor_writes_and_leaves_nothing(process: Callable[..., Any], real_url: str, real: str) -> None:
    """A retain, a recall and a delete on the real server, and no bank of the doctor's is left."""
    del real
    done = process("doctor", "--write")
    assert (done.code, done.err) == (0, "")
    for line in (
        "ok  version      1.1.0",
        "ok  health       the server and its database are well",
        "ok  retain       a text was stored, in a bank made for this",
        "ok  recall       it was found",
        "ok  delete       it was deleted",
    ):
        assert line in done.out.splitlines()
    with BankClient(real_url) as client:
        assert [bank.bank_id for bank in client.banks.iterate(q="bankclient-doctor-")] == []


def test_the_doctor_finds_the_api_under_the_right_path(
    cli: Callable[..., Any], real_url: str, real: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A URL copied with a path too many is mended by what the server itself says."""
    del real, repository
    for path in ("/v1", "/v1/default", "/docs"):
        monkeypatch.setenv("HINDSIGHT_API_URL", real_url + path)
        checks = {check["check"]: check for check in cli("doctor", "--json").json()["checks"]}
        assert checks["server"]["mend"] == f"set HINDSIGHT_API_URL={real_url}"


def test_https_to_a_server_without_tls_says_so(
    cli: Callable[..., Any], real_url: str, real: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mend is to write http://."""
    del real
    monkeypatch.setenv("HINDSIGHT_API_URL", real_url.replace("http://", "https://"))
    done = cli("recall", "port")
    assert done.err.startswith("error: no secure connection to https://")
    assert "write http:// if the server speaks no TLS" in done.err


@pytest.mark.parametrize(
    ("token", "what", "mend"),
    [
        (None, "asks for a key, and none is set", "set HINDSIGHT_API_TOKEN"),
        ("wrong", "refuses the key (401: Authentication failed: Invalid API key)", "set HINDSIGHT_API_TOKEN to one"),
    ],
)
def test_a_wrong_key_is_told_from_none(
    cli: Callable[..., Any], locked: str, monkeypatch: pytest.MonkeyPatch, *, token: str | None, what: str, mend: str
) -> None:
    """The server answers without a key until one is needed; the doctor asks something that needs it."""
    del locked
    if token is not None:
        monkeypatch.setenv("HINDSIGHT_API_TOKEN", token)
    done = cli("doctor", "--write", "--json")
    checks = {check["check"]: check for check in done.json()["checks"]}
    assert done.code == 1
    assert checks["server"]["state"] == checks["health"]["state"] == "ok"
    assert checks["key"]["state"] == "problem"
    assert what in checks["key"]["what"]
    assert checks["key"]["mend"].startswith(mend)
    assert "retain" not in checks
    for command in (["recall", "x"], ["reflect", "x"], ["status"]):
        failed = cli(*command)
        assert failed.code == 1
        assert "refuses the key" in failed.err
    kept = cli("retain", "x")  # nothing is lost for want of a key
    assert (kept.code, kept.out.split(":")[0]) == (0, "kept")
    assert "refuses the key" in kept.err


def test_the_right_key_opens_everything(cli: Callable[..., Any], locked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With it the whole way works, and it is not shown anywhere."""
    monkeypatch.setenv("HINDSIGHT_API_TOKEN", f" {KEY}\n")
    runs = [
        cli("doctor", "--write"),
        cli("retain", "The port is 4711.", "--wait"),
        cli("recall", "port"),
        cli("status"),
    ]
    assert [done.code for done in runs] == [0, 0, 0, 0]
    assert "ok  key          it was accepted" in runs[0].out.splitlines()
    assert f"bank: {locked}: facts 1" in runs[3].out
    assert KEY not in "".join(done.out + done.err for done in runs)
