"""Resource indicators (RFC 8707): audiences by the addresses of APIs, at sign-ins and at the token endpoint."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from identity.domain.applications import ConsentRule
from identity.domain.errors import Invalid
from identity.domain.organizations import Organization
from identity.domain.projects import Project, resource_uri_error
from identity.plugins.token_exchange import ACCESS_TOKEN
from identity.services.access_control import Principal
from identity.services.commands.organizations import AddDomain
from identity.services.commands.projects import ChangeProject
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.service_test_client import TOKEN_EXCHANGE, Credentials
from identity.testing.world import BrowserSession, World
from tests.plugins.device_authorization.device import GRANT_TYPES, Device, decide, enter_code, signed_in_browser
from tests.spec.consent_scenario import ConsentScenario

pytestmark = pytest.mark.storages("memory", "sqlite")

ORDERS, INVOICES = "https://orders.example/api", "urn:example:invoices"


@pytest.fixture
def organization(world: World) -> Organization:
    return world.make_organization()


def declare(world: World, project: Project, *uris: str) -> None:
    with world.transaction_services() as services:
        command = ChangeProject.decode({"resource_uris": list(uris)})
        services.projects.change(project.id, command, principal=Principal.OPERATOR)


@pytest.fixture
def orders(world: World, organization: Organization) -> Project:
    project = world.make_project(organization)
    declare(world, project, ORDERS)
    return project


@pytest.fixture
def invoices(world: World, organization: Organization) -> Project:
    project = world.make_project(organization)
    declare(world, project, INVOICES)
    return project


@pytest.fixture
def page(world: World, organization: Organization) -> Credentials:
    return world.make_web_application(world.make_project(organization).id)


@pytest.fixture
def session(world: World, organization: Organization) -> BrowserSession:
    return world.make_browser_session(world.make_human_user(organization))


def audience(world: World, token: str, project: Project) -> list[str]:
    """As introspection returns it to an API of the project."""
    answer = world.client.introspect(token, world.make_application(project.id)).json
    return list(answer["aud"]) if answer["active"] else []


def request_token(world: World, client: Credentials, form: dict[str, str], *resources: str) -> Any:
    pairs = [*form.items(), *(("resource", item) for item in resources)]
    return world.client.request_token(pairs, {"Authorization": client.header})


def test_sign_in_limits_all_tokens_to_its_resources(
    world: World, page: Credentials, session: BrowserSession, orders: Project, invoices: Project
) -> None:
    code = world.make_code(page, session, scope="openid offline_access", resource=f"{ORDERS} {INVOICES}")
    form = {"grant_type": "authorization_code", **code.form()}
    tokens = check_token_response(request_token(world, page, form, INVOICES))
    assert audience(world, tokens["access_token"], invoices) == [invoices.id, INVOICES]
    assert audience(world, tokens["access_token"], orders) == []
    assert world.client.fetch_userinfo(tokens["access_token"]).status_int == 200

    def refresh(*resources: str) -> Any:
        form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
        answer = request_token(world, page, form, *resources)
        if answer.status_int == 200:
            tokens.update(answer.json)
        return answer

    check_token_response(refresh())
    assert audience(world, tokens["access_token"], orders) == [orders.id, ORDERS, invoices.id, INVOICES]
    check_oauth_error(refresh(f"urn:service:iam:org:project:id:{orders.id}"), "invalid_target")
    check_token_response(refresh(ORDERS, INVOICES))
    world.operator_services.projects.deactivate(invoices.id, principal=Principal.OPERATOR)
    assert audience(world, tokens["access_token"], orders) == [orders.id], "no URI of a lost project stays"
    check_oauth_error(refresh(INVOICES), "invalid_target")


def test_resource_needs_the_consent_that_its_scope_needs(world: World) -> None:
    """Otherwise an application that a manager trusts with a name could manage, without a page that says so."""
    scene, resource = ConsentScenario(world, may_manage=True), world.client.management_url
    world.assign_manager_role(scene.person, "ORG_OWNER")
    scene.agreed("openid offline_access")
    scene.refused("consent_required", "openid offline_access", prompt="none", resource=resource)
    authorization = scene.ask("openid offline_access", resource=resource)
    assert "everything on your behalf" in scene.browser.page.text
    scene.decide()
    tokens = scene.party.obtain_tokens(scene.browser.page, authorization)
    assert world.client.call_management_api("/me", tokens.access_token).status_int == 200
    check_token_response(scene.party.refresh(tokens.refresh_token))
    scene.silently("openid offline_access", resource=resource)
    scene.silently(f"openid {world.audience_scope()}")


def test_approval_of_a_device_is_the_consent_to_its_resources(
    world: World, organization: Organization, orders: Project
) -> None:
    application = world.make_public_application(
        world.make_project(organization).id,
        grant_types=GRANT_TYPES,
        response_types=frozenset(),
        consent=ConsentRule.ALWAYS,
    )
    browser = signed_in_browser(world, world.make_human_user(organization))
    for resources in ((), (ORDERS,)):
        device = Device(world, application)
        decide(browser, device.start(resources=resources))
        check_token_response(device.poll())


def test_request_may_repeat_the_parameter(
    world: World, page: Credentials, session: BrowserSession, orders: Project, invoices: Project
) -> None:
    path = session.authorize(page, resource=ORDERS).request.path_qs
    answer = world.client.get(f"{world.issuer}{path}&resource={INVOICES}", session.headers)
    members = parse_qs(urlsplit(answer.headers["Location"]).query)
    assert "code" in members, members
    repeated = world.client.get(f"{world.issuer}{path}&state=a&state=b", session.headers)
    assert "error=invalid_request" in repeated.headers["Location"]


def test_device_names_resources_that_limit_its_tokens(
    world: World, organization: Organization, orders: Project, invoices: Project
) -> None:
    application = world.make_public_application(
        world.make_project(organization).id, grant_types=GRANT_TYPES, response_types=frozenset()
    )
    device, browser = Device(world, application), signed_in_browser(world, world.make_human_user(organization))
    decide(browser, device.start("openid offline_access", (ORDERS, INVOICES)))
    check_oauth_error(device.poll(resource="https://unknown.example"), "invalid_target")
    tokens = check_token_response(device.poll(resource=ORDERS))
    assert audience(world, tokens["access_token"], orders) == [orders.id, ORDERS]
    assert audience(world, tokens["access_token"], invoices) == []
    tokens = check_token_response(world.refresh(tokens["refresh_token"], application))
    assert audience(world, tokens["access_token"], invoices) == [orders.id, ORDERS, invoices.id, INVOICES]


def test_device_gets_no_resource_that_its_person_cannot_reach(world: World, orders: Project) -> None:
    foreign = world.make_project()
    declare(world, foreign, "https://foreign.example")
    application = world.make_public_application(orders.id, grant_types=GRANT_TYPES, response_types=frozenset())
    device, browser = Device(world, application), signed_in_browser(world)
    page = enter_code(browser, device.start(resources=("https://foreign.example",)).answer["user_code"])
    assert page.html.find("button", {"value": "approve"}) is None
    browser.submit(button=("decision", "deny"))
    check_oauth_error(device.poll(), "access_denied")
    check_oauth_error(device.request(resources=[f"urn:x:{n}" for n in range(11)]), "invalid_target")


def test_resource_that_cannot_be_reached_is_refused_with_one_text(
    world: World, page: Credentials, session: BrowserSession, orders: Project
) -> None:
    foreign = world.make_project()
    declare(world, foreign, "https://foreign.example")
    texts = set()
    for resource in (
        *("https://foreign.example", "https://unknown.example", ORDERS + "/", "no uri"),
        f"urn:service:iam:org:project:id:{foreign.id}",
        "urn:service:iam:org:project:id:nothing",
        f"urn:service:iam:org:project:id:{world.instance.project_id}",
    ):
        answer = session.authorize(page, scope="openid", resource=resource)
        members = parse_qs(urlsplit(answer.headers["Location"]).query)
        assert members["error"] == ["invalid_target"], resource
        texts.add(members["error_description"][0])
    assert len(texts) == 1


def test_programs_name_resources_at_the_token_endpoint(
    world: World, organization: Organization, orders: Project
) -> None:
    client = world.make_application(world.make_project(organization).id, grant_types=frozenset({"client_credentials"}))
    named = f"urn:service:iam:org:project:id:{orders.id}"
    for resource in (ORDERS, named):
        answer = check_token_response(request_token(world, client, {"grant_type": "client_credentials"}, resource))
        assert audience(world, answer["access_token"], orders) == [orders.id, resource]
    robot = world.make_service_user_program(organization)
    form = {"grant_type": "client_credentials", "scope": "openid"}
    answer = request_token(world, world.make_service_user_secret(robot), form, ORDERS)
    assert audience(world, answer.json["access_token"], orders) == [orders.id, ORDERS]
    check_oauth_error(request_token(world, client, form, "https://unknown.example"), "invalid_target")
    check_oauth_error(request_token(world, client, form, *(f"urn:x:{n}" for n in range(11))), "invalid_target")


def test_exchange_reaches_only_resources_of_the_subject_token(
    world: World, organization: Organization, session: BrowserSession, orders: Project, invoices: Project
) -> None:
    page = world.make_web_application(orders.id)
    api = world.make_application(orders.id, grant_types=frozenset({TOKEN_EXCHANGE}))
    scope = f"openid {world.audience_scope(invoices.id)}"
    token = world.obtain_tokens(page, session, scope=scope)["access_token"]
    form = {"grant_type": TOKEN_EXCHANGE, "subject_token": token, "subject_token_type": ACCESS_TOKEN}
    answer = check_token_response(request_token(world, api, form, INVOICES))
    assert audience(world, answer["access_token"], invoices) == [invoices.id, INVOICES]
    narrow = world.obtain_tokens(page, session, scope="openid")["access_token"]
    check_oauth_error(request_token(world, api, form | {"subject_token": narrow}, INVOICES), "invalid_target")


def test_nobody_gets_tokens_for_an_address_in_a_domain_that_another_organization_verified(
    world: World, organization: Organization, orders: Project
) -> None:
    """They would be signed by the same issuer, for the same aud."""
    stranger = world.make_project()
    declare(world, stranger, ORDERS)
    foreign, local = (
        world.make_application(project.id, grant_types=frozenset({"client_credentials"}))
        for project in (stranger, orders)
    )
    form = {"grant_type": "client_credentials"}
    check_token_response(request_token(world, foreign, form, ORDERS))
    with world.transaction_services() as services:
        services.domains.add(organization.id, AddDomain(domain="orders.example"))
        services.domains.assert_domain(organization.id, "orders.example", principal=Principal.OPERATOR)
    check_oauth_error(request_token(world, foreign, form, ORDERS), "invalid_target")
    check_token_response(request_token(world, local, form, ORDERS))


def test_resource_uri_names_one_project_of_an_organization(
    world: World, organization: Organization, orders: Project
) -> None:
    project = world.make_project(organization)
    for uri in (
        ORDERS,
        "http://a.example",
        "https://a.example/#x",
        "https://a.example/ b",
        "mailto:a@b.example",
        "x" * 300,
    ):
        with pytest.raises(Invalid):
            declare(world, project, uri)
    declare(world, orders, INVOICES)
    declare(world, project, ORDERS)
    # Projects of different organizations may declare one address: the nearest counts.
    declare(world, world.make_project(), ORDERS)


def test_plain_http_is_for_loopback_hosts() -> None:
    assert resource_uri_error("http://127.0.0.1:8001/mcp") is None
    for uri in ("http://orders.example/", "http://127.0.0.1.example/", "http://localhost:1@orders.example/"):
        assert resource_uri_error(uri) is not None
