"""The rule for bank names, beside the real server's own."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import pytest

from bankclient.names import BANK_NAME_MAX_BYTES, bank_name_problem

GOOD = [
    "..",
    *(f"names-{odd}" for odd in ("", "a::b", "a?b#c", "a b", "a_b", "ż", "100%", "a+b;c", "a\u200db", "a\u2028b")),
    "names-" + "x" * (BANK_NAME_MAX_BYTES - 6),
    "names-" + "ż" * (BANK_NAME_MAX_BYTES // 2 - 3),
]
BAD = [
    "",
    "_b",
    "a/b",
    "a\tb",
    "a\nb",
    "a\x7fb",
    "a\x85b",
    "x" * (BANK_NAME_MAX_BYTES + 1),
    "ż" * (BANK_NAME_MAX_BYTES // 2 + 1),
]


@pytest.mark.parametrize("name", GOOD)
def test_names_that_are_taken(name: str) -> None:
    """What the server creates is no problem."""
    assert bank_name_problem(name) is None


@pytest.mark.parametrize("name", [*BAD, "a\0b", "a\ud83d", "\udc80"])
def test_names_that_are_not(name: str) -> None:
    """What the server refuses, or cannot be sent, is said on one line that says what to do."""
    problem = bank_name_problem(name)
    assert problem is not None
    assert problem.isprintable()
    assert problem.startswith("a bank name ")


@pytest.mark.real
@pytest.mark.parametrize("name", [name for name in (*GOOD, *BAD) if name.strip(".")])
def test_the_rule_is_the_server_s(name: str, real_url: str) -> None:
    """The server creates the names without a problem, and refuses the others (`..` and `` make another path)."""
    url = f"{real_url}/v1/default/banks/{quote(name, safe='')}"
    try:
        answer = httpx.put(url, json={}, timeout=30.0)
    finally:
        httpx.delete(url, timeout=30.0)
    assert answer.status_code == (200 if bank_name_problem(name) is None else 404 if "/" in name else 400)
