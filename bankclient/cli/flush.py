"""`bankclient flush`: everything that is queued, sent and seen stored, as far as the servers take it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from bankclient.cli import options, output
from bankclient.cli.place import find_place
from bankclient.cli.progress import progress
from bankclient.cli.queued import Queued, count
from bankclient.cli.sending import Tally
from bankclient.cli.store import check_usable, open_store_if_there
from bankclient.flusher import PATIENCE

if TYPE_CHECKING:
    from bankclient.cli.store import Store

__all__ = ["app", "flush"]

app = options.new_app()


@app.command()
def flush(
    *,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=0.001,
            max=86_400.0,
            help="Go on trying for so long; without it, what is turned away twice is left for later.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> int:
    """Send everything that is queued and what was said in sessions until now, and see it stored.

    What cannot be sent stays, and is tried again by the next flush or retain. Ctrl-C ends it, and loses nothing. The
    exit code is 0 if nothing is left that waits, and 1 otherwise.
    """
    place = find_place()
    place.warn()
    with open_store_if_there(place) as store:
        check_usable(place, store)
        tally = Tally()
        if store is not None:
            _send(store, tally, timeout)
        queued = Queued(store)
    if as_json:
        report = queued.as_json()
        output.show_json({"stored": tally.stored, "given_up": tally.given_up, **report})
    else:
        _tell(tally, queued)
    return 1 if queued.items or tally.given_up else 0


def _send(store: Store, tally: Tally, timeout: float | None) -> None:
    usual = store.settings.retain_timeout_ms / 1000
    store.sessions.sweep("flush", now=time.time())
    total = Queued(store).items
    with progress("sending") as show:
        tally.then = lambda: show(min(tally.stored + tally.given_up, total), total)
        tally.then()
        store.send(
            watcher=tally,
            timeout=usual if timeout is None else timeout,
            patience=PATIENCE if timeout is None else timeout,
        )


def _tell(tally: Tally, queued: Queued) -> None:
    if tally.stored or not queued.waiting:
        output.show_line("stored", count(tally.stored) if tally.stored else "nothing is left to send")
    for lane in queued.waiting:
        output.warn(f"{queued.line(lane)}; next try {queued.next_try(lane)}")
    if tally.given_up:
        were, them = ("was", "it") if tally.given_up == 1 else ("were", "them")
        output.warn(
            f"{count(tally.given_up)} {were} given up: {tally.why}; `bankclient queue list --state dead` shows {them}"
        )
