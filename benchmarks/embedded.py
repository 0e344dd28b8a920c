"""The embedded bank: how recall grows with the memories, and what a batch costs beside bare SQLite."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import tempfile
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bankclient.embedded import EmbeddedServer
from benchmarks.corpus import SHAPES, memories, queries
from benchmarks.measure import compare, cpu_timed, figure, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.measure import Figure, Stopwatch

__all__ = ["batch", "recall_growth"]

_PATH = "/v1/default/banks/b/memories"
_BATCH = 1_000
_QUERIES = 12
_OK = 200


def recall_growth(sizes: Sequence[int] = (1_000, 10_000, 100_000), rounds: int = 48) -> Iterator[Figure]:
    """Compare a recall in a bank with one in a smaller bank, in processor time; 1 is growth in step with its size."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = [stack.enter_context(EmbeddedServer(folder / str(size) / "bank")) for size in sizes]
        for server, size in zip(servers, sizes, strict=True):
            for start in range(0, size, _BATCH):
                _send(server, _PATH, {"items": memories(min(_BATCH, size - start), start)})
        for shape in SHAPES:
            times = compare(rounds, *(_recalling(server, shape) for server in servers))
            for at in range(1, len(sizes)):
                yield figure(
                    f"recall of {shape}, {sizes[at]:,} memories",
                    f"the same in {sizes[at - 1]:,}, a memory",
                    times[at],
                    times[at - 1],
                    target=1.0,
                    work=sizes[at] / sizes[at - 1],
                )


def batch(rounds: int = 40, size: int = _BATCH) -> Iterator[Figure]:
    """Compare a retain of 1,000 items with bare SQLite, which puts the same rows into the same tables and indexes.

    Both files grow alike and commit alike (WAL, `synchronous=FULL`); the bare one checks no foreign keys.
    """
    with tempfile.TemporaryDirectory() as folder, EmbeddedServer(Path(folder) / "ours") as server:
        _send(server, _PATH, {"items": memories(1)})
        mirror = _Mirror(Path(folder) / "ours", Path(folder) / "bare")
        mirror.catch_up()
        ours: list[float] = []
        reference: list[float] = []
        for number in range(rounds):
            items = {"items": memories(size, 1 + number * size)}
            ours.append(_send(server, _PATH, items))
            reference.append(mirror.catch_up())
        mirror.close()
    yield figure(f"retain of {size:,} items", "bare SQLite", ours, reference, target=3.0)


class _Mirror:
    """A bare SQLite file that takes in what a bank's file has gained: documents, memories and the search index."""

    def __init__(self, source: Path, path: Path) -> None:
        self._source = sqlite3.connect(source)
        self._bare = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -16000"):
            self._bare.execute(f"PRAGMA {pragma}")
        # A search index keeps its rows in tables that it makes itself.
        made = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'search_1_%'"
        for (statement,) in self._source.execute(f"{made} AND name NOT LIKE 'sqlite_%'").fetchall():
            self._bare.execute(statement)
        self._reached = {"documents": 0, "memories": 0, "search_1": 0}

    def catch_up(self) -> float:
        """Put in what is new, in one transaction; return how long that took, without the reading."""
        new = [(table, *self._new(table)) for table in self._reached]
        return timed(lambda: self._insert(new))

    def _new(self, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        statement = f"SELECT rowid AS place, * FROM {table} WHERE rowid > ?"  # noqa: S608 - names of our own tables
        rows = self._source.execute(statement, (self._reached[table],))
        columns = [name for name, *_ in rows.description]
        found = rows.fetchall()
        self._reached[table] = max(row[0] for row in found)
        # A table's own key is its row id.
        return (["rowid", *columns[1:]], found) if "id" not in columns else (columns[1:], [row[1:] for row in found])

    def _insert(self, new: list[tuple[str, list[str], list[tuple[Any, ...]]]]) -> None:
        self._bare.execute("BEGIN IMMEDIATE")
        for table, columns, rows in new:
            places, marks = ",".join(columns), ",".join("?" * len(columns))
            self._bare.executemany(f"INSERT INTO {table} ({places}) VALUES ({marks})", rows)  # noqa: S608 - the same
        self._bare.execute("COMMIT")

    def close(self) -> None:
        """Close both files."""
        self._source.close()
        self._bare.close()


def _recalling(server: EmbeddedServer, shape: str) -> Callable[[], float]:
    """Return what asks the next of some queries, and returns how long that took."""
    asked = cycle([query | {"budget": "mid", "max_tokens": 1024} for query in queries(shape, _QUERIES)])
    return lambda: _send(server, f"{_PATH}/recall", next(asked), cpu_timed)


def _send(server: EmbeddedServer, path: str, body: dict[str, Any], stopwatch: Stopwatch = timed) -> float:
    """Return how long the server took to answer, from bytes to bytes."""
    sent, headers = json.dumps(body).encode(), {"content-type": "application/json"}
    statuses: list[int] = []
    taken = stopwatch(lambda: statuses.append(server.answer("POST", path, sent, headers).status))
    if statuses != [_OK]:
        raise RuntimeError(f"the embedded bank answered {statuses} to {path}")
    return taken
