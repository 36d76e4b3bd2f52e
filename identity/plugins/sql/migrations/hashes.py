"""Hashes of the revisions and their imports: a released revision never changes.

``python -m identity.plugins.sql.migrations.hashes`` records new revisions: their hashes, and the tables they create
(``fingerprints``), using a server of each kind. It refuses if a recorded file has changed. It needs the test
dependencies and MariaDB's server.
"""

import hashlib
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import create_engine

from identity.plugins.sql.migrations import REVISIONS, fingerprints, mariadb
from identity.plugins.sql.settings import MARIADB, POSTGRESQL, SQLITE, SqlPluginSettings

FOLDER = Path(__file__).parent
_FILE = FOLDER / "hashes.txt"


def recorded_hashes() -> dict[str, str]:
    """The recorded hashes by file name."""
    lines = (line.split() for line in _FILE.read_text().splitlines())
    return {name: digest for digest, name in lines}


def current_hashes() -> dict[str, str]:
    """The present hashes by file name."""
    files = [*sorted(FOLDER.glob("versions/[0-9]*.py")), FOLDER / "indexes.py", FOLDER / "mariadb.py"]
    return {str(file.relative_to(FOLDER)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def changed_files() -> list[str]:
    """Files that differ from what was recorded, or are new."""
    now = current_hashes()
    return [name for name, digest in recorded_hashes().items() if digest != now.get(name)]


def record_hashes() -> list[str]:
    """Record the hashes of new files; returns their names."""
    before, now = recorded_hashes(), current_hashes()
    lines = sorted((now | before).items())
    _FILE.write_text("".join(f"{digest}  {name}\n" for name, digest in lines))
    return sorted(now.keys() - before.keys())


def create_fingerprints(kind: str, url: str) -> dict[str, set[str]]:
    """The tables after each revision, created in this empty database."""
    from identity.plugins.sql.migrations.runner import upgrade

    found, engine = {}, create_engine(SqlPluginSettings(url=url).database_url())
    for revision in REVISIONS:
        if kind != MARIADB or revision >= mariadb.BEGINS_WITH:
            with engine.begin() as connection:
                upgrade(connection, revision)
            with engine.connect() as connection:
                found[revision] = fingerprints.read_fingerprint(connection)
    engine.dispose()
    return found


@contextmanager
def _empty_database(kind: str) -> Iterator[str]:
    from identity.testing import mariadb as of_mariadb
    from identity.testing import postgresql

    with tempfile.TemporaryDirectory(prefix="identity-") as folder:
        if kind == SQLITE:
            yield f"sqlite:///{folder}/identity.db"
        elif kind == POSTGRESQL:
            with postgresql.running_server(Path(folder) / "server") as server:
                yield postgresql.new_database(server)
        else:
            with of_mariadb.running_server() as server_of_mariadb:
                yield of_mariadb.new_database(server_of_mariadb)


def main() -> int:
    """Record new revisions; returns 1, and records nothing, if a recorded file has changed or is gone."""
    for name in changed_files():
        sys.stderr.write(f"{name} was changed or removed after it had landed: restore it, and add a revision.\n")
    if changed_files():
        return 1
    for name in record_hashes():
        sys.stdout.write(f"recorded  {name}\n")
    for kind in (SQLITE, POSTGRESQL, MARIADB):
        with _empty_database(kind) as url:
            text = fingerprints.serialize_fingerprints(create_fingerprints(kind, url))
        (fingerprints.FOLDER / f"{kind}.txt").write_text(text)
        sys.stdout.write(f"recorded  what {kind}'s tables look like\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
