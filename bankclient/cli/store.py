"""The store of a place: opened where it lies, and what is queued in it sent.

The one module through which commands come to the durable things and their keys. It creates nothing unless something is
to be kept.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bankclient.cli.queued import Queued, count
from bankclient.cli.stopping import run_stoppable
from bankclient.errors import ConfigError
from bankclient.flusher import Flusher, Keyring
from bankclient.settings import load
from bankclient.store.database import STORE_FILE, Database
from bankclient.store.outbox import SqliteOutbox
from bankclient.store.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from bankclient.cli.place import Place
    from bankclient.flusher import Watcher
    from bankclient.settings import Settings
    from bankclient.store.outbox import Destination

__all__ = ["Store", "check_usable", "open_store", "open_store_if_there"]


@dataclass(frozen=True, slots=True)
class Store:
    """The store with the keys that this process knows: those in force here, and that of `config.toml`."""

    database: Database
    outbox: SqliteOutbox
    keyring: Keyring
    settings: Settings

    @property
    def destination(self) -> Destination:
        """Where things go that are kept here now."""
        return self.keyring.destination(self.settings)

    @property
    def sessions(self) -> Sessions:
        """What was said in sessions and is not sealed yet."""
        return Sessions(self.database, self.outbox)

    def send(
        self,
        *,
        watcher: Watcher,
        timeout: float,
        patience: float,
        until: Callable[[], bool] | None = None,
        only: Destination | None = None,
    ) -> None:
        """Send all facts and what is sealed, as `Flusher.flush` does; the first signal to stop ends it.

        A person asks for it: what waits for a time of our own choosing is tried now.
        """
        now = time.time()
        self.outbox.seal(now=now, everything=True)
        for lane in self.outbox.overview(now=now).lanes:
            if only in {None, lane.destination} and lane.queued.items and self.keyring.knows(lane.destination):
                self.outbox.hurry(lane.destination, now=now)
        flusher = Flusher(self.outbox, self.keyring, together=self.database.write, watcher=watcher)

        async def work() -> None:
            try:
                await flusher.flush(timeout=timeout, patience=patience, until=until, only=only)
            finally:
                await self.keyring.close()

        run_stoppable(work())


@contextlib.contextmanager
def open_store(place: Place) -> Generator[Store]:
    """Give the place's store, made if it is not there. Raises `StoreError`."""
    settings = place.settings
    keyring = Keyring(settings)
    for known in _configured():
        keyring.add(known)
    with contextlib.closing(Database(settings.state_dir / STORE_FILE)) as database:
        yield Store(database, SqliteOutbox(database), keyring, settings)


@contextlib.contextmanager
def open_store_if_there(place: Place) -> Generator[Store | None]:
    """Give the place's store, `None` where nothing was ever kept. Raises `StoreError`."""
    if (place.settings.state_dir / STORE_FILE).exists():
        with open_store(place) as store:
            yield store
    else:
        yield None


def check_usable(place: Place, store: Store | None) -> None:
    """Raise as `Place.check_usable` does, with what waits meanwhile."""
    try:
        place.check_usable()
    except ConfigError as error:
        if waiting := Queued(store).items:
            error.add_note(f"{count(waiting)} queued earlier wait")
        raise


def _configured() -> list[Settings]:
    """Return the settings of `config.toml` alone, whose key is the person's whatever the environment says."""
    loaded = load(environ={name: value for name, value in os.environ.items() if not name.startswith("HINDSIGHT_")})
    says_where = "config.toml" in {loaded.sources["api_url"], loaded.sources["api_token"]}
    return [loaded.settings] if says_where else []
