"""The official client's part, run by a Python that has it and need not have ours.

Given the server's URL, it does one recall for each line of its input, and prints how many seconds that took.
"""

from __future__ import annotations

import importlib
import sys
import time

__all__ = ["main"]


def main() -> None:
    """Serve until the input ends."""
    client = importlib.import_module("hindsight_client").Hindsight(base_url=sys.argv[1])
    for _ in sys.stdin:
        began = time.perf_counter()
        client.recall(bank_id="b", query="which port did we pick", max_tokens=1024)
        print(time.perf_counter() - began, flush=True)
    client.close()


if __name__ == "__main__":
    main()
