"""Behaviour specific to MariaDB."""

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine
from transaction.interfaces import TransientError

from identity.domain.service_user_secrets import ServiceUserSecret
from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.plugins.sql.migrations import HEAD, mariadb
from identity.plugins.sql.storage import SqlStorage
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW
from identity.storage.contract.harness import add
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.errors import DuplicateValue, StorageUnavailable

pymysql = pytest.importorskip("pymysql")

from identity.testing.mariadb import (  # noqa: E402
    MariadbServer,
    drop_database,
    new_database,
    running_server,
)

pytestmark = pytest.mark.thorough


@pytest.fixture
def backend(mariadb_url: str) -> Iterator[SqlBackend]:
    backend = SqlBackend(SqlPluginSettings(url=mariadb_url))
    yield backend
    backend.close()


def save(backend: SqlBackend, *values: object) -> None:
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for value in values:
            add(storage, value)


def variable(storage: Storage, name: str) -> Any:
    assert isinstance(storage, SqlStorage)
    return storage.connection.execute(f"SELECT @@{name}").fetchone()[0]


def test_connections_have_limits(backend: SqlBackend) -> None:
    expected = {
        "max_statement_time": 5,
        "innodb_lock_wait_timeout": 3,
        "idle_write_transaction_timeout": 10,
        "tx_isolation": "READ-COMMITTED",
        "character_set_connection": "utf8mb4",
    }
    for used, reads in ((backend.read_session(), 1), (committed_transaction(backend, ContractTransactionManager()), 0)):
        with used as storage:
            assert {name: variable(storage, name) for name in expected} == expected
            assert variable(storage, "tx_read_only") == reads
            assert isinstance(storage, SqlStorage)
            assert storage.connection.driver._read_timeout == 7, "two seconds longer than a statement may take"
            assert "STRICT_ALL_TABLES" in variable(storage, "sql_mode")
            assert "SIMULTANEOUS_ASSIGNMENT" in variable(storage, "sql_mode")


def test_greeting_has_a_shorter_timeout_than_statements(mariadb_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen server accepts connections but sends no handshake."""
    waited: list[float] = []
    greeted = pymysql.connections.Connection._get_server_information

    def greeting(connection: Any) -> None:
        waited.append(connection._read_timeout)
        greeted(connection)

    monkeypatch.setattr(pymysql.connections.Connection, "_get_server_information", greeting)
    backend = SqlBackend(SqlPluginSettings(url=mariadb_url))
    backend.check()
    backend.close()
    assert waited == [3], "as long as connect_timeout"


def test_texts_are_compared_byte_by_byte_and_spaces_at_the_end_count(backend: SqlBackend) -> None:
    organization = make.organization()
    people = [make.human_user(organization, id=id_) for id_ in ("ab", "AB", "ab ", "äb")]
    save(backend, organization, *people)
    with backend.read_session() as storage:
        assert {storage.users.find(user.id) for user in people} == set(people)


def test_follower_waits_for_events_with_lower_numbers(backend: SqlBackend) -> None:
    slow, early, late = ContractTransactionManager(), make.audit_event(), make.audit_event()
    slow.begin()
    backend.join_transaction(slow).audit.append(early)
    save_event(backend, late)
    with backend.read_session() as storage:
        assert [event.id for event in storage.audit.page()] == [late.id]
        assert storage.audit.list_after(0, 10) == (), "the one with the lower number is not committed yet"
    with ThreadPoolExecutor(1) as pool, backend.read_session() as storage:
        following = pool.submit(storage.audit.list_after, 0, 10)
        time.sleep(0.2)
        assert not following.done()
        slow.commit()
        assert [event.id for event in following.result()] == [early.id, late.id]


def save_event(backend: SqlBackend, event: Any) -> None:
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.audit.append(event)


def deadlocked(backend: SqlBackend, first: Any, second: Any, *, commit: bool) -> list[Exception]:
    """The exceptions of two transactions that change the same two rows in opposite orders."""
    both_hold_one = threading.Barrier(2)
    errors: list[Exception] = []

    def change(first: Any, other: Any) -> None:
        transactions = ContractTransactionManager()
        transactions.begin()
        try:
            storage = backend.join_transaction(transactions)
            storage.organizations.update(replace(first, version=2))
            both_hold_one.wait(10)
            try:
                storage.organizations.update(replace(other, version=2))
            except StorageUnavailable as error:
                errors.append(error)
                if not commit:
                    raise
                storage.organizations.add(make.organization(name="Left over"))
            transactions.commit()
        except StorageUnavailable as error:
            if error not in errors:
                errors.append(error)
            transactions.abort()

    threads = [threading.Thread(target=change, args=order) for order in ((first, second), (second, first))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_deadlock_can_be_tried_again(backend: SqlBackend) -> None:
    first, second = make.organization(), make.organization()
    save(backend, first, second)
    (error,) = deadlocked(backend, first, second, commit=False)
    assert isinstance(error, TransientError)


def test_deadlock_rollback_is_never_committed_in_part(backend: SqlBackend) -> None:
    first, second = make.organization(), make.organization()
    save(backend, first, second)
    reported, refused = deadlocked(backend, first, second, commit=True)
    assert isinstance(reported, TransientError)
    assert "given this transaction up" in str(refused)
    with backend.read_session() as storage:
        assert [
            organization.name for organization in storage.organizations.page() if organization.name == "Left over"
        ] == []


def test_lock_timeout_can_be_retried(backend: SqlBackend, mariadb_url: str) -> None:
    organization = make.organization()
    save(backend, organization)
    impatient = SqlBackend(SqlPluginSettings(url=mariadb_url, lock_timeout=timedelta(seconds=1)))
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.update(replace(organization, version=2))
        with (
            pytest.raises(TransientError, match="lock_timeout"),
            committed_transaction(impatient, ContractTransactionManager()) as waiting,
        ):
            waiting.organizations.update(replace(organization, version=2))
    impatient.close()


def test_statement_timeout_is_reported(mariadb_url: str) -> None:
    backend = SqlBackend(SqlPluginSettings(url=mariadb_url, statement_timeout=timedelta(seconds=1)))
    with (
        pytest.raises(StorageUnavailable, match="statement_timeout"),
        committed_transaction(backend, ContractTransactionManager()) as storage,
    ):
        storage.organizations._execute_raw("SELECT SLEEP(5) FROM audit_gate")  # type: ignore[attr-defined]
    backend.close()


def test_dump_is_read_as_slowly_as_its_reader_likes(mariadb_url: str) -> None:
    """A streamed dump is one statement until its last row is read; the limit for requests applies again afterwards."""
    backend = SqlBackend(SqlPluginSettings(url=mariadb_url, statement_timeout=timedelta(seconds=1)))
    engine = create_engine(SqlPluginSettings(url=mariadb_url).database_url())
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO outgoing_messages (id, kind, sealed, created_at, next_at, expires_at, attempts)"
            " SELECT seq, 'mail', repeat('x', 8000), 1, 1, 1, 0 FROM seq_1_to_3000"
        )
    engine.dispose()
    with backend.dump() as dump:
        rows = next(iter(part.rows) for part in dump.tables if part.table == "outgoing_messages")
        assert len(list(itertools.islice(rows, 500))) == 500
        time.sleep(1.2)
        assert len(list(rows)) == 2500
    for _ in range(3):
        with backend.read_session() as storage:
            assert variable(storage, "max_statement_time") == 1
    backend.close()


def test_unique_violation_names_its_field(backend: SqlBackend) -> None:
    organization, robot = make.organization(), make.service_user()
    robot = replace(robot, organization_id=organization.id)
    person = make.human_user(organization, user_name="ada")
    save(backend, organization, robot, person)
    for values, field in (
        (make.human_user(organization, user_name="Ada"), "user_name"),
        (make.human_user(organization, id=person.id), "id"),
        (make.organization(primary_domain=organization.primary_domain), "primary_domain"),
    ):
        with pytest.raises(DuplicateValue) as refusal:
            save(backend, values)
        assert refusal.value.args == (field,) or field in str(refusal.value)


def test_last_uses_are_noted(backend: SqlBackend) -> None:
    organization, robot = make.organization(), make.service_user()
    robot = replace(robot, organization_id=organization.id)
    secret = make.service_user_secret(robot)
    save(backend, organization, robot, secret)
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.credentials.update_last_used(ServiceUserSecret, {secret.id: NOW})
    with backend.read_session() as storage:
        assert storage.credentials.list_secrets(robot.id)[0].last_used_at == NOW


def test_killed_migration_is_resumed(mariadb_server: MariadbServer) -> None:
    url = new_database(mariadb_server)
    engine = create_engine(SqlPluginSettings(url=url).database_url())
    half = mariadb._TABLES.split(";\n")[:9]
    with engine.begin() as connection:
        for table in half:
            connection.exec_driver_sql(f"{table} {mariadb._TABLE_OPTIONS}")
    engine.dispose()
    backend = SqlBackend(SqlPluginSettings(url=url))
    with pytest.raises(StorageUnavailable):
        backend.check()
    assert backend.migrate()[-1].startswith(HEAD)
    backend.check()
    save(backend, make.organization())
    backend.close()
    drop_database(mariadb_server, url)


def test_server_outage_is_reported_and_recovered() -> None:
    with running_server() as server:
        organization, transactions = make.organization(), ContractTransactionManager()
        backend = SqlBackend(SqlPluginSettings(url=new_database(server)))
        backend.migrate()
        save(backend, organization)
        with backend.read_session() as storage:
            assert storage.organizations.page().items == (organization,)
        transactions.begin()
        caught = backend.join_transaction(transactions)
        caught.organizations.add(make.organization())
        server.kill()
        with pytest.raises(StorageUnavailable):
            caught.organizations.page()
        with pytest.raises(StorageUnavailable):
            transactions.commit()
        transactions.abort()
        with closing(backend), pytest.raises(StorageUnavailable):
            backend.check()
        server.start()
        with backend.read_session() as storage:
            assert storage.organizations.page().items == (organization,)
        with committed_transaction(backend, transactions) as storage:
            storage.organizations.delete(organization.id)
        backend.close()
