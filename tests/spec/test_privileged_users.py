"""Security 20.3: organizations do not control the sign-in of users with an instance role."""

from collections.abc import Callable
from typing import Any

import pytest

from identity.domain.errors import Conflict, Denied, Invalid
from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.policies import SecondFactorRule
from identity.domain.users import HumanUser, Subject
from identity.services.access_control import Principal
from identity.services.attempts import TooManyAttempts
from identity.services.commands.managers import AddManager
from identity.services.commands.organizations import ChangeOrganization
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.upstream_providers import ChangeUpstreamProvider
from identity.services.commands.users import ChangeHumanUser
from identity.services.policies import INSTANCE_OWNER_ID as OF_INSTANCE
from identity.testing.browser import PASSWORD, Browser
from identity.testing.world import World
from tests.plugins.login.conftest import LoginUser
from tests.plugins.management.api_fixture_data import ApiClient


@pytest.fixture
def organization(world: World) -> Organization:
    return world.make_organization()


@pytest.fixture
def ada(world: World, organization: Organization) -> LoginUser:
    """A user of the organization with an instance role."""
    person = LoginUser(world, organization)
    world.assign_manager_role(person.user, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    return person


@pytest.fixture
def bert(world: World, organization: Organization) -> LoginUser:
    """A user of the organization without an instance role."""
    return LoginUser(world, organization)


def ruled(world: World, owner: str, **rules: Any) -> None:
    with world.transaction_services() as services:
        services.policies.change(owner, ChangePolicy.build(**rules))


def subject_of(world: World, user: HumanUser) -> Subject:
    with world.read_only_services() as services:
        subject = services.storage.users.find_subject(user.id)
    assert subject is not None
    return subject


def principal(world: World, user: HumanUser) -> Principal:
    with world.read_only_services() as services:
        return services.access_control.load_principal(subject_of(world, user))


def make_owner(world: World, organization: Organization, role: str = "ORG_OWNER") -> Principal:
    user = world.make_human_user(organization)
    world.assign_manager_role(user, role)
    return principal(world, user)


def signs_in(world: World, person: LoginUser) -> bool:
    browser = Browser(world)
    browser.open("/login")
    browser.sign_in(person.login_name)
    return bool(browser.session_cookies) and browser.path.startswith(("/account", "/console"))


def test_organization_factors_do_not_lock_out_holder(
    world: World, organization: Organization, ada: LoginUser, bert: LoginUser
) -> None:
    ruled(world, organization.id, factors=("passkeys",))
    assert not signs_in(world, bert)
    assert signs_in(world, ada)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("factors", ("passkeys",)),
        ("remember_browser", 0),
        ("password_min_length", 40),
        ("password_strength", 4),
        ("session_max_age", 300),
        ("session_idle_age", 300),
        ("single_session", True),
        ("free_attempts", 1),
        ("most_attempts", 5),
    ],
)
def test_holders_follow_instance_rules(
    world: World, organization: Organization, ada: LoginUser, bert: LoginUser, rule: str, value: Any
) -> None:
    ruled(world, organization.id, **{rule: value})
    with world.read_only_services() as services:
        above = services.policies.instance_policy()
        assert getattr(services.policies.subject_policy(subject_of(world, ada.user)), rule) == getattr(above, rule)
        of_bert = services.policies.subject_policy(subject_of(world, bert.user))
        assert of_bert == services.policies.organization_policy(organization.id)


def test_holders_get_second_factor_and_consent_of_their_organization(
    world: World, organization: Organization, ada: LoginUser
) -> None:
    ruled(world, organization.id, second_factor="required", consent="always", factors=("password", "totp"))
    with world.read_only_services() as services:
        policy = services.policies.subject_policy(subject_of(world, ada.user))
    assert (policy.second_factor, policy.consent, policy.factors) == (SecondFactorRule.REQUIRED, "always", None)


def test_second_factor_disallowed_by_instance_is_not_required_of_holder(
    isolated_world: World,
) -> None:
    organization = isolated_world.make_organization()
    ada = LoginUser(isolated_world, organization)
    isolated_world.assign_manager_role(ada.user, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    ruled(isolated_world, organization.id, second_factor="required")
    ruled(isolated_world, OF_INSTANCE, factors=("password",))
    assert signs_in(isolated_world, ada)


@pytest.mark.thorough
def test_upstream_second_factor_is_not_required_of_holder(isolated_world: World) -> None:
    """Managers of the organization could remove the factor, and these users cannot sign in there."""
    organization = isolated_world.make_organization()
    provider = isolated_world.make_upstream_provider(organization)
    with isolated_world.transaction_services() as services:
        trusted = ChangeUpstreamProvider.build(trust_methods=True)
        services.upstream_providers.change(provider.id, trusted, principal=Principal.OPERATOR)
    ada, bert = LoginUser(isolated_world, organization), LoginUser(isolated_world, organization)
    isolated_world.assign_manager_role(ada.user, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    ruled(isolated_world, OF_INSTANCE, factors=("password", "upstream"))
    ruled(isolated_world, organization.id, second_factor="required")
    assert not signs_in(isolated_world, bert)
    assert signs_in(isolated_world, ada)


@pytest.mark.parametrize("level", ["instance", "organization"])
def test_unsatisfiable_rules_are_refused(isolated_world: World, level: str) -> None:
    """No mail server is configured, so codes by email are not available."""
    owner = OF_INSTANCE if level == "instance" else isolated_world.make_organization().id
    for rules in (
        {"factors": ("totp",)},
        {"factors": ("recovery_codes", "totp")},
        {"second_factor": "required", "factors": ("password",)},
        {"second_factor": "required", "factors": ("password", "recovery_codes")},
        {"second_factor": "required_for_iam", "factors": ("password",)},
        {"second_factor": "required", "factors": ("upstream",)},
        {"second_factor": "required", "factors": ("password", "email_code")},
    ):
        with pytest.raises(Invalid) as refused, isolated_world.transaction_services() as services:
            services.policies.change(owner, ChangePolicy.build(**rules))
        assert refused.value.fields == {
            "factors": "These rules would lock everyone out. Leave at least one sign-in method that this "
            "service offers, and a second factor if one is required."
        }
    ruled(isolated_world, OF_INSTANCE, second_factor="off")
    with pytest.raises(Invalid), isolated_world.transaction_services() as services:
        services.policies.change(owner, ChangePolicy.build(factors=("passkeys",)))


class TestRoleAtTheInstance:
    def give(self, world: World, user: HumanUser) -> None:
        with world.transaction_services() as services:
            command = AddManager(user_id=user.id, roles=frozenset({"IAM_OWNER_VIEWER"}))
            services.managers.add(Resource.INSTANCE, command, principal=Principal.OPERATOR)

    def test_role_needs_a_permitted_sign_in_method(self, world: World, organization: Organization) -> None:
        user = world.make_human_user(organization)
        with pytest.raises(Invalid) as refused:
            self.give(world, user)
        assert "no sign-in method" in refused.value.fields["roles"]

    def test_role_is_refused_while_manager_knows_password(self, world: World, bert: LoginUser) -> None:
        with world.transaction_services() as services:
            services.users.set_one_time_password(bert.user.id, principal=Principal.OPERATOR)
        with pytest.raises(Invalid) as refused:
            self.give(world, bert.user)
        assert "Somebody else knows this person" in refused.value.fields["roles"]

    def test_role_ends_earlier_sessions_and_links(self, world: World, bert: LoginUser) -> None:
        browser = Browser(world)
        browser.start_session(bert.user)
        with world.transaction_services() as services:
            link = services.users.issue_password_link(bert.user.id, principal=Principal.OPERATOR)
            assert services.managers.count_sessions_to_end(bert.user.id, Resource.INSTANCE) == 1
        self.give(world, bert.user)
        browser.open("/account")
        assert browser.path.startswith("/login/")
        assert Browser(world).open(link).status_int >= 400
        with world.read_only_services() as services:
            assert services.managers.count_sessions_to_end(bert.user.id, Resource.INSTANCE) == 0, (
                "who holds a role already loses nothing"
            )

    def test_check_names_role_holder_without_sign_in_method(self, isolated_world: World) -> None:
        user = isolated_world.make_human_user()
        isolated_world.assign_manager_role(user, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
        assert user.user_name in (isolated_world.identity.system_checks.policies() or "")


def test_organization_limits_spare_correct_password_of_holder(
    world: World, organization: Organization, ada: LoginUser, bert: LoginUser
) -> None:
    ruled(world, organization.id, free_attempts=1, most_attempts=5)

    def tried(login_name: str, password: str) -> str:
        browser = Browser(world)
        browser.open("/login")
        browser.submit({"login_name": login_name})
        return browser.submit({"password": password}).text

    nobody = f"nobody@{organization.primary_domain}"
    for person in (ada.login_name, bert.login_name, nobody):
        assert "is wrong" in tried(person, "wrong")
    limited = {person: "Too many" in tried(person, "wrong") for person in (ada.login_name, bert.login_name, nobody)}
    assert limited == dict.fromkeys(limited, True), "all are told to wait"
    assert "Too many" in tried(bert.login_name, PASSWORD)
    assert signs_in(world, ada)


def test_instance_limit_applies_to_correct_password_of_holder(
    world: World, organization: Organization, ada: LoginUser
) -> None:
    ruled(world, organization.id, free_attempts=1)
    with world.transaction_services() as services:
        assert services.passwords.begin_attempt(LoginName.parse(ada.login_name), {}).reservation.error is None
    for _ in range(4):
        with world.transaction_services() as services:
            trial = services.passwords.begin_attempt(LoginName.parse(ada.login_name), {})
            assert trial.reservation.error is not None
            assert trial.subject is not None
    with pytest.raises(TooManyAttempts), world.transaction_services() as services:
        services.passwords.begin_attempt(LoginName.parse(ada.login_name), {})


CHANGES: dict[str, Callable[[Any, Subject, Principal], object]] = {
    "name": lambda services, ada, principal: services.users.change(
        ada.user.id, ChangeHumanUser(user_name="eve"), principal=principal
    ),
    "address": lambda services, ada, principal: services.users.change(
        ada.user.id, ChangeHumanUser(email="e@e.example"), principal=principal
    ),
    "state": lambda services, ada, principal: services.users.deactivate(ada.user.id, principal=principal),
    "password": lambda services, ada, principal: services.users.set_one_time_password(ada.user.id, principal=principal),
    "link": lambda services, ada, principal: services.users.issue_password_link(ada.user.id, principal=principal),
    "factors": lambda services, ada, principal: services.users.reset_factors(ada.user.id, principal=principal),
    "sessions": lambda services, ada, principal: services.users.end_sessions(ada.user.id, principal=principal),
    "organization": lambda services, ada, principal: services.organizations.deactivate(
        ada.organization.id, principal=principal
    ),
    "domain": lambda services, ada, principal: services.organizations.change(
        ada.organization.id,
        ChangeOrganization(primary_domain=f"eve.{ada.organization.primary_domain}"),
        principal=principal,
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_organization_owner_cannot_change_holder(
    world: World, organization: Organization, ada: LoginUser, change: str
) -> None:
    caller = make_owner(world, organization)
    with pytest.raises(Denied), world.transaction_services() as services:
        CHANGES[change](services, subject_of(world, ada.user), caller)


@pytest.mark.parametrize("change", sorted(CHANGES.keys() - {"domain", "organization"}))
def test_foreign_organization_role_does_not_restrict_home_managers(
    world: World, organization: Organization, bert: LoginUser, change: str
) -> None:
    other_organization = world.make_organization()
    world.assign_manager_role(bert.user, "ORG_OWNER", resource=Resource.of_organization(other_organization.id))
    caller = make_owner(world, organization, "ORG_USER_MANAGER")
    with world.transaction_services() as services:
        CHANGES[change](services, subject_of(world, bert.user), caller)


@pytest.mark.parametrize(
    "permission",
    [
        *("organization_policy.write", "organization_domain.write", "upstream_provider.write"),
        *("upstream_provider.delete", "webhook.write", "webhook.delete"),
    ],
)
def test_instance_organization_sign_in_is_managed_by_instance(world: World, permission: str) -> None:
    with world.read_only_services() as services:
        instance = services.find_instance()
        assert instance is not None
        organization = services.organizations.get(instance.organization_id)
    caller = make_owner(world, organization)
    boss = world.make_human_user(organization)
    world.assign_manager_role(boss, "IAM_OWNER", resource=Resource.INSTANCE)
    with world.read_only_services() as services:
        assert not services.access_control.is_permitted(caller, permission, Resource.of_organization(organization.id))
        assert services.access_control.is_permitted(
            caller, "organization.write", Resource.of_organization(organization.id)
        )
        assert services.access_control.is_permitted(
            principal(world, boss), permission, Resource.of_organization(organization.id)
        )


def test_instance_managed_providers_need_instance_manager(world: World, organization: Organization) -> None:
    provider = world.make_upstream_provider(organization)
    caller = make_owner(world, organization)
    with world.transaction_services() as services:
        services.upstream_providers.change(provider.id, ChangeUpstreamProvider.build(name="Mine"), principal=caller)
    with pytest.raises(Denied), world.transaction_services() as services:
        services.upstream_providers.change(
            provider.id, ChangeUpstreamProvider.build(instance_managed=True), principal=caller
        )
    with world.transaction_services() as services:
        mark = ChangeUpstreamProvider.build(instance_managed=True)
        services.upstream_providers.change(provider.id, mark, principal=Principal.OPERATOR)
    for act in (
        lambda services: services.upstream_providers.change(
            provider.id, ChangeUpstreamProvider.build(name="X"), principal=caller
        ),
        lambda services: services.upstream_providers.change(
            provider.id, ChangeUpstreamProvider.build(instance_managed=False), principal=caller
        ),
        lambda services: services.upstream_providers.deactivate(provider.id, principal=caller),
        lambda services: services.upstream_providers.remove(provider.id, principal=caller),
    ):
        with pytest.raises(Denied), world.transaction_services() as services:
            act(services)


@pytest.mark.parametrize("member", ["instance_managed", "everywhere"])
def test_organization_with_instance_provider_is_not_deleted_by_others(
    world: World, organization: Organization, member: str
) -> None:
    provider = world.make_upstream_provider(organization)
    with world.transaction_services() as services:
        marked = ChangeUpstreamProvider.build(**{member: True})
        services.upstream_providers.change(provider.id, marked, principal=Principal.OPERATOR)
    manager = world.make_human_user()
    world.assign_manager_role(manager, "IAM_ORG_MANAGER", resource=Resource.INSTANCE)
    for caller in (make_owner(world, organization), principal(world, manager)):
        with pytest.raises(Denied), world.transaction_services() as services:
            services.organizations.remove(organization.id, principal=caller)
    with world.transaction_services() as services:
        assert services.upstream_providers.find(provider.id) is not None
        services.organizations.remove(organization.id, principal=Principal.OPERATOR)


def test_password_reset_of_holder_needs_verified_email(
    world: World, organization: Organization, ada: LoginUser, bert: LoginUser
) -> None:
    for person in (ada, bert):
        with world.transaction_services() as services:
            services.users.change(
                person.user.id, ChangeHumanUser(email="eve@evil.example"), principal=Principal.OPERATOR
            )
    with world.transaction_services() as services:
        assert services.passwords.request_reset_link(bert.login_name)[0] is not None
        assert services.passwords.request_reset_link(ada.login_name)[0] is None


def test_last_owner_is_kept_with_any_factor(isolated_world: World) -> None:
    with isolated_world.read_only_services() as services:
        owners = [
            manager
            for manager in services.managers.page(Resource.INSTANCE, principal=Principal.OPERATOR)
            if "IAM_OWNER" in manager.roles
        ]
    for manager in owners[1:]:
        with isolated_world.transaction_services() as services:
            services.managers.remove(manager.id, principal=Principal.OPERATOR)
    with pytest.raises(Conflict), isolated_world.transaction_services() as services:
        services.managers.remove(owners[0].id, principal=Principal.OPERATOR)


def test_policy_page_previews_ended_sessions(world: World, organization: Organization) -> None:
    people = [LoginUser(world, organization) for _ in range(2)]
    manager = LoginUser(world, organization)
    world.assign_manager_role(manager.user, "ORG_OWNER")
    browsers = [Browser(world) for _ in (*people, manager)]
    for browser, person in zip(browsers, (*people, manager), strict=True):
        browser.start_session(person.user)
    page = f"/console/organizations/{organization.id}/policy/edit"
    browsers[-1].open(page)
    text = browsers[-1].submit({"second_factor": "required"}, form="page-form").text
    assert "These rules end 3 sessions. Your own session is among them. Save again to confirm." in text
    with world.read_only_services() as services:
        assert services.policies.organization_policy(organization.id).second_factor is not SecondFactorRule.REQUIRED
    browsers[-1].submit(form="page-form")
    with world.read_only_services() as services:
        assert services.policies.organization_policy(organization.id).second_factor is SecondFactorRule.REQUIRED


def test_ended_sessions_are_counted_in_constant_queries(isolated_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    organization = isolated_world.make_organization()
    people = [LoginUser(isolated_world, organization) for _ in range(3)]
    isolated_world.assign_manager_role(people[0].user, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    for person in people:
        Browser(isolated_world).start_session(person.user)
    statements: list[str] = []
    with isolated_world.read_only_services() as services:
        store = type(services.storage.managers)
        of_user = store.list_for_user

        def counted(self: Any, user_id: str) -> Any:
            statements.append(user_id)
            return of_user(self, user_id)

        monkeypatch.setattr(store, "list_for_user", counted)
        policy = services.policies.amend_policy(organization.id, ChangePolicy.build(session_max_age=300))
        isolated_world.clock.advance(minutes=10)
    with isolated_world.read_only_services() as services:
        assert services.sessions.count_ended_by_policy(organization.id, policy).sessions == 2, (
            "a holder keeps the instance's"
        )
    assert statements == []


@pytest.mark.thorough
def test_policy_effect_counts_ended_sessions(isolated_world: World) -> None:
    organization = isolated_world.make_organization()
    Browser(isolated_world).start_session(LoginUser(isolated_world, organization).user)
    api = ApiClient.for_user(isolated_world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    for at in ("/instance", f"/organizations/{organization.id}"):
        effect = api.ask("POST", f"{at}/policy/effect", {"second_factor": "required"}).json
        assert effect == {"sessions": 1, "more": False, "own": False}
        assert api.ask("POST", f"{at}/policy/effect", {"second_factor": "offered"}).json["sessions"] == 0
    assert api.get(f"/organizations/{organization.id}/policy")["own"]["second_factor"] is None


def test_policy_page_shows_instance_rules(isolated_world: World) -> None:
    organization = isolated_world.make_organization()
    ruled(isolated_world, organization.id, factors=("passkeys",))
    ruled(isolated_world, OF_INSTANCE, factors=("password",))
    browser = Browser(isolated_world)
    user = isolated_world.make_human_user(organization)
    isolated_world.assign_manager_role(user, "ORG_OWNER")
    browser.start_session(user)
    page = browser.open(f"/console/organizations/{organization.id}/policy")
    assert "those of this organization leave no sign-in method" in page
    assert organization.name in (isolated_world.identity.system_checks.policies() or "")


def test_role_page_warns_of_trust_and_ended_sessions(world: World, bert: LoginUser) -> None:
    boss = LoginUser(world)
    world.assign_manager_role(boss.user, "IAM_OWNER", resource=Resource.INSTANCE)
    browser = Browser(world)
    browser.start_session(boss.user)
    Browser(world).start_session(bert.user)
    other_organization = world.make_organization()
    page = browser.open(f"/console/organizations/{other_organization.id}/managers/new?user_id={bert.user.id}")
    assert (
        "whose managers can rename, reset or deactivate this account. Granting a role here means trusting them." in page
    )
    assert "session of this user ends" not in page
    page = browser.open(f"/console/instance/managers/new?user_id={bert.user.id}")
    assert "1 session of this user ends." in page
    assert "sign in only with methods that the instance allows" in page
    for box in browser.find_form("page-form").fields["role"]:
        box.checked = box._value == "IAM_OWNER_VIEWER"
    browser.submit(form="page-form")
    with world.read_only_services() as services:
        assert services.instance_managers.is_instance_manager(bert.user.id)


def test_settings_manager_changes_name_only(world: World, organization: Organization) -> None:
    caller = make_owner(world, organization, "ORG_SETTINGS_MANAGER")
    with world.transaction_services() as services:
        services.organizations.change(organization.id, ChangeOrganization.build(name="Renamed"), principal=caller)
    domain = f"mine.{organization.primary_domain}"
    for members in ({"registration": not organization.registration}, {"primary_domain": domain}):
        with pytest.raises(Denied), world.transaction_services() as services:
            services.organizations.change(organization.id, ChangeOrganization.build(**members), principal=caller)
    browser = Browser(world)
    assert caller.subject is not None
    browser.start_session(caller.subject.user)
    page = browser.open(f"/console/organizations/{organization.id}/edit")
    assert 'name="name"' in page
    assert 'name="registration"' not in page
    assert 'name="primary_domain"' not in page
