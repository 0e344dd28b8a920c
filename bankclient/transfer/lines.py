"""The lines of an export, and reading them: one JSON object a line, in UTF-8.

First the header, then each bank followed by its documents, and an end that shows that nothing is missing. Fields that
this version does not know are passed over; what it must not pass over gets another `FORMAT_VERSION`. No I/O but reading
the lines of a stream that is handed in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

__all__ = [
    "FORMAT_VERSION",
    "BankLine",
    "Broken",
    "Change",
    "Contents",
    "DocumentLine",
    "Edits",
    "End",
    "Header",
    "Item",
    "Line",
    "NamedEntity",
    "Scopes",
    "encode",
    "read_header",
    "read_lines",
]

Scopes = Literal["per_tag", "combined", "all_combinations", "shared"] | list[list[str]]

FORMAT: Final = "bankclient-export"
FORMAT_VERSION: Final = 1
_LONGEST_HEADER: Final = 2**24


def _moment(text: str | None) -> str | None:
    if text:
        datetime.fromisoformat(text)
    return text


Moment = Annotated[str | None, AfterValidator(_moment)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class Contents(_Part):
    """A bank of the file, and how much of it is in there."""

    bank: str
    documents: int
    memories: int


class Header(_Part):
    """The first line: what this is, when it was so, and what follows."""

    kind: Literal["header"] = "header"
    format: Literal["bankclient-export"] = FORMAT
    version: int = FORMAT_VERSION
    exported_at: str
    banks: list[Contents]


class BankLine(_Part):
    """A bank; `config` is what was set for it, among it its missions."""

    kind: Literal["bank"] = "bank"
    bank: str
    name: str = ""
    config: dict[str, Any] = Field(default_factory=dict)


class NamedEntity(_Part):
    """An entity that the caller had named."""

    text: str
    type: str | None = None


class Item(_Part):
    """What was retained at once. `timestamp` None is no time at all."""

    content: str
    timestamp: Moment
    context: str | None = None
    tags: list[str] = Field(default_factory=list[str])
    metadata: dict[str, str] = Field(default_factory=dict)
    entities: list[NamedEntity] = Field(default_factory=list[NamedEntity])
    resolve_entities: bool | None = None
    observation_scopes: Scopes | None = None
    strategy: str | None = None


class Edits(_Part):
    """The fields of a memory that were edited, with what they say now; an empty text is a date or context cleared."""

    text: str | None = None
    context: str | None = None
    fact_type: Literal["world", "experience"] | None = None
    occurred_start: Moment = None
    occurred_end: Moment = None
    mentioned_at: Moment = None
    entities: list[str] | None = None


class Change(_Part):
    """What was done to the memory of one chunk of its document: that it was edited, or invalidated."""

    index: int
    chunk: str
    edits: Edits = Edits()
    invalidated: bool = False
    reason: str | None = None


class DocumentLine(_Part):
    """A document: its items in their order, which share its text, and what was done to its memories."""

    kind: Literal["document"] = "document"
    bank: str
    document_id: str
    created_at: str
    items: Annotated[list[Item], Field(min_length=1)]
    changes: list[Change] = Field(default_factory=list[Change])


class End(_Part):
    """The last line; `lines` counts all, this one too."""

    kind: Literal["end"] = "end"
    lines: int


Line = BankLine | DocumentLine | End
_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="kind")])


@dataclass(frozen=True, slots=True)
class Broken:
    """A line that cannot be used, and why."""

    number: int
    why: str


def encode(line: Header | Line) -> bytes:
    """Return a line with its end."""
    first = {"format": line.format, "version": line.version} if isinstance(line, Header) else {}
    value = {"kind": line.kind, **first, **line.model_dump(exclude_defaults=True)}
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def read_header(stream: BinaryIO) -> Header:
    """Return the first line; raises `InvalidInput` where this is no export, or one of a newer format."""
    raw = stream.readline(_LONGEST_HEADER).removeprefix(b"\xef\xbb\xbf")
    try:
        said: Any = json.loads(raw)
        is_ours = said["format"] == FORMAT
    except (ValueError, TypeError, KeyError, RecursionError):
        is_ours = False
        said = {}
    if not is_ours:
        raise InvalidInput("this is no export of bankclient: its first line is not the header of one")
    version = said.get("version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise InvalidInput(
            f"this export has format version {version!r}, and this bankclient knows {FORMAT_VERSION}: upgrade "
            "bankclient, or export again with the one that is here"
        )
    try:
        return Header.model_validate(said)
    except ValidationError as error:
        raise InvalidInput(f"the header of this export is broken: {_in_short(error)}") from error


def read_lines(stream: BinaryIO) -> Iterator[tuple[int, Line | Broken]]:
    """Yield the lines after the header with their numbers, counted from 1; empty ones are left out."""
    for number, raw in enumerate(stream, start=2):  # a binary stream ends its lines at \n alone
        if not raw.strip():
            continue
        try:
            line: Line | Broken = _LINE.validate_json(raw)
        except ValidationError as error:
            cut = "" if raw.endswith(b"\n") else "it is cut off: "
            line = Broken(number, cut + _in_short(error))
        yield number, line


def _in_short(error: ValidationError) -> str:
    """Return the first fault, without what was in the file."""
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in fault["loc"])
    return f"{where}: {fault['msg']}" if where else str(fault["msg"])
