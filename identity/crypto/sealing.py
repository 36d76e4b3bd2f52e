"""Sealing: encrypts secrets in the database with AES-256-GCM under master keys that are stored elsewhere.

A sealed value is: version (one byte), length of the master key's id (one byte), that id, nonce (12 bytes),
ciphertext with its tag (16 bytes). Version, id and the caller's associated data are authenticated, too.
"""

import base64
import itertools
import os
import re
import secrets
import shlex
import stat
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from identity.domain.errors import Invalid

KEY_LENGTH = 32
NONCE_LENGTH = 12
TAG_LENGTH = 16
VERSION = 1
MAX_FILE_BYTES = 1024

_ID = re.compile(r"[A-Za-z0-9_.-]{1,32}")
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{43}=?|[A-Za-z0-9_-]{43}=?")
_HEX = re.compile(rb"[0-9A-Fa-f]{64}")

# 32 random bytes hold 30 different values on average, and fewer than these with a probability below 10^-15.
_MIN_DISTINCT_BYTES = 16


class UnsealingError(Exception):
    """The value cannot be opened: its master key is missing, or it is damaged, forged, or sealed for another place.

    ``key_id`` names the master key if the value does; the error never contains any content.
    """

    def __init__(self, why: str, key_id: str | None = None) -> None:
        super().__init__(why)
        self.key_id = key_id


@dataclass(frozen=True, slots=True)
class MasterKey:
    """A key of 32 bytes, with the id that sealed values contain.

    Raises Invalid for an id other than 1 to 32 of ``A-Za-z0-9_.-``, and for a key that is guessable or has another
    length.
    """

    id: str
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise _raise_invalid(f"The id {self.id!r} must be 1 to 32 of the characters A-Z a-z 0-9 _ . -")
        if len(self.key) != KEY_LENGTH:
            raise _raise_invalid(f"The master key {self.id} must have {KEY_LENGTH} bytes, not {len(self.key)}.")
        if _is_guessable(self.key):
            raise _raise_invalid(f"The master key {self.id} is not random. {_CREATE_HINT}")


class Sealer:
    """Seals with the first master key, and opens values sealed with any of them.

    Raises Invalid if there is no key, or if two have the same id or bytes.
    """

    def __init__(self, keys: tuple[MasterKey, ...]) -> None:
        _require_distinct_keys(keys)
        self._ciphers = {key.id: AESGCM(key.key) for key in keys}
        self.active_id = keys[0].id

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the master keys, the active one first."""
        return tuple(self._ciphers)

    def __repr__(self) -> str:
        return f"Sealer({', '.join(self._ciphers)})"

    def seal(self, plaintext: bytes, *, associated_data: str, key_id: str | None = None) -> bytes:
        """The sealed value, which opens only with the same ``associated_data``, such as the id of its row.

        ``key_id`` selects another master key than the active one.
        """
        used = key_id or self.active_id
        head = _value_prefix(used)
        nonce = os.urandom(NONCE_LENGTH)
        return head + nonce + self._ciphers[used].encrypt(nonce, plaintext, _authenticated_data(head, associated_data))

    def open(self, sealed: bytes, *, associated_data: str) -> bytes:
        """The content of the sealed value.

        Raises UnsealingError.
        """
        key_id, head = _parse_header(sealed)
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise UnsealingError(f"the master key {key_id} is not among identity.master_keys", key_id)
        body = sealed[len(head) :]
        try:
            return cipher.decrypt(body[:NONCE_LENGTH], body[NONCE_LENGTH:], _authenticated_data(head, associated_data))
        except InvalidTag:
            raise UnsealingError(
                f"damaged, or not sealed under this master key {key_id} for this place", key_id
            ) from None

    @property
    def active_prefix(self) -> bytes:
        """The prefix of all values sealed under the active master key, and of no others."""
        return _value_prefix(self.active_id)

    def is_current(self, sealed: bytes) -> bool:
        """True if the value names the active master key; otherwise it should be resealed.

        Raises UnsealingError if it is not a sealed value.
        """
        return _parse_header(sealed)[0] == self.active_id


class MissingKeySealer(Sealer):
    """Takes the place of a Sealer without master keys: each use raises the error that ``problem`` returns."""

    def __init__(self, problem: Callable[[], Exception]) -> None:
        self._problem = problem

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._problem()

    def __repr__(self) -> str:
        return "NoSealer()"


def sealing_key_id(sealed: bytes) -> str:
    """The id of the master key under which the value is sealed.

    Raises UnsealingError if it is not a sealed value.
    """
    return _parse_header(sealed)[0]


def _value_prefix(key_id: str) -> bytes:
    name = key_id.encode("ascii")
    return bytes((VERSION, len(name))) + name


def _authenticated_data(head: bytes, associated: str) -> bytes:
    # The head contains its own length, so no other pair of head and text yields the same bytes.
    return head + associated.encode("utf-8", "surrogatepass")


def _parse_header(sealed: bytes) -> tuple[str, bytes]:
    """The master key's id, and the header's bytes."""
    if len(sealed) < 2 or sealed[0] != VERSION or len(sealed) < 2 + sealed[1] + NONCE_LENGTH + TAG_LENGTH:
        raise UnsealingError("not a sealed value")
    head = sealed[: 2 + sealed[1]]
    key_id = head[2:].decode("ascii", "replace")
    if not _ID.fullmatch(key_id):
        raise UnsealingError("not a sealed value")
    return key_id, head


_RESTORE_HINT = (
    "Put it there, mode 0600: what is stored, and a backup, opens with the key of its time alone. For a new service"
    " run `identity master-key FILE`."
)
_CREATE_HINT = "Run `identity master-key FILE` to make one."


def read_master_keys(entries: Sequence[str]) -> tuple[MasterKey, ...]:
    """The master keys that ``identity.master_keys`` lists as ``id:file``, in that order.

    A file contains 32 random bytes as they are, in base64 or in hexadecimal, and only its owner may read it. Raises
    Invalid; its message for ``master_keys`` tells the operator what to do.
    """
    keys = tuple(_read_entry(entry, number) for number, entry in enumerate(entries, start=1))
    _require_distinct_keys(keys)
    return keys


def create_master_key_file(path: Path) -> None:
    """Create a file (mode 0600) with a new master key in base64; it appears completely or not at all.

    Raises FileExistsError, without changing the file, if it exists.
    """
    if os.path.lexists(path):
        raise FileExistsError(path)
    # Linking fails if the name is taken, like O_EXCL, but other processes never see a partial file.
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(base64.b64encode(secrets.token_bytes(KEY_LENGTH)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(scratch, path)
    finally:
        os.unlink(scratch)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # A power failure must not lose a key under which values are already sealed.
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _raise_invalid(sentence: str) -> Invalid:
    return Invalid({"master_keys": sentence})


def _require_distinct_keys(keys: Sequence[MasterKey]) -> None:
    if not keys:
        raise _raise_invalid(f'Name at least one master key, as "id:file". {_CREATE_HINT}')
    ids = [key.id for key in keys]
    for key_id in ids:
        if ids.count(key_id) > 1:
            raise _raise_invalid(f"The id {key_id} is used twice; give every master key an id of its own.")
    if len({key.key for key in keys}) != len(keys):
        raise _raise_invalid(f"Two of the master keys {', '.join(ids)} are the same; a new id needs a new key.")


def _read_entry(entry: str, number: int) -> MasterKey:
    key_id, colon, path = (part.strip() for part in entry.partition(":"))
    if not colon or not path or not _ID.fullmatch(key_id):
        # The message does not quote the entry, which could be the key itself.
        raise _raise_invalid(f'Entry {number} is not of the form "id:file", the id being 1 to 32 of A-Z a-z 0-9 _ . -')
    key = _decode_key(_read_key_file(key_id, path))
    if key is None:
        raise _raise_invalid(
            f"{path} does not hold a master key: 32 random bytes, as they are, in base64 (44 characters) or in "
            f"hexadecimal (64). {_CREATE_HINT}"
        )
    return MasterKey(key_id, key)


def _read_key_file(key_id: str, path: str) -> bytes:
    try:
        # Non-blocking, because a named pipe must not block the start.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        if _decode_key(os.fsencode(path)) is not None:
            raise _raise_invalid(f"Name a file for the master key {key_id}, and put the key into the file.") from None
        where = _RESTORE_HINT.replace("FILE", shlex.quote(str(path)))
        raise _raise_invalid(f"The file of the master key {key_id}, {path}, does not exist. {where}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a file name"
        raise _raise_invalid(f"The file of the master key {key_id}, {path}, cannot be read: {why}.") from None
    try:
        # Checked on the open file instead of its name, so that the file cannot be replaced in between.
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise _raise_invalid(f"{path}, named for the master key {key_id}, is not a regular file.")
        if mode & 0o077:
            raise _raise_invalid(f'{path} is open to others (mode {stat.S_IMODE(mode):04o}): run "chmod 600 {path}".')
        return os.read(handle, MAX_FILE_BYTES)
    finally:
        os.close(handle)


def _decode_key(content: bytes) -> bytes | None:
    """The key in a file's content; None if it contains none."""
    # 32 printable characters are a phrase, or 16 bytes in hexadecimal; random bytes are hardly ever printable.
    if len(content) == KEY_LENGTH and not _is_printable(content):
        return content
    text = content.strip()
    if _HEX.fullmatch(text):
        return bytes.fromhex(text.decode("ascii"))
    if _BASE64.fullmatch(text):
        return base64.b64decode(text.translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=") + b"=")
    return None


def _is_printable(data: bytes) -> bool:
    return all(0x20 <= byte < 0x7F or byte in b"\t\r\n" for byte in data)


def _is_guessable(key: bytes) -> bool:
    """True for a phrase, a repeated pattern or a sequence of numbers, as in examples and placeholders."""
    steps = {(after - before) % 256 for before, after in itertools.pairwise(key)}
    return _is_printable(key) or len(set(key)) < _MIN_DISTINCT_BYTES or len(steps) == 1
