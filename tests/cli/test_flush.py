"""`bankclient flush`: what is stored, what waits and why, and how soon it ends whatever the server does."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.project import Project
from bankclient.store.database import STORE_FILE, Database
from bankclient.store.fingerprint import KEYLESS
from bankclient.store.outbox import Address, Destination, SqliteOutbox, State
from bankclient.store.sessions import Filing, SessionKey, Sessions, Terms
from bankclient.testing.answers import Held, Reply, Reset, gateway_page
from bankclient.testing.fake_hindsight import FakeHindsight, turned_away
from bankclient.testing.scripted import ScriptedServer, black_hole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MANY = 200


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path) -> Path:
    """Give the state folder that the commands use, in a repository."""
    del repository
    monkeypatch.setenv("HINDSIGHT_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def outbox(state: Path) -> Iterator[SqliteOutbox]:
    """Give the outbox that the commands use."""
    with closing(Database(state / STORE_FILE)) as database:
        yield SqliteOutbox(database)


@pytest.fixture
def fake() -> FakeHindsight:
    """Give a server in memory."""
    return FakeHindsight()


@pytest.fixture
def server(fake: FakeHindsight, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """Give it on a socket, as the server that is configured."""
    with ScriptedServer(handler=fake.answer) as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        yield server


def keep(outbox: SqliteOutbox, url: str, count: int = 1, *, key: str = KEYLESS, bank: str = "bank") -> None:
    """Queue so many pieces of a session."""
    for number in range(count):
        fields = {"content": f"text {number}", "document_id": f"s.{number}"}
        outbox.add_session(Address(Destination(url, key), bank), fields, now=time.time())


def test_nothing_kept_is_nothing_to_do(cli: Callable[..., Any]) -> None:
    """Where nothing was ever kept nothing is made, and all is well."""
    done = cli("flush")
    assert (done.code, done.out, done.err) == (0, "stored: nothing is left to send\n", "")
    assert list(Path.home().iterdir()) == []


@pytest.mark.usefixtures("server")
def test_what_is_kept_is_stored(
    cli: Callable[..., Any], fake: FakeHindsight, outbox: SqliteOutbox, server: ScriptedServer
) -> None:
    """It says how much; what was left open goes too; the second time nothing is left."""
    keep(outbox, server.url, 3)
    outbox.add_fact(Address(Destination(server.url, KEYLESS), "bank"), {"content": "a fact"}, now=time.time())
    done = cli("flush")
    assert (done.code, done.out, done.err) == (0, "stored: 4 items\n", "")
    assert fake.texts("bank") == ["a fact", "text 0", "text 1", "text 2"]
    done = cli("flush", "--json")
    assert (done.code, done.json()["stored"], done.json()["given_up"]) == (0, 0, 0)
    assert done.json()["states"]["stored"]["items"] == 4


def speak(database: Database, destination: Destination) -> Sessions:
    """Have a turn said in a session that is still open."""
    sessions = Sessions(database, SqliteOutbox(database))
    said = [{"role": "user", "content": "Which port?"}, {"role": "assistant", "content": "4711."}]
    sessions.take_messages(
        SessionKey("a program", "s1"),
        said,
        Filing(destination, "bank"),
        Project("api", None, "git checkout"),
        Terms(every=10, context="a program"),
        event_id="e1",
        whole=False,
        now=time.time(),
    )
    return sessions


def test_what_was_said_in_a_session_that_goes_on_is_sent(
    cli: Callable[..., Any], fake: FakeHindsight, state: Path, server: ScriptedServer
) -> None:
    """A flush does not wait until there is enough for a batch."""
    with closing(Database(state / STORE_FILE)) as database:
        speak(database, Destination(server.url, KEYLESS))
    assert cli("flush").out == "stored: 1 item\n"
    (text,) = fake.texts("bank")
    assert "Which port?" in text
    assert "4711." in text


def test_a_new_key_counts_for_what_is_not_sealed_yet_too(
    cli: Callable[..., Any], fake: FakeHindsight, state: Path, server: ScriptedServer
) -> None:
    """What was said under the old key before the person changed it goes out under the new one."""
    with closing(Database(state / STORE_FILE)) as database:
        destination = Destination(server.url, "of a key that is not known")
        speak(database, destination)
        keep(SqliteOutbox(database), server.url, key=destination.key)
    assert cli("queue", "rekey", server.url, "--yes").code == 0
    assert cli("flush").out == "stored: 2 items\n"
    assert len(fake.texts("bank")) == 2


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Reset(), "the connection broke"),
        (Reply(401, json={"detail": "Invalid API key"}), "answered 401: Invalid API key"),
        (
            Reply(503, json={"detail": "full"}, headers={"retry-after": "3600"}),
            "answered 503: full; next try in 10 min",
        ),
        (gateway_page(200), "answered with a body that is not Hindsight's (text/html); is the server's URL right?"),
    ],
)
def test_what_waits_is_said_with_why_and_when(
    cli: Callable[..., Any],
    fake: FakeHindsight,
    outbox: SqliteOutbox,
    server: ScriptedServer,
    *,
    answer: Reply,
    why: str,
) -> None:
    """One line a destination, exit code 1, and all of it is still there."""
    keep(outbox, server.url, 2)
    fake.fail("retain", *[turned_away(answer)] * 9)
    done = cli("flush", "--timeout", "0.5")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"warning: 2 items for {server.url}, the oldest for ")
    assert why in done.err
    assert done.err.count("\n") == 1
    assert sum(batch.items for batch in outbox.batches()) == 2


def test_a_server_that_asked_for_time_gets_it(
    cli: Callable[..., Any], fake: FakeHindsight, outbox: SqliteOutbox, server: ScriptedServer
) -> None:
    """A flush ends any pause of our own making, and not one that the server asked for."""
    keep(outbox, server.url)
    busy = Reply(503, json={"detail": "full"}, headers={"retry-after": "3600"})
    fake.fail("retain", turned_away(Reset()), turned_away(busy))
    for expected in (1, 2, 2):
        assert cli("flush", "--timeout", "0.5").code == 1
        assert fake.count("retain") == expected


def test_what_is_given_up_is_said(
    cli: Callable[..., Any], fake: FakeHindsight, outbox: SqliteOutbox, server: ScriptedServer
) -> None:
    """It is not stored, so the exit code says so, once."""
    keep(outbox, server.url)
    fake.fail("retain", *[turned_away(Reply(409, json={"detail": "in use"}))] * 2)
    done = cli("flush")
    assert (done.code, done.out) == (1, "stored: nothing is left to send\n")
    assert done.err == (
        "warning: 1 item was given up: answered 409: in use; `bankclient queue list --state dead` shows it\n"
    )
    assert cli("flush").code == 0


def test_switched_off_sends_nothing_and_says_what_waits(
    cli: Callable[..., Any],
    fake: FakeHindsight,
    outbox: SqliteOutbox,
    server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was queued before stays, and is reported; the queue itself can be looked at."""
    keep(outbox, server.url, 5)
    monkeypatch.setenv("HINDSIGHT_DISABLED", "1")
    for name in ("flush", "status"):
        done = cli(name)
        assert (done.code, done.out) == (1, "")
        assert done.err.endswith("take that away to switch it on; 5 items queued earlier wait\n")
    assert cli("retain", "x").code == 1
    assert cli("queue").code == 0
    assert fake.requests == []
    assert [batch.state for batch in outbox.batches()] == [State.SEALED] * 5


def test_what_was_meant_for_another_server_or_bank_goes_there(
    cli: Callable[..., Any],
    fake: FakeHindsight,
    outbox: SqliteOutbox,
    server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Settings that change later aim nothing anew: it goes where it was meant to, or waits and is reported."""
    keep(outbox, server.url, bank="a")
    keep(outbox, "http://10.255.255.1", bank="a")
    keep(outbox, server.url, bank="a", key="of a key that is not known")
    other = FakeHindsight()
    with ScriptedServer(handler=other.answer) as second:
        monkeypatch.setenv("HINDSIGHT_API_URL", second.url)
        monkeypatch.setenv("HINDSIGHT_BANK_ID", "b")
        done = cli("flush")
    assert done.code == 1
    assert fake.texts("a") == ["text 0"]
    assert other.requests == []
    assert done.err.count("its key is not known here; next try when its key is known\n") == 2


def test_the_key_of_the_configuration_file_is_known_too(
    cli: Callable[..., Any],
    server: ScriptedServer,
    fake: FakeHindsight,
    *,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """What was kept under it is sent, though the environment names another server."""
    fake.key = "of the file"
    file = tmp_path / "config" / "bankclient" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'api_url = "{server.url}"\napi_token = "of the file"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("HINDSIGHT_API_URL")
    fake.fail("retain", turned_away(Reset()))
    assert cli("retain", "x", "--bank", "a").out.startswith("kept: ")
    monkeypatch.setenv("HINDSIGHT_API_URL", "http://127.0.0.1:9")
    assert cli("flush").out == "stored: 1 item\n"
    assert fake.texts("a") == ["x"]
    assert b"of the file" not in b"".join(path.read_bytes() for path in state.iterdir())


def test_a_person_at_a_terminal_sees_how_far_it_is(
    terminal: Callable[..., Any], outbox: SqliteOutbox, server: ScriptedServer
) -> None:
    """There is a bar while it lasts."""
    keep(outbox, server.url, 3)
    shown = terminal("flush").out
    assert "sending" in shown
    assert "3/3" in shown
    assert "stored:" in shown


def test_a_black_hole_ends_it_within_its_time(
    process: Callable[..., Any], outbox: SqliteOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With so much queued and nobody there it is over when it said it would be, and everything is still on the disk."""
    with black_hole() as url:
        monkeypatch.setenv("HINDSIGHT_API_URL", url)
        keep(outbox, url, MANY)
        began = time.monotonic()
        done = process("flush", "--timeout", "0.5")
        assert time.monotonic() - began < 10  # a bound for a busy machine; without any it would take minutes
    assert done.code == 1
    assert f"{MANY} items for {url}" in done.err
    assert {batch.state for batch in outbox.batches(limit=1000)} <= {State.SEALED, State.SENDING, State.WAITING}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_being_told_to_stop_ends_it_and_loses_nothing(
    command: list[str], outbox: SqliteOutbox, fake: FakeHindsight, server: ScriptedServer, *, number: int, code: int
) -> None:
    """The lease is given back, so that the next flush need not wait; what was under way is sent again, once."""
    keep(outbox, server.url, 3)
    answering = threading.Event()
    fake.fail("retain", turned_away(Held(answering, Reply(json={}))))
    with subprocess.Popen([*command, "flush"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as flushing:
        server.wait_for(lambda server: len(server.requests) == 1)
        for _ in range(2):
            os.kill(flushing.pid, number)
        out, err = flushing.communicate(timeout=30)
    assert (flushing.returncode, out, err) == (code, b"", b"")
    (lane,) = outbox.overview(now=time.time()).lanes
    assert (lane.leased, lane.queued.items) == (False, 3)
    done = subprocess.run([*command, "flush"], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"stored: 3 items\n")
    assert fake.texts("bank") == ["text 0", "text 1", "text 2"]
