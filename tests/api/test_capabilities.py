"""What a server of some version can do, and how a call is held to it."""

from __future__ import annotations

import dataclasses

import pytest

from bankclient.api import Call, Capabilities, Repeat, calls
from bankclient.errors import InvalidInput

NAMES = [field.name for field in dataclasses.fields(Capabilities) if field.name != "version"]
OPERATION = "5b1f6f2e-6f0e-4c39-8a43-0d2b5f3c9a10"


@pytest.mark.parametrize(
    ("name", "without", "since"),
    [
        ("bank_config", "0.4.10", "0.4.11"),
        ("tag_groups", "0.4.17", "0.4.18"),
        ("append", "0.4.22", "0.5.0"),
        ("operation_cancelled_status", "0.5.4", "0.5.5"),
        ("patch_memory", "0.8.1", "0.8.2"),
        ("exact_tags", "0.8.1", "0.8.2"),
        ("min_scores", "0.8.3", "0.8.4"),
        ("prefer_observations", "0.8.3", "0.8.4"),
        ("delete_operation", "0.8.4", "0.8.5"),
        ("operation_ids", "0.8.5", "0.8.6"),
        ("liveness", "0.9.0", "0.9.1"),
        ("content_blocks", "0.9.2", "0.10.0"),
        ("missing_bank_is_404", "0.10.0", "0.10.1"),
        ("long_query_is_cut", "0.10.2", "0.10.3"),
        ("bank_pages", "0.10.3", "1.0.0"),
    ],
)
def test_each_capability_begins_with_its_version(name: str, without: str, since: str) -> None:
    """The last release without it has it not, its first release and every later one has it."""
    assert getattr(Capabilities.of(without), name) is False
    for version in (since, "1.1.0", "2.0", "10.0.0"):
        assert getattr(Capabilities.of(version), name) is True, version


def test_a_current_server_can_all_and_an_ancient_one_nothing() -> None:
    """No capability is forgotten in the table."""
    for name in NAMES:
        assert getattr(Capabilities.of("1.1.0"), name), name
        assert not getattr(Capabilities.of("0.4.10"), name), name


@pytest.mark.parametrize(
    ("version", "has_operation_ids"),
    [
        ("v0.8.6", True),
        (" 0.8.6\n", True),
        ("0.8.6+build.7", True),
        ("0.8.6.post1", True),
        ("0.9", True),
        ("0.8.6rc1", False),
        ("0.8.6-rc.1", False),
        ("0.8.6.dev3", False),
        ("0.8.6a1", False),
        ("0.8.7.dev3", True),
        ("0.8", False),
        ("0.80.0", True),
    ],
)
def test_versions_in_their_many_spellings(version: str, has_operation_ids: bool) -> None:
    """A `v`, a build or a post-release changes nothing; a pre-release may lack what its release has."""
    assert Capabilities.of(version).operation_ids is has_operation_ids


@pytest.mark.parametrize(
    "version", ["", "main", "1", "one.two.three", "-1.0.0", "1." + "9" * 5000, "\u0661.\u0661.\u0660", "\ud83d"]
)
def test_of_an_unknown_version_nothing_is_taken_for_granted(version: str) -> None:
    """A text that is no version stands for a server that can do nothing newer."""
    capabilities = Capabilities.of(version)
    assert not any(getattr(capabilities, name) for name in NAMES)
    assert capabilities.version == version


PLAIN = calls.recall("lighthouse", "lamp", tags="a")
NEWER: list[tuple[str, Call[object], str, str]] = [
    (
        "append",
        calls.retain("lighthouse", "more", document_id="log/1", update_mode="append"),
        "0.4.22",
        "retain with append needs a server from 0.5.0, and this one is 0.4.22",
    ),
    (
        "groups",
        calls.recall("lighthouse", "lamp", tag_groups=[{"tags": ["a"]}]),
        "0.4.17",
        "recall with tag_groups needs a server from 0.4.18",
    ),
    (
        "exact groups",
        calls.reflect("lighthouse", "lamp", tag_groups=[{"tags": ["a"], "match": "exact"}]),
        "0.4.17",
        "reflect with exact_tags and tag_groups needs a server from 0.8.2",
    ),
    (
        "floors",
        calls.recall("lighthouse", "lamp", min_scores={"final": 0.1}),
        "0.8.3",
        "recall with min_scores needs a server from 0.8.4",
    ),
    (
        "blocks",
        calls.retain("lighthouse", [{"type": "text", "text": "a"}]),
        "",
        "this one is of unknown version: leave it out",
    ),
]


@pytest.mark.parametrize(("call", "version", "message"), [row[1:] for row in NEWER], ids=[row[0] for row in NEWER])
def test_what_an_old_server_would_take_wrongly_is_refused(call: Call[object], version: str, message: str) -> None:
    """An old server would replace instead of append, or find everything instead of what was asked for."""
    with pytest.raises(InvalidInput, match=message):
        Capabilities.of(version).fit(call)
    assert Capabilities.of("1.1.0").fit(call) is call


@pytest.mark.parametrize("version", ["0.4.22", ""])
def test_an_operation_id_protects_no_repeat_on_an_old_server(version: str) -> None:
    """A server that ignores the id would store a repeat again, so there the call is sent once only."""
    call = calls.retain("lighthouse", "text", background=True, operation_id=OPERATION)
    fitted = Capabilities.of(version).fit(call)
    assert fitted.repeat is Repeat.NEVER
    assert fitted.body == call.body
    assert Capabilities.of("0.8.6").fit(call).repeat is Repeat.IDENTIFIED


def test_a_document_of_its_own_protects_a_repeat_on_any_server() -> None:
    """Replacing a document twice ends the same, with or without an id of the operation."""
    call = calls.retain("lighthouse", "text", document_id="d", background=True, operation_id=OPERATION)
    assert Capabilities.of("0.4.22").fit(call).repeat is Repeat.IDENTIFIED


def test_a_call_that_rests_on_nothing_new_is_left_alone() -> None:
    """A plain call goes to any server as it is."""
    assert Capabilities.of("").fit(PLAIN) is PLAIN
