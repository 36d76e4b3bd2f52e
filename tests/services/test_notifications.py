"""Notices: a change to an account notifies its user, in the same transaction."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from identity.application import IdentityApplication
from identity.background_worker import BackgroundWorker
from identity.domain.attempts import MAX_MAILS_PER_ADDRESS
from identity.domain.audit import AuditEvent
from identity.domain.errors import Denied
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser
from identity.services import notifications
from identity.services.access_control import Principal
from identity.services.commands.impersonations import StartImpersonation
from identity.services.commands.managers import AddManager
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.projects import CreateProject
from identity.services.commands.user_grants import AddUserGrant
from identity.services.commands.users import ChangeHumanUser, ChangeProfile
from identity.services.container import Services
from identity.services.mails import Notification, parse_queued
from identity.services.policies import INSTANCE_OWNER_ID
from identity.testing.clock import FakeClock
from tests.services.factories import make_human_user, make_organization, subject_of

ADDRESS = "ada@acme.example"


@pytest.fixture
def further() -> dict[str, str]:
    return {"identity.smtp.host": "mail.example", "identity.smtp.sender": "no-reply@id.example.com"}


@pytest.fixture
def ada(identity: IdentityApplication) -> HumanUser:
    """A user who has signed in before."""
    identity.background_worker.stop()
    identity.background_worker = BackgroundWorker([])
    with identity.transaction() as services:
        person = make_human_user(services, make_organization(services), email=ADDRESS)
        services.storage.users.update_last_sign_in(person.id, services.now)
        return services.users.get(person.id)


def queued_notifications(identity: IdentityApplication) -> list[Notification]:
    """Remove and return the queued mails, oldest first."""
    with identity.transaction() as services:
        messages = services.outbox.list_due("mail")
        found = [parse_queued(services.outbox.unseal(message)) for message in messages]
        for message in messages:
            services.outbox.remove(message)
    return [item for item in found if isinstance(item, Notification)]


def _manager_changes_address(services: Services, person: HumanUser) -> None:
    services.users.change(person.id, ChangeHumanUser(email="eve@acme.example"), principal=Principal.OPERATOR)


def _person_drops_address(services: Services, person: HumanUser) -> None:
    services.users.change_profile(person.id, ChangeProfile(email=""))


def _link_proves_another(services: Services, person: HumanUser) -> None:
    code = services.users.issue_email_link(person.id, "eve@acme.example").rpartition("/")[2]
    services.users.verify_email(code, person.id)


def _person_wants_to_go(services: Services, person: HumanUser) -> None:
    services.policies.change(INSTANCE_OWNER_ID, ChangePolicy(account_deletion=True))
    services.account_deletions.schedule(subject_of(services, person))


CAUSES: dict[str, tuple[str, Callable[[Services, HumanUser], object]]] = {
    "password": (
        "password_changed",
        lambda services, person: services.passwords.change(subject_of(services, person), "hash"),
    ),
    "one-time password": (
        "password_set",
        lambda services, person: services.users.set_one_time_password(person.id, principal=Principal.OPERATOR),
    ),
    "recovery by the operator": ("password_set", lambda services, person: services.users.recover(person.id)),
    "deletion": ("deletion_asked", _person_wants_to_go),
    "not me": (
        "reported",
        lambda services, person: services.account_recovery.report_compromise(subject_of(services, person)),
    ),
    "address by a manager": ("email_changed", _manager_changes_address),
    "no address any more": ("email_changed", _person_drops_address),
    "address by a link": ("email_changed", _link_proves_another),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_former_address_is_notified(identity: IdentityApplication, ada: HumanUser, cause: str) -> None:
    template, causes = CAUSES[cause]
    with identity.transaction() as services:
        causes(services, ada)
        login_name = subject_of(services, ada).login_name
    [notice] = queued_notifications(identity)
    assert (notice.to, notice.template, notice.values["login_name"]) == (ADDRESS, template, login_name)


@pytest.mark.parametrize("cause", CAUSES)
def test_unchanged_account_sends_no_notification(identity: IdentityApplication, ada: HumanUser, cause: str) -> None:
    def change_our_mind() -> None:
        with identity.transaction() as services:
            CAUSES[cause][1](services, ada)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change_our_mind()
    assert queued_notifications(identity) == []


def test_other_profile_changes_send_no_notification(identity: IdentityApplication, ada: HumanUser) -> None:
    with identity.transaction() as services:
        services.users.change_profile(ada.id, ChangeProfile(email=ADDRESS, nickname="Ada"))
        services.users.change(ada.id, ChangeHumanUser(user_name="ada"), principal=Principal.OPERATOR)
    assert queued_notifications(identity) == []


def test_deletion_and_its_cancellation_are_notified(identity: IdentityApplication, ada: HumanUser) -> None:
    with identity.transaction() as services:
        _person_wants_to_go(services, ada)
        login_name = subject_of(services, ada).login_name
    queued_notifications(identity)
    with identity.transaction() as services:
        services.account_deletions.cancel(ada.id, principal=Principal.OPERATOR)
    assert [notification.template for notification in queued_notifications(identity)] == ["deletion_withdrawn"]
    with identity.transaction() as services:
        services.users.remove(ada.id, principal=Principal.OPERATOR)
    [notice] = queued_notifications(identity)
    assert (notice.to, notice.template, notice.values) == (ADDRESS, "removed", {"login_name": login_name})


@pytest.mark.parametrize("is_verified", [True, False])
def test_person_is_warned_once_of_the_end_of_their_roles(
    identity: IdentityApplication, ada: HumanUser, clock: FakeClock, is_verified: bool
) -> None:
    with identity.transaction() as services:
        if is_verified:
            person = services.users.get(ada.id)
            profile = replace(person.profile, email_verified=True)
            services.storage.users.update(replace(person, profile=profile, version=person.version + 1))
        project = services.projects.create(
            ada.organization_id, CreateProject(name="Harbour"), principal=Principal.OPERATOR
        )
        until = services.now + timedelta(days=9)
        command = AddUserGrant(user_id=ada.id, project_id=project.id, until=until)
        services.user_grants.add(command, principal=Principal.OPERATOR)
        services.managers.add(
            Resource.of_organization(ada.organization_id),
            AddManager(user_id=ada.id, roles=frozenset({"ORG_OWNER"}), until=until),
            principal=Principal.OPERATOR,
        )
    identity.background_jobs.tidy_ended_roles()
    assert queued_notifications(identity) == [], "it is too early"
    clock.advance(days=3)
    identity.background_jobs.tidy_ended_roles()
    notices = queued_notifications(identity)
    assert {notice.template: notice.values["place"] for notice in notices} == {
        "project_roles_ending": "Harbour" if is_verified else "",
        "manager_roles_ending": "Acme" if is_verified else "",
    }
    assert {(notice.to, notice.values["day"]) for notice in notices} == {(ADDRESS, f"{until:%Y-%m-%d}")}
    clock.advance(days=1)
    identity.background_jobs.tidy_ended_roles()
    assert queued_notifications(identity) == []


def test_first_password_sends_no_notification(identity: IdentityApplication, ada: HumanUser) -> None:
    with identity.transaction() as services:
        person = make_human_user(services, make_organization(services, "Bolt"), "bob", "bob@bolt.example")
        services.users.set_one_time_password(person.id, principal=Principal.OPERATOR)
    assert queued_notifications(identity) == []


def test_notification_uses_recipient_language(identity: IdentityApplication, ada: HumanUser) -> None:
    with identity.transaction() as services:
        services.users.change_profile(ada.id, ChangeProfile(email=ADDRESS, locale="de-CH"))
        services.language = "fr"
        services.users.recover(ada.id)
    [notice] = queued_notifications(identity)
    assert notice.languages == ("de-CH", "fr")


def test_notification_is_retried_for_days(identity: IdentityApplication, ada: HumanUser, clock: FakeClock) -> None:
    with identity.transaction() as services:
        services.users.recover(ada.id)
    clock.advance(days=6)
    with identity.read_session() as services:
        assert len(services.outbox.list_due("mail")) == 1
    clock.advance(days=1)
    with identity.read_session() as services:
        assert services.outbox.list_due("mail") == ()


def test_every_impersonation_is_notified_whatever_mails_came_before(
    identity: IdentityApplication, ada: HumanUser
) -> None:
    with identity.transaction() as services:
        boss = make_human_user(services, services.organizations.get(ada.organization_id), "boss")
        services.managers.add(
            Resource.of_organization(ada.organization_id),
            AddManager(user_id=boss.id, roles=frozenset({"ORG_OWNER"})),
            principal=Principal.OPERATOR,
        )
        impersonator, _ = services.sessions.start(subject_of(services, boss), (), proofs=(), user_agent="")
        for _ in range(20):
            services.passwords.change(subject_of(services, ada), "hash")
        start = partial(
            services.impersonations.start,
            ada.id,
            StartImpersonation(reason="Why"),
            impersonator=impersonator,
            user_agent="",
        )
        for _ in range(MAX_MAILS_PER_ADDRESS):
            start()
        with pytest.raises(Denied):
            start()
    found = [item for item in queued_notifications(identity) if item.template == "impersonated"]
    assert len(found) == MAX_MAILS_PER_ADDRESS
    assert {item.to for item in found} == {ADDRESS}
    assert {item.values["impersonator"] for item in found} == {impersonator.subject.login_name}
    # Not to an unconfirmed address.
    assert {item.values["reason"] for item in found} == {"Why" if ada.profile.email_verified else ""}


def test_notified_events_are_audit_events() -> None:
    assert notifications.NOTIFIED_EVENTS <= AuditEvent.NAMES
