"""`bankclient queue`: what waits to be sent and why, and a person's acts on it."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bankclient.cli import options, output
from bankclient.cli.asking import agreed
from bankclient.cli.place import find_place
from bankclient.cli.queued import Queued, count, duration, moment, server_of, size
from bankclient.cli.store import open_store_if_there
from bankclient.errors import InvalidInput
from bankclient.settings import load
from bankclient.store.fingerprint import KEYLESS
from bankclient.store.outbox import Destination, State

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator

    from bankclient.cli.store import Store
    from bankclient.store.outbox import Batch, Queue

__all__ = ["app", "drop", "list_", "queue", "rekey", "retry", "show"]

app = options.new_app()

_PAGE = 1000
_NOTHING = "nothing is queued"
Ids = Annotated[list[int] | None, typer.Argument(metavar="ID...", help="As `bankclient queue list` names them.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.callback(invoke_without_command=True)
def queue(context: typer.Context, *, as_json: options.AsJson = False) -> None:
    """Show what waits to be sent, where to, and why; and try it again, or drop it.

    `bankclient flush` sends it. Nothing is shown to, or asked of, a server here.
    """
    if context.invoked_subcommand is not None:
        return
    with _looked_at() as store:
        queued = Queued(store)
    if as_json:
        output.show_json(queued.as_json())
        return
    if not queued.states:
        output.note(_NOTHING)
        return
    output.show_pairs(
        [
            (state.value, f"{count(tally.items)} in {tally.batches} requests, {size(tally.size)}")
            for state in State
            if (tally := queued.states.get(state)) is not None
        ]
    )
    if queued.waiting:
        output.show_table(
            ("items", "size", "oldest", "next try", "to", "why"),
            [
                (
                    str(lane.queued.items),
                    size(lane.queued.size),
                    duration(queued.now - (lane.oldest or queued.now)),
                    queued.next_try(lane),
                    server_of(lane.destination),
                    queued.why(lane),
                )
                for lane in queued.waiting
            ],
        )
    if queued.losses:
        output.show_table(
            ("lost items", "size", "last", "why"),
            [(str(loss.items), size(loss.size), moment(loss.at) or "", loss.reason) for loss in queued.losses],
        )


@app.command("list")
def list_(
    *,
    states: Annotated[
        list[State] | None,
        typer.Option("--state", help="Only what is in this state; all but stored unless given."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List what is queued or was given up, in the order in which it was acknowledged."""
    wanted = states or [state for state in State if state is not State.STORED]
    with _looked_at() as store:
        batches = [] if store is None else list(_every(store.outbox, wanted))
    if as_json:
        output.show_json([_batch_json(batch) for batch in batches])
    elif not batches:
        output.note(_NOTHING)
    else:
        now = time.time()
        output.show_table(
            ("id", "state", "what", "items", "size", "age", "bank", "to", "why"),
            [
                (
                    str(batch.id),
                    batch.state.value,
                    batch.kind.value,
                    str(batch.items),
                    size(batch.size),
                    duration(now - batch.added),
                    batch.address.bank,
                    server_of(batch.address.destination),
                    batch.why,
                )
                for batch in batches
            ],
        )


@app.command()
def show(
    number: Annotated[int, typer.Argument(metavar="ID", help="As `bankclient queue list` names it.")],
    *,
    as_json: options.AsJson = False,
) -> None:
    """Show one request that is queued, was stored or was given up, with its texts as long as they are kept."""
    with _looked_at() as store:
        batch = _found(store, number)
        documents = [document.id for document in store.outbox.documents(number)] if store else []
        body = store.outbox.text(number) if store else None
    items: list[dict[str, Any]] = json.loads(body)["items"] if body else []
    if as_json:
        output.show_json(_batch_json(batch) | {"documents": documents, "texts": items})
        return
    told = _batch_json(batch) | {"tags": ", ".join(batch.address.tags), "documents": ", ".join(filter(None, documents))}
    output.show_pairs([(name.replace("_", " "), str(value)) for name, value in told.items() if value])
    for item in items:
        content = item["content"]
        output.show_text(f"\n{content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)}")


@app.command()
def retry(
    numbers: Ids = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All that waits or is dead.")] = False,
) -> int:
    """Have what waits or was given up tried by the next flush.

    What was given up goes under a new id; it stays so where a later version of its document was queued or stored.
    """
    if bool(numbers) == everything:
        raise InvalidInput("say which, by their ids, or --all")
    with _looked_at() as store:
        batches = _chosen(store, numbers, [State.WAITING, State.ACCEPTED, State.SEALED, State.DEAD])
        revived = [batch for batch in batches if store and store.outbox.revive(batch.id, now=time.time())]
    for batch in batches:
        if batch not in revived:
            output.warn(f"{batch.id} is left as it is: it is stored, or a later version of its document is")
    output.show_line(
        "ok", f"{count(sum(batch.items for batch in revived))} will be tried; `bankclient flush` sends now"
    )
    return 0 if len(revived) == len(batches) else 1


@app.command()
def drop(
    numbers: Ids = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All that is not stored.")] = False,
    yes: Yes = False,
) -> int:
    """Give up what is queued, for good; what a server has of it already stays there."""
    if bool(numbers) == everything:
        raise InvalidInput("say which, by their ids, or --all")
    with _looked_at() as store:
        batches = _chosen(store, numbers, [state for state in State if state is not State.STORED])
        items = sum(batch.items for batch in batches)
        if not batches or not agreed(f"Drop {count(items)} that are nowhere else?", yes=yes):
            output.note("nothing was dropped")
            return 0 if not batches else 1
        for batch in batches:
            if store is not None:
                store.outbox.drop(batch.id, now=time.time())
    output.show_line("ok", f"{count(items)} dropped")
    return 0


@app.command()
def rekey(
    url: Annotated[str, typer.Argument(metavar="URL", help="The server, as `bankclient queue` names it.")],
    *,
    yes: Yes = False,
) -> int:
    """Send what is queued for a server with the key that is configured now, in place of the one that it was meant for.

    Do so after the server's key was changed: what waits for the old one would wait for ever.
    """
    place = find_place()
    place.warn()
    settings = place.settings if url.rstrip("/") == place.settings.api_url else load(flags={"api_url": url}).settings
    with open_store_if_there(place) as store:
        if store is None:
            output.note(_NOTHING)
            return 0
        new = store.keyring.destination(settings)
        lanes = [
            lane
            for lane in store.outbox.overview(now=time.time()).lanes
            if lane.destination.url == new.url and lane.destination != new and lane.queued.items
        ]
        if not lanes:
            output.note(f"nothing is queued for {new.url} with another key")
            return 0
        key = "without a key" if new.key == KEYLESS else f"with the key {new.key[:8]}, which is configured now"
        items = count(sum(lane.queued.items for lane in lanes))
        if not agreed(f"Send {items} for {new.url} {key}?", yes=yes):
            output.note("nothing was changed")
            return 1
        for lane in lanes:
            with store.database.write():
                store.outbox.rekey(new.url, lane.destination.key, new.key, now=time.time())
                store.sessions.rekey(new.url, lane.destination.key, new.key)
    output.show_line("ok", f"{items} will be sent {key}; `bankclient flush` sends now")
    return 0


@contextlib.contextmanager
def _looked_at() -> Generator[Store | None]:
    place = find_place()
    place.warn()
    with open_store_if_there(place) as store:
        yield store


def _every(outbox: Queue, states: Collection[State]) -> Iterator[Batch]:
    after = 0
    while page := outbox.batches(states=states, after=after, limit=_PAGE):
        yield from page
        after = page[-1].id


def _chosen(store: Store | None, numbers: list[int] | None, states: Collection[State]) -> list[Batch]:
    """Return the batches of those ids, or all in those states."""
    if numbers:
        return [_found(store, number) for number in dict.fromkeys(numbers)]
    return [] if store is None else list(_every(store.outbox, states))


def _found(store: Store | None, number: int) -> Batch:
    batch = None if store is None else store.outbox.batch(number)
    if batch is None:
        raise InvalidInput(f"there is nothing queued of the id {number}; `bankclient queue list` shows what there is")
    return batch


def _batch_json(batch: Batch) -> dict[str, object]:
    destination: Destination = batch.address.destination
    return {
        "id": batch.id,
        "state": batch.state.value,
        "what": batch.kind.value,
        "items": batch.items,
        "bytes": batch.size,
        "url": destination.url,
        "key": destination.key,
        "bank": batch.address.bank,
        "tags": batch.address.tags,
        "operation_id": batch.server_operation or batch.operation_id,
        "acknowledged": moment(batch.added),
        "changed": moment(batch.changed),
        "not_before": moment(batch.until) if batch.until else None,
        "sent": batch.sent,
        "why": batch.why or None,
    }
