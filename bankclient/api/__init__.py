"""The Hindsight API as pure values.

A function of `calls` makes a `Call`, whoever sends it hands the reply's bytes to its `parse`, and gets a model of
`models`; `Capabilities` says what a server of some version would make of it. Nothing here reads or sends.
"""

from __future__ import annotations

from bankclient.api import calls, models
from bankclient.api.call import Call, Need, Repeat, TimeLimit, clean_text, encode_json, segment
from bankclient.api.capabilities import Capabilities

__all__ = [
    "Call",
    "Capabilities",
    "Need",
    "Repeat",
    "TimeLimit",
    "calls",
    "clean_text",
    "encode_json",
    "models",
    "segment",
]
