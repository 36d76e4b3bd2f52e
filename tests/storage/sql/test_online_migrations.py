"""Migrations during reads and writes: they block no one, and an interrupted migration is resumed."""

import itertools
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, event, text

from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.plugins.sql.engines import open_migration_engine
from identity.plugins.sql.migrations import HEAD, REVISIONS, fingerprints, runner
from identity.plugins.sql.migrations import mariadb as of_mariadb
from identity.storage.errors import StorageUnavailable
from identity.testing.postgresql import PostgresqlServer, drop_database, new_database

#: A revision that changes a busy table and creates an index on it.
TOKENS = "0010"
#: Statements that wait for a table lock.
WAITING = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'ALTER%'",
    "mariadb": "SELECT count(*) FROM information_schema.processlist"
    " WHERE state = 'Waiting for table metadata lock' AND info LIKE 'ALTER%'",
}
IS_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('ix_access_tokens_client_secret_id')"


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=pytest.mark.thorough)])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with the schema of the revision before ``TOKENS``."""
    if request.param == "mariadb":
        from identity.testing import mariadb

        server = request.getfixturevalue("mariadb_server")
        url = mariadb.new_database(server)
        made_before(TOKENS, url)
        yield url
        mariadb.drop_database(server, url)
        return
    postgresql_server: PostgresqlServer = request.getfixturevalue("postgresql_server")
    url = new_database(postgresql_server)
    made_before(TOKENS, url)
    yield url
    drop_database(postgresql_server, url)


@pytest.fixture
def postgresql(postgresql_server: PostgresqlServer) -> Iterator[str]:
    url = new_database(postgresql_server)
    yield url
    drop_database(postgresql_server, url)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry at once after a lock timeout."""
    monkeypatch.setattr(runner, "_LOCK_RETRY_PAUSE", 0.05)


def made_before(revision: str, url: str) -> None:
    engine = create_engine(SqlPluginSettings(url=url).database_url())
    with engine.begin() as connection:
        runner.upgrade(connection, REVISIONS[REVISIONS.index(revision) - 1])
    engine.dispose()


@contextmanager
def connected(url: str, **options: str) -> Iterator[Connection]:
    engine = create_engine(SqlPluginSettings(url=url).database_url(), **options)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@contextmanager
def beside(url: str) -> Iterator[Callable[[], Future[Sequence[str]]]]:
    """Run migrations in a thread, which ends before the block does."""
    backend = SqlBackend(SqlPluginSettings(url=url))
    with ThreadPoolExecutor(1) as pool:
        yield partial(pool.submit, backend.migrate)
    backend.close()


def until(condition: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def test_table_is_readable_while_its_change_waits(url: str) -> None:
    with beside(url) as migrate, connected(url) as reader, connected(url, isolation_level="AUTOCOMMIT") as asking:
        reader.execute(text("SELECT count(*) FROM access_tokens"))
        name = "lock_timeout = '3s'" if asking.dialect.name == "postgresql" else "lock_wait_timeout = 3"
        asking.execute(text(f"SET SESSION {name}"))
        waiting = text(WAITING[asking.dialect.name])
        migrated = migrate()
        for _ in range(3):
            until(lambda: asking.execute(waiting).scalar())
            assert asking.execute(text("SELECT count(*) FROM access_tokens")).scalar() == 0
            asking.execute(text("DELETE FROM access_tokens"))
        assert not migrated.done()
        reader.rollback()
        assert migrated.result()
    backend = SqlBackend(SqlPluginSettings(url=url))
    backend.check()
    backend.close()


def test_long_table_lock_is_reported(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_LOCK_TIMEOUT", 0)
    backend = SqlBackend(SqlPluginSettings(url=url))
    with connected(url) as reader:
        reader.execute(text("SELECT count(*) FROM access_tokens"))
        with pytest.raises(StorageUnavailable, match="Somebody holds a table"):
            backend.migrate()
    assert backend.migrate()[0].startswith(TOKENS)
    backend.check()
    backend.close()


@pytest.mark.thorough
def test_index_creation_blocks_nothing_and_replaces_an_invalid_index(postgresql: str) -> None:
    """Only the migration waits for readers with a snapshot older than the index."""
    made_before(TOKENS, postgresql)
    with connected(postgresql, isolation_level="REPEATABLE READ") as reader:
        reader.execute(text("SELECT count(*) FROM users"))
        with connected(postgresql, isolation_level="AUTOCOMMIT") as asking:
            asking.execute(text("SET lock_timeout = '3s'"))
            program = f"from identity.plugins.sql import *; SqlBackend(SqlPluginSettings(url={postgresql!r})).migrate()"
            runs = subprocess.Popen([sys.executable, "-c", program])
            until(lambda: asking.execute(text(IS_VALID)).first())
            assert asking.execute(text("SELECT count(*) FROM access_tokens")).scalar() == 0
            asking.execute(text("DELETE FROM access_tokens"))
            runs.kill()
            runs.wait()
            asking.execute(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONC%'")
            )
            assert asking.execute(text(IS_VALID)).scalar() is False
    backend = SqlBackend(SqlPluginSettings(url=postgresql))
    assert [line[:4] for line in backend.migrate()] == [revision for revision in REVISIONS if revision >= TOKENS]
    with connected(postgresql) as connection:
        assert connection.execute(text(IS_VALID)).scalar() is True
    backend.check()
    backend.close()


class KilledMigration(Exception):
    """Simulates the end of the program."""


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("mariadb", marks=pytest.mark.exhaustive)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "mariadb":
        from identity.testing import mariadb

        server = request.getfixturevalue("mariadb_server")
        url = mariadb.new_database(server)
        yield url
        mariadb.drop_database(server, url)
    else:
        yield (
            f"sqlite:///{tmp_path}/identity.db" if request.param == "sqlite" else request.getfixturevalue("postgresql")
        )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "begins_with",
    [None, *(pytest.param(item, marks=pytest.mark.exhaustive) for item in REVISIONS[:-4]), *REVISIONS[-4:-1]],
)
def test_interrupted_migration_is_resumed_after_any_statement(empty: str, begins_with: str | None) -> None:
    """Each run recognizes what the earlier runs have done."""
    if begins_with is not None:
        if empty.startswith("mariadb") and begins_with < of_mariadb.BEGINS_WITH:
            pytest.skip(f"MariaDB begins with {of_mariadb.BEGINS_WITH}")
        made_before(REVISIONS[REVISIONS.index(begins_with) + 1], empty)
    # Hundreds of statements in one transaction roll back the same after each, so a few samples suffice.
    step = 60 if begins_with is None and not empty.startswith("mariadb") else 1
    for statements in itertools.count(1, step):
        engine = open_migration_engine(SqlPluginSettings(url=empty))
        left = itertools.count(statements, -1)

        def kill(*_: object, left: Iterator[int] = left) -> None:
            if next(left) == 0:
                raise KilledMigration

        event.listen(engine, "before_cursor_execute", kill)
        try:
            runner.run_migrations(engine)
        except KilledMigration:
            continue
        finally:
            engine.dispose()
        break
    assert statements > 3, "it was killed in between"
    backend = SqlBackend(SqlPluginSettings(url=empty))
    backend.check()
    backend.close()
    with connected(empty) as connection:
        assert (
            fingerprints.read_fingerprint(connection)
            == fingerprints.recorded_fingerprints(connection.dialect.name)[HEAD]
        )
        if connection.dialect.name == "postgresql":
            invalid = "SELECT count(*) FROM pg_index WHERE NOT indisvalid"
            assert connection.execute(text(invalid)).scalar() == 0


def test_index_creation_does_not_block_writers(postgresql: str) -> None:
    """On an existing table."""
    made_before(REVISIONS[1], postgresql)
    backend = SqlBackend(SqlPluginSettings(url=postgresql))
    statements = "\n".join(backend.migration_sql())
    backend.close()
    created = set(re.findall(r"CREATE TABLE (\w+)", statements))
    awaited = re.findall(r"CREATE (?:UNIQUE )?INDEX \w+\s+ON (\w+)", statements)
    assert created & set(awaited)
    assert set(awaited) <= created
    assert "CREATE INDEX CONCURRENTLY" in statements
