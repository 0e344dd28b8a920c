"""What is printed: foreign text is cleaned, a pipe gets plain text, a terminal tables and colours."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.cli import output
from bankclient.testing.answers import Reply
from bankclient.testing.scripted import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NASTY = "\x1b]0;owned\x07\x1b[31mred\x1b[0m \x9b5m [bold]not bold[/bold] :smile: \u202eevil\u2066 \x7f\r\nsecond\tline"
SEEN = "]0;owned[31mred[0m 5m [bold]not bold[/bold] :smile: evil second line"


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    """Whatever a text holds, what is printed of it is letters, line breaks and tabs, and can be encoded."""
    cleaned = output.clean(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", cleaned)
    cleaned.encode()
    assert output.clean(cleaned) == cleaned
    assert "\n" not in output.one_line(text)


@given(st.text(alphabet=st.characters(exclude_categories=["C"])))
def test_ordinary_text_is_left_alone(text: str) -> None:
    """Letters of any script stay as they are."""
    assert output.clean(text) == text


def memory(text: str) -> dict[str, Any]:
    """Return a recalled memory with this text, and with it in every other field that is shown."""
    return {
        "id": "1",
        "text": text,
        "tags": [text],
        "mentioned_at": "2026-01-31T23:30:00Z",
        "scores": {"final": 0.987},
        "document_id": text,
    }


@pytest.fixture
def nasty(monkeypatch: pytest.MonkeyPatch, repository: object) -> Iterator[None]:
    """Let the server answer with hostile text."""
    del repository
    answers = [
        Reply(json={"results": [memory(NASTY)]}),
        Reply(json={"text": NASTY, "based_on": {"memories": [memory(NASTY)]}}),
    ]
    with ScriptedServer(handler=lambda request: answers["reflect" in request.path]) as server:
        monkeypatch.setenv("HINDSIGHT_API_URL", server.url)
        yield


@pytest.mark.usefixtures("nasty")
def test_a_memory_in_a_pipe_is_one_clean_line(process: Callable[..., Any]) -> None:
    """Escape sequences and line breaks of a memory do not get through, its brackets do."""
    done = process("recall", "port")
    assert (done.code, done.out, done.err) == (0, f"{SEEN}\n", "")


@pytest.mark.usefixtures("nasty")
@pytest.mark.parametrize("name", ["recall", "reflect"])
def test_json_is_ascii_and_whole(process: Callable[..., Any], name: str) -> None:
    """JSON steers no terminal, and holds every letter of the memory."""
    done = process(name, "port", "--json")
    assert done.out.isascii()
    assert done.out.replace("\n", "").isprintable()
    reply = json.loads(done.out)
    assert (reply["results"][0] if name == "recall" else reply)["text"] == NASTY


@pytest.mark.usefixtures("nasty")
@pytest.mark.parametrize("name", ["recall", "reflect"])
def test_a_terminal_gets_no_escape_but_our_own(terminal: Callable[..., Any], name: str) -> None:
    """On a terminal there are colours, and nothing of a memory takes effect: no escapes, no markup, no emoji codes."""
    done = terminal(name, "port")
    assert done.code == 0
    assert "\x1b[" in done.out
    assert set(re.findall(r"\x1b(?!\[[0-9;?]*[mhlAKJG])", done.out)) == set()
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", done.out)
    assert "owned[31mred[0m" in shown
    assert {"[bold]not", "bold[/bold]", ":smile:", "evil"} <= set(shown.split())


@pytest.mark.usefixtures("nasty")
def test_recall_on_a_terminal_shows_score_date_tags_and_text(terminal: Callable[..., Any]) -> None:
    """The table has a column for each, the best memory first."""
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal("recall", "port").out)
    header, row = (next(line for line in shown.splitlines() if word in line) for word in ("score", "0.99"))
    assert header.split() == ["score", "date", "tags", "memory"]
    assert "2026-01-31" in row


def test_a_table_in_a_pipe_has_aligned_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Each row is one line, and nothing hangs over at its end."""
    output.show_table(("name", "value"), [("a", "1\n2"), ("long name", "")])
    assert capsys.readouterr().out == "name       value\na          1 2\nlong name\n"


def test_no_color_is_respected(terminal: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR takes the colours away."""
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", terminal("rekall").out)


def test_an_error_on_a_terminal_is_red(terminal: Callable[..., Any]) -> None:
    """The word `error` stands out."""
    assert terminal("rekall").out.startswith(
        "\x1b[1;31merror:\x1b[0m there is no command 'rekall'; did you mean recall?"
    )
