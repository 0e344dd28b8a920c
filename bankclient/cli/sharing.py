"""Whether another folder's project has the same name as a place's, and so its memories.

It asks the store alone, so that a command that needs no server loads nothing that could speak to one.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from bankclient.errors import StoreError
from bankclient.store.database import STORE_FILE, Database
from bankclient.store.roots import Roots, same_name

if TYPE_CHECKING:
    from bankclient.cli.place import Place

__all__ = ["name_counts", "name_warning"]


def name_counts(place: Place) -> bool:
    """Return whether the project's name, as the folder gives it, decides where memories are."""
    return place.settings.project is None and place.settings.scoping != "global"


def name_warning(place: Place) -> str | None:
    """Return what to tell of another folder whose project has this one's name, `None` where there is nothing."""
    path = place.settings.state_dir / STORE_FILE
    if not name_counts(place) or not path.exists():
        return None
    try:
        with contextlib.closing(Database(path)) as database:
            others = Roots(database).others(place.scope.project)
    except StoreError as error:
        return str(error)
    return same_name(place.scope.project, others)
