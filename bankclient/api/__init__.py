"""The Hindsight API as pure values."""

from __future__ import annotations

from bankclient.api import calls, models
from bankclient.api.call import Call, Repeat

__all__ = ["Call", "Repeat", "calls", "models"]
