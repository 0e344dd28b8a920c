"""How a ratio is taken: the things in turn, many times, and the medians compared.

A machine's speed drifts; what is measured side by side drifts alike. So no figure here is a time alone: each stands
beside its reference, taken in the same minute. This module owns the measuring and the shape of a figure.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TypeAlias

__all__ = ["Benchmark", "Figure", "NotRun", "Stopwatch", "compare", "cpu_timed", "figure", "quickest", "timed"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One result: `ours` and `reference` in seconds (medians), their ratio, its spread, and its upper bound if any.

    `work` says how many times the reference's work ours was; the ratio is for the same work.
    """

    name: str
    ours: float
    reference: float
    reference_name: str
    ratio: float
    low: float
    high: float
    rounds: int
    target: float | None = None
    work: float = 1.0

    @property
    def is_met(self) -> bool:
        """Whether the ratio keeps to its target; a figure without one always does."""
        return self.target is None or self.ratio <= self.target

    def as_json(self) -> dict[str, object]:
        """Return the figure for a JSON report."""
        return {**asdict(self), "met": self.is_met}


Benchmark: TypeAlias = Callable[[], Iterator[Figure]]
"""Yields its figures; its first line of documentation says what it measures."""

Stopwatch: TypeAlias = Callable[[Callable[[], object]], float]
"""`timed` or `cpu_timed`."""


class NotRun(Exception):
    """A benchmark cannot be run here; the message says what it needs."""


def timed(work: Callable[[], object]) -> float:
    """Return how long `work` takes, in seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def cpu_timed(work: Callable[[], object]) -> float:
    """Return for how long `work` keeps this process's processors busy, in seconds, whatever else the machine does."""
    began = time.process_time()
    work()
    return time.process_time() - began


def compare(rounds: int, *works: Callable[[], float]) -> list[list[float]]:
    """Return the times of each, taken in turn after one round that does not count; each returns seconds.

    Every other round goes backwards, so that none profits from its place.
    """
    for work in works:
        work()
    gc.collect()
    times: list[list[float]] = [[] for _ in works]
    for number in range(rounds):
        pairs = list(zip(works, times, strict=True))
        for work, taken in pairs if number % 2 else reversed(pairs):
            taken.append(work())
    return times


def quickest(times: list[float]) -> list[float]:
    """Return the quickest tenth: what it takes while nobody else uses the disk."""
    return sorted(times)[: max(1, len(times) // 10)]


def figure(
    name: str,
    reference_name: str,
    ours: list[float],
    reference: list[float],
    *,
    target: float | None = None,
    work: float = 1.0,
) -> Figure:
    """Return the figure for two series: the ratio of the medians, and the quartiles of the ratios pair by pair."""
    ratios = [a / b / work for a, b in zip(ours, reference, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    mine, other = statistics.median(ours), statistics.median(reference)
    return Figure(name, mine, other, reference_name, mine / other / work, low, high, len(ours), target, work)
