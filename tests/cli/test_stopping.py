"""Being told to stop: each signal raises once, and what cleans up is left to finish."""

from __future__ import annotations

import os
import signal

import pytest

from bankclient.cli.stopping import stoppable


@pytest.mark.parametrize(
    ("number", "kind"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit)],
)
def test_the_first_signal_raises_and_the_others_do_not(number: signal.Signals, kind: type[BaseException]) -> None:
    """Nothing interrupts what runs after the first, and afterwards all is as it was."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(each) for each in signals]
    cleaned_up: list[signal.Signals] = []

    def run() -> None:
        with stoppable():
            try:
                os.kill(os.getpid(), number)
            finally:
                for each in signals:
                    os.kill(os.getpid(), each)
                    cleaned_up.append(each)

    with pytest.raises(kind) as raised:
        run()
    assert cleaned_up == list(signals)
    assert [signal.getsignal(each) for each in signals] == before
    if kind is SystemExit:
        assert raised.value.args == (128 + number,)


def test_what_was_ignored_stays_ignored() -> None:
    """A program that `nohup` started outlives its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
