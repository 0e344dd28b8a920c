"""`Probe`: how a check talks to a server, and what it may take for granted about the bank it was given.

Knows HTTP as method, path and JSON only; the sending is handed in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlencode

from bankclient.testing.conformance.differences import DIFFERENCES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Answer", "Check", "Fields", "Probe", "Send", "faults"]

Send = Callable[[str, str, bytes, Mapping[str, str]], "Answer"]
"""Sends a method, a target (path and query as on the wire), a body and headers; returns the answer."""

Fields = dict[str, object]
"""A JSON object."""

_JSON = {"content-type": "application/json"}
_POLLS = 20_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: status, headers by lower-case name, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON value
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def detail(self) -> Any:  # noqa: ANN401 - a sentence, or a list of faults
        """What an error says."""
        return self.json["detail"]


@dataclass(frozen=True, slots=True)
class Probe:
    """A server under test.

    `side` says which of two columns of `differences` applies, `bank` names a bank that does not exist yet, and `other`
    a second one; whoever makes the probe deletes both afterwards.
    """

    send: Send
    side: Literal["embedded", "hindsight"]
    bank: str
    other: str = field(default="")

    def path(self, below: str = "", bank: str | None = None) -> str:
        """Return the path of something in the bank."""
        return f"/v1/default/banks/{quote(bank or self.bank, safe='')}{below}"

    def request(
        self,
        method: str,
        target: str,
        json_body: object = None,
        *,
        content: bytes | None = None,
        kind: str | None = None,
    ) -> Answer:
        """Send a request with a JSON body, or with `content` as it is under the content type `kind`."""
        if content is not None:
            return self.send(method, target, content, _JSON if kind is None else {"content-type": kind})
        if json_body is None:
            return self.send(method, target, b"", {})
        return self.send(method, target, json.dumps(json_body).encode(), _JSON)

    def ask(self, method: str, below: str, json_body: object = None, *, bank: str | None = None) -> Answer:
        """Send a request about the bank."""
        return self.request(method, self.path(below, bank), json_body)

    def get(self, below: str, **query: object) -> Any:  # noqa: ANN401 - any JSON value
        """Return what a GET below the bank answers; lists in the query are repeated."""
        text = urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)
        answer = self.ask("GET", f"{below}?{text}" if text else below)
        assert answer.status == 200, (answer.status, answer.body)
        return answer.json

    def retain(self, *items: object, **fields: object) -> Any:  # noqa: ANN401 - any JSON value
        """Retain items, given as texts or objects, at once; return the answer."""
        whole = [{"content": item} if isinstance(item, str) else item for item in items]
        answer = self.ask("POST", "/memories", {"items": whole, **fields})
        assert answer.status == 200, (answer.status, answer.body)
        return answer.json

    def retain_later(self, *items: object, **fields: object) -> str:
        """Retain items asynchronously, wait until that is done, and return the operation's id."""
        operation_id: str = self.retain(*items, **{"async": True}, **fields)["operation_id"]
        assert self.finished(operation_id)["status"] == "completed"
        return operation_id

    def finished(self, operation_id: str) -> Any:  # noqa: ANN401 - any JSON value
        """Return an operation once it is at its end."""
        for _ in range(_POLLS):
            operation = self.get(f"/operations/{operation_id}")
            if operation["status"] not in {"pending", "processing"}:
                return operation
        raise AssertionError(f"operation {operation_id} does not end")

    def recall(self, query: str, **fields: object) -> list[Any]:
        """Return the results of a recall."""
        answer = self.ask("POST", "/memories/recall", {"query": query, **fields})
        assert answer.status == 200, (answer.status, answer.body)
        results: list[Any] = answer.json["results"]
        return results

    def texts(self, query: str, **fields: object) -> list[str]:
        """Return the texts of a recall's results, in their order."""
        return [result["text"] for result in self.recall(query, **fields)]

    def memories(self, **query: object) -> list[Any]:
        """Return the bank's memories that pass the filters."""
        items: list[Any] = self.get("/memories/list", **query)["items"]
        return items

    def memory(self, text: str, **query: object) -> Any:  # noqa: ANN401 - any JSON value
        """Return the one memory with this text."""
        found = [item for item in self.memories(**query) if item["text"] == text]
        assert len(found) == 1, found
        return found[0]

    def expected(self, difference: str) -> Any:  # noqa: ANN401 - whatever the list says
        """Return what this server does where the two may differ."""
        found = next(item for item in DIFFERENCES if item.name == difference)
        return found.embedded if self.side == "embedded" else found.hindsight


def faults(answer: Answer) -> list[tuple[str, Sequence[object]]]:
    """Return the types and places of a 422's faults."""
    assert answer.status == 422, (answer.status, answer.body)
    return [(fault["type"], fault["loc"]) for fault in answer.detail]


Check = Callable[[Probe], None]
