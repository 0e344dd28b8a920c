"""The values of a request: checked against the server's rules before anything is sent, and put into its form.

Each check takes the value and `what` it is called, returns what goes into the JSON or the query, and raises
`InvalidInput` naming the thing and the mend. Text is cleaned as `clean_text` does. No endpoint is known here.
"""

from __future__ import annotations

import math
import reprlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias, TypeGuard, TypeVar, get_args

from bankclient.api.call import clean_text
from bankclient.api.models.words import Budget, FactType, ObservationScope
from bankclient.errors import InvalidInput

__all__ = [
    "Check",
    "budget",
    "document_id",
    "fact_type",
    "fact_types",
    "given",
    "identifier",
    "integer",
    "is_iterable",
    "is_mapping",
    "is_sequence",
    "maybe",
    "metadata",
    "moment",
    "number",
    "scopes",
    "switch",
    "tag_texts",
    "text",
    "texts",
    "uuid_text",
    "whole",
    "word",
    "wrong",
]

T = TypeVar("T")
Check: TypeAlias = Callable[[object, str], T]


def given(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """Return the fields that are not `None`: what is not named is left to the server."""
    return {name: value for name, value in fields.items() if value is not None}


def maybe(check: Check[T], value: object, what: str) -> T | None:
    """Return `None` for `None`, else what `check` makes of the value."""
    return None if value is None else check(value, what)


def wrong(what: str, value: object, mend: str) -> InvalidInput:
    """Return the error for a value of the wrong kind, which it shows in short."""
    try:
        shown = reprlib.repr(value)
    except ValueError:  # a number of more digits than Python likes to write
        shown = "of very many digits"
    return InvalidInput(f"{what} is {type(value).__name__} {shown}: {mend}")


def is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    """Return whether the value is a mapping (of whatever to whatever)."""
    return isinstance(value, Mapping)


def is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    """Return whether the value is a list or the like, and not a text."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def is_iterable(value: object) -> TypeGuard[Iterable[object]]:
    """Return whether the value gives one thing after another, and is neither a text nor a mapping."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, bytearray, Mapping))


def text(value: object, what: str) -> str:
    """Return any text, cleaned."""
    if not isinstance(value, str):
        raise wrong(what, value, "give a text (str)")
    return clean_text(value)


def identifier(value: object, what: str) -> str:
    """Return a text that is not blank (in place of an empty id the server makes one up)."""
    cleaned = text(value, what)
    if not cleaned.strip():
        raise InvalidInput(f"{what} is empty: give it a letter or a digit, or leave it out")
    return cleaned


def document_id(value: object, what: str) -> str:
    """Return a document's id as it is: mended, two ids would become one, and one document replace the other."""
    cleaned = identifier(value, what)
    if cleaned != value:
        raise InvalidInput(f"{what} holds a NUL or a lone surrogate, which no server keeps: take it out")
    return cleaned


def texts(value: object, what: str) -> list[str]:
    """Return a list of texts without repeats. One text is a list of one, never a list of its letters."""
    if isinstance(value, str):
        return [clean_text(value)]
    if not is_iterable(value):
        raise wrong(what, value, "give a list of texts")
    items = [text(item, f"{what}[{position}]") for position, item in enumerate(value)]
    # A set has another order in every process, and the same call should be the same bytes.
    return sorted(set(items)) if isinstance(value, (set, frozenset)) else list(dict.fromkeys(items))


def tag_texts(tags: Iterable[str] | str) -> list[str]:
    """Return a caller's tags as clean texts without repeats; raises `InvalidInput` for what are none."""
    return texts(tags, "tags")


def word(literal: object) -> Check[str]:
    """Return the check for one of the words of a `Literal`."""
    allowed: tuple[str, ...] = get_args(literal)

    def check(value: object, what: str) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise wrong(what, value, f"give one of {', '.join(allowed)}")
        return value

    return check


budget = word(Budget)
fact_type = word(FactType)
_scope = word(ObservationScope)


def fact_types(value: object, what: str) -> list[str]:
    """Return a list of fact types; the server answers 422 to a word it does not know, and nothing to `opinion`."""
    return [fact_type(item, what) for item in texts(value, what)]


def switch(value: object, what: str) -> bool:
    """Return a boolean, and nothing that merely counts as one."""
    if not isinstance(value, bool):
        raise wrong(what, value, "give True or False")
    return value


def integer(value: object, what: str) -> int:
    """Return a whole number of either sign. `True` and `3.0` are slips, not numbers."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong(what, value, "give a whole number (int)")
    return value


def whole(value: object, what: str) -> int:
    """Return a whole number that is not negative."""
    count = integer(value, what)
    if count < 0:
        raise wrong(what, value, "give 0 or more")
    return count


def number(value: object, what: str) -> float:
    """Return a finite number; to NaN in a request the server answers a bare 500 and drops the connection."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise wrong(what, value, "give a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise wrong(what, value, "give a finite number")
    return value


def uuid_text(value: object, what: str) -> str:
    """Return a UUID in its plain form: lower case, with dashes."""
    if isinstance(value, uuid.UUID):
        return str(value)
    try:
        return str(uuid.UUID(text(value, what)))
    except ValueError:  # of which InvalidInput is one
        raise wrong(what, value, "give a UUID") from None


def moment(value: object, what: str) -> str:
    """Return a time in ISO 8601 with its offset. A naive one means UTC, as the server takes it.

    The server refuses numbers, other forms, and the years 1 and 9999, which elsewhere stand for "no date".
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip().upper())
        except ValueError:
            raise wrong(what, value, "give a datetime, or ISO 8601 such as 2026-01-31T09:30:00Z") from None
    if not isinstance(value, datetime):
        raise wrong(what, value, "give a datetime, or ISO 8601 such as 2026-01-31T09:30:00Z")
    if value.year in {1, 9999}:
        raise InvalidInput(f"{what} is of the year {value.year}, which the server takes for no date: leave it out")
    return (value if value.utcoffset() is not None else value.replace(tzinfo=UTC)).isoformat()


def metadata(value: object, what: str) -> dict[str, str]:
    """Return names and texts; the server answers 422 to values of any other kind."""
    if not is_mapping(value):
        raise wrong(what, value, "give a mapping of texts to texts")
    return {text(key, f"a key of {what}"): _metadata_value(item, f"{what}[{key!r}]") for key, item in value.items()}


def _metadata_value(value: object, what: str) -> str:
    if isinstance(value, str):
        return clean_text(value)
    mend = "leave the key out" if value is None else "the server takes texts only, so pass it through str()"
    raise wrong(what, value, mend)


def scopes(value: object, what: str) -> str | list[list[str]]:
    """Return how observations are to be scoped: one of the server's words, or sets of tags."""
    if isinstance(value, str):
        return _scope(value, what)
    if not is_sequence(value):
        raise wrong(what, value, "give a word, or a list of lists of tags")
    return [texts(tags, f"{what}[{position}]") for position, tags in enumerate(value)]
