"""Content of the audit trail (security 9.2 and 16.1; service description §6 leaves it open)."""

import logging
from datetime import timedelta
from typing import Any

import pytest

from identity.crypto.secrets import new_token, token_digest
from identity.domain.audit import Actor, ActorKind
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser, TokenFormat
from identity.services.audit import AuditRecorder
from identity.services.commands.service_users import AddServiceUserKey
from identity.storage.contract import factories as make
from identity.storage.contract.factories import make_id
from identity.storage.errors import StorageUnavailable
from identity.testing.browser import Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.service_test_client import basic_auth_header
from identity.testing.world import ServiceUserProgram, World, pkcs1_pem
from tests.plugins.management.api_fixture_data import ApiClient

NEW = "correct horse battery staple"


def refusals(world: World, **filters: Any) -> list[tuple[str | None, str | None]]:
    """The user and reason of each refusal, oldest first."""
    events = world.audit_events(event="authentication.refused", **filters)
    assert all(event.result == "refused" for event in events)
    return [(event.object_id, event.reason) for event in reversed(events)]


def test_refusal_names_service_user_after_valid_signature(world: World, robot: ServiceUserProgram) -> None:
    """Security 2.8: the precise reason goes to the audit trail."""
    robot.request_token(aud="elsewhere")
    [event] = world.audit_events(event="authentication.refused", object_id=robot.id)
    assert event.reason == "aud must be https://id.example.com"
    assert event.object_kind == "service_user"
    assert event.organization_id == robot.organization.id
    assert event.at == world.clock()
    assert event.actor.client_address == "192.0.2.1"
    assert event.actor.request_id


def test_refusal_before_valid_signature_names_no_user(isolated_world: World) -> None:
    robot = isolated_world.make_service_user_program()
    isolated_world.client.exchange_assertion(robot.assertion(header={"alg": "none"}))
    isolated_world.client.exchange_assertion(robot.assertion(header={"kid": "unknown"}))
    isolated_world.client.exchange_assertion(robot.assertion()[:-4] + "AAAA")
    assert refusals(isolated_world) == [
        (None, "alg is not one that a key can have"),
        (None, "no live key of this id and user"),
        (None, "signature does not match"),
    ]


def test_repeated_refusal_is_audited_once_a_minute(world: World, robot: ServiceUserProgram) -> None:
    """Decisions, tokens."""
    world.clock.advance(60 - world.clock.seconds % 60)
    for _ in range(3):
        robot.request_token(aud="elsewhere")
    robot.request_token(exp=world.clock.seconds - 100, iat=world.clock.seconds - 300)
    assert refusals(world, object_id=robot.id) == [
        (robot.id, "aud must be https://id.example.com"),
        (robot.id, "assertion expired"),
    ]
    world.clock.advance(59)
    robot.request_token(aud="elsewhere")
    assert len(refusals(world, object_id=robot.id)) == 2
    world.clock.advance(1)
    robot.request_token(aud="elsewhere")
    assert len(refusals(world, object_id=robot.id)) == 3


def test_refusals_differing_in_lateness_are_merged(world: World, robot: ServiceUserProgram) -> None:
    """Otherwise an attacker could fill the trail with one event a second."""
    world.clock.advance(60 - world.clock.seconds % 60)
    for seconds in range(40, 50):
        robot.request_token(iat=world.clock.seconds - 300, exp=world.clock.seconds - seconds)
    assert len(refusals(world, object_id=robot.id)) == 1


def test_refusals_are_merged_per_client(world: World) -> None:
    first, second = world.make_service_user_program(), world.make_service_user_program()
    for robot in (first, second):
        robot.request_token(aud="elsewhere")
        world.client.call_management_api("/roles", robot.management_token())
    for robot in (first, second):
        assert len(refusals(world, object_id=robot.id)) == 1
        assert len(world.audit_events(event="access.refused", actor_id=robot.id)) == 1


@pytest.mark.thorough
def test_token_issue_is_not_audited(isolated_world: World) -> None:
    """Decisions, tokens: its row is the record."""
    robot = isolated_world.make_service_user_program()
    before = len(isolated_world.audit_events())
    robot.access_token()
    assert len(isolated_world.audit_events()) == before


def test_events_are_in_order(isolated_world: World) -> None:
    """Security 9.2: ordered by a sequence of the database."""
    for _ in range(5):
        isolated_world.make_organization()
    sequence = [event.sequence for event in isolated_world.audit_events()]
    assert None not in sequence
    assert sequence == sorted(sequence, reverse=True)  # type: ignore[type-var]
    assert len(set(sequence)) == len(sequence)


@pytest.mark.shows("6.1")
def test_change_fails_without_audit_event(
    world: World, robot: ServiceUserProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Security 9.2."""
    # Created before storage fails, because the first test that needs the client creates it.
    token, client = robot.management_token(), world.introspector

    def fail(self: AuditRecorder, *args: object, **kwargs: object) -> None:
        raise StorageUnavailable("no audit trail")

    monkeypatch.setattr(AuditRecorder, "record", fail)
    assert world.client.revoke(token, client).status_int == 503
    monkeypatch.undo()
    assert world.client.introspect(token, client).json["active"] is True


def test_refusal_stands_without_audit_event(
    world: World, robot: ServiceUserProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise StorageUnavailable("no audit trail")

    with world.transaction_services() as services:
        monkeypatch.setattr(type(services.storage.audit), "append", fail)
    assert robot.request_token(aud="elsewhere").status_int == 400


@pytest.mark.thorough
def test_secrets_are_not_logged_or_audited(make_world: WorldFactory, caplog: pytest.LogCaptureFixture) -> None:
    """Security 16.1: every kind of secret, in right and wrong requests, with every library at DEBUG."""
    names = [name for name in logging.root.manager.loggerDict if isinstance(name, str)]
    levels = {name: logging.getLogger(name).level for name in names}
    try:
        for name in names:
            logging.getLogger(name).setLevel(logging.DEBUG)
        caplog.set_level(logging.DEBUG)
        world = make_world()
        secrets = _use_everything(world)
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
    secrets |= world.client.secrets
    trail = "\n".join(map(repr, world.all_audit_events()))
    assert len(secrets) > 20
    assert caplog.records
    assert not [secret for secret in secrets if secret in caplog.text]
    assert not [secret for secret in secrets if secret in trail]


@pytest.fixture
def signed_in(world: World, person: HumanUser, party: RelyingParty) -> tuple[Browser, str]:
    """A browser with a session from a password sign-in to the application, and the session id."""
    browser = Browser(world)
    login_name = set_password(world, person)
    browser.open(party.new_request().url, initiator=party.origin)
    browser.sign_in(login_name)
    [started] = world.audit_events(event="session.started", actor_id=person.id)
    return browser, str(started.detail["session_id"])


@pytest.mark.shows("6.1")
def test_sign_in_event_names_user_and_application(
    world: World, person: HumanUser, party: RelyingParty, signed_in: tuple[Browser, str]
) -> None:
    """As actor and as object, so that searches find the user either way, in the API too."""
    browser, session_id = signed_in
    [event] = world.audit_events(event="session.started", object_id=person.id)
    assert event.actor == Actor(
        kind=ActorKind.USER,
        id=person.id,
        client_id=party.client_id,
        session_id=session_id,
        client_address=browser.address,
        request_id=event.actor.request_id,
    )
    assert (event.object_kind, event.organization_id) == ("user", person.organization_id)
    owner = world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE)
    for named in ("actor_id", "object_id"):
        path = f"/organizations/{person.organization_id}/audit-events?event=session&{named}={person.id}"
        [listed] = ApiClient.for_user(owner).list(path)
        assert listed["id"] == event.id
        assert (listed["actor"]["client_id"], listed["actor"]["session_id"]) == (party.client_id, session_id)


def test_session_end_event_names_actor(
    world: World, person: HumanUser, party: RelyingParty, signed_in: tuple[Browser, str]
) -> None:
    browser, session_id = signed_in
    browser.open("/sign-out")
    browser.submit()
    [event] = world.audit_events(event="session.ended", actor_id=person.id, object_id=person.id)
    assert (event.actor.session_id, event.detail["session_id"]) == (session_id, session_id)
    other = Browser(world)
    session = other.start_session(person)
    owner = world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE)
    ApiClient.for_user(owner).delete(f"/users/{person.id}/sessions/{session.id}")
    [event] = world.audit_events(event="session.ended", actor_id=owner.id, object_id=person.id)
    assert (event.actor.session_id, event.detail["session_id"]) == (None, session.id)


def test_sign_out_events_of_one_browser_name_each_user(world: World) -> None:
    browser, people = Browser(world), [world.make_human_user(), world.make_human_user()]
    sessions = {person.id: browser.start_session(person).id for person in people}
    browser.open("/sign-out")
    browser.submit()
    for person in people:
        [event] = world.audit_events(event="session.ended", actor_id=person.id)
        assert (event.object_id, event.actor.session_id) == (person.id, sessions[person.id])


def test_password_change_during_sign_in_names_user(world: World, person: HumanUser) -> None:
    login_name, browser = set_password(world, person), Browser(world)
    password = world.operator_services.passwords.set_one_time_password(person.id)
    browser.open("/login")
    browser.sign_in(login_name, password)
    browser.submit({"new_password": NEW, "new_password_again": NEW})
    [event] = world.audit_events(event="password.changed", object_id=person.id)
    assert (event.actor.kind, event.actor.id) == (ActorKind.USER, person.id)


def test_console_events_name_session(world: World) -> None:
    person, browser = world.make_human_user(), Browser(world)
    world.assign_manager_role(person, "ORG_OWNER")
    session = browser.start_session(person)
    browser.open(f"/console/organizations/{person.organization_id}/edit")
    browser.submit({"name": "Renamed"})
    [event] = world.audit_events(event="organization.changed", actor_id=person.id)
    assert (event.actor.client_id, event.actor.session_id) == (None, session.id)
    page = browser.open(f"/console/audit-events/{event.id}")
    assert session.id in page


def test_token_events_name_client_and_session(world: World, party: RelyingParty) -> None:
    robot, token, session_id = world.make_manager_program("ORG_OWNER"), new_token(), make_id()
    live = make.access_token(
        robot.user,
        digest=token_digest(token),
        client_id=party.client_id,
        session_id=session_id,
        audience=(world.instance.project_id,),
        issued_at=world.clock(),
        expires_at=world.clock() + timedelta(hours=1),
    )
    world.operator_services.storage.tokens.add_access_token(live)
    ApiClient(world, token).patch(f"/organizations/{robot.organization.id}", {"name": "Renamed"})
    [event] = world.audit_events(event="organization.changed", actor_id=robot.id)
    assert (event.actor.client_id, event.actor.session_id) == (party.client_id, session_id)
    browser, viewer = Browser(world), world.make_human_user(robot.organization)
    world.assign_manager_role(viewer, "ORG_OWNER")
    browser.start_session(viewer)
    page = browser.open(f"/console/audit-events/{event.id}")
    application = world.operator_services.applications.get(party.client_id)
    for text in (session_id, party.client_id, application.name):
        assert text in page


def test_service_user_events_name_it_as_client(world: World) -> None:
    robot = world.make_manager_program("ORG_OWNER")
    ApiClient.for_user(robot).patch(f"/organizations/{robot.organization.id}", {"name": "Renamed"})
    [event] = world.audit_events(event="organization.changed", actor_id=robot.id)
    assert (event.actor.kind, event.actor.client_id, event.actor.session_id) == (ActorKind.USER, robot.id, None)


def test_revocation_event_names_client(world: World, robot: ServiceUserProgram) -> None:
    token = robot.management_token()
    assert world.client.revoke(token, world.introspector).status_int == 200
    [event] = world.audit_events(event="token.revoked", actor_id=world.introspector.client_id)[:1]
    assert (event.actor.kind, event.actor.client_id) == (ActorKind.CLIENT, world.introspector.client_id)


def _use_everything(world: World) -> set[str]:
    """Correct and wrong requests at every endpoint; returns the secrets that the client has not recorded itself."""
    secrets: set[str] = set()
    for token_format in TokenFormat:
        robot = world.make_service_user_program(token_format=token_format)
        world.assign_manager_role(robot, "ORG_OWNER")
        file = world.operator_services.service_users.add_key(robot.id, AddServiceUserKey())
        secrets |= set(file.key.splitlines()[1:-1]) | set(pkcs1_pem(robot.key).splitlines()[1:-1])
        robot.request_token(jti="once")
        robot.request_token(jti="once")
        robot.request_token(aud="elsewhere")
        robot.request_token("profile")
        world.client.exchange_assertion(robot.assertion(header={"kid": "x"}))
        token = robot.management_token()
        for method in ("GET", "POST", "PUT"):
            world.client.fetch_userinfo(token, method)
            world.client.fetch_userinfo(token[:-1], method)
        world.client.get(f"{world.client.discovery['userinfo_endpoint']}?access_token={token}")
        stranger = world.make_application()
        for client in (world.introspector, stranger):
            world.client.introspect(token, client)
            world.client.revoke(token, client)
        world.client.call_management_api("/me", token)
        world.client.call_management_api("/nothing", token)
        issued = world.make_authorization(world.make_human_user(), stranger)
        world.client.revoke(issued.refresh_token, stranger)
        wrong = basic_auth_header(f"{stranger.client_id}:{stranger.secret}x")
        world.client.post(world.client.discovery["introspection_endpoint"], {"token": token}, {"Authorization": wrong})
        secrets |= {stranger.secret, wrong.removeprefix("Basic "), stranger.header.removeprefix("Basic ")}
    return {secret for secret in secrets if len(secret) > 20}
