"""The official Python client beside ours, where there is one: what a newcomer would otherwise take."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bankclient import BankClient
from bankclient.settings import Settings
from benchmarks.measure import NotRun, compare, figure, timed
from benchmarks.server import ten_memories

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from benchmarks.measure import Figure

__all__ = ["beside_the_official_client"]

_PROGRAM = Path(__file__).with_name("peer_program.py")


def beside_the_official_client(calls: int = 300, starts: int = 8) -> Iterator[Figure]:
    """Compare our sync client with `hindsight-client`: a recall of 10 memories from one server, and a first import.

    BANKCLIENT_HINDSIGHT is the Python of an environment that has it. It gives information, so there is no target.
    """
    python = os.environ.get("BANKCLIENT_HINDSIGHT")
    if not python:
        raise NotRun(
            "needs `hindsight-client`: set BANKCLIENT_HINDSIGHT to the Python of an environment that has the extra"
            " `hindsight`"
        )
    with ten_memories() as url, BankClient(settings=Settings(api_url=url)) as client, _peer(python, url) as recall:
        times = compare(calls, lambda: timed(lambda: client.recall("which port did we pick", bank="b")), recall)
    yield figure("recall of 10 memories, sync", "hindsight-client", *times)

    def start(program: str, code: str) -> Callable[[], float]:
        return lambda: timed(lambda: subprocess.run([program, "-c", code], check=True))

    times = compare(
        starts,
        start(sys.executable, "from bankclient import BankClient"),
        start(python, "from hindsight_client import Hindsight"),
    )
    yield figure("importing the client, whole process", "hindsight-client", *times)


@contextlib.contextmanager
def _peer(python: str, url: str) -> Generator[Callable[[], float]]:
    """Give what has the other client do one recall, in its own process, and returns how long that took."""
    command = [python, "-P", str(_PROGRAM), url]  # without this folder on its path, where names may be its own
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        if peer.stdin is None or peer.stdout is None:
            raise RuntimeError("the other client's process has no pipes")
        asked, answered = peer.stdin, peer.stdout

        def recall() -> float:
            asked.write("recall\n")
            asked.flush()
            return float(answered.readline())

        yield recall
        asked.close()
