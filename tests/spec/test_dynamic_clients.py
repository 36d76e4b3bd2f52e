"""Applications that no manager created: they always ask for consent, act only for people, and get the scopes and
audiences that are open to them (security 18.2 and 19.1)."""

import json
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from itertools import product
from typing import Any

import pytest

from identity import hookimpl, plugin_host
from identity.domain.applications import ApplicationOrigin, ConsentRule
from identity.domain.errors import Conflict, Invalid
from identity.key_sets import KeySetUnavailable
from identity.plugins.token_exchange import ACCESS_TOKEN
from identity.provider.scope import ClaimsScope, Scope
from identity.services.access_control import Principal
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.projects import ChangeProject
from identity.services.commands.users import ChangeHumanUser
from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.relying_party import ReceivedTokens, RelyingParty
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.service_test_client import TOKEN_EXCHANGE
from identity.testing.world import World
from tests.house.plugin_fixtures import Plain
from tests.plugins.device_authorization.device import DEVICE_CODE, Device, decide, enter_code
from tests.plugins.test_pushed_authorization_requests import pushed_url
from tests.spec.consent_scenario import CONSENT, ConsentScenario
from tests.spec.shared_project_scenario import EVERY, GRANTED, OF_USER, SharedProjectScenario, TokenAccess

pytestmark = pytest.mark.storages("memory")  # the rules are in the services

RELATIONS = ("owner", "holder", "foreign")
#: The last ones share the rules of the first.
FLOWS = (
    *("code", "device", "exchange"),
    *(pytest.param(name, marks=pytest.mark.thorough) for name in ("refresh", "implicit", "pushed")),
)
GRANT_TYPES = ("authorization_code", "refresh_token", "client_credentials", DEVICE_CODE, TOKEN_EXCHANGE)


def register(world: World, project_id: str, **members: Any) -> RelyingParty:
    members = {"origin": ApplicationOrigin.REGISTRATION, "grant_types": GRANT_TYPES} | members
    return RelyingParty.register(world, project_id=project_id, **members)


def set_open(world: World, project_id: str, is_open: bool) -> None:
    with world.transaction_services() as services:
        command = ChangeProject.decode({"open_to_dynamic_clients": is_open})
        services.projects.change(project_id, command, principal=Principal.OPERATOR)


def sign_in(browser: Browser, party: RelyingParty, scope: str, flow: str) -> ReceivedTokens | str:
    """Tokens after a page that asks for consent; or the error."""
    request = party.new_request("id_token token" if flow == "implicit" else "code", f"{scope} offline_access")
    browser.open(pushed_url(party, request) if flow == "pushed" else request.url, initiator=party.origin)
    if browser.sign_in_step != CONSENT:
        return party.check_response(browser.page, request)["error"]
    browser.submit(button=("decision", "allow"))
    return party.obtain_tokens(browser.page, request)


def obtain(world: World, browser: Browser, party: RelyingParty, scope: str, flow: str) -> str:
    """An access token; or the error."""
    if flow == "device":
        device = Device(world, party.credentials).start(scope)
        enter_code(browser, device.answer["user_code"])
        if browser.page.text.count('value="approve"') == 0:
            return "invalid_scope"
        browser.submit(button=("decision", "approve"))
        return str(check_token_response(device.poll())["access_token"])
    tokens = sign_in(browser, party, scope, flow)
    if isinstance(tokens, str):
        return tokens
    if flow == "refresh":
        return str(check_token_response(party.refresh(tokens.refresh_token))["access_token"])
    if flow == "exchange":
        form = {"grant_type": TOKEN_EXCHANGE, "subject_token": tokens.access_token, "subject_token_type": ACCESS_TOKEN}
        return str(world.post_token_request(party.credentials, form).json["access_token"])
    return tokens.access_token


@pytest.mark.parametrize("flow", FLOWS)
def test_tokens_of_dynamic_client_are_limited_to_open_projects(world: World, flow: str) -> None:
    """Of any owner of the project that stores the client, also the shared project itself."""
    house, wrong = SharedProjectScenario(world), []
    for is_open, to_project in product((False, True), RELATIONS):
        set_open(world, house.shared.id, is_open)
        browser = Browser(world)
        browser.start_session(house.make_manager(to_project))
        right = {"owner": EVERY, "holder": GRANTED["user"], "foreign": None}[to_project] if is_open else None
        for relation in ("inside", "foreign"):
            project_id = house.shared.id if relation == "inside" else house.project_for(relation, None)
            party = register(world, project_id)
            for audiences in ("", "shared", "own"):
                got = obtain(world, browser, party, house.scope(audiences), flow)
                expects_shared = right is not None and (audiences == "shared" or relation == "inside")
                want: object = TokenAccess(
                    shared=expects_shared,
                    own_project=False,
                    manages=False,
                    roles=OF_USER & right if expects_shared and right is not None else frozenset(),
                    projects=frozenset({house.shared.id}) if expects_shared else frozenset(),
                )
                if audiences == "own" or (audiences == "shared" and right is None):
                    want = "invalid_scope"
                found = got if got == "invalid_scope" else house.opened(got, party.credentials)
                if found != want:
                    wrong.append((is_open, to_project, relation, audiences, found, want))
    assert wrong == []


def test_dynamic_client_asks_for_consent_every_time(world: World) -> None:
    """Also people of the organization that stores it; what they agreed to can be withdrawn."""
    scene = ConsentScenario(world, origin=ApplicationOrigin.REGISTRATION)
    scene.browser = Browser(world)
    scene.browser.start_session(world.make_human_user(scene.owner))
    scene.refused("consent_required", prompt="none")
    tokens = scene.agreed("openid email offline_access")
    scene.refused("consent_required", prompt="none")
    scene.refused("access_denied", decision="refuse")
    text = scene.browser.page.text if scene.ask() and scene.asks else ""
    assert "Nobody here has checked this application" in text
    assert scene.owner.name not in text
    scene.decide()
    check_token_response(scene.party.refresh(tokens.refresh_token))
    scene.disconnect()
    check_oauth_error(scene.party.refresh(tokens.refresh_token), "invalid_grant")


def test_dynamic_client_gets_only_scopes_open_to_it(world: World) -> None:
    scene = ConsentScenario(world, origin=ApplicationOrigin.REGISTRATION)
    attribute = world.make_attribute(scene.home, "floor", claim="floor", in_tokens=True)
    world.set_attributes(scene.person, **{attribute.key: "3"})
    claims = json.dumps({"userinfo": {"email": None, "floor": None}})
    closed = "urn:service:iam:user:resourceowner urn:service:iam:user:metadata"
    tokens = scene.agreed(f"openid {closed}", claims=claims)
    assert tokens.scope == ["openid"]
    assert set(scene.party.fetch_userinfo(tokens)) <= {"sub", "email", "email_verified"}


class ClosedScopePlugin(Plain):
    """A scope that is not open to dynamic clients, with a claim that all people have."""

    @hookimpl
    def identity_scopes(self) -> list[Scope]:
        return [ClaimsScope("payroll", frozenset({"salary"}))]

    @hookimpl
    def identity_user_claims(self, scopes: tuple[str, ...]) -> Mapping[str, object]:
        return {"salary": 100} if "payroll" in scopes else {}


def test_claims_parameter_gives_dynamic_client_no_claims_of_closed_scopes(
    make_world: WorldFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither beside a claim that is open to it, nor with the scope itself, nor after a refresh."""
    points = [*plugin_host.entry_points(group=plugin_host.ENTRY_POINT_GROUP)]
    points.append(EntryPoint("payroll", f"{__name__}:ClosedScopePlugin", plugin_host.ENTRY_POINT_GROUP))
    monkeypatch.setattr(plugin_host, "entry_points", lambda group: points)
    world = make_world(**{"identity.plugins": f"memory {DEFAULT_PLUGINS} payroll"})
    single = {name: {"essential": True} for name in ("email", "salary")}
    claims, received = json.dumps({"userinfo": single, "id_token": single}), {}
    origins = (ApplicationOrigin.MANAGER, ApplicationOrigin.REGISTRATION)
    for origin, scope in product(origins, ("openid", "openid payroll")):
        scene = ConsentScenario(world, origin=origin)
        world.operator_services.users.change(scene.person.id, ChangeHumanUser(email="ada@example.com"))
        tokens = scene.agreed(f"{scope} offline_access", claims=claims)
        renewed = check_token_response(scene.party.refresh(tokens.refresh_token))
        sources = (
            *(tokens.claims, decode_jwt_unverified(renewed["id_token"])[1]),
            *(world.client.fetch_userinfo(token).json for token in (tokens.access_token, renewed["access_token"])),
        )
        received[origin, scope] = {frozenset(source) & {"email", "salary"} for source in sources}
    assert received == {
        (origin, scope): {frozenset({"email", "salary"} if origin is ApplicationOrigin.MANAGER else {"email"})}
        for origin, scope in received
    }


def test_dynamic_client_acts_only_for_people(world: World) -> None:
    """Of its project it neither gets, checks nor exchanges the tokens."""
    organization = world.make_organization()
    project = world.make_project(organization)
    set_open(world, project.id, True)
    party = register(world, project.id)
    form = {"grant_type": "client_credentials", "scope": "openid"}
    check_oauth_error(world.post_token_request(party.credentials, form), "unauthorized_client")
    page = world.make_web_application(project.id)
    token = world.obtain_tokens(page, world.make_browser_session(world.make_human_user(organization)))["access_token"]
    assert world.client.introspect(token, world.make_application(project.id)).json["active"]
    assert world.client.introspect(token, party.credentials).json == {"active": False}
    form = {"grant_type": TOKEN_EXCHANGE, "subject_token": token, "subject_token_type": ACCESS_TOKEN}
    check_oauth_error(world.post_token_request(party.credentials, form), "invalid_request")


def test_closing_a_project_takes_it_from_live_tokens(world: World) -> None:
    house = SharedProjectScenario(world)
    set_open(world, house.shared.id, True)
    browser = Browser(world)
    browser.start_session(house.make_manager("owner"))
    party = register(world, house.shared.id)
    token = obtain(world, browser, party, house.scope("shared"), "code")
    assert house.opened(token, party.credentials).shared
    set_open(world, house.shared.id, False)
    access = house.opened(token, party.credentials)
    assert (access.shared, access.roles) == (False, frozenset())


def test_device_of_dynamic_client_names_no_organization(world: World) -> None:
    organization = world.make_organization(name="Harbour Bank")
    party, browser = register(world, world.make_project(organization).id), Browser(world)
    browser.start_session(world.make_human_user())
    device = Device(world, party.credentials).start()
    enter_code(browser, device.answer["user_code"])
    assert "Nobody here has checked this application" in browser.page.text
    assert "Harbour Bank" not in browser.page.text
    decide(browser, device)
    check_token_response(device.poll())


def test_what_dynamic_client_names_is_fetched_in_the_share_of_all_dynamic_clients(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anyone could register clients with slow hosts, and use up the share of the organization."""
    project, shares = world.make_project(), []

    def fetch(url: str, organization_id: str, form: object) -> None:
        shares.append(organization_id)
        raise KeySetUnavailable("slow")

    monkeypatch.setattr(world.identity.process_state.key_sets, "fetch", fetch)
    for origin in (ApplicationOrigin.REGISTRATION, ApplicationOrigin.MANAGER):
        party = register(
            world, project.id, origin=origin, authentication_method="private_key_jwt", jwks_uri="https://slow.example"
        )
        with world.read_only_services() as services:
            client = services.applications.find_client(party.client_id)
            assert client is not None
            with pytest.raises(KeySetUnavailable):
                services.assertions.find_client_key({"kid": "one", "alg": "RS256"}, client)
            with pytest.raises(KeySetUnavailable):
                services.assertions.has_client_key(client, lambda key: True)
    assert shares == ["", "", project.organization_id, project.organization_id]


def test_manager_cannot_make_a_dynamic_client_more(world: World) -> None:
    party, applications = register(world, world.make_project().id), world.operator_services.applications
    for members in ({"consent": ConsentRule.NEVER}, {"consent": ConsentRule.WHEN_FOREIGN}, {"may_manage": True}):
        with pytest.raises(Invalid):
            applications.change(party.client_id, ChangeApplication(**members), principal=Principal.OPERATOR)
    with pytest.raises(Conflict):
        register(world, world.instance.project_id)
