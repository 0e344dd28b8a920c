"""How results are shown: a line each as they come, JSON, or a page that also names the machine they are from."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.disk import fsynced_inserts
from benchmarks.measure import timed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.measure import Benchmark, Figure

__all__ = ["Result", "as_json", "as_line", "as_page", "machine", "name_of"]

_PACKAGES = ("bankclient", "httpx", "pydantic", "detect-secrets")
_INSERTS = 100
_HEAD = """\
# Results

The last full run. Every figure is a ratio to something measured in the same minutes, because machines differ and drift;
the times beside it are medians, the quartiles those of the ratios pair by pair. To repeat:

```
python -m benchmarks --page > benchmarks/RESULTS.md
```

It takes some minutes, a few more with a real server (`BANKCLIENT_HINDSIGHT` or `BANKCLIENT_TEST_URL`). `--list` names
the benchmarks, `--only TEXT` runs some of them, `--json` prints JSON; the exit code is 1 where a target is missed.
"""


@dataclass(frozen=True, slots=True)
class Result:
    """What a benchmark yielded, and why it yielded no more."""

    benchmark: Benchmark
    figures: tuple[Figure, ...] = ()
    not_run: str = ""

    @property
    def is_met(self) -> bool:
        """Whether no figure misses its target."""
        return all(figure.is_met for figure in self.figures)


def name_of(benchmark: Benchmark) -> str:
    """Return the name by which a benchmark is chosen."""
    return f"{benchmark.__module__}.{benchmark.__name__}".removeprefix("benchmarks.")


def machine() -> dict[str, str]:
    """Return what the figures depend on beside our own code; measures the disk for a moment."""
    with tempfile.TemporaryDirectory() as folder, fsynced_inserts(Path(folder) / "file") as insert:
        fsynced = statistics.median(timed(lambda: insert(bytes(500))) for _ in range(_INSERTS))
    load = os.getloadavg()[0]
    return {
        "system": f"{platform.system()} on {platform.machine()}, {os.cpu_count()} processors",
        "load": f"{'shared with other work: ' if load >= 1 else ''}{load:.1f} processes wanted to run at the beginning",
        "Python": f"{platform.python_implementation()} {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        "packages": ", ".join(f"{package} {version(package)}" for package in _PACKAGES),
        "disk": f"an fsynced insert takes {fsynced * 1000:.2f} ms",
    }


def as_line(figure: Figure) -> str:
    """Return a figure for a terminal."""
    target = "" if figure.target is None else f"  target <= {figure.target}  {_verdict(figure)}"
    return (
        f"{figure.name}: {figure.ratio:.2f} x {figure.reference_name} (quartiles {figure.low:.2f} to {figure.high:.2f},"
        f" {figure.rounds} rounds; {_milliseconds(figure)}){target}"
    )


def as_json(results: Sequence[Result], on: Mapping[str, str]) -> dict[str, object]:
    """Return everything as plain values."""
    return {
        "machine": dict(on),
        "figures": [figure.as_json() for result in results for figure in result.figures],
        "not_run": {name_of(result.benchmark): result.not_run for result in results if result.not_run},
    }


def as_page(results: Sequence[Result], on: Mapping[str, str]) -> str:
    """Return everything as a page of Markdown."""
    facts = "\n".join(f"| {name} | {value} |" for name, value in on.items())
    return "\n".join([_HEAD, f"| the machine | |\n|-|-|\n{facts}\n", *map(_section, results)])


def _section(result: Result) -> str:
    said = " ".join((getdoc(result.benchmark) or "").split())
    parts = [f"## {name_of(result.benchmark)}", "", said, ""]
    if result.figures:
        parts += ["| figure | ratio | to | quartiles | medians | rounds | target |", "|-|-|-|-|-|-|-|"]
        parts += map(_table_row, result.figures)
        parts.append("")
    if result.not_run:
        parts += [f"Not run: {result.not_run}.", ""]
    return "\n".join(parts)


def _table_row(figure: Figure) -> str:
    target = "" if figure.target is None else f"<= {figure.target:g}: {_verdict(figure)}"
    quartiles = f"{figure.low:.2f} to {figure.high:.2f}"
    return (
        f"| {figure.name} | {figure.ratio:.2f} | {figure.reference_name} | {quartiles} | {_milliseconds(figure)} |"
        f" {figure.rounds} | {target} |"
    )


def _milliseconds(figure: Figure) -> str:
    return f"{figure.ours * 1000:.2f} ms and {figure.reference * 1000:.2f} ms"


def _verdict(figure: Figure) -> str:
    return "met" if figure.is_met else "MISSED"
