"""Sending what is queued: `Flusher` works an outbox off, `Keyring` knows for which destinations it may.

`steps` is one step over the network, `watching` how to be told of what becomes of it.
"""

from __future__ import annotations

from bankclient.flusher.flusher import PATIENCE, Flusher
from bankclient.flusher.keyring import Keyring, connect
from bankclient.flusher.watching import LogWatcher, Watcher

__all__ = ["PATIENCE", "Flusher", "Keyring", "LogWatcher", "Watcher", "connect"]
