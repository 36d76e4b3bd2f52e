"""Database servers under fault injection sync to disk, so that what they acknowledge survives a kill."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from faults.database_servers import MariadbFaultServer, PostgresqlFaultServer
from faults.storages import unavailable_reason

pytestmark = pytest.mark.thorough


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not in pytest's folders, because servers may run as another user.
    with tempfile.TemporaryDirectory(prefix="identity-faults-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_postgresql_syncs_to_disk(folder: Path) -> None:
    with closing(PostgresqlFaultServer(folder)) as database, psycopg.connect(database.direct_url) as connection:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            assert connection.execute(f"SHOW {name}").fetchone() == ("on",), name


def test_mariadb_syncs_to_disk(folder: Path) -> None:
    reason = unavailable_reason("mariadb")
    if reason is not None:
        pytest.skip(reason)
    with closing(MariadbFaultServer(folder)) as database:
        assert database.query_number("SELECT @@innodb_flush_log_at_trx_commit") == 1
        assert database.query_number("SELECT @@innodb_doublewrite") == 1
