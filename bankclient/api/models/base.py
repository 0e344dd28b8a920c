"""What every reply shares: a frozen model that keeps unknown fields, a page of a list, and the reader of both.

Replies are read leniently, since servers from 0.4 to 1.1 differ in which fields they send and whether they send nulls.
This module knows no endpoint.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from bankclient.api.call import clean_text
from bankclient.api.models.fields import Count, Flag, Many, Text

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Done", "Page", "Part", "Reply", "mended", "reader"]

T = TypeVar("T")
R = TypeVar("R", bound="Reply")


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


class Done(Reply):
    """That something was done: the server's word for it, and how many things it removed where it counts them."""

    success: Flag
    message: Text = ""
    deleted_count: int | None = Field(
        default=None, validation_alias=AliasChoices("deleted_count", "memory_units_deleted")
    )
    operation_id: str | None = None


def reader(model: type[R]) -> Callable[[bytes], R]:
    """Return the function that reads the bytes of a reply as `model`.

    It raises `ValueError` on what is not JSON or breaks the contract; the message names places and quotes no value.
    JSON that only strict parsers refuse (lone surrogates as escapes, NaN, a byte-order mark, bytes that are not
    UTF-8) is mended: U+FFFD stands for what is no text, null for what is no number.
    """

    def read(raw: bytes) -> R:
        if b"NaN" in raw or b"Infinity" in raw:  # a strict parser finds these only in the fields that it knows
            with suppress(ValueError):
                raw = mended(raw)
        try:
            return model.model_validate_json(raw)
        except ValidationError as error:
            fault = error
        if fault.errors(include_url=False, include_input=False)[0]["type"] in _MENDABLE:
            try:
                return model.model_validate_json(mended(raw))
            except ValidationError as error:
                fault = error
            except ValueError:
                pass  # it is no JSON, as the first fault says
        raise ValueError(_in_short(model, fault))

    return read


_MENDABLE = {"json_invalid", "finite_number"}
_SHOWN = 3  # faults that a message names


def mended(raw: bytes) -> bytes:
    """Return JSON that only strict parsers refuse as all take it; raises `ValueError` for what is no JSON at all."""
    try:
        value = json.loads(raw.decode("utf-8-sig", "replace"), parse_constant=lambda _: None)
        return clean_text(json.dumps(value, ensure_ascii=False)).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _in_short(model: type[Reply], error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    named = [f"{'.'.join(map(str, fault['loc'])) or 'the reply'}: {fault['msg']}" for fault in faults[:_SHOWN]]
    more = f" (and {len(faults) - _SHOWN} more)" if len(faults) > _SHOWN else ""
    return f"not a {model.__name__}: {'; '.join(named)}{more}"
