"""Words and ranking: what finds what in English, code, paths and scripts without blanks, and what decides the order."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankclient.embedded import EmbeddedServer, recall
from bankclient.embedded.bodies import Budget
from bankclient.embedded.search import any_of, final_score, index_terms, query_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def server(path: Path) -> Iterator[EmbeddedServer]:
    """Give a bank whose clock stands still."""
    with EmbeddedServer(path, now=lambda: NOW) as server:
        yield server


@pytest.fixture
def retain(call: Callable[..., Any]) -> Callable[..., None]:
    """Give a function that retains items, given as texts or objects, each in a document of its own."""

    def retain(*items: Any) -> None:  # noqa: ANN401 - texts or objects
        whole = [{"content": item} if isinstance(item, str) else item for item in items]
        body = {"items": [{"document_id": f"{n}-{item['content'][:40]}", **item} for n, item in enumerate(whole)]}
        assert call("POST", "/memories", body)[0] == 200

    return retain


@pytest.fixture
def find(call: Callable[..., Any]) -> Callable[..., list[str]]:
    """Give a function that returns the texts that a recall finds, in order."""

    def find(query: str, **fields: object) -> list[str]:
        status, answer = call("POST", "/memories/recall", {"query": query, **fields})
        assert status == 200, answer
        return [result["text"] for result in answer["results"]]

    return find


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("We decided to deploy on Fridays", "deployments"),
        ("The tests were failing", "test failure fails"),
        ("Two deployments failed", "who deploys?"),
        ("The payment gateway", "paying"),
        ("Caching the responses helped", "cached response"),
        ("Uses parseHTTPRequest in the gateway", "parse_http_request"),
        ("Uses parse_http_request in the gateway", "parseHTTPRequest"),
        ("Uses parse-http-request in the gateway", "ParseHttpRequest"),
        ("Uses parseHTTPRequest in the gateway", "http request parsing"),
        ("Call bankclient.api.calls.recall directly", "api.calls"),
        ("Call bankclient.api.calls.recall directly", "bankclient.api.calls.recall"),
        ("The bug is in src/proxy/hooks/spool.py line 42", "spool.py"),
        ("The bug is in src/proxy/hooks/spool.py line 42", "src/proxy/hooks/spool.py"),
        ("The bug is in src/proxy/hooks/spool.py line 42", "hooks spool"),
        ("Encoded as UTF-8", "utf8"),
        ("Encoded as utf8", "UTF-8"),
        ("Runs Python 3.11.7 now", "3.11.7"),
        ("Set HINDSIGHT_API_TOKEN before", "hindsight api token"),
        ("C:\\Users\\maria\\notes.txt was lost", "notes.txt"),
        ("Zażółć gęślą jaźń", "zazolc gesla"),
        ("Die Straße nach Köln", "strasse koln"),
        ("Café crème", "cafe creme"),
        ("Cafe creme", "CAFÉ CRÈME"),
        ("Смотри ёлку", "елку"),
        ("東京都に住んでいます", "東京"),
        ("東京都に住んでいます", "京都に"),
        ("お茶が好き", "茶"),
        ("カフェのポート番号は4711", "カフェ ポート"),
        ("서울에서 만나요", "서울"),
        ("\uff46\uff55\uff4c\uff4c\uff57\uff49\uff44\uff54\uff48 letters", "fullwidth"),
        ("हिन्दी में लिखा", "हिन्दी"),
        ("He said “deploy it” — twice", "deploy"),
        ("nothing but the", "the"),
    ],
)
def test_a_memory_is_found_by(
    text: str, query: str, retain: Callable[..., None], find: Callable[..., list[str]]
) -> None:
    """Word forms, spellings of an identifier, parts of a path, bare letters, parts of a script without blanks."""
    retain(text, "Completely unrelated words: zebra, quilt, marmalade")
    assert find(query)[:1] == [text]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("parseHTTPRequest", "zebra"),
        ("東京都", "北海道"),
        ("がく", "かく"),
        ("What is the plan for this", "what is the zebra for this"),
        ("The gate", "gateau"),
    ],
)
def test_a_memory_is_not_found_by(
    text: str, query: str, retain: Callable[..., None], find: Callable[..., list[str]]
) -> None:
    """Other words, other letters, and words that every sentence has."""
    retain(text)
    assert find(query) == []


def test_rare_words_weigh_more_than_common_ones(retain: Callable[..., None], find: Callable[..., list[str]]) -> None:
    """The memory with the one rare word beats those with a common one."""
    retain(*(f"The service number {n} restarts nightly" for n in range(20)), "The turbine stands still")
    assert find("turbine service")[0] == "The turbine stands still"


def test_more_of_the_querys_words_are_better(retain: Callable[..., None], find: Callable[..., list[str]]) -> None:
    """Two words of three beat one."""
    retain("The staging deploy runs at noon", "The production deploy runs at night", "Staging has no backups")
    assert find("staging deploy")[0] == "The staging deploy runs at noon"


def test_context_and_entities_are_searched_at_half_weight(
    retain: Callable[..., None], find: Callable[..., list[str]]
) -> None:
    """They find a memory, behind one that says the word itself."""
    retain(
        {"content": "It was moved to May", "context": "turbine meeting"},
        {"content": "She signed it", "entities": [{"text": "Turbine Works"}]},
        "The turbine stands still now",
        *(f"Filler {n}" for n in range(10)),
    )
    found = find("turbine")
    assert found[0] == "The turbine stands still now"
    assert set(found) == {"The turbine stands still now", "It was moved to May", "She signed it"}


def test_the_later_of_two_equals_comes_first(retain: Callable[..., None], find: Callable[..., list[str]]) -> None:
    """Recency settles what the words leave open, and an undated memory comes last."""
    retain(
        {"content": "The port is 4711 here", "timestamp": "2024-03-01"},
        {"content": "The port is 8080 here", "timestamp": "2026-02-20"},
        {"content": "The port is 9090 here", "timestamp": "unset"},
        *(f"Filler {n}" for n in range(10)),
    )
    assert [text.split()[3] for text in find("port")] == ["8080", "4711", "9090"]


def test_recency_does_not_beat_the_words(retain: Callable[..., None], find: Callable[..., list[str]]) -> None:
    """An old memory with both words comes before a new one with one."""
    retain(
        {"content": "The staging port is 4711", "timestamp": "2020-01-01"},
        {"content": "The staging host is new", "timestamp": "2026-03-01"},
        *(f"Filler {n}" for n in range(10)),
    )
    assert find("staging port")[0] == "The staging port is 4711"


def test_what_was_said_more_often_comes_first(retain: Callable[..., None], find: Callable[..., list[str]]) -> None:
    """The same text in two documents confirms it."""
    same = {"timestamp": "2026-01-01"}
    retain(
        {"content": "The port is 4711 here", "document_id": "a", **same},
        {"content": "The port is 4711 here", "document_id": "b", **same},
        {"content": "The port is 8080 here", "document_id": "c", **same},
    )
    assert find("port")[0] == "The port is 4711 here"


def test_a_temporal_window_lifts_what_lies_in_it(retain: Callable[..., None], find: Callable[..., list[str]]) -> None:
    """Among equals, the memory of the window comes first, though an older one."""
    retain(
        {"content": "The ferry was late in spring", "timestamp": "2025-04-01"},
        {"content": "The ferry was late in autumn", "timestamp": "2026-02-01"},
    )
    window = {"start": "2025-03-01T00:00:00Z", "end": "2025-05-01T00:00:00Z"}
    assert find("late ferry")[0] == "The ferry was late in autumn"
    assert find("late ferry", temporal_window=window)[0] == "The ferry was late in spring"


def test_keyword_floor_drops_weak_matches(call: Callable[..., Any], retain: Callable[..., None]) -> None:
    """`min_scores.keyword` is a floor here, where words are the only way to a memory."""
    retain("The turbine and the crane", "The crane", *(f"Filler {n}" for n in range(10)))
    results = call("POST", "/memories/recall", {"query": "turbine crane"})[1]["results"]
    strong, weak = (result["scores"]["keyword"] for result in results)
    assert strong > weak > 0
    body = {"query": "turbine crane", "min_scores": {"keyword": (strong + weak) / 2, "semantic": 1.0, "reranker": 1.0}}
    assert len(call("POST", "/memories/recall", body)[1]["results"]) == 1


def test_a_large_banks_shortcut_changes_no_score(
    call: Callable[..., Any], retain: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking only at memories with one of the rarer words gives those the same scores as looking at all."""
    words = ["common", "frequent", "usual", "rare"]
    retain(*(f"{' '.join(word for i, word in enumerate(words) if n % (2 * i + 1) == 0)} text {n}" for n in range(60)))
    body = {"query": " ".join(words), "budget": "low", "max_tokens": 100_000}

    def scores() -> dict[str, float]:
        results = call("POST", "/memories/recall", body)[1]["results"]
        return {result["id"]: result["scores"]["keyword"] for result in results}

    whole = scores()
    monkeypatch.setattr(recall, "_MANY", 20)
    monkeypatch.setattr(recall, "_ENOUGH", 0)
    monkeypatch.setitem(recall._CANDIDATES, Budget.LOW, 5)
    narrowed = scores()
    assert len(narrowed) == 5
    assert narrowed == pytest.approx({memory: whole[memory] for memory in narrowed})
    assert max(narrowed.values()) == pytest.approx(max(whole.values()))


def test_the_shortcut_is_dropped_where_it_finds_too_little(
    retain: Callable[..., None], find: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rare word is another project's: the common one still finds this project's memories."""
    retain(
        *({"content": f"turbine deploy {n}", "tags": ["project:a"]} for n in range(10)),
        *({"content": f"deploy {n}", "tags": ["project:b"]} for n in range(30)),
    )
    monkeypatch.setattr(recall, "_MANY", 10)
    monkeypatch.setitem(recall._CANDIDATES, Budget.MID, 5)
    found = find("turbine deploy", tags=["project:b"], tags_match="all_strict")
    assert len(found) == 5


def test_the_same_bank_and_query_give_the_same_answer(
    retain: Callable[..., None], find: Callable[..., list[str]]
) -> None:
    """Also where all scores are equal."""
    retain(*(f"The buoy {n} is red" for n in range(30)))
    assert find("buoy red") == find("buoy red")


def test_another_bank_does_not_change_the_scores(
    server: EmbeddedServer, call: Callable[..., Any], retain: Callable[..., None]
) -> None:
    """How rare a word is, is the bank's own matter."""
    retain("The turbine stands", "The crane stands", "A third")
    before = call("POST", "/memories/recall", {"query": "turbine crane"})[1]
    items = [{"content": f"turbine {n}"} for n in range(50)]
    server.answer(
        "POST",
        "/v1/default/banks/other/memories",
        json.dumps({"items": items}).encode(),
        {"content-type": "application/json"},
    )
    assert call("POST", "/memories/recall", {"query": "turbine crane"})[1] == before


@given(st.text(max_size=200))
def test_a_memory_is_found_by_its_own_text(text: str) -> None:
    """Whatever words the index makes of a text, a query of the same text makes words among them."""
    indexed = index_terms(text).lower()
    assert all(word in indexed for word in query_words(text))


@given(st.text(max_size=300))
def test_an_expression_holds_nothing_but_quoted_words(text: str) -> None:
    """No letter of a query can end a quote."""
    words = query_words(text)
    assert not any('"' in word or "\x00" in word or " " in word for word in words)
    assert any_of(words).count('"') == 2 * len(words)
    assert len(words) <= 48


def test_of_a_long_query_the_longest_words_stay() -> None:
    """They are the rare ones; the number is bounded."""
    words = [f"w{'o' * n}rd" for n in range(1, 61)]
    kept = query_words(" ".join(words))
    assert kept == list(reversed(words))[:48]


@given(st.floats(0, 100), st.none() | st.floats(-1000, 10_000), st.integers(0, 1000), st.booleans())
def test_a_final_score_stays_near_its_relevance(
    relevance: float, age: float | None, confirmations: int, in_window: bool
) -> None:
    """Age, confirmation and window add, never take away, and together at most 40 %."""
    score = final_score(relevance, age_days=age, confirmations=confirmations, in_window=in_window)
    assert relevance <= score <= relevance * 1.4 + 1e-9
