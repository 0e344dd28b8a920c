"""The program: what was typed, the command that it names, and the exit code.

The help of the program itself is written from the table of commands, so that it costs no import of typer.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bankclient import __version__
from bankclient.cli import output
from bankclient.cli.guard import guarded
from bankclient.cli.registry import COMMANDS, module_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that `arguments` (`None`: those of the process) name, and return the exit code.

    0 is success, 1 a failure and 2 a mistake in what was typed, each said in one line on stderr; 130 is Ctrl-C, 141 a
    reader of the output that went away. Never raises.
    """
    return guarded(lambda: _run(sys.argv[1:] if arguments is None else list(arguments)))


def _run(arguments: list[str]) -> int:
    if not arguments:
        output.note(_help())
        return _USAGE_ERROR
    name, *rest = arguments
    if name in {"-h", "--help"}:
        output.show_text(_help())
        return 0
    if name in {"-V", "--version"}:
        output.show_text(f"bankclient {__version__}")
        return 0
    if name not in COMMANDS:
        output.fail(_unknown(name))
        return _USAGE_ERROR
    return _run_command(name, rest)


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: bankclient COMMAND [OPTIONS] [ARGUMENTS]",
            "",
            "Memory for coding agents, kept by a Hindsight server (HINDSIGHT_API_URL says where it is;",
            "`embedded` is a bank on this machine that needs no server).",
            "",
            "Commands:",
            *lines,
            "",
            "`bankclient COMMAND --help` says more; -V or --version is the version.",
        ]
    )


def _unknown(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only who mistypes pays for it

    near = get_close_matches(name, COMMANDS, 1)
    if name.startswith("-"):
        return f"the option {name!r} stands before the command; write bankclient COMMAND {name} (see bankclient --help)"
    mend = f"did you mean {near[0]}?" if near else "bankclient --help lists them"
    return f"there is no command {name!r}; {mend}"


def _run_command(name: str, arguments: list[str]) -> int:
    from importlib import import_module  # noqa: PLC0415 - the program's own help needs none of these

    import typer  # noqa: PLC0415 - the same

    module = import_module(module_of(name))
    command = typer.main.get_command(module.app)
    # Not through the command's own `main`, which would judge errors and broken pipes itself, in its own way.
    try:
        with output.log_to_stderr(), command.make_context(f"bankclient {name}", arguments) as context:
            code: int | None = command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except typer.TyperException as error:
        said = error.format_message().replace("Value error, ", "").rstrip(".")  # how typer's own checks begin
        output.fail(f"{said}; see bankclient {name} --help")
        return _USAGE_ERROR
    return code or 0
