"""A project and settings give a bank and tags; no request finds another project's memories."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bankclient.errors import InvalidInput
from bankclient.names import bank_name_problem
from bankclient.project import Project, clean_name
from bankclient.scope import NO_PROJECT_TAG, Scope, Target, check_bank, escape_bank, recall_filter, scope_of
from bankclient.settings import load

NAMED = Project("general", Path("/code/General"), "git checkout")
UNRESOLVED = Project(None, None, "unresolved: the folder / has no name")
NO_FILE = Path("/nonexistent/config.toml")
MODES = ("any", "all", "any_strict", "all_strict", "exact")


def scope(project: Project = NAMED, **variables: str) -> Scope:
    """Return the scope of `project` under these `HINDSIGHT_*` variables and no others."""
    environ = {f"HINDSIGHT_{name}": value for name, value in variables.items()}
    return scope_of(load(environ=environ, config_file=NO_FILE).settings, project)


# --- the three scopings


def test_tags_keep_projects_apart_by_default() -> None:
    """One bank; what is retained gets the project's tag, and recall asks for it and for the untagged."""
    found = scope()
    tags = ("project:general",)
    assert found == Scope(NAMED, "bankclient", tags, (Target("bankclient", tags, "any"),), "bankclient", resolved=True)
    assert found.retain_target() == Target("bankclient", tags)
    assert found.retain_target("global") == Target("bankclient")


def test_each_project_may_have_a_bank_of_its_own() -> None:
    """With a bank for each project the global bank is asked second, for what no other project tagged as its own."""
    found = scope(SCOPING="per-project", BANK_ID="team")
    asked = (Target("team-general"), Target("team", ("project:general",), "any"))
    assert found == Scope(NAMED, "team-general", (), asked, "team", resolved=True)
    assert found.retain_target() == Target("team-general")
    assert found.retain_target("global") == Target("team")


@pytest.mark.parametrize("project", [NAMED, UNRESOLVED])
def test_global_scoping_knows_no_projects(project: Project) -> None:
    """One bank without tags; an unresolved project changes nothing."""
    found = scope(project, SCOPING="global", BANK_ID="all")
    assert found == Scope(project, "all", (), (Target("all"),), "all", resolved=True)
    assert found.retain_target("project") == found.retain_target("global") == Target("all")


@pytest.mark.parametrize("scoping", ["per-project", "per-project-tagged"])
def test_an_unresolved_project_reads_what_is_global_and_writes_nothing_of_its_own(scoping: str) -> None:
    """Only the untagged memories of the global bank are found, and only a global fact can be filed."""
    found = scope(UNRESOLVED, SCOPING=scoping)
    untagged = (Target("bankclient", (NO_PROJECT_TAG,), "any"),)
    assert found == Scope(UNRESOLVED, "bankclient", (), untagged, "bankclient", resolved=False)
    assert found.retain_target("global") == Target("bankclient")
    with pytest.raises(InvalidInput, match=r"the folder / has no name.*scope=global.*HINDSIGHT_PROJECT"):
        found.retain_target()


@given(st.text())
@example(NO_PROJECT_TAG.removeprefix("project:"))
def test_no_project_bears_the_tag_that_finds_the_untagged(name: str) -> None:
    """Whatever a project is called, the tag for unresolved ones is not its own."""
    assert f"project:{clean_name(name)}" != NO_PROJECT_TAG


@pytest.mark.parametrize(
    ("scoping", "bank", "shared"),
    [
        ("global", "me-team", "me-team"),
        ("per-project-tagged", "me-team", "me-team"),
        ("per-project", "me-team%2Dgeneral", "me-team"),
    ],
)
def test_a_prefix_stands_in_front_of_every_bank(scoping: str, bank: str, shared: str) -> None:
    """The prefix is joined to the base for the project's bank and for the global one."""
    found = scope(SCOPING=scoping, BANK_ID="team", BANK_ID_PREFIX="me")
    assert (found.bank, found.global_bank) == (bank, shared)
    assert {target.bank for target in found.recall} == {bank, shared}


@pytest.mark.parametrize("project", [NAMED, UNRESOLVED])
@pytest.mark.parametrize("given_name", ["Renamed Ż", "  renamed ż\n", "RENAMED Z\u0307"])
def test_a_name_from_the_settings_wins(project: Project, given_name: str) -> None:
    """A given project name replaces git's, cleaned the same way; the root stays, and the reason says so."""
    found = scope(project, PROJECT=given_name)
    expected = Project("renamed ż", project.root, "named by HINDSIGHT_PROJECT or a [[project]] rule")
    assert found.project == expected
    assert found.resolved
    assert found.retain_tags == ("project:renamed ż",)


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_a_blank_name_in_the_settings_is_none(blank: str) -> None:
    """A blank name leaves the project as it was found."""
    assert scope(PROJECT=blank).project == NAMED


def test_bank_and_prefix_that_no_server_takes_are_refused() -> None:
    """Settings made by hand are checked before anything is sent under them."""
    settings = load(environ={}, config_file=NO_FILE).settings
    with pytest.raises(InvalidInput, match="192 bytes"):
        scope_of(settings.model_copy(update={"bank_id": "b" * 100, "bank_id_prefix": "p" * 100}), NAMED)


# --- names of banks


@pytest.mark.parametrize(
    "name", ["a", "a/../b".replace("/", "."), "..", "a?b#c", "a::b", "ż" * 96, "a%2Fb", "projekt-ż é"]
)
def test_banks_that_the_server_takes_are_taken(name: str) -> None:
    """Odd letters are no reason to refuse a bank: they are escaped on the way."""
    assert check_bank(name) == name


@pytest.mark.parametrize("name", ["", "_a", "a/b", "a\nb", "a\x85b", "a\ud83d", "ż" * 97])
def test_banks_that_the_server_refuses_are_refused(name: str) -> None:
    """The error names the bank and says what is wrong with it."""
    problem = bank_name_problem(name)
    assert problem
    with pytest.raises(InvalidInput) as caught:
        check_bank(name)
    assert str(caught.value) == f"bank {name!r}: {problem}"


@pytest.mark.parametrize(
    ("base", "project", "prefix", "bank"),
    [
        ("a", "b", None, "a-b"),
        ("a", "b-c", None, "a-b-c"),
        ("a-b", "c", None, "a-b%2Dc"),
        ("b", "c", "a", "a-b%2Dc"),
        ("a", "b/c", None, "a-b%2Fc"),
        ("a", "100%", None, "a-100%25"),
        ("a%2d", "b", None, "a%252d-b"),
        ("a", "_b", None, "a-_b"),
        ("_a", "b", None, "%5Fa-b"),
        ("a", "b\x85\n", None, "a-b%C2%85%0A"),
        ("a", "projekt-ż é", None, "a-projekt-ż é"),
        ("a", "..", "", "a-.."),
    ],
)
def test_a_projects_bank_is_readable(base: str, project: str, prefix: str | None, bank: str) -> None:
    """Only what the server refuses, `%`, and a joint that could be mistaken stand in percent form."""
    assert escape_bank(base, project, prefix) == bank


def test_names_that_are_too_long_end_in_a_hash() -> None:
    """They keep their beginning, fit the server's limit, are cut between letters, and still differ."""
    banks = [escape_bank("base", "ż" * length + end, None) for length in (95, 96, 500) for end in ("", "x", "/", "//")]
    assert len(set(banks)) == len(banks)
    for bank in banks:
        kept, mark, digest = bank.partition("%23")
        assert mark
        assert len(digest) == 32
        assert kept.startswith("base-żżż")
        assert bank_name_problem(bank) is None
    assert escape_bank("base", "/" * 100, None).partition("%23")[0].removeprefix("base-").replace("%2F", "") == ""


def test_a_name_like_a_hashed_one_is_another_bank() -> None:
    """A project cannot be called so that it gets the bank of one with a long name."""
    base, _, project = escape_bank("base", "x" * 300, None).partition("-")
    assert escape_bank(base, project, None) != f"{base}-{project}"


LETTERS = st.text(alphabet="aż-%/_#2D5F\x85\ud83d\n", max_size=5) | st.text(max_size=3)
PIECES = st.one_of(LETTERS, st.builds(lambda text, times: text * times, LETTERS, st.integers(1, 60)))


@given(st.lists(st.tuples(PIECES, PIECES, st.none() | PIECES), min_size=2, max_size=6))
@example([("a", "b-c", None), ("a-b", "c", None)])
@example([("a-b", "c", None), ("a", "b%2Dc", None), ("a", "b%2dc", None), ("a-b%2Dc", "", None)])
@example([("", "_", None), ("%5F", "", None), ("_", "", None), ("_-", "", None), ("", "-", None)])
@example([("a", "x" * 190, None), ("a", "x" * 191, None), ("a-", "x" * 190, None)])
def test_no_two_pairs_share_a_bank(triples: list[tuple[str, str, str | None]]) -> None:
    """Every pair of base (with its prefix) and project has a bank of its own, and one that the server takes."""
    banks: dict[str, tuple[str, str]] = {}
    for base, project, prefix in triples:
        bank = escape_bank(base, project, prefix)
        assert bank_name_problem(bank) is None
        pair = (f"{prefix}-{base}" if prefix else base, project)
        assert banks.setdefault(bank, pair) == pair


def test_no_two_short_pairs_share_a_bank() -> None:
    """The same over every pair of up to three of the letters that matter."""
    words = ["".join(word) for size in range(4) for word in itertools.product("a-%_2D", repeat=size)]
    assert len({escape_bank(base, project, None) for base in words for project in words}) == len(words) ** 2


# --- what a recall asks for

MINE = Target("bank", ("project:mine",))


@pytest.mark.parametrize(
    ("target", "tags", "tags_match", "fields"),
    [
        (Target("bank"), (), None, {}),
        (Target("bank"), (), "any_strict", {"tags": [], "tags_match": "any_strict"}),
        (Target("bank"), (), "exact", {"tags": [], "tags_match": "exact"}),
        (Target("bank"), ("x",), None, {"tags": ["x"], "tags_match": "any_strict"}),
        (Target("bank"), ("x",), "all", {"tags": ["x"], "tags_match": "all"}),
        (MINE, (), None, {"tags": ["project:mine"], "tags_match": "any"}),
        (MINE, (), "any_strict", {"tags": ["project:mine"], "tags_match": "any_strict"}),
        (MINE, ("x", "project:mine"), "exact", {"tags": ["project:mine", "x"], "tags_match": "exact"}),
    ],
)
def test_one_list_of_tags_where_one_is_enough(
    target: Target, tags: tuple[str, ...], tags_match: str | None, fields: dict[str, object]
) -> None:
    """Without tags on one side, or for exactly one set of tags, no groups are needed."""
    assert recall_filter(target, tags, tags_match) == fields


@pytest.mark.parametrize(
    ("tags_match", "project", "own"),
    [
        (None, "any", "any_strict"),
        ("any", "any", "any"),
        ("all", "any", "all"),
        ("any_strict", "any_strict", "any_strict"),
        ("all_strict", "any_strict", "all_strict"),
    ],
)
@pytest.mark.parametrize("tags", [("xyz",), "xyz"])
def test_own_tags_narrow_the_project(
    tags: tuple[str, ...] | str, tags_match: str | None, project: str, own: str
) -> None:
    """The project's tags and the caller's must both match, each in its own mode; one tag may be a plain string."""
    groups = [{"tags": ["project:mine"], "match": project}, {"tags": ["xyz"], "match": own}]
    assert recall_filter(MINE, tags, tags_match) == {"tag_groups": groups}


def matches(memory: set[str], tags: list[str], mode: str) -> bool:
    """Say whether the server finds a memory with these tags, as tried on it."""
    if mode == "exact":
        return memory == set(tags)
    if not tags:
        return True
    hit = set(tags) <= memory if mode.startswith("all") else bool(set(tags) & memory)
    return hit or (not memory and "strict" not in mode)


def finds(fields: dict[str, Any], memory: set[str]) -> bool:
    """Say whether a request with these fields finds a memory with these tags."""
    if "tag_groups" in fields:
        return all(matches(memory, group["tags"], group["match"]) for group in fields["tag_groups"])
    return matches(memory, fields.get("tags", []), fields.get("tags_match", "any"))


TAGS = st.lists(st.sampled_from(["project:mine", "project:other", "x", "y", NO_PROJECT_TAG.lower()]), max_size=4)


@given(
    target=st.sampled_from([MINE, Target("bank", (NO_PROJECT_TAG,))]),
    tags=TAGS,
    tags_match=st.none() | st.sampled_from(MODES),
    memory=st.sets(st.sampled_from(["project:mine", "project:other", "x", "y"])),
)
def test_no_filter_finds_another_projects_memories(
    target: Target, tags: list[str], tags_match: str | None, memory: set[str]
) -> None:
    """Whatever a caller asks for, a memory that is found has the project's tag or none at all, and the caller's."""
    if finds(recall_filter(target, tags, tags_match), memory):
        assert not memory or set(target.tags) & memory
        assert not tags or tags_match == "exact" or matches(memory, tags, tags_match or "any_strict")
