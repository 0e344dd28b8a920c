"""What the calls on a bank share: their paths, where every name is one escaped segment, and their queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from bankclient.api.call import Call, Repeat, TimeLimit, clean_text, encode_json, segment
from bankclient.api.calls import _values as values
from bankclient.api.models.base import Done
from bankclient.errors import InvalidInput
from bankclient.names import bank_name_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bankclient.api.call import Need

__all__ = ["bank_call", "not_done", "page_fields", "query_pairs"]

T = TypeVar("T")


def bank_call(
    operation: str,
    method: str,
    bank: str,
    *segments: str,
    read: Callable[[bytes], T],
    empty: Callable[[], T],
    repeat: Repeat,
    query: Mapping[str, object] | None = None,
    body: Mapping[str, Any] | None = None,
    time_limit: TimeLimit = "request",
    needs: frozenset[Need] = frozenset(),
) -> Call[T]:
    """Return the call on a bank, or on what `segments` name in it, each as it is spelled (it is escaped here)."""
    names = [segment(_checked(bank), "the bank's name"), *(segment(name, "a name") for name in segments)]
    return Call(
        operation=operation,
        method=method,
        path="/".join(("/v1/default/banks", *names)),
        parse=read,
        empty=empty,
        query=query_pairs(query or {}),
        body=None if body is None else encode_json(body),
        repeat=repeat,
        time_limit=time_limit,
        bank=bank,
        needs=needs,
    )


def not_done() -> Done:
    """Return what a degraded client answers to a change: that it was not made."""
    return Done(success=False, degraded=True)


def page_fields(limit: int | None, offset: int | None) -> dict[str, int | None]:
    """Return the fields that ask for one page of a list."""
    return {
        "limit": values.maybe(values.whole, limit, "limit"),
        "offset": values.maybe(values.whole, offset, "offset"),
    }


def query_pairs(fields: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a query string: `None` is left out, a list repeats its name, booleans are `true`, `false`."""
    return tuple(
        (name, _query_text(value))
        for name, given in fields.items()
        if given is not None
        for value in (given if values.is_sequence(given) else (given,))
    )


def _query_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else clean_text(str(value))


def _checked(bank: object) -> str:
    """Return the bank's name, or raise `InvalidInput` for one that the server does not take."""
    if not isinstance(bank, str):
        raise values.wrong("the bank's name", bank, "give a text (str)")
    if problem := bank_name_problem(bank):
        raise InvalidInput(f"the bank's name is {bank[:60]!r}: {problem}")
    return bank
