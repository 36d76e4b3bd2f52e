"""Routes: each view has a permission, each route declares its credential, and discovery lists every endpoint."""

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyramid.config import Configurator
from pyramid.request import Request
from pyramid.response import Response
from pyramid.security import NO_PERMISSION_REQUIRED

from identity import hookimpl
from identity.application_factory import create_application, create_wsgi_app
from identity.domain.managers import ManagerRole
from identity.http.endpoint_routes import PROTOCOL_ROUTE_PREFIX
from identity.http.route_contexts import MANAGER_SUBJECT
from identity.http.route_predicates import AuthenticatePredicate, HostPredicate
from identity.http.security_policy import ANY_MANAGER_PERMISSION, NEVER_PERMITTED, SIGNED_IN_PERMISSION
from identity.plugin_host import PluginError
from identity.provider.endpoint import Endpoint, EndpointHost
from identity.provider.endpoints import CORE_ENDPOINTS
from identity.testing.assembled_service import THREE_HOST_SETTINGS
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")

#: Pages and documents that need no credential, with the reason.
PUBLIC_PAGES = {
    "healthz",
    "readyz",
    "pages.static",
    # Colours and images of pages that are shown before sign-in.
    *("branding.style", "branding.logo", "preview.style"),
    # Starting and ending a session.
    *(
        "home",
        "login",
        "sign_out",
        "signed_out",
        "signed_out.applications",
        "login.register.sent",
        "login.registered",
        "login.password.change",
    ),
    *("login.factors", "login.factors.new", "login.totp", "login.totp.new"),
    *(f"login.{factor}{page}" for factor in ("email_code", "recovery_codes") for page in ("", ".new")),
    *(f"login.passkeys{page}" for page in ("", ".new", ".alone", ".upgrade")),
    # Pages for a user whose account is pending deletion.
    *("login.keep", "account.leaving"),
    *(f"login.{page}" for page in ("name", "password", "accounts", "register", "consent", "again")),
    # Redirects to other identity providers and back.
    *("login.upstream", "login.upstream.unlinked", "login.upstream.link"),
    *("upstream.go", "upstream.answered", "upstream.sign_out", "upstream.signed_out"),
    # Mailed links are credentials themselves; these pages request and confirm them.
    *("password.reset", "password.reset.sent", "password.reset.link", "password.changed"),
    *("email.link", "email.confirmed", "register.link"),
    # Describes the management API, but contains no data.
    "management.openapi",
    "management.browse",
    # The same for everyone.
    *(f"documentation.{name}" for name in ("start", "file", "llms")),
}


def public_routes(world: World) -> set[str]:
    """Routes without a credential: public pages, and endpoints, which authenticate clients by protocol rules."""
    endpoints = world.identity.protocol_registry.endpoints
    return PUBLIC_PAGES | {PROTOCOL_ROUTE_PREFIX + endpoint.name for endpoint in endpoints}


def views(world: World) -> Iterator[tuple[str, str]]:
    """The route name and permission of each view."""
    for view in world.app.registry.introspector.get_category("views"):
        route = view["introspectable"]["route_name"]
        if route is not None:
            (permission,) = (item for item in view["related"] if item.category_name == "permissions")
            yield route, permission["value"]


def predicates(world: World, kind: type) -> dict[str, Any]:
    """The value of a predicate by route."""
    found = {}
    for route in world.app.registry.introspector.get_category("routes"):
        name, route_object = route["introspectable"]["name"], route["introspectable"]["object"]
        found[name] = next((predicate for predicate in route_object.predicates if isinstance(predicate, kind)), None)
    return found


def test_every_view_declares_a_known_permission(world: World) -> None:
    known = ManagerRole.PERMISSIONS | {
        ANY_MANAGER_PERMISSION,
        SIGNED_IN_PERMISSION,
        NO_PERMISSION_REQUIRED,
        f"{MANAGER_SUBJECT}.read",
        f"{MANAGER_SUBJECT}.write",
    }
    assert {route: permission for route, permission in views(world) if permission not in known} == {}
    assert NEVER_PERMITTED not in known


def test_every_route_has_a_view(world: World) -> None:
    assert set(predicates(world, HostPredicate)) == {route for route, _ in views(world)}


def test_public_routes_are_listed(world: World) -> None:
    assert {route for route, permission in views(world) if permission == NO_PERMISSION_REQUIRED} == public_routes(world)


def test_views_with_permission_declare_accepted_credentials(world: World) -> None:
    accepted = {route: item and item.value for route, item in predicates(world, AuthenticatePredicate).items()}
    for route, permission in views(world):
        assert (accepted[route] is None) == (permission == NO_PERMISSION_REQUIRED), route


def test_every_route_but_the_probes_is_bound_to_a_host(world: World) -> None:
    unbound = {route for route, predicate in predicates(world, HostPredicate).items() if predicate is None}
    assert unbound == {"healthz", "readyz", "pages.static"}


@pytest.mark.parametrize("permission", [None, NEVER_PERMITTED])
def test_view_without_a_permission_is_closed(make_world: Callable[..., World], permission: str | None) -> None:
    """Start-up refuses it; otherwise the default permission would apply, which no role has, not even the owner's."""
    world = make_world()
    robot = world.make_manager_program("ORG_OWNER")
    config = Configurator(settings={})
    config.registry.application = world.identity
    config.include("identity.http")
    config.add_route("forgotten", "/forgotten", host="base", authenticate="bearer")
    config.add_view(lambda request: Response("seen"), route_name="forgotten", permission=permission)
    world.client.app.app = config.make_wsgi_app()
    answer = world.client.get(f"{world.issuer}/forgotten", {"Authorization": f"Bearer {robot.management_token()}"})
    assert (answer.status_int, answer.json["error"]) == (403, "forbidden")
    answer = world.client.get(f"{world.issuer}/forgotten")
    assert (answer.status_int, answer.json["error"]) == (401, "unauthenticated")


@pytest.mark.thorough
@pytest.mark.parametrize("route", [{"route_name": "forgotten"}, {"name": "forgotten"}], ids=["route", "traversal"])
def test_startup_refuses_a_view_without_a_permission(database_factory: Any, route: dict[str, str]) -> None:
    class Forgetful:
        @hookimpl
        def identity_configure(self, config: Configurator) -> None:
            def view(request: Request) -> Response:
                return Response("seen")

            config.add_route("forgotten", "/forgotten", host="base")
            config.add_view(view, **route)

    settings = database_factory.new_database_settings("memory")
    identity = create_application(settings)
    identity.plugin_host.register("forgetful", Forgetful())
    with pytest.raises(PluginError, match="names no permission"):
        create_wsgi_app(identity, settings)


# --- endpoints and discovery ------------------------------------------------------------------------------------------


#: Endpoints whose file is not named after their route.
ENDPOINT_FILES = {"authorize": "authorization", "keys": "jwks"}


def test_each_core_endpoint_has_its_own_module() -> None:
    for endpoint in CORE_ENDPOINTS:
        name = endpoint.name.partition(".")[0]
        assert endpoint.handle.__module__ == f"identity.provider.endpoints.{ENDPOINT_FILES.get(name, name)}"


def test_endpoints_are_complete(world: World) -> None:
    for endpoint in world.identity.protocol_registry.endpoints:
        missing = {field.name for field in fields(Endpoint) if getattr(endpoint, field.name) is None}
        assert missing <= {"discovery_member", "cached_document", "token_claims"}
        assert endpoint.path.startswith("/")
        assert endpoint.methods


@pytest.mark.parametrize("hosts", [{}, THREE_HOST_SETTINGS], ids=["one host", "three hosts"])
def test_discovery_urls_match_endpoints(make_world: Callable[..., World], hosts: dict[str, str]) -> None:
    world = make_world(**hosts)
    settings = world.identity.settings
    addresses = {
        EndpointHost.ISSUER: settings.issuer_url,
        EndpointHost.BASE: settings.base_url,
        EndpointHost.LOGIN: settings.login_url,
    }
    expected = {
        endpoint.discovery_member: addresses[endpoint.host] + endpoint.path
        for endpoint in world.identity.protocol_registry.endpoints
        if endpoint.discovery_member
    }
    named = {name: value for name, value in world.client.discovery.items() if name.endswith(("_endpoint", "_uri"))}
    assert named == expected
    for endpoint in world.identity.protocol_registry.endpoints:
        answer = world.client.request("TRACE", addresses[endpoint.host] + endpoint.path)
        assert answer.status_int == 405, f"{endpoint.name} does not answer there: {answer}"
        assert answer.headers["Allow"] == ", ".join(endpoint.methods)


def test_discovery_urls_come_from_settings(world: World) -> None:
    answer = world.client.request(
        "GET",
        f"{world.issuer}/.well-known/openid-configuration",
        headers={"X-Forwarded-Host": "evil.example.com", "X-Forwarded-Proto": "http", "Forwarded": "host=evil"},
    )
    texts = [value for value in answer.json.values() if isinstance(value, str)]
    assert all(urlsplit(text).netloc == urlsplit(world.issuer).netloc for text in texts if "://" in text)


def test_metadata_of_authorization_servers_is_not_served(world: World) -> None:
    """Service description §1: OpenID Connect Discovery replaces it."""
    assert world.client.get(f"{world.issuer}/.well-known/oauth-authorization-server").status_int == 404
