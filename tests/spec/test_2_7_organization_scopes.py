"""Decisions, namespaces: scopes that require members of one organization, and scopes for organization claims."""

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest

from identity.domain.organizations import Organization
from identity.domain.users import TokenFormat
from identity.services.access_control import Principal
from identity.services.commands.organizations import ChangeOrganization
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.service_test_client import Credentials
from identity.testing.world import BrowserSession, ServiceUserProgram, World

ScopeOf = Callable[[Organization], str]

OWNER = "urn:service:iam:user:resourceowner"


def by_id(organization: Organization) -> str:
    """The scope that names the organization by its id."""
    return f"urn:service:iam:org:id:{organization.id}"


def by_domain(organization: Organization) -> str:
    """The scope that names the organization by its primary domain."""
    return f"urn:service:iam:org:domain:primary:{organization.primary_domain}"


BOTH_SCOPES = pytest.mark.parametrize("scope_of", [by_id, by_domain])


@pytest.fixture
def organization(world: World) -> Organization:
    return world.make_organization()


@pytest.fixture
def session(world: World, organization: Organization) -> BrowserSession:
    """A member of the organization, signed in."""
    return world.make_browser_session(world.make_human_user(organization))


def error_of(session: BrowserSession, client: Credentials, scope: str) -> tuple[str, str]:
    """Error and description of the authorization error response."""
    answer = session.authorize(client, scope=scope, prompt="none")
    members = parse_qs(urlsplit(answer.headers["Location"]).query)
    return members["error"][0], members["error_description"][0]


@BOTH_SCOPES
def test_organization_scope_admits_member(
    world: World, client: Credentials, session: BrowserSession, organization: Organization, scope_of: ScopeOf
) -> None:
    """The scope is granted as requested and survives a refresh."""
    scope = f"openid {scope_of(organization)} offline_access"
    members = world.obtain_tokens(client, session, scope=scope)
    assert members["scope"] == scope
    assert check_token_response(world.refresh(members["refresh_token"], client))["scope"] == scope


@BOTH_SCOPES
def test_organization_scope_refuses_non_member(
    world: World, client: Credentials, organization: Organization, scope_of: ScopeOf
) -> None:
    """Sessions of other organizations do not count; a member would have to sign in."""
    error, _ = error_of(world.make_browser_session(), client, f"openid {scope_of(organization)}")
    assert error == "login_required"


@BOTH_SCOPES
def test_deactivated_organization_looks_unknown(
    world: World, client: Credentials, session: BrowserSession, scope_of: ScopeOf
) -> None:
    deleted, deactivated = world.make_organization(), world.make_organization()
    with world.transaction_services() as services:
        services.organizations.deactivate(deactivated.id, principal=Principal.OPERATOR)
        services.organizations.remove(deleted.id, principal=Principal.OPERATOR)
    errors = []
    for organization in (deleted, deactivated):
        scope = scope_of(organization)
        error, description = error_of(session, client, f"openid {scope}")
        assert error == "invalid_scope"
        errors.append(description.replace(scope, "…"))
    assert errors == ["… names no organization"] * 2


def test_two_organizations_at_once_are_refused(
    world: World, client: Credentials, session: BrowserSession, organization: Organization
) -> None:
    other = world.make_organization()
    assert error_of(session, client, f"openid {by_id(organization)} {by_domain(other)}")[0] == "invalid_scope"
    # Naming the same organization twice is allowed.
    world.make_code(client, session, scope=f"openid {by_id(organization)} {by_domain(organization)}")


def test_domain_is_case_insensitive(
    world: World, client: Credentials, session: BrowserSession, organization: Organization
) -> None:
    scope = f"openid urn:service:iam:org:domain:primary:{organization.primary_domain.upper()}"
    assert world.obtain_tokens(client, session, scope=scope)["scope"] == scope


def test_organization_is_rechecked_at_redemption_and_refresh(
    world: World, client: Credentials, session: BrowserSession, organization: Organization
) -> None:
    """After a change of domain the scope names no organization. The refused code or token can be used again."""
    scope = f"openid {by_domain(organization)} offline_access"
    code, members = world.make_code(client, session, scope=scope), world.obtain_tokens(client, session, scope=scope)

    def rename(domain: str) -> None:
        world.operator_services.organizations.change(organization.id, ChangeOrganization(primary_domain=domain))

    rename(f"new-{organization.primary_domain}")
    check_oauth_error(world.redeem(code, client), "invalid_scope")
    check_oauth_error(world.refresh(members["refresh_token"], client), "invalid_scope")
    check_token_response(world.refresh(members["refresh_token"], client, scope="openid"))
    rename(organization.primary_domain)
    check_token_response(world.redeem(code, client))


@BOTH_SCOPES
def test_service_user_must_be_member(world: World, organization: Organization, scope_of: ScopeOf) -> None:
    """The error is the same whether or not the other organization exists."""
    robot = world.make_service_user_program(organization)
    scope = f"openid {scope_of(organization)}"
    assert check_token_response(robot.request_token(scope))["scope"] == scope
    stranger = world.make_service_user_program()
    for requested in (
        scope_of(organization),
        "urn:service:iam:org:id:x",
        "urn:service:iam:org:domain:primary:x.example",
    ):
        description = f"{requested} names another organization than the user's"
        check_oauth_error(stranger.request_token(f"openid {requested}"), "invalid_scope", description=description)


def test_client_credentials_belong_to_application_organization(world: World, organization: Organization) -> None:
    grants = frozenset({"client_credentials"})
    client = world.make_application(world.make_project(organization).id, grant_types=grants)
    form = {"grant_type": "client_credentials"}
    check_token_response(world.post_token_request(client, {**form, "scope": by_id(organization)}))
    check_oauth_error(
        world.post_token_request(client, {**form, "scope": by_id(world.make_organization())}), "invalid_scope"
    )


@pytest.mark.parametrize("scope", ["urn:service:iam:org:id:", "urn:service:iam:org:domain:primary:"])
def test_empty_organization_scope_is_refused(world: World, scope: str) -> None:
    check_oauth_error(world.make_service_user_program().request_token(f"openid {scope}"), "invalid_scope")


@pytest.mark.parametrize(
    "scope",
    [
        "urn:zitadel:iam:org:id:1",
        "urn:zitadel:iam:org:domain:primary:acme.example",
        "urn:zitadel:iam:user:resourceowner",
        ":org:id:1",
        ":user:resourceowner",
        "urn:service:iam:user:resourceowner:x",
    ],
)
def test_scopes_of_other_namespaces_and_shapes_are_dropped(
    world: World, client: Credentials, session: BrowserSession, scope: str
) -> None:
    assert world.obtain_tokens(client, session, scope=f"openid {scope}")["scope"] == "openid"


# --- claims about the user's organization -----------------------------------------------------------------------------


def expected(organization: Organization, namespace: str = "urn:service:iam") -> dict[str, str]:
    """The claims that the scope opens."""
    prefix = f"{namespace}:user:resourceowner"
    return {
        f"{prefix}:id": organization.id,
        f"{prefix}:name": organization.name,
        f"{prefix}:primary_domain": organization.primary_domain,
    }


def owner_in(claims: dict[str, object]) -> dict[str, object]:
    """The claims about the organization."""
    return {name: value for name, value in claims.items() if ":resourceowner:" in name}


def test_organization_claims_are_in_userinfo_and_introspection(
    world: World, client: Credentials, session: BrowserSession, organization: Organization
) -> None:
    """In userinfo and introspection, and in an ID token only without an access token."""
    members = world.obtain_tokens(client, session, scope=f"openid {OWNER}")
    assert members["scope"] == f"openid {OWNER}"
    token = members["access_token"]
    assert owner_in(world.client.fetch_userinfo(token).json) == expected(organization)
    assert owner_in(world.client.introspect(token, client).json) == expected(organization)
    assert owner_in(decode_jwt_unverified(members["id_token"])[1]) == {}
    bare = world.obtain_tokens(client, session, scope="openid profile")["access_token"]
    assert owner_in(world.client.fetch_userinfo(bare).json) == {}


def test_id_token_organization_claims_follow_application_setting(
    world: World, session: BrowserSession, organization: Organization
) -> None:
    client = world.make_web_application(id_token_userinfo_assertion=True)
    members = world.obtain_tokens(client, session, scope=f"openid {OWNER}")
    assert owner_in(decode_jwt_unverified(members["id_token"])[1]) == expected(organization)


def test_service_user_organization_is_a_claim(world: World, organization: Organization) -> None:
    robot: ServiceUserProgram = world.make_service_user_program(organization, token_format=TokenFormat.JWT)
    token = robot.access_token(f"openid {OWNER}")
    assert owner_in(world.client.fetch_userinfo(token).json) == expected(organization)


@pytest.mark.storages("memory")  # a setting
def test_claims_use_namespace_of_request(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.urn_namespaces": "urn:service:iam urn:zitadel:iam"})
    organization = world.make_organization()
    robot = world.make_service_user_program(organization)
    token = robot.access_token("openid urn:zitadel:iam:user:resourceowner")
    assert owner_in(world.client.fetch_userinfo(token).json) == expected(organization, "urn:zitadel:iam")
    token = robot.access_token(f"openid urn:zitadel:iam:user:resourceowner {OWNER}")
    both = expected(organization) | expected(organization, "urn:zitadel:iam")
    assert owner_in(world.client.fetch_userinfo(token).json) == both
