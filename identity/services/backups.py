"""Backups: write the whole storage to one file, and read it back.

The file is a zip with one file for each table (each line is a JSON array: first the column names, then the rows,
with bytes in base64 as an array of one), ``manifest.json`` (the tables with row counts and digests) and
``seals.json`` (the manifest's digest, sealed under each master key). Without one of these keys a backup can be
neither forged nor changed.
"""

import hashlib
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

from identity.crypto.sealing import Sealer, UnsealingError
from identity.crypto.secrets import constant_time_equal
from identity.domain.errors import DomainError
from identity.services.audit import AuditRecorder
from identity.storage.dump import Cell, StorageDump, TableRows

FORMAT = "identity-backup"
VERSION = 1

_MANIFEST, _SEALS = "manifest.json", "seals.json"
_SEALING_CONTEXT = "manifest of a backup"
#: Anything larger is not a manifest.
_LARGEST_MANIFEST = 1 << 20
#: Twice as fast as the default, for ten percent more bytes.
_EFFORT = 3
_AT_A_TIME = 1000


class InvalidBackup(DomainError):
    """The file is not a backup, is damaged, or belongs to other master keys; the message says which."""


#: Exceptions raised when reading a damaged zip, whichever byte is affected.
_DAMAGE = (BadZipFile, KeyError, EOFError, zlib.error, RuntimeError)

#: Called with the number of further rows that are done.
ProgressCallback = Callable[[int], None]


@dataclass(frozen=True)
class TableManifest:
    name: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class BackupManifest:
    made_at: str
    made_by: str
    schema: str
    numbers: Mapping[str, int]
    tables: Sequence[TableManifest]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    def record_event(self, audit: AuditRecorder, event: str) -> None:
        detail = {"made_at": self.made_at, "made_by": self.made_by, "rows": self.rows}
        audit.record(event, kind="instance", id=None, organization_id=None, detail=detail)


def write_backup(
    file: IO[bytes],
    dump: StorageDump,
    sealer: Sealer,
    *,
    created_at: datetime,
    program_version: str,
    progress: ProgressCallback,
) -> BackupManifest:
    """Write all tables to an empty seekable file. ``program_version`` is stored in the manifest."""
    moment = created_at.timetuple()[:6]
    with ZipFile(file, "w", ZIP_DEFLATED, compresslevel=_EFFORT) as archive:
        tables = [_write(archive, part, moment, progress) for part in dump.tables]
        manifest = BackupManifest(
            created_at.isoformat(), program_version, dump.schema_revision, dict(dump.sequence_numbers), tables
        )
        text = json.dumps({"format": FORMAT, "version": VERSION, **asdict(manifest)}, indent=1).encode()
        digest = hashlib.sha256(text).digest()
        seals = {
            key: b64encode(sealer.seal(digest, associated_data=_SEALING_CONTEXT, key_id=key)).decode()
            for key in sealer.ids
        }
        archive.writestr(ZipInfo(_MANIFEST, moment), text)
        archive.writestr(ZipInfo(_SEALS, moment), json.dumps(seals).encode())
    return manifest


def _write(archive: ZipFile, part: TableRows, moment: Any, say: ProgressCallback) -> TableManifest:
    info = ZipInfo(_entry(part.table), moment)
    info.compress_type = ZIP_DEFLATED
    digest, count, lines = hashlib.sha256(), 0, _lines(part)
    with archive.open(info, "w", force_zip64=True) as file:
        while batch := list(islice(lines, _AT_A_TIME)):
            text = b"".join(batch)
            file.write(text)
            digest.update(text)
            count += len(batch)
            say(len(batch))
    return TableManifest(part.table, count - 1, digest.hexdigest())


def _lines(part: TableRows) -> Iterator[bytes]:
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_bytes_as_list).encode
    yield encode(list(part.columns)).encode() + b"\n"
    for row in part.rows:
        yield encode(list(row)).encode() + b"\n"


def _bytes_as_list(value: object) -> list[str]:
    # Anything but text, numbers and booleans is bytes, in one of the types that drivers use.
    return [b64encode(memoryview(value)).decode()]  # type: ignore[arg-type]


class BackupReader:
    """A backup opened for reading: its ``manifest`` and its rows. Raises InvalidBackup unless the manifest is sealed
    under these master keys."""

    def __init__(self, path: Path, sealer: Sealer) -> None:
        try:
            self._archive = ZipFile(path)
        except (*_DAMAGE, ValueError):
            raise InvalidBackup(f"{path} is no backup, or only a part of one.") from None
        try:
            self.manifest = self._manifest(path, sealer)
        except BaseException:
            self._archive.close()
            raise

    def close(self) -> None:
        self._archive.close()

    def verify(self, say: ProgressCallback) -> None:
        """Read every table once. Raises InvalidBackup for a table that was changed."""
        for table in self.manifest.tables:
            digest, count = hashlib.sha256(), 0
            for line in self._read(table):
                digest.update(line)
                count += 1
                if count % _AT_A_TIME == 0:
                    say(_AT_A_TIME)
            if (digest.hexdigest(), count - 1) != (table.sha256, table.rows):
                raise _damaged_backup_error(table)

    def read_dump(self, say: ProgressCallback) -> StorageDump:
        """All rows, read while you iterate over the dump, which raises InvalidBackup."""
        return StorageDump(
            self.manifest.schema, self.manifest.numbers, (self._rows(table, say) for table in self.manifest.tables)
        )

    def _rows(self, table: TableManifest, say: ProgressCallback) -> TableRows:
        lines = self._read(table)
        return TableRows(table.name, _cells(next(lines)), _count_rows(map(_cells, lines), say))  # type: ignore[arg-type]

    def _read(self, table: TableManifest) -> Iterator[bytes]:
        try:
            with self._archive.open(_entry(table.name)) as file:
                yield from file
        except _DAMAGE:
            raise _damaged_backup_error(table) from None

    def _manifest(self, path: Path, sealer: Sealer) -> BackupManifest:
        try:
            text, seals = (self._read_small_file(name) for name in (_MANIFEST, _SEALS))
            values, sealed = json.loads(text), json.loads(seals)
            if values.pop("format") != FORMAT or not sealed:
                raise ValueError("another format")
            version = values.pop("version")
            digests = {key: b64decode(value) for key, value in sealed.items()}
        except (*_DAMAGE, ValueError, TypeError, AttributeError):
            raise InvalidBackup(f"{path} is no backup, or a damaged one.") from None
        _check_seals(digests, hashlib.sha256(text).digest(), sealer)
        if version != VERSION:
            raise InvalidBackup(
                f"{path} has the format {version}, and this version reads {VERSION}. Install a newer one."
            )
        tables = [TableManifest(**item) for item in values.pop("tables")]
        return BackupManifest(**values, tables=tables)

    def _read_small_file(self, name: str) -> bytes:
        with self._archive.open(name) as file:
            content = file.read(_LARGEST_MANIFEST + 1)
        if len(content) > _LARGEST_MANIFEST:
            raise ValueError("too large")
        return content


def _check_seals(seals: Mapping[str, bytes], digest: bytes, sealer: Sealer) -> None:
    """Raise InvalidBackup unless every master key of the backup is present and has sealed this digest."""
    missing = sorted(set(seals) - set(sealer.ids))
    if missing:
        raise InvalidBackup(
            f"The backup was made with the master keys {', '.join(seals)}, and identity.master_keys lacks"
            f" {', '.join(missing)}. Name those of that time; what is sealed could not be opened without them."
        )
    for key, sealed in seals.items():
        try:
            right = constant_time_equal(sealer.open(sealed, associated_data=_SEALING_CONTEXT), digest)
        except UnsealingError:
            raise InvalidBackup(
                f"The master key {key} in identity.master_keys is not the one with which the backup was made, or the"
                " backup was changed."
            ) from None
        if not right:
            raise InvalidBackup("The manifest of the backup was changed: it is not what was sealed.")


def _entry(table: str) -> str:
    return f"tables/{table}.jsonl"


def _cells(line: bytes) -> list[Cell]:
    return [b64decode(cell[0]) if type(cell) is list else cell for cell in json.loads(line)]


def _count_rows(rows: Iterator[Sequence[Cell]], say: ProgressCallback) -> Iterator[Sequence[Cell]]:
    for count, row in enumerate(rows, start=1):
        yield row
        if count % _AT_A_TIME == 0:
            say(_AT_A_TIME)


def _damaged_backup_error(table: TableManifest) -> InvalidBackup:
    return InvalidBackup(f"The backup is damaged: {table.name} is not as it was written. Nothing was restored.")
