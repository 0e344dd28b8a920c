"""How a ratio is taken: the two things in turn, many times, and the medians compared.

A machine's speed drifts; what is measured side by side drifts alike. So no figure here is a time alone: each stands
beside its reference, taken in the same minute. This module owns the measuring and the shape of a figure.
"""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Figure", "compare", "figure", "timed"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One result: `ours` and `reference` in seconds (medians), their ratio, its spread, and its upper bound if any."""

    name: str
    ours: float
    reference: float
    reference_name: str
    ratio: float
    low: float
    high: float
    rounds: int
    target: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the ratio keeps to its target; a figure without one always does."""
        return self.target is None or self.ratio <= self.target

    def as_json(self) -> dict[str, object]:
        """Return the figure for a JSON report."""
        return {**asdict(self), "met": self.is_met}


def timed(work: Callable[[], object]) -> float:
    """Return how long `work` takes, in seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def compare(ours: Callable[[], float], reference: Callable[[], float], rounds: int) -> tuple[list[float], list[float]]:
    """Return the times of both, taken in turn after one round that does not count; each returns seconds."""
    ours()
    reference()
    gc.collect()
    pairs = [(ours(), reference()) if number % 2 else (reference(), ours())[::-1] for number in range(rounds)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def figure(
    name: str, reference_name: str, ours: list[float], reference: list[float], target: float | None = None
) -> Figure:
    """Return the figure for two series: the ratio of the medians, and the quartiles of the ratios pair by pair."""
    ratios = [a / b for a, b in zip(ours, reference, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    mine, other = statistics.median(ours), statistics.median(reference)
    return Figure(name, mine, other, reference_name, mine / other, low, high, len(ours), target)
