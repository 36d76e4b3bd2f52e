"""Every change writes its event in the same transaction; refusals are limited; events contain no secrets."""

from collections.abc import Callable
from datetime import timedelta
from io import BytesIO

import pytest

from identity.application import IdentityApplication
from identity.domain.applications import ApplicationClient
from identity.domain.audit import AuditEvent, AuditFilter
from identity.domain.domains import DomainProof
from identity.domain.legal_holds import LegalHoldKind
from identity.domain.login_names import LoginName
from identity.domain.mail_texts import MailKind
from identity.domain.organizations import Organization
from identity.domain.permissions import ManagerLevel, Resource
from identity.domain.users import ServiceUser, Subject
from identity.services.access_control import Principal
from identity.services.commands.applications import ChangeApplication, RegisterApplication
from identity.services.commands.attributes import (
    AddAttributeMapping,
    ChangeAttribute,
    ChangeAttributeMapping,
    CreateAttribute,
)
from identity.services.commands.branding import ChangeBranding
from identity.services.commands.groups import (
    AddGroup,
    AddGroupGrant,
    AddGroupManager,
    AddGroupMapping,
    AddGroupMember,
    ChangeGroup,
    ChangeGroupGrant,
    ChangeGroupManager,
    ChangeGroupMapping,
    ChangeGroupMember,
)
from identity.services.commands.impersonations import StartImpersonation
from identity.services.commands.legal_holds import CreateLegalHold
from identity.services.commands.mail_server import ChangeMailServer
from identity.services.commands.mail_texts import ChangeMailTexts
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
    AddFederatedCredential,
    AddPersonalAccessToken,
    AddServiceUserKey,
    ChangeServiceUser,
    CreateServiceUser,
)
from identity.services.commands.upstream_providers import ChangeUpstreamProvider, CreateUpstreamProvider
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.services.commands.users import ChangeProfile, CreateHumanUser, InviteHumanUser, RegisterUser
from identity.services.commands.webhooks import ChangeWebhook, CreateWebhook, RotateWebhookSecret
from identity.services.container import Services
from identity.services.mails import Mail, MailReason
from identity.services.policies import INSTANCE_OWNER_ID
from identity.storage.contract import factories as make
from identity.storage.errors import StorageUnavailable
from identity.storage.memory import MemoryBackend
from identity.testing.clock import FakeClock

_PASSWORD = "correct horse battery staple"
_WEB = RegisterApplication(name="Web", type="web", redirect_uris=("https://app.example/callback",))


def everything(services: Services) -> set[str]:
    """Make every possible change; returns the secrets that it created."""
    organization = services.organizations.create(CreateOrganization(name="Own", registration=True))
    other = services.organizations.create(CreateOrganization(name="Other"))
    services.organizations.change(organization.id, ChangeOrganization(name="Owned"))
    for domain in ("own.example", "owned.example"):
        services.domains.add(organization.id, AddDomain(domain=domain))
    services.domains.verify(services.domains.get(organization.id, "own.example"), DomainProof.DNS)
    services.domains.assert_domain(organization.id, "owned.example", principal=Principal.OPERATOR)
    services.domains.remove(organization.id, "owned.example", principal=Principal.OPERATOR)
    services.organizations.deactivate(other.id, principal=Principal.OPERATOR)
    services.organizations.reactivate(other.id, principal=Principal.OPERATOR)
    project = services.projects.create(organization.id, CreateProject(name="Project"), principal=Principal.OPERATOR)
    services.projects.change(project.id, ChangeProject(check_roles=True), principal=Principal.OPERATOR)
    services.projects.deactivate(project.id, principal=Principal.OPERATOR)
    services.projects.reactivate(project.id, principal=Principal.OPERATOR)
    services.projects.add_role(project.id, AddProjectRole(key="editor", display_name="Editor"))
    services.projects.change_role(project.id, "editor", ChangeProjectRole(display_name="Writer"))
    grant = services.project_grants.add(
        project.id, AddProjectGrant(organization_id=other.id, roles=frozenset({"editor"})), principal=Principal.OPERATOR
    )
    services.project_grants.change(grant.id, ChangeProjectGrant(roles=frozenset()), principal=Principal.OPERATOR)
    services.project_grants.deactivate(grant.id, principal=Principal.OPERATOR)
    services.project_grants.reactivate(grant.id, principal=Principal.OPERATOR)
    services.project_grants.change(
        grant.id, ChangeProjectGrant(roles=frozenset({"editor"})), principal=Principal.OPERATOR
    )
    guest = services.users.create(other.id, CreateHumanUser(user_name="guest", given_name="G", family_name="H"))
    user_grant = services.user_grants.add(
        AddUserGrant(user_id=guest.id, project_id=project.id, roles=frozenset({"editor"})), principal=Principal.OPERATOR
    )
    services.user_grants.change(user_grant.id, ChangeUserGrant(roles=frozenset()), principal=Principal.OPERATOR)
    services.user_grants.deactivate(user_grant.id, principal=Principal.OPERATOR)
    services.user_grants.reactivate(user_grant.id, principal=Principal.OPERATOR)
    services.user_grants.remove(user_grant.id, principal=Principal.OPERATOR)
    services.users.deactivate(guest.id, principal=Principal.OPERATOR)
    services.users.reactivate(guest.id, principal=Principal.OPERATOR)
    services.users.remove(guest.id, principal=Principal.OPERATOR)
    invited = InviteHumanUser(user_name="ida", given_name="I", family_name="J")
    ida, invitation = services.users.invite(organization.id, invited, principal=Principal.OPERATOR)
    initial = services.users.set_one_time_password(ida.id, principal=Principal.OPERATOR)
    services.managers.add(
        Resource.of_organization(organization.id),
        AddManager(user_id=ida.id, roles=frozenset({"ORG_OWNER"})),
        principal=Principal.OPERATOR,
    )
    importer = services.access_control.load_principal(Subject(services.users.get(ida.id), organization))
    file = BytesIO(b"user_name,given_name,family_name\njo,J,K\n")
    imported = services.user_imports.start(organization.id, file, principal=importer)
    for begin in (lambda: None, lambda: services.user_imports.run(imported.id, organization.id, principal=importer)):
        begin()
        batch = services.user_imports.find_next_batch(imported.id)
        assert batch is not None
        services.user_imports.store_results(batch.user_import, [])
    services.project_grants.remove(grant.id, principal=Principal.OPERATOR)
    services.projects.remove_role(project.id, "editor")
    application, secret = services.applications.register_with_secret(
        project.id, RegisterApplication(name="API", type="api"), principal=Principal.OPERATOR
    )
    assert secret is not None
    _, second = services.applications.add_secret(application.id, principal=Principal.OPERATOR)
    services.applications.remove_secret(
        application.id, services.storage.applications.list_secrets(application.id)[0].id, principal=Principal.OPERATOR
    )
    services.applications.change(application.id, ChangeApplication(name="The API"), principal=Principal.OPERATOR)
    services.branding.change(organization, ChangeBranding(accent="#2540ad"), principal=Principal.OPERATOR)
    services.applications.deactivate(application.id, principal=Principal.OPERATOR)
    services.applications.reactivate(application.id, principal=Principal.OPERATOR)
    services.applications.remove(application.id, principal=Principal.OPERATOR)
    person = services.users.create(
        organization.id, CreateHumanUser(user_name="anna", given_name="Anna", family_name="B", email="a@b.example")
    )
    password = services.passwords.set_one_time_password(person.id)
    recovered = services.users.recover(person.id)
    services.passwords.begin_attempt(LoginName.parse("anna"), {})
    services.users.unlock(person.id, principal=Principal.OPERATOR)
    services.users.change_profile(person.id, ChangeProfile(nickname="Anni"))
    link = services.passwords.issue_reset_link(person.id)
    services.passwords.reset(link.rpartition("/")[2], services.passwords.hash(_PASSWORD))
    email_link = services.users.issue_email_link(person.id, "anna@b.example")
    services.users.verify_email(email_link.rpartition("/")[2], person.id)
    anna = services.storage.users.find_subject(person.id)
    assert anna is not None
    account, session_secret = services.sessions.start(anna, (), proofs=(), user_agent="")
    account, renewed_secret = services.sessions.start(anna, (account,), proofs=(), user_agent="")
    app = services.factors.enrol(anna, "app", {"key": "the app's key"}, name="Phone")
    app = services.factors.rename(anna, app.id, "Old phone")
    services.factors.record_backup_code_used(app, anna, 3)
    services.factors.record_suspected_clone(anna, app)
    services.factors.remove(anna, app.id)
    services.factors.enrol(anna, "app", {"key": "the app's key"})
    services.factors.remove_all(person.id)
    browser, browser_secret = services.remembered_browsers.remember(anna, "", timedelta(days=1))
    services.remembered_browsers.forget(anna, browser)
    services.policies.change(INSTANCE_OWNER_ID, ChangePolicy.build(remember_browser=7))
    services.policies.change(INSTANCE_OWNER_ID, ChangePolicy(account_deletion=True))
    services.account_recovery.record_export(anna)
    services.account_deletions.schedule(anna)
    services.account_deletions.cancel_own(anna)
    legal_hold = services.legal_holds.create(
        CreateLegalHold(kind=LegalHoldKind.ORGANIZATION, held_id=organization.id, reason="Case 12")
    )
    services.legal_holds.release(legal_hold.id)
    services.account_recovery.report_compromise(anna)
    other_provider = services.upstream_providers.create(
        organization.id,
        CreateUpstreamProvider(
            name="Elsewhere", issuer="https://elsewhere.example", client_id="us", client_secret="their secret of ours"
        ),
        principal=Principal.OPERATOR,
    )
    services.upstream_providers.change(
        other_provider.id, ChangeUpstreamProvider(name="There"), principal=Principal.OPERATOR
    )
    services.upstream_providers.deactivate(other_provider.id, principal=Principal.OPERATOR)
    services.upstream_providers.reactivate(other_provider.id, principal=Principal.OPERATOR)
    services.upstream_providers.remove(other_provider.id, principal=Principal.OPERATOR)
    registered = RegisterUser(user_name="rita", given_name="Rita", family_name="C", email="r@b.example")
    services.registration.register(organization, registered, services.passwords.hash(_PASSWORD))
    web = services.applications.register_with_secret(project.id, _WEB, principal=Principal.OPERATOR)[0]
    family = make.token_family(person, web, started_at=services.now, ends_at=services.now + timedelta(days=1))
    services.tokens.store_family(family)
    client = ApplicationClient(web, (), project, organization)
    services.consents.record_refusal(anna, client, ("openid",))
    services.consents.grant_consent(anna, client, ("openid",))
    services.users.disconnect_application(anna, web.id)
    services.tokens.revoke_replayed_family(family.id, client, "refresh_token")
    services.sessions.end(account)
    boss = services.users.create(organization.id, CreateHumanUser(user_name="boss", given_name="B", family_name="S"))
    services.managers.add(
        Resource.of_organization(organization.id),
        AddManager(user_id=boss.id, roles=frozenset({"ORG_OWNER"})),
        principal=Principal.OPERATOR,
    )
    boss_subject = services.storage.users.find_subject(boss.id)
    assert boss_subject is not None
    impersonator, impersonator_secret = services.sessions.start(boss_subject, (), proofs=(), user_agent="")
    reason = StartImpersonation(reason="Why")
    impersonated, impersonated_secret = services.impersonations.start(
        anna.user.id, reason, impersonator=impersonator, user_agent=""
    )
    services.sessions.end(impersonated)
    robot = services.service_users.create(organization.id, CreateServiceUser(user_name="robot", display_name="Robot"))
    services.service_users.change(robot.id, ChangeServiceUser(description="Runs."), principal=Principal.OPERATOR)
    file = services.service_users.add_key(robot.id, AddServiceUserKey(), principal=Principal.OPERATOR)
    services.service_users.remove_key(robot.id, file.key_id, principal=Principal.OPERATOR)
    _, robot_secret = services.service_users.add_secret(robot.id, principal=Principal.OPERATOR)
    [stored] = services.service_users.list_secrets(robot.id)
    services.service_users.remove_secret(robot.id, stored.id, principal=Principal.OPERATOR)
    named = AddPersonalAccessToken(name="Nightly")
    personal, token = services.service_users.add_personal_access_token(robot.id, named, principal=Principal.OPERATOR)
    services.service_users.remove_personal_access_token(robot.id, personal.id, principal=Principal.OPERATOR)
    trust = AddFederatedCredential.build(name="CI", issuer="https://ci.example", conditions=("sub = a",))
    credential = services.federated_credentials.add(robot.id, trust, principal=Principal.OPERATOR)
    services.federated_credentials.remove(robot.id, credential.id, principal=Principal.OPERATOR)
    services.service_users.deactivate(robot.id, principal=Principal.OPERATOR)
    services.service_users.reactivate(robot.id, principal=Principal.OPERATOR)
    manager = services.managers.add(
        Resource.of_organization(organization.id),
        AddManager(user_id=robot.id, roles=frozenset({"ORG_OWNER"})),
        principal=Principal.OPERATOR,
    )
    services.managers.change(
        manager.id, ChangeManager(roles=frozenset({"ORG_OWNER_VIEWER"})), principal=Principal.OPERATOR
    )
    services.managers.remove(manager.id, principal=Principal.OPERATOR)
    change_groups(services, robot, project.id)
    services.service_users.remove(robot.id, principal=Principal.OPERATOR)
    services.signing_keys.add_first()
    services.signing_keys.rotate()
    services.projects.remove(project.id, principal=Principal.OPERATOR)
    services.organizations.remove(other.id, principal=Principal.OPERATOR)
    change_attributes(services, organization.id)
    webhook_secrets = change_webhooks(services, organization.id)
    change_mail_server(services)
    change_mail_texts(services, organization)
    links = {item.rpartition("/")[2] for item in (link, email_link, invitation.secret)}
    passwords = {password, recovered, initial, _PASSWORD}
    secrets = {
        secret,
        second,
        robot_secret,
        session_secret,
        impersonator_secret,
        impersonated_secret,
        renewed_secret,
        token,
        browser_secret,
        "the app's key",
        "their secret of ours",
    }
    return {*secrets, *webhook_secrets, "their password", file.key, *file.key.splitlines()[1:-1], *links, *passwords}


def change_attributes(services: Services, organization_id: str) -> None:
    attribute = services.attributes.create(
        organization_id, CreateAttribute(key="team", label="Team"), principal=Principal.OPERATOR
    )
    services.attributes.change(attribute.id, ChangeAttribute(label="Group"), principal=Principal.OPERATOR)
    services.attributes.remove(attribute.id, principal=Principal.OPERATOR)


def change_groups(services: Services, user: ServiceUser, project_id: str) -> None:
    operator, end = Principal.OPERATOR, services.now + timedelta(days=1)
    group = services.groups.add(user.organization_id, AddGroup(name="Sales"), principal=operator)
    services.groups.change(group.id, ChangeGroup(name="Selling"), principal=operator)
    services.groups.deactivate(group.id, principal=operator)
    services.groups.reactivate(group.id, principal=operator)
    member = services.group_members.add(group.id, AddGroupMember(user_id=user.id), principal=operator)
    services.group_members.change(member.id, ChangeGroupMember(until=end), principal=operator)
    services.group_members.remove(member.id, principal=operator)
    grant = services.group_grants.add(group.id, AddGroupGrant(project_id=project_id), principal=operator)
    services.group_grants.change(grant.id, ChangeGroupGrant(until=end), principal=operator)
    services.group_grants.remove(grant.id, principal=operator)
    command = AddGroupManager(
        level=ManagerLevel.ORGANIZATION, resource_id=user.organization_id, roles=frozenset({"ORG_OWNER_VIEWER"})
    )
    manager = services.group_managers.add(group.id, command, principal=operator)
    services.group_managers.change(manager.id, ChangeGroupManager(until=end), principal=operator)
    services.group_managers.remove(manager.id, principal=operator)
    login = CreateUpstreamProvider(name="Login", issuer="https://login.example", client_id="us")
    provider = services.upstream_providers.create(user.organization_id, login, principal=operator)
    added = AddGroupMapping(claim="groups", value="sales", group_id=group.id)
    mapping = services.group_mappings.add(provider, added, principal=operator)
    services.group_mappings.change(mapping.id, ChangeGroupMapping(value="buyers"), principal=operator)
    services.group_mappings.remove(mapping.id, principal=operator)
    attribute = services.attributes.create(
        user.organization_id, CreateAttribute(key="office", label="Office"), principal=operator
    )
    office = AddAttributeMapping(claim="office", attribute_id=attribute.id)
    attribute_mapping = services.attribute_mappings.add(provider, office, principal=operator)
    changed = ChangeAttributeMapping(claim="room")
    services.attribute_mappings.change(attribute_mapping.id, changed, principal=operator)
    services.attribute_mappings.remove(attribute_mapping.id, principal=operator)
    services.groups.remove(group.id, principal=operator)


def change_webhooks(services: Services, organization_id: str) -> set[str]:
    """Returns the signing secrets."""
    command = CreateWebhook(name="Receiver", url="https://receiver.example", events=("*",))
    webhook, first = services.webhooks.create_with_new_secret(organization_id, command, principal=Principal.OPERATOR)
    services.webhooks.change(webhook.id, ChangeWebhook(name="Other"), principal=Principal.OPERATOR)
    _, second = services.webhooks.rotate_secret(webhook.id, RotateWebhookSecret(), principal=Principal.OPERATOR)
    services.webhooks.retire_previous_secret(webhook.id, principal=Principal.OPERATOR)
    services.webhooks.send_test(webhook.id, principal=Principal.OPERATOR)
    delivery = services.webhooks.page_deliveries(webhook.id).items[0]
    services.webhooks.resend(webhook.id, delivery.id, principal=Principal.OPERATOR)
    services.webhooks.deactivate(webhook.id, principal=Principal.OPERATOR)
    services.webhooks.reactivate(webhook.id, principal=Principal.OPERATOR)
    services.webhooks.remove(webhook.id, principal=Principal.OPERATOR)
    return {first, second}


def change_mail_texts(services: Services, organization: Organization) -> None:
    command = ChangeMailTexts.decode({"texts": {"invitation": {"en": {"intro": "Welcome."}}}})
    services.mail_texts.change(organization, command, principal=Principal.OPERATOR)
    services.mail_texts.record_test(organization, MailKind.INVITATION, principal=Principal.OPERATOR)


def change_mail_server(services: Services) -> None:
    """Also the mails that wait for it."""
    server = ChangeMailServer(host="mail.example", sender="id@own.example", user="us", password="their password")
    services.mail_server.change(server, principal=Principal.OPERATOR)
    services.mail_server.record_test(principal=Principal.OPERATOR)
    services.mails.queue(Mail(to="a@b.example", subject="Hello", text="Hello"), MailReason.NOTICE)
    mail = services.queued_mails.list_newest(principal=Principal.OPERATOR)[0]
    services.queued_mails.retry(mail.id, principal=Principal.OPERATOR)
    services.queued_mails.cancel(mail.id, principal=Principal.OPERATOR)


def test_every_change_has_an_event_without_secrets(services: Services) -> None:
    secrets = everything(services)
    recorded = "\n".join(repr(event) for event in services.audit.recorded_events)
    assert not [secret for secret in secrets if secret in recorded]
    written = {event.event for event in services.audit.recorded_events}
    other_events = {
        *("instance.bootstrapped", "organization.exported", "organization.imported", "password.link_asked"),
        *("service_user_key.expiring", "personal_access_token.expiring", "token.revoked"),
        *("manager.ending", "user_grant.ending", "project_grant.ending"),
        *("group_member.ending", "group_grant.ending", "group_manager.ending"),
        *(
            "signing_key.retired",
            "signing_key.removed",
            "signing_key.withdrawn",
            "signing_key.rewrapped",
            "backup.made",
            "backup.restored",
        ),
        *("authentication.refused", "authorization.refused", "access.refused"),
        # Another organization created the grant.
        "project_grant.accepted",
        # Recorded by the plugins.
        *("linked_identity.added", "linked_identity.removed"),
        *("identity_assertion.accepted", "identity_assertion.issued"),
        # Only the ini file sets up directories.
        "directory.tested",
        # At a sign-in.
        *("group_mapping.refused", "attribute_mapping.refused"),
        # Owners create agents in the account.
        *("agent.created", "agent.key_added", "agent.confirmed", "agent.stopped"),
        *("device.approved", "device.denied", "device.disconnected"),
        *("initial_access_token.added", "initial_access_token.removed"),
        *(f"{kind}.access_revoked" for kind in ("user", "service_user", "application", "organization")),
    }
    assert AuditEvent.NAMES - written == other_events, "\n".join(sorted((AuditEvent.NAMES - written) ^ other_events))
    stored = {event.id for event in services.storage.audit.page().items}
    assert {event.id for event in services.audit.recorded_events[-20:]} <= stored


def test_change_event_has_old_and_new_values(services: Services) -> None:
    organization = services.organizations.create(CreateOrganization(name="Acme"))
    services.organizations.change(organization.id, ChangeOrganization(name="Acme GmbH"))
    assert services.audit.recorded_events[-1].detail == {"name": {"before": "Acme", "after": "Acme GmbH"}}


def test_failed_event_rolls_back_the_change(identity: IdentityApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, event: object) -> bool:
        raise StorageUnavailable("disk full")

    with identity.transaction() as services:
        audit_store = type(services.storage.audit)
    monkeypatch.setattr(audit_store, "append", refuse)
    with pytest.raises(StorageUnavailable), identity.transaction() as services:
        services.organizations.create(CreateOrganization(name="Acme"))
    monkeypatch.undo()
    with identity.read_session() as services:
        assert not services.storage.organizations.page().items


def refuse_once(identity: IdentityApplication, reason: str) -> None:
    with identity.read_session() as services:
        services.audit.record_refusal("authentication.refused", kind="service_user", id="u", reason=reason)
        identity.record_refusals(services.audit.refused_events)


def refusals(identity: IdentityApplication) -> list[str | None]:
    with identity.read_session() as services:
        events = services.storage.audit.page(filter=AuditFilter(event="authentication.refused")).items
        return [event.reason for event in events]


def test_repeated_refusal_is_recorded_once_a_minute(identity: IdentityApplication, clock: FakeClock) -> None:
    for _ in range(3):
        refuse_once(identity, "expired")
    refuse_once(identity, "bad signature")
    assert sorted(map(str, refusals(identity))) == ["bad signature", "expired"]
    clock.advance(minutes=1)
    refuse_once(identity, "expired")
    assert len(refusals(identity)) == 3


def test_refusal_limit_is_shared_by_processes(identity: IdentityApplication) -> None:
    refuse_once(identity, "expired")
    identity._refusals.clear()
    refuse_once(identity, "expired")
    assert refusals(identity) == ["expired"]


def test_refusal_survives_storage_outage(identity: IdentityApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(self: object, transactions: object) -> None:
        raise StorageUnavailable("away")

    monkeypatch.setattr(MemoryBackend, "join_transaction", away)
    refuse_once(identity, "expired")
    monkeypatch.undo()
    assert refusals(identity) == []
    refuse_once(identity, "expired")
    assert refusals(identity) == ["expired"]


def test_observers_are_notified_after_commit(identity: IdentityApplication) -> None:
    heard: list[str] = []
    record: Callable[..., None] = lambda events: heard.extend(event.event for event in events)  # noqa: E731
    identity.plugin_host.notify_audit_events = record  # type: ignore[method-assign]
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
