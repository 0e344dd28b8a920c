"""The table of routes: which handler answers a method and a path, and what an unknown path or method gets.

The order matters as it does on the server: of two routes that fit a path the first one wins, and a wrong method is told
the method of the first one alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from bankclient.embedded import banks, documents, entities, memories, monitoring, operations, recall, reflect, retain
from bankclient.embedded.wire import Problem, Request

__all__ = [
    "ROUTES",
    "Handler",
    "Match",
    "Route",
    "find_route",
    "other_slash",
]

Handler = Callable[[Request], object]

_BANKS = "/v1/default/banks"
_BANK = f"{_BANKS}/{{bank_id}}"
_MEMORIES = f"{_BANK}/memories"
_MEMORY = f"{_MEMORIES}/{{memory_id}}"
_DOCUMENTS = f"{_BANK}/documents"
_DOCUMENT = f"{_DOCUMENTS}/{{document_id:path}}"
_OPERATIONS = f"{_BANK}/operations"
_OPERATION = f"{_OPERATIONS}/{{operation_id}}"


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path pattern; `{name}` is one segment, `{name:path}` may hold slashes."""

    method: str
    path: str
    handler: Handler

    def pattern(self) -> re.Pattern[str]:
        """Return the pattern of whole decoded paths."""
        parts = re.split(r"\{(\w+)(:path)?\}", self.path)
        literals, names, kinds = parts[::3], parts[1::3], parts[2::3]
        fields = (f"(?P<{name}>{'.+' if kind else '[^/]+'})" for name, kind in zip(names, kinds, strict=True))
        return re.compile(
            "".join(part for pair in zip(map(re.escape, literals), [*fields, ""], strict=True) for part in pair)
        )


def _gone(_request: Request) -> object:
    raise Problem(
        410,
        "The bank profile endpoints have been removed. Disposition traits and the reflect mission are bank "
        "configuration: read them from GET /v1/default/banks/{bank_id}/config, and write them with PATCH "
        "/v1/default/banks/{bank_id}/config.",
    )


ROUTES: tuple[Route, ...] = (
    Route("GET", "/health", monitoring.health),
    Route("GET", "/health/ready", monitoring.health),
    Route("GET", "/health/live", monitoring.alive),
    Route("GET", "/version", monitoring.version),
    Route("GET", "/v1/version", monitoring.version),
    Route("GET", f"{_MEMORIES}/list", memories.list_memories),
    Route("GET", _MEMORY, memories.get_memory),
    Route("PATCH", _MEMORY, memories.update_memory),
    Route("GET", f"{_MEMORY}/history", memories.get_history),
    Route("POST", f"{_MEMORIES}/recall", recall.recall),
    Route("POST", f"{_BANK}/reflect", reflect.reflect),
    Route("GET", _BANKS, banks.list_banks),
    Route("GET", f"{_BANK}/stats", banks.get_stats),
    Route("GET", f"{_BANK}/entities", entities.list_entities),
    Route("GET", f"{_BANK}/entities/{{entity_id}}", entities.get_entity),
    Route("GET", _DOCUMENTS, documents.list_documents),
    Route("GET", f"{_DOCUMENT}/chunks", documents.list_chunks),
    Route("GET", f"{_DOCUMENT}/history", documents.get_document_history),
    Route("GET", _DOCUMENT, documents.get_document),
    Route("GET", f"{_BANK}/tags", documents.list_tags),
    Route("GET", "/v1/default/chunks/{chunk_id:path}", documents.get_chunk),
    Route("PATCH", _DOCUMENT, documents.update_document),
    Route("DELETE", _DOCUMENT, documents.delete_document),
    Route("GET", _OPERATIONS, operations.list_operations),
    Route("GET", _OPERATION, operations.get_operation),
    Route("DELETE", _OPERATION, operations.cancel_operation),
    Route("POST", f"{_OPERATION}/retry", operations.retry_operation),
    Route("DELETE", f"{_OPERATION}/delete", operations.delete_operation),
    Route("GET", f"{_BANK}/profile", _gone),
    Route("PUT", f"{_BANK}/profile", _gone),
    Route("POST", f"{_BANK}/background", _gone),
    Route("PUT", _BANK, banks.put_bank),
    Route("PATCH", _BANK, banks.patch_bank),
    Route("DELETE", _BANK, banks.delete_bank),
    Route("GET", f"{_BANK}/config", banks.get_config),
    Route("PATCH", f"{_BANK}/config", banks.patch_config),
    Route("DELETE", f"{_BANK}/config", banks.reset_config),
    Route("POST", _MEMORIES, retain.retain),
    Route("DELETE", _MEMORIES, memories.clear_memories),
)
"""In the server's own order."""

_COMPILED = tuple((route, route.pattern()) for route in ROUTES)


@dataclass(frozen=True, slots=True)
class Match:
    """The route for a request and the values in its path."""

    route: Route
    params: dict[str, str]


def find_route(method: str, path: str) -> Match | None:
    """Return the route, or None where the path is one with its trailing slash added or taken away.

    Raises `Problem` 404 for an unknown path and 405 for a known one with another method.
    """
    allowed: str | None = None
    for route, pattern in _COMPILED:
        found = pattern.fullmatch(path)
        if found is not None and route.method == method:
            return Match(route, found.groupdict())
        if found is not None and allowed is None:
            allowed = route.method
    if allowed is not None:
        raise Problem(405, "Method Not Allowed", {"allow": allowed})
    other = other_slash(path)
    if any(pattern.fullmatch(other) for _, pattern in _COMPILED):
        return None
    raise Problem(404, "Not Found")


def other_slash(path: str) -> str:
    """Return `path` without its trailing slashes, or with one where it has none."""
    return path.rstrip("/") if path.endswith("/") else f"{path}/"
