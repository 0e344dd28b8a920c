"""`bankclient retain`: one text, from the command line or stdin, filed under the project.

It takes the text in, says where it goes, hands it to the client and tells what became of it; the client does the rest.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Final, Literal
from uuid import uuid4

import typer

import bankclient
from bankclient.cli import options, output
from bankclient.cli.place import Place, find_place
from bankclient.errors import CallError, ConnectionLost, InvalidInput, TimedOut

if TYPE_CHECKING:
    from bankclient import BankClient, MemoryItem

__all__ = ["app", "retain"]

app = options.new_app()

_LARGEST: Final = 32 * 1024 * 1024
"""Bytes that are taken from stdin; beyond that it is no memory, and perhaps a device without an end."""


@dataclass(frozen=True, slots=True)
class _Filed:
    """Where a text went, and how far it is: `accepted` by the server, or `stored`."""

    status: Literal["accepted", "stored"]
    bank: str
    project: str | None
    tags: tuple[str, ...]
    document_id: str | None
    operation_id: str

    def __str__(self) -> str:
        parts = [
            f"bank {self.bank}",
            f"project {self.project}" if self.project else "all projects",
            f"tags {' '.join(self.tags)}" if self.tags else "",
            f"document {self.document_id}" if self.document_id else "",
            f"operation {self.operation_id}",
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
    as_json: options.AsJson = False,
) -> None:
    """Put a text into memory, filed under the project of the current folder.

    The server answers at once and works on; --wait waits for that. The same text again is stored again, unless
    --document says which document it replaces.
    """
    options.refuse_blank("--tag", *tags or ())
    options.refuse_blank("--document", document)
    place = find_place()
    place.warn()
    item = bankclient.MemoryItem(
        place.redacted(_read(text)),
        tags=tags or (),
        document_id=document,
        context=None if context is None else place.redacted(context),
    )
    filed = _placed(place, item, scope, bank)
    with place.client() as client:
        _send(client, item, filed, scope)
        if wait:
            filed = _awaited(client, filed)
    if as_json:
        output.show_json(asdict(filed))
    else:
        output.show_line(filed.status, str(filed))


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


def _placed(place: Place, item: MemoryItem, scope: Literal["project", "global"], bank: str | None) -> _Filed:
    """Return where the item goes; raises `InvalidInput` where that would be a project without a name."""
    if scope == "project" and not place.scope.resolved:
        how = place.scope.project.how
        raise InvalidInput(
            f"this folder belongs to no project ({how}); add --scope global, or name the project with HINDSIGHT_PROJECT"
        )
    target = place.scope.retain_target(scope)
    is_own = bool(target.tags) or (bank is None and target.bank != place.scope.global_bank)
    return _Filed(
        status="accepted",
        bank=target.bank if bank is None else bank,
        project=place.scope.project.name if is_own else None,
        tags=tuple(dict.fromkeys((*target.tags, *item.tags))),
        document_id=item.document_id,
        operation_id=str(uuid4()),
    )


def _send(client: BankClient, item: MemoryItem, filed: _Filed, scope: Literal["project", "global"]) -> None:
    try:
        with output.busy("handing it to the server"):
            client.retain_many([item], scope=scope, background=True, operation_id=filed.operation_id, bank=filed.bank)
    except (ConnectionLost, TimedOut) as error:
        error.add_note(f"it may be stored all the same, as operation {filed.operation_id}")
        raise


def _awaited(client: BankClient, filed: _Filed) -> _Filed:
    limit = client.settings.retain_timeout_ms / 1000
    try:
        with output.busy("waiting until it is stored"):
            operation = client.operations.wait(filed.operation_id, timeout=limit, bank=filed.bank)
    except CallError as error:
        error.add_note(f"the text was accepted, as operation {filed.operation_id}")
        raise
    if operation.extraction_errors:
        output.warn(
            f"from {operation.extraction_errors} parts of the text no facts could be drawn; the server's log says why"
        )
    return replace(filed, status="stored")
