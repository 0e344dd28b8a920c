"""Everything that is printed: results on stdout, the rest on stderr.

Plain text in a pipe, tables and colours on a terminal, JSON where it was asked for. It owns the cleaning of foreign
text, which must neither steer a terminal nor be read as markup. Rich loads only where there is a terminal.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging
    from collections.abc import Generator, Sequence

    from rich.console import Console

__all__ = [
    "busy",
    "clean",
    "fail",
    "is_terminal",
    "log_to_stderr",
    "note",
    "one_line",
    "show_json",
    "show_line",
    "show_markdown",
    "show_pairs",
    "show_table",
    "show_text",
    "warn",
]

# Control characters, among them the one that begins an escape sequence, and those that turn the direction of text.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_NO_LETTER = re.compile("[\ud800-\udfff]")
_STYLES = {
    "accepted": "green",
    "stored": "green",
    "ok": "green",
    "kept": "yellow",
    "warning": "yellow",
    "dead": "red",
    "problem": "red",
    "error": "red",
}


def clean(text: str) -> str:
    """Return `text` as a terminal may be given it: nothing but letters, line breaks and tabs."""
    return _NO_LETTER.sub("\ufffd", _STEERING.sub("", text))


def one_line(text: str) -> str:
    """Return `text` cleaned, on one line, white space folded."""
    return " ".join(clean(text).split())


def is_terminal() -> bool:
    """Return whether results go to a terminal."""
    return sys.stdout.isatty()


def show_json(value: object) -> None:
    """Print a result as JSON, in ASCII: every encoding has it, and no terminal is steered by it."""
    print(json.dumps(value, indent=2, allow_nan=False, default=_plain))  # noqa: T201 - this module prints


def _plain(value: object) -> str:
    isoformat = getattr(value, "isoformat", None)
    return str(value if isoformat is None else isoformat())


def show_text(text: str) -> None:
    """Print a text as it is, but cleaned."""
    print(clean(text))  # noqa: T201 - this module prints


def show_line(word: str, text: str) -> None:
    """Print one line that begins with a word of judgement."""
    if is_terminal():
        _print_line(_console(), word, text)
    else:
        show_text(f"{word}: {one_line(text)}")


def show_markdown(text: str) -> None:
    """Print an answer in markdown: laid out on a terminal (its links are text), as it is in a pipe."""
    if not is_terminal():
        show_text(text)
        return
    from rich.markdown import Markdown  # noqa: PLC0415 - only a terminal needs it

    _console().print(Markdown(clean(text), hyperlinks=False))


def show_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names with their values, one a line."""
    if not is_terminal():
        show_text("\n".join(f"{name}: {one_line(value)}" for name, value in pairs))
        return
    from rich.table import Table  # noqa: PLC0415 - only a terminal needs it
    from rich.text import Text  # noqa: PLC0415 - the same

    grid = Table.grid(padding=(0, 2))
    for name, value in pairs:
        grid.add_row(Text(name, style="bold"), Text(one_line(value), overflow="fold"))
    _console().print(grid)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under the names of their columns; in a pipe each row is one line, its columns aligned."""
    if not is_terminal():
        lines = [[one_line(cell) for cell in row] for row in (columns, *rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        show_text("\n".join(padded))
        return
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - only a terminal needs it
    from rich.table import Table  # noqa: PLC0415 - the same
    from rich.text import Text  # noqa: PLC0415 - the same

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns, 1):
        table.add_column(name, overflow="fold", ratio=1 if number == len(columns) else None)
    for row in rows:
        table.add_row(*(Text(clean(cell), style=_STYLES.get(cell, "")) for cell in row))
    _console().print(table)


def note(text: str) -> None:
    """Say something on stderr that is neither result nor fault."""
    print(clean(text), file=sys.stderr)  # noqa: T201 - this module prints


def warn(text: str) -> None:
    """Say on stderr, in one line, what should be known."""
    _say("warning", text)


def fail(text: str) -> None:
    """Say on stderr, in one line, why it failed."""
    _say("error", text)


def _say(word: str, text: str) -> None:
    if sys.stderr.isatty():
        _print_line(_console(stderr=True), word, text)
    else:
        note(f"{word}: {one_line(text)}")


def _print_line(console: Console, word: str, text: str) -> None:
    from rich.text import Text  # noqa: PLC0415 - only a terminal needs it

    console.print(Text.assemble((f"{word}:", f"bold {_STYLES[word]}"), " ", one_line(text)), soft_wrap=True)


@contextlib.contextmanager
def busy(doing: str) -> Generator[None]:
    """Show a person at a terminal that something is under way while the block runs."""
    if sys.stderr.isatty():
        with _console(stderr=True).status(doing):
            yield
    else:
        yield


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


@contextlib.contextmanager
def log_to_stderr() -> Generator[None]:
    """Print what the floors below log while the block runs: warnings, and everything once the level is lowered."""
    import logging  # noqa: PLC0415 - the program's own help needs none

    class ToStderr(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.WARNING:
                warn(record.getMessage())
            else:
                note(f"{record.levelname.lower()}: {one_line(record.getMessage())}")

    logger, handler = logging.getLogger("bankclient"), ToStderr()
    level = logger.level
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
