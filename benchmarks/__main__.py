"""Runs the benchmarks: `python -m benchmarks [--list] [--only TEXT] [--json | --page]`.

Exit code 1 where a target is missed. One that cannot be run here is named, with what it needs.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from benchmarks import client, embedded, flusher, outbox, peer, real, sessions, turns
from benchmarks.measure import NotRun
from benchmarks.report import Result, as_json, as_line, as_page, machine, name_of

if TYPE_CHECKING:
    from typing import TextIO

    from benchmarks.measure import Benchmark, Figure

BENCHMARKS: tuple[Benchmark, ...] = (
    client.import_cost,
    client.recall_sync,
    client.recall_async,
    peer.beside_the_official_client,
    embedded.recall_growth,
    embedded.batch,
    real.recall_beside_server,
    turns.redaction,
    turns.reading,
    sessions.acknowledgement,
    sessions.long_transcript,
    outbox.acknowledgement,
    flusher.flush,
)


def main() -> int:
    """Run what was asked for and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="name the benchmarks")
    parser.add_argument("--only", default="", metavar="TEXT", help="run those whose name holds TEXT")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print JSON")
    shape.add_argument("--page", action="store_true", help="print the page of RESULTS.md")
    options = parser.parse_args()
    chosen = [each for each in BENCHMARKS if options.only in name_of(each)]
    if options.list:
        for each in chosen:
            print(name_of(each), (each.__doc__ or "").partition("\n")[0], sep=": ")
        return 0
    on = machine()
    # What is meant for a file or a program stays free of the lines for a person who waits.
    results = [_run(each, sys.stderr if options.json or options.page else sys.stdout) for each in chosen]
    if options.json:
        print(json.dumps(as_json(results, on), indent=2))
    if options.page:
        print(as_page(results, on), end="")
    return 0 if all(result.is_met for result in results) else 1


def _run(benchmark: Benchmark, out: TextIO) -> Result:
    """Run it, show each figure as it comes, and return them."""
    figures: list[Figure] = []
    not_run = ""
    try:
        for figure in benchmark():
            figures.append(figure)
            print(as_line(figure), file=out, flush=True)
    except NotRun as reason:
        not_run = str(reason)
        print(f"{name_of(benchmark)} was not run: {reason}", file=out, flush=True)
    return Result(benchmark, tuple(figures), not_run)


if __name__ == "__main__":
    sys.exit(main())
