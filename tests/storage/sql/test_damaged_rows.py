"""Security 9.8: reading a damaged row raises an error or leaves the row out, and has no other effect."""

import logging
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from sqlalchemy import Boolean, Column, Integer, LargeBinary, Table

from identity.domain.application_requests import ApplicationRequest
from identity.domain.domains import DomainProof
from identity.domain.figures import FigureKey
from identity.plugins.sql import SqlBackend
from identity.plugins.sql.row_mapping import _log_unreadable_row
from identity.plugins.sql.tables import metadata
from identity.services.leases import acquire_lease
from identity.storage.backend import Storage
from identity.storage.contract import factories as make
from identity.storage.contract.factories import NOW, make_id
from identity.storage.contract.harness import add
from identity.storage.contract.transaction_manager import (
    ContractTransactionManager,
    aborted_transaction,
    committed_transaction,
)
from identity.storage.errors import AlreadyUsed, RowNotFound, StaleRow, StorageUnavailable, UnreadableRow
from identity.storage.paging import PageRequest
from identity.storage.stores.users import UserKind
from tests.storage.sql import test_query_plans as queries
from tests.storage.sql.conftest import open_backend

pytestmark = pytest.mark.thorough

DOMAIN = make.organization_domain(queries.ORGANIZATION, proof=DomainProof.ASSERTED, verified_at=NOW)
ROLE = make.project_role(queries.PROJECT)
INSTANCE = make.instance(queries.PROJECT)
#: Her rows stay intact.
GRACE = make.human_user(queries.ORGANIZATION, user_name="grace")

READS: dict[str, Callable[[Storage], object]] = {
    **queries.READS,
    **{name: read for name, read in queries.INDEXED.items() if "by query" in name or "counted" in name},
    "instance": lambda storage: storage.organizations.find_instance(),
    "domain": lambda storage: storage.organizations.find_domain(DOMAIN.organization_id, DOMAIN.name),
    "domain holder": lambda storage: storage.organizations.find_effective_domain(DOMAIN.name),
    "domains": lambda storage: storage.organizations.list_domains(DOMAIN.organization_id),
    "domains unproven": lambda storage: storage.organizations.list_unproven_domains("example.com", 10),
    "applications by algorithm": lambda storage: storage.applications.list_with_other_algorithms(["RS256"], 10),
    "users by algorithm": lambda storage: storage.users.list_with_other_algorithms(["RS256"], 10),
    "roles": lambda storage: storage.projects.list_roles(queries.PROJECT.id),
    "role held": lambda storage: storage.deletion_impact.count_role_grants(queries.PROJECT.id, ROLE.key),
    "password": lambda storage: storage.users.find_password(queries.PERSON.id),
    "must change": lambda storage: storage.users.list_must_change_password([queries.PERSON.id]),
    "client secrets": lambda storage: storage.applications.list_secrets(queries.APPLICATION.id),
    "failures": lambda storage: storage.attempts.count_failures(["ada"]),
    "signing keys": lambda storage: storage.signing_keys.list_all(),
    "audit": lambda storage: storage.audit.page(),
    "audit after": lambda storage: storage.audit.list_after(0, 10),
    "user grant": lambda storage: storage.user_grants.find(queries.GRANT.id),
    "project grant": lambda storage: storage.project_grants.find(queries.LENT.id),
    "project grants": lambda storage: storage.project_grants.page("project_id", queries.PROJECT.id),
    "user grants": lambda storage: storage.user_grants.page("user_id", queries.PERSON.id),
    "projects": lambda storage: storage.projects.page(queries.ORGANIZATION.id),
    "organizations one by one": lambda storage: _walk(storage.organizations.page),
    "applications one by one": lambda storage: _walk(
        lambda request: storage.applications.page(queries.APPLICATION.project_id, request)
    ),
}
#: Operations that read a row and act on it.
USES: dict[str, Callable[[Storage], object]] = {
    "redeem": lambda storage: storage.tokens.redeem_authorization_code(
        queries.CODE.digest, client_id=queries.CODE.client_id, redeemed_at=NOW
    ),
    "rotate": queries.INDEXED["rotate"],
    "finish": lambda storage: storage.authorization_requests.finish(queries.PENDING.id, NOW, version=1),
    "take": lambda storage: storage.records.consume(*queries.THIS_RECORD, NOW),
    "replace": queries.WRITES["replace record"],
    "claim": queries.INDEXED["refused record"],
    "reserve": lambda storage: storage.attempts.reserve("ada", reserved_at=NOW),
    "count": lambda storage: storage.attempts.count_use("ada", used_at=NOW, window=timedelta(days=1), limit=1),
    "remove role": lambda storage: storage.projects.delete_role(queries.PROJECT.id, ROLE.key),
}


def _walk(fetch: Callable[[PageRequest], Any]) -> None:
    """Fetch every page; the loop must end."""
    request = PageRequest(limit=1)
    for _ in range(10):
        page = fetch(request)
        if page.next_cursor is None:
            return
        request = replace(request, cursor=page.next_cursor)
    raise AssertionError("the pages go in a circle")


@pytest.fixture(scope="module")
def reads_of(populated: Path) -> dict[str, list[str]]:
    """The names of the reads whose statements mention a table."""
    backend = open_backend(f"sqlite:///{populated}")
    found: dict[str, list[str]] = {name: [] for name in metadata.tables}
    for name, read in READS.items():
        sent: list[str] = []
        with backend.read_session() as storage:
            driver: Any = storage.connection.driver  # type: ignore[attr-defined]
            driver.set_trace_callback(sent.append)
            read(storage)
            driver.set_trace_callback(None)
        assert sent, name
        for table in set(re.findall(r"\w+", " ".join(sent))) & found.keys():
            found[table].append(name)
    backend.close()
    return found


def damages(column: Column[Any]) -> Iterator[object]:
    """Values that SQLite stores in the column although they are invalid."""
    yield None
    if isinstance(column.type, Boolean):
        yield from (2, -1, "yes", b"\x00", 0.5)
    elif isinstance(column.type, Integer):
        yield from ("soon", b"\xff", 10**18, -(10**18), 1.5)
    elif isinstance(column.type, LargeBinary):
        yield from ("text", 7, b"")
    else:
        yield from (b"\xff\xfe", "{", "[1]", '{"a": 1}', '"x"', "null", "[" * 100_000)


@pytest.fixture(scope="module")
def populated(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without constraints, with rows in every table."""
    path = tmp_path_factory.mktemp("damaged") / "identity.db"
    copyfile(sqlite_template, path)
    backend = open_backend(f"sqlite:///{path}")
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for value in (*queries.VALUES, GRACE, DOMAIN, ROLE, INSTANCE, make.signing_key(1), make.signing_key(2)):
            add(storage, value)
        storage.users.set_password(make.password_hash(queries.PERSON))
        storage.upstream_providers.add(make.upstream_provider(queries.ORGANIZATION))
        storage.applications.add_secret(queries.APPLICATION.id, make.client_secret())
        storage.attempts.reserve("ada", reserved_at=NOW, user_id=queries.PERSON.id)
        storage.audit.append(queries.EVENT)
        storage.attributes.set_values({queries.PERSON.id: {queries.DEFINITION.id: "Sales"}})
        storage.sent_mails.add(make.sent_mail(user_id=queries.PERSON.id))
        requested = ApplicationRequest(
            id=make_id(), application_id=queries.APPLICATION.id, at=NOW, endpoint="token", user_id=queries.PERSON.id
        )
        storage.application_requests.add([requested])
        figure = FigureKey(
            organization_id=queries.ORGANIZATION.id, kind=queries.FIGURES[0], day=NOW.date(), object_id=""
        )
        storage.figures.add({figure: 1})
    backend.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {trigger}")
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'")
        database.execute("PRAGMA writable_schema = RESET")
        counts = {name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in metadata.tables}  # noqa: S608
    # Only triggers read the guard of the audit trail.
    assert {name for name, count in counts.items() if not count} <= {
        "application_origins",
        "audit_floor",
        "project_resources",
        "upstream_provider_clients",
    }
    return path


@pytest.fixture
def damaged(populated: Path, tmp_path: Path) -> Iterator[tuple[SqlBackend, sqlite3.Connection]]:
    path = tmp_path / "identity.db"
    copyfile(populated, path)
    backend = open_backend(f"sqlite:///{path}")
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as database:
        yield backend, database
    backend.close()


def _first(table: Table) -> str:
    """The condition for the damaged row, which is the one that the reads look for."""
    by_id = {"users": queries.PERSON.id, "organizations": queries.ORGANIZATION.id}
    if table.name in by_id:
        return f"\"id\" = '{by_id[table.name]}'"
    return f'rowid = (SELECT min(rowid) FROM "{table.name}")'  # noqa: S608


@pytest.mark.sampled(1, thorough=6)
@pytest.mark.parametrize("name", metadata.tables)
def test_damage_is_limited_to_its_row(
    damaged: tuple[SqlBackend, sqlite3.Connection],
    reads_of: dict[str, list[str]],
    name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend, database = damaged
    table = metadata.tables[name]
    for column in table.columns:
        this = f'FROM "{name}" WHERE {_first(table)}'
        (rowid, before) = database.execute(f'SELECT rowid, "{column.name}" {this}').fetchone() or (None, None)
        for damage in damages(column):
            try:
                database.execute(f'UPDATE "{name}" SET "{column.name}" = ? WHERE rowid = ?', (damage, rowid))  # noqa: S608
            except sqlite3.IntegrityError:
                continue
            _check_reads(backend, reads_of[name], f"{name}.{column.name} = {damage!r:.20}")
            _check_uses(backend, f"{name}.{column.name} = {damage!r:.20}")
            database.execute(f'UPDATE "{name}" SET "{column.name}" = ? WHERE rowid = ?', (before, rowid))  # noqa: S608
        if column.primary_key:
            # Messages name the row by its key.
            caplog.clear()
    for record in caplog.records:
        assert all(secret not in record.getMessage() for secret in ("soon", "[1]", "\\xff\\xfe"))


def _check_reads(backend: SqlBackend, reads: list[str], where: str) -> None:
    for name in reads:
        with backend.read_session() as storage:
            try:
                READS[name](storage)
            except StorageUnavailable:
                pass
            except Exception as problem:
                raise AssertionError(f"{where}: {name} raises {problem!r}") from problem
    with backend.read_session() as storage:
        assert storage.users.find(GRACE.id) == GRACE, where


def _check_uses(backend: SqlBackend, where: str) -> None:
    for name, use in USES.items():
        try:
            with aborted_transaction(backend, ContractTransactionManager()) as storage:
                use(storage)
        except (StorageUnavailable, RowNotFound, AlreadyUsed, StaleRow):
            pass
        except Exception as problem:
            raise AssertionError(f"{where}: {name} raises {problem!r}") from problem


def _damage(database: sqlite3.Connection, table: str, column: str, value: object, id_: str) -> None:
    database.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE id = ?', (value, id_))  # noqa: S608


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("profile", "{"),
        ("profile", '{"email_verified": "no"}'),
        ("active", "yes"),
        ("version", None),
        ("named_at", "x"),
    ],
)
def test_damaged_row_is_refused_and_left_out_of_lists(
    damaged: tuple[SqlBackend, sqlite3.Connection], caplog: pytest.LogCaptureFixture, column: str, value: object
) -> None:
    backend, database = damaged
    _log_unreadable_row.cache_clear()
    _damage(database, "users", column, value, queries.PERSON.id)
    with backend.read_session() as storage:
        for _ in range(2):
            with pytest.raises(UnreadableRow, match=f"the row {queries.PERSON.id} of users"):
                storage.users.find_subject(queries.PERSON.id)
        page = storage.users.page(queries.ORGANIZATION.id, UserKind.HUMAN, PageRequest(with_total=True))
        assert [item.id for item in page] == [GRACE.id]
        assert page.total is not None
        assert page.total.count == 2, "it is there"
        for find in (storage.users.find_many, storage.users.find_subjects):
            assert find([queries.PERSON.id, GRACE.id]).keys() == {GRACE.id}
    alerts = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [log_record.getMessage() for log_record in alerts] == [
        f"a row cannot be read and is left out or refused: table users, id {queries.PERSON.id}"
    ]


def test_damaged_security_columns_are_refused(damaged: tuple[SqlBackend, sqlite3.Connection]) -> None:
    """Manager roles, user grants, verified domains, and owners."""
    backend, database = damaged
    _damage(database, "managers", "roles", "{}", queries.MANAGER.id)
    _damage(database, "user_grants", "roles", "reader", queries.GRANT.id)
    database.execute("UPDATE domains SET created_at = 'soon'")
    deciding: list[Callable[[Storage], object]] = [
        lambda storage: storage.managers.list_for_user(queries.PERSON.id),
        lambda storage: storage.managers.list_effective(queries.PERSON.id, NOW),
        lambda storage: storage.managers.list_for_users_of_organization(queries.ORGANIZATION.id, NOW),
        lambda storage: storage.managers.lock_by_role(queries.MANAGER.resource, "IAM_OWNER"),
        lambda storage: storage.user_grants.list_effective(queries.PERSON.id, frozenset({queries.PROJECT.id}), NOW),
        lambda storage: storage.organizations.list_domains(queries.ORGANIZATION.id),
        lambda storage: storage.organizations.find_effective_domain(DOMAIN.name),
    ]
    with backend.read_session() as storage:
        for read in deciding:
            with pytest.raises(UnreadableRow):
                read(storage)


@pytest.mark.parametrize(
    "member",
    [
        '"may_manage": 1',
        '"may_manage": null',
        '"consent": "x"',
        '"consent": {}',
        '"redirect_uris": "https://shop.example/"',
        '"redirect_uris": [1]',
        '"access_token_lifetime": "soon"',
        '"access_token_lifetime": true',
        '"access_token_lifetime": 1e3',
        f'"access_token_lifetime": {10**18}',
        '"security_profile": null',
        '"jwks": 1',
        '"grant_types": null',
    ],
)
def test_application_with_damaged_setting_is_refused(
    damaged: tuple[SqlBackend, sqlite3.Connection], member: str
) -> None:
    """It is never read as if it had the default."""
    backend, database = damaged
    _damage(database, "applications", "settings", f"{{{member}}}", queries.APPLICATION.id)
    with backend.read_session() as storage:
        for find in (storage.applications.find, storage.applications.find_client):
            with pytest.raises(UnreadableRow):
                find(queries.APPLICATION.id)


@pytest.mark.parametrize("damage", [b"\xff", "soon", None])
def test_pages_continue_after_damaged_row(damaged: tuple[SqlBackend, sqlite3.Connection], damage: object) -> None:
    backend, database = damaged
    users = [make.human_user(queries.ORGANIZATION, user_name=f"u{number}") for number in range(6)]
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for user in users:
            add(storage, user)
    _damage(database, "users", "created_at", damage, users[3].id)
    _damage(database, "users", "name_key", b"\xff", users[2].id)
    for sort in queries.USER_SORT_KEYS:
        ids: list[str] = []
        request = PageRequest(limit=2, sort=queries.SortOrder(sort, descending=sort == "email"))
        with backend.read_session() as storage:
            for _ in range(8):
                page = storage.users.page(queries.ORGANIZATION.id, UserKind.HUMAN, request)
                ids += [item.id for item in page]
                if page.next_cursor is None:
                    break
                request = replace(request, cursor=page.next_cursor)
        expected = {GRACE.id, queries.PERSON.id, *(human_user.id for human_user in users)} - {users[3].id}
        assert expected == set(ids) | ({users[2].id} if sort == "user_name" else set()), sort


def test_unreadable_messages_do_not_block_others(damaged: tuple[SqlBackend, sqlite3.Connection]) -> None:
    backend, database = damaged
    messages = [make.outbox_message(kind="letter", next_at=NOW + timedelta(seconds=number)) for number in range(8)]
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for message in messages:
            add(storage, message)
    for message in messages[:5]:
        _damage(database, "outgoing_messages", "attempts", "many", message.id)
    with backend.read_session() as storage:
        for limit in (1, 2, 3, 5, 10):
            assert storage.outbox.list_pending("letter", NOW, limit) == tuple(messages[5:][:limit])


def test_organizations_with_unreadable_messages_do_not_block_others(
    damaged: tuple[SqlBackend, sqlite3.Connection],
) -> None:
    backend, database = damaged
    messages = [
        make.outbox_message(kind="letter", next_at=NOW - timedelta(seconds=60 - number), organization_id=f"o{number}")
        for number in range(8)
    ]
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        for message in messages:
            add(storage, message)
    for message in messages[:5]:
        _damage(database, "outgoing_messages", "attempts", "many", message.id)
    with backend.read_session() as storage:
        for limit in (1, 2, 3, 5, 10):
            assert storage.outbox.list_due("letter", NOW, limit) == tuple(messages[5:][:limit])


def test_damaged_lease_is_free(damaged: tuple[SqlBackend, sqlite3.Connection]) -> None:
    backend, database = damaged
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        assert acquire_lease(storage, "purge", starts_at=NOW, expires_at=queries.LATER)
    database.execute("UPDATE records SET expires_at = 'for ever' WHERE kind = 'lease'")
    for is_taken in (True, False):
        with committed_transaction(backend, ContractTransactionManager()) as storage:
            assert acquire_lease(storage, "purge", starts_at=NOW, expires_at=queries.LATER) is is_taken


def test_invalid_utf8_damages_one_row(damaged: tuple[SqlBackend, sqlite3.Connection]) -> None:
    backend, database = damaged
    database.execute("UPDATE users SET user_name = CAST(x'ff41' AS TEXT) WHERE id = ?", (queries.PERSON.id,))
    with backend.read_session() as storage:
        with pytest.raises(StorageUnavailable):
            storage.users.find(queries.PERSON.id)
        assert [item.id for item in storage.users.page(queries.ORGANIZATION.id, UserKind.HUMAN)] == [GRACE.id]
        assert storage.users.find(GRACE.id) == GRACE
