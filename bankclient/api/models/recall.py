"""What recall answers: memories, best first, and what was asked to come with them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from bankclient.api.models.base import Part, Reply
from bankclient.api.models.fields import Count, Flag, Many, Metadata, Moment, Named, Text

__all__ = ["Attachment", "RecallChunk", "RecallEntity", "RecallResult", "RecallScores", "RecalledMemory"]


class Attachment(Part):
    """A file or image that a memory or chunk was drawn from."""

    id: str
    kind: Text = ""
    media_type: Text = ""
    byte_size: Count = 0
    filename: str | None = None
    url: Text = ""
    hash: Text = ""


class RecallScores(Part):
    """How a memory was ranked. A stage that did not bring it up has no score; servers before 0.8.4 send none."""

    final: float | None = None
    reranker: float | None = None
    semantic: float | None = None
    keyword: float | None = None


class RecalledMemory(Part):
    """A memory that was recalled.

    `type` is `world`, `experience` or `observation`; one that this version does not know is kept as it is. An
    observation has neither document nor metadata: where it comes from is in `source_fact_ids`.
    """

    id: str
    text: Text
    type: Text = ""
    entities: Many[str] = ()
    context: Text = ""
    occurred_start: Moment = None
    occurred_end: Moment = None
    mentioned_at: Moment = None
    document_id: str | None = None
    metadata: Metadata = Field(default_factory=dict)
    chunk_id: str | None = None
    tags: Many[str] = ()
    source_fact_ids: Many[str] = ()
    scores: RecallScores | None = None
    attachments: Many[Attachment] = ()


class RecallEntity(Part):
    """A person, place or thing that the recalled memories speak of; `observations` as the server sent them."""

    entity_id: Text = ""
    canonical_name: Text = ""
    observations: Many[dict[str, Any]] = ()


class RecallChunk(Part):
    """The piece of a document that a recalled memory was drawn from."""

    id: Text = ""
    text: Text = ""
    chunk_index: Count = 0
    truncated: Flag = False
    attachments: Many[Attachment] = ()


class RecallResult(Reply):
    """The memories recalled, best first. `entities`, `chunks`, `source_facts` and `trace` are there if asked for."""

    results: Many[RecalledMemory]
    entities: Named[RecallEntity] = Field(default_factory=dict)
    """By name."""
    chunks: Named[RecallChunk] = Field(default_factory=dict)
    """By chunk id."""
    source_facts: Named[RecalledMemory] = Field(default_factory=dict)
    """By memory id: the facts behind the observations."""
    source_facts_truncated: Flag = False
    trace: dict[str, Any] | None = None
