"""Whatever happens to the program, it ends with one line on stderr at most, and an exit code."""

from __future__ import annotations

import logging
import shlex
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.testing.answers import Held, Reply, Silence
from bankclient.testing.scripted import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FOUND = Reply(json={"results": [{"id": "1", "text": "The port is 4711.", "tags": []}]})


@pytest.mark.usefixtures("repository")
def test_ctrl_c_ends_quietly_with_130(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that a person interrupts while it waits for the server says nothing."""
    with ScriptedServer(handler=lambda _: Silence()) as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        with subprocess.Popen([*command, "recall", "port"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            server.wait_for(lambda it: len(it.requests) == 1)
            process.send_signal(signal.SIGINT)
            printed = process.communicate()
    assert (process.returncode, *printed) == (130, b"", b"")


@pytest.mark.usefixtures("repository")
def test_a_reader_that_goes_away_is_no_error(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody reads the output any more the program ends as SIGPIPE would end it, and says nothing."""
    go = threading.Event()
    with ScriptedServer(Held(go, FOUND)) as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        with subprocess.Popen([*command, "recall", "port"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            go.set()
            assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.usefixtures("repository")
def test_output_that_cannot_be_written_is_a_failure(command: list[str], tmp_path: Path) -> None:
    """A file that may not grow is said, once, with exit code 1."""
    out = shlex.quote(str(tmp_path / "out"))
    # No file may grow, a measurement's own neither: none is taken of this process.
    script = f"unset COVERAGE_PROCESS_START; ulimit -f 0; exec {shlex.join(command)} scope >{out}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: File too large\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
@pytest.mark.usefixtures("repository")
def test_closed_streams_stop_nothing(command: list[str], closed: str) -> None:
    """A program whose streams were closed by its caller does its work all the same."""
    done = subprocess.run(["sh", "-c", f"exec {shlex.join(command)} scope {closed}"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_retaining_from_a_closed_stdin_is_one_clear_error(command: list[str]) -> None:
    """`-` without a stdin is refused."""
    done = subprocess.run(
        ["sh", "-c", f"exec {shlex.join(command)} retain - <&-"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "error: stdin is closed; give the text itself\n")


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.usefixtures("repository")
def test_a_fault_of_ours_is_one_line_and_tells_all_only_when_asked(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, debug: bool
) -> None:
    """An error that nobody foresaw names its place, not what it holds; HINDSIGHT_DEBUG adds the traceback."""

    def fail(_: object) -> None:
        raise KeyError("what nobody should see")

    monkeypatch.setattr("bankclient.cli.scope.find_place", fail)
    monkeypatch.setenv("HINDSIGHT_DEBUG", str(debug))
    done = cli("scope")
    first, *more = done.err.splitlines()
    assert (done.code, done.out) == (1, "")
    assert first.startswith("error: a fault in bankclient (KeyError at test_guard.py:")
    assert ("what nobody should see" in done.err) == debug
    assert bool(more) == debug


def test_letters_that_the_output_s_encoding_lacks_are_replaced(
    process: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An output in ASCII gets what ASCII has, and no error."""
    folder = tmp_path / "zażółć"
    folder.mkdir()
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = process("scope", cwd=folder)
    assert (done.code, done.err) == (0, "")
    assert "project: za????\n" in done.out


@pytest.mark.usefixtures("repository")
def test_what_the_floors_below_log_is_said_on_stderr(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of the network that cannot be used is one warning; with HINDSIGHT_DEBUG each attempt is told."""
    monkeypatch.setenv("HTTP_PROXY", "gopher://proxy.invalid")
    monkeypatch.setenv("HINDSIGHT_API_URL", "http://hindsight.invalid")
    quiet = cli("recall", "port").err.splitlines()
    assert [line.partition(":")[0] for line in quiet] == ["warning", "error"]
    monkeypatch.setenv("HINDSIGHT_DEBUG", "1")
    loud = cli("recall", "port").err.splitlines()
    assert {line.partition(":")[0] for line in loud} == {"warning", "debug", "error"}
    assert [line.partition(":")[0] for line in cli("recall", "port").err.splitlines()].count("warning") == 1


@pytest.mark.usefixtures("repository")
def test_a_warning_of_the_settings_is_said_once_and_in_one_line(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that cannot be used is a warning beside the result, which stands."""
    monkeypatch.setenv("HINDSIGHT_RECALL_TIMEOUT_MS", "nan")
    with ScriptedServer(FOUND) as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        done = cli("recall", "port")
    assert (done.code, done.out) == (0, "The port is 4711.\n")
    assert done.err == (
        "warning: HINDSIGHT_RECALL_TIMEOUT_MS='nan' from environment is not used: it must be a whole number from 1 to"
        " 3600000; 30000 (default) stands\n"
    )


@pytest.mark.usefixtures("repository")
def test_nothing_of_a_run_stays_behind_in_the_process(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The program leaves the log as it found it, also after HINDSIGHT_DEBUG."""
    logger = logging.getLogger("bankclient")
    before = (logger.level, list(logger.handlers))
    monkeypatch.setenv("HINDSIGHT_DEBUG", "1")
    cli("scope")
    assert (logger.level, logger.handlers) == before
