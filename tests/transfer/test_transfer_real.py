"""The embedded bank taken to a real Hindsight server."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from bankclient import BankClient, MemoryItem, calls
from bankclient.settings import Settings
from bankclient.testing.answers import Reply
from bankclient.testing.scripted import ScriptedRequest, ScriptedServer
from bankclient.transfer import Importer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.real
BANK = "bänk one"


@pytest.fixture
def real(real_url: str, tmp_path: Path) -> Iterator[BankClient]:
    """Give a client of the real server."""
    with BankClient(settings=Settings(api_url=real_url, state_dir=tmp_path), folder=tmp_path) as client:
        yield client


@pytest.fixture
def filled(old: BankClient, fill: Callable[[BankClient], None]) -> BankClient:
    """Give a client of an embedded bank that holds one of everything."""
    fill(old)
    return old


def run(client: BankClient, export: bytes, bank: str) -> tuple[int, int, int, int]:
    """Import the one bank of an export under a name; return how many are stored, there already, failed, changed."""
    report = Importer(client, names={BANK: bank}).run(io.BytesIO(export))
    assert not report.failures
    return report.stored, report.skipped, report.failed, report.changed


def test_everything_is_there_afterwards_and_a_second_time_changes_nothing(
    filled: BankClient, real: BankClient, bank: str, exported: Callable[..., bytes], contents: Callable[..., Any]
) -> None:
    """The real server holds the same documents and memories, also what was done to them; what is forgotten stays so."""
    there = contents(filled, BANK)[BANK]
    assert run(real, exported(BANK), bank) == (7, 0, 0, 5)
    assert contents(real, bank)[bank] == there
    assert run(real, exported(BANK), bank) == (0, 7, 0, 0)
    assert contents(real, bank)[bank] == there
    call = calls.recall(bank, "fact that is wrong")
    assert "A fact that is wrong." not in [memory.text for memory in real.call(call).results]


def test_a_document_of_a_megabyte_arrives_whole(
    old: BankClient, real: BankClient, bank: str, exported: Callable[..., bytes]
) -> None:
    """Its text is the same to the last letter, and it is there the second time."""
    text = "".join(f"line {number} of a long text, ключ 漢字 🌳\n" for number in range(25_000))
    assert len(text.encode()) > 1_000_000
    old.retain(text, bank=BANK, document_id="long")
    assert run(real, exported(BANK), bank) == (1, 0, 0, 0)
    assert real.documents.get("long", bank=bank).original_text == text
    assert run(real, exported(BANK), bank) == (0, 1, 0, 0)


@pytest.fixture
def file(filled: BankClient, exported: Callable[..., bytes], tmp_path: Path) -> Path:
    """Give an export that takes several requests, in a file."""
    filled.retain_many([MemoryItem(f"fact {each}", document_id=f"f{each}") for each in range(120)], bank=BANK)
    path = tmp_path / "export.jsonl"
    path.write_bytes(exported(BANK))
    return path


def test_killed_in_the_middle_it_goes_on_the_next_time(
    file: Path, filled: BankClient, real: BankClient, bank: str, contents: Callable[..., Any]
) -> None:
    """A kill -9 while the server works loses nothing and doubles nothing."""
    reached, killed = threading.Event(), threading.Event()
    retains: list[ScriptedRequest] = []

    def answer(request: ScriptedRequest) -> Reply:
        reply = httpx.request(
            request.method,
            real.settings.api_url + request.target,
            content=request.body,
            headers={"content-type": "application/json"},
            timeout=60,
        )
        if request.method == "POST":
            retains.append(request)
            if len(retains) == 3:
                reached.set()
                killed.wait(120)  # accepted, and the answer is never read
        return Reply(reply.status_code, headers={"content-type": "application/json"}, body=reply.content)

    with ScriptedServer(handler=answer) as passage:
        command = [sys.executable, "-m", "bankclient", "import", str(file), "--to", passage.url]
        with subprocess.Popen([*command, "--bank", f"{BANK}={bank}"], env=os.environ) as process:
            assert reached.wait(120)
            process.kill()
        killed.set()
        assert process.returncode == -9
    stored, skipped, failed, _ = run(real, file.read_bytes(), bank)
    assert (stored + skipped, failed) == (127, 0)
    assert skipped > 0
    assert contents(real, bank)[bank] == contents(filled, BANK)[BANK]
