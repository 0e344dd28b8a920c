"""A real Hindsight server on loopback, for tests: started, killed and thrown away, several at once if need be.

It owns the processes and the temporary folder: Postgres, the Hindsight API, and a stand-in for an embedding model, so
that nothing is downloaded. It knows nothing of the client. `python -m bankclient.testing.hindsight` starts one by hand.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import math
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from bankclient.testing.answers import Reply
from bankclient.testing.scripted import ScriptedRequest, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn, Self

__all__ = ["HindsightServer", "Mode"]

Mode = Literal["chunks", "mock", "none"]
"""`chunks`: each item's text becomes a fact as it is, so that results are exact; `mock`: a mock LLM extracts facts;
`none`: without an LLM, as a server is that has none configured."""

_VECTOR_SIZE = 384
_NOBODY = 65534
_ROOT = "/tmp"  # noqa: S108 - Postgres refuses root: another user must be able to enter, a private TMPDIR keeps it out
_FIND = "import importlib.util as u; print(u.find_spec('pg0').origin, u.find_spec('hindsight_api').origin, sep='\\n')"
_RUN = "import sys; from hindsight_api.main import main; sys.argv = ['hindsight-api']; main()"
_FAST_AND_UNSAFE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "unix_socket_directories=")
_POLL, _STOP = 0.1, 20.0


class _User(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


class HindsightServer:
    """One Hindsight server of its own, with an empty database; a context manager that starts and stops it.

    `python` is the interpreter of an environment with the extra `hindsight`. `key` makes the server demand this API
    key, `slow_ms` delays each embedding (so each recall and synchronous retain) and may be changed at any time,
    `environment` is added to the server's own. `url` is fixed at construction, on a free port unless `port` is given.
    `folder` holds its logs while it runs.
    """

    def __init__(
        self,
        python: str | os.PathLike[str],
        *,
        mode: Mode = "chunks",
        key: str | None = None,
        slow_ms: int = 0,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.slow_ms = slow_ms
        self.port = port or _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._python = os.path.abspath(python)  # noqa: PTH100 - a link is not followed: it is its environment
        self._mode = mode
        self._key = key
        self._extra = dict(environment or {})
        self.folder: Path | None = None
        self._embeddings: ScriptedServer | None = None
        self._database: subprocess.Popen[bytes] | None = None
        self.database_port = 0
        self._api: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, timeout: float = 120.0) -> Self:
        """Start the server, after `kill` with the data it had, and wait until it answers.

        Raises `RuntimeError`, with the end of the log, where that fails or takes longer than `timeout` seconds.
        """
        try:
            self._start(time.monotonic() + timeout)
        except BaseException:
            self.stop()
            raise
        return self

    def kill(self) -> None:
        """Kill the API's process with SIGKILL, as a crash would; its database stays. `start` brings it back."""
        if self._api is not None:
            _end(self._api, signal.SIGKILL)
            self._api = None

    def wait(self) -> None:
        """Wait until the API's process ends by itself, or is killed."""
        if self._api is not None:
            self._api.wait()

    def stop(self) -> None:
        """End all processes and delete the data; nothing happens where nothing runs."""
        self.kill()
        if self._database is not None:
            _end(self._database, signal.SIGQUIT)  # Postgres' immediate shutdown: the data goes anyway
            self._database = None
        if self._embeddings is not None:
            self._embeddings.close()
            self._embeddings = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def _start(self, until: float) -> None:
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="hindsight-", dir=_ROOT))
        if self._embeddings is None:
            self._embeddings = ScriptedServer(handler=self._embed)
        if self._database is None:
            self._start_database(self.folder, until)
        if self._api is None or self._api.poll() is not None:
            self._api = self._start_api(self.folder, self._embeddings)
        while not _is_healthy(self.port):
            if not _still_runs(self._api, until):
                raise RuntimeError(f"the Hindsight server did not come up:\n{_tail(self.folder / 'api.log')}")

    def _start_database(self, folder: Path, until: float) -> None:
        found = subprocess.run([self._python, "-c", _FIND], capture_output=True, text=True, check=False)  # noqa: S603 - the caller's own Python
        if found.returncode:
            raise RuntimeError(
                f"{self._python} has no Hindsight server: pip install 'bankclient[hindsight]' in its environment"
            )
        # The package may lie where the unprivileged user cannot go.
        pg0 = shutil.copy(Path(found.stdout.splitlines()[0]).parent / "bin" / "pg0", folder / "pg0")
        home = folder / "postgres"
        home.mkdir()
        folder.chmod(0o755)
        as_root = os.geteuid() == 0
        user: _User = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if as_root else {}
        if as_root:
            os.chown(home, _NOBODY, _NOBODY)
        self.database_port = _free_port(other_than=self.port)
        environment = {"HOME": str(home), "PATH": os.defpath, "LC_ALL": "C"}
        log = folder / "postgres.log"

        def run_pg0(*words: str) -> int:
            with log.open("ab") as out:
                return subprocess.call(  # noqa: S603 - the program of the caller's own environment
                    [pg0, *words], cwd="/", env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **user
                )

        # pg0 unpacks Postgres and makes the database, but its server is a daemon. Ours is a child of this process,
        # so that the id we signal cannot have become another program's.
        try:
            if run_pg0("start", "--name", "test", "-p", str(self.database_port), "-d", str(home / "data")):
                raise RuntimeError(f"Postgres could not be set up:\n{_tail(log)}")
        finally:
            run_pg0("stop", "--name", "test")
        installation = next((home / ".pg0" / "installation").iterdir())
        # Its libraries lie beside it, and it does not know where that is.
        environment["LD_LIBRARY_PATH"] = str(installation / "lib")
        options = [word for option in _FAST_AND_UNSAFE for word in ("-c", option)]
        at = ["-h", "127.0.0.1", "-p", str(self.database_port)]
        with log.open("ab") as out:
            database = subprocess.Popen(  # noqa: S603 - the program that was just unpacked
                [installation / "bin" / "postgres", "-D", home / "data", *at, *options],
                cwd="/",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                **user,
            )
            self._database = database  # from here on `stop` knows of it
            ready = [str(installation / "bin" / "pg_isready"), "-q", *at]
            while subprocess.call(ready, env=environment, stdout=out, stderr=out):  # noqa: S603 - the same
                if not _still_runs(database, until):
                    raise RuntimeError(f"Postgres did not come up:\n{_tail(log)}")

    def _start_api(self, folder: Path, embeddings: ScriptedServer) -> subprocess.Popen[bytes]:
        environment = {
            "HOME": str(folder),
            "PATH": os.defpath,
            "LC_ALL": "C.UTF-8",
            "HINDSIGHT_API_HOST": "127.0.0.1",
            "HINDSIGHT_API_PORT": str(self.port),
            "HINDSIGHT_API_DATABASE_URL": f"postgresql://postgres:postgres@127.0.0.1:{self.database_port}/postgres",
            "HINDSIGHT_API_EMBEDDINGS_PROVIDER": "openai",
            "HINDSIGHT_API_EMBEDDINGS_OPENAI_API_KEY": "none",
            "HINDSIGHT_API_EMBEDDINGS_OPENAI_BASE_URL": f"{embeddings.url}/v1",
            "HINDSIGHT_API_EMBEDDINGS_OPENAI_MODEL": "hashed-words",
            "HINDSIGHT_API_RERANKER_PROVIDER": "rrf",
            "HINDSIGHT_API_LOG_LEVEL": "error",
            "HINDSIGHT_API_WORKER_ID": "test",
            "HINDSIGHT_API_WORKER_POLL_INTERVAL_MS": "50",
            "HINDSIGHT_API_LLM_PROVIDER": "none" if self._mode == "none" else "mock",
        }
        if self._mode == "chunks":
            environment["HINDSIGHT_API_RETAIN_EXTRACTION_MODE"] = "chunks"
            environment["HINDSIGHT_API_ENABLE_OBSERVATIONS"] = "false"
        if self._key is not None:
            environment["HINDSIGHT_API_TENANT_EXTENSION"] = (
                "hindsight_api.extensions.builtin.tenant:ApiKeyTenantExtension"
            )
            environment["HINDSIGHT_API_TENANT_API_KEY"] = self._key
        with (folder / "api.log").open("ab") as out:
            return subprocess.Popen(  # noqa: S603 - the caller's own Python
                [self._python, "-c", _RUN],
                cwd=folder,  # the server reads a `.env` where it is started: here is none
                env=environment | self._extra,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # a Ctrl-C is for the tests, which then stop the server
            )

    def _embed(self, request: ScriptedRequest) -> Reply:
        """Answer as the embeddings endpoint of the OpenAI API does."""
        inputs: str | list[Any] = request.json()["input"]
        texts = [inputs] if isinstance(inputs, str) else [str(item) for item in inputs]
        time.sleep(self.slow_ms / 1000)
        data = [{"object": "embedding", "index": i, "embedding": _vector(text)} for i, text in enumerate(texts)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return Reply(json={"object": "list", "model": "hashed-words", "data": data, "usage": usage})


def _vector(text: str) -> list[float]:
    """Return a unit vector in which texts that share words lie close to each other: a hashed bag of words."""
    numbers = [0.0] * _VECTOR_SIZE
    for word in re.findall(r"\w+", text.lower()):
        digest = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")
        numbers[digest % _VECTOR_SIZE] += 1.0 if digest >> 63 else -1.0
    norm = math.hypot(*numbers)
    return [number / norm for number in numbers] if norm else [1.0] + [0.0] * (_VECTOR_SIZE - 1)


def _free_port(other_than: int = 0) -> int:
    """Return a free port below those that systems give to outgoing connections.

    Of those, one could be taken while the server is down, by the very client that knocks at it.
    """
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        if port == other_than:
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def _is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _still_runs(process: subprocess.Popen[bytes], until: float) -> bool:
    """Wait a moment; return whether the process is alive and its time not over."""
    try:
        process.wait(_POLL)
    except subprocess.TimeoutExpired:
        return time.monotonic() < until
    return False


def _end(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """Signal a child and its group, and wait for it; one that does not go is killed."""
    if process.poll() is None:
        os.killpg(process.pid, how)
        try:
            process.wait(_STOP)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-30:])


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bankclient.testing.hindsight",
        description="Start a real Hindsight server on loopback with an empty bank store, print its URL, and serve until"
        " interrupted. Its data is deleted afterwards.",
    )
    parser.add_argument("--port", type=int, help="where to listen (a free port)")
    parser.add_argument("--mode", choices=get_args(Mode), default="chunks", help="how facts are made (chunks)")
    parser.add_argument("--key", help="demand this API key")
    parser.add_argument("--slow-ms", type=int, default=0, help="delay each embedding by so many milliseconds (0)")
    parser.add_argument(
        "--python",
        default=os.environ.get("BANKCLIENT_HINDSIGHT", sys.executable),
        help="the Python that has the extra `hindsight` ($BANKCLIENT_HINDSIGHT, else this one)",
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _interrupt)
    server = HindsightServer(
        options.python, mode=options.mode, key=options.key, slow_ms=options.slow_ms, port=options.port
    )
    try:
        with server:
            sys.stdout.write(f"{server.url}\n")
            sys.stdout.flush()
            server.wait()
    except KeyboardInterrupt:
        return
    sys.exit("the Hindsight server has ended")


if __name__ == "__main__":
    _main()
