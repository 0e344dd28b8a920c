"""A snapshot of the bank's file: one moment of it, whoever writes, in order, and nothing made where nothing was."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.embedded.snapshot import SavedBank, open_snapshot
from bankclient.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def retain(call: Callable[..., Any], **documents: str) -> None:
    """Retain texts under document ids."""
    items = [{"document_id": name, "content": text} for name, text in documents.items()]
    assert call("POST", "/memories", {"items": items})[0] == 200


def test_what_is_written_meanwhile_is_not_seen(path: Path, call: Callable[..., Any]) -> None:
    """Documents that come, change and go, and a bank that is deleted, are as they were when the snapshot was opened."""
    retain(call, a="first", b="second", c="third")
    with open_snapshot(path) as snapshot:
        seen = snapshot.documents("bank")
        texts = [next(seen).items[0].content]
        retain(call, b="changed", d="new")
        call("DELETE", "/documents/c")
        call("DELETE", "")
        texts += [document.items[0].content for document in seen]
        assert texts == ["first", "second", "third"]
        assert snapshot.banks == (SavedBank("bank", "bank", {}, documents=3, memories=3),)
    with open_snapshot(path) as snapshot:
        assert snapshot.banks == ()


def test_documents_come_in_the_order_in_which_they_were_first_retained(path: Path, call: Callable[..., Any]) -> None:
    """A document that was retained again keeps its place."""
    retain(call, z="one", a="two", m="three")
    retain(call, z="one, and more")
    with open_snapshot(path) as snapshot:
        assert [document.document_id for document in snapshot.documents("bank")] == ["z", "a", "m"]


def test_a_bank_comes_with_what_was_set_for_it(path: Path, call: Callable[..., Any]) -> None:
    """Name and configuration are the bank's own, without the defaults; what is invalidated is counted."""
    call("PUT", "", {"name": "Orchard", "reflect_mission": "be brief", "retain_chunk_size": 500})
    retain(call, a="first", b="second")
    memory = call("GET", "/memories/list")[1]["items"][0]["id"]
    call("PATCH", f"/memories/{memory}", {"state": "invalidated"})
    with open_snapshot(path) as snapshot:
        (bank,) = snapshot.banks
    assert bank == SavedBank("bank", "Orchard", {"reflect_mission": "be brief", "retain_chunk_size": 500}, 2, 2)


def test_where_there_is_no_bank_none_is_made(path: Path) -> None:
    """A file that is not there is an error that says so, and is not there afterwards either."""
    with (
        pytest.raises(StoreError, match=r"there is no embedded bank yet: .* makes it"),
        open_snapshot(path),
    ):
        pytest.fail("there is nothing to read")
    assert not path.parent.exists()


def test_a_newer_file_is_an_error(path: Path) -> None:
    """What a newer version wrote is not guessed at."""
    path.parent.mkdir(mode=0o700)
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(StoreError, match="written by a newer bankclient"), open_snapshot(path):
        pytest.fail("it was read")
