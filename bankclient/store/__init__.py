"""Everything durable of ours, in one SQLite file of the state folder.

`database` owns the file, `schema` its tables, `sessions` what was said and how far it was read, `outbox` what waits to
be sent, `fingerprint` how a key is named without being kept. Nothing here knows the network, the clock or the settings:
time is an argument.
"""

from __future__ import annotations

__all__: list[str] = []
