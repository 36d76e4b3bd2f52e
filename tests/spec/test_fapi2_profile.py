"""Applications with a security profile: FAPI 2.0 Security Profile and FAPI 2.0 Message Signing."""

from typing import Any

import pytest

from identity.crypto.signature_keys import PrivateKey
from identity.domain.errors import Invalid
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.service_users import AddFederatedCredential
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.response_checks import check_oauth_error
from identity.testing.world import World
from tests.spec.fapi_client import FapiClient, read_jarm, without_verifier
from tests.spec.outside_issuer import GITHUB, MAIN, OutsideIssuer
from tests.spec.test_signing_algorithms import switched_on, verified

pytestmark = pytest.mark.storages("memory")


ALGORITHMS = {"identity.signing_algorithms": "RS256 ES256"}


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    return switched_on(make_world(**ALGORITHMS))


@pytest.fixture
def client(world: World) -> FapiClient:
    return FapiClient(world)


@pytest.fixture
def signing(world: World) -> FapiClient:
    return FapiClient(world, "fapi2_message_signing")


def test_profile_signs_people_in_with_bound_tokens(client: FapiClient, browser: Browser) -> None:
    code, sent = client.sign_in(browser)
    members = client.redeem(code, sent).json
    assert members["token_type"] == "DPoP"
    assert verified(client.world, members["id_token"], "ES256")["aud"] == client.client_id


def test_setting_that_contradicts_the_profile_is_refused_by_name(client: FapiClient) -> None:
    contradictions: tuple[tuple[str, Any], ...] = (
        ("authentication_method", "client_secret_basic"),
        ("authentication_method", "none"),
        ("response_types", ["code", "code id_token"]),
        ("grant_types", ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"]),
        ("id_token_signed_response_alg", None),
        ("id_token_signed_response_alg", "RS256"),
        ("userinfo_signed_response_alg", "RS256"),
        ("authorization_signed_response_alg", "RS256"),
        ("introspection_signed_response_alg", "RS256"),
        ("token_endpoint_auth_signing_alg", "RS256"),
        ("request_object_signing_alg", "RS256"),
        ("development", True),
        ("redirect_uris", ["HTTP://localhost/cb"]),
    )
    for field, value in contradictions:
        for change in (
            lambda changed: client.world.operator_services.applications.change(
                client.client_id, ChangeApplication.decode(changed)
            ),
            lambda changed: FapiClient(client.world, **changed),
        ):
            with pytest.raises(Invalid) as refusal:
                change({field: value})
            assert field in refusal.value.fields
            # Client certificates need a proxy that passes them.
            assert "tls_client_auth" not in refusal.value.fields[field]


def test_only_pushed_requests_are_accepted(client: FapiClient, browser: Browser) -> None:
    description = client.party.expect_error_at_once(browser, "invalid_request")
    assert "push" in description


def test_pushed_requests_need_pkce(client: FapiClient) -> None:
    check_oauth_error(client.push(without_verifier(client.new_request()).parameters), "invalid_request")


def test_tokens_are_bound_or_not_issued(client: FapiClient, browser: Browser) -> None:
    code, sent = client.sign_in(browser)
    answer = client.redeem(code, sent, proves_key=False)
    check_oauth_error(answer, "invalid_request")
    assert "prove its key" in answer.json["error_description"]


def test_client_assertion_is_for_the_issuer_alone(client: FapiClient) -> None:
    """FAPI 2.0 Security Profile §5.3.2.1: the issuer as text, not a list, and no endpoint."""
    issuer, discovery = client.world.issuer, client.world.client.discovery
    form = client.new_request().parameters
    for audience in ([issuer], discovery["token_endpoint"], discovery["pushed_authorization_request_endpoint"]):
        check_oauth_error(client.push(form, aud=audience), "invalid_client", status=401)
    assert client.push(form).status_int == 201


def test_no_outside_issuer_authenticates_the_client(world: World) -> None:
    issuer = OutsideIssuer(world)
    for profile, expected in ((None, "unauthorized_client"), ("fapi2", "invalid_client")):
        client = FapiClient(world, profile)
        trusted = AddFederatedCredential.build(name="CI", issuer=GITHUB, conditions=(f"sub = {MAIN}",))
        world.operator_services.federated_credentials.add(client.client_id, trusted)
        form = client.assertion_form() | {"client_id": client.client_id, "client_assertion": issuer.token()}
        answer = client.dpop.post(world.client.discovery["token_endpoint"], form | {"grant_type": "client_credentials"})
        check_oauth_error(answer, expected, status=401 if expected == "invalid_client" else 400)


def test_rs256_is_refused(world: World) -> None:
    """§5.4.1, for a key that could sign with PS256, too."""
    key = PrivateKey.generate(algorithm=SignatureAlgorithm.RS256)
    jwk = {name: value for name, value in key.public_key().to_jwk("one").items() if name != "alg"}
    for profile, expected in ((None, 201), ("fapi2", 401)):
        client = FapiClient(world, profile, jwks=f'{{"keys": [{str(jwk).replace(chr(39), chr(34))}]}}')
        assert client.push(client.new_request().parameters, key=key).status_int == expected


def test_code_ends_after_a_minute(make_world: WorldFactory) -> None:
    world = switched_on(make_world(**ALGORITHMS, **{"identity.authorization_code_lifetime": "5m"}))
    browser = Browser(world)
    browser.start_session(world.make_human_user())
    for profile, expected in ((None, 200), ("fapi2", 400)):
        client = FapiClient(world, profile)
        code, sent = client.sign_in(browser)
        world.clock.advance(60)
        assert client.redeem(code, sent).status_int == expected


def test_refresh_token_stays_and_is_worthless_without_the_client(client: FapiClient, browser: Browser) -> None:
    """§5.3.2.1: no rotation."""
    code, sent = client.sign_in(browser, scope="openid offline_access")
    refresh = client.redeem(code, sent).json["refresh_token"]
    form = {"grant_type": "refresh_token", "refresh_token": refresh}
    for _ in range(2):
        members = client.request_token(form).json
        assert "refresh_token" not in members
        assert client.dpop.get(client.world.client.discovery["userinfo_endpoint"], members["access_token"]).json["sub"]
    check_oauth_error(FapiClient(client.world).request_token(form), "invalid_grant")
    check_oauth_error(client.request_token(form, proves_key=False), "invalid_request")
    client.post("revocation_endpoint", {"token": refresh})
    check_oauth_error(client.request_token(form), "invalid_grant")


def test_message_signing_needs_signed_requests_and_responses(signing: FapiClient, browser: Browser) -> None:
    sent = signing.new_request(response_mode="jwt")
    check_oauth_error(signing.push(sent.parameters), "invalid_request")
    plain = signing.new_request()
    check_oauth_error(signing.push({"request": signing.request_object(plain)}), "invalid_request")
    for wrong in ({"nbf": None}, {"nbf": signing.party.now() - 3700}, {"exp": signing.party.now() + 3601}):
        answer = signing.push({"request": signing.request_object(sent, **wrong)})
        check_oauth_error(answer, "invalid_request_object")
    url = signing.pushed_url(sent, {"request": signing.request_object(sent)})
    members = read_jarm(browser.open(url, initiator=signing.party.origin).headers["Location"])
    assert members["iss"] == signing.world.issuer
    assert signing.redeem(members["code"], sent).status_int == 200
