"""The person's config.toml and its project rules."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.settings import Settings, load

SECRET = "hsk-FAKE-4711"


def test_a_byte_order_mark_at_the_head_of_the_file(config: Path) -> None:
    """An editor's BOM is no fault, nor are its CRLF line ends."""
    config.write_bytes(b"\xef\xbb\xbfbank_id = 'b'\r\ndebug = true\r\n")
    loaded = load()
    assert (loaded.settings.bank_id, loaded.settings.debug, loaded.warnings) == ("b", True, ())


@pytest.mark.parametrize(
    "content",
    [
        b"bank_id = ",
        b"bank_id = b\n",
        b"api_token = '" + SECRET.encode() + b"\n",
        SECRET.encode(),
        b"bank_id = '\xff'",
        "bank_id = 'b'".encode("utf-16"),
        b"a = 1\na = 2",
        b"a = " + b"[" * 100_000,
        b"a = " + b"9" * 5000,
        b"\x00",
    ],
)
def test_a_broken_file_is_one_warning(content: bytes, config: Path) -> None:
    """Of a file that is no TOML nothing counts, and one line names it, without what it holds."""
    config.write_bytes(content)
    loaded = load()
    assert loaded.settings == Settings()
    (warning,) = loaded.warnings
    assert warning.startswith(f"{config} is not TOML in UTF-8 (")
    assert warning.isprintable()
    assert SECRET not in repr(loaded)


def test_files_that_are_no_files(config: Path, tmp_path: Path) -> None:
    """A folder or a FIFO in the file's place is one warning and holds nobody up; a missing file is none."""
    os.mkfifo(tmp_path / "fifo")
    config.mkdir()
    for odd in (config, tmp_path / "fifo"):
        (warning,) = load(config_file=odd).warnings
        assert warning.startswith(f"{odd} is not a file")
    config.rmdir()
    for missing in (config, config / "below"):
        assert load(config_file=missing).warnings == ()
    config.write_text("")
    assert load(config_file=config / "below").warnings == ()


def test_a_file_that_cannot_be_read(config: Path) -> None:
    """A symlink in a circle stands for whatever the system refuses to open: one warning, and the defaults."""
    config.symlink_to(config)
    loaded = load()
    assert loaded.settings == Settings()
    assert [warning.partition(" ")[0] for warning in loaded.warnings] == [str(config)]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("recall_wait", "did you mean recall_wait_ms?"),
        ("HINDSIGHT_BANK_ID", "did you mean bank_id?"),
        ("api-url", "did you mean api_url?"),
        ("zzz", "remove it"),
        ("api_userinfo", "did you mean"),
    ],
)
def test_unknown_keys_warn_with_the_nearest_name(key: str, hint: str, config: Path) -> None:
    """A misspelt key of the file is not passed over in silence; its value, which may be a secret, is not shown."""
    config.write_text(f'{key} = "{SECRET}"\nbank_id = "b"\n')
    loaded = load()
    assert loaded.settings.bank_id == "b"
    (warning,) = loaded.warnings
    assert warning.startswith(f"config.toml has an unknown key {key!r}; {hint}")
    assert SECRET not in repr(loaded)


@given(st.binary() | st.text().map(str.encode))
def test_no_content_of_the_file_raises(content: bytes) -> None:
    """Whatever stands in config.toml, settings come out."""
    file = Path(os.environ["HOME"], "any.toml")
    file.write_bytes(content)
    load(config_file=file)


@given(
    st.dictionaries(
        st.sampled_from([*Settings.model_fields, "api_key", "unknown", "ż\n"]),
        st.recursive(
            st.text(st.characters(exclude_categories=["Cs"])) | st.integers(-(2**63), 2**63 - 1) | st.booleans(),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=4,
        ),
    ),
    st.lists(
        st.dictionaries(
            st.sampled_from(["path", "name", "disabled", "bank_id", "scoping", "other"]),
            st.text(st.characters(exclude_categories=["Cs"])) | st.integers(0, 9) | st.booleans() | st.just("/"),
        ),
        max_size=3,
    ),
)
def test_no_values_in_the_file_raise(plain: dict[str, Any], rules: list[dict[str, Any]]) -> None:
    """Whatever TOML says under the known names, settings come out, and each warning is one line."""
    plain.pop("project", None)

    def toml(table: dict[str, Any]) -> str:
        return "".join(
            f"{json.dumps(key)} = {json.dumps(value).replace(chr(127), ' ')}\n" for key, value in table.items()
        )

    file = Path(os.environ["HOME"], "any.toml")
    file.write_text(toml(plain) + "".join(f"[[project]]\n{toml(rule)}" for rule in rules))
    loaded = load(config_file=file, folders=[Path("/any")])
    assert all(warning.isprintable() for warning in loaded.warnings)


def rules_toml(*rules: dict[str, object]) -> str:
    """Return `[[project]]` tables."""
    return "\n".join(
        "[[project]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in rule.items()) for rule in rules
    )


def test_a_rule_says_name_bank_scoping_and_disabled(config: Path, tmp_path: Path) -> None:
    """A rule's four words set the project's name, the bank, the scoping, and whether anything is done at all."""
    config.write_text(
        rules_toml({"path": str(tmp_path), "name": "n", "bank_id": "b", "scoping": "global", "disabled": True})
    )
    loaded = load(folders=[tmp_path / "deep" / "down"])
    settings = loaded.settings
    assert (settings.project, settings.bank_id, settings.scoping, settings.disabled) == ("n", "b", "global", True)
    assert {loaded.sources[field] for field in ("project", "bank_id", "scoping", "disabled")} == {
        f"project rule ({tmp_path})"
    }
    assert load(folders=[tmp_path.parent]).settings == Settings()
    assert load(folders=[Path(f"{tmp_path}x")]).settings == Settings()
    assert load().settings == Settings()


@pytest.mark.parametrize("order", [1, -1])
def test_the_longest_path_wins(order: int, config: Path, tmp_path: Path) -> None:
    """Of several rules for a folder the nearest counts, in any order; what it leaves open, the next one says."""
    rules: list[dict[str, object]] = [
        {"path": str(tmp_path), "name": "outer", "bank_id": "outer"},
        {"path": str(tmp_path / "a"), "name": "inner"},
        {"path": str(tmp_path / "a" / "b"), "name": "innermost"},
    ]
    config.write_text(rules_toml(*rules[::order]))
    settings = load(folders=[tmp_path / "a"]).settings
    assert (settings.project, settings.bank_id) == ("inner", "outer")


def test_any_of_the_folders_matches(config: Path, tmp_path: Path) -> None:
    """A linked worktree elsewhere is under the rules of its primary root as well as of its own place."""
    config.write_text(rules_toml({"path": str(tmp_path / "main"), "name": "m"}))
    assert load(folders=[tmp_path / "wt", tmp_path / "main"]).settings.project == "m"


@pytest.mark.parametrize("elsewhere", ["outer rule", "inner rule", "environment", "file", "flag"])
def test_disabled_anywhere_wins(elsewhere: str, config: Path, tmp_path: Path) -> None:
    """Whoever disables is not overruled by anything that stands nearer and says false."""
    said = {name: name == elsewhere for name in ("outer rule", "inner rule", "environment", "file", "flag")}
    config.write_text(
        f"disabled = {str(said['file']).lower()}\n"
        + rules_toml(
            {"path": str(tmp_path), "disabled": said["outer rule"]},
            {"path": str(tmp_path / "a"), "disabled": said["inner rule"]},
        )
    )
    loaded = load(
        environ=os.environ | {"HINDSIGHT_DISABLED": str(said["environment"])},
        flags={"disabled": said["flag"]},
        folders=[tmp_path / "a"],
    )
    assert loaded.settings.disabled is True
    assert loaded.sources["disabled"] != "default"


def test_rules_see_through_symlinks_and_home(config: Path, tmp_path: Path) -> None:
    """A rule for `~/code` holds for the same folder under any of its names, and for one that is gone."""
    home = Path(os.environ["HOME"])
    (tmp_path / "disk" / "code").mkdir(parents=True)
    (home / "code").symlink_to(tmp_path / "disk" / "code")
    config.write_text(rules_toml({"path": "~/code/", "name": "n"}))
    for folder in (home / "code", tmp_path / "disk" / "code" / "deleted", home / "x" / ".." / "code"):
        assert load(folders=[folder]).settings.project == "n"


def test_rules_know_letters_in_either_unicode_form(config: Path, tmp_path: Path) -> None:
    """A path typed with composed letters is the folder whose name has decomposed ones."""
    config.write_text(rules_toml({"path": str(tmp_path / "projekt-\u017c"), "name": "n"}))
    assert load(folders=[tmp_path / "projekt-z\u0307"]).settings.project == "n"


def test_folders_that_the_system_cannot_look_at(config: Path, tmp_path: Path) -> None:
    """An event's impossible folder matches no rule and breaks nothing."""
    config.write_text(rules_toml({"path": "/", "name": "n"}))
    for odd in ("a\0b", "\ud83d"):
        assert load(folders=[Path(odd)]).settings.project is None
        assert load(folders=[Path(odd), tmp_path]).settings.project == "n"


@pytest.mark.parametrize(
    "rule",
    [{"name": "n"}, {"path": "code", "name": "n"}, {"path": 5}, {"path": ""}, {"path": "/a\nb"}, {"path": "~x-no"}],
)
def test_a_rule_without_a_usable_path_warns(rule: dict[str, object], config: Path) -> None:
    """Such a rule is passed over with one line that says which one; the others count."""
    config.write_text(rules_toml({"path": "/", "bank_id": "b"}, rule))
    loaded = load(folders=[Path("/any")])
    assert (loaded.settings.project, loaded.settings.bank_id) == (None, "b")
    (warning,) = loaded.warnings
    assert warning.startswith("[[project]] rule 2 in config.toml is passed over: ")
    assert warning.isprintable()


@pytest.mark.parametrize("folders", [[Path("/any")], []])
def test_a_bad_word_in_a_rule_warns_wherever_one_stands(folders: list[Path], config: Path) -> None:
    """One bad word of a rule leaves its others; the warning does not depend on the rule's being for this folder."""
    config.write_text(rules_toml({"path": "/any", "bank_id": "a/b", "name": "n", "nmae": "x"}))
    loaded = load(folders=folders)
    assert loaded.settings.project == ("n" if folders else None)
    assert loaded.settings.bank_id == "bankclient"
    unknown, bad = loaded.warnings
    assert unknown == "[[project]] rule 1 in config.toml has an unknown key 'nmae'; did you mean name?"
    assert bad.startswith("bank_id='a/b' from project rule (/any) is not used: ")


@pytest.mark.parametrize(
    ("content", "project", "warnings"),
    [
        ('project = "n"', "n", 0),
        ('[project]\npath = "/"\nname = "n"', "n", 0),
        ('project = ["n"]', None, 1),
        ("project = []", None, 0),
        ("project = 5", None, 1),
    ],
)
def test_other_things_called_project(content: str, project: str | None, warnings: int, config: Path) -> None:
    """A plain `project` is the project's name, a single table is one rule, and anything else warns."""
    config.write_text(content)
    loaded = load(folders=[Path("/any")])
    assert loaded.settings.project == project
    assert len(loaded.warnings) == warnings
