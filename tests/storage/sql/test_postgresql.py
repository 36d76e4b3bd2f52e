"""What holds for PostgreSQL alone."""

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
from identity.ini_values import BadSetting
from identity.plugins.sql import Settings, SqlBackend
from identity.plugins.sql.storage import SqlStorage
from identity.storage.backend import Storage
from identity.storage.contract.base import add
from identity.storage.contract.factories import (
    NOW,
    a_family,
    a_human_user,
    a_manager,
    a_project,
    a_refresh_token,
    an_access_token,
    an_application,
    an_audit_event,
    an_organization,
)
from identity.storage.contract.transactions import Transactions, committing
from identity.storage.errors import AlreadyUsed, Missing, Unavailable
from identity.testing.postgresql import SERIALIZABLE, PostgresqlServer, new_database, running_server
from identity.testing.processes import signal_family


@pytest.fixture
def backend(postgresql_url: str) -> Iterator[SqlBackend]:
    backend = SqlBackend(Settings(url=postgresql_url))
    yield backend
    backend.close()


@pytest.fixture
def new_backend(postgresql_server: PostgresqlServer) -> Iterator[SqlBackend]:
    """On a database of which the planner knows nothing."""
    backend = SqlBackend(Settings(url=new_database(postgresql_server)))
    backend.migrate()
    yield backend
    backend.close()


@pytest.fixture
def lone_server() -> Iterator[PostgresqlServer]:
    """A server that can be stopped without disturbing other tests."""
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
    reads, writes = backend.reading(), committing(backend, Transactions())
    for used, reading in ((reads, "on"), (writes, "off")):
        with used as storage:
            driver = driver_of(storage)
            assert {name: shown(driver, name) for name in expected} == expected
            assert shown(driver, "default_transaction_read_only") == reading
            parameters = driver.info.get_parameters()
            # A network that swallows everything is noticed, and not after a quarter of an hour.
            assert {parameters[name] for name in ("tcp_user_timeout", "keepalives_idle")} == {"5000", "5"}


@pytest.mark.parametrize(
    "change",
    [
        lambda storage: storage.tokens.rotate(b"unknown", a_refresh_token(a_family(a_human_user())), NOW),
        lambda storage: storage.tokens.redeem_code(b"unknown", client_id="unknown", at=NOW),
    ],
    ids=["rotate", "redeem"],
)
def test_a_token_costs_the_same_where_the_planner_knows_nothing_yet(
    new_backend: SqlBackend, change: Callable[[Storage], object]
) -> None:
    """Until tables are analyzed for the first time it takes them for tiny, however fast they grow."""
    sent: list[tuple[str, Any]] = []
    with committing(new_backend, Transactions()) as storage:
        assert isinstance(storage, SqlStorage)
        execute = storage.connection.execute
        storage.connection.execute = lambda *said: sent.append(said) or execute(*said)
        with pytest.raises(Missing):
            change(storage)
        storage.connection.execute = execute
        words, parameters = sent[0]
        plan = [line for (line,) in driver_of(storage).execute(f"EXPLAIN {words}", parameters)]
    assert any("Index Cond: (digest = " in line for line in plan), "\n".join(plan)
    assert not any("Seq Scan" in line or "_expires_at" in line for line in plan), "\n".join(plan)


def driver_of(storage: Storage) -> Any:
    assert isinstance(storage, SqlStorage)
    return storage.connection.driver


def shown(driver: Any, name: str) -> object:
    return driver.execute(f"SHOW {name}").fetchone()[0]


def test_a_follower_waits_for_events_with_lower_numbers(backend: SqlBackend) -> None:
    slow, early, late = Transactions(), an_audit_event(), an_audit_event()
    slow.begin()
    backend.writing(slow).audit.append(early)
    with committing(backend, Transactions()) as storage:
        storage.audit.append(late)
    with backend.reading() as storage:
        assert [event.id for event in storage.audit.page()] == [late.id]
        assert storage.audit.after(0, 10) == (), "the one with the lower number is not committed yet"
    with ThreadPoolExecutor(1) as pool, backend.reading() as storage:
        following = pool.submit(storage.audit.after, 0, 10)
        time.sleep(0.2)
        assert not following.done()
        slow.commit()
        assert [event.id for event in following.result()] == [early.id, late.id]


def test_a_follower_does_not_wait_for_numbers_that_nobody_gets(backend: SqlBackend) -> None:
    given_up, event = Transactions(), an_audit_event()
    given_up.begin()
    backend.writing(given_up).audit.append(an_audit_event())
    with committing(backend, Transactions()) as storage:
        storage.audit.append(event)
    given_up.abort()
    with backend.reading() as storage:
        assert [each.id for each in storage.audit.after(0, 10)] == [event.id]


def test_options_of_the_url_are_kept(postgresql_url: str) -> None:
    backend = SqlBackend(Settings(url=f"{postgresql_url}&options=-c%20work_mem%3D7MB"))
    with backend.reading() as storage:
        assert shown(driver_of(storage), "work_mem") == "7MB"
        assert shown(driver_of(storage), "lock_timeout") == "3s"
    backend.close()


def test_the_password_comes_from_its_file(postgresql_url: str, tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("from file\n")
    path.chmod(0o600)
    backend = SqlBackend(Settings(url=postgresql_url, password_file=path))
    backend.check()
    with backend.reading() as storage:
        assert storage.connection.core.engine.url.password == "from file"  # type: ignore[attr-defined]
    backend.close()
    path.chmod(0o640)
    with pytest.raises(Unavailable, match="chmod 600"):
        backend.check()
    path.unlink()
    with pytest.raises(Unavailable, match="cannot be read"):
        backend.check()


@pytest.fixture
def frozen(lone_server: PostgresqlServer) -> Iterator[Callable[[int], None]]:
    """Sends a signal to all processes of the server; in the end, and after a minute, they go on."""

    def send(number: int) -> None:
        signal_family(lone_server.process_id, number)

    # Whoever waits for ever is answered in the end, and found out.
    thaw = threading.Timer(60, send, [signal.SIGCONT])
    thaw.start()
    yield send
    thaw.cancel()
    send(signal.SIGCONT)


def test_a_server_that_is_silent_is_given_up(lone_server: PostgresqlServer, frozen: Callable[[int], None]) -> None:
    """Its own timeouts do not run while it is frozen."""
    backend = SqlBackend(Settings(url=new_database(lone_server), statement_timeout=timedelta(seconds=1)))
    backend.migrate()
    # One is kept, in the hands of whoever reads when it happens.
    with backend.reading() as storage:
        assert storage.organizations.find("1") is None
        frozen(signal.SIGSTOP)
        with pytest.raises(Unavailable, match="does not answer"):
            storage.organizations.find("1")
    frozen(signal.SIGCONT)
    with backend.reading() as storage:
        assert storage.organizations.find("1") is None, "an answer of then is not taken for one of now"
    backend.close()


def test_a_server_that_is_gone_is_told_and_one_that_is_back_is_used(lone_server: PostgresqlServer) -> None:
    url, transactions, organization = new_database(lone_server), Transactions(), an_organization()
    backend = SqlBackend(Settings(url=url))
    backend.migrate()
    with committing(backend, transactions) as storage:
        storage.organizations.add(organization)
    # One transaction is caught in the middle.
    transactions.begin()
    caught = backend.writing(transactions)
    caught.organizations.add(an_organization())
    lone_server.stop()
    with pytest.raises(Unavailable):
        caught.organizations.page()
    with pytest.raises(Unavailable):
        caught.organizations.page()
    with pytest.raises(Unavailable):
        transactions.commit()
    transactions.abort()
    with pytest.raises(Unavailable) as refusal, backend.reading():
        pass
    assert str(refusal.value).startswith("The database does not answer: nobody listens")
    with pytest.raises(Unavailable):
        backend.check()
    transactions.begin()
    with pytest.raises(Unavailable):
        backend.writing(transactions)
    transactions.abort()
    lone_server.start()
    began = time.monotonic()
    with backend.reading() as storage:
        assert storage.organizations.page().items == (organization,)
    with committing(backend, transactions) as storage:
        storage.organizations.remove(organization.id)
    assert time.monotonic() - began < 5
    backend.close()


def test_a_connection_that_dies_before_the_commit_is_told(
    backend: SqlBackend, transactions: Transactions, postgresql_url: str
) -> None:
    organization = an_organization()
    transactions.begin()
    backend.writing(transactions).organizations.add(organization)
    with psycopg.connect(postgresql_url, autocommit=True) as killer:
        killer.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE state = 'idle in transaction' AND datname = current_database()"
        )
    with pytest.raises(Unavailable):
        transactions.commit()
    transactions.abort()
    with backend.reading() as storage:
        assert storage.organizations.find(organization.id) is None


def test_a_failed_transaction_is_never_committed_silently(backend: SqlBackend, transactions: Transactions) -> None:
    organization = an_organization()
    transactions.begin()
    storage = backend.writing(transactions)
    storage.organizations.add(organization)
    with pytest.raises(Missing):
        storage.tokens.add_access(an_access_token(user_id="nobody"))
    with pytest.raises(Unavailable, match="given this transaction up"):
        transactions.commit()
    transactions.abort()


def test_a_deadlock_can_be_tried_again(backend: SqlBackend) -> None:
    first, second = an_organization(), an_organization()
    with committing(backend, Transactions()) as storage:
        storage.organizations.add(first)
        storage.organizations.add(second)
    both_hold_one = threading.Barrier(2)
    errors: list[Exception] = []

    def change(*order: object) -> None:
        try:
            with committing(backend, Transactions()) as storage:
                storage.organizations.update(replace(order[0], version=2))  # type: ignore[type-var]
                both_hold_one.wait(5)
                storage.organizations.update(replace(order[1], version=2))  # type: ignore[type-var]
        except Unavailable as error:
            errors.append(error)

    threads = [threading.Thread(target=change, args=order) for order in ((first, second), (second, first))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (error,) = errors
    assert isinstance(error, TransientError)


def test_a_serialization_failure_can_be_tried_again_also_at_the_commit(
    postgresql_url: str,
) -> None:
    backend = SqlBackend(Settings(url=f"{postgresql_url}&options=-c%20default_transaction_isolation%3Dserializable"))
    one, other = Transactions(), Transactions()
    one.begin()
    other.begin()
    for transactions in (one, other):
        storage = backend.writing(transactions)
        storage.organizations.page()
        storage.organizations.add(an_organization())
    one.commit()
    with pytest.raises(TransientError) as refusal:
        other.commit()
    assert isinstance(refusal.value, Unavailable)
    other.abort()
    backend.close()


def test_a_lock_that_is_held_for_too_long_is_told(backend: SqlBackend, postgresql_url: str) -> None:
    organization = an_organization()
    with committing(backend, Transactions()) as storage:
        storage.organizations.add(organization)
    impatient = SqlBackend(Settings(url=postgresql_url, lock_timeout=timedelta(milliseconds=50)))
    with committing(backend, Transactions()) as storage:
        storage.organizations.update(replace(organization, version=2))
        with pytest.raises(Unavailable, match="lock_timeout"), committing(impatient, Transactions()) as waiting:
            waiting.organizations.update(replace(organization, version=2))
    impatient.close()


def test_a_statement_that_takes_too_long_is_told(postgresql_url: str) -> None:
    backend = SqlBackend(Settings(url=postgresql_url, statement_timeout=timedelta(milliseconds=50)))
    organization = an_organization()
    with committing(backend, Transactions()) as storage:
        storage.organizations.add(organization)
        with pytest.raises(Unavailable, match="statement_timeout"), committing(backend, Transactions()) as waiting:
            waiting.organizations.add(replace(an_organization(), primary_domain=organization.primary_domain))
    backend.close()


def test_the_last_owner_stays_when_one_is_deactivated_and_the_other_removed_at_once(backend: SqlBackend) -> None:
    organization = an_organization()
    users = [a_human_user(organization) for _ in range(2)]
    managers = [a_manager(user) for user in users]
    _save(backend, organization, *users, *managers)
    left: list[int] = []

    def remove_the_other() -> None:
        with committing(backend, Transactions()) as storage:
            left.append(len(storage.managers.lock_holders(INSTANCE_KEY, "IAM_OWNER")))

    with committing(backend, Transactions()) as storage:
        assert len(storage.managers.lock_holders(INSTANCE_KEY, "IAM_OWNER")) == 2
        racer = threading.Thread(target=remove_the_other)
        racer.start()
        time.sleep(0.2)
        assert left == [], "it must wait"
        storage.users.update(replace(users[0], active=False, version=2))
    racer.join()
    assert left == [1]


def test_tokens_are_issued_to_locked_holders(backend: SqlBackend) -> None:
    organization = an_organization()
    user = a_human_user(organization)
    _save(backend, organization, user, a_manager(user))
    with committing(backend, Transactions()) as storage:
        storage.managers.lock_holders(INSTANCE_KEY, "IAM_OWNER")
        _save(backend, an_access_token(user))


def test_a_family_revoked_while_it_is_rotated_leaves_nothing_live(backend: SqlBackend) -> None:
    organization = an_organization()
    project = a_project(organization)
    application, user = an_application(project), a_human_user(organization)
    family = a_family(user, application)
    refresh, successor = a_refresh_token(family), a_refresh_token(family)
    _save(backend, organization, project, application, user, family, refresh)
    with committing(backend, Transactions()) as revoking:
        revoking.tokens.revoke_family(family.id, NOW)
        with committing(backend, Transactions()) as rotating:
            rotating.tokens.rotate(refresh.digest, successor, NOW)
    with pytest.raises(Missing), committing(backend, Transactions()) as storage:
        storage.tokens.rotate(successor.digest, a_refresh_token(family), NOW)
    with pytest.raises(AlreadyUsed), committing(backend, Transactions()) as storage:
        storage.tokens.rotate(refresh.digest, a_refresh_token(family), NOW)


def _save(backend: SqlBackend, *values: object) -> None:
    with committing(backend, Transactions()) as storage:
        for value in values:
            add(storage, value)


def test_what_a_pooler_would_drop_of_the_url_is_refused() -> None:
    with pytest.raises(BadSetting, match="ALTER ROLE"):
        Settings(url=f"postgresql://identity@db/identity?{SERIALIZABLE}", pooler=True)
    Settings(url="postgresql://identity@db/identity?sslmode=require", pooler=True)
