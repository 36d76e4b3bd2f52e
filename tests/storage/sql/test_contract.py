"""The storage contract on each database."""

import os
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.storage.contract import StorageContract
from identity.storage.contract.races import RaceContract
from identity.storage.contract.records import RecordContract
from identity.storage.contract.refresh_tokens import RefreshTokenContract
from identity.storage.contract.tokens import AuthorizationCodeContract
from identity.storage.contract.transactions import BackendContract, TransactionContract
from identity.testing.postgresql import SERIALIZABLE
from tests.pgbouncer import is_installed, running_pgbouncer


class Sql:
    """A backend with the ``reopen`` of its database."""

    @pytest.fixture
    def backend(self, reopen: Callable[[], SqlBackend]) -> Iterator[SqlBackend]:
        backend = reopen()
        yield backend
        backend.close()


class TestSqlite(Sql, StorageContract):
    @pytest.fixture
    def reopen(self, sqlite_url: str) -> Callable[[], SqlBackend]:
        return partial(SqlBackend, SqlPluginSettings(url=sqlite_url))


class ConcurrencyContract(
    BackendContract,
    TransactionContract,
    RaceContract,
    AuthorizationCodeContract,
    RefreshTokenContract,
    RecordContract,
):
    """The parts of the contract whose outcome depends on how a database isolates transactions."""


class Postgresql(Sql):
    @pytest.fixture
    def reopen(self, postgresql_url: str) -> Callable[[], SqlBackend]:
        return partial(SqlBackend, SqlPluginSettings(url=postgresql_url))


class TestPostgresqlConcurrency(Postgresql, ConcurrencyContract):
    pass


@pytest.mark.thorough
class TestPostgresql(Postgresql, StorageContract):
    pass


class Serializable(Sql):
    """Serializable transactions, as in distributed databases with PostgreSQL's dialect."""

    @pytest.fixture
    def reopen(self, postgresql_url: str) -> Callable[[], SqlBackend]:
        return partial(SqlBackend, SqlPluginSettings(url=f"{postgresql_url}&{SERIALIZABLE}"))


@pytest.mark.thorough
class TestSerializableConcurrency(Serializable, ConcurrencyContract):
    pass


@pytest.mark.exhaustive
class TestSerializable(Serializable, StorageContract):
    pass


@pytest.mark.thorough
class TestPgbouncer(Sql, ConcurrencyContract):
    """With a pooler, each transaction may use another of a few server connections."""

    @pytest.fixture
    def reopen(self, postgresql_url: str) -> Iterator[Callable[[], SqlBackend]]:
        if not is_installed():
            reason = "a proxy is not installed: pgbouncer"
            if os.environ.get("IDENTITY_PROXY_TESTS") == "required":
                pytest.fail(reason)
            pytest.skip(reason)
        with running_pgbouncer(postgresql_url, connections=20) as url:
            yield partial(SqlBackend, SqlPluginSettings(url=url, pooler=True))


@pytest.mark.thorough
class TestMariadb(Sql, StorageContract):
    @pytest.fixture
    def reopen(self, mariadb_url: str) -> Callable[[], SqlBackend]:
        return partial(SqlBackend, SqlPluginSettings(url=mariadb_url))
