"""Memory for coding agents: a typed client of a Hindsight server, and what stands between it and an agent.

The public names load when they are first used, so that `import bankclient` costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, whose import would cost more than all the rest here
if TYPE_CHECKING:
    from bankclient.api import calls
    from bankclient.api.models.retain import MemoryItem
    from bankclient.client import AsyncBankClient, BankClient
    from bankclient.errors import (
        BankclientError,
        ConfigError,
        InvalidInput,
        OperationFailed,
        Refused,
        Unavailable,
    )
    from bankclient.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "AsyncBankClient",
    "BankClient",
    "BankclientError",
    "ConfigError",
    "InvalidInput",
    "MemoryItem",
    "OperationFailed",
    "Refused",
    "Settings",
    "Unavailable",
    "__version__",
    "calls",
]

_HOMES = {
    "AsyncBankClient": "bankclient.client",
    "BankClient": "bankclient.client",
    "BankclientError": "bankclient.errors",
    "ConfigError": "bankclient.errors",
    "InvalidInput": "bankclient.errors",
    "MemoryItem": "bankclient.api.models.retain",
    "OperationFailed": "bankclient.errors",
    "Refused": "bankclient.errors",
    "Settings": "bankclient.settings",
    "Unavailable": "bankclient.errors",
    "calls": "bankclient.api",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - needed by nobody who only imports the package

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
