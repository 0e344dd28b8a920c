"""Helpers for tests, of this package and of programs that use it.

Here are a scripted HTTP server on a real socket, a manual clock, and a real Hindsight server on loopback. Everything
below may be imported here; nothing of the package imports this.
"""

from __future__ import annotations

__all__: list[str] = []
