"""The real server as tests get it: started, killed, started again and thrown away."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from bankclient.testing.hindsight import HindsightServer

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 60.0


def _is_free(port: int) -> bool:
    """Whether nobody listens on a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_python_without_the_server_is_named(tmp_path: Path) -> None:
    """An interpreter that lacks the extra is one clear message, and nothing is left of the attempt."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    python.chmod(0o755)
    server = HindsightServer(python)
    with pytest.raises(RuntimeError, match="python has no Hindsight server: pip install"):
        server.start()
    assert server.folder is None
    server.stop()


@pytest.mark.real
def test_what_was_stored_survives_kill_and_goes_with_stop(hindsight_python: str) -> None:
    """A killed server comes back under its URL with its data; a stopped one leaves neither process nor file."""
    with (
        HindsightServer(hindsight_python, mode="none", key="the key") as server,
        httpx.Client(base_url=server.url, headers={"Authorization": "Bearer the key"}, timeout=SECONDS) as client,
    ):
        assert httpx.get(f"{server.url}/v1/default/banks").status_code == 401
        item = {"content": "the port is 4711", "document_id": "one"}
        client.post("/v1/default/banks/kept/memories", json={"items": [item]}).raise_for_status()
        server.kill()
        with pytest.raises(httpx.ConnectError):
            client.get("/health")
        server.start()
        assert client.get("/v1/default/banks/kept/documents/one").json()["original_text"] == item["content"]

        server.slow_ms = 300
        before = time.monotonic()
        client.post("/v1/default/banks/kept/memories/recall", json={"query": "port"}).raise_for_status()
        assert time.monotonic() - before >= 0.3

        folder = server.folder
        assert folder is not None
        server.stop()
        assert not folder.exists()
        assert _is_free(server.port)
        assert _is_free(server.database_port)


@pytest.mark.real
def test_run_by_hand_it_serves_until_it_is_told_to_end(hindsight_python: str, real_url: str) -> None:
    """The module prints the URL when the server answers, beside a running one, and ends clean on SIGTERM."""
    command = [sys.executable, "-m", "bankclient.testing.hindsight", "--python", hindsight_python, "--mode", "mock"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        try:
            for base, makes_observations in ((url, True), (real_url, False)):
                features = httpx.get(f"{base}/version", timeout=SECONDS).json()["features"]
                assert features["observations"] == makes_observations
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    assert _is_free(int(url.rpartition(":")[2]))
