"""Naming a key without keeping it."""

from __future__ import annotations

import os
import secrets
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from bankclient.errors import StoreError
from bankclient.store.fingerprint import KEYLESS, SALT_BYTES, SALT_FILE, fingerprint, load_salt

if TYPE_CHECKING:
    from pathlib import Path

_SALT = bytes(range(32))


@pytest.mark.parametrize(("token", "userinfo"), [(None, None), ("", ""), ("  ", None), (None, " \n")])
def test_no_key_has_a_name_of_its_own(token: str | None, userinfo: str | None) -> None:
    """What is empty or blank is no key, whatever the salt."""
    assert fingerprint(_SALT, token, userinfo) == KEYLESS


def test_a_key_is_told_apart_from_every_other() -> None:
    """Another token, another password, the other place, another salt: each has another name."""
    names = {
        fingerprint(_SALT, "key"),
        fingerprint(_SALT, "kez"),
        fingerprint(_SALT, None, "key"),
        fingerprint(_SALT, "key", "user:password"),
        fingerprint(bytes(32), "key"),
        KEYLESS,
    }
    assert len(names) == 6
    assert fingerprint(_SALT, " key\n", "") == fingerprint(_SALT, "key")


def test_the_name_shows_nothing_of_the_key() -> None:
    """The name is a hash of fixed length, also for text that is not valid Unicode."""
    for token in ("hsk-secret", "x" * 5000, "caf\udce9"):
        assert len(fingerprint(_SALT, token)) == 32
        assert token not in fingerprint(_SALT, token)


def test_a_process_with_the_cheapest_built_ins_computes_the_same() -> None:
    """The hook process names a key alike from `_blake2` alone, as the docstring says."""
    program = (
        "import _blake2, sys\n"
        "data = (sys.argv[1] + '\\0').encode('utf-8', 'surrogatepass')\n"
        "print(_blake2.blake2b(data, digest_size=16, key=bytes(range(32)), person=b'bankclient key').hexdigest())"
    )
    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, "hsk-1"], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == fingerprint(_SALT, "hsk-1")


def test_the_salt_is_made_once_and_kept_private(tmp_path: Path) -> None:
    """The first use makes it, 0600 in a folder of 0700; later ones read the same, and nothing else is left."""
    state = tmp_path / "state"
    salt = load_salt(state)
    assert len(salt) == SALT_BYTES
    assert load_salt(state) == salt
    assert [file.name for file in state.iterdir()] == [SALT_FILE]
    assert stat.S_IMODE((state / SALT_FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert load_salt(tmp_path / "other") != salt


def test_processes_that_start_together_agree_on_the_salt(tmp_path: Path) -> None:
    """Whoever makes it first, all use that one."""
    program = (
        "import sys; from pathlib import Path; from bankclient.store.fingerprint import load_salt\n"
        "sys.stdin.read(1); print(load_salt(Path(sys.argv[1])).hex())"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "state")]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(5)]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"x")
        child.stdin.flush()
    salts = {child.communicate()[0] for child in children}
    assert salts == {load_salt(tmp_path / "state").hex().encode() + b"\n"}


def test_a_salt_that_was_made_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is second to finish takes the first one's salt, under which rows may stand already."""
    made = secrets.token_bytes

    def slowly(count: int) -> bytes:
        (tmp_path / SALT_FILE).write_bytes(_SALT)
        return made(count)

    monkeypatch.setattr(secrets, "token_bytes", slowly)
    assert load_salt(tmp_path) == _SALT
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_a_damaged_salt_is_named_and_kept(tmp_path: Path) -> None:
    """Another salt would un-name every key on the disk, so a broken one is not replaced in silence."""
    (tmp_path / SALT_FILE).write_bytes(b"short")
    with pytest.raises(StoreError, match=r"damaged; remove it.*rekey"):
        load_salt(tmp_path)
    assert (tmp_path / SALT_FILE).read_bytes() == b"short"


def test_a_planted_salt_is_refused(tmp_path: Path) -> None:
    """A symlink in the salt's place is not followed."""
    (tmp_path / "theirs").write_bytes(os.urandom(SALT_BYTES))
    (tmp_path / SALT_FILE).symlink_to(tmp_path / "theirs")
    with pytest.raises(StoreError, match="symlink"):
        load_salt(tmp_path)
