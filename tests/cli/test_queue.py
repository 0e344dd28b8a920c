"""`bankclient queue`: what waits and why, on a store with everything in it, and a person's acts on it."""

from __future__ import annotations

import time
import uuid
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.store.database import STORE_FILE, Database
from bankclient.store.fingerprint import KEYLESS, fingerprint, load_salt
from bankclient.store.outbox import Address, Destination, SqliteOutbox, State, Step
from bankclient.store.outbox.answers import Accepted, Busy, Closed, Completed, Conflict, Refused, Unexpected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bankclient.store.outbox import Batch
    from bankclient.store.outbox.answers import Answer

URL = "http://127.0.0.1:9"


@dataclass
class Shelf:
    """The store that the commands look at, filled by hand."""

    outbox: SqliteOutbox
    state: Path

    def keep(self, text: str, *, url: str = URL, token: str | None = None, document: str = "") -> int:
        """Queue a piece of a session; return its batch's id."""
        address = Address(Destination(url, fingerprint(load_salt(self.state), token)), "bank", ("project:api",))
        fields = {"content": text, "document_id": document or f"s.{text}"}
        added = self.outbox.add_session(address, fields, now=time.time() - 7200)
        assert added.item is not None
        return added.item

    def answer(self, *answers: Answer) -> None:
        """Settle the next steps of the keyless destination so."""
        for answer in answers:
            now = time.time()
            destination = Destination(URL, KEYLESS)
            self.outbox.hurry(destination, now=now)
            lease = self.outbox.lease(destination, holder=uuid.uuid4().hex, seconds=20, now=now)
            assert lease is not None
            job = self.outbox.claim(lease, now=now)
            assert job is not None
            given = Accepted(job.operation) if isinstance(answer, Accepted) else answer
            self.outbox.settle(job, given, now=now, jitter=0.0)
            self.outbox.release(lease)

    def batch(self, number: int) -> Batch | None:
        """Return the batch."""
        return self.outbox.batch(number)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path) -> Iterator[Shelf]:
    """Give an empty store that the commands use."""
    del repository
    state = tmp_path / "state"
    monkeypatch.setenv("HINDSIGHT_STATE_DIR", str(state))
    monkeypatch.setenv("HINDSIGHT_API_URL", URL)
    with closing(Database(state / STORE_FILE)) as database:
        yield Shelf(SqliteOutbox(database), state)


ACCEPTED = Accepted("")


@pytest.mark.parametrize("arguments", [[], ["list"], ["retry", "--all"], ["drop", "--all"], ["rekey", URL]])
def test_nothing_queued_is_no_fault_and_makes_nothing(cli: Callable[..., Any], arguments: list[str]) -> None:
    """Where nothing was ever kept there is no store afterwards either."""
    done = cli("queue", *arguments)
    assert done.code == 0
    assert list(Path.home().iterdir()) == []
    said = "nothing was dropped\n" if arguments[:1] == ["drop"] else "nothing is queued\n"
    assert done.err == ("" if arguments[:1] == ["retry"] else said)


def test_counts_age_size_and_why(cli: Callable[..., Any], shelf: Shelf) -> None:
    """The states with how much is in each, and each destination with what it waits for."""
    for text in "abcd":
        shelf.keep(text)
    shelf.answer(ACCEPTED, ACCEPTED, Busy("answered 503: full", 60.0))
    shelf.keep("other key", token="an old key")
    done = cli("queue")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("sealed: 3 items in 3 requests, ")
    assert lines[1].startswith("accepted: 2 items in 2 requests, ")
    assert lines[2].split() == ["items", "size", "oldest", "next", "try", "to", "why"]
    old, ours = sorted(lines[3:], key=lambda line: "key" not in line)
    assert "when its key is known" in old
    assert old.endswith("its key is not known here")
    assert ours.split()[0] == "4"
    assert "  2 h  " in ours
    assert ours.endswith("answered 503: full")
    assert "an old key" not in done.out


def test_the_counts_as_json(cli: Callable[..., Any], shelf: Shelf) -> None:
    """--json has the same for programs, with times in UTC."""
    shelf.keep("one")
    shelf.answer(Closed("answered 401: Invalid API key"))
    shelf.outbox.lose("the spool was full", items=3, size=300, now=1_700_000_000.0)
    said = cli("queue", "--json").json()
    assert said["states"]["sealed"]["items"] == 1
    (lane,) = said["destinations"]
    assert (lane["url"], lane["key"], lane["key_known"], lane["why"]) == (
        URL,
        KEYLESS,
        True,
        "answered 401: Invalid API key",
    )
    assert lane["queued"]["items"] == 1
    assert lane["oldest"].endswith("+00:00")
    assert lane["paused_until"] is not None
    assert said["losses"] == [
        {"reason": "the spool was full", "items": 3, "bytes": 300, "at": "2023-11-14T22:13:20+00:00"}
    ]
    assert "300 B" in cli("queue").out
    assert "the spool was full" in cli("queue").out


def test_everything_that_is_not_stored_is_listed(cli: Callable[..., Any], shelf: Shelf) -> None:
    """In order, with why; --state picks, and what is stored is asked for by name."""
    numbers = [shelf.keep(text) for text in ("a", "b", "c")]
    shelf.answer(Unexpected("answered 500"))
    rows = cli("queue", "list").out.splitlines()
    assert [row.split()[0] for row in rows] == ["id", *map(str, numbers)]
    assert rows[1].split()[1] == "waiting"
    assert rows[1].endswith("answered 500")
    assert [row["state"] for row in cli("queue", "list", "--json").json()] == ["waiting", "sealed", "sealed"]
    assert [row["id"] for row in cli("queue", "list", "--state", "waiting", "--json").json()] == numbers[:1]
    done = cli("queue", "list", "--state", "stored")
    assert (done.code, done.out, done.err) == (0, "", "nothing is queued\n")


def test_one_is_shown_with_its_text(cli: Callable[..., Any], shelf: Shelf) -> None:
    """The text is the person's own, and steers no terminal; of what is stored the line of account is left."""
    number = shelf.keep("one \x1b[31mred\x1b[0m\nline", document="s.1")
    done = cli("queue", "show", str(number))
    assert done.out.endswith("\n\none [31mred[0m\nline\n")
    assert "tags: project:api\n" in done.out
    assert "documents: s.1\n" in done.out
    shelf.answer(ACCEPTED, Completed())
    said = cli("queue", "show", str(number), "--json").json()
    assert (said["state"], said["texts"], said["documents"], said["sent"]) == ("stored", [], ["s.1"], 1)
    done = cli("queue", "show", "77")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: there is nothing queued of the id 77; `bankclient queue list` shows what there is\n"


def test_what_was_given_up_is_tried_again(cli: Callable[..., Any], shelf: Shelf) -> None:
    """Under a new id; a dead text whose document has a later one stays dead, which is said."""
    dead, overtaken = shelf.keep("dead"), shelf.keep("old", document="notes")
    shelf.answer(Conflict("409"), Conflict("409"), Conflict("409"), Conflict("409"))
    shelf.keep("new", document="notes")
    assert {batch.id for batch in shelf.outbox.batches(states=[State.DEAD])} == {dead, overtaken}
    before = shelf.batch(dead)
    done = cli("queue", "retry", str(dead))
    assert (done.code, done.out) == (0, "ok: 1 item will be tried; `bankclient flush` sends now\n")
    after = shelf.batch(dead)
    assert before is not None
    assert after is not None
    assert (after.state, after.operation_id != before.operation_id) == (State.SEALED, True)
    done = cli("queue", "retry", "--all")
    assert done.code == 1
    assert done.err == f"warning: {overtaken} is left as it is: it is stored, or a later version of its document is\n"


def test_what_waits_is_tried_at_once(cli: Callable[..., Any], shelf: Shelf) -> None:
    """A wait ends, and so does the pause of its destination, also one that the server asked for."""
    number = shelf.keep("a")
    shelf.answer(Refused("422: bad"), Busy("503", 500.0))
    assert cli("queue", "retry", str(number)).code == 0
    (lane,) = shelf.outbox.overview(now=time.time()).lanes
    assert lane.until == 0
    batch = shelf.batch(number)
    assert batch is not None
    assert (batch.until, batch.step) == (0.0, Step.SEND)


def test_dropping_asks_first(cli: Callable[..., Any], terminal: Callable[..., Any], shelf: Shelf) -> None:
    """On a terminal it asks, elsewhere it refuses; --yes is an answer. What was dropped is counted."""
    one, two, three = (shelf.keep(text) for text in "abc")
    done = cli("queue", "drop", str(one))
    assert (done.code, done.out) == (1, "")
    assert done.err == ("error: Drop 1 item that are nowhere else? Nobody is there to answer; say it with --yes\n")
    asked = terminal("queue", "drop", str(one), typed=b"\n")
    assert (asked.code, "nothing was dropped" in asked.out) == (1, True)
    assert terminal("queue", "drop", str(one), typed=b"y\n").code == 0
    assert shelf.batch(one) is None
    assert cli("queue", "drop", "--all", "--yes").out == "ok: 2 items dropped\n"
    assert (shelf.batch(two), shelf.batch(three)) == (None, None)
    (loss,) = shelf.outbox.overview(now=time.time()).losses
    assert (loss.reason, loss.items) == ("dropped by the person", 3)


@pytest.mark.parametrize("name", ["retry", "drop"])
@pytest.mark.parametrize("arguments", [[], ["1", "--all"]])
def test_which_has_to_be_said(cli: Callable[..., Any], shelf: Shelf, name: str, arguments: list[str]) -> None:
    """Neither nothing nor everything is meant by chance."""
    del shelf
    done = cli("queue", name, *arguments)
    assert (done.code, done.err) == (1, "error: say which, by their ids, or --all\n")


def test_a_new_key_takes_over(
    cli: Callable[..., Any], terminal: Callable[..., Any], shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for keys that are known no more goes with the one that is configured, after asking."""
    number, keyless = shelf.keep("a", token="old"), shelf.keep("b")
    other = shelf.keep("c", url="http://127.0.0.1:10", token="old")
    monkeypatch.setenv("HINDSIGHT_API_TOKEN", "new")
    done = cli("queue", "rekey", URL)
    assert done.code == 1
    assert "Send 2 items for http://127.0.0.1:9 with the key " in done.err
    assert terminal("queue", "rekey", f"{URL}/", typed=b"y\n").code == 0
    new = fingerprint(load_salt(shelf.state), "new")
    destinations = [batch.address.destination for batch in shelf.outbox.batches()]
    assert destinations == [
        Destination(URL, new),
        Destination(URL, new),
        Destination("http://127.0.0.1:10", fingerprint(load_salt(shelf.state), "old")),
    ]
    assert [batch.id for batch in shelf.outbox.batches()] == [number, keyless, other]
    done = cli("queue", "rekey", URL, "--yes")
    assert (done.code, done.err) == (0, f"nothing is queued for {URL} with another key\n")
    done = cli("queue", "rekey", "http://127.0.0.1:10", "--yes")
    assert done.code == 0
    assert len({batch.address.destination.key for batch in shelf.outbox.batches()}) == 1


def test_on_a_terminal_it_is_a_table(terminal: Callable[..., Any], shelf: Shelf) -> None:
    """A person gets the same laid out."""
    shelf.keep("one")
    shown = terminal("queue").out
    assert "sealed" in shown
    assert URL in shown
    assert "list" in terminal("queue", "--help").out


def test_status_and_doctor_show_it_too(cli: Callable[..., Any], shelf: Shelf) -> None:
    """Beside the server, whether that answers or not."""
    shelf.keep("one")
    shelf.answer(Closed("answered 401: Invalid API key"))
    line = f"1 item for {URL}, the oldest for 2 h: answered 401: Invalid API key"
    assert f"queue: {line}\n" in cli("status").out
    assert cli("status", "--json").json()["queue"]["states"]["sealed"]["items"] == 1
    checks = {check["check"]: check for check in cli("doctor", "--json").json()["checks"]}
    assert (checks["queue"]["state"], checks["queue"]["what"]) == ("warning", line)
    shelf.keep("two")
    shelf.answer(Conflict("409"), Conflict("409"))
    assert "queue: 1 item given up; `bankclient queue list --state dead` shows them\n" in cli("status").out


def test_a_store_that_is_damaged_is_a_finding(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, repository: Path
) -> None:
    """The doctor says so and goes on."""
    del repository
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / STORE_FILE).write_bytes(b"this is no database" * 100)
    monkeypatch.setenv("HINDSIGHT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HINDSIGHT_API_URL", "embedded")
    checks = {check["check"]: check for check in cli("doctor", "--json").json()["checks"]}
    assert (checks["queue"]["state"], "is not an SQLite database" in checks["queue"]["what"]) == ("problem", True)
    assert checks["server"]["state"] == "ok"
