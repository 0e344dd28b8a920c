"""Which project a folder belongs to: its name, the root that bears it, and how that was found out.

Owns the reading of git's own files (`.git`, `commondir`, `gitdir`, `config`) and the form of a project's name. It must
not know settings, banks or tags. It starts no program, reads no environment variable and writes nothing, so that the
answer depends on the folders alone: not on `git` being installed, on who owns a repository, or on a tool's `GIT_*`.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import unicodedata
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Project", "clean_name", "find_project"]

_BOM = b"\xef\xbb\xbf"
_POINTER_BYTES = 8192  # "gitdir: " and a path, which has at most 4096 bytes
_CONFIG_BYTES = 65536  # git writes `core` first
# EILSEQ: macOS takes no name that is not UTF-8.
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EILSEQ})
_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SECTION = re.compile(r"\s*\[([^]]*)\]")
_SETTING = re.compile(r"\s*(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^#;]*))")
_ESCAPE = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Project:
    """The project that a folder belongs to.

    `name` is as `clean_name` gives it, `None` where the project is unresolved. `root` is the folder that bears the name
    (the primary working folder, or the git directory where that knows none, or the folder itself), the same for every
    worktree, and `None` where unresolved. `how` says in one phrase, fit for a log line, how the name was found.
    """

    name: str | None
    root: Path | None
    how: str


def clean_name(text: str) -> str:
    """Return `text` as a project's name: NFC, lower case, trimmed; empty if nothing is left.

    What is no character to show (control characters, line separators, the bytes of a name that is not UTF-8) becomes a
    backslash escape: a name is valid text on one line, and two such names do not become the same one.
    """
    return unicodedata.normalize("NFC", _shown(text.strip()).lower())


def find_project(folder: str | os.PathLike[str] | None = None) -> Project:
    """Return the project of `folder` (`None`: the current one; a relative path starts there). Never raises.

    What cannot be read now (permission, I/O) leaves the project unresolved, so that nothing is filed under a guess.
    """
    try:
        text = os.fspath(Path.cwd() if folder is None else folder)
        return _find(_real(Path(text))) if text.strip() else _unresolved("no folder was named")
    except OSError as error:
        return _unresolved(f"cannot read {error.filename or folder or 'the current folder'}: {error.strerror}")
    except ValueError:
        return _unresolved(f"{folder!r} is not a path")


def _find(folder: Path) -> Project:
    status = _stat(folder)
    if status and not stat.S_ISDIR(status.st_mode):
        folder = folder.parent
    for place in (folder, *folder.parents):
        project = _project_at(place)
        if project:
            above = f"deleted folder: nearest repository above, {project.how}"
            return project if status else replace(project, how=above)
    return _own_name(folder, "no git: folder name" if status else "deleted folder: its own name, no repository above")


def _project_at(place: Path) -> Project | None:
    """Return the project whose repository git would find exactly here, `None` if it would look further up."""
    git_dir = _led_by(place)
    if git_dir:
        common = _common(git_dir)
        if common:
            owner = _owner_elsewhere(place, git_dir, common)
            if owner:
                return _own_name(place, f"folder name: its .git leads to a git directory that is in use at {owner}")
            return _project_of(git_dir, common)
        if _is(stat.S_ISREG, place / ".git"):
            return _own_name(place, "dangling .git file: folder name")
    common = _common(place)  # inside `.git`, a bare repository, or a worktree's own git directory
    return _project_of(place, common) if common else None


def _project_of(git_dir: Path, common: Path) -> Project:
    core = _core_settings(common)
    worktree = _worktree(common, core)
    if _is_module(common):
        bearer = worktree or common
        root = worktree if worktree and _leads(worktree, common) else common
        kind = "submodule"
    else:
        # A git directory inside the project's folder: as `.git`, or where a `.git` file there says, or by custom.
        inside = common.name == ".bare" or _leads(common.parent, common)
        bearer = root = _bearer(common.parent) if inside else common
        kind = "git checkout" if inside else "separate git dir"
        kind = "bare repository" if core.get("bare") == "true" else kind
    name = clean_name(bearer.name)
    name = name.removesuffix(".git") if bearer == common else name
    how = kind if git_dir == common else f"linked worktree of {_shown(str(root))} ({kind})"
    return Project(name, root, how) if name else _unresolved(f"the repository at {root} has no name")


def _own_name(folder: Path, how: str) -> Project:
    folder = _bearer(folder)
    name = clean_name(folder.name)
    return Project(name, folder, _shown(how)) if name else _unresolved(f"the folder {folder} has no name")


def _bearer(folder: Path) -> Path:
    """Return the folder whose name counts: `.git`, also one that is no git directory, never names a project."""
    while folder.name == ".git":
        folder = folder.parent
    return folder


def _unresolved(why: str) -> Project:
    return Project(None, None, f"unresolved: {_shown(why)}")


def _led_by(folder: Path) -> Path | None:
    """Return where `folder/.git` leads: a directory, or what a pointer file names, which need not be there.

    `None` for what git does not look at either: nothing, a broken link, a FIFO or a device.
    """
    dot_git = folder / ".git"
    if _is(stat.S_ISDIR, dot_git):
        return _real(dot_git)
    text = _read(dot_git)
    if text is None or not text.startswith("gitdir:"):
        return None if text is None else dot_git
    return _real(_pointed(folder, text.removeprefix("gitdir:").removeprefix(" ")))


def _common(git_dir: Path) -> Path | None:
    """Return the directory that a git directory shares with its linked worktrees (mostly itself), `None` if it is none.

    Only `HEAD` and the two folders that git asks for are looked at, not what is in them: a damaged repository keeps its
    name. A `commondir` counts only in `COMMON/worktrees/ID`, where git makes it: files that a stranger committed or
    packed cannot borrow the name of another repository.
    """
    if not _stat(git_dir / "HEAD", follow=False):  # may be a link to a branch without a commit
        return None
    common = git_dir
    text = _read(git_dir / "commondir")
    if text is not None:
        common = _real(_pointed(git_dir, text))
        if not _is_same(git_dir.parent, common / "worktrees"):
            return None
    return common if all(_is(stat.S_ISDIR, common / part) for part in ("objects", "refs")) else None


def _owner_elsewhere(place: Path, git_dir: Path, common: Path) -> Path | None:
    """Return the other folder that `git_dir` serves as its working folder, `None` if it serves `place`.

    Git follows any pointer, and mends the way back when a worktree has moved. So do we, unless the way back shows that
    the git directory still serves another folder: then this one is a copy, or a pointer that came in an archive and
    would mix its project with another one's memories. A git directory that knows no folder (bare, separate, or with a
    worktree that is gone) takes any pointer.
    """
    try:
        if git_dir != common:
            text = _read(git_dir / "gitdir")
            owner = _pointed(git_dir, text).parent if text else None
        else:
            owner = _worktree(common, _core_settings(common)) if _is_module(common) else common.parent
        return owner if owner and not _is_same(owner, place) and _leads(owner, git_dir) else None
    except OSError:  # a way back that we may not go says nothing against this folder
        return None


def _is_module(common: Path) -> bool:
    """Whether this git directory is one that a superproject keeps for a submodule."""
    return any(folder.name == "modules" and _common(folder.parent) for folder in common.parents)


def _worktree(common: Path, core: dict[str, str]) -> Path | None:
    return _real(_pointed(common, core["worktree"])) if core.get("worktree") else None


def _core_settings(common: Path) -> dict[str, str]:
    """Return section `core` of a repository's configuration, in the form in which git itself writes it.

    `config.worktree` takes over `bare` and `worktree` when the repository has settings for each worktree.
    """
    found: dict[str, str] = {}
    for file in ("config", "config.worktree"):
        section = ""
        for line in (_read(common / file, _CONFIG_BYTES) or "").split("\n"):
            if header := _SECTION.match(line):
                section = header[1].strip().lower()
            elif section == "core" and (setting := _SETTING.match(line)):
                key, quoted, plain = setting.groups()
                value = plain.strip() if quoted is None else quoted
                found[key.lower()] = _ESCAPE.sub(lambda escape: {"n": "\n", "t": "\t"}.get(escape[1], escape[1]), value)
    return found


def _leads(folder: Path, git_dir: Path) -> bool:
    led = _led_by(folder)
    return led is not None and _is_same(led, git_dir)


def _pointed(base: Path, text: str) -> Path:
    """Return the path in a pointer file, relative to `base`, whatever an editor left behind it."""
    text = text.partition("\x00")[0].rstrip("\r\n")
    exact = base / text
    return exact if _stat(exact) else base / text.strip()


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _read(path: Path, limit: int = _POINTER_BYTES) -> str | None:
    """Return the beginning of a regular file, `None` where there is none; never waits for a FIFO or a device."""
    if not _is(stat.S_ISREG, path):
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # should it have become a FIFO since
    try:
        return os.fsdecode(os.read(descriptor, limit).removeprefix(_BOM))
    finally:
        os.close(descriptor)


def _stat(path: Path, *, follow: bool = True) -> os.stat_result | None:
    """Return what is at `path`, `None` if nothing is; raises the other `OSError`s, which say nothing about that."""
    try:
        return path.stat(follow_symlinks=follow)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise


def _is(kind: Callable[[int], bool], path: Path) -> bool:
    status = _stat(path)
    return status is not None and kind(status.st_mode)


def _is_same(one: Path, other: Path) -> bool:
    # By inode: a case-insensitive file system knows one folder under several spellings.
    first, second = _stat(one), _stat(other)
    return first is not None and second is not None and os.path.samestat(first, second)


def _shown(text: str) -> str:
    return _UNSHOWN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
