"""Turns: whether redacting text and reading transcripts take time in step with the bytes, and how long it is."""

from __future__ import annotations

import base64
import json
import re
import uuid
from typing import TYPE_CHECKING, AnyStr

from bankclient.turns.redact import redact
from bankclient.turns.transcript.claude_code import read_record
from bankclient.turns.transcript.cursor import Cursor
from bankclient.turns.transcript.reader import read_new
from benchmarks.corpus import seeded, words
from benchmarks.measure import compare, cpu_timed, figure
from benchmarks.transcripts import transcript_turn

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from benchmarks.measure import Figure

__all__ = ["reading", "redaction"]

_MEGABYTE = 1 << 20
_PARTS = 4
_LINEAR = 1.25
"""The bound for what is linear: exactly so would be 1, quadratic time 4."""
_WORD = re.compile(r"\w+")


def redaction(rounds: int = 6, size: int = _MEGABYTE) -> Iterator[Figure]:
    """Compare redacting 1 MB in one piece with redacting a quarter of it four times, in processor time."""
    for kind, make in _TEXTS.items():
        part = make(seeded(0), size // _PARTS)
        yield _growth(f"redacting {kind}", rounds, redact, part, part * _PARTS)
    text = _talk(seeded(0), size)
    times = compare(rounds, lambda: cpu_timed(lambda: redact(text)), lambda: cpu_timed(lambda: _WORD.findall(text)))
    yield figure("redacting talk", "finding its words", *times)


def reading(rounds: int = 20, size: int = _MEGABYTE) -> Iterator[Figure]:
    """Compare reading a transcript of 1 MB with reading a quarter of it four times, in processor time."""
    part = _transcript(size // _PARTS)
    yield _growth("reading a transcript", rounds, _read, part, part * _PARTS)
    data = _transcript(size)
    times = compare(
        rounds,
        lambda: cpu_timed(lambda: _read(data)),
        lambda: cpu_timed(lambda: [json.loads(line) for line in data.splitlines()]),
    )
    yield figure("reading a transcript", "json.loads of its lines", *times)


def _growth(name: str, rounds: int, work: Callable[[AnyStr], object], part: AnyStr, whole: AnyStr) -> Figure:
    ours, reference = compare(
        rounds, lambda: cpu_timed(lambda: work(whole)), lambda: cpu_timed(lambda: [work(part) for _ in range(_PARTS)])
    )
    return figure(name, f"the same in {_PARTS} pieces", ours, reference, target=_LINEAR)


def _transcript(size: int) -> bytes:
    turns: list[bytes] = []
    while sum(map(len, turns)) < size:
        turns.append(transcript_turn(len(turns)).lines)
    return b"".join(turns)


def _read(data: bytes) -> None:
    reading = read_new(read_record, "s", Cursor(), lambda offset, length: data[offset : offset + length], len(data))
    if reading.cursor.offset != len(data) or not reading.messages:
        raise RuntimeError("the transcript was not read to its end")


def _filled(size: int, line: Callable[[], str]) -> str:
    lines: list[str] = []
    while sum(map(len, lines)) < size:
        lines.append(line())
    return "\n".join(lines)[:size]


def _talk(chance: random.Random, size: int) -> str:
    return _filled(size, lambda: " ".join(words(chance, 2_000)))


def _blobs(chance: random.Random, size: int) -> str:
    def lines() -> str:
        blob = base64.b64encode(chance.randbytes(600)).decode()
        return "\n".join([chance.randbytes(20).hex(), str(uuid.UUID(int=chance.getrandbits(128))), blob] * 4)

    return _filled(size, lines)


def _secrets(chance: random.Random, size: int) -> str:
    def lines() -> str:
        secret = base64.b32encode(chance.randbytes(20)).decode()
        return "\n".join(
            (
                f"export DB_PASSWORD={secret}",
                f"git clone https://ann:{secret}@example.com/{chance.choice(words(chance, 5))}.git",
                f"Authorization: Bearer {secret}",
                " ".join(words(chance, 100)),
            )
        )

    return _filled(size, lines)


def _hostile(chance: random.Random, size: int) -> str:
    """Return what a careless pattern takes for a beginning at every place."""
    beginnings = (
        "-----BEGIN PRIVATE KEY-----\n",
        "eyJhbGciOi.",
        "sk-",
        "https://a:",
        "password=",
        "a",
        "A1-",
        '"x": "',
    )
    return _filled(size, lambda: chance.choice(beginnings) * 2_000)


_TEXTS: dict[str, Callable[[random.Random, int], str]] = {
    "talk": _talk,
    "hashes, ids and base64": _blobs,
    "talk full of secrets": _secrets,
    "text made to be slow": _hostile,
}
