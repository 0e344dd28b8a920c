"""The benchmarks: each runs, on a small scale, and yields figures that can be right. How long they took is nothing."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from benchmarks import client, embedded, flusher, outbox, peer, real, sessions, turns
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.corpus import SHAPES, memories, queries
from benchmarks.measure import Figure, NotRun, compare, figure
from benchmarks.report import name_of
from benchmarks.transcripts import transcript_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.measure import Benchmark

SMALL: dict[str, Callable[[], Iterator[Figure]]] = {
    "client.import_cost": partial(client.import_cost, rounds=1),
    "client.recall_async": partial(client.recall_async, calls=2),
    "client.recall_sync": partial(client.recall_sync, calls=2),
    "embedded.batch": partial(embedded.batch, rounds=2, size=3),
    "embedded.recall_growth": partial(embedded.recall_growth, sizes=(20, 40), rounds=2),
    "flusher.flush": partial(flusher.flush, rounds=1, facts=20, pieces=2),
    "outbox.acknowledgement": partial(outbox.acknowledgement, rounds=2, waiting=20),
    "sessions.acknowledgement": partial(sessions.acknowledgement, rounds=2),
    "sessions.long_transcript": partial(sessions.long_transcript, rounds=2, short=100, long=50_000_000),
    "turns.reading": partial(turns.reading, rounds=1, size=40_000),
    "turns.redaction": partial(turns.redaction, rounds=1, size=2_000),
}
NEED_A_SERVER = {
    "peer.beside_the_official_client": partial(peer.beside_the_official_client, calls=2, starts=1),
    "real.recall_beside_server": partial(real.recall_beside_server, size=20, rounds=2),
}


FIGURE = Figure("ours", 0.003, 0.002, "theirs", 1.5, 1.4, 1.6, 7, target=1.6)


def assert_sane(figures: list[Figure]) -> None:
    """Hold what is true of every figure."""
    assert figures
    assert len({(each.name, each.reference_name) for each in figures}) == len(figures)
    for each in figures:
        assert each.ours > 0
        assert each.reference > 0
        assert each.ratio == pytest.approx(each.ours / each.reference / each.work)
        assert 0 < each.low <= each.high < math.inf


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Give what runs the program on benchmarks of the test's own, and returns its exit code, output and errors."""

    def run(*words: str, benchmarks: tuple[Benchmark, ...] = BENCHMARKS) -> tuple[int, str, str]:
        monkeypatch.setattr("benchmarks.__main__.BENCHMARKS", benchmarks)
        monkeypatch.setattr("sys.argv", ["benchmarks", *words])
        code = main()
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def met() -> Iterator[Figure]:
    """Compare something that is as it should be."""
    yield FIGURE


def missed() -> Iterator[Figure]:
    """Compare something that is not as it should be."""
    yield replace(FIGURE, target=1.4)


def absent() -> Iterator[Figure]:
    """Compare something with what is not here."""
    yield FIGURE
    raise NotRun("needs a thing")


@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_yields_sane_figures(name: str) -> None:
    """It runs from its beginning to its end, and what it yields can be right."""
    assert_sane(list(SMALL[name]()))


@pytest.mark.real
@pytest.mark.parametrize("name", NEED_A_SERVER)
def test_a_benchmark_beside_the_real_server_yields_sane_figures(
    name: str, real_url: str, hindsight_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a real server and its client it runs as the others do."""
    monkeypatch.setenv("BANKCLIENT_TEST_URL", real_url)
    monkeypatch.setenv("BANKCLIENT_HINDSIGHT", hindsight_python)
    assert_sane(list(NEED_A_SERVER[name]()))


@pytest.mark.parametrize("name", NEED_A_SERVER)
def test_a_benchmark_without_its_server_says_what_it_needs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured, and the variable to set is named."""
    monkeypatch.delenv("BANKCLIENT_TEST_URL", raising=False)
    monkeypatch.delenv("BANKCLIENT_HINDSIGHT", raising=False)
    with pytest.raises(NotRun, match="BANKCLIENT_HINDSIGHT"):
        list(NEED_A_SERVER[name]())


def test_every_benchmark_is_tried_here() -> None:
    """None is in the program without a run on a small scale."""
    assert {name_of(each) for each in BENCHMARKS} == SMALL.keys() | NEED_A_SERVER.keys()


def test_the_first_round_does_not_count_and_every_other_goes_backwards() -> None:
    """No work profits from its place, or suffers for what is done once."""
    order: list[str] = []

    def work(name: str) -> float:
        order.append(name)
        return len(order)

    times = compare(2, lambda: work("a"), lambda: work("b"), lambda: work("c"))
    assert "".join(order) == "abc" + "cba" + "abc"
    assert times == [[6.0, 7.0], [5.0, 8.0], [4.0, 9.0]]


def test_a_ratio_is_that_of_the_medians_for_the_same_work() -> None:
    """One slow round changes nothing; ten times the work in five times the time is a ratio of one half."""
    shown = figure("ours", "theirs", [5.0, 5.0, 5.0, 9.0, 90.0], [1.0, 1.0, 1.0, 1.0, 1.0], target=0.5, work=10.0)
    assert (shown.ratio, shown.low, shown.high, shown.rounds) == (0.5, 0.5, 0.9, 5)
    assert shown.is_met
    assert not replace(shown, target=0.4).is_met
    assert replace(shown, target=None).is_met


def test_memories_and_queries_are_the_same_at_every_run() -> None:
    """A memory is known by its number, whatever batch it is made in, and a query by its shape."""
    assert memories(5, 10)[3] == memories(1, 13)[0]
    assert len({item["content"] for item in memories(200)}) == 200
    for shape in SHAPES:
        asked = queries(shape, 4)
        assert asked == queries(shape, 4)
        assert all(0 < len(query["query"]) <= 800 for query in asked)
    assert transcript_turn(3) == transcript_turn(3)


def test_the_list_says_what_each_measures(run: Callable[..., tuple[int, str, str]]) -> None:
    """Each benchmark stands on a line with one sentence, and nothing is run."""
    code, out, _ = run("--list")
    assert code == 0
    assert [line.partition(": ")[0] for line in out.splitlines()] == [name_of(each) for each in BENCHMARKS]
    assert all(line.endswith(".") for line in out.splitlines())


@pytest.mark.parametrize(("benchmarks", "code"), [((met,), 0), ((met, missed), 1), ((absent,), 0)])
def test_the_exit_code_says_whether_every_target_is_met(
    run: Callable[..., tuple[int, str, str]], benchmarks: tuple[Benchmark, ...], code: int
) -> None:
    """A missed target is 1; what could not be run is no miss."""
    assert run(benchmarks=benchmarks)[0] == code


def test_a_line_tells_ratio_spread_times_and_target(run: Callable[..., tuple[int, str, str]]) -> None:
    """What a person sees at a terminal, as it comes; with what was not run, and why."""
    _, out, err = run(benchmarks=(missed, absent))
    told = "ours: 1.50 x theirs (quartiles 1.40 to 1.60, 7 rounds; 3.00 ms and 2.00 ms)  target <= "
    assert out.splitlines() == [
        f"{told}1.4  MISSED",
        f"{told}1.6  met",
        f"{name_of(absent)} was not run: needs a thing",
    ]
    assert err == ""


def test_only_some_are_run_on_demand(run: Callable[..., tuple[int, str, str]]) -> None:
    """`--only` takes those whose name holds the text."""
    assert run("--only", "miss", benchmarks=(met, missed))[1].count("ours:") == 1


def test_json_tells_everything(run: Callable[..., tuple[int, str, str]]) -> None:
    """The output is one JSON value with machine, figures and what was not run; the lines go to the errors."""
    _, out, err = run("--json", benchmarks=(met, missed, absent))
    told = json.loads(out)
    assert [each["met"] for each in told["figures"]] == [True, False, True]
    assert told["figures"][0]["ratio"] == 1.5
    assert told["not_run"] == {name_of(absent): "needs a thing"}
    assert platform.python_version() in told["machine"]["Python"]
    assert err.count("ours:") == 3


def test_the_page_tells_everything(run: Callable[..., tuple[int, str, str]]) -> None:
    """The page has the machine, a section for each benchmark with its sentence, and a row for each figure."""
    _, out, _ = run("--page", benchmarks=(missed, absent))
    assert f"## {name_of(missed)}\n\nCompare something that is not as it should be.\n" in out
    assert "| ours | 1.50 | theirs | 1.40 to 1.60 | 3.00 ms and 2.00 ms | 7 | <= 1.4: MISSED |" in out
    assert "Not run: needs a thing.\n" in out
    assert "processors |" in out
