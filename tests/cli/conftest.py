"""The commands run in two ways: within the test, and as a process, with or without a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from bankclient.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TERMINAL = {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}


@dataclass(frozen=True)
class Done:
    """What a run of the program left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    def json(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return what was printed as JSON."""
        return json.loads(self.out)


class Run(Protocol):
    """Runs the program."""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Done:
        """Run it with these arguments and this on stdin."""
        ...


@pytest.fixture(autouse=True)
def _repeated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clients of this process repeat a call without a pause."""
    monkeypatch.setattr("bankclient.client.policy._FIRST_WAIT", 0.0)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Give the program within this process."""

    def run(*arguments: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main(arguments)
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def command() -> list[str]:
    """Give the command line that runs the program, in which a warning of Python's is an error."""
    return [sys.executable, "-W", "error", "-m", "bankclient"]


@pytest.fixture
def process(command: list[str]) -> Callable[..., Done]:
    """Give the program as a process: its output goes to pipes. Arguments may be bytes, as a shell's may."""

    def run(*arguments: str | bytes, stdin: bytes = b"", cwd: Path | None = None) -> Done:
        done = subprocess.run([*command, *arguments], input=stdin, capture_output=True, check=False, cwd=cwd)
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def terminal(command: list[str]) -> Callable[..., Done]:
    """Give the program as a process on a terminal of 120 columns, with all it writes in `out`."""

    def run(*arguments: str, typed: bytes = b"") -> Done:
        ours, its = pty.openpty()
        with subprocess.Popen(
            [*command, *arguments], stdin=its, stdout=its, stderr=its, env=os.environ | _TERMINAL
        ) as it:
            os.close(its)
            os.write(ours, typed)
            pieces: list[bytes] = []
            with contextlib.suppress(OSError):  # how Linux tells that the other side is gone
                while piece := os.read(ours, 65536):
                    pieces.append(piece)
        os.close(ours)
        return Done(it.returncode, b"".join(pieces).decode().replace("\r\n", "\n"), "")

    return run


@pytest.fixture
def git() -> Callable[..., None]:
    """Give git with a configuration of its own."""

    def run(folder: Path, *arguments: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        identity = {
            f"GIT_{who}_{what}": "a@example.invalid" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **identity,
        }
        subprocess.run(
            ["git", "-c", "init.defaultBranch=main", *arguments],
            cwd=folder,
            env=environment,
            check=True,
            capture_output=True,
        )

    return run


@pytest.fixture
def repository(tmp_path: Path, git: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a repository `Api` with one commit, and make it the current folder."""
    folder = tmp_path / "Api"
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch, repository: Path) -> Path:
    """Let the commands use the embedded bank, in the repository, and give that."""
    monkeypatch.setenv("HINDSIGHT_API_URL", "embedded")
    return repository
