"""What the README shows is run: each of its examples, as it is printed there, and its tables are those of the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from bankclient.settings import VARIABLES, load

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:<!-- run: (?P<mark>\w+) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)```\n", re.DOTALL)
SERVER = "http://localhost:8888"
"""Where the README's real server is."""


@dataclass(frozen=True)
class Example:
    """One fenced block."""

    mark: str | None
    language: str
    text: str


EXAMPLES = [Example(found["mark"], found["language"], found["text"]) for found in BLOCK.finditer(README)]


def marked(mark: str) -> list[Example]:
    """Return the examples with this mark; there is at least one."""
    found = [example for example in EXAMPLES if example.mark == mark]
    assert found, mark
    return found


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Give a git repository, as the README asks for."""
    folder = tmp_path / "General"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def run(command: list[str], folder: Path, **variables: str) -> str:
    """Run a command with the package's own programs first on PATH; return what it prints, and print it on failure."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"} | variables
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def shell(text: str, folder: Path) -> str:
    """Run lines in a shell that stops at the first failure."""
    return run(["bash", "-euo", "pipefail", "-c", text], folder)


def test_every_example_says_how_it_is_run() -> None:
    """A block in a language has a mark; the blocks without one are the commands that install."""
    for example in EXAMPLES:
        assert (example.mark is None) == (example.language == ""), example.text
        if example.mark is None:
            assert "pip install" in example.text


def test_the_first_command_runs_as_printed(tmp_path: Path) -> None:
    """All but the installation, which is there already."""
    (command,) = (example.text for example in EXAMPLES if "bankclient demo" in example.text)
    assert "4711" in shell(command.split("&&", 1)[1], tmp_path)


def test_the_shell_examples_run_as_printed(repository: Path) -> None:
    """The main job on the embedded bank: what was retained is found, under the repository's name."""
    for example in marked("shell"):
        printed = shell(example.text, repository)
        assert printed.count("port 4711") >= 2
        assert "project:general" in printed


def test_the_python_examples_run_as_printed(repository: Path) -> None:
    """One after the other, on the embedded bank."""
    printed = [
        run([sys.executable, "-W", "error", "-c", example.text], repository, HINDSIGHT_API_URL="embedded")
        for example in marked("python")
    ]
    for output, expected in zip(printed, ("port 4711", "1.1.0", "The linter is ruff."), strict=True):
        assert expected in output


def test_the_examples_of_the_queue_run_as_printed(repository: Path) -> None:
    """What was kept without a server is shown, and given up when told to."""
    (example,) = marked("queue")
    printed = shell(example.text, repository)
    assert "kept: bank bankclient" in printed
    assert "http://127.0.0.1:9" in printed
    assert "waiting: 1 item" in printed


def test_the_configuration_example_is_understood(tmp_path: Path) -> None:
    """Every key of it, without a warning."""
    (example,) = marked("toml")
    path = tmp_path / "config.toml"
    path.write_text(example.text, encoding="utf-8")
    loaded = load(environ={}, config_file=path, folders=[tmp_path])
    assert loaded.warnings == ()
    assert loaded.settings.retain_every_n_turns == 5


def test_the_table_of_settings_is_that_of_the_code() -> None:
    """Every variable in its order, with its values, default and meaning."""
    rows = re.findall(r"^\| `(HINDSIGHT_\w+)` \| (.*?) \| (.*?) \| (.*?) \|$", README, re.MULTILINE)
    expected = [
        (each.name, each.form, f"`{each.default}`" if each.default else "unset", each.meaning) for each in VARIABLES
    ]
    assert [row for row in rows if row[1] != "bank"] == expected  # the other table has the scopings


@pytest.mark.real
def test_the_real_servers_examples_run_as_printed(repository: Path, real_url: str, bank: str) -> None:
    """With the address of the server at hand in place of the README's."""
    (example,) = marked("real")
    printed = shell(f"export HINDSIGHT_BANK_ID={bank}\n" + example.text.replace(SERVER, real_url), repository)
    assert "port 4711" in printed.splitlines()[-1]


@pytest.mark.real
def test_the_way_from_the_embedded_bank_runs_as_printed(repository: Path, real_url: str, bank: str) -> None:
    """Exported, and imported into a real server."""
    (example,) = marked("move")
    setup = f"export HINDSIGHT_BANK_ID={bank}\n"
    shell(setup + 'HINDSIGHT_API_URL=embedded bankclient retain "We picked port 4711." --wait', repository)
    shell(setup + example.text.replace(SERVER, real_url), repository)
    assert "port 4711" in shell(setup + f"HINDSIGHT_API_URL={real_url} bankclient recall 'which port'", repository)
