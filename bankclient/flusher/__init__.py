"""Sending what is queued: `Flusher` works an outbox off, `Keyring` knows for which destinations it may.

`steps` is one step over the network, `watching` how to be told of what becomes of it. A resident process does

    flusher = Flusher(outbox, Keyring(settings), together=database.write)
    sending = asyncio.create_task(flusher.run())
    ...  # after each commit: flusher.wake(); with each key that it learns: flusher.keyring.add(settings)
    sending.cancel()  # stops at once; what is left stays on the disk

and a command `await flusher.flush(timeout=60.0)`. Whoever made the keyring closes it, in the same event loop.
"""

from __future__ import annotations

from bankclient.flusher.flusher import PATIENCE, Flusher
from bankclient.flusher.keyring import Keyring, connect
from bankclient.flusher.watching import LogWatcher, Watcher

__all__ = ["PATIENCE", "Flusher", "Keyring", "LogWatcher", "Watcher", "connect"]
