"""The token preview shows the same claims and refusals as the endpoints, and issues nothing."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from identity.crypto.jwt import UnverifiedToken
from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.domain.users import HumanUser, TokenFormat
from identity.provider.claim_reasons import VOLATILE_CLAIMS, ClaimsCarrier
from identity.provider.context import Context
from identity.provider.errors import InvalidGrant, InvalidTarget
from identity.provider.grant_type import Authorization, ClientRequirement, GrantType, TokenRequest
from identity.provider.token_preview import GrantPreview, TokenPreviewResult, preview_tokens
from identity.services.access_control import Principal
from identity.services.commands.projects import ChangeProject
from identity.services.commands.users import ChangeHumanUser
from identity.testing.browser import Browser
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.service_test_client import Credentials
from identity.testing.world import CALLBACK_URI, CredentialsOrClientId, World

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ROLES = "urn:service:iam:org:projects:roles"
ONE_ROLE = "urn:service:iam:org:project:role:reader"
OWNER = "urn:service:iam:user:resourceowner"
SCOPES = (
    "openid",
    "openid profile email offline_access unknown",
    f"openid {ROLES}",
    f"openid email {ONE_ROLE} {OWNER}",
)
RESPONSE_TYPES = ("code", "id_token", "id_token token")
FLAGS = ("id_token_userinfo_assertion", "assert_roles_in_access_token", "assert_roles_in_id_token")

CarriedClaims = dict[ClaimsCarrier, dict[str, Any]]


def preview_claims(
    world: World,
    user_id: str | None,
    client_id: str | None,
    scope: str,
    response_type: str = "code",
    resource: str = "",
) -> TokenPreviewResult:
    # On a read-only connection.
    with world.read_only_services() as services:
        identity = world.identity
        context = Context(
            services.now, identity.settings, identity.protocol_registry, lambda: identity.pyoidc_provider, services
        )
        subject = None if user_id is None else services.storage.users.find_subject(user_id)
        client = None if client_id is None else services.storage.applications.find_client(client_id)
        return preview_tokens(subject, client, tuple(scope.split(" ")), response_type, context, resource=resource)


def way_of(found: TokenPreviewResult, grant_type: str | None) -> GrantPreview:
    [preview] = [grant_preview for grant_preview in found.grant_previews if grant_preview.grant_type == grant_type]
    return preview


def claims_by_carrier(*grant_previews: GrantPreview) -> CarriedClaims:
    """The claims by carrier; values that differ each time are None."""
    return {
        previewed_claims.carrier: {claim.name: claim.value for claim in previewed_claims.claims}
        for preview in grant_previews
        for previewed_claims in preview.previewed_claims
    }


def signed_in(found: TokenPreviewResult) -> CarriedClaims:
    """The claims after a sign-in and code exchange."""
    assert all(preview.error is None for preview in found.grant_previews)
    return claims_by_carrier(
        *(preview for preview in found.grant_previews if preview.grant_type in (None, "authorization_code"))
    )


def claims_of_response(members: Mapping[str, Any], world: World, client: CredentialsOrClientId | None) -> CarriedClaims:
    """The claims of a token response, in the same form."""
    found: CarriedClaims = {}
    if "code" in members:
        found[ClaimsCarrier.CODE] = {}
    access_token = members.get("access_token")
    if access_token is not None:
        found[ClaimsCarrier.ACCESS_TOKEN] = (
            UnverifiedToken.parse(access_token).claims if access_token.count(".") == 2 else {}
        )
        found[ClaimsCarrier.USERINFO] = world.client.fetch_userinfo(access_token).json
        asking = client if isinstance(client, Credentials) else world.introspector
        found[ClaimsCarrier.INTROSPECTION] = world.client.introspect(access_token, asking).json
    if "id_token" in members:
        found[ClaimsCarrier.ID_TOKEN] = UnverifiedToken.parse(members["id_token"]).claims
    if "refresh_token" in members:
        found[ClaimsCarrier.REFRESH_TOKEN] = {}
    return {
        carrier: {name: None if name in VOLATILE_CLAIMS else value for name, value in claims.items()}
        for carrier, claims in found.items()
    }


def issued_claims(
    world: World, person: HumanUser, client: CredentialsOrClientId, scope: str, response_type: str
) -> CarriedClaims:
    """The claims that the application really receives."""
    session = world.make_browser_session(person)
    answer = session.authorize(client, response_type=response_type, scope=scope, nonce="nonce")
    assert answer.status_int == 303, answer
    parts = urlsplit(answer.headers["Location"])
    members = dict(parse_qsl(parts.query or parts.fragment))
    if "code" in members:
        form = {"grant_type": "authorization_code", "code": members["code"], "redirect_uri": CALLBACK_URI}
        redeemed = world.post_token_request(
            client, {**form, "code_verifier": "a-verifier-that-is-long-enough-for-RFC-7636"}
        )
        assert redeemed.status_int == 200, redeemed
        members = {"code": members["code"], **redeemed.json}
    return claims_of_response(members, world, client)


def make_user_and_project(world: World, **project: bool) -> tuple[HumanUser, Project]:
    """A user with a role in a project."""
    organization = world.make_organization()
    person, found = (
        world.make_human_user(organization),
        world.make_project(organization, roles=("reader", "writer"), **project),
    )
    world.make_user_grant(person, found, "reader", "writer")
    with world.transaction_services() as services:
        services.users.change(
            person.id, ChangeHumanUser(email="ada@example.com", nickname="Addie"), principal=Principal.OPERATOR
        )
    return person, found


def make_application(world: World, project: Project, **members: Any) -> Credentials:
    return world.make_web_application(project.id, response_types=frozenset(RESPONSE_TYPES), **members)


COMBINATIONS = list(itertools.product(RESPONSE_TYPES, TokenFormat, (False, True)))


@pytest.mark.sampled(7)
@pytest.mark.storages("memory")  # Look-ups are the same in all storages.
@pytest.mark.parametrize(("response_type", "kind", "asserts"), COMBINATIONS)
def test_preview_matches_issued_tokens(world: World, response_type: str, kind: TokenFormat, asserts: bool) -> None:
    person, project = make_user_and_project(world, assert_roles=asserts)
    for flags in ((), FLAGS[:1], FLAGS[1:], FLAGS):
        client = make_application(world, project, access_token_type=kind, **dict.fromkeys(flags, True))
        for scope in SCOPES:
            preview = preview_claims(world, person.id, client.client_id, scope, response_type)
            assert signed_in(preview) == issued_claims(world, person, client, scope, response_type), (flags, scope)
            assert all(
                claim.reason
                for grant_preview in preview.grant_previews
                for previewed_claims in grant_preview.previewed_claims
                for claim in previewed_claims.claims
            )


@pytest.mark.parametrize("format", TokenFormat)
def test_preview_matches_refreshed_tokens(world: World, format: TokenFormat) -> None:
    person, project = make_user_and_project(world)
    client = make_application(world, project, access_token_type=format, assert_roles_in_id_token=True)
    scope = f"openid email offline_access {ROLES}"
    first = world.obtain_tokens(client, world.make_browser_session(person), scope=scope, nonce="nonce")
    answer = world.post_token_request(client, {"grant_type": "refresh_token", "refresh_token": first["refresh_token"]})
    preview = preview_claims(world, person.id, client.client_id, scope)
    assert claims_by_carrier(way_of(preview, "refresh_token")) == claims_of_response(
        check_token_response(answer), world, client
    )
    # Without the scope there is no refresh token, so nothing to use it for.
    assert [
        grant_preview.grant_type
        for grant_preview in preview_claims(world, person.id, client.client_id, "openid").grant_previews
    ] == [
        None,
        "authorization_code",
    ]


@pytest.mark.parametrize("format", TokenFormat)
def test_preview_matches_client_credentials_tokens(world: World, format: TokenFormat) -> None:
    project = world.make_project()
    client = world.make_application(project.id, grant_types=frozenset({"client_credentials"}), access_token_type=format)
    scope = f"profile {world.audience_scope(project.id)}"
    answer = check_token_response(
        world.post_token_request(client, {"grant_type": "client_credentials", "scope": scope})
    )
    [preview] = preview_claims(world, None, client.client_id, scope).grant_previews
    real = claims_of_response(answer, world, client)
    # There is no user.
    real.pop(ClaimsCarrier.USERINFO)
    assert (preview.grant_type, claims_by_carrier(preview)) == ("client_credentials", real)
    credentials = world.make_application(project.id)
    [preview] = preview_claims(world, None, credentials.client_id, scope).grant_previews
    assert preview.error is not None
    refused = world.post_token_request(credentials, {"grant_type": "client_credentials", "scope": scope})
    check_oauth_error(refused, preview.error.error, description=preview.error.description)


@pytest.mark.parametrize("format", TokenFormat)
def test_preview_matches_service_user_tokens(world: World, format: TokenFormat) -> None:
    robot = world.make_service_user_program(token_format=format)
    project = world.make_project(robot.organization, roles=["reader"])
    world.make_user_grant(robot.user, project, "reader")
    both = f"profile offline_access {world.audience_scope()} {world.audience_scope(project.id)} {ROLES}"
    for rest in ("", ROLES, both):
        scope = f"openid {rest}".strip()
        preview = preview_claims(world, robot.id, None, scope)
        asking = world.make_application(world.instance.project_id if "aud" in scope else None)
        real = claims_of_response(robot.request_token(scope).json, world, asking)
        expected = claims_by_carrier(way_of(preview, JWT_BEARER))
        if "aud" not in scope:
            # No application is in the audience.
            assert real.pop(ClaimsCarrier.INTROSPECTION) == {"active": False}
            expected.pop(ClaimsCarrier.INTROSPECTION)
        assert expected == real
    # With a secret it gets the same kinds of tokens.
    scope = f"openid profile {world.audience_scope()}"
    answer = world.post_token_request(
        world.make_service_user_secret(robot), {"grant_type": "client_credentials", "scope": scope}
    )
    grant_preview = way_of(preview_claims(world, robot.id, None, scope), "client_credentials")
    assert claims_by_carrier(grant_preview) == claims_of_response(check_token_response(answer), world, None)


def test_preview_reports_refusals(world: World) -> None:
    person, project = make_user_and_project(world)
    foreign, guarded = world.make_project(), world.make_project(check_roles=True)
    client, parameters = make_application(world, project), {}
    for scope in (f"openid {world.audience_scope(foreign.id)}", "profile", f"openid {ROLES[:-1]}\t"):
        parameters[scope] = client
    # A user without a required role.
    parameters["openid"] = make_application(world, guarded)
    for scope, credentials in parameters.items():
        answer = world.make_browser_session(person).authorize(credentials, scope=scope)
        error = dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
        [preview] = preview_claims(world, person.id, credentials.client_id, scope).grant_previews
        assert preview.error is not None
        assert (preview.error.error, preview.error.description) == (error["error"], error["error_description"])
        assert preview.previewed_claims == ()
    foreign_scope = f"openid urn:service:iam:org:id:{foreign.organization_id}"
    refused = way_of(preview_claims(world, person.id, client.client_id, foreign_scope), None).error
    assert refused is not None
    assert refused.error == "access_denied"


def test_preview_reports_disabled_response_type_and_grant(world: World) -> None:
    person, project = make_user_and_project(world)
    client = world.make_web_application(project.id)
    [preview] = preview_claims(world, person.id, client.client_id, "openid", "id_token").grant_previews
    assert preview.error is not None
    assert preview.error.error == "unauthorized_client"
    client = world.make_web_application(project.id, grant_types=frozenset())
    token_preview_result = preview_claims(world, person.id, client.client_id, "openid")
    assert list(claims_by_carrier(way_of(token_preview_result, None))) == [ClaimsCarrier.CODE]
    refusal = way_of(token_preview_result, "authorization_code").error
    assert refusal is not None
    assert refusal.description == "this application may not use authorization_code"


def test_preview_of_deactivated_users_is_empty(world: World) -> None:
    person, project = make_user_and_project(world)
    client = make_application(world, project)
    with world.transaction_services() as services:
        services.users.deactivate(person.id, principal=Principal.OPERATOR)
    robot = world.make_service_user_program()
    with world.transaction_services() as services:
        services.service_users.deactivate(robot.id, principal=Principal.OPERATOR)
    of_robot = preview_claims(world, robot.id, None, "openid").grant_previews
    previews = [*preview_claims(world, person.id, client.client_id, "openid").grant_previews, *of_robot]
    assert [preview.grant_type for preview in previews] == [None, "client_credentials", JWT_BEARER]
    assert all(preview.error is not None and preview.previewed_claims == () for preview in previews)


def test_preview_explains_claims(world: World) -> None:
    person, project = make_user_and_project(world)
    client = make_application(world, project, assert_roles_in_id_token=True)
    preview = preview_claims(world, person.id, client.client_id, f"openid email unknown {ROLES}")
    carried = [
        previewed_claims
        for grant_preview in preview.grant_previews
        for previewed_claims in grant_preview.previewed_claims
    ]
    reasons = {
        (previewed_claims.carrier, claim.name): claim.reason
        for previewed_claims in carried
        for claim in previewed_claims.claims
    }
    assert reasons[ClaimsCarrier.USERINFO, "email"] == "scope email"
    assert reasons[ClaimsCarrier.USERINFO, f"urn:service:iam:org:project:{project.id}:roles"] == f"scope {ROLES}"
    assert (
        reasons[ClaimsCarrier.ID_TOKEN, "urn:service:iam:org:project:roles"]
        == "the application asserts roles in ID tokens"
    )
    left_out = {
        omitted_item.name: omitted_item.reason
        for grant_preview in preview.grant_previews
        for omitted_item in grant_preview.omitted
    }
    assert left_out["scope unknown"] == "There is no such scope."
    assert "“User Info inside ID Token” is off." in left_out["email, email_verified in the ID token"]


def test_previewed_tokens_are_worthless(world: World) -> None:
    """They are signed with an unpublished key and not stored."""
    robot = world.make_service_user_program(token_format=TokenFormat.JWT)
    before = len(list(world.all_audit_events()))
    with world.read_only_services() as services:
        published = {key.id for key, _ in services.signing_keys.published_keys()}
    assert all(preview.error is None for preview in preview_claims(world, robot.id, None, "openid").grant_previews)
    assert "preview" not in published
    assert len(list(world.all_audit_events())) == before


@pytest.mark.storages("memory")  # The preview does not use the storage.
@pytest.mark.parametrize(
    ("rule", "grant_type"),
    [
        ("identity.provider.authorization_request.Scope.require_openid", None),
        ("identity.provider.consent.check_and_resolve_scopes", None),
        ("identity.provider.endpoints.token.check_and_resolve_scopes", "authorization_code"),
    ],
)
def test_preview_runs_the_endpoints_rules(
    world: World, monkeypatch: pytest.MonkeyPatch, rule: str, grant_type: str | None
) -> None:
    """The preview applies a rule that was added to an endpoint, signs with no real key, and stores nothing."""
    person, project = make_user_and_project(world)
    client = make_application(world, project, access_token_type=TokenFormat.JWT)

    def forbidden(*_: object, **__: object) -> Any:
        raise AssertionError("the preview signs or stores")

    for name in ("store_family", "store_access_token", "redeem_code", "rotate_refresh_token"):
        monkeypatch.setattr(f"identity.services.tokens.TokenService.{name}", forbidden)
    monkeypatch.setattr("identity.services.signing_keys.SigningKeyService.current_signing_key", forbidden)
    scope = "openid offline_access"
    assert len(preview_claims(world, person.id, client.client_id, scope).grant_previews) == 3

    def closed(*_: object, **__: object) -> Any:
        raise InvalidGrant("closed on Sundays")

    monkeypatch.setattr(rule, closed)
    error = way_of(preview_claims(world, person.id, client.client_id, scope), grant_type).error
    assert error is not None
    assert error.description == "closed on Sundays"


class SilentGrant(GrantType):
    """A plugin's grant without a preview."""

    grant_type = "urn:example:silent"
    parameters = frozenset[str]()
    client_requirement = ClientRequirement.NONE

    def authorize(self, request: TokenRequest, context: Context) -> Authorization:
        raise InvalidGrant("nobody")


def test_preview_covers_plugin_grants(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grants are recognized by their interface, not by name."""
    robot = world.make_service_user_program()
    grants = world.identity.protocol_registry.grant_types
    renamed = {f"urn:example:{number}": grant for number, grant in enumerate(grants.values())}
    for name, grant in renamed.items():
        monkeypatch.setattr(type(grant), "grant_type", name)
    monkeypatch.setattr(
        world.identity,
        "protocol_registry",
        replace(world.identity.protocol_registry, grant_types={**renamed, "urn:example:silent": SilentGrant()}),
    )
    preview = preview_claims(world, robot.id, None, "openid")
    assert [
        type(renamed[grant_preview.grant_type]).__name__
        for grant_preview in preview.grant_previews
        if grant_preview.grant_type
    ] == [
        "ClientCredentialsGrant",
        "JwtBearerGrant",
    ]
    assert preview.unsupported_grant_types == ("urn:example:silent",)


# --- the page ---------------------------------------------------------------------------------------------------------


def show(browser: Browser, organization: Organization, **parameters: str) -> Any:
    query = f"?{urlencode(parameters)}" if parameters else ""
    return browser.open(f"/console/organizations/{organization.id}/token-preview{query}")


def test_preview_page_for_user_and_application(world: World, owner: Browser, organization: Organization) -> None:
    person = world.make_human_user(organization)
    project = world.make_project(organization)
    client = world.make_web_application(project.id)
    page = show(owner, organization)
    assert "Nothing is issued or recorded here." in page
    assert page.html.select("table, .notice") == []
    # Selected from the options, as in a browser without scripts.
    offered = {item["value"]: item.get_text() for item in page.html.select("select option")}
    assert offered[person.id] == f"{person.display_name} ({person.user_name})"
    assert client.client_id in offered
    page = owner.submit(
        {"user_id": person.id, "application_id": client.client_id, "scope": "openid profile unknown"},
        form=next(name for name, form in page.forms.items() if "user_id" in form.fields),
    )
    assert page.status_int == 200
    assert [item.get_text() for item in page.html.select("h2[id$=-title], h3[id$=-title]")] == [
        "Sign-in",
        "Code",
        "Left out",
        "authorization_code",
        "Access token",
        "ID token",
        "Answer of userinfo",
        "Answer of introspection",
        "Left out",
    ]
    row = next(item for item in page.html.select("#way-1-userinfo tbody tr") if item.th.get_text() == "family_name")
    assert [cell.get_text(strip=True) for cell in row.find_all("td")] == ['"Lovelace"', "scope profile"]
    assert "There is no such scope." in page


def test_preview_page_for_service_user(world: World, owner: Browser, organization: Organization) -> None:
    robot = world.make_service_user_program(organization)
    page = show(owner, organization, user_id=f"{robot.user.user_name}@{organization.primary_domain}")
    assert page.status_int == 200
    assert [item.get_text() for item in page.html.select("h2[id$=-title]")] == ["client_credentials", JWT_BEARER]
    assert page.html.find(id="way-0-access_token") is not None
    assert page.html.find(id="way-0-code") is None
    scope = f"openid {world.audience_scope(world.make_project().id)}"
    page = show(owner, organization, user_id=robot.id, scope=scope)
    assert page.status_int == 200
    assert "This would be refused:" in page
    assert "invalid_scope" in page


def test_preview_options_are_searched(world: World, owner: Browser, organization: Organization) -> None:
    """With more options than the page lists, and without scripts."""
    person, robot = world.make_human_user(organization), world.make_service_user_program(organization)
    project = world.make_project(organization)
    client, credentials = world.make_web_application(project.id), world.make_web_application(project.id)
    foreign = world.make_human_user()

    def offered(page: Any, name: str) -> set[str]:
        return {item["value"] for item in page.html.select(f"#field-{name} option")}

    page = show(owner, organization, user_id="", user_query=person.user_name)
    assert page.status_int == 200
    assert offered(page, "user_id") == {"", person.id}
    page = show(
        owner, organization, user_id=person.id, user_query=robot.user.user_name, application_id=client.client_id
    )
    assert page.status_int == 200
    assert offered(page, "user_id") == {"", person.id, robot.id}
    assert page.html.select("#field-user_id option[selected]")[0]["value"] == person.id
    page = show(owner, organization, application_id="", application_query=credentials.client_id)
    assert offered(page, "application_id") == {"", credentials.client_id}
    page = show(owner, organization, application_id="", application_query=project.name)
    assert offered(page, "application_id") == {"", client.client_id, credentials.client_id}
    assert offered(show(owner, organization, user_id="", user_query=foreign.id), "user_id") == {""}


@pytest.mark.storages("memory")  # Look-ups are the same in all storages.
def test_preview_page_refuses_invalid_query(world: World, owner: Browser, organization: Organization) -> None:
    person, robot = world.make_human_user(organization), world.make_service_user_program(organization)
    foreign = world.make_human_user()
    client = world.make_web_application(world.make_project(organization).id)
    credentials = world.make_web_application()
    for parameters, field, sentence in (
        ({"user_id": ""}, "user_id", "Choose a user, an application or both."),
        ({"user_id": "nobody"}, "user_id", "There is no such user."),
        ({"user_id": foreign.id}, "user_id", "There is no such user."),
        ({"user_id": person.id}, "application_id", "Choose the application that the user signs in to."),
        ({"user_id": person.id, "application_id": "none"}, "application_id", "There is no such application."),
        (
            {"user_id": person.id, "application_id": credentials.client_id},
            "application_id",
            "There is no such application.",
        ),
        ({"user_id": robot.id, "application_id": client.client_id}, "application_id", "leave this empty."),
    ):
        page = show(owner, organization, **parameters, scope="openid kept")
        assert page.status_int == 422, parameters
        assert sentence in page.html.find(id=f"error-{field}").get_text(), parameters
        assert 'value="openid kept"' in page
        assert page.html.select("table") == []


def test_resources_limit_the_audience(world: World, organization: Organization) -> None:
    named = world.make_project(organization)
    with world.transaction_services() as services:
        command = ChangeProject.decode({"resource_uris": ["urn:example:orders"]})
        services.projects.change(named.id, command, principal=Principal.OPERATOR)
    person, client = world.make_human_user(organization), world.make_web_application(named.id)
    session = world.make_browser_session(person)
    found = preview_claims(world, person.id, client.client_id, "openid", resource="urn:example:orders")
    assert way_of(found, "authorization_code").audience == (named.id, "urn:example:orders")
    tokens = world.obtain_tokens(client, session, scope="openid", resource="urn:example:orders")
    introspected = world.client.introspect(tokens["access_token"], world.make_application(named.id)).json["aud"]
    assert introspected == [named.id, "urn:example:orders"]
    refused = preview_claims(world, person.id, client.client_id, "openid", resource="urn:example:unknown")
    assert [type(preview.error) for preview in refused.grant_previews] == [InvalidTarget]
    robot = world.make_service_user_program(organization)
    found = preview_claims(world, robot.id, None, "openid", resource="urn:example:orders")
    assert all(preview.audience == (named.id, "urn:example:orders") for preview in found.grant_previews)


def test_page_previews_resources(world: World, owner: Browser, organization: Organization) -> None:
    client = world.make_web_application(world.make_project(organization).id)
    person = world.make_human_user(organization)
    query = {"user_id": person.id, "application_id": client.client_id, "scope": "openid", "response_type": "code"}
    path = f"/console/organizations/{organization.id}/token-preview?{urlencode(query)}"
    page = owner.open(f"{path}&resource=urn:example:unknown")
    assert page.html.find(id="field-resource")["value"] == "urn:example:unknown"
    assert "invalid_target" in page
    project_id = world.operator_services.applications.get(client.client_id).project_id
    page = owner.open(f"{path}&resource=urn:service:iam:org:project:id:{project_id}")
    assert "invalid_target" not in page
    assert "the resources that the request names" in page


def test_application_without_response_types_is_previewed_by_its_grants(
    world: World, organization: Organization
) -> None:
    device_code = "urn:ietf:params:oauth:grant-type:device_code"
    project = world.make_project(organization)
    client_id = world.make_public_application(
        project.id, grant_types=frozenset({device_code}), response_types=frozenset()
    )
    found = preview_claims(world, world.make_human_user(organization).id, client_id, "openid")
    assert [preview.grant_type for preview in found.grant_previews if preview.error is None] == [device_code]
