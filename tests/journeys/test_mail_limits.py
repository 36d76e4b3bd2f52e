"""Addresses are protected against floods: every mail counts for the address that it is sent to."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import count

import pytest

from identity.domain.enrolments import Enrolment
from identity.domain.permissions import Resource
from identity.domain.users import HumanUser, Profile, Subject
from identity.services.access_control import Principal
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.users import ChangeProfile
from identity.services.container import Services
from identity.services.policies import INSTANCE_OWNER_ID as OF_ALL
from identity.testing.browser import Browser, set_password
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.mail_server import ReceivingMailServer, message_text

pytestmark = pytest.mark.every_storage

PASSWORD = "the password of all of them"
VICTIM, MOST = "victim@acme.example", 5
NUMBERS = count()


@pytest.fixture
def world(mailing: World) -> World:
    return mailing


@dataclass
class MailLimitScenario:
    """``person`` has the address and ``stranger`` another one; each has a browser."""

    world: World
    person: HumanUser
    stranger: HumanUser

    @classmethod
    def create(cls, world: World, *, verified: bool = False) -> "MailLimitScenario":
        organization = world.make_organization()
        people = []
        for email in (VICTIM, "mallory@evil.example"):
            person = world.make_human_user(organization)
            set_password(world, person, PASSWORD)
            with world.transaction_services() as services:
                services.users.change_profile(person.id, ChangeProfile(email=email))
                if verified:
                    code = services.users.issue_email_link(person.id, email).rpartition("/")[2]
                    services.users.verify_email(code, person.id)
                people.append(services.users.get(person.id))
        return cls(world, *people)

    def browser(self, person: HumanUser | None) -> Browser:
        """A new browser, so that no other limits apply."""
        browser = Browser(self.world)
        if person is not None:
            browser.start_session(person)
        return browser

    def manager(self) -> Browser:
        manager = self.world.make_human_user()
        self.world.assign_manager_role(manager, "IAM_OWNER", resource=Resource.INSTANCE)
        return self.browser(manager)


def _register(scene: MailLimitScenario) -> None:
    party = RelyingParty.register(scene.world)
    browser = Browser(scene.world)
    browser.open(party.new_request(prompt="create").url, initiator=party.origin)
    typed = {"user_name": f"m{next(NUMBERS)}", "given_name": "M", "family_name": "M", "email": VICTIM}
    browser.submit({**typed, "password": PASSWORD, "password_again": PASSWORD}, form="page-form")
    assert browser.path.endswith("/register/sent"), browser.page


def _reset(scene: MailLimitScenario, login_name: str = "") -> None:
    browser = scene.browser(None)
    browser.open("/password/reset")
    browser.submit({"login_name": login_name or _login_name(scene.world, scene.person)}, form="page-form")
    assert browser.path == "/password/reset/sent"


def _change_address(scene: MailLimitScenario) -> None:
    browser = scene.browser(scene.stranger)
    browser.open("/account/profile")
    browser.submit({"email": VICTIM, "current_password": PASSWORD}, form="page-form")
    assert "We have sent a link" in browser.page.text


def _confirm_address(scene: MailLimitScenario) -> None:
    browser = scene.browser(scene.person)
    browser.open("/account/profile/email")
    browser.submit(form="page-form")
    assert browser.path == "/account/profile"


def _invite(scene: MailLimitScenario) -> None:
    browser = scene.manager()
    browser.open(f"/console/organizations/{scene.person.organization_id}/users/new")
    typed = {"user_name": f"i{next(NUMBERS)}", "given_name": "I", "family_name": "I", "email": VICTIM}
    browser.submit(typed, form="page-form")
    assert browser.page.status_int == 200, browser.page


def _new_access(scene: MailLimitScenario) -> None:
    browser = scene.manager()
    browser.open(f"/console/users/{scene.person.id}/password-link")
    browser.submit(form="page-form")
    assert browser.page.status_int == 200, browser.page


def _new_password(scene: MailLimitScenario) -> None:
    _set_password(scene)
    browser = scene.browser(scene.person)
    browser.open("/account/password")
    new = f"another password {next(NUMBERS)}"
    browser.submit({"current_password": PASSWORD, "new_password": new, "new_password_again": new}, form="page-form")
    assert "Your password is changed" in browser.page.text


def _set_password(scene: MailLimitScenario) -> None:
    set_password(scene.world, scene.person, PASSWORD)


def _have_address(scene: MailLimitScenario) -> None:
    with scene.world.transaction_services() as services:
        services.users.change_profile(scene.person.id, ChangeProfile(email=VICTIM))


def _leave_address(scene: MailLimitScenario) -> None:
    _set_password(scene)
    _have_address(scene)
    browser = scene.browser(scene.person)
    browser.open("/account/profile")
    browser.submit({"email": "", "current_password": PASSWORD}, form="page-form")
    assert "Your profile is saved" in browser.page.text


def _set_one_time(scene: MailLimitScenario) -> None:
    scene.browser(scene.person)
    with scene.world.transaction_services() as services:
        services.passwords.set_one_time_password(scene.person.id)


def _not_me(scene: MailLimitScenario) -> None:
    _set_password(scene)
    browser = scene.browser(scene.person)
    browser.open("/account/activity/not-me")
    browser.submit(form="page-form")
    assert browser.sign_in_step == "password"


def _sign_in_elsewhere(scene: MailLimitScenario) -> None:
    _set_password(scene)
    scene.browser(scene.person)
    browser = scene.browser(None)
    browser.open("/account")
    browser.sign_in(_login_name(scene.world, scene.person), PASSWORD)
    assert browser.path == "/account/profile"


def _about_a_factor(operation: Callable[[Services, Subject, Enrolment], object]) -> Callable[[MailLimitScenario], None]:
    """Send mails about an enrolled factor; the enrolment itself is not counted here."""

    def cause(scene: MailLimitScenario) -> None:
        with scene.world.transaction_services() as services:
            subject = services.storage.users.find_subject(scene.person.id)
            assert subject is not None
            services.notifications.notify = lambda event: None  # type: ignore[method-assign]
            enrolment = services.factors.enrol(subject, "pager", {}, name="Phone")
        with scene.world.transaction_services() as services:
            operation(services, subject, enrolment)

    return cause


def _add_factor(scene: MailLimitScenario) -> None:
    with scene.world.transaction_services() as services:
        subject = services.storage.users.find_subject(scene.person.id)
        assert subject is not None
        for enrolment in services.factors.list_enrolments(subject.user.id):
            services.storage.records.delete(enrolment.record.plugin, enrolment.record.kind, enrolment.record.key)
        services.factors.enrol(subject, "pager", {}, name="Phone")


def _want_to_go(scene: MailLimitScenario) -> None:
    with scene.world.transaction_services() as services:
        services.policies.change(OF_ALL, ChangePolicy(account_deletion=True))
        person = services.users.get(scene.person.id)
        services.storage.users.update(replace(person, deletion_at=None, version=person.version + 1))
        subject = services.storage.users.find_subject(scene.person.id)
        assert subject is not None
        services.account_deletions.schedule(subject)


def _stay(scene: MailLimitScenario) -> None:
    with scene.world.transaction_services() as services:
        person = services.users.get(scene.person.id)
        services.storage.users.update(replace(person, deletion_at=services.now, version=person.version + 1))
        services.account_deletions.cancel(person.id, principal=Principal.OPERATOR)


def _remove(scene: MailLimitScenario) -> None:
    person = scene.world.make_human_user()
    with scene.world.transaction_services() as services:
        services.storage.users.update_last_sign_in(person.id, services.now)
        services.users.change_profile(person.id, ChangeProfile(email=VICTIM))
    with scene.world.transaction_services() as services:
        services.users.remove(person.id, principal=Principal.OPERATOR)


def _make_account(scene: MailLimitScenario) -> None:
    with scene.world.transaction_services() as services:
        organization = services.organizations.get(scene.person.organization_id)
        profile = Profile(given_name="N", family_name="N", email=VICTIM, email_verified=True)
        services.registration.provision_account(organization, "new", profile)


def _impersonate(scene: MailLimitScenario) -> None:
    browser = scene.manager()
    browser.open(f"/console/users/{scene.person.id}/impersonate")
    browser.submit({"reason": "The order page shows an error"})
    assert browser.path == "/account/profile" or "too often" in browser.page.text


def _role_ends(scene: MailLimitScenario, kind: str) -> None:
    with scene.world.transaction_services() as services:
        detail = {"user_id": scene.person.id, "until": "2027-01-31T23:59:59Z"}
        services.audit.record(
            f"{kind}.ending", kind=kind, id=None, organization_id=scene.person.organization_id, detail=detail
        )


def _add_agent(scene: MailLimitScenario) -> None:
    with scene.world.transaction_services() as services:
        services.audit.record(
            "agent.created",
            kind="service_user",
            id=None,
            organization_id=scene.person.organization_id,
            detail={"display_name": "Assistant"},
            user_id=scene.person.id,
        )


#: How to request each mail, by template: as anyone, as the user or as a manager.
REQUESTED_MAILS: dict[str, Callable[[MailLimitScenario], None]] = {
    "registration_link": _register,
    "password_reset": _reset,
    "email_verification": _change_address,
    "email_verification, one's own": _confirm_address,
    "invitation": _invite,
    "new_credential": _new_access,
}
#: Notices about changes.
NOTICES: dict[str, Callable[[MailLimitScenario], None]] = {
    "password_changed": _new_password,
    "password_set": _set_one_time,
    "reported": _not_me,
    "deletion_asked": _want_to_go,
    "deletion_withdrawn": _stay,
    "removed": _remove,
    "new_browser": _sign_in_elsewhere,
    "registered": _make_account,
    "factor_added": _add_factor,
    "factor_removed": _about_a_factor(
        lambda services, subject, enrolment: services.factors.remove(subject, enrolment.id)
    ),
    "factor_reset": _about_a_factor(lambda services, subject, enrolment: services.factors.remove_all(subject.user.id)),
    "factor_used": _about_a_factor(
        lambda services, subject, enrolment: services.factors.record_backup_code_used(enrolment, subject, 9)
    ),
    "factor_suspected": _about_a_factor(
        lambda services, subject, enrolment: services.factors.record_suspected_clone(subject, enrolment)
    ),
    "email_changed": _leave_address,
    "impersonated": _impersonate,
    "agent_added": _add_agent,
    "manager_roles_ending": lambda scene: _role_ends(scene, "manager"),
    "project_roles_ending": lambda scene: _role_ends(scene, "user_grant"),
}
#: Same limit as another template, when an account has the address already.
ALIKE = {"registration_existing_account": "registration_link", "password_reset_accounts": "password_reset"}
#: Sent only after the right password; the limit is higher.
BY_PASSWORD = "email_code"


def test_every_mail_kind_has_a_scenario() -> None:
    found = (path.name for path in (files("identity.pages") / "templates" / "mails").iterdir())
    templates = {name.removesuffix(".txt") for name in found if name.endswith(".txt")}
    assert templates == {name.partition(",")[0] for name in REQUESTED_MAILS} | NOTICES.keys() | ALIKE.keys() | {
        BY_PASSWORD
    }


@pytest.mark.storages("memory")
@pytest.mark.sampled(4, thorough=6)
@pytest.mark.parametrize("kind", [*REQUESTED_MAILS, *NOTICES])
def test_address_gets_five_mails_an_hour_from_all_causes(world: World, post: ReceivingMailServer, kind: str) -> None:
    scene = MailLimitScenario.create(world)
    for _ in range(MOST + 2):
        (REQUESTED_MAILS | NOTICES)[kind](scene)
    assert received(world, post) == MOST


#: Templates that share a limit, because they have the same purpose. Impersonations have one of their own.
TOGETHER = [{"invitation", "new_credential"}, NOTICES.keys() - {"impersonated"}]


@pytest.mark.storages("memory")
@pytest.mark.sampled(4, thorough=6)
@pytest.mark.parametrize("used_up", [*REQUESTED_MAILS, *NOTICES])
def test_mail_limits_are_independent(world: World, post: ReceivingMailServer, used_up: str) -> None:
    """Requests by others do not use up the owner's requests and notices."""
    scene = MailLimitScenario.create(world)
    for _ in range(MOST + 1):
        (REQUESTED_MAILS | NOTICES)[used_up](scene)
    assert received(world, post) == MOST
    spent = next((group for group in TOGETHER if used_up in group), {used_up})
    # One of them is enough: notices to an unverified address share one limit.
    one_notice = next(iter(NOTICES))
    for name, causes in (REQUESTED_MAILS | {one_notice: NOTICES[one_notice]}).items():
        before = received(world, post)
        _have_address(scene)
        causes(scene)
        assert received(world, post) - before == (name not in spent), name


def test_mail_limit_resets_after_an_hour(world: World, post: ReceivingMailServer) -> None:
    scene = MailLimitScenario.create(world)
    for _ in range(MOST + 1):
        _reset(scene)
    assert received(world, post) == MOST
    world.clock.advance(hours=1)
    _reset(MailLimitScenario.create(world))
    assert received(world, post) == MOST + 1


@pytest.mark.storages("memory")
@pytest.mark.parametrize("causes", [_reset, _new_password])
def test_unverified_account_does_not_use_up_the_verified_owners_limit(
    world: World, post: ReceivingMailServer, causes: Callable[[MailLimitScenario], None]
) -> None:
    unverified, verified = MailLimitScenario.create(world), MailLimitScenario.create(world, verified=True)
    for _ in range(MOST + 2):
        causes(unverified)
    causes(verified)
    assert received(world, post) == MOST + 1


@pytest.mark.storages("memory")
def test_notices_of_one_kind_do_not_suppress_another_kind(world: World, post: ReceivingMailServer) -> None:
    scene = MailLimitScenario.create(world, verified=True)
    for _ in range(MOST + 2):
        _new_password(scene)
    assert received(world, post) == MOST
    _set_one_time(scene)
    assert received(world, post) == MOST + 1


def received(world: World, post: ReceivingMailServer) -> int:
    """The number of mails sent to the address."""
    assert world.app, "where pages are, notices are worded"
    world.identity.senders["mail"].send_due()
    return post.recipients.count(VICTIM)


def _login_name(world: World, person: HumanUser) -> str:
    with world.read_only_services() as services:
        subject = services.storage.users.find_subject(person.id)
    assert subject is not None
    return subject.login_name


@pytest.mark.storages("memory")
def test_address_typed_as_login_name_uses_up_no_limit(world: World, post: ReceivingMailServer) -> None:
    scene = MailLimitScenario.create(world)
    for _ in range(MOST):
        _reset(scene, VICTIM)
    _reset(scene)
    received(world, post)
    names = [
        _login_name(world, scene.person) in message_text(received_message)
        for received_message in post.received_messages
    ]
    assert names.count(True) == 1
