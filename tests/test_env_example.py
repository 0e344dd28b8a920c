"""env.example says what the code does: every variable, its form, its meaning, its default."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bankclient.settings import VARIABLES, Settings, Variable, load

EXAMPLE = Path(__file__).parents[1] / "env.example"
_LINE = re.compile(r"# (HINDSIGHT_\w+)=(.*)")


def block(variable: Variable) -> str:
    """Return how `variable` stands in the file."""
    return f"# {variable.meaning}\n# Value: {variable.form}\n# {variable.name}={variable.default}\n"


def test_the_example_lists_each_variable_with_its_meaning_form_and_default() -> None:
    """After its heading, env.example is the table of settings, row by row, and nothing else."""
    _heading, _, rows = EXAMPLE.read_text().partition("\n\n")
    assert rows == "\n".join(block(variable) for variable in VARIABLES)


def test_everything_in_the_example_is_commented_out() -> None:
    """Sourcing env.example as it is sets nothing."""
    assert [line for line in EXAMPLE.read_text().splitlines() if line and not line.startswith("#")] == []


@pytest.mark.parametrize("line", [line for line in EXAMPLE.read_text().splitlines() if _LINE.fullmatch(line)])
def test_each_line_of_the_example_is_the_default(line: str) -> None:
    """A line without its `#` changes no setting and brings no warning."""
    name, value = _LINE.fullmatch(line).groups()  # type: ignore[union-attr] # the lines were chosen by it
    loaded = load(environ={name: value})
    assert loaded.settings == Settings()
    assert loaded.warnings == ()


def test_every_field_is_a_variable() -> None:
    """No setting is missing from the table; only the password in the URL has no variable of its own."""
    assert {variable.field for variable in VARIABLES} == Settings.model_fields.keys() - {"api_userinfo"}


def test_every_variable_says_what_it_is_for() -> None:
    """No row of the table is without a meaning or a form."""
    assert [variable.name for variable in VARIABLES if not variable.meaning or not variable.form] == []
