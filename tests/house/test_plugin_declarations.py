"""Everything that a plugin declares has an effect, and each hook is called as often as documented."""

import ast
import inspect
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from pyramid.request import Request
from webtest import TestApp

import identity
from identity import hookimpl, hookspecs
from identity.application import IdentityApplication
from identity.application_factory import create_wsgi_app
from identity.asgi import AsgiApplication
from identity.domain.applications import ApplicationType
from identity.domain.errors import Invalid
from identity.domain.managers import ManagerRole
from identity.extension_points import CliCommand, ServingProcess, SystemCheck
from identity.http.security_policy import SIGNED_IN_PERMISSION
from identity.http.transactions import needs_transaction
from identity.instrumentation import InstrumentationObserver
from identity.pages.signed_in_page import SignedInPage
from identity.plugin_host import ENTRY_POINT_GROUP, PluginError
from identity.provider.client_authentication import ClientAuthenticationMethod
from identity.provider.context import Context
from identity.provider.directory import Directory
from identity.provider.discovery import discovery_members
from identity.provider.endpoint import Endpoint, EndpointHost
from identity.provider.factor import Factor
from identity.provider.grant_type import Authorization, ClientRequirement, GrantType, TokenRequest
from identity.provider.interaction import Interaction
from identity.provider.logout import LogoutHandler
from identity.provider.protocol_request import ProtocolRequest, ProtocolResponse
from identity.provider.response_type import Artifact, ResponseType
from identity.provider.scope import Scope
from identity.services.access_control import Principal
from identity.services.commands.applications import RegisterApplication
from identity.services.commands.organizations import CreateOrganization
from identity.services.commands.projects import CreateProject
from identity.services.outbox import Delivery
from identity.storage.backend import Backend
from identity.testing.asgi_adapter import WsgiToAsgiAdapter
from identity.testing.browser import Browser
from identity.testing.fixtures import DEFAULT_PLUGINS, WorldFactory
from tests.house.plugin_fixtures import Install, Plain, assembled, implementing, load, offering

ORIGIN = "https://shop.example"


def answered(_request: ProtocolRequest, _context: Context) -> ProtocolResponse:
    return ProtocolResponse(200, b"{}")


def make_endpoint(**members: Any) -> Endpoint:
    usual: dict[str, Any] = {
        "name": "parking",
        "path": "/oauth/v2/parking",
        "host": EndpointHost.ISSUER,
        "methods": ("GET", "POST"),
        "discovery_member": "parking_endpoint",
        "writes": False,
        "handle": answered,
    }
    return Endpoint(**(usual | members))


def with_endpoint(install: Install, tmp_path: Path, *endpoints: Endpoint) -> tuple[IdentityApplication, TestApp]:
    kind = offering("identity_endpoints", *endpoints)
    shipped = {
        "client_secret_basic": "identity.plugins.client_secret_basic:ClientSecretBasicPlugin",
        "public_client": "identity.plugins.public_client:PublicClientPlugin",
        "implicit": "identity.plugins.implicit:ImplicitPlugin",
    }
    identity = assembled(install, tmp_path, parking=kind, **shipped)  # type: ignore[arg-type]
    client = TestApp(create_wsgi_app(identity, {}), extra_environ={"HTTP_HOST": "localhost:8080"})
    return identity, client


def register_origin(identity: IdentityApplication) -> None:
    with identity.transaction() as services:
        organization = services.organizations.create(CreateOrganization(name="Shop"))
        project = services.projects.create(organization.id, CreateProject(name="Shop"), principal=Principal.OPERATOR)
        command = RegisterApplication.build(
            name="Shop",
            type=ApplicationType.WEB,
            authentication_method="client_secret_basic",
            response_types=frozenset({"id_token"}),
            redirect_uris=(f"{ORIGIN}/",),
        )
        services.applications.register(project.id, command, principal=Principal.OPERATOR)


# --- declared attributes ---------------------------------------------------------------------------------------------

OFFERED = (
    Authorization,
    Backend,
    SystemCheck,
    ClientAuthenticationMethod,
    CliCommand,
    Delivery,
    Directory,
    Endpoint,
    Factor,
    GrantType,
    Interaction,
    ResponseType,
    ManagerRole,
    ServingProcess,
    Scope,
    LogoutHandler,
    InstrumentationObserver,
)


@pytest.fixture(scope="module")
def sources() -> Mapping[Path, str]:
    """The text of all modules and templates of the service."""
    root = Path(identity.__file__).parent
    paths = [path for ending in ("py", "html") for path in root.rglob(f"*.{ending}")]
    return {path: path.read_text() for path in paths}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", OFFERED, ids=lambda kind: kind.__name__)
def test_every_declared_attribute_is_read(kind: type, sources: Mapping[Path, str]) -> None:
    own_bases = [item for item in kind.__mro__ if item.__module__.startswith("identity")]
    names = {
        name for item in own_bases for name in (*vars(item), *inspect.get_annotations(item)) if not name.startswith("_")
    }
    unread = {name for name in names if not any(re.search(rf"(?<!self)\.{name}\b", text) for text in sources.values())}
    # Attributes that only the class itself reads are parts of its other members.
    unread -= {name for name in unread for item in own_bases if f"self.{name}" in inspect.getsource(item)}
    # Methods for subclasses are called by these.
    lent = {name for name in unread if not hasattr(getattr(kind, name, None), "__isabstractmethod__")}
    unread -= {name for name in lent if any(f"self.{name}(" in text for text in sources.values())}
    assert unread == set()


# --- endpoints --------------------------------------------------------------------------------------------------------


def test_every_attribute_of_an_endpoint_is_tested_here() -> None:
    tested = {
        "name",
        "path",
        "host",
        "methods",
        "discovery_member",
        "writes",
        "allows_cors",
        "allows_stale_reads",
        "handle",
    }
    tested |= {"uses_storage", "is_blocking", "cached_document", "token_claims"}
    tested |= {"authenticates_clients", "refuses_public_clients"}
    # tests/spec/test_impersonation.py
    tested |= {"allows_impersonators"}
    assert {field.name for field in fields(Endpoint)} == tested


def test_plugins_endpoint_is_advertised(install: Install, tmp_path: Path) -> None:
    _, client = with_endpoint(install, tmp_path, make_endpoint())
    document = client.get("/.well-known/openid-configuration").json
    assert document["parking_endpoint"] == "http://localhost:8080/oauth/v2/parking"
    assert client.get("/oauth/v2/parking").json == {}
    assert client.put("/oauth/v2/parking", status=405)


def test_unadvertised_plugin_endpoint_is_not_in_discovery(install: Install, tmp_path: Path) -> None:
    _, client = with_endpoint(install, tmp_path, make_endpoint(discovery_member=None))
    assert "parking" not in client.get("/.well-known/openid-configuration").text


@pytest.mark.parametrize(
    ("declared", "methods"),
    [
        ({}, None),
        ({"authenticates_clients": True}, ["client_secret_basic", "none"]),
        ({"authenticates_clients": True, "refuses_public_clients": True}, ["client_secret_basic"]),
    ],
)
def test_plugin_endpoint_lists_client_authentication(
    install: Install, tmp_path: Path, declared: dict[str, bool], methods: list[str] | None
) -> None:
    _, client = with_endpoint(install, tmp_path, make_endpoint(**declared))
    document = client.get("/.well-known/openid-configuration").json
    assert document.get("parking_endpoint_auth_methods_supported") == methods


@pytest.mark.parametrize("allows_cors", [True, False])
def test_plugin_endpoint_allows_cors_if_declared(install: Install, tmp_path: Path, allows_cors: bool) -> None:
    identity, client = with_endpoint(install, tmp_path, make_endpoint(allows_cors=allows_cors))
    register_origin(identity)
    for origin, allowed in ((ORIGIN, allows_cors), ("https://elsewhere.example", False)):
        answer = client.get("/oauth/v2/parking", headers={"Origin": origin})
        assert answer.headers.get("Access-Control-Allow-Origin") == (origin if allowed else None), origin
    preflight = client.options(
        "/oauth/v2/parking",
        headers={"Origin": ORIGIN, "Access-Control-Request-Method": "POST"},
        status=204 if allows_cors else 405,
    )
    assert ("Access-Control-Allow-Methods" in preflight.headers) == allows_cors


@pytest.mark.parametrize("path", ["/oauth/v2/parking", "/oauth/v2/parking/{place}"])
@pytest.mark.parametrize("writing", [True, False])
def test_writing_plugin_endpoint_has_a_transaction(install: Install, tmp_path: Path, path: str, writing: bool) -> None:
    identity, client = with_endpoint(install, tmp_path, make_endpoint(path=path, writes=writing))
    request = Request.blank(path.format(place="a7"))
    request.registry = client.app.registry
    assert needs_transaction(request) == writing
    # A HEAD request must not write what a GET request writes.
    client.head(path.format(place="a7"), status=405 if writing else 200)
    assert identity.protocol_registry.endpoints[-1].path == path


@pytest.mark.parametrize("greenlets", [0, 8])
@pytest.mark.parametrize("uses_storage", [True, False])
@pytest.mark.parametrize("is_blocking", [True, False])
def test_plugin_endpoint_runs_in_the_event_loop_unless_blocking(
    install: Install, tmp_path: Path, greenlets: int, uses_storage: bool, is_blocking: bool
) -> None:
    threads: list[str] = []

    def noting(*_: object) -> ProtocolResponse:
        threads.append(threading.current_thread().name)
        return ProtocolResponse(200)

    endpoint = make_endpoint(uses_storage=uses_storage, is_blocking=is_blocking, handle=noting)
    identity, client = with_endpoint(install, tmp_path, endpoint)
    identity.backend.max_greenlets = greenlets
    asgi = TestApp(WsgiToAsgiAdapter(AsgiApplication(client.app)), extra_environ={"HTTP_HOST": "localhost:8080"})
    assert asgi.get("/oauth/v2/parking").status_int == 200
    [name] = threads
    assert (name == "event-loop") is (not is_blocking and (greenlets > 0 or not uses_storage))


def test_plugin_endpoint_is_bound_to_its_host(install: Install, tmp_path: Path) -> None:
    _, client = with_endpoint(install, tmp_path, make_endpoint(host=EndpointHost.LOGIN))
    assert client.app.registry.endpoint_hosts["/oauth/v2/parking"] is EndpointHost.LOGIN
    assert client.get("/oauth/v2/parking").status_int == 200


@pytest.mark.parametrize(
    "registered",
    [
        {"name": "token"},
        {"path": "/oauth/v2/token", "host": EndpointHost.BASE},
        {"path": "/oauth/v2/token", "host": EndpointHost.LOGIN},
        {"discovery_member": "token_endpoint"},
    ],
)
def test_endpoint_conflict_stops_the_start(install: Install, tmp_path: Path, registered: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match="token"):
        with_endpoint(install, tmp_path, make_endpoint(**registered))


# --- grants and response types ----------------------------------------------------------------------------------------


class Valet(GrantType):
    """A grant of a plugin that issues refresh tokens and refuses public clients."""

    grant_type = "urn:example:valet"
    parameters = frozenset[str]()
    client_requirement = ClientRequirement.REQUIRED
    issues_refresh_tokens = True
    requires_confidential_client = True
    discovery_members: ClassVar[Mapping[str, object]] = {
        "valet_levels_supported": [1, 2],
        "subject_types_supported": [],
    }

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        raise NotImplementedError


class Ticket(Valet):
    """A grant that exchanges authorization codes."""

    grant_type = "urn:example:ticket"
    issues_refresh_tokens = False
    requires_confidential_client = False
    accepts_codes = True


class Renewal(Valet):
    grant_type = "urn:example:renewal"
    issues_refresh_tokens = False
    requires_confidential_client = False
    accepts_refresh_tokens = True


def register(identity: IdentityApplication, **members: Any) -> frozenset[str]:
    """The grant types of a new application with these settings."""
    with identity.transaction() as services:
        organization = services.organizations.create(CreateOrganization(name="Shop"))
        project = services.projects.create(organization.id, CreateProject(name="Shop"), principal=Principal.OPERATOR)
        usual = {"name": "Shop", "type": ApplicationType.WEB, "redirect_uris": (f"{ORIGIN}/",)}
        command = RegisterApplication.build(**(usual | members))
        return services.applications.register(project.id, command, principal=Principal.OPERATOR).grant_types


@pytest.fixture
def granting(install: Install, tmp_path: Path) -> IdentityApplication:
    """A service with only the grants of this test."""
    return assembled(
        install,
        tmp_path,
        grants=offering("identity_grant_types", Valet(), Ticket(), Renewal()),
        responses=offering(
            "identity_response_types",
            ResponseType("ticket", frozenset({Artifact.CODE})),
            ResponseType("badge", frozenset({Artifact.ID_TOKEN})),
        ),
    )


def test_refresh_grant_requires_an_issuing_grant(granting: IdentityApplication) -> None:
    valet, renewal = Valet.grant_type, Renewal.grant_type
    assert register(granting, grant_types=frozenset({valet, renewal})) == {valet, renewal}
    with pytest.raises(Invalid) as refused:
        register(granting, grant_types=frozenset({renewal, Ticket.grant_type}))
    assert refused.value.fields == {"grant_types": f"Choose {valet} too: refresh tokens come with it alone."}


def test_confidential_grant_takes_no_public_client(granting: IdentityApplication) -> None:
    public = {"type": ApplicationType.NATIVE, "authentication_method": "none"}
    granting.process_state.capabilities = replace(granting.process_state.capabilities, authentication_methods=("none",))
    assert register(granting, grant_types=frozenset({Ticket.grant_type}), **public) == {Ticket.grant_type}
    with pytest.raises(Invalid) as refused:
        register(granting, grant_types=frozenset({Valet.grant_type}), **public)
    assert Valet.grant_type in refused.value.fields["grant_types"]


def test_default_grants_accept_codes(granting: IdentityApplication) -> None:
    assert register(granting) == {Ticket.grant_type}


def test_response_type_with_tokens_is_implicit_by_what_it_issues(granting: IdentityApplication) -> None:
    """The name of the response type does not matter."""
    assert register(granting, response_types=frozenset({"badge"})) == {Ticket.grant_type, "implicit"}
    assert register(granting, response_types=frozenset({"ticket"})) == {Ticket.grant_type}


#: Modules that use a grant's name for something else: a kind of token or a parameter.
TOKEN_KINDS = {
    "provider/claim_reasons.py": {"refresh_token"},
    "provider/parameters.py": {"refresh_token"},
    "provider/token_issuance.py": {"refresh_token"},
    "services/tokens.py": {"authorization_code", "refresh_token"},
}


@pytest.mark.thorough
def test_core_names_no_plugin_and_no_grant() -> None:
    """Each grant declares what it means for an application."""
    host = load(*DEFAULT_PLUGINS.split())
    grants = set(host.extensions_by_name("identity_grant_types", lambda item: item.grant_type, "grant"))
    assert len(grants) > 3
    root = Path(identity.__file__).parent
    for path in root.rglob("*.py"):
        module = path.relative_to(root).as_posix()
        # Clients in commands and in the test kit request grants by name.
        if not module.startswith(("plugins/", "testing/", "cli/")):
            texts = {
                node.value
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            }
            assert texts & grants == TOKEN_KINDS.get(module, set()), module
            assert not {text for text in texts if re.match(r"identity\.plugins\.\w+", text)}, module


def test_discovery_members_of_a_grant_are_listed_and_replace_none(granting: IdentityApplication) -> None:
    members = discovery_members(granting.protocol_registry, granting.settings)
    assert members["valet_levels_supported"] == [1, 2]
    assert members["subject_types_supported"] == ["public", "pairwise"]


# --- hooks ------------------------------------------------------------------------------------------------------------

#: Hooks that are not called at the start.
LATER = {"identity_lifespan", "identity_commands"}


def test_each_hook_is_called_once_at_start(install: Install, tmp_path: Path) -> None:
    """The hooks documented as "Called once", when the service is assembled and its application is created."""
    called: Counter[str] = Counter()
    specs = {name: item for name, item in vars(hookspecs).items() if name.startswith("identity_")}
    once = {name for name, item in specs.items() if "Called once" in (item.__doc__ or "")} - {
        "identity_audit_event_recorded"
    }

    def counting(name: str) -> Any:
        def hook(self: object) -> Iterable[object]:
            called[name] += 1
            return {} if name == "identity_discovery" else ()

        return hookimpl(hook, specname=name)

    kind = type("Counting", (Plain,), {f"hook_{name}": counting(name) for name in once})
    identity = assembled(install, tmp_path, counting=kind)
    create_wsgi_app(identity, {})
    configured = called.copy()
    TestApp(create_wsgi_app(identity, {}), extra_environ={"HTTP_HOST": "localhost:8080"}).get(
        "/.well-known/openid-configuration"
    )
    assert configured == dict.fromkeys(once - LATER, 1)
    assert called["identity_discovery"] == 1


# --- pages ------------------------------------------------------------------------------------------------------------


class Corner(SignedInPage):
    """A page with the fewest possible attributes."""

    template = "corner.html"

    def template_variables(self) -> dict[str, object]:
        return {"title": "Corner"}


@pytest.mark.storages("memory")
def test_signed_in_page_without_navigation_is_drawn(
    make_world: WorldFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def identity_configure(self: object, config: Any) -> None:
        config.add_page_templates("corner_pages:templates")
        config.add_page("corner", "/corner", Corner, permission=SIGNED_IN_PERMISSION, authenticate="session")

    templates = tmp_path / "corner_pages" / "templates"
    templates.mkdir(parents=True)
    (templates.parent / "__init__.py").touch()
    drawn = '{% extends "layout.html" %}{% block main %}<p>Here.</p>{% endblock %}'
    (templates / "corner.html").write_text(drawn)
    monkeypatch.syspath_prepend(tmp_path)
    module = ModuleType("plugin_with_a_page")
    module.Plugin = implementing("identity_configure", identity_configure)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    shipped = list(entry_points(group=ENTRY_POINT_GROUP))
    point = EntryPoint("corner", f"{module.__name__}:Plugin", ENTRY_POINT_GROUP)
    monkeypatch.setattr("identity.plugin_host.entry_points", lambda group: [*shipped, point])
    world = make_world(**{"identity.plugins": f"memory {DEFAULT_PLUGINS} corner"})
    browser = Browser(world)
    browser.start_session(world.make_human_user())
    answer = browser.open("/corner")
    assert answer.status_int == 200
    assert "Here." in answer
