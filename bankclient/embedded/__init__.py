"""The embedded bank: a Hindsight API server on one SQLite file, without model or network.

`EmbeddedServer` answers requests as plain values; `bankclient.embedded.app` puts it behind ASGI. It speaks plain JSON
and knows nothing of the client, the proxy or the settings.
"""

from __future__ import annotations

from bankclient.embedded.server import EmbeddedServer
from bankclient.embedded.wire import Reply

__all__ = ["EmbeddedServer", "Reply"]
