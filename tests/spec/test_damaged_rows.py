"""Security 9.8: a damaged row fails the requests about that object with 4xx or 503, and no others."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import Boolean, Column, Integer, LargeBinary

from identity.domain.login_names import LoginName
from identity.domain.permissions import Resource
from identity.plugins.sql.tables import metadata
from identity.services.leases import acquire_lease
from identity.services.mails import Mail, MailReason
from identity.testing.browser import Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.service_test_client import bearer_headers
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import make_fixture_data

pytestmark = [pytest.mark.storages("sqlite"), pytest.mark.exhaustive]

#: Single-row tables that every request depends on.
OF_ALL = {"instance"}
#: Tables that background jobs read.
OF_JOBS = {
    "records", "outgoing_messages", "signing_keys", "service_user_keys", "personal_access_tokens", "users"
}  # fmt: skip


@contextmanager
def database_of(world: World) -> Iterator[sqlite3.Connection]:
    url = next(value for value in world.settings.values() if value.startswith("sqlite:///"))
    path = url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as database:
        yield database


def take_everything(world: World) -> None:
    """Drops triggers and NOT NULL constraints, so that rows can have what a failing disk leaves."""
    with database_of(world) as database:
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {trigger}")
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'")
        database.execute("PRAGMA writable_schema = RESET")


def damage_of(column: Column[Any]) -> tuple[object, ...]:
    if isinstance(column.type, Boolean):
        return (2,)
    if isinstance(column.type, Integer):
        return ("soon",)
    if isinstance(column.type, LargeBinary):
        return (b"\x00" * 40,)
    return (b"\xff",)


class DamagedRowScenario:
    """One entity of every kind, requests that read them, and an unrelated user."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.bystander = world.make_service_user_program()
        self.bystander.access_token()
        estate = make_fixture_data(world)
        owner = world.make_human_user(estate.organization)
        world.assign_manager_role(owner, "IAM_OWNER", resource=Resource.INSTANCE)
        self.browser = Browser(world)
        self.browser.start_session(owner)
        self.api = bearer_headers(
            world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE).management_token()
        )
        self.party = RelyingParty.register(world, project_id=estate.project.id)
        answer = self.browser.open(
            (authorization := self.party.new_request(scope="openid profile email offline_access")).url
        )
        self.tokens = self.party.obtain_tokens(answer, authorization)
        self.login_name = set_password(world, owner)
        with world.transaction_services() as services:
            self.reset = services.passwords.issue_reset_link(estate.path_values["user"]).partition("example.com")[2]
            services.attempts.reserve_password_attempt(
                LoginName.parse(self.login_name), services.storage.users.find_subject(owner.id), None
            )
            services.mails.queue(Mail(to="ada@acme.example", subject="Hello", text="Hello"), MailReason.NOTICE)
            services.signing_keys.rotate()
            acquire_lease(services.storage, "purge", starts_at=services.now, expires_at=services.now)
        columns = [
            f"/console/{'organizations/' + estate.organization.id}{below}" for below in ("", "/users", "/projects")
        ]
        self.pages = [
            *columns,
            f"/console/users/{estate.path_values['user']}",
            f"/console/projects/{estate.project.id}",
            f"/console/applications/{estate.path_values['application']}",
            f"/console/service-users/{estate.path_values['service_user']}",
            "/console/instance",
            "/console/instance/signing-keys",
            "/console/audit-events",
            "/account",
            "/account/sessions",
            "/account/applications",
            self.reset,
        ]
        self.lists = [
            "/organizations",
            f"/organizations/{estate.organization.id}/users",
            f"/projects/{estate.project.id}/roles",
            f"/projects/{estate.project.id}/grants",
            f"/users/{estate.path_values['user']}/grants",
            f"/service-users/{estate.path_values['service_user']}/keys",
        ]

    def statuses(self) -> Iterator[tuple[str, int]]:
        client, world = self.world.client, self.world
        world.identity.process_state.key_ring.invalidate()
        for path in self.pages:
            yield path, self.browser.open(path).status_int
        for path in self.lists:
            yield path, client.request("GET", client.management_url + path, headers=self.api).status_int
        authorization = self.party.new_request(scope="openid")
        yield "authorize", self.browser.open(authorization.url).status_int
        yield "userinfo", client.fetch_userinfo(self.tokens.access_token).status_int
        yield "introspection", client.introspect(self.tokens.access_token, world.introspector).status_int
        yield "keys", client.fetch_jwks().status_int
        stranger = Browser(world)
        yield "login", stranger.open("/login").status_int
        if "login_name" in getattr(stranger.find_form(), "fields", {}):
            yield "login name", stranger.submit({"login_name": self.login_name}).status_int

    def jobs(self) -> None:
        """Runs the background jobs; a single row must not stop any."""
        identity = self.world.identity
        identity.background_jobs.purge()
        identity.background_jobs.rotate_signing_key_if_due()
        identity.background_jobs.record_expiring_keys()
        for sender in identity.senders.values():
            sender.find_problem()


def test_damaged_row_affects_only_its_requests(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.smtp.host": "mail.example", "identity.smtp.sender": "no-reply@id.example.com"})
    scene = DamagedRowScenario(world)
    take_everything(world)
    assert {where: status for where, status in scene.statuses() if status >= 400} == {}
    with database_of(world) as database:
        for table in metadata.tables.values():
            rows = database.execute(f'SELECT max(rowid) FROM "{table.name}"').fetchone()  # noqa: S608
            # One column of each type; tests/storage/sql/test_damaged_rows.py covers all.
            for column in {type(column.type): column for column in table.columns if not column.foreign_keys}.values():
                this = f'"{table.name}" SET "{column.name}"'
                (before,) = database.execute(
                    f'SELECT "{column.name}" FROM "{table.name}" WHERE rowid = ?',  # noqa: S608
                    rows,
                ).fetchone() or (None,)
                for damage in damage_of(column):
                    where = f"{table.name}.{column.name} = {damage!r}"
                    with suppress(sqlite3.IntegrityError):
                        database.execute(f"UPDATE {this} = ? WHERE rowid = ?", (damage, *rows))
                    found = {name: status for name, status in scene.statuses() if status >= 500 and status != 503}
                    assert not found, where
                    if table.name not in OF_ALL:
                        if table.name in OF_JOBS:
                            scene.jobs()
                        token = scene.bystander.request_token()
                        assert token.status_int == 200, where
                        assert world.client.fetch_userinfo(token.json["access_token"]).status_int == 200, where
                    # A job may have recreated the row meanwhile.
                    database.execute(f"UPDATE OR REPLACE {this} = ? WHERE rowid = ?", (before, *rows))
