"""Which folders bear a project's name: two repositories of one name share their memories, and a person should know.

It owns one small table. What a root is, and what its project is called, it is told.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

    from bankclient.project import Project
    from bankclient.store.database import Database

__all__ = ["Roots", "same_name"]


class Roots:
    """The roots that were seen behind each project's name. All methods raise `StoreError` where the disk fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, project: Project, *, now: float) -> tuple[Path, ...]:
        """Remember the project's root; return the others of its name where this one is new, to be told once."""
        if project.name is None or project.root is None:
            return ()
        with self._database.write() as connection:
            others = _others(connection, project.name, project.root)
            fresh = connection.execute(
                "INSERT INTO roots (name, root, seen) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (project.name, os.fsencode(project.root), now),
            ).rowcount
        return others if fresh else ()

    def others(self, project: Project) -> tuple[Path, ...]:
        """Return the other roots of the project's name that are still there."""
        if project.name is None or project.root is None:
            return ()
        with self._database.read() as connection:
            return _others(connection, project.name, project.root)


def same_name(project: Project, others: tuple[Path, ...]) -> str | None:
    """Return the warning that a person should get, and how to keep the projects apart; `None` where there is none."""
    if not others:
        return None
    return (
        f"{others[0]} is project {project.name} too, so both share their memories; to keep them apart write into"
        f' config.toml: [[project]] path = "{project.root}" name = "another-name"'
    )


def _others(connection: sqlite3.Connection, name: str, root: Path) -> tuple[Path, ...]:
    rows = connection.execute("SELECT root FROM roots WHERE name = ? ORDER BY seen", (name,))
    found = (Path(os.fsdecode(row["root"])) for row in rows)
    return tuple(other for other in found if other != root and other.is_dir())
