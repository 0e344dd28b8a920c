"""Every call of the API, each a function that returns a `Call`; nothing is sent here.

`recall` is in `_recall.py`, `retain` in `_retain.py`, and so on; the calls on one resource share its module.
"""

from __future__ import annotations

from bankclient.api.calls._recall import recall
from bankclient.api.calls._reflect import reflect
from bankclient.api.calls._retain import retain, retain_many
from bankclient.api.calls._server import health, live, version

__all__ = ["health", "live", "recall", "reflect", "retain", "retain_many", "version"]
