"""`bankclient status`: the server, what is in the banks of this folder's scope, and what is under way."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bankclient.cli import options, output
from bankclient.cli.banks import BankState, bank_states
from bankclient.cli.failures import explain
from bankclient.cli.place import find_place
from bankclient.cli.queued import Queued
from bankclient.cli.store import check_usable, open_store_if_there
from bankclient.errors import CallError

if TYPE_CHECKING:
    from bankclient.cli.place import Place

__all__ = ["app", "status"]

app = options.new_app()


@dataclass(frozen=True, slots=True)
class _Standing:
    """What the server said; `error` is why it said no more."""

    reachable: bool = False
    version: str | None = None
    banks: tuple[BankState, ...] = ()
    error: str | None = None


@app.command()
def status(*, as_json: options.AsJson = False) -> int:
    """Show whether the server is reachable, what is in this project's bank, what is under way and what is queued.

    The exit code is 1 where the server could not be asked.
    """
    place = find_place()
    place.warn()
    with open_store_if_there(place) as store:
        check_usable(place, store)
        queued = Queued(store)
    standing = _ask(place)
    if as_json:
        shown = {"server": place.server, "scope": _scope(place), "queue": queued.as_json()}
        output.show_json(asdict(standing) | shown)
    else:
        output.show_pairs(
            [
                ("server", place.server),
                ("reachable", "yes" if standing.reachable else "no"),
                *([("version", standing.version)] if standing.version else []),
                ("project", f"{place.scope.project.name or 'none'} ({place.scope.project.how})"),
                *(("bank", str(state)) for state in standing.banks),
                *(("queue", line) for line in queued.lines()),
            ]
        )
    if standing.error is not None:
        output.fail(standing.error)
    return 0 if standing.error is None else 1


def _ask(place: Place) -> _Standing:
    reachable, version = False, None
    with place.client() as client, output.busy("asking the server"):
        try:
            version = client.version().api_version
            reachable = True
            return _Standing(reachable, version, tuple(bank_states(client)))
        except CallError as error:
            return _Standing(reachable, version, error=str(explain(error)))


def _scope(place: Place) -> dict[str, object]:
    return {
        "project": place.scope.project.name,
        "bank": place.scope.bank,
        "retain_tags": place.scope.retain_tags,
        "recall": [asdict(target) for target in place.scope.recall],
    }
