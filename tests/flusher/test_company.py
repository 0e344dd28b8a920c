"""Flushers in company: two keys, event loops, processes, a fork; leases kept, lost and left behind by a kill."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from bankclient.errors import StoreError
from bankclient.flusher import Flusher, Keyring, connect
from bankclient.store.database import Database
from bankclient.store.outbox import Address, Destination, SqliteOutbox, State
from bankclient.testing.answers import Held, Reply
from bankclient.testing.fake_hindsight import FakeHindsight, FaultyTransport
from bankclient.testing.outbox import MemoryOutbox
from bankclient.testing.scripted import ScriptedServer, black_hole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bankclient.client import AsyncBankClient
    from bankclient.settings import Settings
    from bankclient.store.outbox import Lane
    from tests.flusher.conftest import Rig

PRELUDE = """
import asyncio, os, sys, time
from pathlib import Path
from bankclient.flusher import Flusher, Keyring
from bankclient.settings import Settings
from bankclient.store.database import Database
from bankclient.store.outbox import Address, SqliteOutbox
state, url = Path(sys.argv[1]), sys.argv[2]
settings = Settings(api_url=url, state_dir=state)
database = Database(state / "store.db")
outbox = SqliteOutbox(database)
keyring = Keyring(settings)
home = Address(keyring.destination(settings), "bank")
flusher = Flusher(outbox, keyring, together=database.write, lease_seconds=0.3)

def keep(text):
    outbox.add_session(home, {"content": text, "document_id": "s." + text}, now=time.time())

def flush():
    async def work():
        await flusher.flush(timeout=60.0, patience=60.0)
        await keyring.close()
    asyncio.run(work())
"""


def program(code: str, state: Path, url: str) -> subprocess.Popen[bytes]:
    """Start a process that has a flusher on the store."""
    command = [sys.executable, "-W", "error", "-c", PRELUDE + code, str(state), url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process: subprocess.Popen[bytes], code: int = 0) -> None:
    """See that the process ends well, without a word."""
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out.decode(), err.decode()) == (code, "", "")


@pytest.fixture
def fake() -> FakeHindsight:
    """Give a server in memory."""
    return FakeHindsight()


@pytest.fixture
def url(fake: FakeHindsight) -> Iterator[str]:
    """Give it on a socket."""
    with ScriptedServer(handler=fake.answer) as server:
        yield server.url


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Give a state folder."""
    return tmp_path / "state"


def fill(state: Path, url: str, count: int) -> list[str]:
    """Queue so many pieces; return their texts."""
    texts = [f"text {number:03}" for number in range(count)]
    with closing(Database(state / "store.db")) as database, database.write():
        outbox, home = SqliteOutbox(database), Address(Destination(url, "keyless"), "bank")
        for text in texts:
            outbox.add_session(home, {"content": text, "document_id": f"s.{text}"}, now=time.time())
    return texts


def flush(flusher: Flusher) -> None:
    """Flush, and close the connections."""

    async def work() -> None:
        await flusher.flush(timeout=60, patience=60)
        await flusher.keyring.close()

    asyncio.run(work())


def leftover(state: Path) -> dict[State, int]:
    """Return how much is in each state."""
    with closing(Database(state / "store.db")) as database:
        return {state: tally.items for state, tally in SqliteOutbox(database).overview(now=time.time()).states.items()}


def written_once(fake: FakeHindsight, texts: list[str]) -> bool:
    """Say whether the server wrote each text once, in the order of acknowledgement."""
    return [text for _, text in fake.model.banks["bank"].writes] == texts


# Keys


def test_two_keys_on_one_server_and_bank(rig: Rig, fake: FakeHindsight) -> None:
    """What was queued under a key is sent with that key; what is queued under one that is unknown waits for it."""
    used: list[tuple[str, str]] = []

    def reach(settings: Settings) -> AsyncBankClient:
        class Noting(FaultyTransport):
            async def send(self, request: Any, limit: float) -> Any:  # noqa: ANN401 - as the seam has it
                if request.body:
                    used.append((request.headers["authorization"], request.body.decode()))
                return await super().send(request, limit)

        return connect(settings, transport=Noting(fake))

    rig.keyring = Keyring(rig.settings_for(token="one"), connect=reach)
    rig.keyring.add(rig.settings_for(token="two"))
    unknown: list[str] = []

    class Watching:
        def failed(self, *_: object) -> None:
            raise AssertionError

        def settled(self, *_: object) -> None:
            """Pass it over."""

        def keyless(self, lane: Lane) -> None:
            unknown.append(lane.destination.key)

    rig.watcher = Watching()
    for token in ("one", "two", "three"):
        destination = rig.keyring.destination(rig.settings_for(token=token))
        rig.piece(f"of {token}", address=Address(destination, "bank"))
    rig.flush()
    assert {(key, text.split('"content":"')[1].split('"')[0]) for key, text in used} == {
        ("Bearer one", "of one"),
        ("Bearer two", "of two"),
    }
    third = rig.keyring.destination(rig.settings_for(token="three"))
    assert set(unknown) == {third.key}
    assert rig.states() == {State.STORED: 2, State.SEALED: 1}
    rig.keyring.add(rig.settings_for(token="three"))
    rig.flush()
    assert fake.texts("bank") == ["of one", "of three", "of two"]


def test_one_destination_alone(rig: Rig) -> None:
    """`only` leaves the others as they are, for whoever waits for one thing."""
    other = Address(rig.keyring.add(rig.settings_for("http://other.invalid")), "bank")
    rig.piece("here")
    rig.piece("there", address=other)
    rig.flush(only=rig.destination)
    assert rig.fake.texts("bank") == ["here"]


def test_a_destination_that_is_away_holds_up_no_other(rig: Rig) -> None:
    """Each is worked off by itself."""
    servers = {"http://hindsight.invalid": rig.fake, "http://other.invalid": FakeHindsight(key="another")}
    reach = lambda it: connect(it, transport=FaultyTransport(servers[it.api_url]))  # noqa: E731 - short
    rig.keyring = Keyring(rig.settings, connect=reach)
    other = Address(rig.keyring.add(rig.settings_for("http://other.invalid")), "other")
    for number in range(3):
        rig.piece(f"never {number}", address=other)
        rig.piece(f"here {number}")
    rig.flush(patience=0)
    assert rig.fake.texts("bank") == ["here 0", "here 1", "here 2"]
    assert rig.states() == {State.STORED: 3, State.SEALED: 3}


# Leases


def test_a_slow_answer_keeps_the_lease(state: Path, fake: FakeHindsight, url: str) -> None:
    """While a step takes longer than the lease lasts nobody else gets it."""
    fill(state, url, 1)
    answering, renewed = threading.Event(), threading.Semaphore(0)
    fake.fail("retain", lambda act: Held(answering, act()))

    class Counting(SqliteOutbox):
        def renew(self, *args: Any, **kwargs: Any) -> bool:  # noqa: ANN401 - as the original has it
            renewed.release()
            return super().renew(*args, **kwargs)

    with closing(Database(state / "store.db")) as database:
        outbox = Counting(database)
        keyring = Keyring(settings_of(state, url))
        flusher = Flusher(outbox, keyring, together=database.write, lease_seconds=0.3)
        thread = threading.Thread(target=flush, args=(flusher,))
        thread.start()
        try:
            for _ in range(6):
                assert renewed.acquire(timeout=30)
            destination = keyring.destination(settings_of(state, url))
            assert outbox.lease(destination, holder="another", seconds=1, now=time.time()) is None
        finally:
            answering.set()
            thread.join()
    assert leftover(state) == {State.STORED: 1}
    assert fake.count("retain") == 1


def settings_of(state: Path, url: str) -> Settings:
    """Return settings that name the server."""
    from bankclient.settings import Settings  # noqa: PLC0415 - the name above is a type only

    return Settings(api_url=url, state_dir=state)


def test_a_lease_that_is_lost_ends_the_work_under_it(state: Path, fake: FakeHindsight, url: str) -> None:
    """Whoever took it over sends again what was under way; the late answer changes nothing."""
    fill(state, url, 2)
    answering, asked = threading.Event(), threading.Event()

    def hold(act: Callable[[], Reply]) -> Held:
        reply = act()
        asked.set()
        return Held(answering, reply)

    fake.fail("retain", hold)
    with closing(Database(state / "store.db")) as database:
        outbox = SqliteOutbox(database)
        keyring = Keyring(settings_of(state, url))
        flusher = Flusher(outbox, keyring, together=database.write, lease_seconds=0.3)
        thread = threading.Thread(target=flush, args=(flusher,))
        thread.start()
        try:
            assert asked.wait(30)
            later = time.time() + 400  # a suspended machine wakes, and its neighbour was faster
            destination = keyring.destination(settings_of(state, url))
            lease = None
            while lease is None:
                lease = outbox.lease(destination, holder="neighbour", seconds=0.0, now=later)
            assert outbox.claim(lease, now=later) is not None
            outbox.release(lease)
        finally:
            answering.set()
            thread.join()
    assert leftover(state) == {State.STORED: 2}
    assert written_once(fake, ["text 000", "text 001"])


def test_a_flush_that_ends_in_the_middle_gives_its_lease_back(rig: Rig, fake: FakeHindsight) -> None:
    """Its time is over while the server thinks: the next one need not wait, and sends the same again."""

    class Stuck(FaultyTransport):
        async def send(self, request: Any, limit: float) -> Any:  # noqa: ANN401 - as the seam has it
            await super().send(request, limit)
            await asyncio.Event().wait()

    well, rig.keyring = rig.keyring, Keyring(rig.settings, connect=lambda it: connect(it, transport=Stuck(fake)))
    rig.piece("one")
    rig.flush(timeout=0.2)
    (lane,) = rig.outbox.overview(now=rig.clock.now()).lanes
    assert (lane.leased, rig.states()) == (False, {State.SENDING: 1})
    rig.keyring = well
    rig.flush()
    assert rig.states() == {State.STORED: 1}
    assert (fake.count("retain"), written_once(fake, ["one"])) == (2, True)


# Loops, threads, processes


def test_one_flusher_in_two_event_loops(rig: Rig) -> None:
    """One after the other, and both at once in threads."""
    flusher = rig.flusher(sleep=asyncio.sleep, clock=time.time, monotonic=time.monotonic)
    for number in range(2):
        rig.piece(f"after another {number}")
        asyncio.run(flusher.flush(timeout=30))
    for number in range(20):
        rig.piece(f"at once {number}")
    threads = [threading.Thread(target=lambda: asyncio.run(flusher.flush(timeout=30))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rig.states() == {State.STORED: 22}
    assert rig.fake.count("retain") == 22


def test_the_outbox_may_be_the_one_in_memory(fake: FakeHindsight, tmp_path: Path) -> None:
    """The flusher knows the face alone."""
    outbox = MemoryOutbox()
    keyring = Keyring(
        settings_of(tmp_path, "http://x.invalid"), connect=lambda it: connect(it, transport=FaultyTransport(fake))
    )
    home = Address(keyring.destination(settings_of(tmp_path, "http://x.invalid")), "bank")
    outbox.add_session(home, {"content": "x", "document_id": "s"}, now=time.time())
    asyncio.run(Flusher(outbox, keyring).flush(timeout=30))
    assert fake.texts("bank") == ["x"]


def test_two_processes_flush_one_store(state: Path, fake: FakeHindsight, url: str) -> None:
    """Each item goes once, in order, and both end when nothing is left."""
    texts = fill(state, url, 60)
    flushing = [program("flush()", state, url) for _ in range(2)]
    for process in flushing:
        ended(process)
    assert leftover(state) == {State.STORED: 60}
    assert written_once(fake, texts)
    assert fake.count("retain") == 60


def test_a_fork_flushes_what_it_adds_and_so_does_its_parent(state: Path, fake: FakeHindsight, url: str) -> None:
    """Built, used and then forked: both sides send, each item once, and neither hangs."""
    code = """
keep("before")
flush()
keep("parent")
child = os.fork()
if not child:
    keep("child")
    flush()
    os._exit(0)
flush()
assert os.waitpid(child, 0)[1] == 0
flush()
"""
    ended(program(code, state, url))
    assert fake.texts("bank") == ["before", "child", "parent"]
    assert len(fake.model.banks["bank"].writes) == 3
    assert leftover(state) == {State.STORED: 3}


def test_an_interpreter_that_ends_with_much_queued(state: Path) -> None:
    """A flusher that runs for ever in a program that comes to its end does not hold it up; everything stays."""
    code = """
async def live():
    running = asyncio.create_task(flusher.run())
    for _ in range(100):
        await asyncio.sleep(0)
    flusher.wake()
    running.cancel()
    await asyncio.wait([running])
    await keyring.close()

asyncio.run(live())
"""
    with black_hole() as url:
        fill(state, url, 200)
        began = time.monotonic()
        ended(program(code, state, url))
        assert time.monotonic() - began < 15  # for a busy machine; the attempt to connect alone would take longer
    assert sum(leftover(state).values()) == 200


@pytest.mark.parametrize("seed", range(3))
def test_being_killed_at_any_point_loses_and_doubles_nothing(
    state: Path, fake: FakeHindsight, url: str, seed: int
) -> None:
    """Processes that are killed while they flush, one after the other, leave what the last one finishes."""
    texts = fill(state, url, 30)
    chance = random.Random(seed)  # noqa: S311 - which point is tried is no secret
    for _ in range(5):
        asked, number = threading.Semaphore(0), chance.randrange(1, 12)
        watched = fake.answer

        def answer(request: Any, asked: Any = asked, watched: Any = watched) -> Any:  # noqa: ANN401 - as a handler has it
            asked.release()
            return watched(request)

        fake.answer = answer  # type: ignore[method-assign] # to see how far it came
        process = program("flush()", state, url)
        while number and process.poll() is None:
            number -= asked.acquire(timeout=0.05)
        process.kill()
        process.communicate()
        fake.answer = watched  # type: ignore[method-assign] # as it was
    ended(program("flush()", state, url))
    assert leftover(state) == {State.STORED: 30}
    assert fake.texts("bank") == texts
    assert sorted(text for _, text in fake.model.banks["bank"].writes) == texts


# A store that fails


def test_a_store_that_cannot_be_used_is_waited_for(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """A flusher that runs for ever says so once, and goes on; a flush raises it."""
    rig.piece("one")
    troubles = [StoreError("its disk is full")] * 4
    stored: asyncio.Queue[None] = asyncio.Queue()

    class Failing(SqliteOutbox):
        def lease(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original has it
            if troubles:
                raise troubles.pop()
            return super().lease(*args, **kwargs)

    class Watching:
        def failed(self, *_: object) -> None:
            raise AssertionError

        def settled(self, *_: object) -> None:
            stored.put_nowait(None)

        def keyless(self, *_: object) -> None:
            raise AssertionError

    rig.outbox = Failing(rig.database)
    rig.watcher = Watching()
    with pytest.raises(StoreError):
        rig.flush()

    async def live() -> None:
        running = asyncio.create_task(rig.flusher().run())
        async with asyncio.timeout(30):
            await stored.get()
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(live())
    assert caplog.messages == ["what is queued is not sent for now: its disk is full"]
    assert rig.fake.texts("bank") == ["one"] or rig.states()[State.ACCEPTED] == 1
