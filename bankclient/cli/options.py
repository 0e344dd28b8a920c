"""The options that several commands share, so that they are spelled and explained alike.

The words that an option takes are those of the API, written out here so that a command's help loads none of it.
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from bankclient.errors import InvalidInput

__all__ = ["AsJson", "Bank", "Budget", "MaxTokens", "Tags", "TagsMatch", "Types", "new_app", "refuse_blank"]

Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="A tag, beside the project's own. May be given several times."),
]
Bank = Annotated[
    str | None,
    typer.Option("--bank", metavar="NAME", help="The bank of exactly this name, in place of the project's."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TagsMatch = Annotated[
    Literal["any", "all", "any_strict", "all_strict", "exact"] | None,
    typer.Option(
        "--tags-match",
        help="How tags are meant: any or all of them, each also finding untagged memories unless strict; "
        "exact: these and no others.",
    ),
]
_TYPES = ("world", "experience", "observation")


def _known_types(given: list[str] | None) -> list[str] | None:
    # typer takes no list of literals.
    for name in given or ():
        if name not in _TYPES:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(_TYPES)}")
    return given


Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="|".join(_TYPES),
        callback=_known_types,
        help="A kind of memory; all unless given. May be given several times.",
    ),
]
Budget = Annotated[Literal["low", "mid", "high"] | None, typer.Option("--budget", help="How hard to search.")]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", metavar="N", min=1, help="How long the result may be, in tokens.")
]


def new_app() -> typer.Typer:
    """Return an empty app, for a command or a family of them, whose help is laid out on a terminal, plain in a pipe."""
    return typer.Typer(add_completion=False, rich_markup_mode="rich" if sys.stdout.isatty() else None)


def refuse_blank(option: str, *values: str | None) -> None:
    """Raise `InvalidInput` where a value of `option` is blank, as one from an unset shell variable is."""
    if any(value is not None and not value.strip() for value in values):
        raise InvalidInput(f"{option} is empty; give it a value, or leave it out")
