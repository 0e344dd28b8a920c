"""What reflect answers: a text, and on request what it rests on and how it was made."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from bankclient.api.models.base import Part, Reply
from bankclient.api.models.fields import Count, Many, Metadata, Moment, Named, Text
from bankclient.api.models.recall import Attachment
from bankclient.api.models.retain import TokenUsage

__all__ = [
    "ReflectBasis",
    "ReflectDirective",
    "ReflectFact",
    "ReflectLLMCall",
    "ReflectMentalModel",
    "ReflectResult",
    "ReflectToolCall",
    "ReflectTrace",
]


class ReflectFact(Part):
    """A memory that the answer rests on; an observation's text is markdown."""

    id: str | None = None
    text: Text
    type: Text = ""
    context: Text = ""
    occurred_start: Moment = None
    occurred_end: Moment = None
    mentioned_at: Moment = None
    document_id: str | None = None
    chunk_id: str | None = None
    tags: Many[str] = ()
    metadata: Metadata = Field(default_factory=dict)
    attachments: Many[Attachment] = ()


class ReflectMentalModel(Part):
    """A mental model that was read."""

    id: Text = ""
    text: Text = ""
    context: Text = ""


class ReflectDirective(Part):
    """A directive that was applied."""

    id: Text = ""
    name: Text = ""
    content: Text = ""


class ReflectBasis(Part):
    """What the answer rests on."""

    memories: Many[ReflectFact] = ()
    mental_models: Many[ReflectMentalModel] = ()
    directives: Many[ReflectDirective] = ()


class ReflectToolCall(Part):
    """A tool that the answering model used; `duration_ms` in milliseconds."""

    tool: Text = ""
    input: Named[Any] = Field(default_factory=dict)
    output: dict[str, Any] | None = None
    duration_ms: Count = 0
    iteration: Count = 0


class ReflectLLMCall(Part):
    """A call to the answering model; `duration_ms` in milliseconds."""

    scope: Text = ""
    duration_ms: Count = 0


class ReflectTrace(Part):
    """How the answer was made."""

    tool_calls: Many[ReflectToolCall] = ()
    llm_calls: Many[ReflectLLMCall] = ()


class ReflectResult(Reply):
    """The answer, in markdown.

    `structured_output` is what the server made for a `response_schema`; it does not hold it to the schema. Without it,
    `structured_output_error` says why it failed, and where both are missing nothing matched.
    """

    text: Text
    based_on: ReflectBasis | None = None
    structured_output: dict[str, Any] | None = None
    structured_output_error: str | None = None
    usage: TokenUsage | None = None
    trace: ReflectTrace | None = None
