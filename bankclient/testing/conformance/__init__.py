"""What a Hindsight API server does, as checks that run on any: the real one, the embedded bank, one of your own.

Each check is a function of a `Probe`, which knows how to send a request and which bank is the check's own. Where two
servers may differ, the check asks `differences`.
"""

from __future__ import annotations

from bankclient.testing.conformance import banks, documents, memories, operations, recall, reflect, retain, tags, wire
from bankclient.testing.conformance.differences import DIFFERENCES, Difference
from bankclient.testing.conformance.probe import Answer, Check, Probe

__all__ = ["CHECKS", "DIFFERENCES", "Answer", "Check", "Difference", "Probe"]

CHECKS: tuple[Check, ...] = tuple(
    check
    for module in (banks, documents, memories, operations, recall, reflect, retain, tags, wire)
    for name, check in sorted(vars(module).items())
    if name.startswith("check_")
)
"""Every check, to be run each on a probe with a fresh bank."""
