"""What the log tells of sending: when an outage begins and ends, what is lost, and nothing twice."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from bankclient.store.outbox import Address, Destination, State
from bankclient.testing.answers import Reply, Reset
from bankclient.testing.fake_hindsight import turned_away

if TYPE_CHECKING:
    from tests.flusher.conftest import Rig

NO = Reply(401, json={"detail": "Authentication failed: Invalid API key"})


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what everybody gets to read."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (Reset(), "ConnectionLost", "the connection broke"),
        (NO, "Unauthorized", "answered 401: Authentication failed: Invalid API key"),
        (Reply(503, json={"detail": "full"}), "ServerBusy", "answered 503: full"),
        (Reply(200, body=b"<html>"), "UnexpectedReply", "answered with a body that is not Hindsight's"),
    ],
)
def test_an_outage_is_one_line_and_its_end_another(
    rig: Rig, caplog: pytest.LogCaptureFixture, answer: Reply, kind: str, said: str
) -> None:
    """However often it is tried; the line says what failed, where, in which bank, and how long it took of its time."""
    for text in "abc":
        rig.piece(text)
    rig.fake.fail("retain", *[turned_away(answer)] * 5)
    asyncio.run(rig.flusher().flush(timeout=500, patience=500))
    first, last = warnings(caplog)
    assert first.startswith(f"what is queued waits: {kind}: retain in bank 'bank' at http://hindsight.invalid: {said}")
    assert first.endswith(" s of 60.0 s allowed)")
    assert last.startswith("what is queued for http://hindsight.invalid is sent again, after ")
    assert rig.states() == {State.STORED: 3}


def test_one_batch_in_trouble_is_no_outage(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """It is told to those who debug; what is given up in the end is told to all."""
    caplog.set_level(logging.DEBUG, "bankclient.flusher")
    rig.piece("poison")
    in_use = turned_away(Reply(409, json={"detail": "is already in use"}))
    rig.fake.fail("retain", turned_away(Reply(500, json={"detail": "no"})), in_use, in_use)
    rig.flush(patience=60)
    (given_up,) = warnings(caplog)
    assert given_up == (
        "1 items for bank 'bank' at http://hindsight.invalid are given up: answered 409: is already in use;"
        " `bankclient queue` shows them"
    )
    assert "ServerError: retain in bank 'bank'" in caplog.text


def test_a_key_that_is_missing_is_told_once(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """A flusher that looks again and again says it the first time."""
    rig.piece("one", address=Address(Destination("http://hindsight.invalid", "of an unknown key"), "bank"))
    flusher = rig.flusher()
    for _ in range(3):
        asyncio.run(flusher.flush(timeout=10))
    assert warnings(caplog) == ["1 items for http://hindsight.invalid wait for its key, which is not known here"]


def test_what_is_old_is_sent_all_the_same(rig: Rig) -> None:
    """Age alone drops nothing."""
    rig.piece("one")
    rig.clock.advance(90 * 86_400)
    rig.flush()
    assert rig.states() == {State.STORED: 1}
