"""Service description §4.2: id_token_hint and login_hint."""

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from identity.crypto.jwt import sign
from identity.domain.users import HumanUser, TokenFormat
from identity.testing.browser import Browser, set_password
from identity.testing.jwt_assertions import decode_jwt_unverified, hs256, no_signature, ps256, sign_assertion
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World

AGAIN = "password"


@pytest.fixture
def id_token(browser: Browser, party: RelyingParty) -> str:
    """The user's ID token from the browser's session."""
    return party.sign_in_silently(browser).id_token


@pytest.mark.shows("4.2.8")
def test_id_token_hint_selects_session(
    world: World, browser: Browser, party: RelyingParty, id_token: str, person: HumanUser, other_person: HumanUser
) -> None:
    """Recommended with prompt=none."""
    browser.start_session(other_person)
    for prompt in ("none", None):
        assert party.sign_in_silently(browser, prompt=prompt, id_token_hint=id_token).claims["sub"] == person.id


def test_expired_or_foreign_hint_is_accepted(
    world: World, browser: Browser, party: RelyingParty, id_token: str, person: HumanUser
) -> None:
    """Decisions: verified with the service's own keys; expired ones are accepted."""
    world.clock.advance(hours=11)
    for relying_party in (party, RelyingParty.register(world)):
        assert relying_party.sign_in_silently(browser, prompt="none", id_token_hint=id_token).claims["sub"] == person.id


@pytest.mark.shows("4.2.8")
def test_hint_for_signed_out_user_requires_login(
    world: World, party: RelyingParty, id_token: str, person: HumanUser, login_name: str, other_person: HumanUser
) -> None:
    """OpenID Connect Core §3.1.2.1: another signed-in user does not satisfy the hint."""
    browser = Browser(world)
    browser.start_session(other_person)
    party.expect_error_at_once(browser, "login_required", prompt="none", id_token_hint=id_token)
    authorization = party.open_request(browser, id_token_hint=id_token)
    assert browser.sign_in_step is not None
    browser.sign_in(login_name)
    assert party.obtain_tokens(browser.page, authorization).claims["sub"] == person.id


def test_sign_in_of_other_user_is_refused(
    world: World, party: RelyingParty, id_token: str, other_person: HumanUser
) -> None:
    other = set_password(world, other_person)
    browser = Browser(world)
    authorization = party.open_request(browser, id_token_hint=id_token)
    if browser.sign_in_step == AGAIN:
        browser.click("Not you?")
    browser.sign_in(other)
    party.check_error_response(browser.page, authorization, "login_required")


def hints(world: World, party: RelyingParty, browser: Browser, id_token: str) -> dict[str, str]:
    """Texts that resemble an ID token of this service."""
    header, claims = decode_jwt_unverified(id_token)
    kid = header["kid"]
    key = generate_private_key(public_exponent=65537, key_size=2048)
    (published,) = (item for item in world.client.fetch_jwks().json["keys"] if item["kid"] == kid)
    with world.read_only_services() as services:
        (public,) = (
            rsa_public_key for stored, rsa_public_key in services.signing_keys.published_keys() if stored.id == kid
        )
        _, own_key = services.signing_keys.current_signing_key()
    pem = public.to_pem().encode()
    jwt_party = RelyingParty.register(world, access_token_type=TokenFormat.JWT)
    authorization = jwt_party.new_request()
    access = jwt_party.obtain_tokens(browser.open(authorization.url), authorization).access_token
    opaque = party.obtain_tokens(browser.open((authorization := party.new_request()).url), authorization).access_token
    head, body, signature = id_token.split(".")
    return {
        "foreign key": sign_assertion(claims, key, key_id=kid),
        "unknown kid": sign_assertion(claims, key, key_id="no-such-key"),
        "no kid": sign_assertion(claims, key, key_id=None),
        "alg none": sign_assertion(claims, key, key_id=kid, header={"alg": "none"}, sign=no_signature),
        "alg None": sign_assertion(claims, key, key_id=kid, header={"alg": "None"}, sign=no_signature),
        "no signature": f"{head}.{body}.",
        "hmac with the public key": sign_assertion(claims, key, key_id=kid, header={"alg": "HS256"}, sign=hs256(pem)),
        "hmac with the modulus": sign_assertion(
            claims, key, key_id=kid, header={"alg": "HS256"}, sign=hs256(published["n"].encode())
        ),
        "other algorithm": sign_assertion(claims, key, key_id=kid, header={"alg": "PS256"}, sign=ps256(key)),
        "own key in the header": sign_assertion(claims, key, key_id=kid, header={"jwk": {"kty": "RSA", "e": "AQAB"}}),
        "altered claims": sign_assertion({**claims, "sub": "other"}, key, key_id=kid).rpartition(".")[0]
        + f".{signature}",
        "our key, another issuer": sign({**claims, "iss": "https://other.example"}, own_key, key_id=kid),
        "our key, an access token's type": sign(claims, own_key, key_id=kid, typ="at+jwt"),
        "our key, no application": sign({**claims, "azp": None}, own_key, key_id=kid),
        "our key, no subject": sign({**claims, "sub": 7}, own_key, key_id=kid),
        "cut": id_token[:-1],
        "grown": f"{id_token}A",
        "padded": f"{id_token}=",
        "four parts": f"{id_token}.x",
        "opaque access token": opaque,
        "access token": access,
        "subject": str(claims["sub"]),
        "rubbish": "x",
        "dots": "..",
        "spaces": f" {id_token}",
        "json": '{"sub": "x"}',
    }


def test_foreign_id_token_hint_is_invalid_request(
    world: World, browser: Browser, party: RelyingParty, id_token: str, other_person: HumanUser
) -> None:
    """Security 4.7 and 7.1: the algorithm is fixed, and an access token is no hint, with or without a session."""
    for case, hint in hints(world, party, browser, id_token).items():
        for item in (browser, Browser(world)):
            for prompt in ("none", None):
                description = party.expect_error_at_once(item, "invalid_request", prompt=prompt, id_token_hint=hint)
                assert description == "id_token_hint is not an ID token of this issuer", case


def test_hint_of_other_installation_is_refused(
    browser: Browser, party: RelyingParty, make_world: object, id_token: str
) -> None:
    other = make_world(**{"identity.issuer_url": "https://other.example"})  # type: ignore[operator]
    relying_party = RelyingParty.register(other)
    other_browser = Browser(other)
    other_browser.start_session(other.make_human_user())
    hint = relying_party.sign_in_silently(other_browser).id_token
    party.expect_error_at_once(browser, "invalid_request", id_token_hint=hint)


def test_hint_is_accepted_while_key_is_published(isolated_world: World) -> None:
    party, browser, person = (
        RelyingParty.register(isolated_world),
        Browser(isolated_world),
        isolated_world.make_human_user(),
    )
    browser.start_session(person)
    hint = party.obtain_tokens(browser.open((authorization := party.new_request()).url), authorization).id_token
    isolated_world.operator_services.signing_keys.rotate(emergency=True)
    isolated_world.clock.advance(hours=11)
    assert party.sign_in_silently(browser, prompt="none", id_token_hint=hint).claims["sub"] == person.id
    isolated_world.clock.advance(hours=11)
    isolated_world.identity.background_jobs.purge()
    assert decode_jwt_unverified(hint)[0]["kid"] not in {
        item["kid"] for item in isolated_world.client.fetch_jwks().json["keys"]
    }
    party.expect_error_at_once(browser, "invalid_request", prompt="none", id_token_hint=hint)


def test_service_user_id_token_selects_no_session(world: World, browser: Browser, party: RelyingParty) -> None:
    robot = world.make_service_user_program()
    hint = robot.request_token().json["id_token"]
    party.expect_error_at_once(browser, "login_required", prompt="none", id_token_hint=hint)


@pytest.mark.shows("4.2.9")
def test_login_hint_prefills_name(world: World, party: RelyingParty) -> None:
    browser = Browser(world)
    for hint in ("ada@acme.example", "Ada", '"><script>alert(1)</script>', "ü " * 100):
        party.open_request(browser, login_hint=hint)
        assert browser.find_form()["login_name"].value in (hint, hint.strip())


def test_login_hint_of_signed_in_user_is_answered(
    browser: Browser, party: RelyingParty, person: HumanUser, login_name: str
) -> None:
    for hint in (login_name, login_name.upper(), person.user_name):
        assert party.sign_in_silently(browser, login_hint=hint).claims["sub"] == person.id


def test_login_hint_of_other_user_requires_login(
    world: World, browser: Browser, party: RelyingParty, other_person: HumanUser
) -> None:
    other = set_password(world, other_person)
    party.expect_error_at_once(browser, "login_required", prompt="none", login_hint=other)
    authorization = party.open_request(browser, login_hint=other)
    assert browser.find_form()["login_name"].value == other
    browser.sign_in(other)
    assert party.obtain_tokens(browser.page, authorization).claims["sub"] == other_person.id
