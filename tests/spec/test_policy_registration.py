"""Security 19.9: the instance can close registration or restrict it to email domains, overriding organizations and
pending registrations.
"""

from collections.abc import Callable

import pytest

from identity.domain.errors import Denied, Invalid
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.services.access_control import Principal
from identity.services.commands.organizations import ChangeOrganization
from identity.services.commands.policies import ChangePolicy
from identity.services.commands.users import RegisterUser
from identity.services.desired_state.apply import apply_desired_state, parse_desired_state
from identity.services.organization_transfer import OrganizationTransfer
from identity.services.policies import INSTANCE_OWNER_ID
from identity.testing.browser import PASSWORD, Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_api_error
from identity.testing.world import World
from tests.plugins.login.conftest import opened
from tests.plugins.management.api_fixture_data import ApiClient
from tests.spec.test_step_up import policy

pytestmark = pytest.mark.storages("memory")

ANN = {"user_name": "ann", "given_name": "Ann", "family_name": "Byron", "email": "ann@acme.example"}
CLOSED = "This organization does not let people create accounts."


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    return make_world()


@pytest.fixture
def mailing(make_world: WorldFactory) -> World:
    return make_world(**{"identity.smtp.host": "mail.example", "identity.smtp.sender": "no-reply@id.example"})


def party_of(world: World, organization: Organization) -> RelyingParty:
    return RelyingParty.register(world, project_id=world.make_project(organization).id)


def offered(world: World, party: RelyingParty) -> bool:
    """Whether the login page links to the form."""
    browser = Browser(world)
    opened(browser, party)
    return "Create an account" in browser.page.text


@pytest.mark.parametrize("owner", ["instance", "organization"])
def test_disabled_registration_is_closed_everywhere(world: World, owner: str) -> None:
    organization = world.make_organization()
    party, under_way = party_of(world, organization), Browser(world)
    opened(under_way, party, prompt="create")
    assert under_way.sign_in_step == "register"
    assert offered(world, party)
    policy(world, INSTANCE_OWNER_ID if owner == "instance" else organization.id, registration="off")
    assert not offered(world, party)
    browser = Browser(world)
    request = opened(browser, party, prompt="create")
    party.check_error_response(browser.page, request, "access_denied")
    under_way.submit({**ANN, "password": PASSWORD, "password_again": PASSWORD}, form="page-form")
    assert under_way.page.status_int == 403
    assert CLOSED in under_way.page.text
    with pytest.raises(Denied), world.transaction_services() as services:
        services.registration.register(organization, RegisterUser(**ANN), "hash")
    with world.read_only_services() as services:
        assert services.storage.users.find_by_name(organization.id, "ann") is None


Close = Callable[[World, Organization], None]

#: Changes that void a registration whose mail was sent.
ENDS: dict[str, Close] = {
    "instance": lambda world, organization: policy(world, INSTANCE_OWNER_ID, registration="off"),
    "organization": lambda world, organization: policy(world, organization.id, registration="off"),
    "although the domain is named": lambda world, organization: policy(
        world, organization.id, registration="off", registration_domains=("acme.example",)
    ),
    "no domain": lambda world, organization: policy(world, INSTANCE_OWNER_ID, registration="by_domain"),
    "domains that exclude each other": lambda world, organization: (
        policy(world, INSTANCE_OWNER_ID, registration_domains=("acme.example",)),
        policy(world, organization.id, registration_domains=("acme.example",)),
        policy(world, INSTANCE_OWNER_ID, registration_domains=("other.example",)),
    )[-1],
    "switch": lambda world, organization: world.operator_services.organizations.change(
        organization.id, ChangeOrganization.build(registration=False)
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_registration_link_is_void_after_closing(mailing: World, end: str) -> None:
    world, organization = mailing, mailing.make_organization()
    with world.transaction_services() as services:
        link = services.registration.begin(organization, RegisterUser(**ANN), "hash").link
    ENDS[end](world, organization)
    browser = Browser(world)
    browser.open(link)
    names = {name: ANN[name] for name in ("user_name", "given_name", "family_name")}
    browser.submit({**names, "password": PASSWORD, "password_again": PASSWORD}, form="page-form")
    assert browser.page.status_int == 403
    assert "Registration is closed" in browser.page.text
    with world.read_only_services() as services:
        assert services.storage.users.find_by_name(organization.id, "ann") is None


def test_registration_by_domain_needs_a_domain(mailing: World) -> None:
    world, organization = mailing, mailing.make_organization()
    party = party_of(world, organization)
    policy(world, INSTANCE_OWNER_ID, registration="by_domain")
    assert not offered(world, party)
    policy(world, organization.id, registration_domains=("acme.example",))
    assert offered(world, party)
    for email, welcome in (("ann@acme.example", True), ("ann@evil.example", False), ("", False)):
        with world.read_only_services() as services:
            assert services.registration.accepts_email(organization, email) is welcome, email
    with pytest.raises(Invalid), world.transaction_services() as services:
        services.registration.begin(organization, RegisterUser(**{**ANN, "email": "a@evil.example"}), "hash")


def test_policy_does_not_open_closed_organization(world: World) -> None:
    organization = world.make_organization()
    world.operator_services.organizations.change(organization.id, ChangeOrganization.build(registration=False))
    policy(world, INSTANCE_OWNER_ID, registration="allowed")
    assert not offered(world, party_of(world, organization))
    with world.read_only_services() as services:
        stored = services.organizations.get(organization.id)
        assert not services.registration.accepts_email(stored, "ann@acme.example")


def test_organization_can_only_close_registration(world: World) -> None:
    """In the API, state files and exports."""
    api = ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    organization = world.make_organization()
    path = f"/organizations/{organization.id}/policy"
    assert api.get(path)["effective"]["registration"] == "allowed"
    api.patch("/instance/policy", {"registration": "by_domain"})
    answer = api.ask("PATCH", path, {"registration": "allowed"})
    fields = check_api_error(answer, 422, "invalid")["fields"]
    assert fields == {"registration": "The instance does not allow this much."}
    described = {"id": organization.id, "name": organization.name, "policy": {"registration": "off"}}
    state = {"version": 1, "organizations": [described]}
    with world.transaction_services() as services:
        apply_desired_state(services, parse_desired_state(state), principal=Principal.OPERATOR)
    after = api.get(path)
    assert (after["own"]["registration"], after["effective"]["registration"]) == ("off", "off")
    assert {item["rule"]: item["source"] for item in after["sources"]}["registration"] == "organization"
    with world.read_only_services() as services:
        assert '"registration": "off"' in "".join(
            OrganizationTransfer(services).export_document(organization.id, principal=Principal.OPERATOR)
        )


# --- after a password reset -------------------------------------------------------------------------------------------


def after_sign_in(world: World, login_name: str, password: str) -> str | None:
    """The page after a sign-in with the password that a manager has set."""
    browser = Browser(world)
    browser.open("/account")
    browser.sign_in(login_name, password)
    return browser.sign_in_step


@pytest.mark.parametrize(("instance", "organization_rule"), [(None, None), (False, True), (False, None)])
def test_password_set_by_manager_is_changed_by_rule(
    world: World, instance: bool | None, organization_rule: bool | None
) -> None:
    api = ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    organization = world.make_organization()
    api.patch("/instance/policy", {"password_change_after_reset": instance})
    api.patch(f"/organizations/{organization.id}/policy", {"password_change_after_reset": organization_rule})
    stays = instance is False and organization_rule is None
    expected = None if stays else "password/change"
    person = world.make_human_user(organization)
    login_name = f"{person.user_name}@{organization.primary_domain}"
    password = api.post(f"/users/{person.id}/one-time-password", status=200)["one_time_password"]
    assert api.get(f"/users/{person.id}")["state"] == ("active" if stays else "must_change_password")
    assert after_sign_in(world, login_name, password) == expected
    assert after_sign_in(world, login_name, world.operator_services.users.recover(person.id)) == expected
    named = {"user_name": "new", "given_name": "Ada", "family_name": "Byron", "initial": "one_time_password"}
    initial = api.post(f"/organizations/{organization.id}/users", named)["initial"]["secret"]
    assert after_sign_in(world, f"new@{organization.primary_domain}", initial) == expected


def test_organization_cannot_keep_initial_password_against_instance(world: World) -> None:
    organization = world.make_organization()
    with pytest.raises(Invalid), world.transaction_services() as services:
        services.policies.change(organization.id, ChangePolicy.build(password_change_after_reset=False))


def test_reported_sign_in_requires_new_password(world: World) -> None:
    organization = world.make_organization()
    policy(world, INSTANCE_OWNER_ID, password_change_after_reset=False)
    person = world.make_human_user(organization)
    password = world.operator_services.users.recover(person.id)
    with world.transaction_services() as services:
        services.account_recovery.report_compromise(services.storage.users.find_subject(person.id))
    login_name = f"{person.user_name}@{organization.primary_domain}"
    assert after_sign_in(world, login_name, password) == "password/change"
