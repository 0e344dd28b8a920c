"""`bankclient export`: the embedded bank as JSON lines, to a file or stdout."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bankclient.cli import options, output
from bankclient.cli.place import find_place
from bankclient.cli.stopping import stoppable
from bankclient.client.setup import set_up
from bankclient.errors import InvalidInput
from bankclient.transfer import export as write_export

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import BinaryIO

__all__ = ["app", "export"]

app = options.new_app()


@app.command()
def export(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="Where to; - is stdout.")] = "-",
    *,
    banks: Annotated[
        list[str] | None,
        typer.Option("--bank", metavar="NAME", help="Only this bank. May be given several times."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it is there.")] = False,
) -> None:
    """Write the embedded bank as JSON lines: every bank in it, as all of it stands at this moment.

    Whoever writes to it meanwhile is neither held up nor seen. A file is there only once it is whole, and readable by
    you alone. `bankclient import` sends it to a Hindsight server.
    """
    options.refuse_blank("--bank", *banks or ())
    place = find_place()
    place.warn()
    bank_file = set_up(settings=place.settings, folder=None, flags={}, degrade=False, breaker=None).bank_file
    if file == "-":
        exported = write_export(bank_file, sys.stdout.buffer.write, banks=banks or ())
        output.note(f"exported {exported}")
        return
    with stoppable(), _whole_file(Path(file), force=force) as out, output.busy("exporting"):
        exported = write_export(bank_file, out.write, banks=banks or ())
    output.show_line("ok", f"exported {exported} to {file}")


@contextlib.contextmanager
def _whole_file(path: Path, *, force: bool) -> Generator[BinaryIO]:
    """Give a new private file that gets its name `path` once the block has written it, and is gone if it fails."""
    if path.exists() and not force:
        raise InvalidInput(f"{path} is there already; add --force to replace it, or choose another name")
    try:
        number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be made: {error.strerror}") from error
    unfinished = Path(name)
    try:
        with os.fdopen(number, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
