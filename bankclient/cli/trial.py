"""The doctor's trial of writing: a text is retained, recalled and deleted, in a bank that is gone afterwards.

It writes nowhere else, and cleans up whatever happens, also on Ctrl-C.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from bankclient.cli.failures import Failure, explain
from bankclient.cli.findings import Finding, fine, problem
from bankclient.errors import BankclientError

if TYPE_CHECKING:
    from bankclient import BankClient

__all__ = ["try_writing"]

_DOCUMENT: Final = "trial"


@dataclass(slots=True)
class _Trial:
    client: BankClient
    bank: str = field(default_factory=lambda: f"bankclient-doctor-{uuid4().hex}")
    operation: str = field(default_factory=lambda: str(uuid4()))
    findings: list[Finding] = field(default_factory=list[Finding])


def try_writing(client: BankClient) -> list[Finding]:
    """Return what came of a retain, a recall and a delete; the first that fails is the last that was tried."""
    trial = _Trial(client)
    try:
        for name, step in (("retain", _retain), ("recall", _recall), ("delete", _delete)):
            try:
                trial.findings.append(step(trial))
            except BankclientError as error:
                trial.findings.append(problem(name, explain(error)))
            if trial.findings[-1].state != "ok":
                break
    finally:
        _clean_up(trial)
    return trial.findings


def _retain(trial: _Trial) -> Finding:
    trial.client.retain(
        "The doctor of bankclient keeps a jar of quartz pebbles on the windowsill.",
        scope="global",
        document_id=_DOCUMENT,
        background=True,
        operation_id=trial.operation,
        bank=trial.bank,
    )
    limit = trial.client.settings.retain_timeout_ms / 1000
    trial.client.operations.wait(trial.operation, timeout=limit, bank=trial.bank)
    return fine("retain", "a text was stored, in a bank made for this")


def _recall(trial: _Trial) -> Finding:
    if trial.client.recall("Who keeps quartz pebbles on the windowsill?", bank=trial.bank).results:
        return fine("recall", "it was found")
    failure = Failure(
        "the text was stored, and is not found",
        "the server drew no fact from it, or cannot search: its log says more",
    )
    return problem("recall", failure)


def _delete(trial: _Trial) -> Finding:
    trial.client.documents.delete(_DOCUMENT, bank=trial.bank)
    return fine("delete", "it was deleted")


def _clean_up(trial: _Trial) -> None:
    # What is still under way would make the bank once more.
    with suppress(BankclientError):
        trial.client.operations.cancel(trial.operation, bank=trial.bank)
    try:
        trial.client.banks.delete(trial.bank)
    except BankclientError as error:
        failure = Failure(
            f"the bank {trial.bank} of this trial could not be deleted ({explain(error).what})", "delete it"
        )
        trial.findings.append(problem("clean-up", failure))
