"""Reads from a standby are never staler than the setting allows."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from identity.domain.organizations import Organization
from identity.plugins.sql import SqlBackend, SqlPluginSettings
from identity.plugins.sql import standby as module
from identity.plugins.sql.storage import SqlStorage
from identity.settings_parser import InvalidSetting
from identity.storage.contract import factories as make
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.testing.postgresql import PostgresqlServer
from tests.storage.sql.standby_pair import (
    INTERVAL,
    STALENESS,
    PairClock,
    StandbyPair,
    clock,
    own_pair,
    pair,
    quick,
    shared_pair,
    until,
)

__all__ = ["clock", "own_pair", "pair", "quick", "shared_pair"]

pytestmark = pytest.mark.usefixtures("quick")

#: Seconds; longer than the polling interval.
LONGER = 5 * INTERVAL


@pytest.fixture
def opened() -> Iterator[Callable[[SqlPluginSettings], SqlBackend]]:
    """Opens backends with a schema."""
    with ExitStack() as stack:

        def opened(settings: SqlPluginSettings) -> SqlBackend:
            backend = SqlBackend(settings)
            stack.callback(backend.close)
            backend.migrate()
            return backend

        yield opened


def lagging(backend: SqlBackend) -> tuple[Organization, ...] | None:
    """The organizations on the standby; None if the primary must be queried."""
    opened = backend.standby_session()
    if opened is None:
        return None
    with opened as storage:
        assert isinstance(storage, SqlStorage)
        assert storage.connection.driver.execute("SELECT pg_is_in_recovery()").fetchone() == (True,)
        return storage.organizations.page().items


def saved(backend: SqlBackend) -> Organization:
    organization = make.organization()
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(organization)
    return organization


Opens = Callable[[SqlPluginSettings], SqlBackend]


@pytest.mark.thorough
def test_standby_is_read_once_known_to_be_fresh(pair: StandbyPair, opened: Opens) -> None:
    backend = opened(pair.settings())
    assert backend.standby_session() is None, "nothing is known of it yet"
    organization = saved(backend)
    assert until(lambda: lagging(backend) or None) == (organization,)
    assert [load.name for load in backend.pool_usages] == ["reading", "writing", "standby"]


def test_no_lag_without_a_standby(postgresql_url: str) -> None:
    backend = SqlBackend(SqlPluginSettings(url=postgresql_url))
    assert not backend.has_standby
    assert backend.standby_session() is None
    assert backend.standby_problem() is None
    backend.close()


def test_standby_reads_never_exceed_the_allowed_staleness(pair: StandbyPair, opened: Opens, clock: PairClock) -> None:
    backend = opened(pair.settings())
    until(lambda: lagging(backend))
    pair.pause()
    organization = saved(backend)
    committed, ages = clock.monotonic(), []
    while True:
        started = clock.monotonic()
        organizations = lagging(backend)
        if organizations is None:
            break
        assert organizations == ()
        ages.append(started - committed)
        clock.advance(STALENESS / 20)
        time.sleep(INTERVAL / 5)
    assert ages, "it is read from at first, though it is behind"
    assert max(ages) < STALENESS.total_seconds()
    pair.resume()
    assert until(lambda: lagging(backend)) == (organization,)


def test_standby_cut_off_from_an_idle_primary_is_fresh(pair: StandbyPair, opened: Opens, clock: PairClock) -> None:
    """The standby has everything that there is."""
    backend = opened(pair.settings())
    organization = saved(backend)
    until(lambda: lagging(backend) or None)
    conninfo = _parameter(pair.standby, "primary_conninfo")
    _set(pair.standby, "primary_conninfo", "host=/nowhere")
    try:
        until(lambda: _value(pair.standby, "SELECT count(*) FROM pg_stat_wal_receiver") == 0 or None)
        for _ in range(3):
            clock.advance(STALENESS)
            assert until(lambda: lagging(backend)) == (organization,)
        saved(backend)
        clock.advance(STALENESS)
        _never_read_from(backend)
    finally:
        _set(pair.standby, "primary_conninfo", conninfo)


@pytest.mark.thorough
def test_standby_is_read_during_primary_outage_until_stale(
    own_pair: StandbyPair, opened: Opens, clock: PairClock
) -> None:
    backend = opened(own_pair.settings())
    organization = saved(backend)
    until(lambda: lagging(backend) or None)
    own_pair.primary.stop()
    assert lagging(backend) == (organization,)
    clock.advance(STALENESS)
    _never_read_from(backend)
    own_pair.primary.start()
    assert until(lambda: lagging(backend)) == (organization,)


@pytest.mark.thorough
def test_promoted_standby_is_not_read(own_pair: StandbyPair, opened: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = opened(own_pair.settings())
    until(lambda: lagging(backend))
    own_pair.standby.execute(sql.SQL("SELECT pg_promote()"))

    def refused() -> bool | None:
        opened = backend.standby_session()
        if opened is not None:
            with opened:
                return None
        return True

    until(refused)
    statements: list[object] = []
    row = module._fetch_row
    monkeypatch.setattr(module, "_POLL_SECONDS", 3600.0)
    monkeypatch.setattr(
        module, "_fetch_row", lambda connection, statement: statements.append(statement) or row(connection, statement)
    )
    for _ in range(20):
        assert backend.standby_session() is None
    assert statements.count(module._STANDBY_QUERY) <= 1, "those who read leave it alone"
    assert backend.standby_problem() == ("Its server cannot be read from: it is no standby, or not any longer.")


def test_standby_of_another_server_is_not_read_from(pair: StandbyPair, opened: Opens, postgresql_url: str) -> None:
    backend = opened(SqlPluginSettings(url=postgresql_url, standby_url=pair.standby.url(), standby_staleness=STALENESS))
    _never_read_from(backend)
    assert "not a standby of the server" in str(backend.standby_problem())


def test_foreign_database_of_the_standby_is_not_read(pair: StandbyPair, opened: Opens) -> None:
    backend = opened(pair.settings(standby_url=pair.standby.url("postgres")))
    _never_read_from(backend)
    assert "has another database" in str(backend.standby_problem())


def test_primary_is_not_read_as_a_standby(pair: StandbyPair, opened: Opens) -> None:
    backend = opened(pair.settings(standby_url=pair.primary.url("postgres")))
    _never_read_from(backend)
    assert "it is no standby" in str(backend.standby_problem())


def test_standby_of_an_older_timeline_is_not_fresh(
    pair: StandbyPair, opened: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its data at a position may differ from that of the new primary."""
    monkeypatch.setattr(module, "_PRIMARY_QUERY", module._PRIMARY_QUERY.replace("left(", "'00000007' || left("))
    _never_read_from(opened(pair.settings()))


def test_unreachable_standby_does_not_block_reads(pair: StandbyPair, opened: Opens, tmp_path: Path) -> None:
    backend = opened(pair.settings(standby_url=f"postgresql://postgres@/x?host={tmp_path}"))
    _never_read_from(backend)
    problem = str(backend.standby_problem())
    assert problem.startswith("Its server cannot be read from: The database does not answer: nobody listens")
    assert "identity.plugin.sql.standby_url" in problem


def test_silent_standby_is_skipped_until_it_recovers(pair: StandbyPair, opened: Opens) -> None:
    backend = opened(pair.settings())
    organization = saved(backend)
    until(lambda: lagging(backend) or None)
    pair.send(signal.SIGSTOP)
    # The first caller waits, because the server may just be slow. Later callers do not.
    assert not _quietly(backend)
    given_up = time.monotonic()
    assert backend.standby_session() is None
    assert time.monotonic() - given_up < 1
    pair.send(signal.SIGCONT)
    assert until(lambda: _quietly(backend)) == (organization,)


def test_freshness_without_monitoring_privilege(pair: StandbyPair, opened: Opens) -> None:
    settings = pair.settings()
    backend = opened(settings)
    saved(backend)
    with psycopg.connect(settings.url, autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS plain")
        owner.execute("CREATE ROLE plain LOGIN")
        owner.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO plain")
    assert settings.standby_url is not None
    plain = {"url": settings.url, "standby_url": settings.standby_url}
    plain = {name: url.replace("//postgres@", "//plain@") for name, url in plain.items()}
    poor = SqlBackend(SqlPluginSettings(**plain, standby_staleness=STALENESS))
    assert until(lambda: lagging(poor) or None)
    assert poor.standby_problem() is None
    poor.close()
    backend.close()
    with psycopg.connect(settings.url, autocommit=True) as owner:
        owner.execute("DROP OWNED BY plain")


@pytest.mark.thorough
def test_servers_are_polled_once_an_interval_and_not_when_idle(
    pair: StandbyPair, opened: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    row = module._fetch_row
    monkeypatch.setattr(
        module, "_fetch_row", lambda connection, statement: statements.append(statement) or row(connection, statement)
    )
    backend = opened(pair.settings())
    until(lambda: lagging(backend))
    del statements[:]
    began, reads = time.monotonic(), 0
    while time.monotonic() < began + LONGER:
        reads += lagging(backend) is not None
    took = time.monotonic() - began
    assert reads
    assert 1 <= statements.count(module._PRIMARY_QUERY) <= took / INTERVAL + 1
    assert 1 <= statements.count(module._STANDBY_QUERY) <= took / INTERVAL + 1
    del statements[:]
    time.sleep(LONGER)
    assert statements == []


def test_connections_to_a_standby_are_not_those_of_a_pooler(pair: StandbyPair, opened: Opens) -> None:
    backend = opened(pair.settings(pooler=True, statement_timeout=timedelta(milliseconds=700)))
    storage = until(backend.standby_session)
    with storage as session:
        assert isinstance(session, SqlStorage)
        assert session.connection.driver.execute("SHOW statement_timeout").fetchone() == ("700ms",)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"standby_url": "mysql://x/y"}, "standby_url: must be postgresql://USER@HOST/DATABASE"),
        ({"standby_url": "no url"}, "standby_url: must be postgresql://USER@HOST/DATABASE"),
        ({"standby_url": ""}, "standby_url: must be postgresql://USER@HOST/DATABASE"),
        ({"standby_url": "postgresql://b/db"}, "standby_staleness: must be at least 3s"),
        (
            {"standby_url": "postgresql://b/db", "standby_staleness": timedelta(seconds=2)},
            "standby_staleness: must be at least 3s",
        ),
        ({"standby_staleness": STALENESS}, "standby_staleness: needs standby_url"),
        (
            {"standby_url": "postgresql://me@a:5432/db", "standby_staleness": STALENESS},
            "standby_url: names what url names",
        ),
        (
            {"url": "sqlite:///x.db", "standby_url": "postgresql://b/db", "standby_staleness": STALENESS},
            "standby_url: is offered for PostgreSQL alone",
        ),
        (
            {"url": "mariadb://a/db", "standby_url": "postgresql://b/db", "standby_staleness": STALENESS},
            "standby_url: is offered for PostgreSQL alone",
        ),
        (
            {"url": "mariadb://a/db", "standby_url": "mariadb://b/db", "standby_staleness": STALENESS},
            "standby_url: must be postgresql",
        ),
    ],
)
def test_conflicting_standby_settings_are_explained(settings: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        SqlPluginSettings(**{"url": "postgresql://a/db", **settings})  # type: ignore[arg-type]
    assert str(refusal.value).startswith(text)


def test_several_standbys_are_named_in_one_url() -> None:
    url = "postgresql://me@/db?host=b,c&target_session_attrs=prefer-standby"
    settings = SqlPluginSettings(url="postgresql://a/db", standby_url=url, standby_staleness=STALENESS)
    assert settings.standby_database_url().query["host"] == "b,c"


def _never_read_from(backend: SqlBackend) -> None:
    ended = time.monotonic() + LONGER
    while time.monotonic() < ended:
        assert backend.standby_session() is None
        time.sleep(0.05)


def _quietly(backend: SqlBackend) -> tuple[Organization, ...] | None:
    """Like ``lagging``, but None after an error."""
    opened = backend.standby_session()
    if opened is None:
        return None
    with opened as storage:
        try:
            return storage.organizations.page().items
        except Exception:
            return ()


def _value(server: PostgresqlServer, query: str) -> object:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        row = connection.execute(query).fetchone()  # type: ignore[call-overload]
        return row[0] if row else None


def _parameter(server: PostgresqlServer, name: str) -> str:
    return str(_value(server, f"SHOW {name}"))


def _set(server: PostgresqlServer, name: str, value: str) -> None:
    server.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
    server.execute(sql.SQL("SELECT pg_reload_conf()"))


@pytest.mark.thorough
def test_connections_to_a_standby_are_counted_apart(pair: StandbyPair, opened: Opens) -> None:
    backend = opened(pair.settings(database_connections=10))
    limit = int(_parameter(pair.primary, "max_connections")) - int(
        _parameter(pair.primary, "superuser_reserved_connections")
    )
    assert limit == 497
    assert backend.connection_limit_problem(49) is None
    problem = str(backend.connection_limit_problem(50))
    assert "50 processes × 10" in problem
    assert "At the standby" not in problem
    assert "At the standby: 100 processes × 5" in str(backend.connection_limit_problem(100))
