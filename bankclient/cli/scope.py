"""`bankclient scope`: which project a folder belongs to, and where its memories go; no server is asked."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bankclient.cli import options, output
from bankclient.cli.place import find_place
from bankclient.cli.sharing import name_warning

if TYPE_CHECKING:
    from bankclient.cli.place import Place

__all__ = ["app", "scope"]

app = options.new_app()
Folder = Annotated[
    Path | None, typer.Option("--cwd", metavar="DIR", help="The folder to ask about; the current one unless given.")
]


@app.command()
def scope(*, cwd: Folder = None, as_json: options.AsJson = False) -> None:
    """Show which project this folder belongs to, how that was found, and which bank and tags go with it."""
    place = find_place(cwd)
    if as_json:
        output.show_json(_as_json(place))
        return
    project = place.scope.project
    output.show_pairs(
        [
            ("project", project.name or "none"),
            ("root", str(project.root or "none")),
            ("found by", project.how),
            ("bank", place.scope.bank),
            ("retain tags", ", ".join(place.scope.retain_tags) or "none"),
            *(("recall", target) for target in place.looks_in),
            *(("warning", warning) for warning in _warnings(place)),
        ]
    )


def _as_json(place: Place) -> dict[str, object]:
    scope = place.scope
    return {
        "project": scope.project.name,
        "root": scope.project.root,
        "how": scope.project.how,
        "resolved": scope.resolved,
        "scoping": place.settings.scoping,
        "bank": scope.bank,
        "global_bank": scope.global_bank,
        "retain_tags": scope.retain_tags,
        "recall": [asdict(target) for target in scope.recall],
        "warnings": _warnings(place),
    }


def _warnings(place: Place) -> list[str]:
    shared = name_warning(place)
    return [*place.warnings, *([] if shared is None else [shared])]
