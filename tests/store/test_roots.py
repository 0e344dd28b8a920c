"""Which folders bear a project's name: a second one is told of once, and a folder that is gone does not count."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bankclient.project import Project
from bankclient.store.database import Database
from bankclient.store.roots import Roots, same_name

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[Roots]:
    """Give the roots of a store of its own."""
    database = Database(tmp_path / "state" / "store.sqlite3")
    yield Roots(database)
    database.close()


def project(root: Path, name: str | None = "api") -> Project:
    """Return a project whose root is there."""
    root.mkdir(parents=True, exist_ok=True)
    return Project(name, root, "git checkout")


def test_the_first_folder_of_a_name_has_no_others(roots: Roots, tmp_path: Path) -> None:
    """Seen once or often."""
    mine = project(tmp_path / "work" / "api")
    assert [roots.note(mine, now=1.0), roots.note(mine, now=2.0), roots.others(mine)] == [(), (), ()]


def test_a_second_folder_is_told_of_once(roots: Roots, tmp_path: Path) -> None:
    """And can be asked about from then on, from either side."""
    one, two = project(tmp_path / "work" / "api"), project(tmp_path / "oss" / "api")
    roots.note(one, now=1.0)
    assert roots.note(two, now=2.0) == (one.root,)
    assert roots.note(two, now=3.0) == ()
    assert (roots.others(one), roots.others(two)) == ((two.root,), (one.root,))


def test_another_name_is_another_matter(roots: Roots, tmp_path: Path) -> None:
    """Only folders of one name share memories."""
    roots.note(project(tmp_path / "work" / "api"), now=1.0)
    assert roots.note(project(tmp_path / "work" / "web", "web"), now=2.0) == ()


def test_a_folder_that_is_gone_does_not_count(roots: Roots, tmp_path: Path) -> None:
    """A repository that was moved is one repository."""
    old = project(tmp_path / "old" / "api")
    roots.note(old, now=1.0)
    (tmp_path / "old" / "api").rmdir()
    assert roots.note(project(tmp_path / "new" / "api"), now=2.0) == ()


def test_an_unresolved_project_is_not_remembered(roots: Roots) -> None:
    """It has neither name nor root."""
    assert roots.note(Project(None, None, "unresolved"), now=1.0) == ()
    assert roots.others(Project(None, None, "unresolved")) == ()


def test_a_folder_whose_name_is_no_text_is_remembered(roots: Roots, tmp_path: Path) -> None:
    """Paths are bytes."""
    odd = project(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")) / "api")
    roots.note(odd, now=1.0)
    assert roots.note(project(tmp_path / "api"), now=2.0) == (odd.root,)


def test_the_warning_names_both_and_the_mend(tmp_path: Path) -> None:
    """A person can copy the rule."""
    mine = project(tmp_path / "oss" / "api")
    told = same_name(mine, (Path("/home/ann/api"),))
    assert told is not None
    assert all(part in told for part in ("/home/ann/api", str(mine.root), "[[project]]", "name"))
    assert same_name(mine, ()) is None
