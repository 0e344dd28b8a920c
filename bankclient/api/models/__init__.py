"""The models of the API: what replies are read as, and the items that are retained."""

from __future__ import annotations

from bankclient.api.models.base import Page, Reply
from bankclient.api.models.recall import RecalledMemory, RecallResult
from bankclient.api.models.reflect import ReflectResult
from bankclient.api.models.retain import MemoryItem, RetainResult, TokenUsage
from bankclient.api.models.server import Features, Health, Liveness, Version

__all__ = [
    "Features",
    "Health",
    "Liveness",
    "MemoryItem",
    "Page",
    "RecallResult",
    "RecalledMemory",
    "ReflectResult",
    "Reply",
    "RetainResult",
    "TokenUsage",
    "Version",
]
