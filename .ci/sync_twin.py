"""Writes the sync client from the async one: `python .ci/sync_twin.py` after a change in `bankclient/client/aio`.

The two differ in the words of this table and nowhere else; a test compares what this makes with what is committed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "bankclient" / "client"
NOTE = "# Made from the async client by .ci/sync_twin.py: change that one.\n"
WORDS = (
    (r"\basync def\b", "def"),
    (r"\basync with\b", "with"),
    (r"\basync for\b", "for"),
    (r"\bawait ", ""),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\bAbstractAsyncContextManager\b", "AbstractContextManager"),
    (r"\bAsyncGenerator\[([^\n]+), None\]", r"Generator[\1, None, None]"),
    (r"\bAsyncGenerator\b", "Generator"),
    (r"\bAsyncRetrying\b", "Retrying"),
    (r"\bAsync([A-Z]\w+)", r"\1"),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\bAwaitable\[None\]", "None"),
    (r"\bAwaitable, ", ""),
    (r"\bclient\.aio\b", "client.sync"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bimport asyncio\n", "import time\n"),
    (r"\bfrom several event loops, and\b", "and"),
    (r"\bseveral tasks\b", "several threads"),
)


def make(source: str) -> str:
    """Return the sync twin of an async module's text, not yet formatted."""
    for pattern, replacement in WORDS:
        source = re.sub(pattern, replacement, source)
    return NOTE + source


def main() -> int:
    """Write every module of the twin, formatted."""
    target = PACKAGE / "sync"
    target.mkdir(exist_ok=True)
    for module in sorted((PACKAGE / "aio").glob("*.py")):
        (target / module.name).write_text(make(module.read_text(encoding="utf-8")), encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "check", "-q", "--fix", "--select", "I", str(target)], check=True)
    subprocess.run([*ruff, "format", "-q", str(target)], check=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
