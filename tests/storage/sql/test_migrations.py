"""The schema: made once, by one runner, refused when it is not ours."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, create_engine, text

from identity.crypto.secrets import TOKEN_LENGTH, digest
from identity.domain.audit import SYSTEM, AuditFilter, Result
from identity.domain.consents import Consent
from identity.domain.domains import Proof
from identity.domain.records import CORE
from identity.domain.users import HumanUser
from identity.plugins.sql import Settings, SqlBackend
from identity.plugins.sql.migrations import HEAD, REVISIONS, runner
from identity.plugins.sql.migrations.runner import script_directory
from identity.plugins.sql.tables import metadata
from identity.services.bundle import Services
from identity.storage.contract.factories import (
    a_personal_access_token,
    a_session,
    an_access_token,
    an_audit_event,
    an_organization,
)
from identity.storage.contract.transactions import Transactions, committing
from identity.storage.errors import AlreadyUsed, Unavailable
from identity.storage.paging import PageRequest
from identity.storage.stores.users import UserKind
from identity.testing.postgresql import PostgresqlServer, drop_database, new_database

PLAN = [
    "0001: Create everything.",
    "0002: People log in.",
    "0003: Managers manage.",
    "0004: Audit events name clients and sessions; answers that are kept hold no secrets.",
    "0005: Sign-ins that wait go with the person who proved something for them.",
    "0006: A family of tokens knows how its person proved to be it, and which single claims were asked for.",
    "0007: Searches find any part.",
    "0008: Domains are proven.",
    "0009: Failures are forgotten alike.",
    "0010: People have a name since a moment, and some have made their account themselves.",
    "0011: Applications ask for consent, and people give it.",
    "0012: Grants of projects are accepted by who holds them.",
    "0013: One-time codes, consents, leases, used assertions and idempotency keys are records, and plugins have their"
    " own.",
]


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without a schema."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/identity.db"
        return
    server: PostgresqlServer = request.getfixturevalue("postgresql_server")
    url = new_database(server)
    yield url
    drop_database(server, url)


@pytest.fixture
def opened(empty_url: str) -> Iterator[Callable[[], SqlBackend]]:
    """Opens the database that has no schema yet."""
    backends: list[SqlBackend] = []

    def open_backend() -> SqlBackend:
        backends.append(SqlBackend(Settings(url=empty_url)))
        return backends[-1]

    yield open_backend
    for backend in backends:
        backend.close()


@pytest.fixture
def connection(empty_url: str) -> Iterator[Connection]:
    """A connection of our own to the database under test."""
    engine = create_engine(Settings(url=empty_url).database_url())
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def test_the_revisions_are_those_of_alembic() -> None:
    script = script_directory()
    assert script.get_heads() == [HEAD]
    assert [revision.revision for revision in reversed(list(script.walk_revisions()))] == list(REVISIONS)


def test_a_new_database_is_migrated_once(opened: Callable[[], SqlBackend]) -> None:
    backend = opened()
    planned = list(backend.migrate(dry_run=True))
    assert planned == PLAN
    with pytest.raises(Unavailable, match="identity migrate"):
        backend.check()
    assert list(backend.migrate()) == planned
    assert list(backend.migrate()) == []
    assert list(backend.migrate(dry_run=True)) == []
    backend.check()


# SQLAlchemy cannot read back an index over an expression from SQLite.
@pytest.mark.filterwarnings("ignore:.*expression-based index")
def test_the_migrated_schema_is_that_of_the_tables(opened: Callable[[], SqlBackend], connection: Connection) -> None:
    opened().migrate()
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    assert compare_metadata(context, metadata) == []


def test_a_database_of_the_first_version_is_migrated_in_place(
    opened: Callable[[], SqlBackend], connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = opened()
    monkeypatch.setattr(runner, "HEAD", "0001")
    assert list(backend.migrate()) == PLAN[:1]
    monkeypatch.undo()
    with pytest.raises(Unavailable, match="older than this version"):
        backend.check()
    _write_as_the_first_version_did(connection, "old")
    assert list(backend.migrate()) == PLAN[1:]
    backend.check()
    with backend.reading() as storage:
        organization = storage.organizations.find("old")
        assert organization is not None
        assert organization.registration
        assert storage.applications.is_origin("https://shop.example")
        assert storage.applications.is_origin("http://localhost:8080")
        assert not storage.applications.is_origin("https://bye.example")
        issued = storage.tokens.find_issued(b"old")
        assert issued is not None
        assert not issued.session_ended
        assert issued.token.session_id == "session"
        presented = storage.tokens.find_presented(b"old")
        assert presented is not None
        assert presented.family.id == "old"
    with committing(backend, Transactions()) as storage:
        storage.sessions.add(a_session(user_id="old"))
        storage.applications.remove("old")
    with backend.reading() as storage:
        assert not storage.applications.is_origin("https://shop.example"), (
            "what was filled in goes with its application"
        )


def test_a_database_of_the_second_version_is_migrated_in_place(
    opened: Callable[[], SqlBackend], connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = opened()
    monkeypatch.setattr(runner, "HEAD", "0002")
    assert list(backend.migrate()) == PLAN[:2]
    monkeypatch.undo()
    with pytest.raises(Unavailable, match="older than this version"):
        backend.check()
    _write_as_the_second_version_did(connection, "old")
    assert list(backend.migrate()) == PLAN[2:]
    backend.check()
    with backend.reading() as storage:
        person = storage.users.page("old", UserKind.HUMAN, PageRequest(query="ad")).items[0]
        assert isinstance(person, HumanUser)
        assert person.last_sign_in_at is None
        assert [secret.last_used_at for secret in storage.applications.secrets("old")] == [None]
        assert [secret.last_used_at for secret in storage.service_user_secrets.of_user("old-robot")] == [None]
        for digest in (b"old", b"old-secret"):
            issued = storage.tokens.find_issued(digest)
            assert issued is not None
            assert issued.token.personal_access_token_id is None
        assert storage.user_grants.page_of_project_grant("old").items[0].id == "old"
        [domain] = storage.domains.of_organization("old")
        assert (domain.proof, storage.domains.find_holder(domain.name)) == (Proof.UNPROVEN, domain)
        assert len(domain.challenge) == TOKEN_LENGTH
        refused = storage.audit.page(filter=AuditFilter(organization_id="old", result=Result.REFUSED)).items
        assert [event.id for event in refused] == ["old"]
    token = a_personal_access_token(user_id="old-robot")
    live = an_access_token(user_id="old-robot", personal_access_token_id=token.id)
    with committing(backend, Transactions()) as storage:
        storage.personal_access_tokens.add(token)
        storage.tokens.add_access(live)
        storage.service_user_secrets.remove("old-robot", "old")
    with backend.reading() as storage:
        assert storage.tokens.find_access(b"old-secret") is None, "what was there still goes with its secret"
        assert storage.tokens.find_access(b"old") is not None
    with committing(backend, Transactions()) as storage:
        storage.personal_access_tokens.remove("old-robot", token.id)
    with backend.reading() as storage:
        assert storage.tokens.find_access(live.digest) is None


def test_what_the_third_version_kept_of_answers_is_emptied(
    opened: Callable[[], SqlBackend], connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of it is shown once. The key itself stays: nothing may be done twice."""
    backend = opened()
    monkeypatch.setattr(runner, "HEAD", "0003")
    backend.migrate()
    monkeypatch.undo()
    times = {"created_at": 1, "expires_at": 9}
    _insert(connection, "idempotency_records", {"key": b"k", "request": b"r", **times, "status": 201, "sealed": b"s"})
    connection.commit()
    backend.migrate()
    with backend.reading() as storage:
        kept = storage.records.find(CORE, "idempotency key", b"k")
    assert kept is not None
    assert (kept.value, kept.sealed) == ({"request": b"r".hex()}, b"")


def test_what_the_twelfth_version_kept_besides_are_records(
    opened: Callable[[], SqlBackend], connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = opened()
    monkeypatch.setattr(runner, "HEAD", "0012")
    backend.migrate()
    monkeypatch.undo()
    _write_as_the_first_version_did(connection, "old")
    sent: dict[str, object] = {"kind": "password_reset", "created_at": 1, "expires_at": 9, "user_id": "old"}
    _insert(connection, "one_time_codes", {"digest": b"c", "sealed": b"s", "used_at": None, **sent})
    _insert(connection, "one_time_codes", {"digest": b"u", "sealed": b"", "used_at": 2, **sent})
    _insert(connection, "consents", {"user_id": "old", "application_id": "old", "scope": "openid email", "given_at": 3})
    _insert(connection, "assertions", {"user_id": "robot", "jti": "j", "until": 2**33})
    connection.commit()
    backend.migrate()
    with committing(backend, Transactions()) as storage:
        assert storage.records.take(CORE, "password_reset", b"c", at(8)).sealed == b"s"
        with pytest.raises(AlreadyUsed):
            storage.records.take(CORE, "password_reset", b"u", at(8))
        assert storage.records.find(CORE, "assertion", digest("robot\nj")) is not None
        [consent] = Services(None, lambda: storage, at(8), SYSTEM).consents.of_user("old")  # type: ignore[arg-type]
    assert consent == Consent(user_id="old", application_id="old", scope=("openid", "email"), given_at=at(3))


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def test_who_had_registered_and_proved_no_address_has_no_bare_name(
    opened: Callable[[], SqlBackend], connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = opened()
    monkeypatch.setattr(runner, "HEAD", "0009")
    backend.migrate()
    monkeypatch.undo()
    _write_as_the_first_version_did(connection, "old")
    for name, profile in (("proved", '{"email_verified": true}'), ("stranger", "{}")):
        user: dict[str, object] = {
            "id": name, "organization_id": "old", "kind": "human", "user_name": name, "name_key": name,
            "display_name": name, "display_key": name, "email_key": "", "description": "", "profile": profile,
            "access_token_type": "opaque", "active": True, "version": 1, "created_at": 1, "changed_at": 1,
        }  # fmt: skip
        event: dict[str, object] = {
            "id": name, "at": 1, "event": "user.registered", "actor_kind": "anonymous", "object_kind": "user",
            "object_id": name, "result": "success", "detail": "{}",
        }  # fmt: skip
        _insert(connection, "users", user)
        _insert(connection, "audit_events", event)
    connection.commit()
    backend.migrate()
    with backend.reading() as storage:
        found = {name: storage.users.find_by_bare_name(name, first_in="") for name in ("ada", "proved", "stranger")}
        people = [storage.users.find(name) for name in ("old", "proved", "stranger")]
    assert {name: one is not None for name, one in found.items()} == {"ada": True, "proved": True, "stranger": False}
    assert [isinstance(one, HumanUser) and one.registered for one in people] == [False, True, True]


def test_the_versions_before_can_go_on_with_the_new_schema(
    opened: Callable[[], SqlBackend], connection: Connection
) -> None:
    backend = opened()
    backend.migrate()
    _write_as_the_second_version_did(connection, "late")
    with backend.reading() as storage:
        organization = storage.organizations.find("late")
    assert organization is not None
    assert organization.registration
    revoked = connection.execute(text("UPDATE access_tokens SET revoked_at = 2 WHERE session_id = 'session'")).rowcount
    removed = connection.execute(text("DELETE FROM organizations WHERE id = 'late'")).rowcount
    connection.commit()
    assert (revoked, removed) == (1, 1)


def test_of_two_processes_one_migrates(empty_url: str, opened: Callable[[], SqlBackend]) -> None:
    program = f"from identity.plugins.sql import *; print(len(SqlBackend(Settings(url={empty_url!r})).migrate()))"
    runners = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(3)]
    answers = [int(runner.communicate(timeout=60)[0]) for runner in runners]
    assert sorted(answers) == [0, 0, len(REVISIONS)]
    opened().check()


def test_a_newer_schema_is_refused(opened: Callable[[], SqlBackend], connection: Connection) -> None:
    backend = opened()
    backend.migrate()
    _pretend(connection, "9999")
    for attempt in (backend.check, backend.migrate, partial(backend.migrate, dry_run=True)):
        with pytest.raises(Unavailable, match="newer than this version"):
            attempt()


def test_the_schema_of_the_next_version_can_be_used(opened: Callable[[], SqlBackend], connection: Connection) -> None:
    backend = opened()
    backend.migrate()
    _pretend(connection, f"{int(HEAD) + 1:04}")
    backend.check()
    with pytest.raises(Unavailable):
        backend.migrate()


def test_an_audit_event_cannot_be_changed(opened: Callable[[], SqlBackend], connection: Connection) -> None:
    backend, event = opened(), an_audit_event()
    backend.migrate()
    with committing(backend, Transactions()) as storage:
        storage.audit.append(event)
    for statement in ("UPDATE audit_events SET reason = 'x'", "DELETE FROM audit_events"):
        with pytest.raises(Exception, match="never changed"):
            connection.execute(text(statement))
        connection.rollback()
    with backend.reading() as reading:
        assert reading.audit.find(event.id) is not None


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unavailable, match="cannot be created"):
        SqlBackend(Settings(url=f"sqlite:///{tmp_path}/file/identity.db")).migrate()


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "identity.db").write_text("not a database" * 100)
    with pytest.raises(Unavailable, match="not an SQLite database"):
        SqlBackend(Settings(url=f"sqlite:///{tmp_path}/identity.db")).check()


def test_only_a_migration_makes_a_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "identity.db"
    backend = SqlBackend(Settings(url=f"sqlite:///{path}"))
    with pytest.raises(Unavailable, match=r"no database file .+ keeps its data.+`identity migrate"):
        backend.check()
    with pytest.raises(Unavailable, match="no database file"):
        backend.writing(_begun())
    assert backend.migrate(dry_run=True) == PLAN
    assert not path.parent.exists()
    backend.migrate()
    backend.check()
    backend.close()


def test_a_migrated_file_can_be_moved(sqlite_template: Path, tmp_path: Path) -> None:
    shutil.copy(sqlite_template, tmp_path / "moved.db")
    backend = SqlBackend(Settings(url=f"sqlite:///{tmp_path}/moved.db"))
    backend.check()
    with committing(backend, Transactions()) as storage:
        storage.organizations.add(an_organization())
    backend.close()


def _begun() -> Transactions:
    transactions = Transactions()
    transactions.begin()
    return transactions


def _pretend(connection: Connection, revision: str) -> None:
    connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
    connection.commit()


def _write_as_the_first_version_did(connection: Connection, name: str) -> None:
    """Store one of each thing that the next version changes, by the columns that the first one knew."""
    moments = {"created_at": 1, "changed_at": 1}
    active = {"id": name, "active": True, "version": 1, **moments}
    uris = '["https://shop.example/a", "https://SHOP.example:443/b", "http://localhost:8080", "com.shop:/"]'
    life = {"issued_at": 1, "expires_at": 9}
    held = {"digest": name.encode(), "id": name, "client_id": name, "scope": "", "session_id": "session"}
    rows: dict[str, dict[str, object]] = {
        "organizations": {**active, "name": "Acme", "name_key": "acme", "primary_domain": f"{name}.example"},
        "projects": {
            **active, "organization_id": name, "name": "Rocket", "name_key": "rocket", "assert_roles": False,
            "check_roles": False,
        },
        "users": {
            **active, "organization_id": name, "kind": "human", "user_name": "ada", "name_key": "ada",
            "display_name": "Ada", "display_key": "ada", "email_key": "", "description": "",
            "access_token_type": "opaque", "profile": "{}",
        },
        "applications": {
            **active, "project_id": name, "name": "Shop", "name_key": "shop", "type": "web",
            "authentication_method": "none", "response_types": '["code"]', "grant_types": "[]", "redirect_uris": uris,
            "post_logout_redirect_uris": '["https://bye.example"]', "access_token_type": "opaque",
            "id_token_userinfo_assertion": False, "assert_roles_in_access_token": False,
            "assert_roles_in_id_token": False, "development": False,
        },
        "token_families": {
            "id": name, "user_id": name, "client_id": name, "scope": "openid", "started_at": 1, "ends_at": 9,
            "session_id": "session", "offline": True,
        },
        "access_tokens": {
            **held, **life, "format": "opaque", "subject": name, "audience": "", "user_id": name,
            "application_id": name, "family_id": name,
        },
        "refresh_tokens": {**held, **life, "family_id": name, "user_id": name, "ends_at": 9, "authenticated_at": 1},
    }  # fmt: skip
    for table, row in rows.items():
        _insert(connection, table, row)
    connection.commit()


def _write_as_the_second_version_did(connection: Connection, name: str) -> None:
    """The same, and one of each thing that the third version changes."""
    _write_as_the_first_version_did(connection, name)
    robot = f"{name}-robot"
    own = {"id": name, "digest": name.encode(), "created_at": 1}
    grant: dict[str, object] = {
        "id": name, "organization_id": name, "project_id": name, "roles": "[]", "active": True, "version": 1,
        "created_at": 1, "changed_at": 1,
    }  # fmt: skip
    user: dict[str, object] = {
        "id": robot, "organization_id": name, "kind": "service", "user_name": "robot", "name_key": "robot",
        "display_name": "Robot", "display_key": "robot", "email_key": "", "description": "",
        "access_token_type": "opaque", "active": True, "version": 1, "created_at": 1, "changed_at": 1,
    }  # fmt: skip
    token: dict[str, object] = {
        "digest": f"{name}-secret".encode(), "id": "by-secret", "client_id": robot, "scope": "", "issued_at": 1,
        "expires_at": 9, "format": "opaque", "subject": robot, "audience": "", "user_id": robot, "secret_id": name,
    }  # fmt: skip
    event: dict[str, object] = {
        "id": name, "at": 1, "event": "access.refused", "actor_kind": "user", "object_kind": "user",
        "organization_id": name, "result": "refused", "detail": "{}",
    }  # fmt: skip
    _insert(connection, "users", user)
    _insert(connection, "client_secrets", {**own, "application_id": name})
    _insert(connection, "service_user_secrets", {**own, "user_id": robot})
    _insert(connection, "access_tokens", token)
    _insert(connection, "project_grants", grant)
    _insert(connection, "user_grants", {**grant, "user_id": name, "project_grant_id": name})
    _insert(connection, "audit_events", event)
    connection.commit()


def _insert(connection: Connection, table: str, row: dict[str, object]) -> None:
    values = ", ".join(f":{column}" for column in row)
    connection.execute(text(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})"), row)  # noqa: S608
