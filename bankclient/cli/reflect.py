"""`bankclient reflect`: an answer that the server makes from its memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from bankclient.cli import options, output
from bankclient.cli.memories import date_of, say_nothing_found, tags_of, warn_of_place
from bankclient.cli.place import find_place

if TYPE_CHECKING:
    from bankclient.api.models.words import FactType

__all__ = ["app", "reflect"]

app = options.new_app()


@app.command()
def reflect(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The question.")],
    *,
    tags: options.Tags = None,
    tags_match: options.TagsMatch = None,
    types: options.Types = None,
    budget: options.Budget = None,
    max_tokens: options.MaxTokens = None,
    bank: options.Bank = None,
    as_json: options.AsJson = False,
) -> None:
    """Have QUERY answered from the memories of this project and of all projects.

    The server needs a language model for that. On a terminal the memories that the answer rests on are shown too;
    --json prints the whole reply.
    """
    options.refuse_blank("--tag", *tags or ())
    place = find_place()
    warn_of_place(place)
    with place.client() as client, output.busy("thinking"):
        answer = client.reflect(
            place.redacted(query),
            tags=tags or (),
            tags_match=tags_match,
            fact_types=cast("list[FactType]", types or []),
            budget=budget,
            max_tokens=max_tokens,
            include_facts=True,
            bank=bank,
        )
    if as_json:
        output.show_json(answer.model_dump(exclude={"degraded"}))
        return
    if not answer.text.strip():
        say_nothing_found(place, bank)
        return
    output.show_markdown(answer.text)
    facts = answer.based_on.memories if answer.based_on else ()
    if facts and output.is_terminal():
        rows = [(date_of(fact), tags_of(fact), fact.text) for fact in facts]
        output.show_table(("date", "tags", "based on"), rows)
