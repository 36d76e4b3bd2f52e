"""Every change writes its event in the same transaction; refusals are bounded; nothing secret is told."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from identity.domain.applications import Client
from identity.domain.audit import EVENTS, AuditFilter
from identity.domain.domains import Proof
from identity.domain.legal_holds import Held
from identity.domain.login_names import LoginName
from identity.domain.permissions import organization_resource
from identity.process import Identity
from identity.services.access import THE_OPERATOR
from identity.services.bundle import Services
from identity.services.commands.applications import ChangeApplication, RegisterApplication
from identity.services.commands.branding import ChangeBranding
from identity.services.commands.legal_holds import PlaceLegalHold
from identity.services.commands.managers import AddManager, ChangeManager
from identity.services.commands.organizations import AddDomain, ChangeOrganization, CreateOrganization
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.projects import (
    AddProjectGrant,
    AddProjectRole,
    ChangeProject,
    ChangeProjectGrant,
    ChangeProjectRole,
    CreateProject,
)
from identity.services.commands.service_users import (
    AddPersonalAccessToken,
    AddServiceUserKey,
    ChangeServiceUser,
    CreateServiceUser,
)
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.services.commands.users import ChangeProfile, CreateHumanUser, InviteHumanUser, RegisterUser
from identity.services.policies import INSTANCE
from identity.storage.errors import Unavailable
from identity.storage.memory import MemoryBackend
from identity.testing.clock import MovableClock
from identity.testing.factories import a_family

_PASSWORD = "correct horse battery staple"
_WEB = RegisterApplication(name="Web", type="web", redirect_uris=("https://app.example/callback",))


def everything(services: Services) -> set[str]:
    """Do every change there is; returns the secrets that came out."""
    own = services.organizations.create(CreateOrganization(name="Own", registration=True))
    other = services.organizations.create(CreateOrganization(name="Other"))
    services.organizations.change(own.id, ChangeOrganization(name="Owned"))
    for domain in ("own.example", "owned.example"):
        services.domains.ask(own.id, AddDomain(domain=domain))
    services.domains.verify(services.domains.get(own.id, "own.example"), Proof.DNS)
    services.domains.assert_domain(own.id, "owned.example", by=THE_OPERATOR)
    services.domains.remove(own.id, "owned.example", by=THE_OPERATOR)
    services.organizations.deactivate(other.id, by=THE_OPERATOR)
    services.organizations.reactivate(other.id, by=THE_OPERATOR)
    project = services.projects.create(own.id, CreateProject(name="Project"), by=THE_OPERATOR)
    services.projects.change(project.id, ChangeProject(check_roles=True), by=THE_OPERATOR)
    services.projects.deactivate(project.id, by=THE_OPERATOR)
    services.projects.reactivate(project.id, by=THE_OPERATOR)
    services.projects.add_role(project.id, AddProjectRole(key="editor", display_name="Editor"))
    services.projects.change_role(project.id, "editor", ChangeProjectRole(display_name="Writer"))
    grant = services.project_grants.add(
        project.id, AddProjectGrant(organization_id=other.id, roles=frozenset({"editor"})), by=THE_OPERATOR
    )
    services.project_grants.change(grant.id, ChangeProjectGrant(roles=frozenset()), by=THE_OPERATOR)
    services.project_grants.deactivate(grant.id, by=THE_OPERATOR)
    services.project_grants.reactivate(grant.id, by=THE_OPERATOR)
    services.project_grants.change(grant.id, ChangeProjectGrant(roles=frozenset({"editor"})), by=THE_OPERATOR)
    guest = services.users.create(other.id, CreateHumanUser(user_name="guest", given_name="G", family_name="H"))
    given = services.user_grants.add(
        AddUserGrant(user_id=guest.id, project_id=project.id, roles=frozenset({"editor"})), by=THE_OPERATOR
    )
    services.user_grants.change(given.id, ChangeUserGrant(roles=frozenset()), by=THE_OPERATOR)
    services.user_grants.deactivate(given.id, by=THE_OPERATOR)
    services.user_grants.reactivate(given.id, by=THE_OPERATOR)
    services.user_grants.remove(given.id, by=THE_OPERATOR)
    services.users.deactivate(guest.id, by=THE_OPERATOR)
    services.users.reactivate(guest.id, by=THE_OPERATOR)
    services.users.remove(guest.id, by=THE_OPERATOR)
    invited = InviteHumanUser(user_name="ida", given_name="I", family_name="J")
    ida, invitation = services.users.invite(own.id, invited, by=THE_OPERATOR)
    initial = services.users.one_time_password(ida.id, by=THE_OPERATOR)
    services.project_grants.remove(grant.id, by=THE_OPERATOR)
    services.projects.remove_role(project.id, "editor")
    application, secret = services.applications.register(
        project.id, RegisterApplication(name="API", type="api"), by=THE_OPERATOR
    )
    assert secret is not None
    _, second = services.applications.add_secret(application.id, by=THE_OPERATOR)
    services.applications.remove_secret(
        application.id, services.storage.applications.secrets(application.id)[0].id, by=THE_OPERATOR
    )
    services.applications.change(application.id, ChangeApplication(name="The API"), by=THE_OPERATOR)
    services.branding.change(own, ChangeBranding(accent="#2540ad"), by=THE_OPERATOR)
    services.applications.deactivate(application.id, by=THE_OPERATOR)
    services.applications.reactivate(application.id, by=THE_OPERATOR)
    services.applications.remove(application.id, by=THE_OPERATOR)
    person = services.users.create(
        own.id, CreateHumanUser(user_name="anna", given_name="Anna", family_name="B", email="a@b.example")
    )
    password = services.passwords.set_one_time(person.id)
    recovered = services.users.recover(person.id)
    services.passwords.reserve(LoginName.of("anna"), {})
    services.users.unlock(person.id, by=THE_OPERATOR)
    services.users.change_profile(person.id, ChangeProfile(nickname="Anni"))
    link = services.passwords.issue_link(person.id)
    services.passwords.reset(link.rpartition("/")[2], services.passwords.hash(_PASSWORD))
    email_link = services.users.issue_email_link(person.id, "anna@b.example")
    services.users.verify_email(email_link.rpartition("/")[2], person.id)
    anna = services.storage.users.find_subject(person.id)
    assert anna is not None
    account, session_secret = services.sessions.sign_in(anna, (), proofs=(), user_agent="")
    account, renewed_secret = services.sessions.sign_in(anna, (account,), proofs=(), user_agent="")
    app = services.factors.add(anna, "app", {"key": "the app's key"}, name="Phone")
    app = services.factors.rename(anna, app.id, "Old phone")
    services.factors.tell_used(app, anna, 3)
    services.factors.suspect(anna, app)
    services.factors.remove(anna, app.id)
    services.factors.add(anna, "app", {"key": "the app's key"})
    services.factors.reset(person.id)
    browser, browser_secret = services.remembered_browsers.remember(anna, "", timedelta(days=1))
    services.remembered_browsers.forget(anna, browser)
    services.policies.change(INSTANCE, ChangePolicy.of(remember_browser=7))
    services.policies.change(INSTANCE, ChangePolicy(account_deletion=True))
    services.own_account.take_along(anna)
    services.deletions.ask(anna)
    services.deletions.withdraw(anna)
    held = services.legal_holds.place(PlaceLegalHold(kind=Held.ORGANIZATION, held_id=own.id, reason="Case 12"))
    services.legal_holds.release(held.id)
    services.own_account.report(anna)
    elsewhere = services.upstream_providers.create(
        own.id,
        CreateUpstreamProvider(
            name="Elsewhere", issuer="https://elsewhere.example", client_id="us", client_secret="their secret of ours"
        ),
        by=THE_OPERATOR,
    )
    services.upstream_providers.change(elsewhere.id, ChangeUpstreamProvider(name="There"), by=THE_OPERATOR)
    services.upstream_providers.deactivate(elsewhere.id, by=THE_OPERATOR)
    services.upstream_providers.reactivate(elsewhere.id, by=THE_OPERATOR)
    services.upstream_providers.remove(elsewhere.id, by=THE_OPERATOR)
    registered = RegisterUser(user_name="rita", given_name="Rita", family_name="C", email="r@b.example")
    services.registration.register(own, registered, services.passwords.hash(_PASSWORD))
    web = services.applications.register(project.id, _WEB, by=THE_OPERATOR)[0]
    family = a_family(person, web, started_at=services.now, ends_at=services.now + timedelta(days=1))
    services.tokens.begin(family)
    client = Client(web, (), project, own)
    services.consents.refuse(anna, client, ("openid",))
    services.consents.give(anna, client, ("openid",))
    services.users.disconnect(anna, web.id)
    services.tokens.replayed(family.id, client, "refresh_token")
    services.sessions.end(account)
    robot = services.service_users.create(own.id, CreateServiceUser(user_name="robot", display_name="Robot"))
    services.service_users.change(robot.id, ChangeServiceUser(description="Runs."), by=THE_OPERATOR)
    file = services.service_users.add_key(robot.id, AddServiceUserKey(), by=THE_OPERATOR)
    services.service_users.remove_key(robot.id, file.key_id, by=THE_OPERATOR)
    _, robot_secret = services.service_users.add_secret(robot.id, by=THE_OPERATOR)
    [stored] = services.service_users.secrets(robot.id)
    services.service_users.remove_secret(robot.id, stored.id, by=THE_OPERATOR)
    named = AddPersonalAccessToken(name="Nightly")
    personal, token = services.service_users.add_token(robot.id, named, by=THE_OPERATOR)
    services.service_users.remove_token(robot.id, personal.id, by=THE_OPERATOR)
    services.service_users.deactivate(robot.id, by=THE_OPERATOR)
    services.service_users.reactivate(robot.id, by=THE_OPERATOR)
    manager = services.managers.add(
        organization_resource(own.id), AddManager(user_id=robot.id, roles=frozenset({"ORG_OWNER"})), by=THE_OPERATOR
    )
    services.managers.change(manager.id, ChangeManager(roles=frozenset({"ORG_OWNER_VIEWER"})), by=THE_OPERATOR)
    services.managers.remove(manager.id, by=THE_OPERATOR)
    services.service_users.remove(robot.id, by=THE_OPERATOR)
    services.signing_keys.add_first()
    services.signing_keys.rotate()
    services.projects.remove(project.id, by=THE_OPERATOR)
    services.organizations.remove(other.id, by=THE_OPERATOR)
    links = {one.rpartition("/")[2] for one in (link, email_link, invitation.secret)}
    passwords = {password, recovered, initial, _PASSWORD}
    secrets = {
        secret,
        second,
        robot_secret,
        session_secret,
        renewed_secret,
        token,
        browser_secret,
        "the app's key",
        "their secret of ours",
    }
    return {*secrets, file.key, *file.key.splitlines()[1:-1], *links, *passwords}


def test_every_change_has_its_event_and_none_holds_a_secret(services: Services) -> None:
    secrets = everything(services)
    told = "\n".join(repr(event) for event in services.audit.recorded)
    assert not [secret for secret in secrets if secret in told]
    written = {event.event for event in services.audit.recorded}
    elsewhere = {
        *("instance.bootstrapped", "organization.exported", "organization.imported", "password.link_asked"),
        *("service_user_key.expiring", "personal_access_token.expiring", "token.revoked"),
        *("signing_key.removed", "signing_key.withdrawn", "signing_key.rewrapped", "backup.made", "backup.restored"),
        *("authentication.refused", "authorization.refused", "access.refused"),
        # By whom somebody else has made the grant.
        "project_grant.accepted",
        # By the plugin that knows them.
        *("linked_identity.added", "linked_identity.removed"),
    }
    assert EVENTS - written == elsewhere, "\n".join(sorted((EVENTS - written) ^ elsewhere))
    stored = {event.id for event in services.storage.audit.page().items}
    assert {event.id for event in services.audit.recorded[-20:]} <= stored


def test_a_change_tells_before_and_after(services: Services) -> None:
    organization = services.organizations.create(CreateOrganization(name="Acme"))
    services.organizations.change(organization.id, ChangeOrganization(name="Acme GmbH"))
    assert services.audit.recorded[-1].detail == {"name": {"before": "Acme", "after": "Acme GmbH"}}


def test_a_change_whose_event_cannot_be_written_does_not_happen(
    identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object, event: object) -> bool:
        raise Unavailable("disk full")

    with identity.transaction() as services:
        audit_store = type(services.storage.audit)
    monkeypatch.setattr(audit_store, "append", refuse)
    with pytest.raises(Unavailable), identity.transaction() as services:
        services.organizations.create(CreateOrganization(name="Acme"))
    monkeypatch.undo()
    with identity.reading() as services:
        assert not services.storage.organizations.page().items


def refuse_once(identity: Identity, reason: str) -> None:
    with identity.reading() as services:
        services.audit.refuse("authentication.refused", kind="service_user", id="u", reason=reason)
        identity.write_refusals(services.refused)


def refusals(identity: Identity) -> list[str | None]:
    with identity.reading() as services:
        events = services.storage.audit.page(filter=AuditFilter(event="authentication.refused")).items
        return [event.reason for event in events]


def test_the_same_refusal_is_written_once_a_minute(identity: Identity, clock: MovableClock) -> None:
    for _ in range(3):
        refuse_once(identity, "expired")
    refuse_once(identity, "bad signature")
    assert sorted(map(str, refusals(identity))) == ["bad signature", "expired"]
    clock.advance(minutes=1)
    refuse_once(identity, "expired")
    assert len(refusals(identity)) == 3


def test_once_holds_over_processes(identity: Identity) -> None:
    refuse_once(identity, "expired")
    identity._refusals.clear()
    refuse_once(identity, "expired")
    assert refusals(identity) == ["expired"]


def test_a_storage_that_is_away_does_not_spoil_the_answer(identity: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(self: object, transactions: object) -> None:
        raise Unavailable("away")

    monkeypatch.setattr(MemoryBackend, "writing", away)
    refuse_once(identity, "expired")
    monkeypatch.undo()
    assert refusals(identity) == []
    refuse_once(identity, "expired")
    assert refusals(identity) == ["expired"]


def test_observers_hear_of_changes_after_the_commit_alone(identity: Identity) -> None:
    heard: list[str] = []
    tell: Callable[..., None] = lambda events: heard.extend(event.event for event in events)  # noqa: E731
    identity.host.notify = tell  # type: ignore[method-assign]
    with identity.transaction() as services:
        services.organizations.create(CreateOrganization(name="Acme"))
        assert heard == []
    assert heard == ["organization.created"]

    def fail() -> None:
        with identity.transaction() as services:
            services.organizations.create(CreateOrganization(name="Other"))
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        fail()
    assert heard == ["organization.created"]


def test_unknown_event_names_are_refused(services: Services) -> None:
    with pytest.raises(ValueError, match="catalogue"):
        services.audit.record("organization.exploded", kind="organization", id=None, organization_id=None)
