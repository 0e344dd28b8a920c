"""A bank's configuration: the fields of the server, their defaults here, and which values they take.

Of these only `retain_chunk_size`, `retain_structured_chunk_size` and `store_document_text` change what this bank does;
the others are kept and shown, so that a client that sets them can go on, and move to a server that obeys them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bankclient.embedded.wire import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["checked_updates", "effective"]

_ENVIRONMENT_PREFIX = "HINDSIGHT_API_"

_DEFAULTS: dict[str, object] = {
    "audit_log_enabled": False,
    "consolidation_llm_batch_size": 8,
    "consolidation_llm_parallelism": 4,
    "consolidation_max_memories_per_round": 100,
    "consolidation_source_facts_max_tokens": 4096,
    "consolidation_source_facts_max_tokens_per_observation": 256,
    "consolidation_strategies": None,
    "consolidation_use_decision_model": True,
    "default_observation_scopes": None,
    "disposition_empathy": None,
    "disposition_literalism": None,
    "disposition_skepticism": None,
    "enable_auto_consolidation": False,
    "enable_graph_retrieval": False,
    "enable_observations": False,
    "enable_reranking": False,
    "enable_temporal_retrieval": False,
    "enable_text_search": True,
    "entities_allow_free_form": True,
    "entity_labels": None,
    "knowledge_page_default_trigger": None,
    "llm_gemini_safety_settings": None,
    "max_observations_per_scope": -1,
    "mcp_enabled_tools": None,
    "memory_defense": None,
    "mental_model_delta_use_decision_model": True,
    "mental_model_min_refresh_interval_seconds": 0,
    "mental_model_refresh_use_decision_model": True,
    "observation_scope_limits": None,
    "observations_mission": None,
    "recall_budget_adaptive_high": 0.25,
    "recall_budget_adaptive_low": 0.025,
    "recall_budget_adaptive_mid": 0.075,
    "recall_budget_fixed_high": 1000,
    "recall_budget_fixed_low": 100,
    "recall_budget_fixed_mid": 300,
    "recall_budget_function": "fixed",
    "recall_budget_max": 2000,
    "recall_budget_min": 20,
    "recall_chunks_max_tokens": 1000,
    "recall_include_chunks": True,
    "recall_max_tokens": 2048,
    "recall_prefer_observations": False,
    "reflect_default_options": None,
    "reflect_mission": None,
    "reflect_source_facts_max_tokens": -1,
    "reflect_use_decision_model": True,
    "retain_chunk_batch_size": 100,
    "retain_chunk_size": 3000,
    "retain_custom_instructions": None,
    "retain_default_strategy": None,
    "retain_extraction_mode": "chunks",
    "retain_max_attachments_per_chunk": 8,
    "retain_mission": None,
    "retain_strategies": None,
    "retain_structured_chunk_size": None,
    "store_document_text": True,
}

_TYPE_NAMES: dict[type, str] = {int: "an integer", bool: "a boolean", float: "a number", str: "a string"}
_OPTIONAL: dict[str, type] = {
    "disposition_empathy": int,
    "disposition_literalism": int,
    "disposition_skepticism": int,
    "observations_mission": str,
    "reflect_mission": str,
    "retain_custom_instructions": str,
    "retain_mission": str,
    "retain_structured_chunk_size": int,
}
"""The types of fields that are unset by default; what stands neither here nor has a default takes any value."""


def effective(overrides: Mapping[str, object]) -> dict[str, Any]:
    """Return the whole configuration: the defaults under what was set."""
    return _DEFAULTS | dict(overrides)


def checked_updates(updates: Mapping[str, object]) -> dict[str, object]:
    """Return `updates` under their own names; the server's environment names are taken too. None takes a setting back.

    Raises `Problem` 400 for an unknown field or a value of another type.
    """
    named = {name.removeprefix(_ENVIRONMENT_PREFIX).lower(): value for name, value in updates.items()}
    unknown = sorted(named.keys() - _DEFAULTS.keys())
    if unknown:
        valid = sorted(_DEFAULTS)[:10]
        raise Problem(400, f"Unknown configuration fields: {unknown}. Valid configurable fields: {valid}...")
    for name, value in named.items():
        _check(name, value)
    return named


def _check(name: str, value: object) -> None:
    default = _DEFAULTS[name]
    kind: type | None = _OPTIONAL.get(name) if default is None else type(default)
    if kind is None or value is None:
        return
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise Problem(400, f"{name} must be {_TYPE_NAMES[kind]}, got {type(value).__name__}")
    if name in {"retain_chunk_size", "retain_structured_chunk_size"} and isinstance(value, int) and value < 1:
        raise Problem(400, f"{name} must be >= 1, got {value}")
