"""A call as a value: what is sent, whether it may be sent again, and how its reply is read.

This module owns `Call` and the encoding of paths, queries and bodies. It knows no network, clock or setting: the
client sends calls, this floor only describes them.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar
from urllib.parse import quote

from bankclient.errors import InvalidInput
from bankclient.text import clean_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Call", "Need", "Repeat", "TimeLimit", "clean_text", "encode_json", "segment"]

T_co = TypeVar("T_co", covariant=True)
TimeLimit = Literal["request", "recall", "retain", "reflect"]
"""Which of the four `HINDSIGHT_*_TIMEOUT_MS` settings bounds a call."""


Need = Literal["append", "content_blocks", "exact_tags", "min_scores", "operation_ids", "tag_groups"]
"""What a call rests on that older servers do not know, mostly in silence; `Capabilities.fit` holds a call to it."""


class Repeat(enum.Enum):
    """Whether the same bytes may be sent twice."""

    READ = "read"
    """Changes nothing: may be repeated, once even after a 500."""
    IDENTIFIED = "identified"
    """A write that the server recognises (operation id), or that ends the same when done twice."""
    NEVER = "never"
    """A write without identity: a second copy could be stored."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One request to the Hindsight API.

    `path` is already percent-encoded and relative to the server's base URL, `query` is not; `parse` reads the bytes of
    a 2xx reply and raises `ValueError` on one that breaks the contract; `empty` makes the marked answer of a degraded
    client.
    """

    operation: str
    method: str
    path: str
    parse: Callable[[bytes], T_co] = field(repr=False, compare=False)
    empty: Callable[[], T_co] = field(repr=False, compare=False)
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = field(default=None, repr=False)
    repeat: Repeat = Repeat.NEVER
    time_limit: TimeLimit = "request"
    bank: str | None = None
    content_type: str = "application/json"
    accept: frozenset[int] = frozenset()
    """Statuses beside 2xx whose body `parse` reads too (`/health` answers 503 in its own shape)."""
    needs: frozenset[Need] = frozenset()


def segment(value: str, what: str) -> str:
    """Return `value` as one escaped path segment.

    Dots are escaped where the whole segment is dots, so that a bank `..` cannot climb to another endpoint: clients and
    gateways normalise plain dot segments away. Raises `InvalidInput` for an empty one or one that cannot be UTF-8.
    """
    if not value:
        raise InvalidInput(f"{what} is empty")
    try:
        escaped = quote(value, safe="")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{what} holds a lone surrogate, which is not text") from error
    return escaped.replace(".", "%2E") if value in {".", ".."} else escaped


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Return `value` as compact UTF-8 JSON, lone surrogates as U+FFFD.

    Raises `InvalidInput` for what JSON cannot carry; to NaN the server answers a bare 500 and drops the connection.
    """
    try:
        encoded = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError) as error:  # NaN, infinite, too large, circular; no JSON; too deep
        raise InvalidInput(f"the request holds something that JSON cannot carry: {error}") from error
    try:
        return encoded.encode()
    except UnicodeEncodeError:
        return clean_text(encoded).encode()
