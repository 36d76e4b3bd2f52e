"""Client certificates (RFC 8705): authentication, bound tokens, and which headers count."""

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st

from identity.clock import now
from identity.crypto.certificates import ClientCertificate, is_certificate_name
from identity.crypto.secrets import new_token, token_digest
from identity.crypto.signature_keys import InvalidKey
from identity.domain.applications import CERTIFICATE_NAME_FIELDS, ApplicationType
from identity.domain.errors import Conflict, Invalid
from identity.domain.permissions import Resource
from identity.key_sets import KeySetCache, KeySetClient
from identity.outbound_http import OutboundResponse
from identity.services.commands.applications import ChangeApplication
from identity.settings_parser import InvalidSetting
from identity.storage.contract import factories as make
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.response_checks import check_oauth_error
from identity.testing.service_test_client import TOKEN_EXCHANGE, bearer_headers
from identity.testing.world import World
from tests.plugins.client_certificates import HEADER, PROXY, SUBJECT, IssuedCertificate, ask, issue

pytestmark = pytest.mark.storages("memory")

VALUES = {
    "tls_client_auth_subject_dn": SUBJECT,
    "tls_client_auth_san_dns": "APP.example.com",
    "tls_client_auth_san_uri": "spiffe://example.com/app",
    "tls_client_auth_san_ip": "192.0.2.7",
    "tls_client_auth_san_email": "app@example.com",
}
FAILED = "client authentication failed"


@pytest.fixture
def authority() -> IssuedCertificate:
    return issue(now(), subject="CN=Clients,O=Example", is_authority=True)


@pytest.fixture
def make_tls_world(make_world: WorldFactory, tmp_path: Path, authority: IssuedCertificate) -> Callable[..., World]:
    def make(**settings: str) -> World:
        (tmp_path / "authorities.pem").write_text(f"Clients\n{authority.pem}")
        usual = {
            "identity.trusted_proxy": PROXY,
            "identity.plugin.mutual_tls.certificate_header": HEADER,
            "identity.plugin.mutual_tls.certificate_authorities": f"{tmp_path}/authorities.pem",
        }
        return make_world(**usual | settings)

    return make


@pytest.fixture
def world(make_tls_world: Callable[..., World]) -> World:
    return make_tls_world()


def register(world: World, method: str = "tls_client_auth", **members: Any) -> str:
    application, secret = world.register_application(
        **{
            "type": ApplicationType.API,
            "authentication_method": method,
            "grant_types": frozenset({"client_credentials"}),
            **members,
        }
    )
    assert secret is None
    return application.id


def request_token(world: World, client_id: str, certificate: str | None, **options: Any) -> Any:
    form = {"grant_type": "client_credentials", "client_id": client_id}
    return ask(world, "token_endpoint", certificate, form, **options)


# --- authentication ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", CERTIFICATE_NAME_FIELDS)
def test_certificate_of_an_authority_authenticates_by_each_name(
    world: World, authority: IssuedCertificate, field: str
) -> None:
    """RFC 8705 §2.1, in the forms in which proxies write certificates."""
    certificate = issue(world.clock(), authority)
    client_id = register(world, **{field: VALUES[field]})
    for header in certificate.headers:
        assert request_token(world, client_id, header).status_int == 200
    other = issue(world.clock(), authority, subject="C=CH,O=Example,CN=app", names=[x509.DNSName("*.example.com")])
    check_oauth_error(request_token(world, client_id, other.base64), "invalid_client", status=401)


def test_certificates_that_prove_nothing_are_refused(world: World, authority: IssuedCertificate) -> None:
    """A proxy that asks for any certificate lets no one in: the service verifies the issuer itself."""
    now, client_id = world.clock(), register(world, tls_client_auth_subject_dn=SUBJECT)
    impostor = issue(now, subject="CN=Clients,O=Example", is_authority=True)
    intermediate = issue(now, authority, subject="CN=app,O=Intermediate")
    # Python has no year 0.
    undated = issue(now.replace(year=2060)).der.replace(b"2060", b"0000")
    refused = [
        issue(now).base64,
        issue(now, impostor).base64,
        issue(now, intermediate).base64,
        issue(now, authority, usage=ExtendedKeyUsageOID.SERVER_AUTH).base64,
        issue(now, authority, age=31).base64,
        issue(now, authority, age=-1).base64,
        issue(now, authority, subject="CN=app,O=Example").base64,
        b64encode(undated).decode(),
        "rubbish",
        issue(now, authority).base64[:-8],
        f"{issue(now, authority).base64}, {issue(now, authority).base64}",
        issue(now, authority).headers[2] * 2,
    ]
    for certificate in refused:
        answer = request_token(world, client_id, certificate)
        check_oauth_error(answer, "invalid_client", status=401)
        assert answer.json["error_description"] == FAILED
    world.clock.advance(30 * 86400)
    assert request_token(world, client_id, issue(world.clock(), authority).base64).status_int == 401, "authority ended"


def test_certificate_with_a_registered_key_authenticates(world: World) -> None:
    """RFC 8705 §2.2: of any issuer, and at each endpoint."""
    certificate, other = issue(world.clock()), issue(world.clock())
    client_id = register(world, "self_signed_tls_client_auth", jwks=json.dumps({"keys": [other.jwk, certificate.jwk]}))
    assert request_token(world, client_id, certificate.base64).status_int == 200
    renewed = issue(world.clock())
    check_oauth_error(request_token(world, client_id, renewed.base64), "invalid_client", status=401)
    form = {"client_id": client_id, "token": "unknown"}
    assert ask(world, "introspection_endpoint", certificate.base64, form).json == {"active": False}
    [refusal] = world.audit_events(event="authentication.refused")
    assert refusal.reason == "the certificate is not the application's"


def test_new_key_at_the_address_is_found(world: World) -> None:
    """The key set is fetched again for an unknown certificate, at most once a minute."""
    old, new, seconds = issue(world.clock()), issue(world.clock()), [1000.0]
    bodies = [[old.jwk], [new.jwk]]
    fetched = []

    class Host:
        def send(self, *_: Any, **__: Any) -> OutboundResponse:
            fetched.append(1)
            return OutboundResponse(200, json.dumps({"keys": bodies[min(len(fetched), 2) - 1]}).encode(), "")

    world.identity.process_state.key_sets = KeySetClient(Host(), cache=KeySetCache(lambda: seconds[0]))
    client_id = register(world, "self_signed_tls_client_auth", jwks_uri="https://app.example.com/jwks.json")
    assert request_token(world, client_id, old.base64).status_int == 200
    assert request_token(world, client_id, new.base64).status_int == 200
    for _ in range(2):
        assert request_token(world, client_id, old.base64).status_int == 401
    assert len(fetched) == 2


def test_header_counts_only_from_the_proxy(world: World, authority: IssuedCertificate) -> None:
    client_id = register(world, tls_client_auth_subject_dn=SUBJECT)
    certificate = issue(world.clock(), authority).base64
    for options in ({"peer": "192.0.2.1"}, {"peer": ""}, {"peer": "none"}):
        assert request_token(world, client_id, certificate, **options).status_int == 401
    # Another header than the configured one.
    answer = request_token(world, client_id, None, headers={"Client-Cert": f":{certificate}:"})
    assert answer.status_int == 401
    assert request_token(world, client_id, "").status_int == 401


def test_registration_decides_between_methods(world: World, authority: IssuedCertificate) -> None:
    """A certificate beside credentials is no second method, and replaces none."""
    certificate = issue(world.clock(), authority)
    by_name = register(world, tls_client_auth_subject_dn=SUBJECT)
    public = world.make_public_application()
    secret = world.make_application(grant_types=frozenset({"client_credentials"}))
    form = {"grant_type": "client_credentials"}
    authorization = {"Authorization": secret.header}
    assert ask(world, "token_endpoint", certificate.base64, form, headers=authorization).status_int == 200
    assert request_token(world, secret.client_id, certificate.base64).status_int == 401
    assert request_token(world, "unknown", certificate.base64).status_int == 401
    assert request_token(world, by_name, certificate.base64, headers=authorization).status_int == 400
    revocation = {"client_id": public, "token": "unknown"}
    assert ask(world, "revocation_endpoint", certificate.base64, revocation).status_int == 200
    assert request_token(world, by_name, None).status_int == 401


def test_names_of_certificates_are_validated(world: World) -> None:
    """Exactly one, and one that a certificate can have."""
    for members in (
        {},
        {"tls_client_auth_subject_dn": SUBJECT, "tls_client_auth_san_dns": "app.example.com"},
        {"tls_client_auth_subject_dn": "app"},
        {"tls_client_auth_subject_dn": " "},
        {"tls_client_auth_san_dns": "*.example.com"},
        {"tls_client_auth_san_dns": "app example"},
        {"tls_client_auth_san_uri": "app"},
        {"tls_client_auth_san_ip": "192.0.2.0/24"},
        {"tls_client_auth_san_email": "app"},
    ):
        with pytest.raises(Invalid):
            register(world, **members)
    with pytest.raises(Invalid, match="without spaces after the commas"):
        register(world, tls_client_auth_subject_dn="C = CH, O = Example, CN = app")
    with pytest.raises(Invalid):
        register(world, "self_signed_tls_client_auth")
    client_id = register(world, tls_client_auth_subject_dn=SUBJECT)
    with pytest.raises(Conflict):
        world.operator_services.applications.add_secret(client_id)


# --- bound tokens -----------------------------------------------------------------------------------------------------


def test_tokens_are_bound_to_the_certificate(world: World, authority: IssuedCertificate) -> None:
    """RFC 8705 §3: in JWTs and introspection; userinfo and the management API refuse them without it."""
    certificate, other = (issue(world.clock(), authority) for _ in range(2))
    client_id = register(
        world,
        tls_client_auth_subject_dn=SUBJECT,
        required_sender_constraint="mutual_tls",
        access_token_type="jwt",
    )
    members = request_token(world, client_id, certificate.base64).json
    thumbprint = ClientCertificate.parse(certificate.base64).thumbprint
    assert members["token_type"] == "Bearer"
    assert decode_jwt_unverified(members["access_token"])[1]["cnf"] == {"x5t#S256": thumbprint}
    form = {"client_id": client_id, "token": members["access_token"]}
    introspected = ask(world, "introspection_endpoint", certificate.base64, form).json
    assert (introspected["cnf"], introspected["token_type"]) == ({"x5t#S256": thumbprint}, "Bearer")
    # The certificate that authenticates counts at each request, so another one of the same name gets other tokens.
    bound_otherwise = request_token(world, client_id, other.base64).json["access_token"]
    assert decode_jwt_unverified(bound_otherwise)[1]["cnf"] != {"x5t#S256": thumbprint}


def test_userinfo_needs_the_certificate(world: World) -> None:
    """Of a public client, whose refresh token is bound too; the code is not."""
    certificate, other = issue(world.clock()), issue(world.clock())
    client_id = world.make_public_application(required_sender_constraint="mutual_tls")
    code = world.make_code(client_id, scope="openid offline_access")
    form = {"grant_type": "authorization_code", "client_id": client_id, **code.form()}
    check_oauth_error(ask(world, "token_endpoint", None, form), "invalid_request")
    tokens = ask(world, "token_endpoint", certificate.base64, form)
    assert tokens.status_int == 200, tokens
    headers = bearer_headers(tokens.json["access_token"])
    assert ask(world, "userinfo_endpoint", certificate.base64, headers=headers).json["sub"]
    for options in ({"peer": "192.0.2.1"}, {}):
        sent = certificate.base64 if options else other.base64
        answer = ask(world, "userinfo_endpoint", sent, headers=headers, **options)
        check_oauth_error(answer, "invalid_token", status=401)
    check_oauth_error(ask(world, "userinfo_endpoint", None, headers=headers), "invalid_token", status=401)
    assert ask(world, "userinfo_endpoint", "rubbish", headers=headers).status_int == 400
    refresh = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": tokens.json["refresh_token"]}
    check_oauth_error(ask(world, "token_endpoint", other.base64, refresh), "invalid_grant")
    # It stays bound even if the application need not bind tokens any more.
    command = ChangeApplication.decode({"required_sender_constraint": None})
    world.operator_services.applications.change(client_id, command)
    check_oauth_error(ask(world, "token_endpoint", None, refresh), "invalid_grant")
    assert ask(world, "token_endpoint", certificate.base64, refresh).json["access_token"]


def test_management_api_needs_the_certificate(world: World) -> None:
    certificate, robot, text = issue(world.clock()), world.make_manager_program(), new_token()
    with world.transaction_services() as services:
        subject, instance = services.storage.users.find_subject(robot.id), services.find_instance()
        assert subject is not None
        assert instance is not None
        token = make.access_token(
            subject.user,
            digest=token_digest(text),
            audience=(instance.project_id,),
            issued_at=world.clock(),
            expires_at=world.clock() + timedelta(hours=1),
            confirmation=f"x5t#S256:{ClientCertificate.parse(certificate.base64).thumbprint}",
        )
        services.storage.tokens.add_access_token(token)
    url, headers = f"{world.client.management_url}/me", bearer_headers(text)
    assert ask(world, url, certificate.base64, headers=headers).status_int == 200
    for sent, peer in ((certificate.base64, "192.0.2.1"), (issue(world.clock()).base64, PROXY), (None, PROXY)):
        assert ask(world, url, sent, headers=headers, peer=peer).status_int == 401
    assert ask(world, url, "rubbish", headers=headers).status_int in (400, 401)


def test_tokens_through_the_browser_are_refused(world: World) -> None:
    """The certificate is unknown there, and another key does not replace it."""
    responses = frozenset({"code", "id_token token"})
    client_id = world.make_public_application(required_sender_constraint="mutual_tls", response_types=responses)
    session = world.make_browser_session()
    for key in (None, "x" * 43):
        answer = session.authorize(client_id, response_type="id_token token", dpop_jkt=key)
        assert "error=invalid_request" in answer.headers["Location"]


def test_exchanged_token_of_a_bound_one_is_bound(world: World) -> None:
    """RFC 8693 §2.1; the certificate of the exchanging client."""
    certificate = issue(world.clock())
    organization = world.make_organization()
    project, session = world.make_project(organization), world.make_browser_session(world.make_human_user(organization))
    client_id = world.make_public_application(project.id, required_sender_constraint="mutual_tls")
    api = world.make_application(project.id, grant_types=frozenset({TOKEN_EXCHANGE}))
    code = world.make_code(client_id, session, scope="openid")
    form = {"grant_type": "authorization_code", "client_id": client_id, **code.form()}
    token = ask(world, "token_endpoint", certificate.base64, form).json["access_token"]
    form = {
        "grant_type": TOKEN_EXCHANGE,
        "subject_token": token,
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
    }
    headers = {"Authorization": api.header}
    check_oauth_error(ask(world, "token_endpoint", None, form, headers=headers), "invalid_request")
    other = issue(world.clock())
    answer = ask(world, "token_endpoint", other.base64, form, headers=headers)
    assert answer.status_int == 200, answer.json
    exchanged = answer.json
    assert ask(world, "introspection_endpoint", None, {"token": exchanged["access_token"]}, headers=headers).json[
        "cnf"
    ] == {"x5t#S256": ClientCertificate.parse(other.base64).thumbprint}


# --- settings ---------------------------------------------------------------------------------------------------------


def test_console_shows_the_addresses_for_certificates(make_tls_world: Callable[..., World]) -> None:
    """To applications that have to present one, and to no others."""
    world = make_tls_world(**{"identity.plugin.mutual_tls.base_url": "https://mtls.example.com"})
    browser, person = Browser(world), world.make_human_user()
    world.assign_manager_role(person, "IAM_OWNER", resource=Resource.INSTANCE)
    browser.start_session(person)
    for constraint in ("mutual_tls", None):
        application = world.make_web_application(required_sender_constraint=constraint)
        page = browser.open(f"/console/applications/{application.client_id}")
        assert ("https://mtls.example.com/oauth/v2/token" in page.text) is (constraint is not None)


def test_discovery_lists_what_is_configured(
    world: World, make_tls_world: Callable[..., World], make_world: WorldFactory
) -> None:
    methods = world.client.discovery["introspection_endpoint_auth_methods_supported"]
    assert {"tls_client_auth", "self_signed_tls_client_auth"} <= {*methods}
    assert world.client.discovery["tls_client_certificate_bound_access_tokens"] is True
    assert "mtls_endpoint_aliases" not in world.client.discovery
    mtls = {"identity.plugin.mutual_tls.base_url": "https://mtls.example.com"}
    without_authorities = make_tls_world(**mtls, **{"identity.plugin.mutual_tls.certificate_authorities": ""})
    document = without_authorities.client.discovery
    assert "tls_client_auth" not in document["token_endpoint_auth_methods_supported"]
    assert document["mtls_endpoint_aliases"]["token_endpoint"] == "https://mtls.example.com/oauth/v2/token"
    assert "userinfo_endpoint" in document["mtls_endpoint_aliases"]
    assert "authorization_endpoint" not in document["mtls_endpoint_aliases"]
    with pytest.raises(Invalid):
        register(without_authorities, tls_client_auth_subject_dn=SUBJECT)
    nothing = make_world(**mtls).client.discovery
    assert not {"mtls_endpoint_aliases", "tls_client_certificate_bound_access_tokens"} & nothing.keys()
    assert "self_signed_tls_client_auth" not in nothing["token_endpoint_auth_methods_supported"]


def test_incomplete_settings_are_reported(make_tls_world: Callable[..., World], make_world: WorldFactory) -> None:
    for settings, expected in (
        ({"identity.trusted_proxy": "none"}, "names no proxy"),
        ({"identity.plugin.mutual_tls.certificate_header": ""}, "certificate_header is empty"),
        ({}, None),
    ):
        found = make_tls_world(**settings).identity.system_checks.run().get("mutual_tls")
        assert (found is None) if expected is None else (found is not None and expected in found)


def test_unusable_settings_are_refused(
    make_tls_world: Callable[..., World], tmp_path: Path, authority: IssuedCertificate
) -> None:
    (tmp_path / "empty.pem").write_text("")
    (tmp_path / "client.pem").write_text(authority.pem + issue(now(), authority).pem)
    for name, value in (
        ("certificate_header", "X-Other"),
        ("base_url", "http://mtls.example.com"),
        ("base_url", "https://mtls.example.com/path"),
        ("certificate_authorities", f"{tmp_path}/missing.pem"),
        ("certificate_authorities", f"{tmp_path}/empty.pem"),
        ("certificate_authorities", f"{tmp_path}/client.pem"),
    ):
        with pytest.raises(InvalidSetting, match=name):
            make_tls_world(**{f"identity.plugin.mutual_tls.{name}": value})


# --- parsing ----------------------------------------------------------------------------------------------------------

_VALID = issue(now())


@given(
    st.one_of(
        st.text(),
        st.binary(max_size=200).map(lambda data: b64encode(data).decode()),
        st.builds(
            lambda index, byte: b64encode(_VALID.der[:index] + bytes([byte]) + _VALID.der[index + 1 :]).decode(),
            st.integers(0, len(_VALID.der) - 1),
            st.integers(0, 255),
        ),
    )
)
def test_any_certificate_is_read_or_refused(header: str) -> None:
    try:
        certificate = ClientCertificate.parse(header)
    except InvalidKey:
        return
    for field, name in VALUES.items():
        certificate.has_name(field, name)
    certificate.is_issued_by([certificate], now())


@given(st.sampled_from(CERTIFICATE_NAME_FIELDS), st.text(max_size=60))
def test_any_name_is_accepted_or_refused(field: str, name: str) -> None:
    assert is_certificate_name(field, name) in (True, False)
