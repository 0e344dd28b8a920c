"""What recall and reflect share: where they look, and how a memory is shown to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from bankclient.cli import output

if TYPE_CHECKING:
    from bankclient.api.models.recall import RecalledMemory
    from bankclient.api.models.reflect import ReflectFact
    from bankclient.cli.place import Place

    Memory: TypeAlias = RecalledMemory | ReflectFact

__all__ = ["date_of", "say_nothing_found", "tags_of", "warn_of_place"]


def warn_of_place(place: Place) -> None:
    """Say what of the settings cannot be used, and that no project's memories can be found where that is so."""
    place.warn()
    if place.unresolved:
        output.warn(place.unresolved)


def say_nothing_found(place: Place, bank: str | None) -> None:
    """Say on stderr where nothing was found: that is an answer, and no failure."""
    banks = [bank] if bank is not None else [target.bank for target in place.scope.recall]
    scope = place.scope
    whose = f" for project {scope.project.name}" if scope.resolved and scope.retain_target().tags else ""
    output.note(f"nothing found in {' and '.join(map(_named, dict.fromkeys(banks)))}{whose}")


def _named(bank: str) -> str:
    return f"bank {bank}"


def date_of(memory: Memory) -> str:
    """Return the day of what a memory speaks of, else the day it was learnt, as the server's clock had it."""
    moment = memory.occurred_start or memory.mentioned_at
    return "" if moment is None else moment.date().isoformat()


def tags_of(memory: Memory) -> str:
    """Return the tags of a memory on one line each."""
    return "\n".join(memory.tags)
