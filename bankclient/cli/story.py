"""How the demo is told: headings, what somebody said, what was found; laid out on a terminal, plain in a pipe.

It knows nothing of what is told. Rich loads only where there is a terminal.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bankclient.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["facts", "found", "heading", "said", "tell"]

_MARGIN = "   "


def heading(text: str) -> None:
    """Begin a step."""
    _print("")
    _print(text, style="bold cyan")


def tell(text: str) -> None:
    """Say what happens."""
    _print(f"{_MARGIN}{text}")


def said(who: str, text: str) -> None:
    """Quote what somebody said."""
    _print(f"{_MARGIN}{who:>9}: {text}", style="italic")


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Show names with their values, the values under each other."""
    pairs = list(pairs)
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        _print(f"{_MARGIN}{name:{width}}  {value}")


def found(text: str) -> None:
    """Show a text out of memory, as it is."""
    for line in output.clean(text).splitlines():
        _print(f"{_MARGIN}| {line}".rstrip(), style="green")


def _print(text: str, *, style: str = "") -> None:
    if not output.is_terminal():
        output.show_text(text)
        sys.stdout.flush()  # whoever reads along a pipe sees each step as it happens
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.padding import Padding  # noqa: PLC0415 - the same
    from rich.text import Text  # noqa: PLC0415 - the same

    words = text.lstrip(" ")
    line = Padding(Text(output.clean(words), style=style), (0, 0, 0, len(text) - len(words)))
    Console(markup=False, emoji=False, highlight=False).print(line)
