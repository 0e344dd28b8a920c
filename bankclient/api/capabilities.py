"""What a server can do, by its version: a table, and the guard that holds a call to it.

Servers ignore fields that they do not know, mostly in silence, so that an old one stores or finds something else than
was asked for. This module knows since when what is there; who asks for the version is the client.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from bankclient.api.call import Repeat
from bankclient.errors import InvalidInput

if TYPE_CHECKING:
    from bankclient.api.call import Call

__all__ = ["Capabilities"]

T = TypeVar("T")

_SINCE = {
    "bank_config": (0, 4, 11),
    "file_retain": (0, 4, 12),
    "webhooks": (0, 4, 16),
    "retry_operation": (0, 4, 17),
    "patch_document": (0, 4, 17),
    "tag_groups": (0, 4, 18),
    "append": (0, 5, 0),
    "document_chunks": (0, 5, 5),
    "operation_cancelled_status": (0, 5, 5),
    "patch_memory": (0, 8, 2),
    "exact_tags": (0, 8, 2),
    "min_scores": (0, 8, 4),
    "prefer_observations": (0, 8, 4),
    "delete_operation": (0, 8, 5),
    "operation_ids": (0, 8, 6),
    "liveness": (0, 9, 1),
    "content_blocks": (0, 10, 0),
    "missing_bank_is_404": (0, 10, 1),
    "long_query_is_cut": (0, 10, 3),
    "bank_pages": (1, 0, 0),
}
"""The first released version with each."""

_VERSION = re.compile(r"\s*v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?(?P<rest>(?!\d)\S*)\s*", re.ASCII)
_PRE_RELEASE = re.compile(r"[-._]?(?:a|b|c|rc|alpha|beta|pre|preview|dev)[-._]?\d*", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a server of one version can do.

    Of an unknown version nothing is taken for granted: a call that an old server would take wrongly is then refused,
    and an operation id protects no repeat.
    """

    version: str
    """As the server says it; empty if it could not be asked."""
    append: bool = False
    """`update_mode: append`; before, the server replaced the document and said nothing."""
    bank_config: bool = False
    bank_pages: bool = False
    """The list of banks comes in pages with a total; before, all at once."""
    content_blocks: bool = False
    """Images and files in the content of an item."""
    delete_operation: bool = False
    document_chunks: bool = False
    exact_tags: bool = False
    """`tags_match: exact`; before, 422."""
    file_retain: bool = False
    liveness: bool = False
    """`/health/live`."""
    long_query_is_cut: bool = False
    """A query over 500 tokens is cut; before, 400 `Query too long`."""
    min_scores: bool = False
    """Floors for scores, and the scores themselves; before, ignored."""
    missing_bank_is_404: bool = False
    """Recall and lists of a bank that is not there answer 404; before, an empty 200."""
    operation_cancelled_status: bool = False
    """A cancelled operation reads `cancelled`, a running one `processing`; before, `not_found` and `pending`."""
    operation_ids: bool = False
    """A caller's operation id makes a repeat safe; before, it was ignored and each send was a write."""
    patch_document: bool = False
    patch_memory: bool = False
    prefer_observations: bool = False
    retry_operation: bool = False
    tag_groups: bool = False
    """Filters of groups; before, ignored, which finds everything."""
    webhooks: bool = False

    @classmethod
    def of(cls, version: str) -> Capabilities:
        """Return what a server of this version can do.

        A leading `v` and what follows a `+` or `.post` change nothing. A pre-release counts as before its release,
        since it may lack what that has. A text that is no version is an unknown one.
        """
        match = _VERSION.fullmatch(version)
        if match is None:
            return cls(version=version)
        number = tuple(int(part or 0) for part in match.groups()[:3])
        final = not _PRE_RELEASE.match(match["rest"])
        return cls(version=version, **{name: (number, final) >= (since, True) for name, since in _SINCE.items()})

    def fit(self, call: Call[T]) -> Call[T]:
        """Return the call as it may be sent to this server.

        Without `operation_ids`, a call that rests on one may not be sent twice any more. Raises `InvalidInput` for one
        that rests on anything else that is missing: the server would store or find something else than was asked for.
        """
        missing = sorted(need for need in call.needs if not getattr(self, need))
        if "operation_ids" in missing:
            missing.remove("operation_ids")
            call = replace(call, repeat=Repeat.NEVER)
        if missing:
            since = ".".join(map(str, max(_SINCE[need] for need in missing)))
            raise InvalidInput(
                f"{call.operation} with {' and '.join(missing)} needs a server from {since}, and this one is"
                f" {self.version or 'of unknown version'}: leave it out, or bring the server up to date"
            )
        return call
