"""Behaviour specific to SQLite."""

import itertools
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from identity.domain.audit import AuditFilter
from identity.domain.deletion_impact import DeletionImpact, DeletionTarget
from identity.domain.organizations import Organization
from identity.domain.users import User
from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.plugins.sql.engines import open_migration_engine
from identity.plugins.sql.migrations import REVISIONS
from identity.plugins.sql.migrations.runner import upgrade
from identity.plugins.sql.storage import SqlStorage
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.errors import StorageUnavailable
from identity.storage.paging import PageRequest, ResultPage, RowTotal
from identity.storage.stores.purges import PurgeKind
from identity.storage.stores.users import UserKind

ValueT = TypeVar("ValueT")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/folder/identity.db"


@pytest.fixture
def backend(url: str) -> Iterator[SqlBackend]:
    backend = SqlBackend(SqlPluginSettings(url=url))
    backend.migrate()
    yield backend
    backend.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_and_folder_are_closed_to_others(backend: SqlBackend, tmp_path: Path) -> None:
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(make.organization())
        folder = tmp_path / "folder"
        assert mode(folder) == 0o700
        files = sorted(folder.iterdir())
        assert [path.name for path in files] == ["identity.db", "identity.db-shm", "identity.db-wal"]
        assert {mode(path) for path in files} == {0o600}


def test_dry_run_waits_for_no_writer(tmp_path: Path) -> None:
    path = tmp_path / "identity.db"
    engine = open_migration_engine(SqlPluginSettings(url=f"sqlite:///{path}"))
    with engine.begin() as connection:
        upgrade(connection, "0012")
    engine.dispose()
    backend = SqlBackend(SqlPluginSettings(url=f"sqlite:///{path}"))
    due = list(REVISIONS[REVISIONS.index("0012") + 1 :])
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert [line[:4] for line in backend.migrate(dry_run=True)] == due
        assert "-- audit_events: about 0 rows" in backend.migration_sql()
        writer.execute("ROLLBACK")


def test_connections_are_set_for_safety(backend: SqlBackend) -> None:
    expected = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    reading = {**expected, "busy_timeout": 5000, "query_only": 1}
    writing = {**expected, "busy_timeout": 0, "query_only": 0}
    with backend.read_session() as storage:
        assert _pragmas(storage, reading) == reading
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        assert _pragmas(storage, writing) == writing


def test_checkpoint_runs_beside_a_writer(backend: SqlBackend, tmp_path: Path) -> None:
    path = tmp_path / "folder" / "identity.db"

    def carried_over() -> int:
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM organizations").fetchone()[0])

    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(make.organization())
    assert carried_over() == 0
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(make.organization(name="Bolt"))
        backend.checkpoint()
        assert carried_over() == 1
    backend.checkpoint()
    assert carried_over() == 2


def test_write_lock_timeout_is_reported(backend: SqlBackend, url: str) -> None:
    impatient = SqlBackend(SqlPluginSettings(url=url, busy_timeout=timedelta(milliseconds=50)))
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(make.organization())
        with (
            pytest.raises(StorageUnavailable, match="locked"),
            committed_transaction(impatient, ContractTransactionManager()),
        ):
            pass
    # The connection was returned, so the next transaction can start.
    with committed_transaction(impatient, ContractTransactionManager()) as storage:
        storage.organizations.add(make.organization())
    impatient.close()


def test_failed_commit_is_reported_and_not_retried(backend: SqlBackend) -> None:
    transactions, organization = ContractTransactionManager(), make.organization()
    transactions.begin()
    storage = backend.join_transaction(transactions)
    storage.organizations.add(organization)
    # As after a full disk, when SQLite itself rolls back.
    driver_of(storage).rollback()
    with pytest.raises(StorageUnavailable):
        transactions.commit()
    transactions.abort()
    with backend.read_session() as reading:
        assert reading.organizations.find(organization.id) is None
    with committed_transaction(backend, transactions) as again:
        again.organizations.add(organization)


def test_full_disk_is_reported(backend: SqlBackend) -> None:
    transactions = ContractTransactionManager()
    transactions.begin()
    storage = backend.join_transaction(transactions)
    driver = driver_of(storage)
    pages = driver.execute("PRAGMA page_count").fetchone()[0]
    driver.execute(f"PRAGMA max_page_count = {pages}")
    big = make.organization(name="x" * 100_000)
    with pytest.raises(StorageUnavailable, match="full"):
        storage.organizations.add(big)
    transactions.abort()
    driver.execute("PRAGMA max_page_count = 1000000")
    with committed_transaction(backend, transactions) as again:
        again.organizations.add(make.organization())


def driver_of(storage: Storage) -> Any:
    assert isinstance(storage, SqlStorage)
    return storage.connection.driver


def _pragmas(storage: Storage, names: dict[str, object]) -> dict[str, object]:
    return {name: driver_of(storage).execute(f"PRAGMA {name}").fetchone()[0] for name in names}


def test_row_count_is_estimated(backend: SqlBackend) -> None:
    """From the first and the last id; up to the limit, rows are counted."""
    with backend.read_session() as storage:
        assert storage.purges.count_stored(PurgeKind.AUDIT_EVENTS, 0) == 0
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for _ in range(30):
            storage.audit.append(make.audit_event())
    with backend.read_session() as storage:
        assert [storage.purges.count_stored(PurgeKind.AUDIT_EVENTS, limit) for limit in (2, 31)] == [30, 30]


def _count_steps(storage: Storage, call: Callable[[], ValueT]) -> tuple[ValueT, int]:
    """The result, and how many hundreds of steps SQLite took for it."""
    steps = itertools.count()
    driver = storage.connection.core.connection.driver_connection  # type: ignore[attr-defined]
    driver.set_progress_handler(lambda: next(steps) < 0, 100)
    found = call()
    driver.set_progress_handler(None, 0)
    return found, next(steps)


def _add_people(backend: SqlBackend, size: int, name: str) -> Organization:
    organization = make.organization(name=name, primary_domain=f"{name}.localhost")
    people = [make.human_user(organization, user_name=f"u{number:04}") for number in range(size)]
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(organization)
        storage.users.add_many(people)
        storage.sessions.add(make.session(people[0]))
    return organization


def test_deletion_impact_reads_a_limited_number_of_rows(backend: SqlBackend) -> None:
    small, large = (_add_people(backend, size, name) for size, name in ((1000, "small"), (4000, "large")))

    def count(organization: Organization) -> tuple[DeletionImpact, int]:
        with backend.read_session() as storage:
            target = partial(storage.deletion_impact.count, DeletionTarget.ORGANIZATION, organization.id, NOW)
            return _count_steps(storage, target)

    (exact, few), (estimate, many) = count(small), count(large)
    assert exact == DeletionImpact(users=1000, sessions=1)
    assert estimate == DeletionImpact(users=1000, sessions=1, is_exact=False)
    assert many < few * 1.2


def test_search_reads_the_users_of_an_organization_once(backend: SqlBackend) -> None:
    """However late the matches come in the order of the list."""
    organization = _add_people(backend, 2000, "acme")
    with backend.read_session() as storage:

        def page(query: str) -> Callable[[], ResultPage[User]]:
            request = PageRequest(query=query, with_total=True)
            return partial(storage.users.page, organization.id, UserKind.HUMAN, request)

        scan = "SELECT count(*) FROM users WHERE organization_id = ? AND kind = 'human' AND search_text LIKE ?"
        connection = storage.connection.core  # type: ignore[attr-defined]
        _, once = _count_steps(storage, partial(connection.exec_driver_sql, scan, (organization.id, "%nobody%")))
        for query, found in (("nobody", 0), ("u1999", 1)):
            result, steps = _count_steps(storage, page(query))
            assert result.total == RowTotal(found)
            assert steps < once * 1.3


@pytest.mark.parametrize("name", ["actor_id", "object_id", "involved_id"])
def test_audit_events_of_one_actor_or_object_are_read_by_its_id(backend: SqlBackend, name: str) -> None:
    organization_id, events = "some-organization", 2000
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.audit.append_many([make.audit_event(organization_id=organization_id) for _ in range(events)])
    audit_filter = AuditFilter(organization_id=organization_id, **{name: "nobody"})
    with backend.read_session() as storage:
        found, steps = _count_steps(storage, lambda: storage.audit.page(PageRequest(with_total=True), audit_filter))
    assert (list(found), found.total) == ([], RowTotal(0))
    assert steps * 100 < events
