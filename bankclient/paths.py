"""Where our files lie, and how they are made so that nobody else can read or plant them.

This module owns folders, permissions, atomic writes and the socket's path. It knows no setting beyond the folder
variables of the platform, and nothing of what the files hold.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from bankclient.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "SOCKET_PATH_LIMIT",
    "config_file",
    "default_state_dir",
    "expand_home",
    "open_private",
    "private_folder",
    "socket_path",
    "write_private",
]

SOCKET_PATH_LIMIT = 103 if sys.platform == "darwin" else 107
"""The longest path, in bytes, that this system binds a Unix socket to (the kernel's field less its closing NUL)."""

_APP = "bankclient"
_SHORT_ROOT = Path("/tmp")  # noqa: S108 - short and the same for every process; ours in it is a checked 0700 folder
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
if sys.platform == "darwin":
    _CONFIG_BELOW_HOME = _STATE_BELOW_HOME = Path("Library/Application Support")
else:
    _CONFIG_BELOW_HOME, _STATE_BELOW_HOME = Path(".config"), Path(".local/state")


def config_file(environ: Mapping[str, str]) -> Path:
    """Return where the person's `config.toml` lies: `$XDG_CONFIG_HOME`, else the platform's folder below `$HOME`."""
    return _user_folder(environ, "XDG_CONFIG_HOME", _CONFIG_BELOW_HOME, platformdirs.user_config_path) / "config.toml"


def default_state_dir(environ: Mapping[str, str]) -> Path:
    """Return the state folder that stands unless it is set: `$XDG_STATE_HOME`, else the platform's below `$HOME`."""
    return _user_folder(environ, "XDG_STATE_HOME", _STATE_BELOW_HOME, platformdirs.user_state_path)


def expand_home(path: str, environ: Mapping[str, str]) -> str:
    """Return `path` with a leading `~` replaced by the home folder that `environ` names, else by this process's."""
    home = environ.get("HOME", "")
    if _is_usable(home) and (path == "~" or path.startswith("~/")):
        return f"{home.rstrip('/')}/{path[2:]}"
    return os.path.expanduser(path)  # noqa: PTH111 - Path.expanduser raises for an unknown `~user`


def _user_folder(environ: Mapping[str, str], variable: str, below_home: Path, own: Callable[..., Path]) -> Path:
    # platformdirs answers for this process alone, and `environ` may be another's: what that one says comes first.
    for base, rest in ((environ.get(variable, ""), Path()), (environ.get("HOME", ""), below_home)):
        if _is_usable(base):
            return Path(base) / rest / _APP
    try:
        return own(_APP, appauthor=False)
    except RuntimeError as error:  # a user that the system does not know, without HOME
        raise ConfigError(
            "this user has no home folder: set HOME, or HINDSIGHT_STATE_DIR and XDG_CONFIG_HOME"
        ) from error


def _is_usable(folder: str) -> bool:
    """Say whether `folder` is absolute (the XDG rule: others are ignored) and can be handed to the system at all."""
    try:
        return folder.startswith("/") and b"\0" not in os.fsencode(folder)
    except UnicodeEncodeError:
        return False


def private_folder(path: Path) -> Path:
    """Create the folder `path` for its owner alone (0700), or tighten it to that, and return it.

    Missing folders above it are made 0700 too; those that exist may be anything, a symlinked home for one. Raises
    `ConfigError` where `path` is a symlink, no folder, another user's, or cannot be made.
    """
    try:
        for folder in (*reversed(path.parents), path):
            if not folder.exists():
                with contextlib.suppress(FileExistsError):
                    folder.mkdir(_FOLDER_MODE)
        # Looked at through the open folder, so that what is checked is what is tightened.
        folder_fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        _take(path, folder_fd, _FOLDER_MODE)
    finally:
        os.close(folder_fd)
    return path


def open_private(path: Path, flags: int) -> int:
    """Open our file `path` with the `os.O_*` flags given, mode 0600, and return its descriptor (closed on exec).

    It is created where it is missing, unless it is opened for reading only: then `FileNotFoundError` passes. Raises
    `ConfigError` where it is a symlink, no regular file, another user's, or cannot be opened.
    """
    create = 0 if flags & os.O_ACCMODE == os.O_RDONLY else os.O_CREAT
    try:
        # O_NONBLOCK: a planted FIFO must not hold us; on a regular file it changes nothing.
        file_fd = os.open(path, flags | create | os.O_NOFOLLOW | os.O_NONBLOCK, _FILE_MODE)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        _take(path, file_fd, _FILE_MODE)
    except BaseException:
        os.close(file_fd)
        raise
    return file_fd


def write_private(path: Path, data: bytes) -> None:
    """Put `data` in place of our file `path`: whole or not at all, 0600 from the first byte, on the disk at return.

    Raises `ConfigError` where `path` is a symlink, no regular file, or another user's; an `OSError` of the writing
    itself (a full disk) passes, and leaves the old file as it was.
    """
    with contextlib.suppress(FileNotFoundError):
        os.close(open_private(path, os.O_RDONLY))
    temporary_fd, temporary = tempfile.mkstemp(prefix=".tmp-", dir=path.parent)
    try:
        with os.fdopen(temporary_fd, "wb") as file:
            os.fchmod(file.fileno(), _FILE_MODE)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder_fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder_fd)  # the rename too must survive a power cut
    finally:
        os.close(folder_fd)


def socket_path(state_dir: Path, *, short_root: Path = _SHORT_ROOT) -> Path:
    """Return the path of the proxy's socket for `state_dir`, the same for every process of this user.

    It lies in the state folder, unless that path is longer than `SOCKET_PATH_LIMIT`: then it lies in a private folder
    of this user in `short_root`, named by a hash of the full path. Neither symlinks on the way to the state folder nor
    the environment change the answer. Raises `ConfigError` where that short folder is not ours alone.
    """
    full = Path(os.path.realpath(state_dir)) / "proxy.sock"
    if len(os.fsencode(full)) <= SOCKET_PATH_LIMIT:
        return full
    name = hashlib.sha256(os.fsencode(full)).hexdigest()[:16]
    return private_folder(short_root / f"{_APP}-{os.geteuid()}") / f"{name}.sock"


def _take(path: Path, fd: int, mode: int) -> None:
    """Check that the open `fd` is of the kind that `mode` is for and ours, and give it exactly that mode."""
    found = os.fstat(fd)
    if mode == _FILE_MODE and not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{path} is not a regular file; remove it")
    if found.st_uid != os.geteuid():
        raise ConfigError(
            f"{path} belongs to another user (uid {found.st_uid}); remove it, or set HINDSIGHT_STATE_DIR to a folder "
            "of your own"
        )
    if stat.S_IMODE(found.st_mode) != mode:
        os.fchmod(fd, mode)


def _unusable(path: Path, error: OSError) -> ConfigError:
    if path.is_symlink():
        return ConfigError(f"{path} is a symlink, which somebody else may have planted; remove it")
    return ConfigError(
        f"{path} cannot be used ({error.strerror}); remove it, or set HINDSIGHT_STATE_DIR to another folder"
    )
