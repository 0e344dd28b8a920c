"""What may be written for a setting, and what stands when it is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bankclient.settings import FALSE_WORDS, TRUE_WORDS, VARIABLES, Settings, load

NAMES = [variable.name for variable in VARIABLES]

NUMBERS = [variable.name for variable in VARIABLES if variable.form.startswith("a whole number")]
SWITCHES = [variable.name for variable in VARIABLES if variable.form.startswith("true or false")]


def field_of(name: str) -> str:
    """Return the field that the variable `name` sets."""
    return next(variable.field for variable in VARIABLES if variable.name == name)


@pytest.mark.parametrize("blank", ["", "  ", "\t\n"])
def test_empty_and_blank_are_unset(blank: str, config: Path) -> None:
    """An empty variable, one alone or all at once, is the same as none, and so is an empty text in the file."""
    config.write_text(
        "".join(f"{variable.field} = ''\n" for variable in VARIABLES if variable.name != "HINDSIGHT_API_KEY")
    )
    for environ in (*({name: blank} for name in NAMES), dict.fromkeys(NAMES, blank)):
        loaded = load(environ=os.environ | environ)
        assert loaded.settings == Settings()
        assert loaded.warnings == ()


def test_an_empty_variable_leaves_the_file_standing(config: Path) -> None:
    """Unset means that the next source is asked."""
    config.write_text("recall_wait_ms = 200\n")
    assert load(environ=os.environ | {"HINDSIGHT_RECALL_WAIT_MS": " "}).settings.recall_wait_ms == 200


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "written",
    ["nan", "inf", "-inf", "Infinity", "-1", "-2", "5s", "3,5", "3.5", "1e3", "1_000", "0x10", "٣", "3 0", "9" * 5000],
)
def test_odd_numbers_warn_and_the_default_stands(name: str, written: str) -> None:
    """What is no whole number in range is one warning that names variable, value, range and default."""
    loaded = load(environ={name: written})
    assert loaded.settings == Settings()
    (warning,) = loaded.warnings
    assert warning.startswith(f"{name}={written[:20]!r}"[:-1])
    default = next(variable.default for variable in VARIABLES if variable.name == name)
    assert "it must be a whole number from " in warning
    assert warning.endswith(f"; {default} (default) stands")


@pytest.mark.parametrize(
    "name", [name for name in NUMBERS if not name.endswith(("WAIT_MS", "OVERLAP_TURNS", "PROXY_PORT"))]
)
def test_zero_is_refused_where_it_would_divide_or_never_end(name: str) -> None:
    """Zero turns, zero milliseconds of a time limit, zero bytes: a warning, and the default."""
    loaded = load(environ={name: "0"})
    assert loaded.settings == Settings()
    assert len(loaded.warnings) == 1


@pytest.mark.parametrize(
    ("given", "number"), [("3.0", 3), ("3.", 3), ("+7", 7), (" 12 ", 12), ("007", 7), (3.0, 3), (5, 5)]
)
def test_plain_spellings_of_a_whole_number(given: object, number: int) -> None:
    """`3.0` can mean nothing but 3, in text as in TOML."""
    assert load(flags={"retain_every_n_turns": given}).settings.retain_every_n_turns == number


@pytest.mark.parametrize(
    ("field", "given"),
    [
        *(
            ("retain_every_n_turns", odd)
            for odd in ("true", "3.5", "nan", "inf", "1e400", "[3]", "{a = 3}", "1979-05-27")
        ),
        *((field, "5") for field in ("bank_id", "project", "bank_mission", "recall_types", "scoping", "state_dir")),
        *(("debug", odd) for odd in ("2", "1.0", "[true]")),
        ("recall_types", "[1]"),
    ],
)
def test_toml_of_another_type_warns(field: str, given: str, config: Path) -> None:
    """In the file a value of another type than the setting's is a bad value too."""
    config.write_text(f"{field} = {given}\n")
    loaded = load()
    assert loaded.settings == Settings()
    assert [warning.partition("=")[0] for warning in loaded.warnings] == [field]


def test_a_time_limit_has_an_end() -> None:
    """An hour is the most, so that no spelling of a number makes an endless wait."""
    assert load(environ={"HINDSIGHT_RECALL_TIMEOUT_MS": "3600000"}).settings.recall_timeout_ms == 3_600_000
    assert load(environ={"HINDSIGHT_RECALL_TIMEOUT_MS": "3600001"}).settings.recall_timeout_ms == 30_000


@pytest.mark.parametrize("name", SWITCHES)
def test_the_words_of_switches(name: str) -> None:
    """Each true and false word counts in any case, with spaces around it."""
    for words, value in ((TRUE_WORDS, True), (FALSE_WORDS, False)):
        for word in words:
            for written in (word, word.upper(), word.title(), f" {word}\t"):
                loaded = load(environ={name: written})
                assert getattr(loaded.settings, field_of(name)) is value
                assert loaded.warnings == ()


def test_the_words_are_fixed() -> None:
    """The hook process tests for exactly these true words; both sides must know the same."""
    assert {"1", "true", "yes", "on"} == TRUE_WORDS
    assert {"0", "false", "no", "off"} == FALSE_WORDS


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("written", ["disabled", "enabled", "2", "-1", "t", "y", "truee", "1.0", "none", "on off"])
def test_other_words_warn_and_the_default_stands(name: str, written: str) -> None:
    """A word that is neither true nor false is a warning, and not taken for either."""
    loaded = load(environ={name: written})
    assert loaded.settings == Settings()
    (warning,) = loaded.warnings
    assert warning.startswith(f"{name}={written!r} from environment is not used: it must be true or false")


@pytest.mark.parametrize(
    ("written", "items"),
    [
        ("world,observation", ("world", "observation")),
        ("world", ("world",)),
        (" World , observation ,", ("world", "observation")),
        ('["world","observation"]', ("world", "observation")),
        (' [ "world" ] ', ("world",)),
        ("world,world", ("world",)),
        ("[]", ()),
        (",", ()),
    ],
)
def test_lists_are_commas_or_json(written: str, items: tuple[str, ...]) -> None:
    """A list takes both spellings; empty places and doubles count for nothing."""
    loaded = load(environ={"HINDSIGHT_RECALL_TYPES": written})
    assert loaded.settings.recall_types == items
    assert loaded.warnings == ()


@pytest.mark.parametrize(
    "written", ["[", "[1]", '["world"', '["world", null]', '[["world"]]', "world;experience", "opinion"]
)
def test_broken_lists_warn_and_the_default_stands(written: str) -> None:
    """What is neither, or holds what no server knows, is a warning."""
    loaded = load(environ={"HINDSIGHT_RECALL_TYPES": written})
    assert loaded.settings == Settings()
    assert [warning.partition("=")[0] for warning in loaded.warnings] == ["HINDSIGHT_RECALL_TYPES"]


def test_deeply_nested_json_is_only_a_broken_list() -> None:
    """A list nested beyond what the parser can follow is a warning like any other."""
    assert len(load(environ={"HINDSIGHT_RECALL_TYPES": "[" * 100_000}).warnings) == 1


def test_a_bad_value_leaves_the_next_source_standing(config: Path) -> None:
    """The value of config.toml stands where the environment's cannot be used, and the warning says so."""
    config.write_text("recall_wait_ms = 200\n")
    loaded = load(environ=os.environ | {"HINDSIGHT_RECALL_WAIT_MS": "5s"})
    assert loaded.settings.recall_wait_ms == 200
    assert loaded.sources["recall_wait_ms"] == "config.toml"
    (warning,) = loaded.warnings
    assert warning == (
        "HINDSIGHT_RECALL_WAIT_MS='5s' from environment is not used: it must be a whole number from 0 to 60000;"
        " 200 (config.toml) stands"
    )


def test_full_session_means_batch_and_says_so() -> None:
    """The mode of other clients is taken, with a warning, for the one that is nearest."""
    loaded = load(environ={"HINDSIGHT_RETAIN_MODE": "Full-Session"})
    assert loaded.settings.retain_mode == "batch"
    assert loaded.sources["retain_mode"] == "environment HINDSIGHT_RETAIN_MODE"
    assert loaded.warnings == ("HINDSIGHT_RETAIN_MODE=full-session from environment means batch for now; write batch",)


@pytest.mark.parametrize("variable", ["HINDSIGHT_PROJECT", "HINDSIGHT_RETAIN_CONTEXT", "HINDSIGHT_PARENT_SESSION"])
@pytest.mark.parametrize("middle", ["\n", "\x00", "\x1b", "\x85", "\u2028", "\udc80"])
def test_a_label_is_one_line_of_text(variable: str, middle: str) -> None:
    """A line break, a control character or half a letter in a label: a warning on one line, and the default stands."""
    loaded = load(environ={variable: f"a{middle}b"})
    assert loaded.settings == Settings()
    (warning,) = loaded.warnings
    assert warning.startswith(f"{variable}='a")
    assert warning.isprintable()


def test_labels_and_texts_keep_their_letters() -> None:
    """Letters of any script, joined emoji and no-break spaces are text; a mission may have several lines."""
    loaded = load(environ={"HINDSIGHT_PROJECT": "żółw\xa0👩\u200d👧", "HINDSIGHT_BANK_MISSION": "one\ntwo"})
    assert (loaded.settings.project, loaded.settings.bank_mission) == ("żółw\xa0👩\u200d👧", "one\ntwo")
    assert loaded.warnings == ()


@pytest.mark.parametrize("name", ["", "_a", "a/b", "a\tb", "x" * 193, "ż" * 97, "\udc80"])
@pytest.mark.parametrize("variable", ["HINDSIGHT_BANK_ID", "HINDSIGHT_BANK_ID_PREFIX"])
def test_a_bank_that_no_server_takes(variable: str, name: str) -> None:
    """A bank's name or prefix outside the server's rules is a warning, on one line, and the default stands."""
    loaded = load(environ={variable: name})
    assert loaded.settings == Settings()
    assert len(loaded.warnings) == bool(name)
    assert all(warning.isprintable() for warning in loaded.warnings)


def test_a_prefix_too_long_for_its_bank() -> None:
    """Two good names that make one too long: the prefix is left out, with a warning."""
    loaded = load(environ={"HINDSIGHT_BANK_ID": "b" * 100, "HINDSIGHT_BANK_ID_PREFIX": "p" * 92})
    assert (loaded.settings.bank_id, loaded.settings.bank_id_prefix) == ("b" * 100, None)
    assert loaded.sources["bank_id_prefix"] == "default"
    assert len(loaded.warnings) == 1
    longest = load(environ={"HINDSIGHT_BANK_ID": "b" * 100, "HINDSIGHT_BANK_ID_PREFIX": "p" * 91})
    assert longest.settings.bank_id_prefix == "p" * 91


@pytest.mark.parametrize(
    ("written", "folder"),
    [("~/s", "/h/s"), ("~", "/h"), ("/a/../b/", "/a/../b"), ("rel/s", None), ("~x-nobody/s", None)],
)
def test_the_state_folder_is_absolute(written: str, folder: str | None, config: Path) -> None:
    """`~` is the caller's home; a relative folder would follow the project and is refused; in the file likewise."""
    config.write_text(f'state_dir = "{written}"\n')
    for environ, file in (({"HINDSIGHT_STATE_DIR": written}, Path("/none")), ({}, config)):
        loaded = load(environ={"HOME": "/h"} | environ, config_file=file)
        assert loaded.settings.state_dir == Path(folder or "/h/.local/state/bankclient")
        assert len(loaded.warnings) == (folder is None)
