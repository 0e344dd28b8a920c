"""The commands: they build the objects of the floors below, and alone print.

`main` is the program. It imports a command's module, and with it typer and all else, only when that command runs.
"""

from __future__ import annotations

from bankclient.cli.program import main

__all__ = ["main"]
