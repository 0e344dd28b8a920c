"""Requests and replies as values: decoding, validation and the server's error shapes.

`Request` reads a body or a query into a pydantic model; what does not fit leaves as `Problem`, in the shape in
which Hindsight says it. This module knows no bank and no socket.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from bankclient.embedded.database import Database

__all__ = ["Problem", "Reply", "Request", "json_reply", "text_reply"]

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP reply: status, headers by lower-case name, body."""

    status: int
    headers: dict[str, str]
    body: bytes


class Problem(Exception):
    """An answer that is not a success: `detail` is a sentence or pydantic's list of what did not fit."""

    def __init__(self, status: int, detail: object, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


def json_reply(status: int, value: object, headers: Mapping[str, str] | None = None) -> Reply:
    """Return `value` as a JSON reply. Raises `ValueError` for NaN and infinities."""
    body = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
    return Reply(status, {"content-type": "application/json", **(headers or {})}, body)


def text_reply(status: int, text: str) -> Reply:
    """Return a plain-text reply."""
    return Reply(status, {"content-type": "text/plain; charset=utf-8"}, text.encode())


@dataclass(slots=True)
class Request:
    """One request on its way to a handler.

    `params` are the path's, decoded; `now` is the moment at which it arrived, in UTC.
    """

    database: Database
    now: datetime
    query: str
    body: bytes
    headers: Mapping[str, str]
    uptime_seconds: float = 0.0
    params: dict[str, str] = field(default_factory=dict[str, str])
    _known: set[str] = field(default_factory=set[str])
    _unknown_fields: list[str] = field(default_factory=list[str])

    @property
    def bank_id(self) -> str:
        """The bank that the path names."""
        return self.params["bank_id"]

    @property
    def ignored(self) -> list[str]:
        """The names in query and body that nothing reads, which the server reports in `X-Ignored-Params`."""
        given = [name for name, _ in self._pairs() if name not in self._known]
        return list(dict.fromkeys([*given, *self._unknown_fields]))

    def query_as(self, model: type[Model]) -> Model:
        """Return the query as `model`: the last of repeated values, all of them where the field is a list.

        Raises `Problem` 422.
        """
        self._known = set(model.model_fields)
        values: dict[str, Any] = {}
        for name, value in self._pairs():
            if _is_list(model, name):
                values.setdefault(name, []).append(value)
            else:
                values[name] = value
        return _validated(model, values, "query")

    def body_as(self, model: type[Model]) -> Model:
        """Return the JSON body as `model`. Raises `Problem` 422, or 400 for bytes that are no text."""
        if not self.body:
            raise Problem(422, [{"type": "missing", "loc": ["body"], "msg": "Field required", "input": None}])
        value = self._decoded()
        known = {info.alias or name for name, info in model.model_fields.items()} | set(model.model_fields)
        self._unknown_fields = [name for name in _names(value) if name not in known]
        return _validated(model, value, "body")

    def _pairs(self) -> list[tuple[str, str]]:
        return parse_qsl(self.query, keep_blank_values=True, errors="replace")

    def _decoded(self) -> object:
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
            # What is not declared as JSON is validated as the text that it is, and so refused.
            return self.body.decode("utf-8", "replace")
        try:
            value: object = json.loads(self.body)
        except json.JSONDecodeError as error:
            detail: dict[str, object] = {"type": "json_invalid", "loc": ["body", error.pos], "msg": "JSON decode error"}
            raise Problem(422, [{**detail, "input": {}, "ctx": {"error": error.msg}}]) from error
        except (ValueError, RecursionError) as error:
            raise Problem(400, "There was an error parsing the body") from error
        return _cleaned(value) if b"\\u" in self.body or b"\x00" in self.body else value


def _names(value: object) -> list[str]:
    return list(cast("dict[str, object]", value)) if isinstance(value, dict) else []


def _is_list(model: type[BaseModel], name: str) -> bool:
    return name in model.model_fields and "list[" in str(model.model_fields[name].annotation)


def _validated(model: type[Model], value: object, where: str) -> Model:
    try:
        return model.model_validate(value, from_attributes=True)
    except ValidationError as error:
        raise Problem(422, [_described(item, where) for item in error.errors(include_url=False)]) from error


def _described(item: Mapping[str, Any], where: str) -> dict[str, object]:
    detail: dict[str, object] = {**item, "loc": [where, *cast("Iterable[object]", item["loc"])]}
    if "ctx" in item:
        # An exception has no JSON; the server shows it as an empty object.
        context = cast("Mapping[str, object]", item["ctx"])
        detail["ctx"] = {key: {} if isinstance(part, Exception) else part for key, part in context.items()}
    return detail


def _cleaned(value: object) -> object:
    """Return a JSON value without NUL and lone surrogates, which the server strips wherever they stand."""
    if isinstance(value, str):
        return value.replace("\x00", "").encode("utf-8", "ignore").decode()
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return {cast("str", _cleaned(key)): _cleaned(item) for key, item in items}
    if isinstance(value, list):
        return [_cleaned(item) for item in cast("list[object]", value)]
    return value
