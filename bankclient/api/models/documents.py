"""Documents, the pieces they were cut into, and the tags in a bank."""

from __future__ import annotations

from pydantic import Field

from bankclient.api.models.base import Part, Reply
from bankclient.api.models.fields import Count, Many, Metadata, Moment, Named, Object, Text
from bankclient.api.models.recall import Attachment

__all__ = ["Document", "DocumentChunk", "TagCount"]


class Document(Reply):
    """A document. A list has its `text_length`, a single one its `original_text` (if the server stores it).

    `content_hash` is the SHA-256 of the text in hexadecimal.
    """

    id: str
    bank_id: Text = ""
    content_hash: str | None = None
    created_at: Moment = None
    updated_at: Moment = None
    original_text: str | None = None
    text_length: Count = 0
    memory_unit_count: Count = 0
    nodes_by_fact_type: Named[int] = Field(default_factory=dict)
    tags: Many[str] = ()
    document_metadata: Metadata = Field(default_factory=dict)
    retain_params: Object = Field(default_factory=dict)
    observation_scopes: str | tuple[tuple[str, ...], ...] | None = None
    attachments: Many[Attachment] = ()
    matched_fields: Many[str] = ()


class DocumentChunk(Part):
    """A piece of a document."""

    chunk_id: str
    chunk_text: Text = ""
    chunk_index: Count = 0
    document_id: Text = ""
    bank_id: Text = ""
    created_at: Moment = None
    attachments: Many[Attachment] = ()


class TagCount(Part):
    """A tag and how many memories have it."""

    tag: str
    count: Count = 0
