"""`bankclient import`: an export of the embedded bank, sent to a Hindsight server."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import bankclient
from bankclient.cli import options, output
from bankclient.cli.failures import explain
from bankclient.cli.place import find_place
from bankclient.cli.progress import progress
from bankclient.cli.stopping import stoppable
from bankclient.errors import BankclientError, CallError, ConfigError, InvalidInput, OperationFailed
from bankclient.settings import load
from bankclient.transfer import Importer, Report

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import BinaryIO

    from bankclient import BankClient

__all__ = ["app", "import_"]

app = options.new_app()
_TOLD = 20


@app.command(name="import")
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="The export; - reads it from stdin.")],
    *,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="URL", help="The server, in place of HINDSIGHT_API_URL; its key is HINDSIGHT_API_TOKEN."
        ),
    ] = None,
    banks: Annotated[
        list[str] | None,
        typer.Option("--bank", metavar="OLD=NEW", help="Another name for a bank. May be given several times."),
    ] = None,
) -> int:
    """Send an export of the embedded bank to a Hindsight server.

    Documents keep their ids, and what the server has already, with the same text and tags, is passed over: run it again
    after a failure, and it goes on. A bank that is there keeps its own configuration. The exit code is 1 if anything
    failed.
    """
    names = dict(_renamed(each) for each in banks or ())
    with stoppable(), _opened(file) as stream, _client(to) as client, progress("importing") as tell:
        importer = Importer(
            client, names=names, on_progress=lambda report: tell(report.done, report.expected or report.done)
        )
        try:
            importer.run(stream)
        except (CallError, OperationFailed, KeyboardInterrupt, SystemExit) as error:
            error.add_note(f"so far {_summary(importer.report)}; run it again to go on")
            if not isinstance(error, BankclientError):
                output.warn(error.__notes__[-1])
            _tell_failures(importer.report)
            raise
    _tell_failures(importer.report)
    output.show_line("warning" if importer.report.failed else "ok", _summary(importer.report))
    return 1 if importer.report.failed else 0


def _renamed(given: str) -> tuple[str, str]:
    old, _, new = given.partition("=")
    if not old or not new:
        raise InvalidInput(
            f"--bank {given!r} is not understood; write OLD=NEW, the names in the file and on the server"
        )
    return old, new


@contextlib.contextmanager
def _opened(file: str) -> Generator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
    else:
        with Path(file).open("rb") as stream:
            yield stream


def _client(to: str | None) -> BankClient:
    place = find_place()
    place.warn()
    if to is None:
        return place.client()
    if place.disabled:
        raise ConfigError(f"{place.disabled}, and nothing was sent; take that away to switch it on")
    loaded = load(flags={"api_url": to})
    for warning in loaded.warnings:
        if warning not in place.loaded.warnings:
            output.warn(warning)
    return bankclient.BankClient(settings=loaded.settings)


def _summary(report: Report) -> str:
    parts = [
        f"{report.stored} documents stored",
        f"{report.skipped} there already",
        f"{report.changed} edits and invalidations done again" if report.changed else "",
        f"{report.failed} failed" if report.failed else "",
    ]
    return ", ".join(filter(None, parts))


def _tell_failures(report: Report) -> None:
    for failure in report.failures[:_TOLD]:
        why = explain(failure.why) if isinstance(failure.why, BankclientError) else failure.why
        output.fail(f"{failure.what}: {why}")
    if report.failed > _TOLD:
        output.warn(f"{report.failed - _TOLD} more failed")
