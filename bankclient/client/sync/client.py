# Made from the async client by .ci/sync_twin.py: change that one.
"""`BankClient`: retain, recall and reflect under the right project, and everything else the server offers.

It knows settings, scope and the API's calls; how a call is sent is the caller's business (`Caller`).
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, cast
from uuid import uuid4

from bankclient.api import calls
from bankclient.api.models.recall import RecallResult
from bankclient.api.models.retain import MemoryItem
from bankclient.client.embedded import EmbeddedTransport
from bankclient.client.filing import filed, narrowed
from bankclient.client.http import HttpTransport
from bankclient.client.merge import merge
from bankclient.client.setup import set_up
from bankclient.client.sync.banks import Banks
from bankclient.client.sync.caller import Caller
from bankclient.client.sync.documents import Documents
from bankclient.client.sync.memories import Memories
from bankclient.client.sync.operations import Operations
from bankclient.errors import CallError, NotFound

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from types import TracebackType
    from uuid import UUID

    from bankclient.api.call import Call
    from bankclient.api.calls import Included
    from bankclient.api.capabilities import Capabilities
    from bankclient.api.models.reflect import ReflectResult
    from bankclient.api.models.retain import RetainResult
    from bankclient.api.models.server import Health, Version
    from bankclient.api.models.words import Budget, FactType, ObservationScopes, TagGroup, TagsMatch, UpdateMode
    from bankclient.client.policy import Breaker
    from bankclient.client.transport import StreamedResponse, Transport
    from bankclient.scope import Scope, Target
    from bankclient.settings import Settings

__all__ = ["BankClient"]

T = TypeVar("T")
_log = logging.getLogger("bankclient.client")
_EXTRA_SHARE: Final = 4


class BankClient:
    """A typed client of a Hindsight server, configured by `HINDSIGHT_*` and bound to the project of a folder.

    Without arguments it reads the environment and `config.toml` and files under the project of the current directory;
    `url`, `token` and `bank` overrule HINDSIGHT_API_URL, HINDSIGHT_API_TOKEN and HINDSIGHT_BANK_ID, `settings` replaces
    them all. With `degrade` calls answer empty results, marked `degraded`, while the server is away, and the log says
    so once. `breaker` may be shared between clients of one server. Raises `ConfigError` for a bad argument.

    It may be used from several threads, and after a fork. Close it when done, or use it as a
    context manager.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        bank: str | None = None,
        folder: str | os.PathLike[str] | None = None,
        settings: Settings | None = None,
        degrade: bool = False,
        breaker: Breaker | None = None,
        transport: Transport | None = None,
    ) -> None:
        flags = {"api_url": url, "api_token": token, "bank_id": bank}
        setup = set_up(
            settings=settings,
            folder=folder,
            flags={name: value for name, value in flags.items() if value is not None},
            degrade=degrade,
            breaker=breaker,
        )
        self.settings: Settings = setup.settings
        self.scope: Scope = setup.scope
        if transport is None:
            is_embedded = setup.is_embedded
            transport = EmbeddedTransport(setup.bank_file) if is_embedded else HttpTransport(setup.route)
        self._caller = Caller(setup.core, transport)
        self._has_mission: set[str] = set()
        self.banks = Banks(self._caller, self.scope.bank)
        self.memories = Memories(self._caller, self.scope.bank)
        self.documents = Documents(self._caller, self.scope.bank)
        self.operations = Operations(self._caller, self.scope.bank)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._caller.close()

    def retain(
        self,
        content: str | Sequence[Mapping[str, Any]],
        *,
        scope: Literal["project", "global"] = "project",
        tags: Iterable[str] | str = (),
        document_id: str | None = None,
        context: str | None = None,
        metadata: Mapping[str, str] | None = None,
        timestamp: datetime | str | None = None,
        entities: Iterable[str | Mapping[str, str | None]] | str = (),
        resolve_entities: bool | None = None,
        observation_scopes: ObservationScopes | None = None,
        strategy: str | None = None,
        update_mode: UpdateMode | None = None,
        background: bool = False,
        operation_id: UUID | str | None = None,
        bank: str | None = None,
        timeout: float | None = None,
    ) -> RetainResult:
        """Put one text into memory, under the project or (`scope="global"`) for all projects.

        `tags` come beside the scope's own; a memory for all projects has none. Without `background` the memory can be
        recalled when this returns, and the call is never repeated by itself unless `document_id` names what it
        replaces. With it the server answers at once and works on; `operations.wait` says when it is done; an operation
        id, made here where none is given, makes it safe to repeat. Raises `InvalidInput` before anything is sent,
        `Unavailable` or `Refused` after.
        """
        item = MemoryItem(
            content,
            document_id=document_id,
            tags=tags,
            timestamp=timestamp,
            context=context,
            metadata=metadata,
            entities=entities,
            resolve_entities=resolve_entities,
            observation_scopes=observation_scopes,
            strategy=strategy,
            update_mode=update_mode,
        )
        return self.retain_many(
            [item], scope=scope, background=background, operation_id=operation_id, bank=bank, timeout=timeout
        )

    def retain_many(
        self,
        items: Iterable[str | MemoryItem | Mapping[str, Any]],
        *,
        scope: Literal["project", "global"] = "project",
        background: bool = False,
        operation_id: UUID | str | None = None,
        bank: str | None = None,
        timeout: float | None = None,
    ) -> RetainResult:
        """Put several texts into memory in one request; everything else is as in `retain`.

        Items without a document id share one new document.
        """
        target = self.scope.retain_target(scope)
        if background and operation_id is None:
            operation_id = uuid4()
        call = calls.retain_many(
            target.bank if bank is None else bank,
            filed(items, target, self.scope, self.settings.retain_context),
            background=background,
            operation_id=operation_id,
        )
        return self._caller.call(call, timeout=timeout)

    def recall(
        self,
        query: str,
        *,
        tags: Iterable[str] | str = (),
        tags_match: TagsMatch | None = None,
        tag_groups: Iterable[TagGroup] | None = None,
        types: Iterable[FactType] | FactType | None = None,
        budget: Budget | None = None,
        max_tokens: int | None = None,
        min_scores: Mapping[str, float] | None = None,
        prefer_observations: bool | None = None,
        include_entities: Included | None = None,
        include_chunks: Included | None = None,
        include_source_facts: Included | None = None,
        query_timestamp: datetime | str | None = None,
        temporal_window: tuple[datetime | str, datetime | str] | None = None,
        trace: bool | None = None,
        bank: str | None = None,
        timeout: float | None = None,
    ) -> RecallResult:
        """Find the memories of this project, and those of no project, that answer `query`, best first.

        `tags` and `tag_groups` narrow that down further; `tags_match` says how `tags` are meant, and a strict mode
        leaves out memories without a project too. What is `None` comes from the settings. A bank that does not exist
        yet has no memories. Raises `InvalidInput` before anything is sent, `Unavailable` or `Refused` after.
        """
        max_tokens = self.settings.recall_max_tokens if max_tokens is None else max_tokens
        types = cast("tuple[FactType, ...]", self.settings.recall_types) if types is None else types
        answers: list[RecallResult] = []
        began = self._caller.core.now()
        for target in self._recall_targets(bank):
            call = calls.recall(
                target.bank,
                query,
                **narrowed(target, tags, tags_match, tag_groups),
                types=types,
                budget=self.settings.recall_budget if budget is None else budget,
                max_tokens=max_tokens,
                min_scores=min_scores,
                prefer_observations=True if prefer_observations is None and not types else prefer_observations,
                include_entities=include_entities,
                include_chunks=include_chunks,
                include_source_facts=include_source_facts,
                query_timestamp=query_timestamp,
                temporal_window=temporal_window,
                trace=trace,
            )
            try:
                left = self._caller.core.left("recall", timeout, began) if answers else timeout
                answers.append(self._caller.call(call, timeout=left))
            except NotFound as error:
                if not error.is_missing_bank:
                    raise
                answers.append(RecallResult(results=()))
        return merge(answers, max_tokens)

    def _recall_targets(self, bank: str | None) -> tuple[Target, ...]:
        """Return what to ask: the scope's banks, or the one named, with the tags that the scope has for it."""
        if bank is None:
            return self.scope.recall
        own = [target for target in self.scope.recall if target.bank == bank]
        return (own[0] if own else replace(self.scope.recall[0], bank=bank),)

    def reflect(
        self,
        query: str,
        *,
        tags: Iterable[str] | str = (),
        tags_match: TagsMatch | None = None,
        tag_groups: Iterable[TagGroup] | None = None,
        fact_types: Iterable[FactType] | FactType = (),
        budget: Budget | None = None,
        max_tokens: int | None = None,
        response_schema: Mapping[str, Any] | None = None,
        include_facts: bool = False,
        include_tool_calls: bool | Literal["inputs"] = False,
        bank: str | None = None,
        timeout: float | None = None,
    ) -> ReflectResult:
        """Let the server answer `query` from its memories of this project; tags are as in `recall`.

        Where HINDSIGHT_BANK_MISSION is set and the bank has none, it is set first. Raises as `recall` does; a server
        without a language model refuses (`BadRequest`).
        """
        target = self._recall_targets(bank)[0]
        call = calls.reflect(
            target.bank,
            query,
            **narrowed(target, tags, tags_match, tag_groups),
            fact_types=fact_types,
            budget=budget,
            max_tokens=max_tokens,
            response_schema=response_schema,
            include_facts=include_facts,
            include_tool_calls=include_tool_calls,
        )
        began = self._caller.core.now()
        self._give_mission(target.bank, timeout)
        left = self._caller.core.left("reflect", timeout, began) if self.settings.bank_mission else timeout
        return self._caller.call(call, timeout=left)

    def _give_mission(self, bank: str, timeout: float | None) -> None:
        """Set the bank's mission once, if one is configured and the bank has none.

        It is an extra: it takes a quarter of the call's time at most, and its failure costs the call nothing more.
        """
        mission = self.settings.bank_mission
        if mission is None or bank in self._has_mission:
            return
        core = self._caller.core
        share = min(core.limits["request"], (core.limits["reflect"] if timeout is None else timeout) / _EXTRA_SHARE)
        began = core.now()
        try:
            if not self._mission_of(bank, share):
                call = calls.put_bank(bank, reflect_mission=mission)
                self._caller.call(call, timeout=core.left("request", share, began), extra=True)
            self._has_mission.add(bank)
        except CallError as error:
            _log.debug("the mission of bank %r is not set: %s", bank, error)

    def _mission_of(self, bank: str, timeout: float) -> object:
        try:
            config = self._caller.call(calls.get_bank_config(bank), timeout=timeout, extra=True)
            return config.config.get("reflect_mission")
        except NotFound as error:
            if error.is_missing_bank:
                return None
            raise

    def health(self, *, timeout: float | None = None) -> Health:
        """Return how the server and its database are."""
        return self._caller.call(calls.health(), timeout=timeout)

    def version(self, *, timeout: float | None = None) -> Version:
        """Return the server's version and features."""
        return self._caller.version(timeout=timeout)

    def capabilities(self) -> Capabilities:
        """Return what the server's version can do; asked once and kept."""
        return self._caller.capabilities()

    def call(self, call: Call[T], *, timeout: float | None = None) -> T:
        """Send any call of `bankclient.api.calls`, as it is: no scope is added to it."""
        return self._caller.call(call, timeout=timeout)

    def stream(self, call: Call[Any], *, timeout: float | None = None) -> AbstractContextManager[StreamedResponse]:
        """Send a call and read its answer piece by piece; `timeout` (seconds) bounds the status and each piece."""
        return self._caller.stream(call, timeout=timeout)
