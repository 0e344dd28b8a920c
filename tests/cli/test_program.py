"""The program itself: its help, its version, mistakes in what was typed, and what it loads for that."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer

from bankclient import __version__
from bankclient.cli.registry import COMMANDS, module_of

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_help_names_every_command(cli: Callable[..., Any], option: str) -> None:
    """The program's help is on stdout and has a line for each command."""
    done = cli(option)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: bankclient COMMAND")
    for name, what in COMMANDS.items():
        assert f"  {name:<7}  {what}\n" in done.out


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help_of_its_own(cli: Callable[..., Any], name: str) -> None:
    """A command's help has its name, and is there without running it."""
    done = cli(name, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: bankclient {name} [OPTIONS]")


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_is_the_package_s(cli: Callable[..., Any], option: str) -> None:
    """The version is printed alone."""
    assert cli(option).out == f"bankclient {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rekall"], "there is no command 'rekall'; did you mean recall?"),
        (["frobnicate"], "there is no command 'frobnicate'; bankclient --help lists them"),
        (["\x1b[31mred"], "there is no command '\\x1b[31mred'; bankclient --help lists them"),
        (["--json", "recall"], "the option '--json' stands before the command; write bankclient COMMAND --json"),
        (["retain"], "Missing argument 'TEXT|-'; see bankclient retain --help"),
        (["recall", "a", "b"], "(b); see bankclient recall --help"),
        (["recall", "a", "--nope"], "--nope"),
        (["recall", "a", "--tag"], "--tag"),
        (["recall", "a", "--max-tokens", "0"], "--max-tokens"),
        (["recall", "a", "--max-tokens", "nan"], "--max-tokens"),
        (["recall", "a", "--type", "opinion"], "'opinion' is not one of world, experience, observation"),
        (
            ["recall", "a", "--budget", "huge"],
            "Invalid value for '--budget': 'huge' is not one of 'low', 'mid', 'high'",
        ),
        (["recall", "a", "--tags-match", "some"], "Invalid value for '--tags-match': 'some' is not one of"),
        (["retain", "a", "--scope", "team"], "Invalid value for '--scope': 'team' is not one of"),
    ],
)
def test_a_mistake_in_what_was_typed_is_one_line_and_exit_code_2(
    cli: Callable[..., Any], arguments: list[str], said: str
) -> None:
    """What is wrong with the command line is said with the mend, and nothing is printed on stdout."""
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_without_a_command_the_help_goes_to_stderr(cli: Callable[..., Any]) -> None:
    """A bare `bankclient` is a mistake, answered with the help."""
    done = cli()
    assert (done.code, done.out) == (2, "")
    assert "Commands:" in done.err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_is_an_app(name: str) -> None:
    """The table of commands names modules that are there, each with an app."""
    module = importlib.import_module(module_of(name))
    assert isinstance(module.app, typer.Typer)


LOADED = (
    "import sys; from bankclient.cli import main; code = main(sys.argv[1:]); print(code, *sys.modules, file=sys.stderr)"
)


@pytest.mark.parametrize(
    ("arguments", "not_loaded"),
    [
        (["--help"], {"typer", "rich", "pydantic", "httpx", "logging", "bankclient.errors", "bankclient.settings"}),
        (["--version"], {"typer", "rich", "pydantic", "httpx", "logging", "bankclient.errors", "bankclient.settings"}),
        (["recall", "--help"], {"rich", "httpx", "bankclient.client", "bankclient.embedded"}),
        (["scope"], {"rich", "httpx", "bankclient.client", "bankclient.embedded"}),
    ],
)
def test_only_what_a_command_needs_is_loaded(arguments: list[str], not_loaded: set[str]) -> None:
    """The program's help needs nothing, a command's help no client, and nothing but a terminal needs rich."""
    done = subprocess.run([sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, check=True)
    code, *modules = done.stderr.split()
    assert code == "0"
    assert not_loaded & set(modules) == set()


def test_the_installed_command_and_the_module_are_the_same_program() -> None:
    """`bankclient` on the PATH and `python -m bankclient` print the same."""
    installed = [str(Path(sys.executable).with_name("bankclient"))]
    printed = {
        subprocess.run([*start, "--version"], capture_output=True, text=True, check=True).stdout
        for start in (installed, [sys.executable, "-m", "bankclient"])
    }
    assert printed == {f"bankclient {__version__}\n"}
