"""Sending an export to a server, document by document, so that it can be broken off and done again.

It owns what is sent in which order, what counts as there already, and the report. A document keeps its id and replaces
what the server has under it; nothing is ever appended. How a call is sent is the client's business.
"""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from bankclient.api import calls
from bankclient.api.models.retain import MemoryItem
from bankclient.client.policy import is_away
from bankclient.errors import (
    BankclientError,
    CallError,
    InvalidInput,
    NotFound,
    OperationFailed,
    Refused,
    ServerError,
    TimedOut,
    Unauthorized,
)
from bankclient.scope import check_bank
from bankclient.transfer.changes import apply_changes
from bankclient.transfer.lines import BankLine, Broken, DocumentLine, End, read_header, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import BinaryIO

    from bankclient.client import BankClient
    from bankclient.transfer.lines import Header, Item

__all__ = ["Failure", "Importer", "Report"]

_UNDER_WAY: Final = 4
"""How many operations the server works on at a time."""
_BATCH_DOCUMENTS: Final = 50
_BATCH_CHARS: Final = 200_000
_WAIT_SECONDS: Final = 600.0
"""How long one operation, or one document that is sent synchronously, may take."""
_FAULTS: Final = 5
"""How many documents in a row the server may fail at, each sent by itself; what is tried then fails slowly, too."""
_PAGE: Final = 500
_TOLD: Final = 100


class Failure(NamedTuple):
    """Something of the file that did not get to the server, and why."""

    what: str
    why: BankclientError | str


@dataclass(slots=True)
class Report:
    """How far an import is. `failures` names the first hundred of `failed`; `expected` is what the header promises."""

    expected: int = 0
    stored: int = 0
    skipped: int = 0
    changed: int = 0
    failed: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])

    @property
    def done(self) -> int:
        """How many documents are settled, in whichever way."""
        return self.stored + self.skipped + self.failed

    def fail(self, what: str, why: BankclientError | str) -> None:
        """Count a failure."""
        self.failed += 1
        if len(self.failures) < _TOLD:
            self.failures.append(Failure(what, why))


@dataclass(slots=True)
class _Bank:
    """The bank that documents go to now: its name in the file and on the server, and which documents are there."""

    source: str
    target: str
    known: dict[str, int] = field(default_factory=dict[str, int])


class Importer:
    """Sends one export through `client`; banks in `names` go under the name that stands there.

    `report` says at any time how far it is, also after an error; `on_progress` is called when it changed.
    """

    def __init__(
        self,
        client: BankClient,
        *,
        names: Mapping[str, str] | None = None,
        on_progress: Callable[[Report], object] = lambda _: None,
    ) -> None:
        self.report = Report()
        self._client = client
        self._names = dict(names or {})
        self._on_progress = on_progress
        self._bank: _Bank | None = None
        self._faults = 0
        self._batch: list[DocumentLine] = []
        self._under_way: deque[tuple[str, list[DocumentLine]]] = deque()

    def run(self, stream: BinaryIO) -> Report:
        """Send everything in `stream` that the server does not have yet, and return the report.

        A document that the server refuses, or a line that is broken, is a failure in the report, and the rest goes on.
        Raises `InvalidInput` for a file that is no export or a name that is not in it, before anything is sent; and
        `CallError` or `OperationFailed` where the server is away, lets nobody in, or fails at one document after
        another: run again, it goes on from there.
        """
        header = read_header(stream)
        self._check_names(header)
        self.report.expected = sum(bank.documents for bank in header.banks)
        last, is_whole = 1, False
        for last, line in read_lines(stream):
            match line:
                case BankLine():
                    self._enter(line)
                case DocumentLine():
                    self._take(line)
                case End():
                    is_whole = line.lines == last
                case Broken():
                    self._fail(f"line {last}", line.why)
        self._finish()
        if not is_whole:
            self._fail(f"the file, after line {last}", "it is not whole: lines are missing; export it again")
        return self.report

    def _check_names(self, header: Header) -> None:
        there = {bank.bank for bank in header.banks}
        for source, target in self._names.items():
            if source not in there:
                raise InvalidInput(f"there is no bank {source!r} in the file (there are: {', '.join(sorted(there))})")
            check_bank(target)
        targets = [self._names.get(source, source) for source in sorted(there)]
        twice = next((target for target in targets if targets.count(target) > 1), None)
        if twice is not None:
            raise InvalidInput(
                f"two banks would go to {twice!r}, where documents of the same id would replace each other: give each "
                "a bank of its own"
            )

    def _enter(self, line: BankLine) -> _Bank:
        """Make the bank, or set what it has not set itself, and learn what is in it."""
        self._finish()
        bank = self._bank = _Bank(line.bank, self._names.get(line.bank, line.bank))
        try:
            present = self._overrides(bank.target)
            if present is None:
                self._client.banks.put(bank.target, name=None if line.name == line.bank else line.name or None)
            missing = {name: value for name, value in line.config.items() if name not in (present or {})}
            if missing:
                self._client.banks.configure(missing, bank.target)
            if present is not None:
                self._learn(bank)
        except (InvalidInput, Refused) as error:
            self._pass_over(error)
            self._fail(f"bank {bank.target!r}", error)
        return bank

    def _overrides(self, bank: str) -> Mapping[str, object] | None:
        """Return what is set for a bank, None where there is none of that name."""
        try:
            return self._client.banks.config(bank).overrides
        except NotFound as error:
            if error.is_missing_bank:
                return None
            raise

    def _learn(self, bank: _Bank) -> None:
        offset: int | None = 0
        while offset is not None:
            page = self._client.documents.list(limit=_PAGE, offset=offset, bank=bank.target)
            bank.known.update({each.id: _mark(each.content_hash or "", each.tags) for each in page.items})
            offset = page.next_offset

    def _take(self, line: DocumentLine) -> None:
        bank = self._bank
        if bank is None or bank.source != line.bank:
            bank = self._enter(BankLine(bank=line.bank))
        if bank.known.get(line.document_id) == _mark_of(line):
            self._settle(line, is_new=False)
        elif len(line.items) > 1:
            # Items that share a document go in one synchronous request: the server refuses them in a background one.
            self._send_apart([line])
        else:
            if not self._fits(line):
                self._send()
            self._batch.append(line)

    def _fits(self, line: DocumentLine) -> bool:
        batch = self._batch
        chars = sum(len(each.items[0].content) for each in (*batch, line))
        alike = all(each.items[0].strategy == line.items[0].strategy for each in batch)
        return not batch or (alike and len(batch) < _BATCH_DOCUMENTS and chars <= _BATCH_CHARS)

    def _send(self) -> None:
        """Hand the batch to the server, and wait for the oldest operation where there are enough of them."""
        batch, self._batch = self._batch, []
        if not batch:
            return
        try:
            self._under_way.append((self._begin(batch), batch))
        except (InvalidInput, Refused) as error:
            self._pass_over(error)
            self._send_apart(batch)
        if len(self._under_way) >= _UNDER_WAY:
            self._await_oldest()

    def _finish(self) -> None:
        self._send()
        while self._under_way:
            self._await_oldest()

    def _await_oldest(self) -> None:
        operation, batch = self._under_way.popleft()
        try:
            self._await(operation)
        except OperationFailed:
            self._send_apart(batch)
        except TimedOut as error:
            self._pass_over(error)
            for line in batch:
                self._fail(_name(line), error)
        else:
            for line in batch:
                self._settle(line, is_new=True)

    def _send_apart(self, batch: list[DocumentLine]) -> None:
        """Send each document by itself: what the server does not take of a batch is then known by name."""
        for line in batch:
            try:
                if len(line.items) > 1:
                    call = calls.retain_many(self._target, [_item(line, item) for item in line.items])
                    self._client.call(call, timeout=_WAIT_SECONDS)
                else:
                    self._await(self._begin([line]))
            except BankclientError as error:
                self._pass_over(error)
                self._fail(_name(line), error)
                self._note_fault(error)
            else:
                self._settle(line, is_new=True)

    def _note_fault(self, error: BankclientError) -> None:
        """Raise `error` where the server, not the document, seems to be at fault: it failed at several in a row."""
        self._faults += isinstance(error, OperationFailed | ServerError)
        if self._faults >= _FAULTS:
            raise error

    def _begin(self, batch: list[DocumentLine]) -> str:
        operation = str(uuid4())
        items = [_item(line, line.items[0]) for line in batch]
        self._client.call(calls.retain_many(self._target, items, background=True, operation_id=operation))
        return operation

    def _await(self, operation: str) -> None:
        self._client.operations.wait(operation, timeout=_WAIT_SECONDS, bank=self._target)

    def _settle(self, line: DocumentLine, *, is_new: bool) -> None:
        """Count a document that is on the server, after what was done to its memories is done to them there too."""
        try:
            self.report.changed += apply_changes(self._client, self._target, line)
        except BankclientError as error:
            self._pass_over(error)
            self._fail(_name(line), error)
            return
        if is_new:
            self._faults = 0
            self.report.stored += 1
        else:
            self.report.skipped += 1
        self._on_progress(self.report)

    @property
    def _target(self) -> str:
        if self._bank is None:
            raise AssertionError("a document is sent before its bank is known")
        return self._bank.target

    def _fail(self, what: str, why: BankclientError | str) -> None:
        self.report.fail(what, why)
        self._on_progress(self.report)

    @staticmethod
    def _pass_over(error: BankclientError) -> None:
        """Raise an error that would meet the next document too; any other is this document's own."""
        if isinstance(error, CallError) and error.context.operation != "wait":
            is_ours = isinstance(error, Refused) and error.from_server
            if is_away(error) or isinstance(error, Unauthorized) or not is_ours:
                raise error


def _name(line: DocumentLine) -> str:
    return f"document {line.document_id!r} of bank {line.bank!r}"


def _mark_of(line: DocumentLine) -> int:
    text = "\n".join(item.content for item in line.items)
    tags = {tag for item in line.items for tag in item.tags}
    return _mark(hashlib.sha256(text.encode()).hexdigest(), tags)


def _mark(content_hash: str, tags: Iterable[str]) -> int:
    """Return what tells a document's text and tags from others', in little room: a bank may have very many."""
    return hash((content_hash, frozenset(tags)))


def _item(line: DocumentLine, item: Item) -> MemoryItem:
    return MemoryItem(
        item.content,
        document_id=line.document_id,
        tags=item.tags,
        timestamp="unset" if item.timestamp is None else item.timestamp,
        context=item.context,
        metadata=item.metadata or None,
        entities=[entity.model_dump(exclude_none=True) for entity in item.entities],
        resolve_entities=item.resolve_entities,
        observation_scopes=item.observation_scopes,
        strategy=item.strategy,
    )
