"""What a person is told of an error: each kind differently, with the mend, and never a secret."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.cli.failures import explain
from bankclient.errors import (
    BankclientError,
    BreakerOpen,
    ConfigError,
    ConnectFailed,
    Context,
    NotFound,
    OperationFailed,
    TimedOut,
    Unavailable,
)
from bankclient.testing.answers import Cut, Raw, Reply, Reset, Silence, gateway_page
from bankclient.testing.scripted import ScriptedServer, black_hole

if TYPE_CHECKING:
    from collections.abc import Callable

    from bankclient.testing.answers import Answer

HTML = {"content-type": "text/html"}
DETAIL = {"detail": "Authentication failed: Invalid API key"}
ECHO = {
    "detail": [{"type": "x", "loc": ["body", "query"], "msg": "is bad", "input": "what was sent", "ctx": {"error": {}}}]
}

ANSWERS: dict[str, tuple[Answer, str]] = {
    "a web page": (
        Reply(200, body=b"<html>", headers=HTML),
        (
            "what answers at URL is not a Hindsight server: answered with a body that is not Hindsight's (text/html);"
            " check HINDSIGHT_API_URL"
        ),
    ),
    "a web server's 404": (
        gateway_page(404),
        (
            "what answers at URL is not a Hindsight server: answered 404: a body that is not Hindsight's (text/html);"
            " check HINDSIGHT_API_URL"
        ),
    ),
    "another API": (
        Reply(404, json={"detail": "Not Found"}),
        "there is no Hindsight API under URL (404: Not Found); check HINDSIGHT_API_URL, above all its path",
    ),
    "another API's 200": (
        Reply(200, json={"name": "x"}),
        (
            "what answers at URL is not a Hindsight server: answered in a form that this client cannot read (not a"
            " RecallResult: results: Field required); check HINDSIGHT_API_URL"
        ),
    ),
    "a wrong key": (
        Reply(401, json=DETAIL),
        (
            "URL refuses the key (401: Authentication failed: Invalid API key); set HINDSIGHT_API_TOKEN to one that it"
            " takes"
        ),
    ),
    "a gateway's own key": (
        gateway_page(401),
        (
            "something in front of URL lets nobody through (401); it may want a user and password in"
            " HINDSIGHT_API_URL, or another address"
        ),
    ),
    "a gateway without a server": (
        gateway_page(502),
        "a gateway answers at URL, and the server behind it does not (502); start the Hindsight server, or wait for it",
    ),
    "a full server": (
        Reply(503, json={"detail": "full"}, headers={"retry-after": "90"}),
        "URL is busy (503: full); try again in 90 s",
    ),
    "a limit": (Reply(429, json={"detail": "slow down"}), "URL is busy (429: slow down); try again later"),
    "a fault of the server's": (
        Reply(500, json={"detail": "embedding provider down"}),
        "URL failed at recall (500: embedding provider down); its log says more",
    ),
    "a refused request": (Reply(422, json=ECHO), "URL refuses the recall (422: body.query: is bad)"),
    "a redirection": (
        Reply(301, headers={"location": "https://elsewhere.invalid/"}),
        (
            "URL answered 301: a redirection to https://elsewhere.invalid/, which is not followed: set the server's URL"
            " to where it really is"
        ),
    ),
    "a reset": (Reset(), "URL broke off its answer to recall (the connection broke: "),
    "half an answer": (Cut(Reply(200, json={"results": []})), "URL broke off its answer to recall ("),
    "another protocol": (
        Raw(b"SSH-2.0-OpenSSH_9\r\n"),
        "URL broke off its answer to recall (what answers does not speak HTTP to the end: ",
    ),
    "silence": (
        Silence(),
        (
            "URL gave no answer to recall within 0.2 s; try again, or allow more time by HINDSIGHT_RECALL_TIMEOUT_MS;"
            " if it stays so, check HINDSIGHT_API_URL"
        ),
    ),
}


@pytest.fixture
def asked(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, repository: object) -> Callable[[str], str]:
    """Give what a recall from a server says on stderr, its URL written as URL."""
    del repository

    def ask(url: str) -> str:
        monkeypatch.setenv("HINDSIGHT_API_URL", url)
        done = cli("recall", "port")
        assert (done.code, done.out) == (1, "")
        assert done.err.count("\n") == 1
        text: str = done.err.removesuffix("\n").replace(url, "URL")
        return text

    return ask


@pytest.mark.parametrize("kind", ANSWERS)
def test_each_answer_that_is_none_is_said_in_its_own_words(
    asked: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """One line names the server, what it did, and the mend."""
    if kind == "silence":
        monkeypatch.setenv("HINDSIGHT_RECALL_TIMEOUT_MS", "200")
    answer, said = ANSWERS[kind]
    with ScriptedServer(handler=lambda _: answer) as server:
        assert asked(server.url).startswith(f"error: {said}")


def test_the_words_tell_the_answers_apart() -> None:
    """No two kinds of failure are said alike."""
    assert len({said for _, said in ANSWERS.values()}) == len(ANSWERS)


def test_nobody_listening(asked: Callable[[str], str]) -> None:
    """A refused connection says that nothing listens, and how to change that."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    assert asked(url) == (
        "error: nothing listens at URL (connection refused); start the Hindsight server, or set HINDSIGHT_API_URL to"
        " where it is"
    )


def test_a_proxy_that_is_away(asked: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is not to blame, and the variables that name the proxy are."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    said = asked("http://memory.invalid")
    assert "the proxy that the environment names" in said
    assert "NO_PROXY" in said


def test_an_unknown_host(asked: Callable[[str], str]) -> None:
    """A name that does not resolve is said to be one."""
    assert asked("http://hindsight.invalid") == "error: the host name in URL is not known; check HINDSIGHT_API_URL"


def test_a_black_hole(asked: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An address where connecting hangs is told from a server that took the question."""
    monkeypatch.setenv("HINDSIGHT_RECALL_TIMEOUT_MS", "2300")
    with black_hole() as url:
        assert asked(url) == (
            "error: URL does not answer attempts to connect; the address may be wrong, the machine off, or a firewall"
            " in between: check HINDSIGHT_API_URL"
        )


@pytest.mark.parametrize("kind", ["a web page", "a wrong key", "a reset", "silence"])
def test_no_secret_is_ever_said(asked: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Neither the key nor a password in the URL is in what is printed, whatever the server echoes."""
    monkeypatch.setenv("HINDSIGHT_API_TOKEN", "the-token")
    monkeypatch.setenv("HINDSIGHT_RECALL_TIMEOUT_MS", "500")
    answer = Reply(401, json={"detail": "bad key: the-token"}) if kind == "a wrong key" else ANSWERS[kind][0]
    with ScriptedServer(handler=lambda _: answer) as server:
        said = asked(server.url.replace("http://", "http://ann:the-password@"))
    assert "the-token" not in said
    assert "the-password" not in said


CONTEXT = Context("recall", "http://host", "b", 0.1, 1.0)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConfigError("this is wrong; do that"), "this is wrong; do that"),
        (
            BreakerOpen("not tried", CONTEXT),
            "http://host did not answer a moment ago, and was not asked again; try again",
        ),
        (
            ConnectFailed("no connection: ProxyError: 407", CONTEXT),
            "http://host cannot be reached (no connection: ProxyE",
        ),
        (Unavailable("odd", CONTEXT), "recall in bank 'b' at http://host: odd"),
        (
            NotFound("404", CONTEXT, status=404, detail="Bank 'b' not found"),
            "there is no bank 'b' at http://host; the first retain makes it",
        ),
        (
            OperationFailed("the-id", "failed", "no model"),
            "operation the-id ended as failed: no model; the server's log",
        ),
        (
            TimedOut("late", Context("get_operation", "http://embedded", limit=30.0)),
            (
                "the embedded bank gave no answer to get operation within 30 s; try again, or allow more time by"
                " HINDSIGHT_REQUEST_TIMEOUT_MS"
            ),
        ),
    ],
)
def test_other_errors_are_said_too(error: BankclientError, said: str) -> None:
    """Errors that no scripted server makes have their words as well."""
    assert str(explain(error)).startswith(said)


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (
            OSError(113, "No route to host"),
            "cannot be reached (No route to host); check HINDSIGHT_API_URL and the network",
        ),
        (ssl.SSLError(1, "bad"), "no secure connection to http://host: "),
        (socket.gaierror(-2, "Name or service not known"), "the host name in http://host is not known"),
        (TimeoutError(), "http://host does not answer attempts to connect"),
    ],
)
def test_a_failed_connection_says_what_the_system_said(cause: OSError, said: str) -> None:
    """The reason is found however deep it lies among the causes."""
    error = ConnectFailed("no connection", CONTEXT)
    error.__cause__ = RuntimeError("the library's")
    error.__cause__.__context__ = cause
    assert said in str(explain(error))
