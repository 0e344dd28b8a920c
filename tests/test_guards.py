"""The guards around every test: its own environment, and no network but loopback."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

INNER = '''
import asyncio, contextlib, os, socket, threading, urllib.request
import pytest

def test_connect():
    """Connects where it must not, and takes the error for an outage."""
    with contextlib.suppress(OSError), socket.socket() as peer:
        peer.connect(("192.0.2.1", 80))

def test_connect_ex():
    """Does so by the call that returns its error."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as peer:
        peer.connect_ex(("2001:db8::1", 80))

def test_look_up():
    """Looks a name up."""
    with contextlib.suppress(OSError):
        socket.create_connection(("example.com", 80))

def test_thread():
    """Does so in a thread."""
    thread = threading.Thread(target=test_connect)
    thread.start()
    thread.join()

@pytest.mark.anyio
async def test_event_loop():
    """Does so on an event loop."""
    with contextlib.suppress(OSError):
        await asyncio.open_connection("192.0.2.1", 80)

def test_library():
    """Does so deep inside a library."""
    with contextlib.suppress(OSError):
        urllib.request.urlopen("http://example.com/")

def test_well_behaved():
    """Stays at home after all these."""
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", 9))

def test_environment():
    """Sees nothing of the shell that started it."""
    assert "the shell" not in os.environ.values()
'''


FROM_THE_SHELL = ("HINDSIGHT_API_TOKEN", "https_proxy", "ALL_PROXY", "SSL_CERT_FILE", "GIT_DIR", "CLAUDE_ENV_FILE")


@pytest.fixture(scope="module")
def inner(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give what pytest prints of the tests above, under the same guards, from a shell with variables of its own."""
    folder = tmp_path_factory.mktemp("inner")
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "test_inner.py").write_text(INNER)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = real\n")
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "--import-mode=importlib", "."]
    environment = os.environ | dict.fromkeys(FROM_THE_SHELL, "the shell")
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


def test_a_test_that_leaves_this_machine_fails_even_when_it_swallows_the_error(inner: str) -> None:
    """Every way out fails its own test, at whatever depth, and no test after it."""
    failed = re.findall(r"^ERROR \S+::test_(\w+) - Failed: ", inner, re.MULTILINE)
    assert set(failed) == {"connect", "connect_ex", "look_up", "thread", "event_loop", "library"}, inner
    assert "Failed: the test tried to leave this machine: connect to ('192.0.2.1', 80)" in inner


def test_nothing_of_the_surrounding_shell_is_seen(inner: str) -> None:
    """Settings, proxies, certificates and git locations of the person's shell are gone when a test begins."""
    assert re.search(r"^PASSED \S+::test_environment$", inner, re.MULTILINE), inner


def test_a_name_that_never_resolves_may_be_asked_for() -> None:
    """A name under `.invalid` fails as it does everywhere, so that DNS errors can be tested."""
    with httpx.Client() as client, pytest.raises(httpx.ConnectError):
        client.get("http://hindsight.invalid/")


def test_unix_sockets_and_both_loopback_addresses_are_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard lets through what does not leave the machine."""
    monkeypatch.chdir(tmp_path)  # a relative path, since socket paths are short
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as peer:
        listener.bind("socket")
        listener.listen()
        peer.connect("socket")
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET, "localhost")):
        with socket.create_server(("" if host == "localhost" else host, 0), family=family) as listener:
            socket.create_connection((host, listener.getsockname()[1])).close()


def test_a_home_is_empty_and_everything_personal_is_in_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing a test writes by default lands where a person or another session would find it."""
    home, session = Path.home(), tmp_path_factory.getbasetemp()
    assert list(home.iterdir()) == []
    (home / "left behind").touch()
    folders = {name: Path(value) for name, value in os.environ.items() if name.startswith("XDG_")}
    assert folders.keys() >= {"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"}
    assert all(folder.is_relative_to(home) for folder in folders.values())
    with tempfile.NamedTemporaryFile() as file:
        assert Path(file.name).is_relative_to(session)
    assert home.is_relative_to(session)


def test_the_next_test_has_another_home() -> None:
    """What the test before left in its home is not seen."""
    assert list(Path.home().iterdir()) == []


@given(st.text())
def test_property_tests_are_let_be(text: str) -> None:
    """The guards are no obstacle to Hypothesis, whose examples share one test's fixtures."""
    assert os.environ["HOME"] != text
