"""`bankclient retain`: one text, from the command line or stdin, filed under the project.

It takes the text in, keeps it in the outbox, which is the acknowledgement, has it sent if the server is there, and
tells how far it came.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

import bankclient
from bankclient import calls
from bankclient.cli import options, output
from bankclient.cli.asking import agreed
from bankclient.cli.failures import explain
from bankclient.cli.place import Place, find_place
from bankclient.cli.queued import Queued
from bankclient.cli.sending import Tally
from bankclient.cli.sharing import name_counts
from bankclient.cli.store import open_store
from bankclient.client.filing import filed
from bankclient.errors import CallError, InvalidInput
from bankclient.flusher import PATIENCE
from bankclient.store.outbox import Address, State, Step
from bankclient.store.outbox.sealing import fact_document
from bankclient.store.roots import Roots, same_name

if TYPE_CHECKING:
    from bankclient import MemoryItem
    from bankclient.cli.store import Store
    from bankclient.store.outbox import Batch

__all__ = ["app", "retain"]

app = options.new_app()

_LARGEST: Final = 32 * 1024 * 1024
"""Bytes that are taken from stdin; beyond that it is no memory, and perhaps a device without an end."""
_PROMPT_SECONDS: Final = 2.0
"""So long a person who did not say --wait waits for the server to take it."""

Fields = dict[str, Any]
"""An item as the API has it."""


@dataclass(frozen=True, slots=True)
class _Filed:
    """Where a text goes, and how far it is: kept here, accepted by the server, stored there, or given up (dead)."""

    status: Literal["kept", "accepted", "stored", "dead"]
    bank: str
    project: str | None
    tags: tuple[str, ...]
    document_id: str
    operation_id: str | None
    queue_id: int | None

    def line(self, *, names_document: bool) -> str:
        """Return it in words, with the document where the person named it."""
        parts = [
            f"bank {self.bank}",
            f"project {self.project}" if self.project else "all projects",
            f"tags {' '.join(self.tags)}" if self.tags else "",
            f"document {self.document_id}" if names_document else "",
            f"queued as {self.queue_id}" if self.status in {"kept", "dead"} else f"operation {self.operation_id}",
        ]
        return ", ".join(filter(None, parts))


@app.command()
def retain(
    text: Annotated[str, typer.Argument(metavar="TEXT|-", help="The text; - reads it from stdin.")],
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Return when it is stored and can be recalled.")] = False,
    context: Annotated[
        str | None, typer.Option("--context", metavar="TEXT", help="What it is about, for the server's model.")
    ] = None,
    document: Annotated[
        str | None, typer.Option("--document", metavar="ID", help="The document that this replaces, or makes.")
    ] = None,
    scope: Annotated[
        Literal["project", "global"],
        typer.Option("--scope", help="Whether it counts for this project or for all of them."),
    ] = "project",
    bank: options.Bank = None,
    tags: options.Tags = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether to store again what was forgotten.")] = False,
    as_json: options.AsJson = False,
) -> int:
    """Put a text into memory, filed under the project of the current folder.

    It is kept on this machine first, and stored once, however long the server is away: what it does not take at once is
    sent by the next retain or `bankclient flush`. --wait waits until it is stored, and exits with 1 where that does not
    come about; it stays kept all the same. The same text is one memory, however often it is retained.
    """
    options.refuse_blank("--tag", *tags or ())
    options.refuse_blank("--document", document)
    place = find_place()
    place.warn()
    place.check_usable()
    item = bankclient.MemoryItem(
        place.redacted(_read(text)),
        tags=tags or (),
        document_id=document,
        context=None if context is None else place.redacted(context),
    )
    bank, fields = _placed(place, item, scope, bank)
    with open_store(place) as store:
        _tell_of_same_name(place, store)
        address = Address(store.destination, bank, tuple(fields.get("tags", ())))
        number = _keep(store, address, fields, yes=yes)
        if number is None:
            output.note("nothing was kept")
            return 1
        tally = _send(store, number, wait=wait)
        batch = store.outbox.batch_of_item(number)
        why = _why(store, batch)
    filed_ = _Filed(
        status=_status(batch),
        bank=bank,
        project=_project(place, scope, bank),
        tags=tuple(fields.get("tags", ())),
        document_id=document or fact_document(address, fields["content"]),
        operation_id=None if batch is None else batch.server_operation or batch.operation_id,
        queue_id=None if batch is None else batch.id,
    )
    if as_json:
        output.show_json(asdict(filed_))
    else:
        output.show_line(filed_.status, filed_.line(names_document=document is not None))
    return _tell(place, batch, why, tally, wait=wait)


def _tell_of_same_name(place: Place, store: Store) -> None:
    """Say once that another folder's project has this one's name, and so its memories."""
    project = place.scope.project
    others = Roots(store.database).note(project, now=time.time()) if name_counts(place) else ()
    if told := same_name(project, others):
        output.warn(told)


def _read(text: str) -> str:
    """Return the text to retain, from stdin for `-`; raises `InvalidInput` where there is none, or far too much."""
    if text == "-":
        if sys.stdin is None:
            raise InvalidInput("stdin is closed; give the text itself")
        if sys.stdin.isatty():
            output.note("reading the text from the terminal; Ctrl-D ends it")
        data = sys.stdin.buffer.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise InvalidInput(f"stdin holds more than {_LARGEST // 2**20} MiB; retain it in parts")
        text = data.decode("utf-8-sig", "surrogateescape")
    if not text.replace("\x00", "").strip():
        raise InvalidInput("the text is empty; give some to retain")
    try:
        text.encode()
    except UnicodeEncodeError:
        output.warn("the text is not UTF-8 throughout; what is not is retained as U+FFFD")
    return text


def _placed(
    place: Place, item: MemoryItem, scope: Literal["project", "global"], bank: str | None
) -> tuple[str, Fields]:
    """Return the bank, and the item as the API has it; raises `InvalidInput` for what no server would take.

    That is so too where it would go to a project without a name.
    """
    if scope == "project" and not place.scope.resolved:
        how = place.scope.project.how
        raise InvalidInput(
            f"this folder belongs to no project ({how}); add --scope global, or name the project with HINDSIGHT_PROJECT"
        )
    target = place.scope.retain_target(scope)
    bank = target.bank if bank is None else bank
    call = calls.retain_many(bank, filed([item], target, place.scope, place.settings.retain_context), background=True)
    (fields,) = json.loads(call.body or b"")["items"]
    return bank, fields


def _project(place: Place, scope: Literal["project", "global"], bank: str) -> str | None:
    """Return the project whose memory it will be, `None` where it is everybody's."""
    target = place.scope.retain_target(scope)
    is_own = bool(target.tags) or (bank == target.bank and target.bank != place.scope.global_bank)
    return place.scope.project.name if is_own else None


def _keep(store: Store, address: Address, fields: Fields, *, yes: bool) -> int | None:
    """Put it into the outbox; return its number there, `None` where it was forgotten and is to stay so."""
    added = store.outbox.add_fact(address, fields, now=time.time())
    if added.forgotten_at is not None:
        when = time.strftime("%Y-%m-%d", time.localtime(added.forgotten_at))
        if not agreed(f"This was forgotten on {when}. Store it again?", yes=yes):
            return None
        added = store.outbox.add_fact(address, fields, now=time.time(), restore=True)
    if not added.fresh:
        output.note("the same text is queued already")
    return added.item


def _send(store: Store, number: int, *, wait: bool) -> Tally:
    ends = {State.STORED, State.DEAD} if wait else {State.ACCEPTED, State.STORED, State.DEAD}

    def is_there() -> bool:
        batch = store.outbox.batch_of_item(number)
        return batch is None or batch.state in ends

    tally = Tally()
    try:
        with output.busy("waiting until it is stored" if wait else "handing it to the server"):
            store.send(
                watcher=tally,
                timeout=store.settings.retain_timeout_ms / 1000 if wait else _PROMPT_SECONDS,
                patience=PATIENCE,
                until=is_there,
                only=store.destination,
            )
    except KeyboardInterrupt:
        output.note("it is kept; the next retain or `bankclient flush` sends what is not there yet")
        raise
    return tally


def _status(batch: Batch | None) -> Literal["kept", "accepted", "stored", "dead"]:
    match batch and batch.state:
        case State.STORED:
            return "stored"
        case State.ACCEPTED:
            return "accepted"
        case State.DEAD | None:
            return "dead"
        case _:
            return "kept"


def _why(store: Store, batch: Batch | None) -> str:
    """Return what the outbox knows of why it is not stored."""
    if batch is None:
        return "it was taken out of the queue"
    queued = Queued(store)
    reasons = [queued.why(lane) for lane in queued.waiting if lane.destination == batch.address.destination]
    return batch.why or next(iter(reasons), "")


def _tell(place: Place, batch: Batch | None, why: str, tally: Tally, *, wait: bool) -> int:
    """Say why it is not there yet, if it is not; return the exit code."""
    error = None if batch is None else tally.errors.get(batch.address.destination)
    reason = why if error is None else str(explain(error))
    match _status(batch):
        case "stored":
            if wait and batch is not None:
                _warn_of_gaps(place, batch)
            return 0
        case "dead":
            output.fail(f"it was given up: {reason}")
            return 1
        case "accepted" if not wait:
            return 0
        case "accepted":
            limit = place.settings.retain_timeout_ms / 1000
            problem = (
                f"it is not stored after {limit:g} s, and {place.server} goes on; `bankclient status` shows what is"
                " pending, and HINDSIGHT_RETAIN_TIMEOUT_MS is how long --wait waits"
            )
        case _:
            has_failed = batch is not None and batch.step is Step.RETRY
            how = "the server took it and failed to store it" if has_failed else "it is kept, and not sent yet"
            problem = f"{how}: {reason}; the next retain or `bankclient flush` tries again"
    (output.fail if wait else output.warn)(problem)
    return 1 if wait else 0


def _warn_of_gaps(place: Place, batch: Batch) -> None:
    """Warn where the server stored it and its model failed on parts."""
    with place.client() as client, contextlib.suppress(CallError):
        gaps = client.operations.get(batch.server_operation or "", bank=batch.address.bank).extraction_errors
        if gaps:
            output.warn(f"from {gaps} parts of the text no facts could be drawn; the server's log says why")
