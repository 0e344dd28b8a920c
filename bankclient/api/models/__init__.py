"""The models of the API: what replies are read as, and the items that are retained."""

from __future__ import annotations

from bankclient.api.models.banks import Bank, BankConfig, BankStats, Disposition
from bankclient.api.models.base import Done, Page, Part, Reply
from bankclient.api.models.documents import Document, DocumentChunk, TagCount
from bankclient.api.models.memories import Memory, MemoryChange, MemoryHistory
from bankclient.api.models.operations import ChildOperation, Operation, OperationProgress
from bankclient.api.models.recall import (
    Attachment,
    RecallChunk,
    RecalledMemory,
    RecallEntity,
    RecallResult,
    RecallScores,
)
from bankclient.api.models.reflect import (
    ReflectBasis,
    ReflectDirective,
    ReflectFact,
    ReflectLLMCall,
    ReflectMentalModel,
    ReflectResult,
    ReflectToolCall,
    ReflectTrace,
)
from bankclient.api.models.retain import MemoryItem, RetainResult, TokenUsage
from bankclient.api.models.server import Features, Health, Liveness, Version

__all__ = [
    "Attachment",
    "Bank",
    "BankConfig",
    "BankStats",
    "ChildOperation",
    "Disposition",
    "Document",
    "DocumentChunk",
    "Done",
    "Features",
    "Health",
    "Liveness",
    "Memory",
    "MemoryChange",
    "MemoryHistory",
    "MemoryItem",
    "Operation",
    "OperationProgress",
    "Page",
    "Part",
    "RecallChunk",
    "RecallEntity",
    "RecallResult",
    "RecallScores",
    "RecalledMemory",
    "ReflectBasis",
    "ReflectDirective",
    "ReflectFact",
    "ReflectLLMCall",
    "ReflectMentalModel",
    "ReflectResult",
    "ReflectToolCall",
    "ReflectTrace",
    "Reply",
    "RetainResult",
    "TagCount",
    "TokenUsage",
    "Version",
]
