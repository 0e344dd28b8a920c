"""`bankclient demo`: what it shows, and that nothing of the person is touched and nothing is left."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.cli.playground import Playground, make_playground
from bankclient.project import find_project
from bankclient.testing.scripted import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STEPS = (
    "bankclient demo",
    "1. Two projects and a server",
    "2. A session in orchard ends, and what was said is retained",
    "3. A new session begins, in the linked worktree orchard-hotfix",
    "4. A session in pantry asks the same, and one thing more",
    "5. Reflect answers from memory, back in orchard-hotfix",
    "6. The server goes away, and the turn goes on",
    "7. It comes back",
    "That was all",
)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder in which temporary files are made; it is empty."""
    folder = tmp_path / "tmp"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def own_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ScriptedServer]:
    """Give the server that the person has configured, with everything else that could be set."""
    with ScriptedServer() as server:
        for name, value in {
            "HINDSIGHT_API_URL": server.url,
            "HINDSIGHT_API_TOKEN": "made-up",
            "HINDSIGHT_BANK_ID": "mine",
            "HINDSIGHT_PROJECT": "mine",
            "HINDSIGHT_SCOPING": "global",
            "HINDSIGHT_STATE_DIR": str(tmp_path / "state"),
            "HINDSIGHT_DEBUG": "true",
            "HINDSIGHT_DISABLED": "true",
            "HTTP_PROXY": server.url,
            "ALL_PROXY": server.url,
        }.items():
            monkeypatch.setenv(name, value)
        config = Path.home() / ".config" / "bankclient" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'api_url = "{server.url}"\nbank_id = "mine"\n')
        yield server


def projects(place: Playground) -> list[str | None]:
    """Return the project of each folder."""
    return [find_project(folder).name for folder in (place.repository, place.worktree, place.other)]


def headings(out: str) -> list[str]:
    """Return the lines that begin a step."""
    return [line for line in out.splitlines() if line and not line.startswith(" ")]


def test_it_shows_every_step_and_touches_nothing_of_the_person_s(
    process: Callable[..., Any], own_server: ScriptedServer, temporary: Path, tmp_path: Path
) -> None:
    """Whatever is configured, the demo uses a bank and a server of its own, and cleans up."""
    home = sorted(Path.home().rglob("*"))
    done = process("demo")
    assert (done.code, done.err) == (0, "")
    assert tuple(headings(done.out)) == STEPS
    assert own_server.accepted == 0
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / "state").exists()
    assert sorted(Path.home().rglob("*")) == home
    assert "mine" not in done.out
    assert "\x1b" not in done.out


def test_what_it_tells_is_what_happened(process: Callable[..., Any], temporary: Path) -> None:
    """The memory is found from the worktree, not from the other repository; the outage is marked, and passes.

    Afterwards nothing listens at the address that it named.
    """
    out = process("demo").out
    parts = dict(zip(STEPS, re.split("|".join(map(re.escape, STEPS)), out)[1:], strict=True))
    assert f"{temporary.resolve()}" in parts[STEPS[1]]
    assert parts[STEPS[1]].count("project orchard") == 2
    assert "made by git" in parts[STEPS[1]]
    assert "tagged project:orchard" in parts[STEPS[2]]
    assert "found: 1" in parts[STEPS[3]]
    assert "port 4711" in parts[STEPS[3]]
    assert re.findall(r"found: (\w+)", parts[STEPS[4]]) == ["nothing", "1"]
    assert "4711" not in parts[STEPS[4]]
    assert "./release.sh" in parts[STEPS[5]]
    assert "no language model" in parts[STEPS[5]]
    assert parts[STEPS[6]].count("0 memories, degraded=True") == 2
    assert parts[STEPS[6]].count("the log says: memory is away") == 1
    assert "1 memory found, degraded=False" in parts[STEPS[7]]
    assert "the log says: memory is back" in parts[STEPS[7]]
    found = re.search(r"http://127\.0\.0\.1:(\d+)", out)
    assert found is not None
    with socket.socket() as peer:
        assert peer.connect_ex(("127.0.0.1", int(found[1]))) != 0


def test_on_a_terminal_it_is_coloured(terminal: Callable[..., Any], temporary: Path) -> None:
    """A person sees headings and memories stand out."""
    done = terminal("demo")
    assert done.code == 0
    assert "\x1b[1;36m1. Two projects and a server" in done.out
    assert "\x1b[32m| The dev server does not start: port 4000 is taken." in done.out
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("git", [None, "#!/bin/sh\nexit 1\n", '#!/bin/sh\nmkdir -p "$4"\nexit 128\n', "no program"])
def test_without_a_git_that_works_it_writes_the_files_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: str | None
) -> None:
    """What is written by hand is read as what git writes, and of a git that broke off nothing is left."""
    folder = tmp_path / "bin"
    folder.mkdir()
    if git is not None:
        (folder / "git").write_text(git)
        (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin" if git and "mkdir" in git else str(folder))
    (tmp_path / "play").mkdir()
    place = make_playground(tmp_path / "play")
    assert not place.by_git
    assert projects(place) == ["orchard", "orchard", "pantry"]
    assert find_project(place.worktree).root == place.repository


def test_git_makes_the_same_projects(tmp_path: Path) -> None:
    """Where there is git, it makes the folders."""
    place = make_playground(tmp_path)
    assert place.by_git
    assert projects(place) == ["orchard", "orchard", "pantry"]
    assert find_project(place.worktree).root == place.repository


def test_without_git_the_demo_says_so(
    process: Callable[..., Any], temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing git changes nothing but one line."""
    monkeypatch.setenv("PATH", "")
    done = process("demo")
    assert (done.code, done.err) == (0, "")
    assert "written by hand, for there is no git that works" in done.out
    assert tuple(headings(done.out)) == STEPS
    assert list(temporary.iterdir()) == []


def test_another_repository_s_variables_and_settings_are_left_alone(
    process: Callable[..., Any], temporary: Path, tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run from inside a git hook, with hooks and signing configured, it makes its own repositories all the same."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "post-commit").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (hooks / "post-commit").chmod(0o755)
    (Path.home() / ".gitconfig").write_text(f"[core]\nhooksPath = {hooks}\n[commit]\ngpgsign = true\n")
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(repository))
    before = sorted((repository / ".git").rglob("*"))
    done = process("demo")
    assert done.code == 0
    assert "made by git" in done.out
    assert sorted((repository / ".git").rglob("*")) == before
    assert not (tmp_path / "ran").exists()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("how", "times", "code"),
    [(signal.SIGINT, 1, 130), (signal.SIGINT, 3, 130), (signal.SIGTERM, 1, 143), (signal.SIGHUP, 1, 129)],
)
def test_broken_off_it_cleans_up_too(
    command: list[str], temporary: Path, how: signal.Signals, times: int, code: int
) -> None:
    """Ctrl-C in the middle, also pressed several times, leaves no folder behind."""
    # What may be broken off between any two steps may leave a socket to the interpreter, and nobody is told of that.
    quiet = [*command[:-2], "-W", "ignore::ResourceWarning", *command[-2:], "demo"]
    with subprocess.Popen(quiet, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert STEPS[3] in iter(lambda: process.stdout.readline().rstrip("\n"), None)  # type: ignore[union-attr] # see above
        assert list(temporary.iterdir())
        for _ in range(times):
            process.send_signal(how)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (code, "")
    assert list(temporary.iterdir()) == []


def test_a_reader_that_goes_away_is_no_fault(command: list[str], temporary: Path) -> None:
    """`bankclient demo | head -1` ends quietly, and cleans up."""
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -1; exit "${PIPESTATUS[0]}"', "bash", *command, "demo"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (141, "")
    assert list(temporary.iterdir()) == []
