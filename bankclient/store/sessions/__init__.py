"""Sessions: what agents' events and transcripts say becomes messages, batches and documents, once each.

`Sessions` (`book`) is the face. Behind it `hearing` takes in an event, `reading` a transcript, `listing` a program's
own list; `adopting` joins what they say, `sealing` makes documents of it; `rows` and `upkeep` keep the tables, and
`transcripts` is the one place that opens a file.

Whoever has an event acts in this order; each step is durable when it returns, and may be done again after a crash:

    recorded = sessions.record(event, filing, project, terms, now=now)  # the acknowledgement: answer the hook now
    sealed = sessions.seal(recorded.key, now=now)  # reads the transcript first; "pre_compact" at a compaction
    # sealed.documents: wake the sender; sealed.again_at: sweep then; sealed.taken.unread: say so in the log

A program with messages of its own calls `record` at its start and end, and `take_messages` then `seal` after each turn.
At a process's start, at each `next_due`, and when any session begins: `sweep()`; for a person's flush `sweep("flush")`,
before leaving `sweep("leaving")`. Nothing here sleeps, sends or reads a clock.
"""

from __future__ import annotations

from bankclient.store.sessions.book import DIALECTS, Sessions
from bankclient.store.sessions.model import (
    ANSWER_SECONDS,
    Filing,
    PassedOver,
    Recorded,
    Sealed,
    Session,
    SessionKey,
    Taken,
    Terms,
)
from bankclient.store.sessions.transcripts import Transcript, TranscriptFile, open_transcript

__all__ = [
    "ANSWER_SECONDS",
    "DIALECTS",
    "Filing",
    "PassedOver",
    "Recorded",
    "Sealed",
    "Session",
    "SessionKey",
    "Sessions",
    "Taken",
    "Terms",
    "Transcript",
    "TranscriptFile",
    "open_transcript",
]
