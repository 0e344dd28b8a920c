"""The settings: which there are, what they mean, and where each value comes from.

This package owns the `HINDSIGHT_*` variables, `config.toml` with its `[[project]]` rules, and their order. Nothing is
read from a project's folder, and nothing here knows git, scopes, HTTP, or who is asking.
"""

from bankclient.settings.loading import Loaded, describe, load
from bankclient.settings.model import VARIABLES, Settings, Variable
from bankclient.settings.values import EMBEDDED, FALSE_WORDS, TRUE_WORDS

__all__ = [
    "EMBEDDED",
    "FALSE_WORDS",
    "TRUE_WORDS",
    "VARIABLES",
    "Loaded",
    "Settings",
    "Variable",
    "describe",
    "load",
]
