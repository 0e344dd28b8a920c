"""Scopes on a real server: it keeps projects apart as the filters mean it to, and takes the banks we name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx
import pytest

from bankclient.project import Project
from bankclient.scope import Scope, Target, escape_bank, recall_filter, scope_of
from bankclient.settings import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.real

UNRESOLVED = Project(None, None, "unresolved: the folder / has no name")
ALIEN = {"other", "other+x"}
MEMORIES = {
    "untagged": (),
    "mine": ("project:mine",),
    "mine+x": ("project:mine", "x"),
    "other": ("project:other",),
    "other+x": ("project:other", "x"),
    "both": ("project:mine", "project:other"),
    "x": ("x",),
}


def path(bank: str) -> str:
    """Return a bank's name as one segment of a path."""
    return quote(bank, safe="")


class Server:
    """The few requests that these tests make."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/v1/default/banks/", timeout=60.0, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def put(self, bank: str) -> httpx.Response:
        """Create a bank."""
        return self._http.put(path(bank), json={})

    def delete(self, bank: str) -> None:
        """Delete a bank."""
        self._http.delete(path(bank)).raise_for_status()

    def retain(self, target: Target, name: str, tags: Sequence[str] = ()) -> None:
        """File a memory with the target's tags and these, under its name as document."""
        item = {"content": f"the port is {name}", "document_id": name, "tags": [*target.tags, *tags]}
        self._http.post(f"{path(target.bank)}/memories", json={"items": [item]}).raise_for_status()

    def recall(self, target: Target, tags: Sequence[str] = (), tags_match: str | None = None) -> set[str]:
        """Return the names of the memories that a filtered recall finds."""
        body = {"query": "the port is", **recall_filter(target, tags, tags_match)}
        reply = self._http.post(f"{path(target.bank)}/memories/recall", json=body).raise_for_status()
        return {result["document_id"] for result in reply.json()["results"]}


@pytest.fixture
def server(real_url: str) -> Iterator[Server]:
    """Give a server to talk to."""
    server = Server(real_url)
    yield server
    server.close()


def scope(project: str | Project, bank: str, scoping: str) -> Scope:
    """Return the scope of a project on this bank."""
    environ = {"HINDSIGHT_BANK_ID": bank, "HINDSIGHT_SCOPING": scoping}
    found = Project(project, Path("/code"), "git checkout") if isinstance(project, str) else project
    return scope_of(load(environ=environ, config_file=Path("/nonexistent/config.toml")).settings, found)


def test_filters_keep_other_projects_out(server: Server, bank: str) -> None:
    """In a bank that projects share, each caller's tags and mode find what they should, and nothing of another's."""
    for name, tags in MEMORIES.items():
        server.retain(Target(bank, tags), name)
    (mine,) = scope("mine", bank, "per-project-tagged").recall
    (nobody,) = scope(UNRESOLVED, bank, "per-project-tagged").recall
    own, untagged = {"mine", "mine+x", "both"}, {"untagged"}
    asked: list[tuple[Target, tuple[str, ...], str | None, set[str]]] = [
        (mine, (), None, own | untagged),
        (mine, (), "all", own | untagged),
        (mine, (), "any_strict", own),
        (mine, (), "all_strict", own),
        (mine, (), "exact", {"mine"}),
        (mine, ("x",), None, {"mine+x"}),
        (mine, ("x",), "any", {"mine+x"} | untagged),
        (mine, ("x",), "all", {"mine+x"} | untagged),
        (mine, ("x",), "any_strict", {"mine+x"}),
        (mine, ("x", "project:mine"), "all_strict", {"mine+x"}),
        (mine, ("x",), "exact", {"mine+x"}),
        (mine, ("project:other",), None, {"both"}),
        (mine, ("project:other", "x"), "any", {"both", "mine+x"} | untagged),
        (nobody, (), None, untagged),
        (nobody, (), "any_strict", set()),
        (nobody, ("x",), None, set()),
        (nobody, ("x", "project:other"), "any", untagged),
        (nobody, ("project:other",), "exact", set()),
        (Target(bank), (), None, set(MEMORIES)),
        (Target(bank), (), "any_strict", set(MEMORIES)),
        (Target(bank), (), "exact", untagged),
        (Target(bank), ("x",), None, {"mine+x", "other+x", "x"}),
    ]
    found = [(target, tags, mode, server.recall(target, tags, mode)) for target, tags, mode, _ in asked]
    assert found == asked
    assert not any(names & ALIEN for target, _, _, names in found if target.tags)


@pytest.mark.parametrize("scoping", ["per-project", "per-project-tagged"])
def test_projects_share_what_is_global_and_nothing_else(server: Server, bank: str, scoping: str) -> None:
    """A project finds its own and the global memories, an unresolved one only the global, under either scoping."""
    one, two = (scope(name, bank, scoping) for name in ("one", "two/x-%"))
    try:
        server.retain(one.retain_target(), "of one")
        server.retain(two.retain_target(), "of two")
        server.retain(two.retain_target("global"), "of all")
        server.retain(scope("two/x-%", bank, "per-project-tagged").retain_target(), "of two, tagged")
        found = [set.union(*map(server.recall, each.recall)) for each in (one, two, scope(UNRESOLVED, bank, scoping))]
        assert found == [{"of one", "of all"}, {"of two", "of two, tagged", "of all"}, {"of all"}]
    finally:
        for name in {one.bank, two.bank} - {bank}:
            server.delete(name)


@pytest.mark.parametrize(
    "project", ["projekt-ż é", "a/b", "..", "a?b#c", "a::b", "_a", "a\x85\n", "100%", "a%2fb", "ż" * 200, "👩‍👩‍👧"]
)
def test_the_server_takes_every_projects_bank(server: Server, bank: str, project: str) -> None:
    """A bank for any project's name is created under exactly that name."""
    name = escape_bank(bank, project, None)
    try:
        reply = server.put(name)
        assert (reply.status_code, reply.json()["bank_id"]) == (200, name)
    finally:
        server.delete(name)
