"""A request to any endpoint that has no function of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic_core import from_json

from bankclient.api.call import Call, Repeat, encode_json
from bankclient.api.calls._bank import query_pairs
from bankclient.api.models.base import mended
from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bankclient.api.call import TimeLimit

__all__ = ["JSON", "request"]

JSON: TypeAlias = Any
"""What a JSON text can hold: dict, list, str, int, float, bool, None."""

_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+)+")


def request(
    method: str,
    path: str,
    *,
    query: Mapping[str, object] | None = None,
    body: JSON = None,
    repeat: Repeat | None = None,
    time_limit: TimeLimit = "request",
    bank: str | None = None,
) -> Call[JSON]:
    """Call any endpoint and read its JSON; a degraded client, and a server that sends no body, answer `None`.

    `path` comes after the server's base URL, with each name in it escaped by `bankclient.api.segment`; what follows a
    `?` goes into `query`, where lists repeat their name. Only a GET is repeated unless `repeat` says what the request
    can bear. `bank` is named in errors and logs, no more.
    """
    if not re.fullmatch(r"[A-Z]+", method):
        raise InvalidInput(f"method is {method!r}: give one such as GET, in capitals")
    if not _PATH.fullmatch(path):
        raise InvalidInput(
            f"path is {path!r}: give one such as /v1/default/banks/NAME/webhooks, each name escaped with segment(),"
            " without a query, dot segments or a slash at the end"
        )
    return Call(
        operation=f"{method} {path}",
        method=method,
        path=path,
        parse=_read_json,
        empty=lambda: None,
        query=query_pairs(query or {}),
        body=None if body is None else encode_json(body),
        repeat=repeat or (Repeat.READ if method == "GET" else Repeat.NEVER),
        time_limit=time_limit,
        bank=bank,
    )


def _read_json(raw: bytes) -> JSON:
    if not raw.strip():
        return None
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError:
        return from_json(mended(raw))
