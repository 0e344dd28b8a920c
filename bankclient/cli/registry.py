"""Which commands there are: their names, in the order of the help, and what each does in a few words.

A command's module has an `app` made by `options.new_app`.
"""

from __future__ import annotations

from keyword import iskeyword
from types import MappingProxyType

__all__ = ["COMMANDS", "module_of"]

COMMANDS = MappingProxyType(
    {
        "retain": "put a text into memory",
        "recall": "find memories",
        "reflect": "have a question answered from memory",
        "queue": "show what waits to be sent, try it again, drop it",
        "flush": "send what waits, and see it stored",
        "scope": "show which project and bank this folder belongs to",
        "status": "show the server, the banks and what is under way",
        "doctor": "check settings, server, key and project, and say how to mend what is wrong",
        "demo": "show in a few seconds what this does, with nothing configured",
        "serve": "answer the Hindsight API on this machine, from the embedded bank",
        "export": "write the embedded bank to a file",
        "import": "send such a file to a Hindsight server",
    }
)


def module_of(name: str) -> str:
    """Return the module of a command: for `some-name` that is `some_name`, for `import`, a keyword, `import_`."""
    return f"bankclient.cli.{name.replace('-', '_')}" + ("_" if iskeyword(name) else "")
