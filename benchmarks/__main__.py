"""Runs the benchmarks: `python -m benchmarks [--list] [--only TEXT] [--json]`; exit 1 where a target is missed."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from typing import TYPE_CHECKING

from benchmarks import client

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.measure import Figure

BENCHMARKS: tuple[Callable[[], Figure], ...] = (client.import_cost, client.recall_sync, client.recall_async)


def _row(figure: Figure) -> str:
    target = "" if figure.target is None else f"  target <= {figure.target}  {'met' if figure.is_met else 'MISSED'}"
    return (
        f"{figure.name}: {figure.ratio:.2f} x {figure.reference_name} (quartiles {figure.low:.2f} to {figure.high:.2f},"
        f" {figure.rounds} rounds; {figure.ours * 1000:.2f} ms and {figure.reference * 1000:.2f} ms){target}"
    )


def main() -> int:
    """Run what was asked for and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the benchmarks")
    parser.add_argument("--only", default="", metavar="TEXT", help="run those whose name holds TEXT")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    chosen = [each for each in BENCHMARKS if options.only in f"{each.__module__}.{each.__name__}"]
    if options.list:
        for each in chosen:
            print(f"{each.__module__}.{each.__name__}: {(each.__doc__ or '').strip()}")
        return 0
    figures: list[Figure] = []
    for each in chosen:
        figures.append(each())
        if not options.json:
            print(_row(figures[-1]), flush=True)
    if options.json:
        machine = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}"
        print(json.dumps({"machine": machine, "figures": [each.as_json() for each in figures]}, indent=2))
    return 0 if all(each.is_met for each in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
