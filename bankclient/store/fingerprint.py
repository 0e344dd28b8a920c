"""How a key is named on the disk without being kept there.

The name is a keyed BLAKE2b hash, whose key is a salt in the state folder: the same everywhere in one state folder, and
worth nothing outside it. The hook process, which imports nothing of ours, computes it from the same salt with the
interpreter's own `_blake2`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from typing import TYPE_CHECKING

from bankclient.errors import ConfigError, StoreError
from bankclient.paths import open_private, private_folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["KEYLESS", "SALT_BYTES", "SALT_FILE", "fingerprint", "load_salt"]

KEYLESS = "keyless"
"""The fingerprint of no key at all."""
SALT_FILE = "salt"
"""The salt's file in the state folder: `SALT_BYTES` random bytes."""
SALT_BYTES = 32

_PERSON = b"bankclient key"
_DIGEST_BYTES = 16


def fingerprint(salt: bytes, token: str | None, userinfo: str | None = None) -> str:
    """Return the name of a bearer token and of the decoded `user:password` of a URL; white space around them is none.

    It is `blake2b(token NUL userinfo, digest_size=16, key=salt, person=b"bankclient key")` in hexadecimal, encoded as
    UTF-8 with surrogates passed through, or `KEYLESS` where both are empty.
    """
    parts = [(part or "").strip() for part in (token, userinfo)]
    if not any(parts):
        return KEYLESS
    secret = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(secret, digest_size=_DIGEST_BYTES, key=salt, person=_PERSON).hexdigest()


def load_salt(state_dir: Path) -> bytes:
    """Return the salt of the state folder, made at first use; processes that start together agree on one.

    Raises `StoreError` where it cannot be read or made, or is not whole.
    """
    path = state_dir / SALT_FILE
    try:
        try:
            salt = _read(path)
        except FileNotFoundError:
            _make(path)
            salt = _read(path)
    except (OSError, ConfigError) as error:
        raise StoreError(f"the salt {path} cannot be read or made: {error}") from error
    if len(salt) != SALT_BYTES:
        raise StoreError(
            f"the salt {path} is damaged; remove it (what is queued then waits until `bankclient queue rekey`)"
        )
    return salt


def _read(path: Path) -> bytes:
    with os.fdopen(open_private(path, os.O_RDONLY), "rb") as file:
        return file.read(SALT_BYTES + 1)


def _make(path: Path) -> None:
    private_folder(path.parent)
    temporary = path.with_name(f".{SALT_FILE}-{secrets.token_hex(8)}")
    with os.fdopen(open_private(temporary, os.O_WRONLY | os.O_EXCL), "wb") as file:
        file.write(secrets.token_bytes(SALT_BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        # A link, unlike a rename, never takes the place of a salt that another process has made meanwhile.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(temporary)
    finally:
        temporary.unlink()
    folder_fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder_fd)  # rows name keys by this salt: it must survive a power cut that they survive
    finally:
        os.close(folder_fd)
