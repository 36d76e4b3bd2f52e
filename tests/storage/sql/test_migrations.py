"""The schema: created once, by one process, and refused if it is not ours."""

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, MetaData, Table, create_engine, inspect, text

from identity.domain.applications import Application, ConsentRule
from identity.domain.audit import ERASED
from identity.domain.email_addresses import email_key
from identity.domain.entity import entity_fields
from identity.domain.projects import Project
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.users import Profile
from identity.plugins.sql import SqlBackend, SqlPluginSettings, migrations
from identity.plugins.sql.engines import open_migration_engine
from identity.plugins.sql.migrations import HEAD, REVISIONS, runner
from identity.plugins.sql.migrations.runner import script_directory
from identity.plugins.sql.stores import applications, organizations, projects
from identity.plugins.sql.tables import metadata
from identity.storage.contract import factories as make
from identity.storage.contract.factories import make_id
from identity.storage.contract.transaction_manager import ContractTransactionManager, committed_transaction
from identity.storage.errors import StorageUnavailable
from identity.storage.paging import PageRequest
from identity.testing.postgresql import SERIALIZABLE, PostgresqlServer, drop_database, new_database

SLOW = [pytest.param(name, marks=pytest.mark.thorough) for name in ("serializable", "mariadb")]


@pytest.fixture(params=["sqlite", "postgresql", *SLOW])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without a schema."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/identity.db"
        return
    if request.param == "mariadb":
        from identity.testing import mariadb

        mariadb_server = request.getfixturevalue("mariadb_server")
        url = mariadb.new_database(mariadb_server)
        yield url
        mariadb.drop_database(mariadb_server, url)
        return
    server: PostgresqlServer = request.getfixturevalue("postgresql_server")
    url = new_database(server)
    yield f"{url}&{SERIALIZABLE}" if request.param == "serializable" else url
    drop_database(server, url)


@pytest.fixture
def opened(empty_url: str) -> Iterator[Callable[[], SqlBackend]]:
    """Opens the database without a schema."""
    backends: list[SqlBackend] = []

    def open_backend() -> SqlBackend:
        backends.append(SqlBackend(SqlPluginSettings(url=empty_url)))
        return backends[-1]

    yield open_backend
    for backend in backends:
        backend.close()


@pytest.fixture
def connection(empty_url: str) -> Iterator[Connection]:
    """A separate connection to the database under test."""
    engine = create_engine(SqlPluginSettings(url=empty_url).database_url())
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def test_revisions_are_those_of_alembic() -> None:
    script = script_directory()
    assert script.get_heads() == [HEAD]
    assert [revision.revision for revision in reversed(list(script.walk_revisions()))] == list(REVISIONS)


def test_new_database_is_migrated_once(opened: Callable[[], SqlBackend]) -> None:
    backend = opened()
    planned = list(backend.migrate(dry_run=True))
    assert planned[0] == "0001: Create everything."
    assert [line[:4] for line in planned] == list(REVISIONS)
    with pytest.raises(StorageUnavailable, match="identity migrate"):
        backend.check()
    assert list(backend.migrate()) == planned
    assert list(backend.migrate()) == []
    assert list(backend.migrate(dry_run=True)) == []
    backend.check()


# SQLAlchemy cannot reflect an expression index of SQLite.
@pytest.mark.filterwarnings("ignore:.*expression-based index")
def test_migrated_schema_matches_the_tables(opened: Callable[[], SqlBackend], connection: Connection) -> None:
    opened().migrate()
    if connection.dialect.name == "mariadb":
        # MariaDB has types of its own: short keys, and bytes for columns that lists are sorted by.
        assert _columns(connection) == _columns_of_tables()
        return
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    differences = compare_metadata(context, metadata)
    if connection.dialect.name == "sqlite":
        # SQLAlchemy does not reflect foreign keys of later columns; the next test compares them.
        differences = [difference for difference in differences if difference[0] not in ("add_fk", "remove_fk")]
    assert differences == []


def _columns(connection: Connection) -> set[tuple[str, str, bool]]:
    inspector = inspect(connection)
    return {
        (table, column["name"], column["nullable"])
        for table in metadata.tables
        for column in inspector.get_columns(table)
        if "computed" not in column
    }


def _columns_of_tables() -> set[tuple[str, str, bool]]:
    return {
        (table.name, column.name, bool(column.nullable)) for table in metadata.tables.values() for column in table.c
    }


def test_migrated_indexes_and_foreign_keys_match_the_tables(tmp_path: Path) -> None:
    """Includes partial indexes and foreign keys, which alembic does not compare."""
    SqlBackend(SqlPluginSettings(url=f"sqlite:///{tmp_path}/migrated.db")).migrate()
    engine = create_engine(f"sqlite:///{tmp_path}/made.db")
    metadata.create_all(engine)
    engine.dispose()
    assert _rules(tmp_path / "migrated.db") == _rules(tmp_path / "made.db")


def _rules(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as database:
        indexes = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
        rules = [(name, " ".join(definition.split())) for name, definition in indexes]
        for name in metadata.tables:
            rules += [(name, *row[2:]) for row in database.execute(f"PRAGMA foreign_key_list({name})")]
    return sorted(rules, key=str)


def test_older_schema_is_refused_until_it_is_migrated(
    opened: Callable[[], SqlBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = opened()
    backend.migrate()
    newer = [f"{int(HEAD) + 1:04}", f"{int(HEAD) + 2:04}"]
    monkeypatch.setattr(migrations, "REVISIONS", (*REVISIONS, *newer))
    monkeypatch.setattr(migrations, "HEAD", newer[-1])
    with pytest.raises(StorageUnavailable, match="older than this version"):
        backend.check()


@pytest.mark.thorough
def test_concurrent_migrations_run_once(empty_url: str, opened: Callable[[], SqlBackend]) -> None:
    program = (
        f"from identity.plugins.sql import *; print(len(SqlBackend(SqlPluginSettings(url={empty_url!r})).migrate()))"
    )
    runners = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(3)]
    answers = [int(runner.communicate(timeout=60)[0]) for runner in runners]
    assert sorted(answers) == [0, 0, len(REVISIONS)]
    opened().check()


def test_newer_schema_is_refused(opened: Callable[[], SqlBackend], connection: Connection) -> None:
    backend = opened()
    backend.migrate()
    _pretend(connection, "9999", oldest="9998")
    for attempt in (backend.check, backend.migrate, partial(backend.migrate, dry_run=True)):
        with pytest.raises(StorageUnavailable, match="newer than this version"):
            attempt()


def test_newer_compatible_schema_is_accepted(opened: Callable[[], SqlBackend], connection: Connection) -> None:
    backend = opened()
    backend.migrate()
    _pretend(connection, f"{int(HEAD) + 1:04}", oldest=HEAD)
    backend.check()
    with pytest.raises(StorageUnavailable):
        backend.migrate()


def test_audit_event_cannot_be_changed(opened: Callable[[], SqlBackend], connection: Connection) -> None:
    backend, event = opened(), make.audit_event()
    backend.migrate()
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.audit.append(event)
    for statement in ("UPDATE audit_events SET reason = 'x'", "DELETE FROM audit_events"):
        with pytest.raises(Exception, match="never changed"):
            connection.execute(text(statement))
        connection.rollback()
    with backend.read_session() as reading:
        assert reading.audit.find(event.id) is not None


ADDRESSES = [
    "Ada@ACME.example",
    "a@MÜLLER.example",
    "ﬁona@x.example",
    "a@ａcme.example",
    "a@οδος.gr",
    "a@STRAẞE.gr",
    "@",
]


@pytest.mark.filterwarnings("ignore:.*expression-based index")
def test_verified_addresses_of_earlier_releases_get_their_keys(empty_url: str) -> None:
    """More users than one batch; a second run, as after a kill, finds the same."""
    engine = open_migration_engine(SqlPluginSettings(url=empty_url))
    organization = make.organization()
    people = {
        make_id(): json.dumps({"email": ADDRESSES[number % len(ADDRESSES)], "email_verified": True})
        for number in range(1201)
    }
    people |= {make_id(): profile for profile in ('{"email": "x@acme.example"}', "{", "[]", "null")}
    with engine.begin() as connection:
        runner.upgrade(connection, "0010")
        known = MetaData()
        known.reflect(connection, only=["organizations", "users"])
        organizations, users = known.tables["organizations"], known.tables["users"]
        connection.execute(organizations.insert(), _row(organizations) | {"id": organization.id})
        same = _row(users) | {"organization_id": organization.id, "kind": "human"}
        rows = [
            same
            | {"id": id_, "profile": profile}
            | {"name_key": id_.encode() if connection.dialect.name == "mariadb" else id_}
            for id_, profile in people.items()
        ]
        connection.execute(users.insert(), rows)
        tables = set(inspect(connection).get_table_names())
    # SQLite rolls back an interrupted migration.
    for again in (False, True) if engine.dialect.name != "sqlite" else (False,):
        with engine.begin() as connection:
            if again:
                for name in set(inspect(connection).get_table_names()) - tables:
                    # A table of a later revision.
                    connection.execute(text(f"DROP TABLE {name}"))
                connection.execute(text("UPDATE users SET verified_email_key = NULL"))
                connection.execute(text("UPDATE alembic_version SET version_num = '0010'"))
        # No further: a second run finds no tables of later revisions.
        with engine.begin() if engine.dialect.name == "sqlite" else engine.connect() as connection:
            runner.upgrade(connection, "0011")
        with engine.connect() as connection:
            found = connection.execute(text("SELECT profile, email_verified_by, verified_email_key FROM users")).all()
        for profile, profile_index, stored in found:
            address = json.loads(profile).get("email") if "verified" in profile else None
            key = stored.decode() if isinstance(stored, bytes) else stored
            assert profile_index == (None if address is None else "earlier")
            assert key == (None if address is None else email_key(address))
        assert len(found) == len(people)
    engine.dispose()


def _row(table: Table) -> dict[str, Any]:
    return {
        column.name: {bytes: b"x", int: 1, bool: True}.get(column.type.python_type, "x")
        for column in table.columns
        if not column.nullable
    }


ERASURE = """UPDATE audit_events SET detail = '{"erased": true}'"""


def test_personal_data_in_audit_events_can_be_erased_after_deletion(
    opened: Callable[[], SqlBackend], connection: Connection
) -> None:
    """Only the personal data, and only in events of that user."""
    backend = opened()
    backend.migrate()
    organization = make.organization()
    person = make.human_user(organization)
    events = [
        make.audit_event(object_kind=kind, object_id=id_, detail={"name": "Ada"})
        for kind, id_ in (("user", "gone"), ("user", person.id), ("project", "gone"), ("user", None))
    ]
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(organization)
        storage.users.add(person)
        storage.audit.append_many(events)

    def refused(statement: str, **values: object) -> None:
        with pytest.raises(Exception, match="never changed"):
            connection.execute(text(statement), values)
        connection.rollback()

    for event in events[1:3]:
        refused(f"{ERASURE} WHERE id = :id", id=event.id)
    first_id = events[0].id
    refused("UPDATE audit_events SET detail = '{}' WHERE id = :id", id=first_id)
    for column in (
        "id",
        "event",
        "actor_id",
        "client_address",
        "object_id",
        "user_id",
        "organization_id",
        "reason",
        "once",
    ):
        refused(f"{ERASURE}, {column} = 'other' WHERE id = :id", id=first_id)
    refused(f"{ERASURE}, at = 1 WHERE id = :id", id=first_id)
    connection.execute(text(f"{ERASURE} WHERE id = :id"), {"id": first_id})
    connection.commit()
    with backend.read_session() as reading:
        audit_events = [reading.audit.find(event.id) for event in events]
    assert [event and event.detail for event in audit_events] == [ERASED, *[{"name": "Ada"}] * 3]


def test_uncreatable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageUnavailable, match="cannot be created"):
        SqlBackend(SqlPluginSettings(url=f"sqlite:///{tmp_path}/file/identity.db")).migrate()


def test_invalid_database_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "identity.db").write_text("not a database" * 100)
    with pytest.raises(StorageUnavailable, match="not an SQLite database"):
        SqlBackend(SqlPluginSettings(url=f"sqlite:///{tmp_path}/identity.db")).check()


def test_only_migration_creates_a_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "identity.db"
    backend = SqlBackend(SqlPluginSettings(url=f"sqlite:///{path}"))
    with pytest.raises(StorageUnavailable, match=r"no database file .+ keeps its data.+`identity migrate"):
        backend.check()
    with pytest.raises(StorageUnavailable, match="no database file"):
        backend.join_transaction(_begun())
    assert len(backend.migrate(dry_run=True)) == len(REVISIONS)
    assert not path.parent.exists()
    backend.migrate()
    backend.check()
    backend.close()


def test_migrated_file_can_be_moved(sqlite_template: Path, tmp_path: Path) -> None:
    shutil.copy(sqlite_template, tmp_path / "moved.db")
    backend = SqlBackend(SqlPluginSettings(url=f"sqlite:///{tmp_path}/moved.db"))
    backend.check()
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(make.organization())
    backend.close()


def _begun() -> ContractTransactionManager:
    transactions = ContractTransactionManager()
    transactions.begin()
    return transactions


def _pretend(connection: Connection, revision: str, *, oldest: str) -> None:
    statement = text("UPDATE alembic_version SET version_num = :revision, oldest = :oldest")
    connection.execute(statement, {"revision": revision, "oldest": oldest})
    connection.commit()


def test_migration_fills_search_texts_and_users_of_events(
    opened: Callable[[], SqlBackend], connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Existing rows become searchable like new ones; a second run changes nothing."""
    backend = opened()
    backend.migrate()
    organization = make.organization(name="Łódź Ørsted")
    people = [
        make.human_user(organization, user_name=f"person-{number}", profile=Profile(display_name="Michał Sørensen"))
        for number in range(5)
    ]
    ada, grant, consented = make_id(), make_id(), make_id()
    events = [
        make.audit_event(event="user_grant.added", object_kind="user_grant", object_id=grant, detail={"user_id": ada}),
        make.audit_event(event="user_grant.changed", object_kind="user_grant", object_id=grant, detail={"roles": {}}),
        make.audit_event(
            event="consent.given", object_kind="application", object_id=consented, detail={"user_id": ada}
        ),
        make.audit_event(event="application.changed", object_kind="application", object_id=consented),
        make.audit_event(event="user.changed", object_kind="user", object_id=ada),
    ]
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(organization)
        for person in people:
            storage.users.add(person)
        storage.audit.append_many(events)
    # As the previous version stored them.
    old = {person.id: person.search_text.replace("michal", "michał").replace("o", "ø") for person in people}
    for id_, search_text in old.items():
        stored = search_text.encode() if connection.dialect.name == "mariadb" else search_text
        connection.execute(text("UPDATE users SET search_text = :text WHERE id = :id"), {"text": stored, "id": id_})
    connection.commit()
    revision = script_directory().get_revision("0014").module
    monkeypatch.setattr(revision, "_BATCH", 2)
    for _ in range(2):
        with connection.begin(), Operations.context(MigrationContext.configure(connection)):
            for table in revision._SEARCHED:
                revision._search_texts(connection, table)
            for statement in revision._guard(connection.dialect.name, revision._fills):
                connection.execute(text(statement))
            revision._tell_users(connection)
            for statement in revision._guard(connection.dialect.name, revision._erases):
                connection.execute(text(statement))
    with backend.read_session() as reading:
        found = reading.users.page(None, None, PageRequest(query="michal sorensen")).items
        audit_events = [reading.audit.find(event.id) for event in events]
    assert {item.id for item in found} == {person.id for person in people}
    assert [event and event.user_id for event in audit_events] == [ada, ada, ada, None, None]
    with pytest.raises(Exception, match="never changed"):
        connection.execute(text("UPDATE audit_events SET user_id = 'other'"))
    connection.rollback()


def test_migration_indexes_the_words_of_existing_rows(
    opened: Callable[[], SqlBackend], connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same words as of new rows; a second run adds nothing."""
    backend = opened()
    backend.migrate()
    organization = make.organization(name="Łódź & Söhne")
    project = make.project(organization, name="Web-Shop " + "ß" * 80)
    people = [
        make.human_user(organization, user_name=f"anna.muller{number}", profile=Profile(display_name="Anna 'A' Müller"))
        for number in range(5)
    ]
    with committed_transaction(backend, ContractTransactionManager()) as storage:
        storage.organizations.add(organization)
        storage.projects.add(project)
        storage.applications.add(make.application(project, name=" ".join(f"w{number}" for number in range(90))))
        storage.users.add(make.service_user(organization, user_name="日本語-ジョブ"))
        for number in range(3):
            storage.groups.add(make.group(organization, name=f"Zoë's Café-{number}"))
        for person in people:
            storage.users.add(person)
    tables = [
        metadata.tables[f"{owner}_search_terms"]
        for owner in ("organization", "project", "application", "user", "group")
    ]
    expected = _rows(connection, tables)
    assert all(expected.values())
    for table in tables:
        connection.execute(table.delete())
    connection.commit()
    revisions = [script_directory().get_revision(number).module for number in ("0019", "0023")]
    for revision in revisions:
        monkeypatch.setattr(revision, "_BATCH", 2)
    for _ in range(2):
        with connection.begin():
            for revision in revisions:
                revision._fill(connection)
        assert _rows(connection, tables) == expected


def test_settings_are_what_the_columns_before_had(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than one batch; a row that could not be read stays one."""
    revision = script_directory().get_revision("0051").module
    monkeypatch.setattr(revision, "_BATCH", 2)
    organization = make.organization()
    project = make.project(
        organization, check_roles=True, resource_uris=("https://api.example/ü",), registration_limit=7
    )
    chosen = make.application(
        project,
        authentication_method="private_key_jwt",
        response_types=frozenset({"code", "id_token"}),
        redirect_uris=('https://shop.example/"',),
        consent=ConsentRule.NEVER,
        may_manage=True,
        access_token_lifetime=timedelta(minutes=7),
        id_token_signed_response_alg=SignatureAlgorithm.ES256,
        required_sender_constraint="dpop",
    )
    usual = [
        make.application(project, id=make_id(), response_types=frozenset(), grant_types=frozenset(), redirect_uris=())
        for _ in range(4)
    ]
    damaged: list[tuple[str, Any]] = [("redirect_uris", "{"), ("grant_types", "null")]
    if "sqlite" in empty_url:
        damaged += [("may_manage", 2), ("jwks", b"{}"), ("id_token_lifetime", b"soon")]
    engine = open_migration_engine(SqlPluginSettings(url=empty_url))
    with engine.begin() as connection:
        runner.upgrade(connection, "0050")
        known = MetaData()
        known.reflect(connection, only=["organizations", "projects", "applications"])

        def insert(name: str, values: dict[str, Any]) -> None:
            """A row with these values, and with the settings in columns, as they were stored before."""
            settings = revision._SETTINGS.get(name, {}) | json.loads(values.pop("settings", "{}"))
            lists = {name: json.dumps(value) for name, value in settings.items() if isinstance(value, list)}
            row = {**values, **settings, **lists}
            columns = known.tables[name].columns
            cells = {column.name: row[column.name] for column in columns if column.name in row}
            for column in columns:
                if column.type.python_type is bytes and isinstance(cells.get(column.name), str):
                    cells[column.name] = cells[column.name].encode()
            connection.execute(known.tables[name].insert(), cells)

        insert("organizations", organizations.ENTITY_TABLE.to_row(organization))
        insert("projects", projects.ENTITY_TABLE.to_row(project))
        for application in (chosen, *usual):
            insert("applications", applications.ENTITY_TABLE.to_row(application))
        for column, value in damaged:
            id_ = make_id()
            insert("applications", applications.ENTITY_TABLE.to_row(make.application(project, id=id_)))
            damage = text(f"UPDATE applications SET {column} = :value WHERE id = :id")  # noqa: S608 - words of our own
            connection.execute(damage, {"id": id_, "value": value})
    with engine.begin() if engine.dialect.name == "sqlite" else engine.connect() as connection:
        runner.upgrade(connection)
    backend = SqlBackend(SqlPluginSettings(url=empty_url))
    with backend.read_session() as storage:
        assert storage.projects.find(project.id) == project
        found = storage.applications.page(project.id, PageRequest(with_total=True))
        assert {item.id: item for item in found} == {item.id: item for item in (chosen, *usual)}
        assert found.total is not None
        assert found.total.count == 5 + len(damaged)
    backend.close()
    with engine.connect() as connection:
        settings = connection.execute(text("SELECT settings FROM applications")).scalars().all()
        assert settings.count("{}") == len(usual)
    engine.dispose()


def test_defaults_of_settings_are_unchanged() -> None:
    """A default is not stored: another one would change rows whose managers chose nothing."""
    defaults = script_directory().get_revision("0051").module._SETTINGS
    for name, kind in {"applications": Application, "projects": Project}.items():
        items = entity_fields(kind)
        for setting, default in defaults[name].items():
            stored = items[setting].default
            assert default == ([*stored] if isinstance(default, list) else stored), setting


def _rows(connection: Connection, tables: list[Table]) -> dict[str, set[tuple[Any, ...]]]:
    with connection.begin():
        return {table.name: {tuple(row) for row in connection.execute(table.select())} for table in tables}
