"""The values of a request: checked against the server's rules before anything is sent, and put into its form.

Each function takes the value and `what` it is called, returns what goes into the JSON or the query, and raises
`InvalidInput` naming the thing and the mend. Text is cleaned as `clean_text` does. No endpoint is known here.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any, TypeAlias, TypeVar, get_args

from bankclient.api.call import Need, clean_text
from bankclient.api.models.words import Budget, FactType, TagsMatch
from bankclient.errors import InvalidInput

__all__ = [
    "Check",
    "budget",
    "fact_type",
    "fact_types",
    "filter_needs",
    "given",
    "identifier",
    "maybe",
    "metadata",
    "moment",
    "number",
    "switch",
    "tag_filter",
    "tags_mode",
    "text",
    "texts",
    "uuid_text",
    "whole",
    "word",
]

T = TypeVar("T")
Check: TypeAlias = Callable[[object, str], T]

_SHOWN = 60  # letters of a wrong value that a message repeats


def given(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """Return the fields that are not `None`: what is not named is left to the server."""
    return {name: value for name, value in fields.items() if value is not None}


def maybe(check: Check[T], value: object, what: str) -> T | None:
    """Return `None` for `None`, else what `check` makes of the value."""
    return None if value is None else check(value, what)


def _wrong(what: str, value: object, mend: str) -> InvalidInput:
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return InvalidInput(f"{what} is {type(value).__name__} {shown}: {mend}")


def text(value: object, what: str) -> str:
    """Return any text, cleaned."""
    if not isinstance(value, str):
        raise _wrong(what, value, "give a text (str)")
    return clean_text(value)


def identifier(value: object, what: str) -> str:
    """Return a text that names something, and so must not be blank (the server makes up an id for an empty one)."""
    cleaned = text(value, what)
    if not cleaned.strip():
        raise InvalidInput(f"{what} is empty: give a text with a letter, or leave it out")
    return cleaned


def texts(value: object, what: str) -> list[str]:
    """Return a list of texts without repeats. One text is a list of one, never a list of its letters."""
    if isinstance(value, str):
        return [clean_text(value)]
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise _wrong(what, value, "give a list of texts")
    ordered = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
    return list(dict.fromkeys(text(item, f"{what}[{number}]") for number, item in enumerate(ordered)))


def word(literal: object) -> Check[str]:
    """Return the check for one of the words of a `Literal`."""
    allowed: tuple[str, ...] = get_args(literal)

    def check(value: object, what: str) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise _wrong(what, value, f"give one of {', '.join(allowed)}")
        return value

    return check


budget = word(Budget)
fact_type = word(FactType)
tags_mode = word(TagsMatch)


def fact_types(value: object, what: str) -> list[str]:
    """Return a list of fact types; the server answers 422 to a word it does not know, and nothing to `opinion`."""
    return [fact_type(item, what) for item in texts(value, what)]


def switch(value: object, what: str) -> bool:
    """Return a boolean, and nothing that merely counts as one."""
    if not isinstance(value, bool):
        raise _wrong(what, value, "give True or False")
    return value


def whole(value: object, what: str) -> int:
    """Return a whole number, not negative. `True` and `3.0` are slips, not numbers."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(what, value, "give a whole number (int)")
    if value < 0:
        raise InvalidInput(f"{what} is {value}: give 0 or more")
    return value


def number(value: object, what: str) -> float:
    """Return a finite number; to NaN in a request the server answers a bare 500 and drops the connection."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _wrong(what, value, "give a number")
    if not math.isfinite(value):
        raise InvalidInput(f"{what} is {value}: give a finite number")
    return value


def uuid_text(value: object, what: str) -> str:
    """Return a UUID in its plain lower-case form with dashes."""
    try:
        return str(value if isinstance(value, uuid.UUID) else uuid.UUID(text(value, what)))
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise _wrong(what, value, "give a UUID") from None


def moment(value: object, what: str) -> str:
    """Return a time in ISO 8601 with its offset. A naive one means UTC, as the server takes it.

    The server refuses numbers, other forms, and the years 1 and 9999, which stand for "no date" elsewhere.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip().upper())
        except ValueError:
            raise _wrong(what, value, "give a datetime, or ISO 8601 such as 2026-01-31T09:30:00Z") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, datetime):
        raise _wrong(what, value, "give a datetime, or ISO 8601 such as 2026-01-31T09:30:00Z")
    if value.year in {1, 9999}:
        raise InvalidInput(f"{what} is of the year {value.year}, which the server refuses: leave it out")
    return (value if value.utcoffset() is not None else value.replace(tzinfo=UTC)).isoformat()


def metadata(value: object, what: str) -> dict[str, str]:
    """Return names and texts; the server answers 422 to values of any other kind."""
    if not isinstance(value, Mapping):
        raise _wrong(what, value, "give a mapping of texts to texts")
    return {text(key, f"a key of {what}"): _metadata_value(item, f"{what}[{key!r}]") for key, item in value.items()}


def _metadata_value(value: object, what: str) -> str:
    if isinstance(value, str):
        return clean_text(value)
    mend = "leave the key out" if value is None else "the server takes texts only, so pass it through str()"
    raise _wrong(what, value, mend)


def tag_filter(tags: object, tags_match: object, tag_groups: object) -> dict[str, Any]:
    """Return the fields that filter by tags: `tags` with `tags_match`, or `tag_groups`.

    What the server would take as *no* filter where one was surely meant is refused: a strict mode without tags, and an
    empty list of groups (an empty `and` or `or` it answers with 500). `exact` without tags means the untagged ones.
    """
    filters = given(
        tags=texts(tags, "tags") or None,
        tags_match=maybe(tags_mode, tags_match, "tags_match"),
    )
    if tag_groups is None:
        if "tags" not in filters and filters.get("tags_match") in {"any_strict", "all_strict"}:
            raise InvalidInput(f"tags_match is {tags_match} and tags is empty, which finds everything: give tags")
        return filters
    if filters:
        raise InvalidInput("tag_groups stands beside tags or tags_match: give one or the other (a group has a `match`)")
    if isinstance(tag_groups, (str, bytes, Mapping)) or not isinstance(tag_groups, Iterable):
        raise _wrong("tag_groups", tag_groups, "give a list of groups")
    return {"tag_groups": _groups(tag_groups, "tag_groups")}


def _groups(value: Iterable[object], what: str) -> list[dict[str, Any]]:
    groups = [_group(group, f"{what}[{number}]") for number, group in enumerate(value)]
    if not groups:
        raise InvalidInput(f"{what} is empty, which is no filter at all: give a group, or leave it out")
    return groups


def _group(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(what, value, 'give a mapping such as {"tags": ["a"]} or {"not": {"tags": ["a"]}}')
    keys = set(value)
    if "tags" in keys and keys <= {"tags", "match", "resolve"}:
        return given(
            tags=texts(value["tags"], f"{what}.tags"),
            match=maybe(tags_mode, value.get("match"), f"{what}.match"),
            resolve=maybe(text, value.get("resolve"), f"{what}.resolve"),
        )
    if keys == {"not"}:
        return {"not": _group(value["not"], f"{what}.not")}
    if keys in ({"and"}, {"or"}):
        (key,) = keys
        return {key: _groups(value[key], f"{what}.{key}")}
    raise InvalidInput(
        f"{what} has the keys {', '.join(sorted(map(str, keys))) or '(none)'}: give `tags` (with `match`, `resolve`),"
        " or one of `and`, `or`, `not`"
    )


def filter_needs(filters: Mapping[str, Any]) -> frozenset[Need]:
    """Return what a server must know for these filters to hold; an older one ignores groups and finds everything."""
    needs: set[Need] = set()
    if "tag_groups" in filters:
        needs.add("tag_groups")
    if filters.get("tags_match") == "exact":
        needs.add("exact_tags")
    return frozenset(needs)
