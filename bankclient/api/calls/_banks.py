"""Banks: list, make, change, measure, set, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from bankclient.api.call import Call, Repeat
from bankclient.api.calls import _values as values
from bankclient.api.calls._bank import bank_call, not_done, page_fields, query_pairs
from bankclient.api.models.banks import Bank, BankConfig, BankStats
from bankclient.api.models.base import Done, Page, reader
from bankclient.api.models.words import ExtractionMode
from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

__all__ = [
    "BankFields",
    "delete_bank",
    "get_bank_config",
    "get_bank_stats",
    "list_banks",
    "patch_bank",
    "patch_bank_config",
    "put_bank",
    "reset_bank_config",
]

_READ_PAGE = reader(Page[Bank])
_READ_BANK, _READ_STATS, _READ_CONFIG, _READ_DONE = (reader(Bank), reader(BankStats), reader(BankConfig), reader(Done))


class BankFields(TypedDict, total=False):
    """What of a bank can be given when it is made or changed; what is left out, or `None`, stays as it is.

    A mission cannot be taken away here: `patch_bank_config(bank, {"reflect_mission": None})` does.
    """

    name: str | None
    reflect_mission: str | None
    retain_mission: str | None
    observations_mission: str | None
    disposition_skepticism: int | None
    disposition_literalism: int | None
    disposition_empathy: int | None
    retain_extraction_mode: ExtractionMode | None
    retain_custom_instructions: str | None
    retain_chunk_size: int | None
    retain_structured_chunk_size: int | None
    retain_max_attachments_per_chunk: int | None
    enable_observations: bool | None
    enable_text_search: bool | None
    enable_temporal_retrieval: bool | None
    enable_graph_retrieval: bool | None
    enable_reranking: bool | None


_CHECKS: dict[str, values.Check[object]] = {
    **dict.fromkeys(
        ("name", "reflect_mission", "retain_mission", "observations_mission", "retain_custom_instructions"),
        values.text,
    ),
    "retain_extraction_mode": values.word(ExtractionMode),  # the server takes any text, also a misspelt one
    **dict.fromkeys(
        (
            "disposition_skepticism",
            "disposition_literalism",
            "disposition_empathy",
            "retain_chunk_size",
            "retain_structured_chunk_size",
            "retain_max_attachments_per_chunk",
        ),
        values.whole,
    ),
    **dict.fromkeys(
        (
            "enable_observations",
            "enable_text_search",
            "enable_temporal_retrieval",
            "enable_graph_retrieval",
            "enable_reranking",
        ),
        values.switch,
    ),
}


def list_banks(*, q: str | None = None, limit: int | None = None, offset: int | None = None) -> Call[Page[Bank]]:
    """List banks, those whose name or alias holds `q`. A server before 1.0 gives all of them on one page."""
    return Call(
        operation="list_banks",
        method="GET",
        path="/v1/default/banks",
        parse=_READ_PAGE,
        empty=lambda: Page[Bank](items=(), degraded=True),
        query=query_pairs({"q": values.maybe(values.text, q, "q"), **page_fields(limit, offset)}),
        repeat=Repeat.READ,
    )


def put_bank(bank: str, **fields: Unpack[BankFields]) -> Call[Bank]:
    """Make the bank, or change one that is there; both end the same when done twice."""
    return _write("put_bank", "PUT", bank, fields)


def patch_bank(bank: str, **fields: Unpack[BankFields]) -> Call[Bank]:
    """Change a bank that is there; the server answers 404 for another, where 0.4 made it."""
    return _write("patch_bank", "PATCH", bank, fields)


def delete_bank(bank: str) -> Call[Done]:
    """Delete the bank and all that is in it; one that is not there is no error."""
    return bank_call("delete_bank", "DELETE", bank, read=_READ_DONE, empty=not_done, repeat=Repeat.IDENTIFIED)


def get_bank_stats(bank: str, *, refresh: bool = False) -> Call[BankStats]:
    """Ask how much is in the bank. The server answers from up to 60 s ago unless it is to `refresh`."""
    return bank_call(
        "get_bank_stats",
        "GET",
        bank,
        "stats",
        read=_READ_STATS,
        empty=lambda: BankStats(bank_id=bank, total_nodes=0, degraded=True),
        query={"refresh": values.switch(refresh, "refresh") or None},
        repeat=Repeat.READ,
    )


def get_bank_config(bank: str) -> Call[BankConfig]:
    """Ask how the bank is set."""
    return _config_call("get_bank_config", "GET", bank, Repeat.READ)


def patch_bank_config(bank: str, updates: Mapping[str, Any]) -> Call[BankConfig]:
    """Set fields of the bank's own; `None` takes one back. The server answers 400 to a field that it does not know."""
    if not updates:
        raise InvalidInput("updates is empty: there is nothing to set")
    return _config_call("patch_bank_config", "PATCH", bank, Repeat.IDENTIFIED, body={"updates": dict(updates)})


def reset_bank_config(bank: str) -> Call[BankConfig]:
    """Take back all fields of the bank's own, so that the server's hold."""
    return _config_call("reset_bank_config", "DELETE", bank, Repeat.IDENTIFIED)


def _config_call(
    operation: str, method: str, bank: str, repeat: Repeat, body: Mapping[str, Any] | None = None
) -> Call[BankConfig]:
    return bank_call(
        operation,
        method,
        bank,
        "config",
        read=_READ_CONFIG,
        empty=lambda: BankConfig(bank_id=bank, config={}, degraded=True),
        body=body,
        repeat=repeat,
    )


def _write(operation: str, method: str, bank: str, fields: BankFields) -> Call[Bank]:
    if unknown := fields.keys() - _CHECKS.keys():
        raise InvalidInput(f"a bank has no field {min(unknown)!r}: give any of {', '.join(_CHECKS)}")
    return bank_call(
        operation,
        method,
        bank,
        read=_READ_BANK,
        empty=lambda: Bank(bank_id=bank, degraded=True),
        body=values.given(**{name: values.maybe(_CHECKS[name], value, name) for name, value in fields.items()}),
        repeat=Repeat.IDENTIFIED,
    )
