"""An export and its import: what is there afterwards, and what a second time, a killed or a refused one changes."""

from __future__ import annotations

import contextlib
import io
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from bankclient import BankClient, MemoryItem
from bankclient.embedded import EmbeddedServer
from bankclient.errors import CallError, InvalidInput, OperationFailed, Unauthorized
from bankclient.settings import Settings
from bankclient.testing.answers import Reply
from bankclient.testing.clock import ManualClock
from bankclient.testing.scripted import ScriptedServer
from bankclient.transfer import Importer, Report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bankclient.embedded.serving import BankServer
    from bankclient.testing.scripted import ScriptedRequest

    Export = Callable[..., bytes]

BANKS = ("bänk one", "other", "empty")


def run(client: BankClient, export: bytes, **options: Any) -> Report:  # noqa: ANN401 - the importer's own
    """Import an export, and return the report."""
    return Importer(client, **options).run(io.BytesIO(export))


def numbers(report: Report) -> tuple[int, int, int]:
    """Return how many documents were stored, there already, and failed."""
    return report.stored, report.skipped, report.failed


def lines(export: bytes) -> list[Any]:
    """Return the lines of an export."""
    return (
        [json.loads(line) for line in export.splitlines()]
        if b"\xe2\x80\xa8" not in export
        else [json.loads(line) for line in export.split(b"\n") if line]
    )


def joined(*values: Any) -> bytes:  # noqa: ANN401 - any JSON values
    """Return lines as an export."""
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def answered(bank: EmbeddedServer, request: ScriptedRequest) -> Reply:
    """Return what an embedded bank answers to a request that a scripted server got."""
    reply = bank.answer(request.method, request.target, request.body, request.headers)
    return Reply(reply.status, headers=reply.headers, body=reply.body)


def test_everything_is_there_afterwards(
    old: BankClient, new: BankClient, fill: Callable[[BankClient], None], exported: Export, contents: Callable[..., Any]
) -> None:
    """Banks with their configuration, documents, and memories with what was done to them are as they were."""
    fill(old)
    report = run(new, exported())
    assert (numbers(report), report.changed, report.expected) == ((8, 0, 0), 5, 8)
    assert contents(new, *BANKS) == contents(old, *BANKS)
    assert {bank.bank_id: bank.name for bank in new.banks.iterate()} == {
        "bänk one": "Orchard",
        "other": "other",
        "empty": "empty",
    }


def test_a_second_time_changes_nothing(
    old: BankClient, new: BankClient, fill: Callable[[BankClient], None], exported: Export, contents: Callable[..., Any]
) -> None:
    """What the server has already is passed over: nothing is sent of it, and it keeps its ids and times."""
    fill(old)
    run(new, exported())
    before = [(each.id, each.updated_at) for each in new.memories.iterate(bank="bänk one")]
    report = run(new, exported())
    assert (numbers(report), report.changed) == ((0, 8, 0), 0)
    assert [(each.id, each.updated_at) for each in new.memories.iterate(bank="bänk one")] == before
    assert contents(new, *BANKS) == contents(old, *BANKS)


def test_what_differs_is_replaced(old: BankClient, new: BankClient, exported: Export) -> None:
    """A document with another text or other tags is sent again, under its own id; others are left alone."""
    for name in ("same", "longer", "elsewhere"):
        old.retain(f"text of {name}", document_id=name, tags=["t"])
    run(new, exported())
    new.retain("not in the file", document_id="own")
    old.retain("text of longer, and more", document_id="longer", tags=["t"])
    old.documents.patch("elsewhere", tags=["project:other"])
    assert numbers(run(new, exported())) == (2, 1, 0)
    assert {
        each.id: (each.original_text, set(each.tags)) for each in map(new.documents.get, ("longer", "elsewhere"))
    } == {
        "longer": ("text of longer, and more", {"t", *old.scope.retain_tags}),
        "elsewhere": ("text of elsewhere", {"project:other"}),
    }
    assert new.documents.get("own").original_text == "not in the file"


def test_a_bank_that_is_there_keeps_its_own_configuration(old: BankClient, new: BankClient, exported: Export) -> None:
    """Only what it has not set itself is set."""
    old.banks.configure({"reflect_mission": "from the file", "retain_chunk_size": 500})
    new.banks.put("bankclient", name="Mine", reflect_mission="my own")
    run(new, exported())
    assert new.banks.config().overrides == {"reflect_mission": "my own", "retain_chunk_size": 500}
    assert [bank.name for bank in new.banks.iterate()] == ["Mine"]


def test_what_was_forgotten_is_forgotten_there_too(old: BankClient, new: BankClient, exported: Export) -> None:
    """Invalidated and deleted memories are not found, though the text of their documents is there."""
    old.retain("The wrong port is 4000.", document_id="wrong")
    old.retain("Deleted: the port is 4001.", document_id="deleted", bank="cleared")
    (memory,) = old.memories.iterate()
    old.memories.invalidate(memory.id, reason="no")
    old.memories.clear("cleared", fact_type="world")
    run(new, exported())
    assert new.recall("port").results == ()
    assert new.recall("port", bank="cleared").results == ()
    assert new.documents.get("deleted", bank="cleared").original_text == "Deleted: the port is 4001."


def test_banks_go_under_other_names(old: BankClient, new: BankClient, exported: Export) -> None:
    """A bank that is renamed is there under its new name alone."""
    old.retain("a fact", bank="a")
    old.retain("another", bank="b")
    run(new, exported(), names={"a": "new name"})
    assert sorted(bank.bank_id for bank in new.banks.iterate()) == ["b", "new name"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"c": "d"}, "there is no bank 'c' in the file (there are: a, b)"),
        ({"a": "b"}, "two banks would go to 'b'"),
        ({"a": "c", "b": "c"}, "two banks would go to 'c'"),
        ({"a": "x/y"}, "bank 'x/y'"),
    ],
)
def test_names_that_would_lose_something_are_refused_at_once(
    old: BankClient, new: BankClient, exported: Export, names: dict[str, str], said: str
) -> None:
    """A name that is not there, that no server takes, or that two banks would share, is an error before all else."""
    old.retain("a fact", bank="a")
    old.retain("another", bank="b")
    with pytest.raises(InvalidInput) as raised:
        run(new, exported(), names=names)
    assert said in str(raised.value)
    assert list(new.banks.iterate()) == []


def test_one_bank_alone_can_be_exported(old: BankClient, exported: Export) -> None:
    """Only the named bank's lines are there, and an unknown name is an error that lists the names."""
    old.retain("a fact", bank="a")
    old.retain("another", bank="b")
    assert [line.get("bank") for line in lines(exported("b"))] == [None, "b", "b", None]
    with pytest.raises(InvalidInput, match=r"there is no bank 'c' in the embedded bank \(there are: a, b\)"):
        exported("c")


def many(client: BankClient, number: int) -> None:
    """Retain so many documents."""
    client.retain_many([MemoryItem(f"fact {each}", document_id=str(each)) for each in range(number)])


def test_a_server_that_goes_away_ends_it_and_the_next_time_it_goes_on(
    old: BankClient, new: BankClient, server: BankServer, exported: Export, contents: Callable[..., Any]
) -> None:
    """What was stored stays and is passed over; the rest is sent; nothing is there twice."""
    many(old, 300)
    importer = Importer(new, on_progress=lambda _: server.stop())
    with pytest.raises(CallError):
        importer.run(io.BytesIO(exported()))
    stored = importer.report.stored
    assert 0 < stored < 300
    server.start()
    with BankClient(settings=new.settings) as again:
        report = run(again, exported())
        assert report.skipped >= stored
        assert report.skipped + report.stored == 300
        assert contents(again, "bankclient") == contents(old, "bankclient")


def test_a_wrong_key_ends_it_at_once(old: BankClient, exported: Export, tmp_path: Path) -> None:
    """Where nobody is let in, one request tells, not one a document."""
    many(old, 5)
    with ScriptedServer(handler=lambda _: Reply(401, json={"detail": "Authentication failed"})) as scripted:
        settings = Settings(api_url=scripted.url, state_dir=tmp_path)
        with BankClient(settings=settings) as client, pytest.raises(Unauthorized):
            run(client, exported())
        assert len(scripted.requests) == 1


def test_a_document_that_is_refused_is_named_and_the_others_go_on(
    old: BankClient, exported: Export, tmp_path: Path
) -> None:
    """What the server does not take of a batch is sent apart, and fails alone."""
    many(old, 5)
    with EmbeddedServer(tmp_path / "new" / "embedded.sqlite3") as bank:

        def answer(request: ScriptedRequest) -> Reply:
            if b"fact 2" in request.body:
                return Reply(422, json={"detail": "this one is not taken"})
            return answered(bank, request)

        with ScriptedServer(handler=answer) as scripted:
            settings = Settings(api_url=scripted.url, state_dir=tmp_path)
            with BankClient(settings=settings, folder=tmp_path) as client:
                report = run(client, exported())
                there = sorted(each.id for each in client.documents.iterate())
    assert numbers(report) == (4, 0, 1)
    ((what, why),) = report.failures
    assert what == "document '2' of bank 'bankclient'"
    assert "this one is not taken" in str(why)
    assert there == ["0", "1", "3", "4"]


@pytest.mark.parametrize(("status", "kind"), [("failed", OperationFailed), ("pending", None)])
def test_a_server_that_fails_at_everything_ends_it_and_a_slow_one_does_not(
    old: BankClient, exported: Export, status: str, kind: type[Exception] | None
) -> None:
    """Failed operations are tried document by document, up to five in a row; one that takes long is let go on."""
    clock = ManualClock()
    many(old, 60)

    def answer(request: ScriptedRequest) -> Reply:
        if request.method == "POST":
            return Reply(json={"success": True, "operation_id": request.json()["operation_id"]})
        if "/operations/" in request.path:
            said = {
                "error_message": "Traceback\nRuntimeError: no model",
                "operation_id": request.path.rpartition("/")[2],
            }
            return Reply(json={"status": status, **said})
        return Reply(json={"bank_id": "b", "config": {}, "overrides": {}, "items": []})

    with ScriptedServer(handler=answer) as scripted:
        settings = Settings(api_url=scripted.url, state_dir=old.settings.state_dir)
        with BankClient(settings=settings) as client:
            client._caller.core.now, client._caller.sleep = clock.now, clock.sleep
            importer = Importer(client)
            with pytest.raises(kind, match="no model") if kind else contextlib.nullcontext():
                importer.run(io.BytesIO(exported()))
        sent = [len(request.json()["items"]) for request in scripted.requests if request.method == "POST"]
    assert sent == ([50, 10, 1, 1, 1, 1, 1] if kind else [50, 10])
    assert importer.report.failed == (5 if kind else 60)
    assert importer.report.failures[0].what == "document '0' of bank 'bankclient'"


def test_what_no_server_takes_is_named_too(old: BankClient, new: BankClient, exported: Export) -> None:
    """A document that is refused before it is sent, as somebody changed the file, fails alone."""
    many(old, 5)
    header, bank, *documents, end = lines(exported())
    documents[2]["items"][0]["timestamp"] = "0001-01-01T00:00:00"
    report = run(new, joined(header, bank, *documents, end))
    assert numbers(report) == (4, 0, 1)
    assert report.failures[0].what == "document '2' of bank 'bankclient'"
    assert "year 1" in str(report.failures[0].why)


def test_a_configuration_that_is_refused_is_named_and_the_documents_go_on(
    old: BankClient, new: BankClient, exported: Export
) -> None:
    """A field that the server does not know costs the bank no document."""
    many(old, 2)
    header, bank, *rest = lines(exported())
    report = run(new, joined(header, bank | {"config": {"nonsense": 1}}, *rest))
    assert numbers(report) == (2, 0, 1)
    assert report.failures[0].what == "bank 'bankclient'"


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (b"{", "line 4"),
        (b"[]", "line 4"),
        (b'{"kind": "memory"}', "line 4"),
        (b'{"kind": "document", "bank": "bankclient", "document_id": "x"}', "line 4"),
        (b"\xff\xfe", "line 4"),
        (b'{"kind": "document", "bank": "bankclient", "document_id": "x", "created_at": "", "items": []}', "line 4"),
        (b"[" * 100_000, "line 4"),
    ],
)
def test_a_broken_line_is_named_and_the_others_go_on(
    old: BankClient, new: BankClient, exported: Export, broken: bytes, said: str
) -> None:
    """Its number is in the report, with the reason; nothing of what stands around it is lost."""
    many(old, 3)
    parts = exported().split(b"\n")
    parts[3] = broken
    report = run(new, b"\n".join(parts))
    assert numbers(report) == (2, 0, 1)
    assert report.failures[0].what == said
    assert report.failures[0].why


def test_a_file_that_was_cut_off_is_said_to_be(old: BankClient, new: BankClient, exported: Export) -> None:
    """Cut within a line or between two, what is there is stored, and that it is not all is a failure."""
    many(old, 3)
    export = exported()
    within = run(new, export[: export.index(b'"fact 2') + 5])
    assert [failure.what for failure in within.failures] == ["line 5", "the file, after line 5"]
    assert "it is cut off" in str(within.failures[0].why)
    between = run(new, export[: export.index(b'{"kind":"end"')])
    assert [failure.what for failure in between.failures] == ["the file, after line 5"]
    missing = run(new, b"\n".join(export.split(b"\n")[:3] + export.split(b"\n")[4:]))
    assert [failure.what for failure in missing.failures] == ["the file, after line 5"]
    assert sorted(each.id for each in new.documents.iterate()) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"", "no export of bankclient"),
        (b"\n", "no export of bankclient"),
        (b"some text\n", "no export of bankclient"),
        (b"[]\n", "no export of bankclient"),
        (b"\x00" * 100, "no export of bankclient"),
        (b"[" * 100_000, "no export of bankclient"),
        (b'{"format": "other"}\n', "no export of bankclient"),
        (b'{"format": "bankclient-export", "version": 2}\n', "format version 2, and this bankclient knows 1: upgrade"),
        (b'{"format": "bankclient-export"}\n', "format version None"),
        (b'{"format": "bankclient-export", "version": 1}\n', "the header of this export is broken: exported_at"),
    ],
)
def test_a_file_that_is_no_export_or_a_newer_one_is_refused(new: BankClient, start: bytes, said: str) -> None:
    """Nothing is sent of it."""
    with pytest.raises(InvalidInput) as raised:
        run(new, start)
    assert said in str(raised.value)
    assert list(new.banks.iterate()) == []


def test_what_other_programs_do_to_text_files_is_no_harm(old: BankClient, new: BankClient, exported: Export) -> None:
    """A byte-order mark, Windows line ends, empty lines and fields of a later version are passed over."""
    many(old, 2)
    header, bank, *documents, end = lines(exported())
    changed = joined(header | {"later": 1}, bank | {"later": 1}, *(each | {"later": [1]} for each in documents))
    export = b"\xef\xbb\xbf" + (changed + b"\n" + joined(end | {"lines": 6})).replace(b"\n", b"\r\n")
    assert numbers(run(new, export)) == (2, 0, 0)


def test_a_change_that_cannot_be_found_there_is_named(old: BankClient, new: BankClient, exported: Export) -> None:
    """Where the server cuts a text in another way, it is said what has to be done by hand."""
    old.retain("paragraph of a text.\n\n" * 400, document_id="long")
    memory = next(iter(old.memories.iterate()))
    old.memories.invalidate(memory.id)
    new.banks.configure({"retain_chunk_size": 300})
    report = run(new, exported())
    assert numbers(report) == (0, 0, 1)
    assert report.failures[0].what == "document 'long' of bank 'bankclient'"
    assert "it is stored, but a memory of it was invalidated" in str(report.failures[0].why)
    assert new.documents.get("long").memory_unit_count > 3


def test_how_far_it_is_can_be_told_at_any_time(old: BankClient, new: BankClient, exported: Export) -> None:
    """Progress comes document by document, up to what the header promised."""
    many(old, 120)
    seen: list[tuple[int, int]] = []
    run(new, exported(), on_progress=lambda report: seen.append((report.done, report.expected)))
    assert seen == [(number, 120) for number in range(1, 121)]


def test_few_requests_take_many_documents(old: BankClient, exported: Export, tmp_path: Path) -> None:
    """Small documents go together, under one operation id a request, and each operation is waited for."""
    many(old, 120)
    with (
        EmbeddedServer(tmp_path / "new" / "embedded.sqlite3") as bank,
        ScriptedServer(handler=partial(answered, bank)) as scripted,
    ):
        settings = Settings(api_url=scripted.url, state_dir=tmp_path)
        with BankClient(settings=settings, folder=tmp_path) as client:
            run(client, exported())
        requests = scripted.requests
    sent = [request.json() for request in requests if request.method == "POST"]
    assert [len(body["items"]) for body in sent] == [50, 50, 20]
    assert all(body["async"] for body in sent)
    operations = [body["operation_id"] for body in sent]
    asked = [request.path.rpartition("/")[2] for request in requests if "/operations/" in request.path]
    assert asked == operations
