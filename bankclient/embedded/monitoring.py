"""Health and version: whether the bank's file answers, and which API is spoken. Never needs a bank."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bankclient.embedded.wire import Request

__all__ = ["API_VERSION", "SERVER_HEADER", "alive", "health", "version"]

API_VERSION = "1.1.0"
"""The version of the Hindsight API whose shapes and rules this bank keeps."""

SERVER_HEADER = ("x-hindsight-server", "bankclient-embedded")
"""In every reply: who answers, for the API version alone does not say that it is not a Hindsight server."""

_FEATURES = {
    "observations": False,
    "mcp": False,
    "worker": True,
    "bank_config_api": True,
    "bank_llm_health": False,
    "file_upload_api": False,
    "document_export_api": False,
    "document_import_api": False,
    "audit_log": False,
    "llm_trace": False,
    "store_document_text": True,
}


def health(request: Request) -> object:
    """Answer that the file can be read; where it cannot, the server answers 503 in this shape."""
    with request.database.read() as db:
        db.execute("SELECT 1 FROM banks LIMIT 1")
    pool = {"db_pool_waiting": 0, "db_pool_in_use": 0, "db_pool_max": 1, "db_pool_idle": 1}
    return {"status": "healthy", "database": "connected", "db_acquire_ms": 0.0, **pool}


def alive(request: Request) -> object:
    """Answer without looking at the file."""
    return {"status": "alive", "version": API_VERSION, "uptime_seconds": round(request.uptime_seconds, 1)}


def version(_request: Request) -> object:
    """Answer the API version and what of it is here; `embedded` is ours alone."""
    return {"api_version": API_VERSION, "features": _FEATURES, "embedded": True}
