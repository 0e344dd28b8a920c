"""The demo's folders: a git repository with a linked worktree, another repository, and room for a bank.

It makes them with git where there is one, else writes the few files by which a worktree is known. It knows no memory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Playground", "make_playground"]

_GIT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Playground:
    """The folders, and whether git made them."""

    repository: Path
    worktree: Path
    other: Path
    state: Path
    by_git: bool


def make_playground(folder: Path) -> Playground:
    """Make everything in `folder`, which is empty."""
    state = folder / "state"
    names = (folder / "orchard", folder / "orchard-hotfix", folder / "pantry")
    git = shutil.which("git")
    by_git = git is not None and _by_git(git, *names)
    if not by_git:
        _by_hand(*names)
    return Playground(*names, state, by_git)


def _by_git(git: str, repository: Path, worktree: Path, other: Path) -> bool:
    """Return whether git did it all; what a git that does not work left is taken away."""
    # Neither the person's settings, hooks and templates nor a git around this process come into it.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    environment |= {"HOME": str(repository.parent), "XDG_CONFIG_HOME": str(repository.parent)}  # for git before 2.32
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "demo", f"GIT_{role}_EMAIL": "demo@example.invalid"}
    commands = (
        ("init", "--quiet", "--template=", str(repository)),
        ("-C", str(repository), "commit", "--quiet", "--allow-empty", "--message=first"),
        ("-C", str(repository), "worktree", "add", "-b", "hotfix", str(worktree)),
        ("init", "--quiet", "--template=", str(other)),
    )
    try:
        for command in commands:
            subprocess.run(  # noqa: S603 - the git that a shell would find
                [git, *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_GIT_SECONDS,
                check=True,
            )
    except (OSError, subprocess.SubprocessError):
        for made in (repository, worktree, other):
            shutil.rmtree(made, ignore_errors=True)
        return False
    return True


def _by_hand(repository: Path, worktree: Path, other: Path) -> None:
    for folder in (repository, other):
        for part in ("objects", "refs"):
            (folder / ".git" / part).mkdir(parents=True)
        (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    linked = repository / ".git" / "worktrees" / worktree.name
    linked.mkdir(parents=True)
    worktree.mkdir()
    (linked / "HEAD").write_text("ref: refs/heads/hotfix\n")
    (linked / "commondir").write_text("../..\n")
    (linked / "gitdir").write_text(f"{worktree / '.git'}\n")
    (worktree / ".git").write_text(f"gitdir: {linked}\n")
