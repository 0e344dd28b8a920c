"""Projects are found by reading git's own files; the layouts here are made by git itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bankclient.project import Project, clean_name, find_project

if TYPE_CHECKING:
    from collections.abc import Callable

IDENTITY = {
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_AUTHOR_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_NAME": "A",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *arguments: str, **environment: str) -> str:
    """Run git in `folder` with a configuration of its own, and return what it printed."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **IDENTITY, **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.removesuffix("\n")


def checkout(folder: Path) -> Path:
    """Make a repository with one commit at `folder`."""
    git(folder, "init")
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file.txt").write_text("text")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "first")
    return folder


def worktree(repository: Path, folder: Path) -> Path:
    """Make a linked worktree of `repository` at `folder`."""
    git(repository, "worktree", "add", "-b", f"branch-of-{folder.name}", str(folder))
    return folder


def submodule(superproject: Path, path: str, *options: str) -> Path:
    """Add a repository as a submodule at `path`, and commit that."""
    source = superproject.parent / "sources" / "upstream"
    if not source.exists():
        checkout(source)
    git(superproject, "submodule", "add", *options, str(source), path)
    git(superproject, "commit", "-m", "a submodule")
    return superproject / path


class Row(NamedTuple):
    """A folder that git accepts, and the project it belongs to."""

    folder: Path
    name: str
    root: Path
    how: str


def ordinary(tmp: Path) -> list[Row]:
    """Lay out a checkout with worktrees beside it and inside it."""
    main = checkout(tmp / "code" / "General")
    beside, inside = worktree(main, tmp / "wt"), worktree(main, main / ".claude" / "worktrees" / "x")
    folders = [main, main / "a", main / "a" / "b"]
    linked = [beside, beside / "a" / "b", inside, inside / "a", main / ".git" / "worktrees" / "x"]
    return [
        *(Row(folder, "general", main, "git checkout") for folder in folders),
        Row(main / ".git", "general", main, "git checkout"),
        Row(main / ".git" / "hooks", "general", main, "git checkout"),
        *(Row(folder, "general", main, f"linked worktree of {main} (git checkout)") for folder in linked),
    ]


def checkout_with_suffix(tmp: Path) -> list[Row]:
    """Lay out a checkout whose folder is called like a bare repository."""
    main = checkout(tmp / "Odd.git")
    return [Row(main / "a", "odd.git", main, "git checkout"), Row(main / ".git", "odd.git", main, "git checkout")]


def submodules(tmp: Path) -> list[Row]:
    """Lay out a submodule, one inside it, and a worktree of it."""
    main = checkout(tmp / "main")
    lib = submodule(main, "vendor/lib")
    inner = submodule(lib, "deps/Inner")
    linked = worktree(lib, tmp / "lib-fix")
    return [
        Row(main, "main", main, "git checkout"),
        Row(lib, "lib", lib, "submodule"),
        Row(lib / "a" / "b", "lib", lib, "submodule"),
        Row(main / ".git" / "modules" / "vendor" / "lib", "lib", lib, "submodule"),
        Row(linked, "lib", lib, f"linked worktree of {lib} (submodule)"),
        Row(inner, "inner", inner, "submodule"),
        Row(main / "vendor", "main", main, "git checkout"),
    ]


def odd_submodules(tmp: Path) -> list[Row]:
    """Lay out submodules under another name than their path, with letters that git quotes, and with own settings."""
    main = checkout(tmp / "main")
    moved = submodule(main, "vendor/first")
    git(main, "mv", "vendor/first", "vendor/second")
    moved = main / "vendor" / "second"
    quoted = submodule(main, 'vendor/li;b "q" \\ é', "--name", "we/ird")
    modules = submodule(main, "modules")
    git(quoted, "config", "other.worktree", "elsewhere")
    git(moved, "config", "extensions.worktreeConfig", "true")
    git(moved, "config", "--worktree", "core.worktree", git(moved, "config", "core.worktree"))
    git(moved, "config", "--file", git(moved, "rev-parse", "--git-dir") + "/config", "--unset", "core.worktree")
    return [
        Row(moved, "second", moved, "submodule"),
        Row(worktree(moved, tmp / "wt"), "second", moved, f"linked worktree of {moved} (submodule)"),
        Row(quoted, 'li;b "q" \\ é', quoted, "submodule"),
        Row(modules, "modules", modules, "submodule"),
    ]


def submodule_of_worktree(tmp: Path) -> list[Row]:
    """Lay out the submodule of a linked worktree, which has a git directory of its own."""
    main = checkout(tmp / "main")
    submodule(main, "vendor/lib")
    linked = worktree(main, tmp / "wt")
    git(linked, "submodule", "update", "--init")
    lib = linked / "vendor" / "lib"
    return [Row(lib, "lib", lib, "submodule")]


def submodule_gone(tmp: Path) -> list[Row]:
    """Lay out a worktree of a submodule that its superproject has put away."""
    main = checkout(tmp / "main")
    linked = worktree(submodule(main, "vendor/lib"), tmp / "wt")
    git(main, "submodule", "deinit", "-f", "vendor/lib")
    kept = main / ".git" / "modules" / "vendor" / "lib"
    return [
        Row(linked, "lib", kept, f"linked worktree of {kept} (submodule)"),
        Row(main / "vendor" / "lib", "main", main, "git checkout"),
    ]


def old_submodule(tmp: Path) -> list[Row]:
    """Lay out a submodule of the old kind: a repository with its own `.git` folder inside another."""
    main = checkout(tmp / "main")
    lib = checkout(main / "vendor" / "lib")
    return [Row(lib / "a", "lib", lib, "git checkout"), Row(lib.parent, "main", main, "git checkout")]


def bare(tmp: Path) -> list[Row]:
    """Lay out a bare repository, in a folder that is called as one for submodules, with a worktree."""
    source = checkout(tmp / "source")
    git(tmp, "clone", "--bare", str(source), "modules/Proj.git")
    proj = tmp / "modules" / "Proj.git"
    linked = worktree(proj, tmp / "elsewhere" / "wt")
    how = f"linked worktree of {proj} (bare repository)"
    return [
        Row(proj, "proj", proj, "bare repository"),
        Row(proj / "refs" / "heads", "proj", proj, "bare repository"),
        Row(linked, "proj", proj, how),
        Row(linked / "a" / "b", "proj", proj, how),
        Row(proj / "worktrees" / "wt", "proj", proj, how),
    ]


def bare_around_worktrees(tmp: Path) -> list[Row]:
    """Lay out worktrees inside the folder that is the bare repository itself."""
    git(tmp, "clone", "--bare", str(checkout(tmp / "source")), "layout")
    layout = tmp / "layout"
    return [Row(worktree(layout, layout / "wt"), "layout", layout, f"linked worktree of {layout} (bare repository)")]


def hidden_bare(tmp: Path, name: str = ".bare") -> list[Row]:
    """Lay out a bare repository inside the project's folder, led to by a pointer file, with worktrees beside it."""
    layout = tmp / "layout"
    layout.mkdir()
    git(layout, "clone", "--bare", str(checkout(tmp / "source")), name)
    (layout / ".git").write_text(f"gitdir: ./{name}\n")
    linked, outside = worktree(layout, layout / "topic"), worktree(layout, tmp / "outside")
    how = f"linked worktree of {layout} (bare repository)"
    return [
        Row(layout, "layout", layout, "bare repository"),
        Row(layout / name, "layout", layout, "bare repository"),
        Row(linked, "layout", layout, how),
        Row(linked / "a" / "b", "layout", layout, how),
        Row(outside, "layout", layout, how),
    ]


def bare_of_any_name(tmp: Path) -> list[Row]:
    """Lay out the same with a git directory that has a name like any bare repository's."""
    return hidden_bare(tmp, "store.git")


def hidden_bare_without_pointer(tmp: Path) -> list[Row]:
    """Lay out worktrees beside `.bare`, whose name says nothing, without a pointer file."""
    rows = hidden_bare(tmp)
    (tmp / "layout" / ".git").unlink()
    return [row for row in rows if row.folder != tmp / "layout"]


def bare_at_dot_git(tmp: Path) -> list[Row]:
    """Lay out a bare repository that is called `.git`, with worktrees beside it."""
    layout = tmp / "layout"
    layout.mkdir()
    git(layout, "clone", "--bare", str(checkout(tmp / "source")), ".git")
    linked = worktree(layout / ".git", layout / "topic")
    return [
        Row(layout, "layout", layout, "bare repository"),
        Row(linked, "layout", layout, f"linked worktree of {layout} (bare repository)"),
    ]


def separate(tmp: Path) -> list[Row]:
    """Lay out a git directory that does not know its working folder."""
    store = tmp / "gitdirs" / "X.git"
    store.parent.mkdir()
    git(tmp, "clone", f"--separate-git-dir={store}", str(checkout(tmp / "source")), "main")
    linked = worktree(tmp / "main", tmp / "wt")
    return [
        Row(tmp / "main", "x", store, "separate git dir"),
        Row(tmp / "main" / "a", "x", store, "separate git dir"),
        Row(store, "x", store, "separate git dir"),
        Row(linked, "x", store, f"linked worktree of {store} (separate git dir)"),
    ]


def linked_dot_git(tmp: Path) -> list[Row]:
    """Lay out a checkout whose `.git` is a symbolic link."""
    main = checkout(tmp / "main")
    store = tmp / "store.git"
    (main / ".git").rename(store)
    (main / ".git").symlink_to(store)
    return [
        Row(main / "a", "store", store, "separate git dir"),
        Row(worktree(main, tmp / "wt"), "store", store, f"linked worktree of {store} (separate git dir)"),
    ]


def moved_worktree(tmp: Path) -> list[Row]:
    """Lay out a worktree that was moved without telling git, which accepts it all the same."""
    main = checkout(tmp / "main")
    moved = worktree(main, tmp / "wt").rename(tmp / "moved")
    return [Row(moved / "a", "main", main, f"linked worktree of {main} (git checkout)")]


def moved_worktree_and_successor(tmp: Path) -> list[Row]:
    """Lay out the same where another repository's worktree took the place it left."""
    rows = moved_worktree(tmp)
    other = checkout(tmp / "other")
    return [*rows, Row(worktree(other, tmp / "wt"), "other", other, f"linked worktree of {other} (git checkout)")]


def moved_main(tmp: Path) -> list[Row]:
    """Lay out a checkout that was renamed, and a worktree that was repaired after it."""
    linked = worktree(checkout(tmp / "before"), tmp / "wt")
    main = (tmp / "before").rename(tmp / "After")
    git(main, "worktree", "repair", str(linked))
    return [Row(linked, "after", main, f"linked worktree of {main} (git checkout)")]


def no_dot_git_of_note(tmp: Path) -> list[Row]:
    """Lay out things called `.git` inside a checkout that git passes over."""
    main = checkout(tmp / "main")
    (main / "empty" / ".git").mkdir(parents=True)
    (main / "headless" / ".git" / "objects").mkdir(parents=True)
    (main / "headless" / ".git" / "refs").mkdir()
    for name in ("fifo", "broken", "loop"):
        (main / name).mkdir()
    os.mkfifo(main / "fifo" / ".git")
    (main / "broken" / ".git").symlink_to("nowhere")
    (main / "loop" / ".git").symlink_to(".git")
    names = ("empty", "empty/.git", "headless", "fifo", "broken", "loop")
    return [Row(main / name, "main", main, "git checkout") for name in names]


LAYOUTS: list[Callable[[Path], list[Row]]] = [
    ordinary,
    checkout_with_suffix,
    submodules,
    odd_submodules,
    submodule_of_worktree,
    submodule_gone,
    old_submodule,
    bare,
    bare_around_worktrees,
    hidden_bare,
    bare_of_any_name,
    hidden_bare_without_pointer,
    bare_at_dot_git,
    separate,
    linked_dot_git,
    moved_worktree,
    moved_worktree_and_successor,
    moved_main,
    no_dot_git_of_note,
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_each_layout_that_git_knows_has_one_name(tmp_path: Path, layout: Callable[[Path], list[Row]]) -> None:
    """Every folder of a repository, however laid out, gets the name, root and explanation of that repository."""
    rows = layout(tmp_path)
    for folder, *_ in rows:
        git(folder, "rev-parse", "--git-common-dir")  # raises where git itself sees no repository
    assert [Row(row.folder, *_fields(find_project(row.folder))) for row in rows] == rows


def _fields(project: Project) -> tuple[str, Path, str]:
    assert project.name is not None
    assert project.root is not None
    return project.name, project.root, project.how


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"", b""), (b"", b"\n"), (b"", b"\r\n"), (b"", b"  \n"), (b"", b" \r\n"), (b"\xef\xbb\xbf", b"\r\n")],
)
def test_relative_pointers_count_from_their_own_file(tmp_path: Path, before: bytes, after: bytes) -> None:
    """Pointers as newer versions of git write them, and as editors leave them, lead where git meant them to."""
    main = checkout(tmp_path / "main")
    linked, admin = worktree(main, tmp_path / "deep" / "wt"), main / ".git" / "worktrees" / "wt"
    (linked / ".git").write_bytes(before + b"gitdir: ../../main/.git/worktrees/wt" + after)
    (admin / "gitdir").write_bytes(before + b"../../../../deep/wt/.git" + after)
    (admin / "commondir").write_bytes(before + b"../.." + after)
    assert find_project(linked / "a" / "b").root == main


def test_a_path_that_ends_in_a_space_is_that_path(tmp_path: Path) -> None:
    """Blanks at the end of a pointer belong to it where such a folder exists."""
    git(tmp_path, "init", "--separate-git-dir=store ", "main")
    assert find_project(tmp_path / "main").root == tmp_path / "store "
    (tmp_path / "main" / ".git").write_bytes(b"gitdir: ../store \r\n")
    assert find_project(tmp_path / "main").root == tmp_path / "store "


def test_relative_folders_count_from_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`.`, `..`, a relative path and nothing at all mean the current folder; `~` is a name like any other."""
    main = checkout(tmp_path / "main")
    monkeypatch.chdir(main / "a")
    found = {find_project(folder) for folder in (None, ".", "..", "b", "../a/b", "~")}
    assert {(project.name, project.root) for project in found} == {("main", main)}


def test_symbolic_links_are_resolved_first(tmp_path: Path) -> None:
    """A link into a repository belongs to that repository, not to the folder where the link lies."""
    checkout(tmp_path / "outer")
    main = checkout(tmp_path / "main")
    (tmp_path / "outer" / "shortcut").symlink_to(main / "a")
    assert find_project(tmp_path / "outer" / "shortcut").root == main


def test_a_file_stands_for_its_folder(tmp_path: Path) -> None:
    """A path that is a file means the folder it lies in, with git and without."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "file").touch()
    main = checkout(tmp_path / "main")
    assert find_project(main / "a" / "b" / "file.txt").root == main
    assert find_project(tmp_path / "plain" / "file") == Project("plain", tmp_path / "plain", "no git: folder name")


def test_home_may_be_a_repository(tmp_path: Path) -> None:
    """Whatever lies below a home folder under version control belongs to it, unless it is a repository itself."""
    home = checkout(tmp_path / "Home")
    own = checkout(home / "code" / "own")
    (home / "code" / "scratch").mkdir()
    assert find_project(home / "code" / "scratch").root == home
    assert find_project(own).root == own


def test_the_variables_of_an_outer_git_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Location variables, as git sets them for its hooks, do not move the answer to another repository."""
    main, other = checkout(tmp_path / "main"), checkout(tmp_path / "other")
    expected = find_project(main / "a")
    for name, value in {
        "GIT_DIR": other / ".git",
        "GIT_WORK_TREE": other,
        "GIT_COMMON_DIR": other / ".git",
        "GIT_INDEX_FILE": other / ".git" / "index",
        "GIT_OBJECT_DIRECTORY": tmp_path / "nowhere",
        "GIT_CEILING_DIRECTORIES": main,
        "GIT_PREFIX": "a/",
    }.items():
        monkeypatch.setenv(name, str(value))
    assert find_project(main / "a") == expected == Project("main", main, "git checkout")


def test_gits_mood_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No git, a git that would hang, a foreign owner and a repository made around it later: the answer stays."""
    main = checkout(tmp_path / "above" / "main")
    linked = worktree(main, tmp_path / "above" / "wt")
    expected = [find_project(main / "a"), find_project(linked)]

    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(subprocess.CalledProcessError):
        git(main, "status", GIT_TEST_ASSUME_DIFFERENT_OWNER="1")
    assert [find_project(main / "a"), find_project(linked)] == expected

    git(tmp_path / "above", "init")
    traps = tmp_path / "traps"
    traps.mkdir()
    (traps / "git").write_text(f"#!/bin/sh\ntouch {traps}/called\nsleep 30\n")
    (traps / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(traps))
    assert [find_project(main / "a"), find_project(linked)] == expected
    assert not (traps / "called").exists()


def test_finding_costs_a_few_small_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From thirty folders deep in a linked worktree a handful of files is opened, and little read of a huge one."""
    linked = worktree(checkout(tmp_path / "main"), tmp_path / "wt")
    deep = linked.joinpath(*"abcdefghijklmnopqrstuvwxyzabcd")
    deep.mkdir(parents=True)
    sizes: list[int] = []
    real_read = os.read

    def read(descriptor: int, size: int) -> bytes:
        sizes.append(size)
        return real_read(descriptor, size)

    monkeypatch.setattr(os, "read", read)
    assert find_project(deep).name == "main"
    assert 0 < len(sizes) <= 8

    (tmp_path / "huge").mkdir()
    with (tmp_path / "huge" / ".git").open("wb") as file:
        file.truncate(1 << 40)
    assert find_project(tmp_path / "huge").how == "dangling .git file: folder name"
    assert max(sizes) <= 65536


# --- what is gone, broken or forged


def test_a_deleted_folder_is_the_nearest_repositorys(tmp_path: Path) -> None:
    """Inside a repository a deleted folder, however deep, is that repository's; elsewhere it keeps its own name."""
    main = checkout(tmp_path / "main")
    above = "deleted folder: nearest repository above, git checkout"
    assert find_project(main / "gone" / "deeper") == Project("main", main, above)
    assert find_project(main / "a" / "b" / "file.txt" / "below") == Project("main", main, above)
    gone = tmp_path / "gone" / "Task"
    assert find_project(gone) == Project("task", gone, "deleted folder: its own name, no repository above")


def test_a_deleted_worktree_inside_its_checkout_stays_the_checkouts(tmp_path: Path) -> None:
    """An agent whose worktree was removed under it goes on under the name it had."""
    main = checkout(tmp_path / "main")
    inside = worktree(main, main / ".claude" / "worktrees" / "x")
    shutil.rmtree(inside)
    assert find_project(inside).root == main


def test_the_current_folder_may_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a path for it, a deleted current folder is unresolved, whether named as nothing or as a dot."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert {find_project(folder).name for folder in (None, ".", "a")} == {None}
    assert find_project(None).how == "unresolved: cannot read the current folder: No such file or directory"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"gitdir: ",
        b"gitdir: ../nowhere\n",
        b"gitdir: /\n",
        b"gitdir: .git\n",
        b"gitdir: ../main\n",
        b"gitdir: ../main/.git/worktrees/pruned\n",
        b"gitdir: ../main/.git/worktrees/pruned\x00/wt\n",
        b"gitdir: " + b"x" * 5000,
        b"gitdir: " + b"../" * 5000,
        b"something else",
        b"\x00\xff\xfe",
        b"ref: refs/heads/main\n",
    ],
)
def test_a_dangling_pointer_names_its_own_folder(tmp_path: Path, content: bytes) -> None:
    """A `.git` file that leads to no git directory makes its folder a project, also for the folders in it."""
    outer = checkout(tmp_path / "main")
    lost = outer.parent / "Lost"
    (lost / "deep").mkdir(parents=True)
    (lost / ".git").write_bytes(content)
    expected = Project("lost", lost, "dangling .git file: folder name")
    assert [find_project(folder) for folder in (lost, lost / "deep", lost / "gone")] == [
        expected,
        expected,
        Project("lost", lost, f"deleted folder: nearest repository above, {expected.how}"),
    ]


def test_a_pruned_worktree_is_its_own_folder(tmp_path: Path) -> None:
    """A worktree whose administrative folder was pruned, or whose checkout moved away, is known by its own name."""
    pruned = worktree(checkout(tmp_path / "main"), tmp_path / "pruned")
    orphan = worktree(checkout(tmp_path / "before"), tmp_path / "orphan")
    shutil.rmtree(tmp_path / "main" / ".git" / "worktrees" / "pruned")
    (tmp_path / "before").rename(tmp_path / "after")
    assert find_project(pruned) == Project("pruned", pruned, "dangling .git file: folder name")
    assert find_project(orphan) == Project("orphan", orphan, "dangling .git file: folder name")


def test_a_damaged_repository_keeps_its_name(tmp_path: Path) -> None:
    """A `HEAD` that a crash left empty, or a link to nothing, does not move a project into the repository around it."""
    inner = checkout(checkout(tmp_path / "outer") / "inner")
    head = inner / ".git" / "HEAD"
    head.write_bytes(b"")
    assert find_project(inner).root == inner
    head.unlink()
    head.symlink_to("refs/heads/not-born-yet")
    assert find_project(inner).root == inner


def test_a_copied_worktree_is_not_taken_for_the_original(tmp_path: Path) -> None:
    """While the true worktree is in place, a copy of it elsewhere does not share its project's memory."""
    linked = worktree(checkout(tmp_path / "main"), tmp_path / "wt")
    shutil.copytree(linked, tmp_path / "copy")
    where = f"folder name: its .git leads to a git directory that is in use at {linked}"
    assert find_project(tmp_path / "copy" / "a") == Project("copy", tmp_path / "copy", where)
    assert find_project(linked).name == "main"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Make somebody's repository with a worktree and a submodule, beside which foreign folders are unpacked."""
    main = checkout(tmp_path / "secret")
    worktree(main, tmp_path / "secret-wt")
    submodule(main, "vendor/lib")
    return main


@pytest.mark.parametrize(
    "target", ["../secret/.git", "../secret/.git/worktrees/secret-wt", "../secret/.git/modules/vendor/lib"]
)
@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_forged_pointer_does_not_reach_another_projects_memory(
    tmp_path: Path, secret: Path, target: str, kind: str
) -> None:
    """An unpacked `.git` that leads to a git directory in use elsewhere gives its folder's own name."""
    forged = tmp_path / "forged"
    forged.mkdir()
    if kind == "file":
        (forged / ".git").write_text(f"gitdir: {target}\n")
    else:
        (forged / ".git").symlink_to(target)
    git(forged, "rev-parse", "--git-dir")  # git itself follows it
    found = find_project(forged)
    assert (found.name, found.root) == ("forged", forged)
    assert find_project(secret).name == "secret"


def test_committed_files_do_not_borrow_another_repositorys_name(tmp_path: Path, secret: Path) -> None:
    """A folder of a clone that poses as a worktree's git directory is just a folder of that clone."""
    clone = checkout(tmp_path / "clone")
    (clone / "evil").mkdir()
    (clone / "evil" / "HEAD").write_text("ref: refs/heads/main\n")
    (clone / "evil" / "commondir").write_text("../../secret/.git\n")
    assert Path(git(clone / "evil", "rev-parse", "--git-common-dir")).resolve() == secret / ".git"  # git falls for it
    assert find_project(clone / "evil").root == clone


def test_a_foreign_configuration_lends_no_root(tmp_path: Path, secret: Path) -> None:
    """A made-up submodule may call itself what it likes, but its root stays its own, so that the clash is seen."""
    made_up = checkout(tmp_path / "clone") / ".git" / "modules" / "x"
    shutil.copytree(secret / ".git", made_up)
    git(tmp_path, "config", "--file", str(made_up / "config"), "core.worktree", str(secret))
    assert find_project(made_up).root == made_up


def test_a_way_back_that_may_not_be_gone_is_no_objection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worktree whose recorded place lies in a folder closed to us (a container, another account) works as for git."""
    main = checkout(tmp_path / "main")
    worktree(main, tmp_path / "closed" / "wt").rename(tmp_path / "wt")
    _forbid(monkeypatch, tmp_path / "closed")
    assert find_project(tmp_path / "wt").root == main


def _forbid(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Refuse to look at `folder` or into it, as the system does to those without permission."""
    look = Path.stat

    def guarded(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if self.is_relative_to(folder):
            raise PermissionError(13, "Permission denied", str(self))
        return look(self, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", guarded)


@pytest.mark.parametrize("closed", [".", "a", ".git", ".git/HEAD", ".git/objects"])
def test_what_cannot_be_read_is_unresolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str) -> None:
    """Without permission for the folder, or for the git files that decide, nothing is guessed."""
    main = checkout(tmp_path / "main")
    _forbid(monkeypatch, main / closed)
    found = find_project(main / "a")
    assert (found.name, found.root) == (None, None)
    assert found.how.startswith(f"unresolved: cannot read {main}")
    assert found.how.endswith("Permission denied")


def test_a_worktree_of_an_unreadable_repository_is_unresolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository that is closed for now (a sandbox, a privacy prompt) does not make its worktree a project."""
    linked = worktree(checkout(tmp_path / "main"), tmp_path / "wt")
    _forbid(monkeypatch, tmp_path / "main")
    assert find_project(linked).name is None


@pytest.mark.parametrize("folder", ["/", "", " ", "\t\n", "/a\x00b", "/a\ud83d"])
def test_what_has_no_name_is_unresolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """The root folder, nothing, and what cannot be a path give no name, and say so in printable words."""
    monkeypatch.chdir(checkout(tmp_path / "main"))
    found = find_project(folder)
    assert (found.name, found.root) == (None, None)
    assert found.how.startswith("unresolved: ")
    assert found.how.isprintable()


def test_a_loop_of_links_is_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A path through a loop of symbolic links belongs to the repository around it."""
    main = checkout(tmp_path / "main")
    (main / "loop").symlink_to("loop")
    assert find_project(main / "loop").root == main
    assert find_project(main / "loop" / "below").root == main


# --- names


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_are_readable_text(tmp_path: Path, form: Literal["NFC", "NFD"]) -> None:
    """A name with accents and blanks is the same readable text however the file system spells it."""
    folder = tmp_path / unicodedata.normalize(form, "Projekt-Ż é")
    assert find_project(checkout(folder)).name == unicodedata.normalize("NFC", "projekt-ż é")


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"caf\xe9", "caf\\udce9"),
        (b"two\nlines", "two\\nlines"),
        (b"\x1b[31mred", "\\x1b[31mred"),
        (b" spaced ", "spaced"),
        (b"a\xe2\x80\xa8b", "a\\u2028b"),
        ("👩‍👩‍👧".encode(), "👩‍👩‍👧"),
        (b"a.git", "a.git"),
        (b"%2f", "%2f"),
        (b"General", "general"),
    ],
)
def test_odd_folder_names_become_text_on_one_line(tmp_path: Path, raw: bytes, name: str) -> None:
    """Bytes that are not UTF-8 and control characters are escaped; everything else is kept."""
    found = find_project(tmp_path / os.fsdecode(raw))
    assert found.name == name
    found.name.encode()


@pytest.mark.parametrize("folder", ["made/.git", "made/.git/.git"])
def test_a_folder_called_dot_git_never_names_a_project(tmp_path: Path, folder: str) -> None:
    """A git directory that is none leaves the name to the folder it lies in, and so does a repository made in one."""
    (tmp_path / "made" / ".git").mkdir(parents=True)
    assert find_project(tmp_path / folder).name == "made"
    git(tmp_path / "made" / ".git", "init")
    assert find_project(tmp_path / folder).root == tmp_path / "made"


@pytest.mark.parametrize("text", ["", " ", "\n", "\u2003"])
def test_a_blank_name_is_empty(text: str) -> None:
    """What is only blanks cleans to nothing."""
    assert clean_name(text) == ""


@given(st.text())
@example("İSTANBUL")
@example("ΟΔΟΣ")
@example("\ud83d \udc8f")
def test_a_clean_name_is_stable(text: str) -> None:
    """Cleaning twice changes nothing; spelling and case do not matter; the result is one line of valid text."""
    name = clean_name(text)
    assert clean_name(name) == name
    assert clean_name(unicodedata.normalize("NFD", text)) == name
    assert name == name.strip()
    assert unicodedata.is_normalized("NFC", name)
    assert len(name.encode().splitlines()) <= 1
    assert not any(unicodedata.category(letter) in {"Cc", "Cs"} for letter in name)


# --- foreign files

PIECES = st.sampled_from(
    [b"gitdir: ", b"..", b"/", b".git", b"secret", b"foreign", b"worktrees", b"secret-wt", b"x", b"\n", b"\r", b" "]
)
FOREIGN = st.one_of(
    st.none(),
    st.binary(max_size=300),
    st.lists(PIECES, max_size=12).map(b"".join),
    st.sampled_from(
        [
            b"../secret/.git",
            b"../../secret/.git",
            b"gitdir: ../secret/.git",
            b"gitdir: .real",
            b"gitdir: ../secret/.git/worktrees/secret-wt",
            b"[core]\n\tworktree = ../../secret\n",
            b'[core]\n\tworktree = "../secret\\',
        ]
    ),
)


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository and a folder for foreign files beside it, once for all examples."""
    base = tmp_path_factory.mktemp("neighbours")
    worktree(checkout(base / "secret"), base / "secret-wt")
    return base


@given(dot_git=FOREIGN, files=st.fixed_dictionaries(dict.fromkeys(("HEAD", "commondir", "gitdir", "config"), FOREIGN)))
@example(
    dot_git=b"gitdir: .real", files={"HEAD": b"x", "commondir": b"../../secret/.git", "gitdir": b"", "config": b""}
)
def test_foreign_git_files_never_break_or_borrow(
    neighbours: Path, dot_git: bytes | None, files: dict[str, bytes | None]
) -> None:
    """Whatever stands in the git files of a foreign folder: an answer, from that folder, never the neighbour's."""
    foreign = neighbours / "foreign"
    shutil.rmtree(foreign, ignore_errors=True)
    real = foreign / ".real"
    for folder in (real / "objects", real / "refs", real / "worktrees" / "x"):
        folder.mkdir(parents=True)
    for folder in (real, real / "worktrees" / "x"):
        for name, content in files.items():
            if content is not None:
                (folder / name).write_bytes(content)
    if dot_git is not None:
        (foreign / ".git").write_bytes(dot_git)
    for folder in (foreign, real, real / "worktrees" / "x", foreign / "gone"):
        found = find_project(folder)
        assert found.name in {"foreign", ".real", "refs", "objects", "x", "worktrees", "gone"}
        assert found.root is not None
        assert found.root.is_relative_to(foreign)
    assert find_project(neighbours / "secret-wt").root == neighbours / "secret"
