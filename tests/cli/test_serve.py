"""`bankclient serve`, as a process: who is answered, what is printed, and how it ends."""

from __future__ import annotations

import signal
import socket
import sqlite3
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pytest

from bankclient import BankClient
from bankclient.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OFFICIAL_CLIENT = """
import asyncio
import datetime
import sys

from hindsight_client import Hindsight

url, bank = sys.argv[1:]
with Hindsight(base_url=url) as client:
    made = client.create_bank(bank_id=bank, name="Orchard", mission="be brief")
    assert (made.bank_id, made.name, made.mission) == (bank, "Orchard", "be brief"), made
    kept = client.retain(
        bank_id=bank,
        content="Alice moved the dev server to port 4711.",
        timestamp=datetime.datetime(2024, 5, 6),
        context="planning",
        document_id="ports",
        metadata={"source": "chat"},
        tags=["infra"],
    )
    assert kept.success and kept.items_count == 1, kept
    items = [{"content": "Bob likes tabs."}, {"content": "Zoë writes 漢字."}]
    many = client.retain_batch(bank_id=bank, items=items, retain_async=True)
    assert many.var_async and many.operation_id, many
    found = client.recall(bank_id=bank, query="which port has the dev server?").results[0]
    assert (found.document_id, found.tags, found.metadata) == ("ports", ["infra"], {"source": "chat"}), found
    strict = client.recall(bank_id=bank, query="tabs or port", tags=["infra"], tags_match="all_strict")
    assert [each.text for each in strict.results] == ["Alice moved the dev server to port 4711."], strict
    said = client.reflect(bank_id=bank, query="Who likes tabs?")
    assert "Bob likes tabs." in said.text, said
    assert client.list_memories(bank_id=bank).total == 3
    (written,) = client.list_memories(bank_id=bank, search_query="漢字").items
    assert written.text == "Zoë writes 漢字.", written


async def documents():
    client = Hindsight(base_url=url)
    listed = await client.documents.list_documents(bank)
    assert "ports" in [each.id for each in listed.items], listed
    one = await client.documents.get_document(bank, "ports")
    assert one.original_text == "Alice moved the dev server to port 4711.", one
    gone = await client.documents.delete_document(bank, "ports")
    assert gone.success and gone.memory_units_deleted == 1, gone
    left = await client.alist_memories(bank_id=bank)
    assert left.total == 2, left
    await client.adelete_bank(bank)
    banks = await client.banks.list_banks()
    assert bank not in [each.bank_id for each in banks.banks], banks
    await client.aclose()


asyncio.run(documents())
print("retained, recalled, listed, deleted")
"""


class Serving(NamedTuple):
    """A server's process and the line that it printed."""

    process: subprocess.Popen[str]
    line: str

    @property
    def url(self) -> str:
        """The address that it printed."""
        return self.line.split()[-1]

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Tell it to end; return its exit code and what else it printed."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@pytest.fixture
def serve(command: list[str]) -> Iterator[Callable[..., Serving]]:
    """Give `bankclient serve` on a free port, started and answering; it is killed at the end of the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str) -> Serving:
        process = subprocess.Popen(
            [*command, "serve", "--port", "0", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        return Serving(process, line)

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_prints_its_url_and_ends_when_it_is_told_to(serve: Callable[..., Serving], how: signal.Signals) -> None:
    """One line with the address, nothing of the requests, and an end with exit code 0, though a client is connected."""
    server = serve()
    with httpx.Client(base_url=server.url) as client:
        assert server.line == f"the embedded bank answers at {server.url}\n"
        assert client.get("/health").json()["status"] == "healthy"
        assert client.get("/nowhere").status_code == 404
        assert server.end(how) == (0, "", "")


def test_a_client_that_stalls_does_not_hold_up_the_end(serve: Callable[..., Serving]) -> None:
    """Half a request is cut off within seconds."""
    server = serve()
    at = httpx.URL(server.url)
    with socket.create_connection((at.host, at.port or 0)) as peer:
        peer.sendall(b"POST /v1/default/banks/b/memories HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{")
        assert httpx.get(f"{server.url}/health").status_code == 200
        assert server.end() == (0, "", "")


def test_a_request_that_takes_too_long_does_not_hold_up_the_end(serve: Callable[..., Serving]) -> None:
    """Where another process holds the file, the server is gone within its bound all the same."""
    server = serve()
    file = Settings().state_dir / "embedded.sqlite3"
    at = httpx.URL(server.url)
    lock = sqlite3.connect(file, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    with socket.create_connection((at.host, at.port or 0)) as peer:
        peer.sendall(b"PUT /v1/default/banks/b HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}")
        assert httpx.get(f"{server.url}/health/live").status_code == 200
        assert server.end() == (0, "", "")
        assert lock.in_transaction
    lock.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_it_listens_on_either_loopback_address(serve: Callable[..., Serving], host: str) -> None:
    """The address that was chosen is the one that answers."""
    server = serve("--host", host)
    assert httpx.URL(server.url).host == host
    assert httpx.get(f"{server.url}/version").json()["api_version"] == "1.1.0"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "localhost", ""])  # noqa: S104 - they are refused
def test_another_address_is_refused_with_the_reason(cli: Callable[..., Any], host: str) -> None:
    """What other machines could reach is a mistake in what was typed, and the reason is said."""
    done = cli("serve", "--host", host)
    assert (done.code, done.out) == (2, "")
    assert f"{host!r} could be reached from other machines, and nothing asks for a key here" in done.err
    assert "use 127.0.0.1 or ::1" in done.err


def test_a_port_that_is_taken_is_one_line_with_the_mend(cli: Callable[..., Any]) -> None:
    """The error names the port, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = cli("serve", "--port", str(port))
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"error: port {port} on 127.0.0.1 is taken: stop what listens there, or choose another port "
        "(0 is any free one)\n"
    )


def test_a_file_of_a_newer_version_is_one_line(cli: Callable[..., Any]) -> None:
    """What cannot be served is said at once, and the file is left as it is."""
    folder = Settings().state_dir
    folder.mkdir(parents=True, mode=0o700)
    with sqlite3.connect(folder / "embedded.sqlite3") as file:
        file.execute("PRAGMA user_version = 99")
    file.close()
    done = cli("serve", "--port", "0")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "was written by a newer bankclient" in done.err


def test_switched_off_it_does_not_start(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has switched bankclient off does not get a server from it."""
    monkeypatch.setenv("HINDSIGHT_DISABLED", "true")
    done = cli("serve", "--port", "0")
    assert (done.code, done.out) == (1, "")
    assert "switched off here, by environment HINDSIGHT_DISABLED, and nothing was started" in done.err


def test_two_servers_and_a_client_in_process_share_one_bank(serve: Callable[..., Serving], embedded: Path) -> None:
    """What one of them retains the others recall at once."""
    first, second = serve(), serve()
    clients = [BankClient(url, folder=embedded) for url in (first.url, second.url, "embedded")]
    for number, client in enumerate(clients):
        client.retain(f"Fact number {number} is known.")
        for each in clients:
            assert [found.text for found in each.recall(f"fact number {number}").results][:1] == [
                f"Fact number {number} is known."
            ]
    for client in clients:
        client.close()
    assert [server.end() for server in (first, second)] == [(0, "", ""), (0, "", "")]


@pytest.mark.real
def test_the_official_client_works_through_it(
    serve: Callable[..., Serving], hindsight_python: str, tmp_path: Path
) -> None:
    """Hindsight's own Python client retains, recalls, reflects, lists and deletes."""
    script = tmp_path / "official.py"
    script.write_text(OFFICIAL_CLIENT, encoding="utf-8")
    done = subprocess.run(
        [hindsight_python, str(script), serve().url, "orchard bank"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "retained, recalled, listed, deleted\n"
