"""`bankclient recall`: the memories that answer a question, best first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from bankclient.cli import options, output
from bankclient.cli.memories import date_of, say_nothing_found, tags_of, warn_of_place
from bankclient.cli.place import find_place

if TYPE_CHECKING:
    from bankclient.api.models.recall import RecalledMemory
    from bankclient.api.models.words import FactType

__all__ = ["app", "recall"]

app = options.new_app()


@app.command()
def recall(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    *,
    tags: options.Tags = None,
    tags_match: options.TagsMatch = None,
    types: options.Types = None,
    budget: options.Budget = None,
    max_tokens: options.MaxTokens = None,
    bank: options.Bank = None,
    as_json: options.AsJson = False,
) -> None:
    """Find the memories of this project, and those of all projects, that answer QUERY, best first.

    In a pipe each memory is one line. Where nothing is found nothing is printed but a note on stderr, and the exit code
    is 0.
    """
    options.refuse_blank("--tag", *tags or ())
    place = find_place()
    warn_of_place(place)
    with place.client() as client, output.busy("looking"):
        found = client.recall(
            place.redacted(query),
            tags=tags or (),
            tags_match=tags_match,
            types=cast("list[FactType] | None", types),
            budget=budget,
            max_tokens=max_tokens,
            bank=bank,
        )
    if as_json:
        output.show_json(found.model_dump(exclude={"degraded"}))
    elif not found.results:
        say_nothing_found(place, bank)
    elif output.is_terminal():
        output.show_table(("score", "date", "tags", "memory"), [_row(memory) for memory in found.results])
    else:
        output.show_text("\n".join(output.one_line(memory.text) for memory in found.results))


def _row(memory: RecalledMemory) -> tuple[str, str, str, str]:
    score = memory.scores and memory.scores.final
    return "" if score is None else f"{score:.2f}", date_of(memory), tags_of(memory), memory.text
