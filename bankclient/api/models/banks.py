"""Banks: what they are, what is in them and how they are set."""

from __future__ import annotations

from pydantic import Field

from bankclient.api.models.base import Part, Reply
from bankclient.api.models.fields import Count, Many, Moment, Named, Object, Text

__all__ = ["Bank", "BankConfig", "BankStats", "Disposition"]


class Disposition(Part):
    """How a bank judges, each trait from 1 to 5."""

    skepticism: int | None = None
    literalism: int | None = None
    empathy: int | None = None


class Bank(Reply):
    """A bank. Its counts and times are in lists; what changes a bank answers with its name, mission and disposition."""

    bank_id: str
    name: Text = ""
    disposition: Disposition | None = None
    mission: Text = ""
    background: Text = ""
    created_at: Moment = None
    updated_at: Moment = None
    fact_count: Count = 0
    last_document_at: Moment = None
    last_write_at: Moment = None
    display_alias: str | None = None
    matched_aliases: Many[str] = ()


class BankStats(Reply):
    """How much is in a bank. The server keeps these for 60 s unless they are asked for anew."""

    bank_id: Text = ""
    total_nodes: Count
    total_links: Count = 0
    total_documents: Count = 0
    total_observations: Count = 0
    nodes_by_fact_type: Named[int] = Field(default_factory=dict)
    links_by_link_type: Named[int] = Field(default_factory=dict)
    links_by_fact_type: Named[int] = Field(default_factory=dict)
    links_breakdown: Named[dict[str, int]] = Field(default_factory=dict)
    pending_operations: Count = 0
    """Operations not done yet; webhook deliveries that wait for a retry count too."""
    failed_operations: Count = 0
    operations_by_status: Named[int] = Field(default_factory=dict)
    pending_consolidation: Count = 0
    failed_consolidation: Count = 0
    last_consolidated_at: Moment = None
    last_memory_write_at: Moment = None


class BankConfig(Reply):
    """How a bank is set: everything that holds, and the part of it that is the bank's own."""

    bank_id: Text = ""
    config: Object
    overrides: Object = Field(default_factory=dict)
