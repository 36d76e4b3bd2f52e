"""Behaviour of the SQL backend beyond the contract, on both databases."""

import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from identity.plugins.sql import SqlBackend, SqlPlugin, SqlPluginSettings
from identity.plugins.sql.paging import prefix_end
from identity.settings_parser import InvalidSetting
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.errors import RowNotFound, StorageError, StorageUnavailable


def test_transactions_of_several_managers_do_not_disturb_each_other(postgresql_url: str) -> None:
    backend = SqlBackend(SqlPluginSettings(url=postgresql_url))
    first, second = ContractTransactionManager(), ContractTransactionManager()
    organization, dropped = make.organization(), make.organization()
    first.begin()
    second.begin()
    backend.join_transaction(first).organizations.add(organization)
    backend.join_transaction(second).organizations.add(dropped)
    first.commit()
    second.abort()
    with backend.read_session() as storage:
        assert storage.organizations.find(organization.id) == organization
        assert storage.organizations.find(dropped.id) is None
    backend.close()


def test_reading_refuses_to_write(backend: SqlBackend) -> None:
    organization = make.organization()
    with backend.read_session() as storage, pytest.raises(StorageUnavailable, match="alone"):
        storage.organizations.add(organization)
    with backend.read_session() as storage:
        assert storage.organizations.find(organization.id) is None


def test_failure_messages_contain_no_secrets(backend: SqlBackend, transactions: ContractTransactionManager) -> None:
    token = make.access_token()
    with pytest.raises(StorageError) as refusal, committed_transaction(backend, transactions) as storage:
        storage.tokens.add_access_token(replace(token, user_id="nobody"))
    assert type(refusal.value) is RowNotFound
    assert "INSERT" not in str(refusal.value)
    # The log has the statement, but never its values.
    assert token.digest.hex()[:8] not in repr(refusal.value.__cause__)
    assert "nobody" not in str(refusal.value.__cause__).split("DETAIL")[0]


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "\U0010ffff", "%", "'", "", "x" * 100_000])
def test_any_text_can_be_looked_up(backend: SqlBackend, text: str) -> None:
    with backend.read_session() as storage:
        assert storage.applications.find_client(text) is None
        assert storage.users.find_by_login_name(text) is None
        assert storage.users.find_by_login_name(f"{text}@{text}") is None
        assert storage.credentials.find_key_with_subject(text, text) is None
        assert storage.credentials.find_subject_with_secrets(text) is None
        assert storage.projects.list_audience(frozenset({text}), text, NOW) == frozenset()
        assert storage.users.find_by_email(text, text) == ()
        assert storage.sessions.find(text) is None
        assert storage.authorization_requests.find(text) is None
        assert not storage.applications.is_registered_origin(text)


def test_unstorable_key_is_refused(backend: SqlBackend, transactions: ContractTransactionManager) -> None:
    with committed_transaction(backend, transactions) as storage:
        with pytest.raises(RowNotFound):
            storage.attempts.reserve("\ud800", reserved_at=NOW)
        with pytest.raises(RowNotFound):
            storage.attempts.count_use("\ud800", used_at=NOW, window=timedelta(minutes=1), limit=1)
        assert storage.attempts.reserve("ada", reserved_at=NOW).allowed


def test_exhausted_pool_is_reported(url: str) -> None:
    settings = SqlPluginSettings(url=url, database_connections=2, pool_timeout=timedelta(milliseconds=50))
    backend = SqlBackend(settings)
    with backend.read_session(), pytest.raises(StorageUnavailable, match="busy"), backend.read_session():
        pass
    backend.check()
    backend.close()


@pytest.mark.thorough
def test_killed_process_leaves_no_partial_write(
    url: str, backend: SqlBackend, transactions: ContractTransactionManager
) -> None:
    committed, uncommitted = make.organization(), make.organization()
    program = f"""
import os, pickle, signal
from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
backend, transactions = SqlBackend(SqlPluginSettings(url={url!r})), ContractTransactionManager()
committed, uncommitted = pickle.loads({pickle.dumps((committed, uncommitted))!r})
with committed_transaction(backend, transactions) as storage:
    storage.organizations.add(committed)
with committed_transaction(backend, transactions) as storage:
    storage.organizations.add(uncommitted)
    storage.organizations.delete(committed.id)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert ended.returncode == -9
    with backend.read_session() as storage:
        assert storage.organizations.find(committed.id) == committed
        assert storage.organizations.find(uncommitted.id) is None
    with committed_transaction(backend, transactions) as storage:
        storage.organizations.delete(committed.id)


@pytest.mark.thorough
def test_connections_are_not_shared_with_a_forked_child(url: str) -> None:
    program = f"""
import os
from identity.plugins.sql import SqlBackend, SqlPluginSettings
backend = SqlBackend(SqlPluginSettings(url={url!r}))
with backend.read_session() as storage:
    storage.organizations.find_instance()
    ours = backend._open_pools()
    child = os.fork()
    if child == 0:
        backend.check()
        assert backend._open_pools() is not ours
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    storage.organizations.find_instance()
backend.check()
assert backend._open_pools() is ours
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, timeout=60, capture_output=True)
    assert ended.stderr == b""
    assert ended.returncode == 0


@pytest.mark.thorough
def test_many_writers_wait_for_each_other(
    url: str, backend: SqlBackend, transactions: ContractTransactionManager, tmp_path: Path
) -> None:
    program = f"""
from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.storage.contract import factories as make
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from concurrent.futures import ThreadPoolExecutor
backend, transactions = SqlBackend(SqlPluginSettings(url={url!r})), ContractTransactionManager()
def write(_):
    with committed_transaction(backend, transactions) as storage:
        storage.organizations.page()
        storage.organizations.add(make.organization(name="Written"))
with ThreadPoolExecutor(5) as pool:
    list(pool.map(write, range(50)))
"""
    writers = [subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) for _ in range(4)]
    problems = [writer.communicate(timeout=100)[1] for writer in writers]
    assert problems == [b""] * 4
    with backend.read_session() as storage:
        page = storage.organizations.page()
        assert len(page) == 50
        assert page.next_cursor is not None


def test_threads_of_one_process_write_side_by_side(
    backend: SqlBackend, transactions: ContractTransactionManager
) -> None:
    ready = threading.Barrier(20)

    def write(_number: int) -> None:
        ready.wait(10)
        for _ in range(5):
            with committed_transaction(backend, transactions) as storage:
                storage.organizations.add(make.organization())

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(write, range(20)))


def test_plugin_offers_one_backend_without_connecting(tmp_path: Path) -> None:
    (backend,) = SqlPlugin(SqlPlugin.Settings(url=f"sqlite:///{tmp_path}/identity.db")).identity_storage_backends()
    assert backend.name == "sql"
    backend.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_importing_the_plugin_does_not_load_alembic() -> None:
    program = "import sys, identity.plugins.sql; sys.exit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://db/identity", "sqlite://", "sqlite:///:memory:"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(InvalidSetting, match=r"^url: must"):
        SqlPluginSettings(url=url)


def test_settings_do_not_show_the_url() -> None:
    assert "secret" not in repr(SqlPluginSettings(url="postgresql://identity:secret@db/identity"))


@pytest.mark.parametrize(
    ("prefix", "end"),
    [("a", "b"), ("ab", "ac"), ("a\U0010ffff", "b"), ("\ud7ff", "\ue000"), ("\U0010ffff", None), ("", None)],
)
def test_end_of_a_prefix(prefix: str, end: str | None) -> None:
    assert prefix_end(prefix) == end


def test_query_as_large_as_its_limits(backend: SqlBackend, transactions: ContractTransactionManager) -> None:
    organization = make.organization()
    users = [make.human_user(organization) for _ in range(3)]
    with committed_transaction(backend, transactions) as storage:
        storage.organizations.add(organization)
        for user in users:
            storage.users.add(user)
    with backend.read_session() as storage:
        assert (
            storage.projects.list_audience(frozenset(str(number) for number in range(500)), organization.id, NOW)
            == frozenset()
        )
        assert (
            storage.user_grants.list_effective(users[0].id, frozenset(str(number) for number in range(500)), NOW) == ()
        )
