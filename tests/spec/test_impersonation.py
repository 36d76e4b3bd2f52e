"""Managers signed in as a person: who may, what such a session can do, what its tokens say, and how it ends."""

import re
from datetime import timedelta
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pytest
from pyramid.interfaces import IRoutesMapper

from identity.domain.audit import ActorKind, AuditEvent, AuditFilter
from identity.domain.authentication import ACR_VALUES
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.sessions import SignedInAccount
from identity.domain.users import HumanUser
from identity.plugin_host import ENTRY_POINT_GROUP
from identity.provider.context import Context
from identity.provider.endpoint import Endpoint, EndpointHost
from identity.provider.protocol_request import ProtocolRequest, ProtocolResponse
from identity.services.access_control import Principal
from identity.testing.browser import Browser
from identity.testing.fixtures import DEFAULT_PLUGINS, WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.house.plugin_fixtures import offering

pytestmark = pytest.mark.storages("memory")

REASON = "The order page shows an error to her"
ORIGIN = "https://id.example.com"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def organization(world: World) -> Organization:
    return world.make_organization()


@pytest.fixture
def ada(world: World, organization: Organization) -> HumanUser:
    """The person as whom managers sign in."""
    return world.make_human_user(organization)


@pytest.fixture
def manager(world: World, organization: Organization) -> HumanUser:
    person = world.make_human_user(organization)
    world.assign_manager_role(person, "ORG_OWNER")
    return person


@pytest.fixture
def browser(world: World, manager: HumanUser) -> Browser:
    """The browser of the manager, in their own session."""
    browser = Browser(world)
    browser.start_session(manager)
    return browser


def start(browser: Browser, person: HumanUser, reason: str = REASON) -> Any:
    browser.open(f"/console/users/{person.id}/impersonate")
    return browser.submit({"reason": reason}) if browser.page.status_int == 200 else browser.page


def banner(browser: Browser) -> str:
    found = browser.page.html.select_one(".impersonation p")
    return "" if found is None else " ".join(found.text.split())


def end(browser: Browser) -> Any:
    token = browser.page.html.select_one(".impersonation input[name=csrf_token]")["value"]
    return browser.post_form("/impersonation/end", {"csrf_token": token}, initiator=ORIGIN)


def events(world: World, person: HumanUser) -> list[AuditEvent]:
    with world.read_only_services() as services:
        return list(services.audit_trail.page(AuditFilter(object_id=person.id)).items)


def is_impersonating(browser: Browser, person: HumanUser) -> bool:
    """True if account pages show this person's account, with the banner."""
    browser.open("/account/profile")
    return browser.path == "/account/profile" and person.display_name in banner(browser)


def test_manager_sees_the_account_with_a_banner_and_returns(
    world: World, browser: Browser, manager: HumanUser, ada: HumanUser
) -> None:
    start(browser, ada)
    assert browser.path == "/account/profile"
    for path in ("/account/profile", "/account/activity", "/account/sessions", "/password/reset"):
        browser.open(path)
        assert manager.display_name in banner(browser)
        assert ada.display_name in banner(browser)
    end(browser)
    assert browser.path == f"/console/users/{ada.id}"
    assert not banner(browser)
    assert len(browser.session_cookies) == 1


def test_start_and_end_are_audited_with_reason_and_shown_to_the_person(
    world: World, browser: Browser, manager: HumanUser, ada: HumanUser
) -> None:
    start(browser, ada)
    end(browser)
    found = {event.event: event for event in events(world, ada)}
    started = found["user.impersonation_started"]
    assert started.detail["reason"] == REASON
    assert started.actor.id == found["user.impersonation_ended"].actor.id == manager.id
    ada_browser = Browser(world)
    ada_browser.start_session(ada)
    ada_browser.open("/account/activity")
    assert REASON in ada_browser.page.text


@pytest.mark.parametrize("reason", ["", " ", "x" * 201, "two\nlines"])
def test_reason_is_one_line_of_text(browser: Browser, ada: HumanUser, reason: str) -> None:
    start(browser, ada, reason)
    assert browser.page.status_int == 422
    assert not is_impersonating(browser, ada)


def test_start_requires_recent_sign_in(world: World, browser: Browser, ada: HumanUser) -> None:
    world.clock.advance(minutes=11)
    browser.open(f"/console/users/{ada.id}/impersonate")
    assert browser.sign_in_step is not None


@pytest.mark.parametrize("role", [None, "ORG_USER_MANAGER", "ORG_OWNER_VIEWER", "ORG_SETTINGS_MANAGER"])
def test_other_roles_do_not_hold_the_permission(
    world: World, organization: Organization, ada: HumanUser, role: str | None
) -> None:
    person, browser = world.make_human_user(organization), Browser(world)
    if role is not None:
        world.assign_manager_role(person, role)
    browser.start_session(person)
    assert start(browser, ada).status_int == 403


@pytest.mark.parametrize("role", [None, "ORG_USER_MANAGER", "ORG_OWNER"])
def test_service_requires_the_permission_whatever_a_route_requires(
    world: World, organization: Organization, ada: HumanUser, role: str | None
) -> None:
    person = world.make_human_user(organization)
    if role is not None:
        world.assign_manager_role(person, role)
    session = Browser(world).start_session(person)
    with world.read_only_services() as services:
        subject = services.storage.users.find_subject(person.id)
        assert subject is not None
        assert services.impersonations.can_start(ada.id, SignedInAccount(session, subject)) is (role == "ORG_OWNER")


def test_only_active_people_with_no_more_rights_can_be_impersonated(
    world: World, organization: Organization, browser: Browser, manager: HumanUser, ada: HumanUser
) -> None:
    above, inactive = world.make_human_user(organization), world.make_human_user(organization)
    world.assign_manager_role(above, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    with world.transaction_services() as services:
        services.users.deactivate(inactive.id, principal=Principal.OPERATOR)
    for person in (manager, above, inactive, world.make_human_user()):
        assert start(browser, person).status_int in (403, 404), person
        assert not banner(browser)


def test_session_ends_after_fifteen_minutes_whatever_happens_in_it(
    world: World, browser: Browser, manager: HumanUser, ada: HumanUser
) -> None:
    start(browser, ada)
    for _ in range(3):
        world.clock.advance(minutes=4)
        assert is_impersonating(browser, ada)
    record_expired = world.identity.background_jobs.record_expired_impersonations
    record_expired()
    world.clock.advance(minutes=3)
    assert not is_impersonating(browser, ada)
    for _ in range(2):
        record_expired()
    [event] = [event for event in events(world, ada) if event.event == "user.impersonation_ended"]
    assert event.actor.kind is ActorKind.SYSTEM
    assert manager.user_name in str(event.detail["impersonator"])


def lose_role(world: World, manager: HumanUser, ada: HumanUser) -> None:
    with world.transaction_services() as services:
        [entry] = services.storage.managers.list_for_user(manager.id)
        services.managers.remove(entry.id, principal=Principal.OPERATOR)


def deactivate_manager(world: World, manager: HumanUser, ada: HumanUser) -> None:
    with world.transaction_services() as services:
        services.users.deactivate(manager.id, principal=Principal.OPERATOR)


def deactivate_person(world: World, manager: HumanUser, ada: HumanUser) -> None:
    deactivate_manager(world, ada, manager)


def promote_person(world: World, manager: HumanUser, ada: HumanUser) -> None:
    world.assign_manager_role(ada, "IAM_OWNER_VIEWER", resource=Resource.INSTANCE)


def end_managers_sessions(world: World, manager: HumanUser, ada: HumanUser) -> None:
    with world.transaction_services() as services:
        services.sessions.end_all(services.storage.users.find_subject(manager.id))


def end_persons_sessions(world: World, manager: HumanUser, ada: HumanUser) -> None:
    end_managers_sessions(world, ada, manager)


def revoke_organization(world: World, manager: HumanUser, ada: HumanUser) -> None:
    with world.transaction_services() as services:
        services.access_revocations.revoke_organization(ada.organization_id, principal=Principal.OPERATOR)


CHANGES = (
    lose_role,
    deactivate_manager,
    deactivate_person,
    promote_person,
    end_managers_sessions,
    end_persons_sessions,
    revoke_organization,
)


@pytest.mark.parametrize("change", CHANGES)
def test_session_and_its_tokens_end_at_once_with_the_right_to_it(
    world: World, browser: Browser, manager: HumanUser, ada: HumanUser, change: Any
) -> None:
    party = RelyingParty.register(world)
    start(browser, ada)
    tokens = party.sign_in_silently(browser)
    with world.read_only_services() as services:
        assert services.tokens.find_live_access_token(tokens.access_token) is not None
    assert is_impersonating(browser, ada)
    change(world, manager, ada)
    assert not is_impersonating(browser, ada)
    assert [event.event for event in events(world, ada)].count("user.impersonation_ended") == 1
    with world.read_only_services() as services:
        assert services.tokens.find_live_access_token(tokens.access_token) is None


def test_tokens_name_the_manager_and_end_with_the_session(
    world: World, browser: Browser, manager: HumanUser, ada: HumanUser
) -> None:
    party = RelyingParty.register(world)
    start(browser, ada)
    world.clock.advance(minutes=5)
    tokens = party.sign_in_silently(browser, scope="openid offline_access profile")
    assert tokens.claims["sub"] == ada.id
    assert tokens.claims["act"] == {"sub": manager.id}
    assert "amr" not in tokens.claims
    assert "acr" not in tokens.claims
    assert tokens.claims["exp"] == int((world.clock() + 10 * MINUTE).timestamp())
    assert "refresh_token" not in tokens.members
    assert "offline_access" not in tokens.scope
    with world.read_only_services() as services:
        issued = services.tokens.find_live_access_token(tokens.access_token)
    assert issued is not None
    assert issued.token.actor_claim() == {"act": {"sub": manager.id}}
    assert issued.token.expires_at == world.clock() + 10 * MINUTE


@pytest.mark.parametrize(
    "parameters",
    [
        {"prompt": "login"},
        {"prompt": "consent"},
        {"prompt": "select_account"},
        {"prompt": "create"},
        {"max_age": "3600"},
        {"max_age": "0"},
        {"acr_values": "urn:identity:acr:2fa"},
        {"login_hint": "someone.else"},
    ],
)
def test_requests_that_need_the_person_are_refused(
    world: World, browser: Browser, ada: HumanUser, parameters: dict[str, str]
) -> None:
    if "acr_values" in parameters:
        parameters = {"acr_values": ACR_VALUES[-1]}
    party = RelyingParty.register(world)
    start(browser, ada)
    party.open_request(browser, **parameters)
    assert "error=" in (browser.external_redirect or ""), browser.page


def test_consent_cannot_be_given(world: World, browser: Browser, ada: HumanUser) -> None:
    party = RelyingParty.register(world, consent="always")
    start(browser, ada)
    party.open_request(browser)
    assert "error=access_denied" in (browser.external_redirect or ""), browser.page


def test_management_audience_is_refused(world: World, browser: Browser, ada: HumanUser) -> None:
    party = RelyingParty.register(world)
    start(browser, ada)
    party.open_request(browser, scope="openid urn:service:iam:org:project:id:service:aud")
    found = browser.external_redirect or ""
    assert "error=" in found, browser.page
    assert "code=" not in found


# --- every route ------------------------------------------------------------------------------------------------------

#: The only routes of pages that accept a form from an impersonated session.
OPEN_TO_FORMS = {"impersonation.end", "sign_out"}


def _routes(world: World) -> list[Any]:
    mapper = world.app.registry.getUtility(IRoutesMapper)
    return list(mapper.get_routes(include_static=False))


def _is_page(route: Any) -> bool:
    hosts = [predicate.value for predicate in route.predicates if type(predicate).__name__ == "HostPredicate"]
    bearer = any(getattr(predicate, "value", "") == "bearer" for predicate in route.predicates)
    return not route.name.startswith("protocol.") and not bearer and [str(host) for host in hosts] == ["login"]


def _path(pattern: str, ada: HumanUser) -> str:
    filled = pattern.replace("{user}", ada.id)
    return re.sub(r"\{[^}]*\}", "x", filled)


def test_every_route_refuses_what_writes(world: World, browser: Browser, ada: HumanUser) -> None:
    start(browser, ada)
    browser.open("/account/profile")
    token = browser.page.html.select_one(".impersonation input[name=csrf_token]")["value"]
    routes = [route for route in _routes(world) if _is_page(route)]
    assert len(routes) > 200
    accepted = set()
    for route in routes:
        if route.name in OPEN_TO_FORMS:
            continue
        page = browser.post_form(_path(route.pattern, ada), {"csrf_token": token}, initiator=ORIGIN)
        if page.status_int not in (403, 404, 405):
            accepted.add(route.name)
    assert not accepted
    assert is_impersonating(browser, ada)


#: What answers a GET in such a session: everything else is refused, or needs another credential.
OPEN_TO_READING = {
    # The account, as its person sees it.
    *("account", "account.activity", "account.activity.not-me", "account.agents", "account.applications"),
    *(
        "account.browsers",
        "account.data",
        "account.password",
        "account.profile",
        "account.security",
        "account.sessions",
        "home",
    ),
    # The account's profile instead, because these take a form.
    *("account.profile.email", "account.switch", "impersonation.end", "pages.theme"),
    # Leaving.
    *(
        "account.leaving",
        "sign_out",
        "signed_out",
        "signed_out.applications",
        "protocol.end_session",
        "protocol.end_session.resume",
    ),
    # Pages and documents that are the same for everyone.
    *("email.confirmed", "password.changed", "password.reset", "password.reset.sent", "healthz", "readyz"),
    *("management.browse", "management.openapi", "protocol.keys", "protocol.metadata"),
    "protocol.management.resource_metadata",
}
#: Whose link or request is the credential: none of these exists here.
LINKS = {"email.link", "login.again", "password.reset.link", "register.link"}
#: The authorization endpoint without parameters.
REFUSED_REQUESTS = {"protocol.authorize"}


def test_every_route_is_closed_but_for_those_that_show_the_account(
    world: World, browser: Browser, ada: HumanUser
) -> None:
    world.assign_manager_role(ada, "ORG_OWNER")
    start(browser, ada)
    statuses = {route.name: browser.open(_path(route.pattern, ada)).status_int for route in _routes(world)}
    assert len([name for name in statuses if name.startswith("console")]) > 100
    # The documentation may not be built; it is the same for everyone.
    opened = {name for name, status in statuses.items() if status == 200 and not name.startswith("documentation.")}
    assert opened == OPEN_TO_READING
    unread = {name: status for name, status in statuses.items() if status not in (200, 403, 404, 405)}
    # The management API and the other endpoints get no cookies.
    assert {name for name, status in unread.items() if status != 401} == LINKS | REFUSED_REQUESTS
    browser.open("/console")
    assert browser.page.status_int == 403
    assert ada.display_name in banner(browser)


def test_endpoints_of_plugins_are_closed_unless_they_allow_impersonators(
    make_world: WorldFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_users(request: ProtocolRequest, context: Context) -> ProtocolResponse:
        accounts = context.services.sessions.list_by_secrets(request.browser_state.sessions.values())
        return ProtocolResponse(200, " ".join(account.subject.user.id for account in accounts).encode())

    def count_cookies(request: ProtocolRequest, _context: Context) -> ProtocolResponse:
        return ProtocolResponse(200, str(len(request.browser_state.sessions)).encode())

    def endpoint(name: str, host: EndpointHost, **members: Any) -> Endpoint:
        usual = {"methods": ("GET",), "discovery_member": None, "writes": False, "handle": list_users}
        return Endpoint(name=name, path=f"/{name}", host=host, **usual | members)

    plugin = offering(
        "identity_endpoints",
        *(endpoint(f"who-{host}", host) for host in EndpointHost),
        endpoint("who-allowed", EndpointHost.LOGIN, allows_impersonators=True),
        endpoint("who-alone", EndpointHost.LOGIN, uses_storage=False, handle=count_cookies),
    )
    monkeypatch.setattr("tests.house.plugin_fixtures.Offered", plugin, raising=False)
    points = [*entry_points(group=ENTRY_POINT_GROUP)]
    points.append(EntryPoint("who", "tests.house.plugin_fixtures:Offered", ENTRY_POINT_GROUP))
    monkeypatch.setattr("identity.plugin_host.entry_points", lambda group: points)
    world = make_world(**{"identity.plugins": f"memory {DEFAULT_PLUGINS} who"})
    organization = world.make_organization()
    ada, manager, browser = world.make_human_user(organization), world.make_human_user(organization), Browser(world)
    world.assign_manager_role(manager, "ORG_OWNER")
    browser.start_session(manager)
    assert browser.open("/who-login").text == manager.id
    start(browser, ada)
    assert browser.open("/who-login").status_int == 403
    assert ada.display_name in browser.page.html.h1.text
    assert banner(browser)
    paths = ("/who-allowed", "/who-issuer", "/who-base", "/who-alone")
    assert [browser.open(path).text for path in paths] == [ada.id, "", "", "0"]
    browser.open("/account/profile")
    end(browser)
    assert browser.open("/who-login").text == manager.id


@pytest.mark.parametrize(
    "path",
    [
        "/account/factors/x/rename",
        "/account/factors/x/remove",
        "/account/data/delete",
        "/login?target=%2Faccount&fresh=yes",
    ],
)
def test_pages_for_a_recent_sign_in_are_closed(browser: Browser, ada: HumanUser, path: str) -> None:
    start(browser, ada)
    browser.open(path)
    assert browser.page.status_int == 403
    assert ada.display_name in browser.page.html.h1.text
    assert banner(browser)


def test_browser_of_the_manager_learns_no_passkeys_of_the_person(
    world: World, browser: Browser, ada: HumanUser
) -> None:
    person_browser = Browser(world)
    person_browser.start_session(ada)
    assert "data-passkey-account" in person_browser.open("/account/security")
    start(browser, ada)
    assert "data-passkey-account" not in browser.open("/account/security")


def test_signing_out_ends_both_sessions(world: World, browser: Browser, ada: HumanUser) -> None:
    start(browser, ada)
    browser.open("/sign-out")
    browser.submit(form="page-form")
    assert not browser.session_cookies
    browser.open("/account/profile")
    assert browser.sign_in_step is not None
