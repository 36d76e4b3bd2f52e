"""Tokens bound to a key that the client proves (RFC 9449)."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_oauth_error
from identity.testing.service_test_client import bearer_headers
from identity.testing.world import World
from tests.plugins.dpop_proofs import DpopKey

pytestmark = pytest.mark.storages("memory", "sqlite")


@pytest.fixture
def key(world: World) -> DpopKey:
    """A key with a nonce of the service."""
    key = DpopKey(world)
    key.post(world.client.discovery["token_endpoint"], {"grant_type": "authorization_code"})
    return key


def obtain_tokens(party: RelyingParty, browser: Browser, key: DpopKey, scope: str = "openid") -> dict[str, Any]:
    authorization = party.open_request(browser, scope=scope)
    answer = key.redeem(party, party.extract_code(browser.page, authorization), authorization)
    assert answer.status_int == 200
    members: dict[str, Any] = answer.json
    return members


def test_token_is_bound_to_the_proved_key(world: World, browser: Browser, party: RelyingParty, key: DpopKey) -> None:
    """RFC 9449 §5 and §7.1."""
    tokens = obtain_tokens(party, browser, key)
    assert tokens["token_type"] == "DPoP"
    userinfo = world.client.discovery["userinfo_endpoint"]
    assert key.get(userinfo, tokens["access_token"]).json["sub"]
    # Without a proof, with another key's, and as a bearer token it is worth nothing.
    for answer in (
        world.client.get(userinfo, bearer_headers(tokens["access_token"])),
        world.client.get(userinfo, {"Authorization": f"DPoP {tokens['access_token']}"}),
        key.get(userinfo, tokens["access_token"], scheme="Bearer"),
    ):
        assert answer.status_int == 401
    other = DpopKey(world)
    other.nonce = key.nonce
    check_oauth_error(other.get(userinfo, tokens["access_token"]), "invalid_token", status=401)


def test_bearer_token_is_refused_with_the_scheme_dpop(world: World, browser: Browser, key: DpopKey) -> None:
    party = RelyingParty.register(world)
    token = party.sign_in_silently(browser).access_token
    answer = key.get(world.client.discovery["userinfo_endpoint"], token)
    check_oauth_error(answer, "invalid_token", status=401)


def test_jwt_and_introspection_name_the_key(world: World, browser: Browser, key: DpopKey) -> None:
    """RFC 9449 §6."""
    party = RelyingParty.register(world, access_token_type="jwt")
    token = obtain_tokens(party, browser, key)["access_token"]
    assert decode_jwt_unverified(token)[1]["cnf"] == {"jkt": key.thumbprint}
    members = world.client.introspect(token, party.credentials).json
    assert (members["cnf"], members["token_type"]) == ({"jkt": key.thumbprint}, "DPoP")


def test_service_asks_for_a_nonce_without_using_up_the_code(
    world: World, browser: Browser, party: RelyingParty
) -> None:
    """RFC 9449 §8: the same code works with the nonce."""
    key, endpoint = DpopKey(world), world.client.discovery["token_endpoint"]
    authorization = party.open_request(browser)
    form = {
        "grant_type": "authorization_code",
        "code": party.extract_code(browser.page, authorization),
        "redirect_uri": party.redirect_uri,
        "code_verifier": authorization.verifier or "",
    }
    headers = {"Authorization": party.credentials.header}
    for nonce in (None, "made-up"):
        answer = world.client.post(endpoint, form, headers | {"DPoP": key.proof(endpoint, nonce=nonce)})
        check_oauth_error(answer, "use_dpop_nonce")
    key.nonce = answer.headers["DPoP-Nonce"]
    answer = world.client.post(endpoint, form, headers | {"DPoP": key.proof(endpoint)})
    assert (answer.status_int, answer.json["token_type"]) == (200, "DPoP")
    # A new nonce comes before the old one has expired.
    assert "DPoP-Nonce" not in answer.headers
    world.clock.advance(150)
    userinfo = world.client.discovery["userinfo_endpoint"]
    answer = key.get(userinfo, answer.json["access_token"])
    assert answer.status_int == 200
    assert answer.headers["DPoP-Nonce"] != key.nonce


def test_resource_asks_for_a_nonce(world: World, browser: Browser, party: RelyingParty, key: DpopKey) -> None:
    """RFC 9449 §9; nonces expire."""
    token, userinfo = obtain_tokens(party, browser, key)["access_token"], world.client.discovery["userinfo_endpoint"]
    world.clock.advance(301)
    answer = key.get(userinfo, token)
    check_oauth_error(answer, "use_dpop_nonce", status=401)
    assert answer.headers["WWW-Authenticate"].startswith('DPoP error="use_dpop_nonce"')
    key.nonce = answer.headers["DPoP-Nonce"]
    assert key.get(userinfo, token).status_int == 200


def test_invalid_proofs_are_refused(world: World, key: DpopKey, party: RelyingParty) -> None:
    """RFC 9449 §4.3."""
    endpoint, now = world.client.discovery["token_endpoint"], world.clock.seconds
    private = {**key.jwk, "d": key.jwk["x"]}
    proofs = [
        "",
        "a.b.c",
        key.proof(endpoint, method="GET"),
        key.proof(f"{endpoint}/"),
        key.proof("https://evil.example/oauth/v2/token"),
        key.proof(endpoint.replace("https:", "http:")),
        key.proof(endpoint, iat=now - 120),
        key.proof(endpoint, iat=now + 60),
        key.proof(endpoint, iat=None),
        key.proof(endpoint, iat=float(now)),
        key.proof(endpoint, iat=True),
        key.proof(endpoint, jti=None),
        key.proof(endpoint, jti=""),
        key.proof(endpoint, jti="x" * 257),
        key.proof(endpoint, htu=None),
        key.proof(endpoint, htm=None),
        key.proof(endpoint, header={"typ": "JWT"}),
        key.proof(endpoint, header={"alg": "none"}),
        key.proof(endpoint, header={"alg": "HS256"}),
        key.proof(endpoint, header={"alg": "PS256"}),
        key.proof(endpoint, header={"jwk": private}),
        key.proof(endpoint, header={"jwk": {"kty": "oct", "k": "x"}}),
        key.proof(endpoint, header={"jwk": DpopKey(world).jwk}),
        key.proof(endpoint, header={"jwk": "x"}),
        key.proof(endpoint, header={"jwk": {**key.jwk, "alg": []}}),
        key.proof(endpoint, header={"jwk": {**key.jwk, "kty": {}}}),
        key.proof(endpoint, header={"crit": ["jwk"]}),
        key.proof(endpoint)[:-4] + "AAAA",
        f"{key.proof(endpoint)}, {key.proof(endpoint)}",
    ]
    headers = {"Authorization": party.credentials.header}
    for proof in proofs:
        answer = world.client.post(endpoint, {"grant_type": "authorization_code"}, headers | {"DPoP": proof})
        assert answer.status_int == 400, proof
        if proof:
            assert answer.json["error"] == "invalid_dpop_proof", proof


def test_address_of_the_proof_is_normalized(world: World, key: DpopKey, party: RelyingParty) -> None:
    """RFC 9449 §4.3: case of scheme and host, the default port; query and fragment do not count."""
    endpoint = world.client.discovery["token_endpoint"]
    host = endpoint.split("/")[2]
    for address in (endpoint.replace("https", "HTTPS"), endpoint.replace(host, f"{host.upper()}:443"), f"{endpoint}?a"):
        headers = {"Authorization": party.credentials.header, "DPoP": key.proof(address)}
        answer = world.client.post(endpoint, {"grant_type": "authorization_code"}, headers)
        check_oauth_error(answer, "invalid_request")


def test_proof_counts_once(world: World, browser: Browser, party: RelyingParty, key: DpopKey) -> None:
    """RFC 9449 §11.1."""
    token, userinfo = obtain_tokens(party, browser, key)["access_token"], world.client.discovery["userinfo_endpoint"]
    proof = key.proof(userinfo, "GET", token=token)
    headers = {"Authorization": f"DPoP {token}", "DPoP": proof}
    assert world.client.get(userinfo, headers).status_int == 200
    check_oauth_error(world.client.get(userinfo, headers), "invalid_dpop_proof", status=401)


def test_proof_is_for_one_access_token(world: World, browser: Browser, party: RelyingParty, key: DpopKey) -> None:
    """RFC 9449 §4.3: ath."""
    token, userinfo = obtain_tokens(party, browser, key)["access_token"], world.client.discovery["userinfo_endpoint"]
    for ath in (None, "x", 1):
        check_oauth_error(key.get(userinfo, token, ath=ath), "invalid_dpop_proof", status=401)


def test_refresh_token_of_a_public_client_is_bound(world: World, browser: Browser) -> None:
    """RFC 9449 §5: that of a confidential client is bound to its authentication instead."""
    scope = "openid offline_access"
    for method, bound in (("none", True), ("client_secret_basic", False)):
        party = RelyingParty.register(world, authentication_method=method)
        key, other = DpopKey(world), DpopKey(world)
        token = obtain_tokens(party, browser, key, scope)["refresh_token"]
        form = {"grant_type": "refresh_token", "refresh_token": token}
        if bound:
            check_oauth_error(other.request_token(party, form), "invalid_grant")
            check_oauth_error(party.refresh(token), "invalid_grant")
            refreshed = key.request_token(party, form)
        else:
            refreshed = other.request_token(party, form)
        assert refreshed.json["token_type"] == "DPoP"


def test_code_is_bound_to_the_key_that_the_request_names(
    world: World, browser: Browser, party: RelyingParty, key: DpopKey
) -> None:
    """RFC 9449 §10."""
    authorization = party.open_request(browser, dpop_jkt=key.thumbprint)
    code = party.extract_code(browser.page, authorization)
    check_oauth_error(party.redeem(code, authorization), "invalid_grant")
    check_oauth_error(DpopKey(world).redeem(party, code, authorization), "invalid_grant")
    assert key.redeem(party, code, authorization).status_int == 200
    party.expect_error_at_once(browser, "invalid_request", dpop_jkt="short")


def test_pushed_request_binds_its_code(world: World, browser: Browser, party: RelyingParty, key: DpopKey) -> None:
    """RFC 9449 §10.1."""
    authorization = party.new_request()
    endpoint = world.client.discovery["pushed_authorization_request_endpoint"]
    headers = {"Authorization": party.credentials.header}
    other = {**authorization.parameters, "dpop_jkt": DpopKey(world).thumbprint}
    check_oauth_error(key.post(endpoint, other, headers), "invalid_request")
    pushed = key.post(endpoint, authorization.parameters, headers).json["request_uri"]
    url = f"{authorization.endpoint}?client_id={party.client_id}&request_uri={pushed}"
    code = party.extract_code(browser.open(url, initiator=party.origin), authorization)
    check_oauth_error(party.redeem(code, authorization), "invalid_grant")
    assert key.redeem(party, code, authorization).status_int == 200


def test_application_that_requires_dpop_gets_no_bearer_token(world: World, browser: Browser, key: DpopKey) -> None:
    party = RelyingParty.register(world, required_sender_constraint="dpop", response_types=("code", "id_token token"))
    authorization = party.open_request(browser)
    code = party.extract_code(browser.page, authorization)
    check_oauth_error(party.redeem(code, authorization), "invalid_request")
    assert key.redeem(party, code, authorization).status_int == 200
    party.expect_error_at_once(browser, "invalid_request", "id_token token")


def test_service_user_gets_a_bound_token_for_the_management_api(world: World, key: DpopKey) -> None:
    robot = world.make_manager_program()
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": robot.assertion(),
        "scope": "openid urn:service:iam:org:project:id:service:aud",
    }
    token = key.post(world.client.discovery["token_endpoint"], form).json["access_token"]
    url = f"{world.client.management_url}/me"
    assert key.get(url, token).status_int == 200
    for answer in (
        world.client.get(url, bearer_headers(token)),
        world.client.get(url, {"Authorization": f"DPoP {token}"}),
        key.get(url, token, ath="x"),
    ):
        assert answer.status_int == 401
        assert answer.json["error"] == "unauthenticated"


def test_discovery_lists_algorithms(world: World) -> None:
    assert "ES256" in world.client.discovery["dpop_signing_alg_values_supported"]


@pytest.mark.storages("memory", "sqlite", "postgresql", "mariadb")
def test_one_of_a_hundred_uses_of_a_proof_succeeds(make_world: WorldFactory) -> None:
    world = make_world()
    browser, key, party = Browser(world), DpopKey(world), RelyingParty.register(world)
    browser.start_session(world.make_human_user())
    token, userinfo = obtain_tokens(party, browser, key)["access_token"], world.client.discovery["userinfo_endpoint"]
    headers = {"Authorization": f"DPoP {token}", "DPoP": key.proof(userinfo, "GET", token=token)}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: world.client.get(userinfo, headers).status_int, range(100)))
    assert sorted(set(answers)) == [200, 401]
    assert answers.count(200) == 1
