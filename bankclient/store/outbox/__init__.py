"""The outbox: what is acknowledged here is stored on its server once, whatever dies in between.

`Outbox` is the face (`face`), `SqliteOutbox` keeps it on the disk, `bankclient.testing.outbox` in memory. The rest is
pure: `states` is the life of a batch as a table, `answers` what a server's answer means, `sealing` the bytes.

Who captures (a session, a command, the proxy) calls `add_fact`, `add_session` or `add_request`, in a transaction of
its own where more must become durable with it: the return is the acknowledgement. Who sends does, for each destination
whose key it has:

    outbox.seal(now=now)
    if lease := outbox.lease(destination, holder=holder, seconds=20.0, now=now):
        while job := outbox.claim(lease, now=now):
            answer = ...  # by job.step, over the network; renew the lease meanwhile
            outbox.settle(job, answer, now=now, jitter=random())
        outbox.release(lease)
    wake_at = outbox.next_due(destination, now=now)

No transaction is open while the network is asked. The steps: DISCARD deletes `job.operation` on the server, SEND posts
`job.body`, RETRY and POLL are about `job.operation`. Before it answers a POLL with `Completed` or `NotFound`, the
sender deletes those of `job.documents` that are forgotten.
"""

from __future__ import annotations

from bankclient.store.outbox.face import Outbox, Queue
from bankclient.store.outbox.model import (
    Added,
    Address,
    Batch,
    Destination,
    Document,
    Forgotten,
    Job,
    Kind,
    Lane,
    Lease,
    Limits,
    Loss,
    Overview,
    Progress,
    Tally,
)
from bankclient.store.outbox.sqlite import SqliteOutbox
from bankclient.store.outbox.states import State, Step

__all__ = [
    "Added",
    "Address",
    "Batch",
    "Destination",
    "Document",
    "Forgotten",
    "Job",
    "Kind",
    "Lane",
    "Lease",
    "Limits",
    "Loss",
    "Outbox",
    "Overview",
    "Progress",
    "Queue",
    "SqliteOutbox",
    "State",
    "Step",
    "Tally",
]
