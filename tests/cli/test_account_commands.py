"""Operator commands for accounts: add-manager, recover-admin, password-link, service-user-secret, registration."""

import re
from argparse import Namespace
from datetime import timedelta

import pytest

from identity import clock
from identity.cli.command_context import open_application
from identity.crypto.argon2id import verify_password
from identity.domain.audit import ActorKind
from identity.domain.authentication import Proof
from identity.domain.policies import SecondFactorRule
from identity.domain.users import EmailVerifier, HumanUser
from identity.services.commands.policies import ChangePolicy
from identity.services.policies import INSTANCE_OWNER_ID
from tests.cli.conftest import INI


class TestAddManager:
    def test_at_an_organization_named_by_its_domain(self, on_data):
        arguments = ("add-manager", "--user", "example", "--organization", "identity.localhost")
        first = on_data(*arguments, "--role", "ORG_OWNER")
        assert first.status == 0
        assert "example@identity.localhost" in first.out
        again = on_data(*arguments, "--role", "ORG_USER_MANAGER", "--role", "ORG_SETTINGS_MANAGER")
        assert "holds ORG_OWNER, ORG_SETTINGS_MANAGER, ORG_USER_MANAGER at the organization" in again.out

    def test_at_an_organization_or_project_named_by_its_id(self, on_data, stored):
        instance = stored.organizations.find_instance()
        user = stored.users.find_by_login_name("example@identity.localhost").user
        arguments = ("add-manager", "--user", user.id)
        assert on_data(*arguments, "--role", "ORG_OWNER", "--organization", instance.organization_id).status == 0
        assert on_data(*arguments, "--role", "PROJECT_OWNER", "--project", instance.project_id).status == 0

    def test_add_manager_defaults_to_the_instance(self, on_data):
        assert (
            "holds IAM_OWNER at the instance" in on_data("add-manager", "--user", "example", "--role", "IAM_OWNER").out
        )

    def test_add_manager_until_a_day(self, on_data, stored):
        user = stored.users.find_by_login_name("example@identity.localhost").user
        day = f"{clock.now() + timedelta(days=90):%Y-%m-%d}"
        arguments = ("add-manager", "--user", user.id, "--organization", "identity.localhost", "--role")
        ran = on_data(*arguments, "ORG_USER_MANAGER", "--until", day)
        assert f"until the end of {day}" in ran.out
        [manager] = stored.managers.list_for_user(user.id)
        assert f"{manager.until:%Y-%m-%dT%H:%M:%S}" == f"{day}T23:59:59"
        shorter = on_data(*arguments, "ORG_OWNER", "--until", f"{clock.now() + timedelta(days=9):%Y-%m-%d}")
        assert shorter.status == 1
        assert "already holds roles there that end later" in shorter.err
        assert stored.managers.list_for_user(user.id) == (manager,)

    @pytest.mark.thorough
    def test_reports_invalid_arguments(self, on_data):
        for arguments, sentence in {
            "--user nobody --role IAM_OWNER": "There is no user nobody.",
            "--user example --role KING": "There is no role KING.",
            "--user example --role ORG_OWNER": "ORG_OWNER is held at an organization: add --organization",
            "--user example --role PROJECT_OWNER": "PROJECT_OWNER is held at a project: add --project",
            "--user example --role IAM_OWNER --project x": "There is no project x.",
            "--user example --role ORG_OWNER --organization x": "There is no organization x.",
            "--user example --role ORG_OWNER --project-grant x": "There is no project grant x.",
            "--user example --role IAM_OWNER --organization identity.localhost": "IAM_OWNER is held at the instance",
        }.items():
            ran = on_data("add-manager", *arguments.split())
            assert ran.status == 1
            assert ran.err.replace("_", " ").startswith(f"identity: {sentence}".replace("_", " "))
            assert ran.err.count("\n") == 1

    def test_add_manager_is_audited_as_operator(self, on_data, stored):
        on_data("add-manager", "--user", "example", "--role", "IAM_OWNER")
        event = next(item for item in stored.audit.page().items if item.event == "manager.added" and item.detail)
        assert event.actor.kind is ActorKind.OPERATOR


class TestRecoverAdmin:
    def test_recover_admin_sets_one_time_password(self, on_data, stored):
        ran = on_data("recover-admin", "--user", "admin@identity.localhost")
        assert ran.status == 0
        password = next(line.split()[1] for line in ran.out.splitlines() if line.startswith("password"))
        subject = stored.users.find_by_login_name("admin@identity.localhost")
        assert isinstance(subject.user, HumanUser)
        credential = stored.users.find_password(subject.user.id)
        assert credential.must_change
        assert verify_password(credential.hash, password)

    def test_sets_a_verified_email_address(self, on_data, stored):
        assert on_data("recover-admin", "--user", "admin", "--email", "Owner@acme.example").status == 0
        user = stored.users.find_by_login_name("admin@identity.localhost").user
        assert (user.profile.email, user.email_verified_by) == ("Owner@acme.example", EmailVerifier.OPERATOR)
        [found] = stored.users.find_by_verified_email("owner@acme.example", is_proven=True)
        assert found.user == user
        ran = on_data("recover-admin", "--user", "admin", "--email", "nowhere")
        assert ran.status == 1
        assert "Enter an email address" in ran.err

    def test_recover_admin_removes_second_factors_on_request(self, on_data, data):
        arguments = Namespace(ini=INI, variables=[f"data={data}"])
        with open_application(arguments) as identity:
            with identity.transaction() as services:
                subject = services.storage.users.find_by_login_name("admin@identity.localhost")
                services.factors.enrol(subject, "totp", {})
            left = []
            for options in ((), ("--reset-factors",)):
                assert on_data("recover-admin", "--user", "admin", *options).status == 0
                with identity.read_session() as services:
                    left.append(len(services.factors.list_enrolments(subject.user.id)))
        assert left == [1, 0]

    def test_resets_a_policy_that_locks_owners_out(self, on_data, data):
        """Security 19.9: the policy allows only passkeys, which no user has, and no second factor can be set up."""
        with open_application(Namespace(ini=INI, variables=[f"data={data}"])) as identity:
            with identity.transaction() as services:
                subject = services.storage.users.find_by_login_name("admin@identity.localhost")
                rules = ChangePolicy.build(second_factor="required", factors=("passkeys",))
                services.policies.change(INSTANCE_OWNER_ID, rules)
                services.policies.change(subject.organization.id, ChangePolicy.build(factors=("passkeys",)))
            ran = on_data("recover-admin", "--user", "admin")
            assert "taken back, as it kept everybody out: factors" in ran.out
            identity.process_state.policy_cache.entries.clear()
            with identity.read_session() as services:
                # Organization policies do not apply to owners.
                policy = services.policies.subject_policy(subject)
                # Factors can be set up again: the user signs in with the password and sets one up.
                assert (policy.factors, policy.second_factor) == (None, SecondFactorRule.REQUIRED)
                assert services.policies.filter_valid_proofs(subject, (Proof("password", ("pwd",), services.now),))

    def test_keeps_a_policy_that_allows_sign_in(self, on_data, data):
        with open_application(Namespace(ini=INI, variables=[f"data={data}"])) as identity:
            with identity.transaction() as services:
                services.policies.change(INSTANCE_OWNER_ID, ChangePolicy.build(second_factor="required_for_managers"))
            assert "policy" not in on_data("recover-admin", "--user", "admin").out
            with identity.read_session() as services:
                assert (
                    services.policies.get_stored_policy(INSTANCE_OWNER_ID).policy.second_factor
                    is SecondFactorRule.REQUIRED_FOR_MANAGERS
                )

    def test_reports_whether_the_policy_keeps_the_password(self, on_data, stored, data):
        assert "(one-time; shown only now)" in on_data("recover-admin", "--user", "admin").out
        with (
            open_application(Namespace(ini=INI, variables=[f"data={data}"])) as identity,
            identity.transaction() as services,
        ):
            services.policies.change(INSTANCE_OWNER_ID, ChangePolicy.build(password_change_after_reset=False))
        assert "(good until it is changed; shown only now)" in on_data("recover-admin", "--user", "admin").out
        subject = stored.users.find_by_login_name("admin@identity.localhost")
        assert not stored.users.find_password(subject.user.id).must_change

    def test_recover_admin_is_audited(self, on_data, stored):
        on_data("recover-admin", "--user", "admin")
        events = {item.event for item in stored.audit.page().items}
        assert {"user.recovered", "password.set"} <= events

    def test_reports_users_that_cannot_be_recovered(self, on_data):
        for user, sentence in (
            ("example", "is a service user. Name a person."),
            ("nobody", "There is no user nobody."),
        ):
            ran = on_data("recover-admin", "--user", user)
            assert ran.status == 1
            assert sentence in ran.err


# --- password-link ----------------------------------------------------------------------------------------------------


def test_password_link_leads_to_the_login_host(on_data, stored):
    ran = on_data("password-link", "--user", "admin@identity.localhost")
    assert ran.status == 0
    [link] = re.findall(r"http://localhost:8080/password/reset/([A-Za-z0-9]{43})", ran.out)
    assert re.search(r"^until +\d{4}-\d\d-\d\d \d\d:\d\d UTC$", ran.out, re.MULTILINE)
    assert "password.link_issued" in {item.event for item in stored.audit.page().items}
    assert link not in str(stored.audit.page().items)


def test_password_stays_until_the_link_is_used(on_data, data, stored):
    output = on_data("recover-admin", "--user", "admin").out
    password = next(line.split()[1] for line in output.splitlines() if line.startswith("password"))
    assert on_data("password-link", "--user", "admin").status == 0
    user = stored.users.find_by_login_name("admin@identity.localhost").user
    assert verify_password(stored.users.find_password(user.id).hash, password)


def test_users_without_password_get_no_link(on_data):
    for user, sentence in {
        "example": "is a service user. Name a person.",
        "nobody": "There is no user nobody.",
    }.items():
        ran = on_data("password-link", "--user", user)
        assert ran.status == 1
        assert sentence in ran.err
        assert ran.err.count("\n") == 1


# --- service-user-secret ----------------------------------------------------------------------------------------------

SECRET = re.compile(r"^secret +([A-Za-z0-9]{43})   \(shown only now\)$", re.MULTILINE)


def test_secret_is_printed_with_its_client_id(on_data, stored):
    ran = on_data("service-user-secret", "--user", "example@identity.localhost")
    assert ran.status == 0
    user = stored.users.find_by_login_name("example@identity.localhost").user
    [secret] = stored.credentials.list_secrets(user.id)
    [text] = SECRET.findall(ran.out)
    assert re.search(rf"^client id +{user.id}$", ran.out, re.MULTILINE)
    assert re.search(rf"^live secrets +{secret.id} \(\d{{4}}-\d\d-\d\d \d\d:\d\d UTC\)$", ran.out, re.MULTILINE)
    event = next(item for item in stored.audit.page().items if item.event == "service_user_secret.added")
    assert event.actor.kind is ActorKind.OPERATOR
    assert text not in str(stored.audit.page().items)


def test_secret_is_replaced_in_three_steps(on_data, stored):
    command = ("service-user-secret", "--user", "example")
    first, second = (SECRET.findall(on_data(*command).out) for _ in range(2))
    assert first != second
    user = stored.users.find_by_login_name("example@identity.localhost").user
    older, newer = stored.credentials.list_secrets(user.id)
    third = on_data(*command)
    assert third.status == 1
    assert re.match(rf"identity: Two secrets are live: {older.id} \(.+\), {newer.id} \(.+\)\. End one", third.err)
    assert third.err.count("\n") == 1
    ended = on_data(*command, "--remove", older.id)
    assert ended.status == 0
    assert not SECRET.search(ended.out)
    assert older.id not in ended.out
    assert newer.id in ended.out
    assert "none" in on_data(*command, "--remove", newer.id).out


def test_users_without_client_credentials_get_no_secret(on_data):
    for arguments, sentence in {
        "--user nobody": "There is no user nobody.",
        "--user admin": "is a person. Name a service user.",
        "--user example --remove x": "There is no secret x.",
    }.items():
        ran = on_data("service-user-secret", *arguments.split())
        assert ran.status == 1
        assert sentence in ran.err
        assert ran.err.count("\n") == 1


# --- registration -----------------------------------------------------------------------------------------------------


def test_registration_is_on_from_the_first_start_in_development_and_switched_off_and_on(on_data, stored):
    assert stored.organizations.find_by_domain("identity.localhost").registration
    for option, verb, state in (("--off", "may not", False), ("--on", "may", True)):
        ran = on_data("registration", "--organization", "identity.localhost", option)
        assert ran.status == 0
        assert ran.out == f"People {verb} register with Identity (identity.localhost).\n"
        assert stored.organizations.find_by_domain("identity.localhost").registration is state


def test_registration_stays_closed_by_policy(on_data, data):
    arguments = ("registration", "--organization", "identity.localhost", "--on")
    assert "Registration is closed for now" not in on_data(*arguments).out
    with (
        open_application(Namespace(ini=INI, variables=[f"data={data}"])) as identity,
        identity.transaction() as services,
    ):
        services.policies.change(INSTANCE_OWNER_ID, ChangePolicy.build(registration="off"))
    assert "Registration is closed for now: check its sign-in policy" in on_data(*arguments).out


def test_registration_is_switched_by_id_too(on_data, stored):
    organization = stored.organizations.find_by_domain("identity.localhost")
    assert on_data("registration", "--organization", organization.id, "--off").status == 0
    assert not stored.organizations.find(organization.id).registration


def test_registration_of_an_unknown_organization(on_data):
    ran = on_data("registration", "--organization", "nowhere.example", "--on")
    assert (ran.status, ran.out) == (1, "")
    assert "There is no organization nowhere.example." in ran.err


def test_registration_requires_on_or_off(on_data):
    assert on_data("registration", "--organization", "identity.localhost").status == 2


# --- revoke-access ----------------------------------------------------------------------------------------------------


def test_revoke_access_ends_everything_and_needs_one_target(on_data, stored):
    for arguments in (("--user", "admin"), ("--organization", "identity.localhost")):
        ran = on_data("revoke-access", *arguments)
        assert ran.status == 0
        assert "sessions" in ran.out
    assert on_data("revoke-access", "--user", "nobody").status != 0
    assert on_data("revoke-access", "--application", "nothing").status != 0
    assert on_data("revoke-access").status != 0
