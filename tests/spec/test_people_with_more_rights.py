"""Security 20.3: no organization decides over the sign-in of people who hold a role at the instance."""

from collections.abc import Callable
from typing import Any

import pytest

from identity.domain.errors import Conflict, Denied, Invalid
from identity.domain.login_names import LoginName
from identity.domain.organizations import Organization
from identity.domain.permissions import INSTANCE, organization_resource
from identity.domain.policies import SecondFactor
from identity.domain.users import HumanUser, Subject
from identity.services.access import THE_OPERATOR, Principal
from identity.services.attempts import TooManyAttempts
from identity.services.commands.managers import AddManager
from identity.services.commands.organizations import ChangeOrganization
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.upstream_providers import ChangeUpstreamProvider
from identity.services.commands.users import ChangeHumanUser
from identity.services.policies import INSTANCE as OF_INSTANCE
from identity.testing.browser import PASSWORD, Browser
from identity.testing.world import World
from tests.plugins.login.conftest import Person
from tests.plugins.management.estate import Api


@pytest.fixture
def organization(world: World) -> Organization:
    return world.an_organization()


@pytest.fixture
def ada(world: World, organization: Organization) -> Person:
    """Lives in the organization, and holds a role at the instance."""
    person = Person(world, organization)
    world.make_manager(person.user, "IAM_OWNER_VIEWER", resource=INSTANCE)
    return person


@pytest.fixture
def bert(world: World, organization: Organization) -> Person:
    """Lives there too, and holds none."""
    return Person(world, organization)


def ruled(world: World, owner: str, **rules: Any) -> None:
    with world.transaction() as services:
        services.policies.change(owner, ChangePolicy.of(**rules))


def subject_of(world: World, user: HumanUser) -> Subject:
    with world.reading() as services:
        found = services.storage.users.find_subject(user.id)
    assert found is not None
    return found


def principal(world: World, user: HumanUser) -> Principal:
    with world.reading() as services:
        return services.access.principal(subject_of(world, user))


def an_owner(world: World, organization: Organization, role: str = "ORG_OWNER") -> Principal:
    user = world.a_person(organization)
    world.make_manager(user, role)
    return principal(world, user)


def signs_in(world: World, person: Person) -> bool:
    browser = Browser(world)
    browser.open("/login")
    browser.sign_in(person.login_name)
    return bool(browser.session_cookies) and browser.path.startswith(("/account", "/console"))


def test_factors_of_an_organization_do_not_shut_out_a_holder(
    world: World, organization: Organization, ada: Person, bert: Person
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
def test_holders_live_by_rules_of_the_instance(
    world: World, organization: Organization, ada: Person, bert: Person, rule: str, value: Any
) -> None:
    ruled(world, organization.id, **{rule: value})
    with world.reading() as services:
        above = services.policies.of_instance()
        assert getattr(services.policies.of_subject(subject_of(world, ada.user)), rule) == getattr(above, rule)
        of_bert = services.policies.of_subject(subject_of(world, bert.user))
        assert of_bert == services.policies.of(organization.id)


def test_holders_get_second_factor_and_consent_of_their_organization(
    world: World, organization: Organization, ada: Person
) -> None:
    ruled(world, organization.id, second_factor="required", consent="always", factors=("password", "totp"))
    with world.reading() as services:
        held = services.policies.of_subject(subject_of(world, ada.user))
    assert (held.second_factor, held.consent, held.factors) == (SecondFactor.REQUIRED, "always", None)


def test_second_factor_that_the_instance_does_not_allow_is_not_asked_of_a_holder(
    own_world: World,
) -> None:
    organization = own_world.an_organization()
    ada = Person(own_world, organization)
    own_world.make_manager(ada.user, "IAM_OWNER_VIEWER", resource=INSTANCE)
    ruled(own_world, organization.id, second_factor="required")
    ruled(own_world, OF_INSTANCE, factors=("password",))
    assert signs_in(own_world, ada)


def test_second_factor_that_a_provider_alone_could_tell_of_is_not_asked_of_a_holder(own_world: World) -> None:
    """Managers of the organization could remove it, and a holder cannot sign in there."""
    organization = own_world.an_organization()
    provider = own_world.an_upstream_provider(organization)
    with own_world.transaction() as services:
        trusted = ChangeUpstreamProvider.of(trust_methods=True)
        services.upstream_providers.change(provider.id, trusted, by=THE_OPERATOR)
    ada, bert = Person(own_world, organization), Person(own_world, organization)
    own_world.make_manager(ada.user, "IAM_OWNER_VIEWER", resource=INSTANCE)
    ruled(own_world, OF_INSTANCE, factors=("password", "upstream"))
    ruled(own_world, organization.id, second_factor="required")
    assert not signs_in(own_world, bert)
    assert signs_in(own_world, ada)


@pytest.mark.parametrize("level", ["instance", "organization"])
def test_rules_that_nobody_can_meet_are_refused(own_world: World, level: str) -> None:
    """No mail server is set, so codes by mail are no way."""
    owner = OF_INSTANCE if level == "instance" else own_world.an_organization().id
    for rules in (
        {"factors": ("totp",)},
        {"factors": ("recovery_codes", "totp")},
        {"second_factor": "required", "factors": ("password",)},
        {"second_factor": "required", "factors": ("password", "recovery_codes")},
        {"second_factor": "required_for_iam", "factors": ("password",)},
        {"second_factor": "required", "factors": ("upstream",)},
        {"second_factor": "required", "factors": ("password", "email_code")},
    ):
        with pytest.raises(Invalid) as refused, own_world.transaction() as services:
            services.policies.change(owner, ChangePolicy.of(**rules))
        assert refused.value.fields == {
            "factors": "Nobody could sign in by these rules. Leave a way that this service offers, and a second factor"
            " if one is needed."
        }
    ruled(own_world, OF_INSTANCE, second_factor="off")
    with pytest.raises(Invalid), own_world.transaction() as services:
        services.policies.change(owner, ChangePolicy.of(factors=("passkeys",)))


class TestRoleAtTheInstance:
    def give(self, world: World, user: HumanUser) -> None:
        with world.transaction() as services:
            command = AddManager(user_id=user.id, roles=frozenset({"IAM_OWNER_VIEWER"}))
            services.managers.add(INSTANCE, command, by=THE_OPERATOR)

    def test_is_refused_to_who_has_no_way_to_sign_in(self, world: World, organization: Organization) -> None:
        user = world.a_person(organization)
        with pytest.raises(Invalid) as refused:
            self.give(world, user)
        assert "no way to sign in" in refused.value.fields["roles"]

    def test_is_refused_while_somebody_else_knows_the_password(self, world: World, bert: Person) -> None:
        with world.transaction() as services:
            services.users.one_time_password(bert.user.id, by=THE_OPERATOR)
        with pytest.raises(Invalid) as refused:
            self.give(world, bert.user)
        assert "Somebody else knows the password" in refused.value.fields["roles"]

    def test_ends_sessions_and_links_of_before(self, world: World, bert: Person) -> None:
        browser = Browser(world)
        browser.start_session(bert.user)
        with world.transaction() as services:
            link = services.users.new_password_link(bert.user.id, by=THE_OPERATOR)
            assert services.managers.ends(bert.user.id, INSTANCE) == 1
        self.give(world, bert.user)
        browser.open("/account")
        assert browser.path.startswith("/login/")
        assert Browser(world).open(link).status_int >= 400
        with world.reading() as services:
            assert services.managers.ends(bert.user.id, INSTANCE) == 0, "who holds a role already loses nothing"

    def test_of_who_could_not_sign_in_is_named_by_the_check(self, own_world: World) -> None:
        user = own_world.a_person()
        own_world.make_manager(user, "IAM_OWNER_VIEWER", resource=INSTANCE)
        assert user.user_name in (own_world.identity.checks.policies() or "")


def test_limits_of_an_organization_hold_for_all_but_the_right_password_of_a_holder(
    world: World, organization: Organization, ada: Person, bert: Person
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
    shown = {person: "Too many" in tried(person, "wrong") for person in (ada.login_name, bert.login_name, nobody)}
    assert shown == dict.fromkeys(shown, True), "all are told to wait"
    assert "Too many" in tried(bert.login_name, PASSWORD)
    assert signs_in(world, ada)


def test_right_password_of_a_holder_counts_no_longer_past_the_limit_of_the_instance(
    world: World, organization: Organization, ada: Person
) -> None:
    ruled(world, organization.id, free_attempts=1)
    with world.transaction() as services:
        assert services.passwords.reserve(LoginName.of(ada.login_name), {}).reservation.refusal is None
    for _ in range(4):
        with world.transaction() as services:
            trial = services.passwords.reserve(LoginName.of(ada.login_name), {})
            assert trial.reservation.refusal is not None
            assert trial.subject is not None
    with pytest.raises(TooManyAttempts), world.transaction() as services:
        services.passwords.reserve(LoginName.of(ada.login_name), {})


CHANGES: dict[str, Callable[[Any, Subject, Principal], object]] = {
    "name": lambda services, ada, by: services.users.change(ada.user.id, ChangeHumanUser(user_name="eve"), by=by),
    "address": lambda services, ada, by: services.users.change(
        ada.user.id, ChangeHumanUser(email="e@e.example"), by=by
    ),
    "state": lambda services, ada, by: services.users.deactivate(ada.user.id, by=by),
    "password": lambda services, ada, by: services.users.one_time_password(ada.user.id, by=by),
    "link": lambda services, ada, by: services.users.new_password_link(ada.user.id, by=by),
    "factors": lambda services, ada, by: services.users.reset_factors(ada.user.id, by=by),
    "sessions": lambda services, ada, by: services.users.end_sessions(ada.user.id, by=by),
    "organization": lambda services, ada, by: services.organizations.deactivate(ada.organization.id, by=by),
    "domain": lambda services, ada, by: services.organizations.change(
        ada.organization.id, ChangeOrganization(primary_domain=f"eve.{ada.organization.primary_domain}"), by=by
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_owner_of_the_organization_changes_nothing_of_a_holder(
    world: World, organization: Organization, ada: Person, change: str
) -> None:
    by = an_owner(world, organization)
    with pytest.raises(Denied), world.transaction() as services:
        CHANGES[change](services, subject_of(world, ada.user), by)


@pytest.mark.parametrize("change", sorted(CHANGES.keys() - {"domain", "organization"}))
def test_role_in_another_organization_keeps_its_home_from_nothing(
    world: World, organization: Organization, bert: Person, change: str
) -> None:
    elsewhere = world.an_organization()
    world.make_manager(bert.user, "ORG_OWNER", resource=organization_resource(elsewhere.id))
    by = an_owner(world, organization, "ORG_USER_MANAGER")
    with world.transaction() as services:
        CHANGES[change](services, subject_of(world, bert.user), by)


@pytest.mark.parametrize(
    "permission",
    ["organization_policy.write", "organization_domain.write", "upstream_provider.write", "upstream_provider.delete"],
)
def test_own_organization_of_the_instance_leaves_sign_in_to_who_manages_that(world: World, permission: str) -> None:
    with world.reading() as services:
        instance = services.instance()
        assert instance is not None
        own = services.organizations.get(instance.organization_id)
    by = an_owner(world, own)
    boss = world.a_person(own)
    world.make_manager(boss, "IAM_OWNER", resource=INSTANCE)
    with world.reading() as services:
        assert not services.access.may(by, permission, organization_resource(own.id))
        assert services.access.may(by, "organization.write", organization_resource(own.id))
        assert services.access.may(principal(world, boss), permission, organization_resource(own.id))


def test_instance_managed_providers_are_changed_by_the_instance_alone(world: World, organization: Organization) -> None:
    provider = world.an_upstream_provider(organization)
    by = an_owner(world, organization)
    with world.transaction() as services:
        services.upstream_providers.change(provider.id, ChangeUpstreamProvider.of(name="Mine"), by=by)
    with pytest.raises(Denied), world.transaction() as services:
        services.upstream_providers.change(provider.id, ChangeUpstreamProvider.of(instance_managed=True), by=by)
    with world.transaction() as services:
        mark = ChangeUpstreamProvider.of(instance_managed=True)
        services.upstream_providers.change(provider.id, mark, by=THE_OPERATOR)
    for act in (
        lambda services: services.upstream_providers.change(provider.id, ChangeUpstreamProvider.of(name="X"), by=by),
        lambda services: services.upstream_providers.change(
            provider.id, ChangeUpstreamProvider.of(instance_managed=False), by=by
        ),
        lambda services: services.upstream_providers.deactivate(provider.id, by=by),
        lambda services: services.upstream_providers.remove(provider.id, by=by),
    ):
        with pytest.raises(Denied), world.transaction() as services:
            act(services)


@pytest.mark.parametrize("member", ["instance_managed", "everywhere"])
def test_providers_of_the_instance_go_with_no_organization_that_others_remove(
    world: World, organization: Organization, member: str
) -> None:
    provider = world.an_upstream_provider(organization)
    with world.transaction() as services:
        marked = ChangeUpstreamProvider.of(**{member: True})
        services.upstream_providers.change(provider.id, marked, by=THE_OPERATOR)
    manager = world.a_person()
    world.make_manager(manager, "IAM_ORG_MANAGER", resource=INSTANCE)
    for by in (an_owner(world, organization), principal(world, manager)):
        with pytest.raises(Denied), world.transaction() as services:
            services.organizations.remove(organization.id, by=by)
    with world.transaction() as services:
        assert services.upstream_providers.find(provider.id) is not None
        services.organizations.remove(organization.id, by=THE_OPERATOR)


def test_forgotten_password_of_a_holder_is_mailed_to_a_proven_address_alone(
    world: World, organization: Organization, ada: Person, bert: Person
) -> None:
    for person in (ada, bert):
        with world.transaction() as services:
            services.users.change(person.user.id, ChangeHumanUser(email="eve@evil.example"), by=THE_OPERATOR)
    with world.transaction() as services:
        assert services.passwords.ask_for_link(bert.login_name)[0] is not None
        assert services.passwords.ask_for_link(ada.login_name)[0] is None


def test_last_owner_stays_whatever_they_could_sign_in_by(own_world: World) -> None:
    with own_world.reading() as services:
        owners = [one for one in services.managers.page(INSTANCE, by=THE_OPERATOR) if "IAM_OWNER" in one.roles]
    for one in owners[1:]:
        with own_world.transaction() as services:
            services.managers.remove(one.id, by=THE_OPERATOR)
    with pytest.raises(Conflict), own_world.transaction() as services:
        services.managers.remove(owners[0].id, by=THE_OPERATOR)


def test_policy_page_tells_how_many_sessions_end_before_it_ends_them(world: World, organization: Organization) -> None:
    people = [Person(world, organization) for _ in range(2)]
    manager = Person(world, organization)
    world.make_manager(manager.user, "ORG_OWNER")
    browsers = [Browser(world) for _ in (*people, manager)]
    for browser, person in zip(browsers, (*people, manager), strict=True):
        browser.start_session(person.user)
    page = f"/console/organizations/{organization.id}/policy/edit"
    browsers[-1].open(page)
    shown = browsers[-1].submit({"second_factor": "required"}, form="page-form").text
    assert "These rules end 3 sessions. Your own session is among them. Save again to confirm." in shown
    with world.reading() as services:
        assert services.policies.of(organization.id).second_factor is not SecondFactor.REQUIRED
    browsers[-1].submit(form="page-form")
    with world.reading() as services:
        assert services.policies.of(organization.id).second_factor is SecondFactor.REQUIRED


def test_sessions_that_end_are_counted_without_a_look_at_the_roles_of_each_person(
    own_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization = own_world.an_organization()
    people = [Person(own_world, organization) for _ in range(3)]
    own_world.make_manager(people[0].user, "IAM_OWNER_VIEWER", resource=INSTANCE)
    for person in people:
        Browser(own_world).start_session(person.user)
    asked: list[str] = []
    with own_world.reading() as services:
        store = type(services.storage.managers)
        of_user = store.of_user

        def counted(self: Any, user_id: str) -> Any:
            asked.append(user_id)
            return of_user(self, user_id)

        monkeypatch.setattr(store, "of_user", counted)
        policy = services.policies.amended(organization.id, ChangePolicy.of(session_max_age=300))
        own_world.clock.advance(minutes=10)
    with own_world.reading() as services:
        assert services.sessions.ended_by(organization.id, policy).sessions == 2, "a holder keeps the instance's"
    assert asked == []


def test_api_tells_how_many_sessions_a_change_of_rules_ends(own_world: World) -> None:
    organization = own_world.an_organization()
    Browser(own_world).start_session(Person(own_world, organization).user)
    api = Api.of(own_world.a_manager("IAM_OWNER", resource=INSTANCE))
    for at in ("/instance", f"/organizations/{organization.id}"):
        told = api.ask("POST", f"{at}/policy/effect", {"second_factor": "required"}).json
        assert told == {"sessions": 1, "more": False, "own": False}
        assert api.ask("POST", f"{at}/policy/effect", {"second_factor": "offered"}).json["sessions"] == 0
    assert api.get(f"/organizations/{organization.id}/policy")["own"]["second_factor"] is None


def test_page_of_the_policy_says_where_the_rules_of_the_instance_hold(own_world: World) -> None:
    organization = own_world.an_organization()
    ruled(own_world, organization.id, factors=("passkeys",))
    ruled(own_world, OF_INSTANCE, factors=("password",))
    browser = Browser(own_world)
    user = own_world.a_person(organization)
    own_world.make_manager(user, "ORG_OWNER")
    browser.start_session(user)
    page = browser.open(f"/console/organizations/{organization.id}/policy")
    assert "those of this organization leave no way to sign in" in page
    assert organization.name in (own_world.identity.checks.policies() or "")


def test_page_that_gives_a_role_says_whom_it_trusts_and_what_ends(world: World, bert: Person) -> None:
    boss = Person(world)
    world.make_manager(boss.user, "IAM_OWNER", resource=INSTANCE)
    browser = Browser(world)
    browser.start_session(boss.user)
    Browser(world).start_session(bert.user)
    elsewhere = world.an_organization()
    page = browser.open(f"/console/organizations/{elsewhere.id}/managers/new?user_id={bert.user.id}")
    assert "whose managers can rename, reset or deactivate this account. A role here trusts them." in page
    assert "session of this user ends" not in page
    page = browser.open(f"/console/instance/managers/new?user_id={bert.user.id}")
    assert "1 session of this user ends." in page
    assert "sign in only in ways that the instance allows" in page
    for box in browser.form("page-form").fields["role"]:
        box.checked = box._value == "IAM_OWNER_VIEWER"
    browser.submit(form="page-form")
    with world.reading() as services:
        assert services.holders.is_one(bert.user.id)


def test_settings_manager_changes_the_name_alone(world: World, organization: Organization) -> None:
    by = an_owner(world, organization, "ORG_SETTINGS_MANAGER")
    with world.transaction() as services:
        services.organizations.change(organization.id, ChangeOrganization.of(name="Renamed"), by=by)
    domain = f"mine.{organization.primary_domain}"
    for members in ({"registration": not organization.registration}, {"primary_domain": domain}):
        with pytest.raises(Denied), world.transaction() as services:
            services.organizations.change(organization.id, ChangeOrganization.of(**members), by=by)
    browser = Browser(world)
    assert by.subject is not None
    browser.start_session(by.subject.user)
    page = browser.open(f"/console/organizations/{organization.id}/edit")
    assert 'name="name"' in page
    assert 'name="registration"' not in page
    assert 'name="primary_domain"' not in page
