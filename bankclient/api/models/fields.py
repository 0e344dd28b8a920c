"""What a field of a reply may be: kinds of values that read null as absent and take what servers from 0.4 to 1.1 send.

The checks run inside pydantic-core; what is Python here is the last step of each kind. No model or endpoint is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast, get_args, get_origin

from pydantic import BeforeValidator, PlainSerializer
from pydantic_core import core_schema

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler

__all__ = ["Count", "Flag", "Many", "Metadata", "Moment", "Named", "Names", "NullMeans", "Object", "Text"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NullMeans:
    """An annotation: the field is read as its type, and a null as what `make` gives."""

    make: Callable[[], object]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        make = self.make
        return core_schema.no_info_after_validator_function(
            lambda given: make() if given is None else given, core_schema.nullable_schema(handler(source))
        )


@dataclass(frozen=True, slots=True)
class _WithoutNulls:
    """An annotation for a tuple or dict: null is empty, and nulls inside it are left out."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        value = core_schema.nullable_schema(handler.generate_schema(_value_type(source)))
        if get_origin(source) is dict:
            return core_schema.no_info_after_validator_function(
                _dict_without_nulls,
                core_schema.nullable_schema(core_schema.dict_schema(core_schema.str_schema(), value)),
            )
        return core_schema.no_info_after_validator_function(
            _tuple_without_nulls,
            core_schema.nullable_schema(core_schema.tuple_schema([value], variadic_item_index=0)),
        )


def _value_type(source: object) -> object:
    """Return `T` of `tuple[T, ...]` or `dict[str, T]`."""
    first, second = get_args(source)
    return first if second is ... else second


def _tuple_without_nulls(given: tuple[object, ...] | None) -> tuple[object, ...]:
    return tuple([item for item in given if item is not None]) if given else ()


def _dict_without_nulls(given: dict[str, object] | None) -> dict[str, object]:
    return {key: value for key, value in given.items() if value is not None} if given else {}


def _texts(given: object) -> object:
    if not isinstance(given, Mapping):
        return {} if given is None else given
    values = cast("Mapping[str, object]", given)
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in values.items()
        if value is not None
    }


def _names(given: object) -> object:
    if isinstance(given, str):
        return [name for name in given.split(", ") if name]
    return given


@dataclass(frozen=True, slots=True)
class _Moments:
    """An annotation: what is a time with its offset is read by pydantic-core, what is not by us, and never refused."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        del source, handler
        return core_schema.nullable_schema(
            core_schema.union_schema(
                [
                    core_schema.datetime_schema(strict=True, tz_constraint="aware"),
                    core_schema.no_info_plain_validator_function(_moment),
                ],
                mode="left_to_right",
            )
        )


def _moment(given: object) -> datetime | None:
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            return None
    if not isinstance(given, datetime):
        return None
    return given if given.tzinfo else given.replace(tzinfo=UTC)


def _iso(moment: datetime) -> str:
    return moment.isoformat()


Text = Annotated[str, NullMeans(str)]
Count = Annotated[int, NullMeans(int)]
Flag = Annotated[bool, NullMeans(bool)]
Object = Annotated[dict[str, Any], NullMeans(dict)]
"""Any JSON object; the nulls in it are kept."""
Many = Annotated[tuple[T, ...], _WithoutNulls()]
Named = Annotated[dict[str, T], _WithoutNulls()]
Names = Annotated[Many[str], BeforeValidator(_names)]
"""A list of names, also where a server sends them as one text (`"Ada, Grace"`)."""
Metadata = Annotated[dict[str, str], BeforeValidator(_texts)]
"""Names and texts, nulls left out. The server takes texts only; another value (files may have it) is kept as JSON."""
Moment = Annotated[datetime | None, _Moments(), PlainSerializer(_iso, when_used="json-unless-none")]
"""An aware time; one without an offset is UTC, as on the server. `None` where there is none, or none that is ISO 8601:
a memory is worth more than its date, so an odd date never costs the reply."""
