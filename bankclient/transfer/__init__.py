"""Taking the embedded bank to a Hindsight server: all of it as JSON lines, and these lines into a server.

`lines` is the file's format, `outgoing` writes it from the embedded bank, `incoming` sends it through a client. It
prints nothing, and knows no command.
"""

from __future__ import annotations

from bankclient.transfer.incoming import Failure, Importer, Report
from bankclient.transfer.outgoing import Exported, export

__all__ = ["Exported", "Failure", "Importer", "Report", "export"]
