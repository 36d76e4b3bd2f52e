"""Behaviour specific to PostgreSQL."""

import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from transaction.interfaces import TransientError

from identity.domain.permissions import INSTANCE_KEY
from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.plugins.sql.storage import SqlStorage
from identity.settings_parser import InvalidSetting
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW
from identity.storage.contract.harness import add
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.errors import AlreadyUsed, RowNotFound, StorageUnavailable
from identity.testing.postgresql import SERIALIZABLE, PostgresqlServer, new_database, running_server
from tests.process_tree import signal_process_tree


@pytest.fixture
def backend(postgresql_url: str) -> Iterator[SqlBackend]:
    backend = SqlBackend(SqlPluginSettings(url=postgresql_url))
    yield backend
    backend.close()


@pytest.fixture
def new_backend(postgresql_server: PostgresqlServer) -> Iterator[SqlBackend]:
    """A backend on a database without planner statistics."""
    backend = SqlBackend(SqlPluginSettings(url=new_database(postgresql_server)))
    backend.migrate()
    yield backend
    backend.close()


@pytest.fixture
def lone_server() -> Iterator[PostgresqlServer]:
    """A server of its own, which a test can stop."""
    folder = Path(tempfile.mkdtemp(prefix="identity-postgresql-"))
    with running_server(folder) as server:
        yield server


def test_connections_have_limits(backend: SqlBackend) -> None:
    expected = {
        "statement_timeout": "5s",
        "lock_timeout": "3s",
        "idle_in_transaction_session_timeout": "10s",
        "application_name": "identity",
        "synchronous_commit": "off",
    }
    reads, writes = backend.read_session(), committed_transaction(backend, ContractTransactionManager())
    for used, reading in ((reads, "on"), (writes, "off")):
        with used as storage:
            driver = driver_of(storage)
            assert {name: parameter(driver, name) for name in expected} == expected
            assert parameter(driver, "default_transaction_read_only") == reading
            parameters = driver.info.get_parameters()
            # Dead connections are noticed sooner than after a quarter of an hour.
            assert {parameters[name] for name in ("tcp_user_timeout", "keepalives_idle")} == {"5000", "5"}


@pytest.mark.parametrize(
    "change",
    [
        lambda storage: storage.tokens.rotate_refresh_token(
            b"unknown", make.refresh_token(make.token_family(make.human_user())), NOW
        ),
        lambda storage: storage.tokens.redeem_authorization_code(b"unknown", client_id="unknown", redeemed_at=NOW),
    ],
    ids=["rotate", "redeem"],
)
def test_token_query_cost_without_planner_statistics(
    new_backend: SqlBackend, change: Callable[[Storage], object]
) -> None:
    """Until the first ANALYZE, the planner assumes that tables are tiny."""
    sent: list[tuple[str, Any]] = []
    with committed_transaction(new_backend, ContractTransactionManager()) as storage:
        assert isinstance(storage, SqlStorage)
        execute = storage.connection.execute
        storage.connection.execute = lambda *arguments: sent.append(arguments) or execute(*arguments)
        with pytest.raises(RowNotFound):
            change(storage)
        storage.connection.execute = execute
        statement, parameters = sent[0]
        plan = [line for (line,) in driver_of(storage).execute(f"EXPLAIN {statement}", parameters)]
    assert any("Index Cond: (digest = " in line for line in plan), "\n".join(plan)
    assert not any("Seq Scan" in line or "_expires_at" in line for line in plan), "\n".join(plan)


def driver_of(storage: Storage) -> Any:
    assert isinstance(storage, SqlStorage)
    return storage.connection.driver


def parameter(driver: Any, name: str) -> object:
    return driver.execute(f"SHOW {name}").fetchone()[0]


def test_follower_waits_for_events_with_lower_numbers(backend: SqlBackend) -> None:
    slow, early, late = ContractTransactionManager(), make.audit_event(), make.audit_event()
    slow.begin()
    backend.join_transaction(slow).audit.append(early)
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.audit.append(late)
    with backend.read_session() as storage:
        assert [event.id for event in storage.audit.page()] == [late.id]
        assert storage.audit.list_after(0, 10) == (), "the one with the lower number is not committed yet"
    with ThreadPoolExecutor(1) as pool, backend.read_session() as storage:
        following = pool.submit(storage.audit.list_after, 0, 10)
        time.sleep(0.2)
        assert not following.done()
        slow.commit()
        assert [event.id for event in following.result()] == [early.id, late.id]


def test_follower_skips_unused_sequence_numbers(backend: SqlBackend) -> None:
    given_up, event = ContractTransactionManager(), make.audit_event()
    given_up.begin()
    backend.join_transaction(given_up).audit.append(make.audit_event())
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.audit.append(event)
    given_up.abort()
    with backend.read_session() as storage:
        assert [event.id for event in storage.audit.list_after(0, 10)] == [event.id]


def test_options_of_the_url_are_kept(postgresql_url: str) -> None:
    backend = SqlBackend(SqlPluginSettings(url=f"{postgresql_url}&options=-c%20work_mem%3D7MB"))
    with backend.read_session() as storage:
        assert parameter(driver_of(storage), "work_mem") == "7MB"
        assert parameter(driver_of(storage), "lock_timeout") == "3s"
    backend.close()


def test_password_comes_from_its_file(postgresql_url: str, tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("from file\n")
    path.chmod(0o600)
    backend = SqlBackend(SqlPluginSettings(url=postgresql_url, password_file=path))
    backend.check()
    with backend.read_session() as storage:
        assert storage.connection.core.engine.url.password == "from file"  # type: ignore[attr-defined]
    backend.close()
    path.chmod(0o640)
    with pytest.raises(StorageUnavailable, match="chmod 600"):
        backend.check()
    path.unlink()
    with pytest.raises(StorageUnavailable, match="cannot be read"):
        backend.check()


@pytest.fixture
def frozen(lone_server: PostgresqlServer) -> Iterator[Callable[[int], None]]:
    """Sends a signal to all processes of the server, which continue at the end, or after a minute."""

    def send(number: int) -> None:
        signal_process_tree(lone_server.process_id, number)

    # After a minute a caller that would wait forever gets its response, and the test fails.
    thaw = threading.Timer(60, send, [signal.SIGCONT])
    thaw.start()
    yield send
    thaw.cancel()
    send(signal.SIGCONT)


@pytest.mark.thorough
def test_silent_server_times_out(lone_server: PostgresqlServer, frozen: Callable[[int], None]) -> None:
    """A frozen server enforces no timeouts of its own."""
    backend = SqlBackend(SqlPluginSettings(url=new_database(lone_server), statement_timeout=timedelta(seconds=1)))
    backend.migrate()
    # One connection is in use when the server freezes.
    with backend.read_session() as storage:
        assert storage.organizations.find("1") is None
        frozen(signal.SIGSTOP)
        with pytest.raises(StorageUnavailable, match="does not answer"):
            storage.organizations.find("1")
    frozen(signal.SIGCONT)
    with backend.read_session() as storage:
        assert storage.organizations.find("1") is None, "an answer of then is not taken for one of now"
    backend.close()


@pytest.mark.thorough
def test_server_outage_is_reported_and_recovered(lone_server: PostgresqlServer) -> None:
    url, transactions, organization = new_database(lone_server), ContractTransactionManager(), make.organization()
    backend = SqlBackend(SqlPluginSettings(url=url))
    backend.migrate()
    with committed_transaction(backend, transactions) as storage:
        storage.organizations.add(organization)
    # One transaction is open.
    transactions.begin()
    caught = backend.join_transaction(transactions)
    caught.organizations.add(make.organization())
    lone_server.stop()
    with pytest.raises(StorageUnavailable):
        caught.organizations.page()
    with pytest.raises(StorageUnavailable):
        caught.organizations.page()
    with pytest.raises(StorageUnavailable):
        transactions.commit()
    transactions.abort()
    with pytest.raises(StorageUnavailable) as refusal, backend.read_session():
        pass
    assert str(refusal.value).startswith("The database does not answer: nobody listens")
    with pytest.raises(StorageUnavailable):
        backend.check()
    transactions.begin()
    with pytest.raises(StorageUnavailable):
        backend.join_transaction(transactions)
    transactions.abort()
    lone_server.start()
    began = time.monotonic()
    with backend.read_session() as storage:
        assert storage.organizations.page().items == (organization,)
    with committed_transaction(backend, transactions) as storage:
        storage.organizations.delete(organization.id)
    assert time.monotonic() - began < 5
    backend.close()


def test_connection_lost_before_commit_is_reported(
    backend: SqlBackend, transactions: ContractTransactionManager, postgresql_url: str
) -> None:
    organization = make.organization()
    transactions.begin()
    backend.join_transaction(transactions).organizations.add(organization)
    with psycopg.connect(postgresql_url, autocommit=True) as killer:
        killer.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE state = 'idle in transaction' AND datname = current_database()"
        )
    with pytest.raises(StorageUnavailable):
        transactions.commit()
    transactions.abort()
    with backend.read_session() as storage:
        assert storage.organizations.find(organization.id) is None


def test_failed_transaction_is_never_committed_silently(
    backend: SqlBackend, transactions: ContractTransactionManager
) -> None:
    organization = make.organization()
    transactions.begin()
    storage = backend.join_transaction(transactions)
    storage.organizations.add(organization)
    with pytest.raises(RowNotFound):
        storage.tokens.add_access_token(make.access_token(user_id="nobody"))
    with pytest.raises(StorageUnavailable, match="given this transaction up"):
        transactions.commit()
    transactions.abort()


def test_deadlock_can_be_tried_again(backend: SqlBackend) -> None:
    first, second = make.organization(), make.organization()
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(first)
        storage.organizations.add(second)
    both_hold_one = threading.Barrier(2)
    errors: list[Exception] = []

    def change(*order: object) -> None:
        try:
            with committed_transaction(backend, ContractTransactionManager()) as storage:
                storage.organizations.update(replace(order[0], version=2))  # type: ignore[type-var]
                both_hold_one.wait(5)
                storage.organizations.update(replace(order[1], version=2))  # type: ignore[type-var]
        except StorageUnavailable as error:
            errors.append(error)

    threads = [threading.Thread(target=change, args=order) for order in ((first, second), (second, first))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (error,) = errors
    assert isinstance(error, TransientError)


def test_serialization_failure_can_be_tried_again_also_at_the_commit(
    postgresql_url: str,
) -> None:
    backend = SqlBackend(
        SqlPluginSettings(url=f"{postgresql_url}&options=-c%20default_transaction_isolation%3Dserializable")
    )
    contract_transaction_manager, manager = ContractTransactionManager(), ContractTransactionManager()
    contract_transaction_manager.begin()
    manager.begin()
    for transactions in (contract_transaction_manager, manager):
        storage = backend.join_transaction(transactions)
        storage.organizations.page()
        storage.organizations.add(make.organization())
    contract_transaction_manager.commit()
    with pytest.raises(TransientError) as refusal:
        manager.commit()
    assert isinstance(refusal.value, StorageUnavailable)
    manager.abort()
    backend.close()


def test_lock_timeout_is_reported(backend: SqlBackend, postgresql_url: str) -> None:
    organization = make.organization()
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(organization)
    impatient = SqlBackend(SqlPluginSettings(url=postgresql_url, lock_timeout=timedelta(milliseconds=50)))
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.update(replace(organization, version=2))
        with (
            pytest.raises(StorageUnavailable, match="lock_timeout"),
            committed_transaction(impatient, ContractTransactionManager()) as waiting,
        ):
            waiting.organizations.update(replace(organization, version=2))
    impatient.close()


def test_statement_timeout_is_reported(postgresql_url: str) -> None:
    backend = SqlBackend(SqlPluginSettings(url=postgresql_url, statement_timeout=timedelta(milliseconds=50)))
    organization = make.organization()
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(organization)
        with (
            pytest.raises(StorageUnavailable, match="statement_timeout"),
            committed_transaction(backend, ContractTransactionManager()) as waiting,
        ):
            waiting.organizations.add(replace(make.organization(), primary_domain=organization.primary_domain))
    backend.close()


def test_concurrent_deactivation_and_removal_keep_last_owner(backend: SqlBackend) -> None:
    organization = make.organization()
    users = [make.human_user(organization) for _ in range(2)]
    managers = [make.manager(user) for user in users]
    _save(backend, organization, *users, *managers)
    left: list[int] = []

    def remove_the_other() -> None:
        with committed_transaction(backend, ContractTransactionManager()) as storage:
            left.append(len(storage.managers.lock_by_role(INSTANCE_KEY, "IAM_OWNER")))

    with committed_transaction(backend, ContractTransactionManager()) as storage:
        assert len(storage.managers.lock_by_role(INSTANCE_KEY, "IAM_OWNER")) == 2
        racer = threading.Thread(target=remove_the_other)
        racer.start()
        time.sleep(0.2)
        assert left == [], "it must wait"
        storage.users.update(replace(users[0], active=False, version=2))
    racer.join()
    assert left == [1]


def test_tokens_are_issued_to_locked_holders(backend: SqlBackend) -> None:
    organization = make.organization()
    user = make.human_user(organization)
    _save(backend, organization, user, make.manager(user))
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.managers.lock_by_role(INSTANCE_KEY, "IAM_OWNER")
        _save(backend, make.access_token(user))


def test_revocation_during_rotation_leaves_no_live_token(backend: SqlBackend) -> None:
    organization = make.organization()
    project = make.project(organization)
    application, user = make.application(project), make.human_user(organization)
    family = make.token_family(user, application)
    refresh, successor = make.refresh_token(family), make.refresh_token(family)
    _save(backend, organization, project, application, user, family, refresh)
    with committed_transaction(backend, ContractTransactionManager()) as revoking:
        revoking.tokens.revoke_family(family.id, NOW)
        with committed_transaction(backend, ContractTransactionManager()) as rotating:
            rotating.tokens.rotate_refresh_token(refresh.digest, successor, NOW)
    with pytest.raises(RowNotFound), committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.tokens.rotate_refresh_token(successor.digest, make.refresh_token(family), NOW)
    with pytest.raises(AlreadyUsed), committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.tokens.rotate_refresh_token(refresh.digest, make.refresh_token(family), NOW)


def _save(backend: SqlBackend, *values: object) -> None:
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for value in values:
            add(storage, value)


def test_url_options_dropped_by_a_pooler_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="ALTER ROLE"):
        SqlPluginSettings(url=f"postgresql://identity@db/identity?{SERIALIZABLE}", pooler=True)
    SqlPluginSettings(url="postgresql://identity@db/identity?sslmode=require", pooler=True)
