"""What a server says of itself: health, liveness, version."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bankclient.api.models.base import Part, Reply
from bankclient.api.models.fields import Flag, NullMeans, Text

__all__ = ["Features", "Health", "Liveness", "Version"]


class Health(Reply):
    """Whether the server can work: `healthy`, or `unhealthy` with the `error`; ours is `unreachable`."""

    status: Text
    database: Text = ""
    error: str | None = None

    @property
    def healthy(self) -> bool:
        """Whether the server called itself healthy."""
        return self.status == "healthy"


class Liveness(Reply):
    """That the server answers at all, and since when (seconds); it asks no database."""

    status: Text
    version: Text = ""
    uptime_seconds: float | None = None


class Features(Part):
    """What this server has switched on; a feature that it does not name is off."""

    observations: Flag = False
    mcp: Flag = False
    worker: Flag = False
    bank_config_api: Flag = False
    bank_llm_health: Flag = False
    file_upload_api: Flag = False
    document_export_api: Flag = False
    document_import_api: Flag = False
    audit_log: Flag = False
    llm_trace: Flag = False
    store_document_text: Flag = False


class Version(Reply):
    """The server's version and features."""

    api_version: str
    features: Annotated[Features, NullMeans(Features)] = Field(default_factory=Features)
