"""`bankclient doctor`: is everything right here, and if not, what is the mend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bankclient.cli import options, output
from bankclient.cli.checks import check_client, check_place, check_queue
from bankclient.cli.failures import Failure
from bankclient.cli.findings import problem, warning
from bankclient.cli.place import find_place
from bankclient.cli.stopping import stoppable
from bankclient.cli.trial import try_writing
from bankclient.settings import describe

if TYPE_CHECKING:
    from bankclient.cli.findings import Finding
    from bankclient.cli.place import Place

__all__ = ["app", "doctor"]

app = options.new_app()


@app.command()
def doctor(
    *,
    write: Annotated[
        bool, typer.Option("--write", help="Also retain, recall and delete a text, in a bank made for that.")
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Check the settings, the server, the key and the project, and say how to mend what is wrong.

    Secrets are not shown. The exit code is 1 where there is a problem.
    """
    place = find_place()
    with output.busy("asking the server"):
        findings = _examine(place, write=write)
    settings = describe(place.loaded)
    if as_json:
        output.show_json(
            {
                "ok": not _has_problem(findings),
                "settings": [dict(zip(("name", "value", "source"), row, strict=True)) for row in settings],
                "checks": [finding._asdict() for finding in findings],
            }
        )
    else:
        output.show_table(("setting", "value", "source"), settings)
        output.show_table(("", "check", "finding"), [(found.state, found.check, str(found)) for found in findings])
    return 1 if _has_problem(findings) else 0


def _examine(place: Place, *, write: bool) -> list[Finding]:
    findings = [*check_place(place), *check_queue(place)]
    if place.disabled:
        return [*findings, warning("server", f"not asked: {place.disabled}", "take that away to switch it on")]
    if place.misdirected:
        return [*findings, problem("server", Failure(f"not asked: {place.misdirected}", "mend it, or unset it"))]
    with place.client() as client:
        findings += check_client(place, client)
        if write and not _has_problem(findings):
            with stoppable():
                findings += try_writing(client)
    return findings


def _has_problem(findings: list[Finding]) -> bool:
    return any(finding.state == "problem" for finding in findings)
