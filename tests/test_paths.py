"""Our files: where they lie, and that nobody else can read or plant them."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
import pytest

from bankclient import paths
from bankclient.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UMASKS = [0o000, 0o022, 0o077]


def mode(path: Path) -> int:
    """Return the permission bits of `path` itself."""
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(params=UMASKS, ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Run the test under each umask."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def foreign_folder(tmp_path: Path) -> Path:
    """Give a folder of another user: one that was handed to them, or, for want of that right, one of root's."""
    if os.geteuid() != 0:
        return Path("/usr")
    folder = tmp_path / "foreign"
    folder.mkdir(mode=0o777)
    os.chown(folder, 4711, 4711)
    return folder


@pytest.fixture
def foreign_file(tmp_path: Path) -> Path:
    """Give a readable file of another user, likewise."""
    if os.geteuid() != 0:
        return Path("/etc/passwd")
    file = tmp_path / "foreign.txt"
    file.write_text("theirs")
    os.chown(file, 4711, 4711)
    return file


@pytest.fixture
def short_root() -> Iterator[Path]:
    """Give a folder with a short path, in which short socket paths are made."""
    folder = Path(tempfile.mkdtemp(prefix="bc-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


# --- where -------------------------------------------------------------------------------------------------------


def test_folders_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without XDG variables our folders are where platformdirs has them, whether `environ` names the home or not."""
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable)
    for environ in ({}, {"HOME": os.environ["HOME"]}, os.environ):
        assert paths.config_file(environ) == platformdirs.user_config_path("bankclient") / "config.toml"
        assert paths.default_state_dir(environ) == platformdirs.user_state_path("bankclient")


@pytest.mark.parametrize("odd", ["", "  ", "relative", "~/x", "/nul\0", "/\ud83d"])
def test_folders_that_environ_names(odd: str) -> None:
    """An absolute XDG folder counts, another is passed over; the home is the one that `environ` names."""
    environ = {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}
    assert paths.config_file(environ) == Path("/c/bankclient/config.toml")
    assert paths.default_state_dir(environ) == Path("/s/bankclient")
    for relative in (environ | {"XDG_CONFIG_HOME": odd, "XDG_STATE_HOME": odd}, {"HOME": "/h"}):
        assert paths.config_file(relative).is_relative_to("/h")
        assert paths.default_state_dir(relative).is_relative_to("/h")
    assert paths.config_file({"HOME": odd}) == paths.config_file({})


@pytest.mark.parametrize(
    ("path", "expanded"),
    [
        ("~", "/h/"),
        ("~/a/b", "/h/a/b"),
        ("/a/~", "/a/~"),
        ("a", "a"),
        ("~nobody-at-all/a", "~nobody-at-all/a"),
        ("", ""),
    ],
)
def test_the_tilde_is_the_home_that_environ_names(path: str, expanded: str) -> None:
    """A leading `~` is the caller's home, any other stays; without a home in `environ` it is this process's."""
    assert paths.expand_home(path, {"HOME": "/h/"}) == expanded
    assert paths.expand_home(path, {}) == os.path.expanduser(path)  # noqa: PTH111 - Path's own raises for strangers


# --- folders -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("umask")
def test_folders_are_private_under_any_umask(tmp_path: Path) -> None:
    """A new folder is 0700, and so are those above it that were missing; what was there stays as it was."""
    tmp_path.chmod(0o755)
    assert paths.private_folder(tmp_path / "a" / "b" / "c") == tmp_path / "a" / "b" / "c"
    assert [mode(tmp_path / made) for made in ("a", "a/b", "a/b/c")] == [0o700] * 3
    assert mode(tmp_path) == 0o755


def test_an_open_folder_of_ours_is_tightened(tmp_path: Path) -> None:
    """A folder that is ours but others may enter becomes 0700; doing it again changes nothing."""
    folder = tmp_path / "a"
    folder.mkdir()
    folder.chmod(0o775)
    for _ in range(2):
        paths.private_folder(folder)
        assert mode(folder) == 0o700


def test_a_symlinked_home_is_fine(tmp_path: Path) -> None:
    """Folders above ours may be links: only our own may not."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    paths.private_folder(tmp_path / "link" / "state")
    assert mode(tmp_path / "disk" / "state") == 0o700


@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_a_planted_link_is_refused(target: str, tmp_path: Path) -> None:
    """A symlink in our folder's place is refused, followed or not, and its target is left alone."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there").chmod(0o755)
    link = tmp_path / "state"
    link.symlink_to(tmp_path / target)
    with pytest.raises(ConfigError, match=f"{link} is a symlink.*remove it"):
        paths.private_folder(link)
    assert mode(tmp_path / "there") == 0o755
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_of_another_user_is_refused(foreign_folder: Path) -> None:
    """A folder that somebody else owns is refused as it is, with what to do instead."""
    before = mode(foreign_folder)
    with pytest.raises(ConfigError, match=f"{foreign_folder} belongs to another user .*HINDSIGHT_STATE_DIR"):
        paths.private_folder(foreign_folder)
    assert mode(foreign_folder) == before


@pytest.mark.parametrize("below", ["", "a"])
def test_a_file_in_the_folder_s_place(below: str, tmp_path: Path) -> None:
    """A file where a folder must be is an error of configuration that names the path."""
    (tmp_path / "state").write_text("")
    with pytest.raises(ConfigError, match=f"{tmp_path / 'state' / below} cannot be used .*HINDSIGHT_STATE_DIR"):
        paths.private_folder(tmp_path / "state" / below)


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [*UMASKS, 0o277], ids=oct, indirect=True)
@pytest.mark.usefixtures("umask")
def test_files_are_private_from_the_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the umask, a file of ours is 0600 when it is opened, and a replaced one before it holds anything."""
    opened = tmp_path / "log"
    os.close(paths.open_private(opened, os.O_WRONLY))
    assert mode(opened) == 0o600

    seen: list[tuple[int, int]] = []
    fsync = os.fsync

    def watch(fd: int) -> None:
        found = os.fstat(fd)
        seen.append((stat.S_IFMT(found.st_mode), stat.S_IMODE(found.st_mode)))
        assert not (tmp_path / "new").exists() or stat.S_ISDIR(found.st_mode)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", watch)
    paths.write_private(tmp_path / "new", b"text")
    assert seen[0] == (stat.S_IFREG, 0o600)
    assert [kind for kind, _ in seen] == [stat.S_IFREG, stat.S_IFDIR]
    assert mode(tmp_path / "new") == 0o600


def test_writing_replaces_the_whole_file(tmp_path: Path) -> None:
    """A new text takes the old one's place, tightened, and nothing else is left in the folder."""
    file = tmp_path / "salt"
    file.write_text("a longer text than the new one")
    file.chmod(0o644)
    paths.write_private(file, b"new")
    assert file.read_bytes() == b"new"
    assert mode(file) == 0o600
    assert [found.name for found in tmp_path.iterdir() if found.is_file()] == ["salt"]


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_a_failed_write_leaves_the_old_file(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk the error passes, the old text stands, and no temporary file stays."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    paths.write_private(tmp_path / "salt", b"old")
    monkeypatch.setattr(step, full)
    with pytest.raises(OSError, match="No space left"):
        paths.write_private(tmp_path / "salt", b"new")
    assert (tmp_path / "salt").read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir() if found.is_file()] == ["salt"]


def test_a_file_that_others_may_read_is_tightened(tmp_path: Path) -> None:
    """Our own file with a loose mode becomes 0600 when it is opened, also for reading."""
    file = tmp_path / "log"
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_APPEND):
        file.write_text("old")
        file.chmod(0o666)
        os.close(paths.open_private(file, flags))
        assert mode(file) == 0o600
        assert file.read_text() == "old"


def test_reading_creates_nothing(tmp_path: Path) -> None:
    """A missing file stays missing when it is opened for reading."""
    with pytest.raises(FileNotFoundError):
        paths.open_private(tmp_path / "none", os.O_RDONLY)
    assert not (tmp_path / "none").exists()


def test_an_opened_file_is_not_handed_to_children(tmp_path: Path) -> None:
    """No program that is started later holds our file, and with it our lock."""
    fd = paths.open_private(tmp_path / "lock", os.O_RDWR)
    try:
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)


OPENERS: dict[str, Callable[[Path], object]] = {
    "read": lambda path: paths.open_private(path, os.O_RDONLY),
    "append": lambda path: paths.open_private(path, os.O_WRONLY | os.O_APPEND),
    "replace": lambda path: paths.write_private(path, b"ours"),
}


@pytest.fixture(params=OPENERS)
def opener(request: pytest.FixtureRequest) -> Callable[[Path], object]:
    """Give each way of coming at a file."""
    return OPENERS[request.param]


def test_a_planted_link_to_a_file_is_refused(opener: Callable[[Path], object], tmp_path: Path) -> None:
    """A symlink in our file's place is refused, and what it points to is left alone."""
    (tmp_path / "victim").write_text("theirs")
    (tmp_path / "victim").chmod(0o644)
    link = tmp_path / "log"
    link.symlink_to(tmp_path / "victim")
    with pytest.raises(ConfigError, match=f"{link} is a symlink.*remove it"):
        opener(link)
    assert link.is_symlink()
    assert ((tmp_path / "victim").read_text(), mode(tmp_path / "victim")) == ("theirs", 0o644)


def test_a_file_of_another_user_is_refused(opener: Callable[[Path], object], foreign_file: Path) -> None:
    """A file that somebody else owns is refused as it is."""
    before = foreign_file.read_bytes()
    with pytest.raises(ConfigError, match=f"{foreign_file} (belongs to another user|cannot be used)"):
        opener(foreign_file)
    assert foreign_file.read_bytes() == before


def test_a_planted_fifo_holds_nobody_up(opener: Callable[[Path], object], tmp_path: Path) -> None:
    """A FIFO, which would wait for its other end, and a folder are refused at once."""
    os.mkfifo(tmp_path / "fifo", 0o600)
    (tmp_path / "folder").mkdir()
    for odd in (tmp_path / "fifo", tmp_path / "folder"):
        with pytest.raises(ConfigError, match=str(odd)):
            opener(odd)


# --- the socket --------------------------------------------------------------------------------------------------


def folder_for(length: int, root: Path, letter: str = "d") -> Path:
    """Return a folder, made in `root`, whose socket path has `length` bytes."""
    room = length - len(os.fsencode(root / "x" / "proxy.sock")) + 1
    size = len(letter.encode())
    names = [letter * (100 // size)] * (room // 101)
    rest = room - sum(len(name.encode()) + 1 for name in names)
    folder = root.joinpath(*names, letter * (rest // size) + "e" * (rest % size))
    folder.mkdir(parents=True)
    assert len(os.fsencode(folder / "proxy.sock")) == length
    return folder


def bind(path: Path) -> None:
    """Bind a Unix socket to `path`, as the proxy does."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize("letter", ["d", "ż"])
@pytest.mark.parametrize("length", [60, 103, 104, 107, 108, 120, 300])
def test_a_socket_can_be_bound_at_any_depth(length: int, letter: str, short_root: Path) -> None:
    """Within the system's limit the socket lies in the state folder; beyond, at a short path of this user's own."""
    state = folder_for(length, short_root, letter)
    path = paths.socket_path(state, short_root=short_root)
    is_within = length <= paths.SOCKET_PATH_LIMIT
    assert (path == state / "proxy.sock") is is_within
    assert len(os.fsencode(path)) <= paths.SOCKET_PATH_LIMIT
    assert is_within or mode(path.parent) == 0o700
    bind(path)


def test_the_limit_is_the_system_s(short_root: Path) -> None:
    """One byte more than the limit cannot be bound, so it is no lower than it has to be."""
    bind(folder_for(paths.SOCKET_PATH_LIMIT, short_root) / "proxy.sock")
    with pytest.raises(OSError, match="too long"):
        bind(folder_for(paths.SOCKET_PATH_LIMIT + 1, short_root) / "proxy.sock")
    limit = 103 if sys.platform == "darwin" else 107
    assert limit == paths.SOCKET_PATH_LIMIT


@pytest.mark.parametrize("length", [80, 200])
def test_every_process_gets_the_same_answer(length: int, short_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither another name of the folder nor another environment leads to another socket."""
    state = folder_for(length, short_root)
    path = paths.socket_path(state, short_root=short_root)
    (short_root / "link").symlink_to(state)
    assert paths.socket_path(short_root / "link", short_root=short_root) == path
    for variable in ("XDG_RUNTIME_DIR", "TMPDIR", "HOME"):
        monkeypatch.setenv(variable, "/elsewhere")
    assert paths.socket_path(state, short_root=short_root) == path


def test_two_deep_folders_have_two_sockets(short_root: Path) -> None:
    """The short path tells deep state folders apart."""
    deep = [folder_for(length, short_root) for length in (200, 201)]
    assert len({paths.socket_path(state, short_root=short_root) for state in deep}) == 2


def test_a_planted_short_folder_is_refused(short_root: Path) -> None:
    """Where everybody may write, somebody may have been there before: a link in our place is refused."""
    state = folder_for(200, short_root)
    planted = paths.socket_path(state, short_root=short_root).parent
    planted.rmdir()
    (short_root / "theirs").mkdir()
    planted.symlink_to(short_root / "theirs")
    with pytest.raises(ConfigError, match=f"{planted} is a symlink"):
        paths.socket_path(state, short_root=short_root)


def test_the_short_folder_is_short_by_default() -> None:
    """By default the short path lies in /tmp, one folder a user, well within every system's limit."""
    state = Path("/", *["d" * 100] * 2)
    path = paths.socket_path(state)
    assert path.parent == Path(f"/tmp/bankclient-{os.geteuid()}")  # noqa: S108 - the folder that is checked
    assert len(os.fsencode(path)) < 60


def test_a_user_without_a_home_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may know no home for a user, and no variable name one."""

    def unknown(*_: object, **__: object) -> Path:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr("platformdirs.user_state_path", unknown)
    with pytest.raises(ConfigError, match="HOME"):
        paths.default_state_dir({})
    assert paths.default_state_dir({"HOME": "/home/ann"}).is_relative_to("/home/ann")
