"""What every reply shares: a frozen model that keeps unknown fields, reads null as absent and marks our own answers.

Replies are read leniently, since servers from 0.4 to 1.1 differ in which fields they send and whether they send nulls.
This module owns that leniency and the readers; it knows no endpoint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.aliases import AliasChoices
from pydantic_core import core_schema

from bankclient.api.call import clean_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import GetCoreSchemaHandler

__all__ = [
    "Count",
    "Flag",
    "Many",
    "Metadata",
    "Moment",
    "Named",
    "NullMeans",
    "Page",
    "Part",
    "Reply",
    "Text",
    "reader",
]

T = TypeVar("T")
R = TypeVar("R", bound="Reply")


# --- What a field may be ---------------------------------------------------------------------------------------------
# The nullable part runs inside pydantic-core; only the last step of each is a call into Python.


@dataclass(frozen=True, slots=True)
class NullMeans:
    """An annotation: the field is read as its type, and a null as this value."""

    value: object

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:  # noqa: ANN401 - pydantic's protocol
        value = self.value
        return core_schema.no_info_after_validator_function(
            lambda given: value if given is None else given, core_schema.nullable_schema(handler(source))
        )


@dataclass(frozen=True, slots=True)
class _WithoutNulls:
    """An annotation for a tuple or dict: null is empty, and nulls inside it are left out."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:  # noqa: ANN401 - pydantic's protocol
        if get_origin(source) is dict:
            key, value = get_args(source)
            return core_schema.no_info_after_validator_function(
                _dict_without_nulls, handler(dict[key, value | None] | None)
            )
        return core_schema.no_info_after_validator_function(
            _tuple_without_nulls, handler(tuple[get_args(source)[0] | None, ...] | None)
        )


def _tuple_without_nulls(given: tuple[Any, ...] | None) -> tuple[Any, ...]:
    return tuple([item for item in given if item is not None]) if given else ()


def _dict_without_nulls(given: dict[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value is not None} if given else {}


def _metadata(given: dict[str, Any] | None) -> dict[str, str]:
    return {key: _as_text(value) for key, value in given.items() if value is not None} if given else {}


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _TextValues:
    """An annotation for metadata: nulls left out, every other value as text."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:  # noqa: ANN401 - pydantic's protocol
        del source
        return core_schema.no_info_after_validator_function(_metadata, handler(dict[str, Any] | None))


def _moment(given: object) -> datetime | None:
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            return None
    if not isinstance(given, datetime):
        return None
    return given if given.tzinfo else given.replace(tzinfo=UTC)


Text = Annotated[str, NullMeans("")]
Count = Annotated[int, NullMeans(0)]
Flag = Annotated[bool, NullMeans(value=False)]
Many = Annotated[tuple[T, ...], _WithoutNulls()]
Named = Annotated[dict[str, T], _WithoutNulls()]
Metadata = Annotated[dict[str, str], _TextValues()]
"""Names and texts. The server takes text only; a value of another kind (files may have them) is kept as its JSON."""
Moment = Annotated[datetime | None, PlainValidator(_moment)]
"""An aware time; one without an offset is UTC, as on the server. `None` where there is none, or none that is ISO 8601:
a memory is worth more than its date, so an odd date never costs the reply."""


# --- What a reply is -------------------------------------------------------------------------------------------------


class Part(BaseModel):
    """A value inside a reply. Fields that this version does not know are kept in `model_extra`."""

    model_config = ConfigDict(
        extra="allow", frozen=True, populate_by_name=True, allow_inf_nan=False, protected_namespaces=()
    )


def _never_from_json(given: object, info: ValidationInfo) -> object:
    return False if info.mode == "json" else given


class Reply(Part):
    """A whole reply."""

    degraded: Annotated[bool, BeforeValidator(_never_from_json)] = False
    """Whether this is the empty answer of a client whose server is away. Our own mark: never read from the JSON."""


class Page(Reply, Generic[T]):
    """One page of a list, whatever the server calls the list itself."""

    items: Many[T] = Field(validation_alias=AliasChoices("items", "banks", "operations"))
    limit: Count = 0
    offset: Count = 0
    total: int = Field(default=-1, validate_default=True)
    """How many there are on all pages; where the server does not say (banks before 1.0), what was seen so far."""
    total_is_estimate: Flag = False

    @field_validator("total", mode="before")
    @classmethod
    def _count_if_absent(cls, given: object, info: ValidationInfo) -> object:
        if given is None or given == -1:
            return int(info.data.get("offset", 0)) + len(info.data.get("items", ()))
        return given

    @property
    def next_offset(self) -> int | None:
        """Where the next page begins; `None` after the last one."""
        end = self.offset + len(self.items)
        return end if self.items and end < self.total else None


# --- Reading ---------------------------------------------------------------------------------------------------------


def reader(model: type[R]) -> Callable[[bytes], R]:
    """Return the function that reads the bytes of a reply as `model`.

    It raises `ValueError` on what is not JSON or breaks the contract; the message names fields and never quotes the
    reply. JSON that only strict parsers refuse (lone surrogates as escapes, NaN, a byte-order mark, bytes that are not
    UTF-8) is mended: U+FFFD stands for what is no text, null for what is no number.
    """

    def read(raw: bytes) -> R:
        try:
            return model.model_validate_json(raw)
        except ValidationError as error:
            failed = error
        if failed.errors(include_url=False, include_input=False)[0]["type"] in _MENDABLE:
            try:
                return model.model_validate_json(_mended(raw))
            except ValidationError as error:
                failed = error
            except RecursionError:
                pass
        raise ValueError(_complaint(model, failed))

    return read


_MENDABLE = {"json_invalid", "finite_number"}


def _mended(raw: bytes) -> bytes:
    value = json.loads(raw.decode("utf-8-sig", "replace"), parse_constant=lambda _: None)
    return clean_text(json.dumps(value, ensure_ascii=False)).encode()


def _complaint(model: type[Reply], error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    named = [f"{'.'.join(map(str, fault['loc'])) or 'the reply'}: {fault['msg']}" for fault in faults[:3]]
    more = f" (and {len(faults) - 3} more)" if len(faults) > 3 else ""  # noqa: PLR2004 - as many as are named
    return f"not a {model.__name__}: {'; '.join(named)}{more}"
