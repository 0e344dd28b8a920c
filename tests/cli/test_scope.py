"""`bankclient scope`: the project of a folder, how it was found, and where its memories go; no server is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_it_shows_project_bank_and_tags(cli: Callable[..., Any], repository: Path) -> None:
    """A line for each, in words that a person knows."""
    done = cli("scope")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "project: api\n"
        f"root: {repository}\n"
        "found by: git checkout\n"
        "bank: bankclient\n"
        "retain tags: project:api\n"
        "recall: bank bankclient, what has tags project:api, or none\n"
    )


def test_a_linked_worktree_is_the_same_project(
    cli: Callable[..., Any], git: Callable[..., None], repository: Path, tmp_path: Path
) -> None:
    """--cwd asks about another folder; a worktree elsewhere has the name of its repository, and the root too."""
    git(repository, "worktree", "add", str(tmp_path / "elsewhere"))
    said = cli("scope", "--cwd", str(tmp_path / "elsewhere"), "--json").json()
    assert (said["project"], said["root"]) == ("api", str(repository))
    assert said["how"] == f"linked worktree of {repository} (git checkout)"


def test_json_has_everything(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, repository: Path) -> None:
    """A program gets the same, and what makes it up."""
    monkeypatch.setenv("HINDSIGHT_SCOPING", "per-project")
    assert cli("scope", "--json").json() == {
        "project": "api",
        "root": str(repository),
        "how": "git checkout",
        "resolved": True,
        "scoping": "per-project",
        "bank": "bankclient-api",
        "global_bank": "bankclient",
        "retain_tags": [],
        "recall": [
            {"bank": "bankclient-api", "tags": [], "tags_match": "any"},
            {"bank": "bankclient", "tags": ["project:api"], "tags_match": "any"},
        ],
        "warnings": [],
    }


@pytest.mark.parametrize(
    ("scoping", "recall"),
    [
        ("global", "recall: bank bankclient, everything in it\n"),
        (
            "per-project",
            (
                "recall: bank bankclient-api, everything in it\n"
                "recall: bank bankclient, what has tags project:api, or none\n"
            ),
        ),
    ],
)
@pytest.mark.usefixtures("repository")
def test_what_a_recall_asks_is_said_in_words(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, scoping: str, recall: str
) -> None:
    """Each bank that is asked has a line."""
    monkeypatch.setenv("HINDSIGHT_SCOPING", scoping)
    assert recall in cli("scope").out


@pytest.mark.usefixtures("repository")
def test_warnings_are_part_of_what_is_shown(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Here they stand with the rest, on stdout, and once."""
    monkeypatch.setenv("HINDSIGHT_BANK_ID", "a/b")
    done = cli("scope")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(
        "warning: HINDSIGHT_BANK_ID='a/b' from environment is not used: a bank name holds no '/'; write '-' or '.' in"
        " its place; bankclient (default) stands\n"
    )
    monkeypatch.setenv("HINDSIGHT_DISABLED", "yes")
    monkeypatch.delenv("HINDSIGHT_BANK_ID")
    assert cli("scope", "--json").json()["warnings"] == [
        "bankclient is switched off here, by environment HINDSIGHT_DISABLED"
    ]


def test_a_folder_without_a_project_says_so(cli: Callable[..., Any]) -> None:
    """The root of the file system has no name; the mend is named."""
    done = cli("scope", "--cwd", "/")
    assert done.code == 0
    assert done.out == (
        "project: none\n"
        "root: none\n"
        "found by: unresolved: the folder / has no name\n"
        "bank: bankclient\n"
        "retain tags: none\n"
        "recall: bank bankclient, what has no tags\n"
        "warning: this folder belongs to no project (unresolved: the folder / has no name), so only what counts for all"
        " projects is found; name it with HINDSIGHT_PROJECT or a [[project]] rule\n"
    )


def test_a_rule_for_a_worktree_s_own_folder_holds_there(
    cli: Callable[..., Any], git: Callable[..., None], repository: Path, tmp_path: Path
) -> None:
    """Rules match by the folder itself as well as by the root, also where the client is made."""
    git(repository, "worktree", "add", str(tmp_path / "elsewhere"))
    file = tmp_path / "config" / "bankclient" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'[[project]]\npath = "{tmp_path / "elsewhere"}"\nname = "other"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        assert cli("scope", "--cwd", str(tmp_path / "elsewhere"), "--json").json()["project"] == "other"
        assert cli("scope", "--json").json()["project"] == "api"
        patch.chdir(tmp_path / "elsewhere")
        patch.setenv("HINDSIGHT_API_URL", "embedded")
        assert cli("retain", "x").out.startswith("accepted: bank bankclient, project other, tags project:other, ")
        assert cli("recall", "x").out == "x\n"


def test_a_deleted_current_folder_is_no_crash(
    cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell can stand in a folder that is gone."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = cli("scope")
    assert done.code == 0
    assert "found by: unresolved: cannot read the current folder: No such file or directory\n" in done.out


def test_a_second_folder_of_the_same_name_is_told_of(
    cli: Callable[..., Any], git: Callable[..., None], repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When something is first kept for it, and by scope and doctor from then on; not where the person named it."""
    monkeypatch.setenv("HINDSIGHT_API_URL", "embedded")
    other = tmp_path / "oss" / "api"
    other.mkdir(parents=True)
    git(other, "init")
    assert "share their memories" not in cli("retain", "The port is 4711.").err
    monkeypatch.chdir(other)
    first, second = cli("retain", "The port is 4712."), cli("retain", "The port is 4713.")
    assert f"warning: {repository} is project api too" in first.err
    assert "share their memories" not in second.err
    assert f"{repository} is project api too" in cli("scope").out
    assert f"{repository} is project api too" in cli("doctor").out
    monkeypatch.setenv("HINDSIGHT_PROJECT", "other-api")
    assert "share their memories" not in cli("scope").out
