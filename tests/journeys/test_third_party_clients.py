"""Third-party clients over real HTTP: authlib, requests-oauthlib, pyoidc's consumer, and plain requests."""

import json
import time
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

import oic.oic
import pytest
import requests
import requests_oauthlib
from authlib.common.errors import AuthlibBaseError
from authlib.common.security import generate_token
from authlib.integrations.requests_client import AssertionSession, OAuth2Session
from authlib.oauth2.rfc7523 import JWTBearerGrant, PrivateKeyJWT
from authlib.oidc.core import CodeIDToken
from joserfc import jwk, jwt
from oic.oic.message import AuthorizationResponse, RegistrationResponse
from oic.utils.authn.client import CLIENT_AUTHN_METHOD

from identity.domain.applications import ApplicationType
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.service_users import AddServiceUserKey
from identity.testing.browser import Browser, set_password
from identity.testing.relying_party import RelyingParty
from identity.testing.service_test_client import TOKEN_EXCHANGE
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.device_authorization.device import DEVICE_CODE, GRANT_TYPES, enter_code, signed_in_browser

pytestmark = pytest.mark.every_storage


def key_file(robot: ServiceUserProgram) -> dict[str, str]:
    """The key file as downloaded from the console."""
    with robot.world.transaction_services() as services:
        text = services.service_users.add_key(robot.id, AddServiceUserKey(), principal=Principal.OPERATOR).to_json()
    members: dict[str, str] = json.loads(text)
    return members


@pytest.mark.shows("1.4")
def test_authlib_s_assertion_session_works_by_itself(served: World) -> None:
    """It signs assertions, requests a token, uses it, and requests another one after the expiry."""
    robot = served.make_manager_program()
    file = key_file(robot)
    discovery = requests.get(f"{served.issuer}/.well-known/openid-configuration", timeout=10).json()
    session = AssertionSession(
        discovery["token_endpoint"],
        issuer=file["userId"],
        subject=file["userId"],
        audience=discovery["issuer"],
        grant_type=AssertionSession.JWT_BEARER_GRANT_TYPE,
        scope=f"openid profile {served.audience_scope()}",
        key=jwk.RSAKey.import_key(file["key"]),
        header={"alg": "RS256", "kid": file["keyId"]},
        default_timeout=10,
    )
    with session:
        userinfo = session.get(discovery["userinfo_endpoint"])
        assert userinfo.json()["sub"] == robot.id
        me = session.get(f"{served.issuer}/management/v1/me")
        assert me.json()["roles"][0]["roles"] == ["ORG_OWNER"]
        first = session.token["access_token"]
        session.token["expires_at"] = int(time.time()) - 1
        assert session.get(discovery["userinfo_endpoint"]).status_code == 200
        assert session.token["access_token"] != first


@pytest.mark.thorough
def test_authlib_signs_introspects_and_revokes(served: World) -> None:
    robot = served.make_service_user_program()
    file = key_file(robot)
    client = served.introspector
    discovery = served.client.discovery
    assertion = JWTBearerGrant.sign(
        jwk.RSAKey.import_key(file["key"]),
        issuer=file["userId"],
        subject=file["userId"],
        audience=served.issuer,
        header={"alg": "RS256", "kid": file["keyId"]},
    )
    method = "client_secret_basic"
    with OAuth2Session(
        client.client_id, client.secret, token_endpoint_auth_method=method, default_timeout=10
    ) as session:
        form = {"grant_type": JWTBearerGrant.GRANT_TYPE, "assertion": assertion}
        scope = f"openid {served.audience_scope()}"
        answer = requests.post(discovery["token_endpoint"], data=form | {"scope": scope}, timeout=10)
        token = answer.json()["access_token"]
        about = session.introspect_token(discovery["introspection_endpoint"], token=token)
        assert about.json()["active"] is True
        assert about.json()["sub"] == robot.id
        assert session.revoke_token(discovery["revocation_endpoint"], token=token).status_code == 200
        about = session.introspect_token(discovery["introspection_endpoint"], token=token)
        assert about.json() == {"active": False}


# --- people sign in ---------------------------------------------------------------------------------------------------

CALLBACK = "https://app.example/cb"


@pytest.fixture
def party(served: World) -> RelyingParty:
    """The registration for the clients below, of which only id and secret are used."""
    return RelyingParty.register(served, redirect_uri=CALLBACK)


@pytest.fixture
def person(served: World) -> HumanUser:
    return served.make_human_user()


@pytest.fixture
def visit(served: World, person: HumanUser) -> Callable[[str], str]:
    """Open the client's URL as the user, sign in if necessary, and return the redirect back to the client."""
    browser = Browser(served)
    login_name = set_password(served, person)

    def visit(url: str) -> str:
        browser.open(url, initiator="https://app.example")
        if browser.sign_in_step is not None:
            browser.sign_in(login_name)
        assert browser.external_redirect is not None, browser.page
        return browser.external_redirect

    return visit


def published_keys(served: World) -> jwk.KeySet:
    return jwk.KeySet.import_key_set(requests.get(served.client.discovery["jwks_uri"], timeout=10).json())


@pytest.mark.shows("1.1")
def test_authlib_signs_a_person_in_refreshes_and_signs_out(
    served: World, party: RelyingParty, person: HumanUser, visit: Callable[[str], str]
) -> None:
    """With PKCE, and authlib's own checks of the ID token (OpenID Connect Core §3.1.3.7)."""
    discovery = served.client.discovery
    verifier, nonce = generate_token(48), generate_token()
    with OAuth2Session(
        party.client_id,
        party.secret,
        scope="openid profile offline_access",
        redirect_uri=CALLBACK,
        code_challenge_method="S256",
        token_endpoint_auth_method="client_secret_basic",
        default_timeout=10,
    ) as session:
        url, state = session.create_authorization_url(
            discovery["authorization_endpoint"], code_verifier=verifier, nonce=nonce
        )
        token = session.fetch_token(
            discovery["token_endpoint"], authorization_response=visit(url), state=state, code_verifier=verifier
        )
        decoded = jwt.decode(token["id_token"], published_keys(served), algorithms=["RS256"])
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            options={"iss": {"essential": True, "value": served.issuer}},
            params={"nonce": nonce, "client_id": party.client_id, "access_token": token["access_token"]},
        )
        claims.validate(leeway=0)
        assert claims["sub"] == person.id
        userinfo = session.get(discovery["userinfo_endpoint"]).json()
        assert (userinfo["sub"], userinfo["preferred_username"]) == (person.id, person.user_name)

        refreshed = session.refresh_token(discovery["token_endpoint"], refresh_token=token["refresh_token"])
        assert refreshed["refresh_token"] != token["refresh_token"]
        assert session.get(discovery["userinfo_endpoint"]).json()["sub"] == person.id

        query = urlencode({"id_token_hint": token["id_token"], "post_logout_redirect_uri": "https://app.example/bye"})
        assert visit(f"{discovery['end_session_endpoint']}?{query}") == "https://app.example/bye"
        assert session.get(discovery["userinfo_endpoint"]).status_code == 401


@pytest.mark.thorough
def test_authlib_authenticates_with_its_key(served: World) -> None:
    """private_key_jwt (OpenID Connect Core §9), as authlib signs it."""
    key = jwk.ECKey.generate_key("P-256", {"kid": "one"})
    application, _ = served.register_application(
        type=ApplicationType.API,
        authentication_method="private_key_jwt",
        grant_types=frozenset({"client_credentials"}),
        jwks=json.dumps({"keys": [key.as_dict(private=False)]}),
    )
    discovery = requests.get(f"{served.issuer}/.well-known/openid-configuration", timeout=10).json()
    endpoint = discovery["token_endpoint"]
    with OAuth2Session(
        application.id, key, token_endpoint_auth_method="private_key_jwt", token_endpoint=endpoint, default_timeout=10
    ) as session:
        session.register_client_auth_method(PrivateKeyJWT(endpoint, headers={"kid": "one"}, alg="ES256"))
        for _ in range(2):
            assert session.fetch_token(endpoint, grant_type="client_credentials")["access_token"]
        answer = session.introspect_token(discovery["introspection_endpoint"], session.token["access_token"])
        assert answer.json()["active"]


def test_authlib_public_client_signs_in(served: World, person: HumanUser, visit: Callable[[str], str]) -> None:
    party = RelyingParty.register(served, redirect_uri=CALLBACK, authentication_method="none")
    discovery = served.client.discovery
    verifier = generate_token(48)
    with OAuth2Session(
        party.client_id,
        scope="openid",
        redirect_uri=CALLBACK,
        code_challenge_method="S256",
        token_endpoint_auth_method="none",
        default_timeout=10,
    ) as session:
        url, state = session.create_authorization_url(discovery["authorization_endpoint"], code_verifier=verifier)
        session.fetch_token(
            discovery["token_endpoint"], authorization_response=visit(url), state=state, code_verifier=verifier
        )
        assert session.get(discovery["userinfo_endpoint"]).json()["sub"] == person.id


def test_requests_oauthlib_signs_a_person_in_and_refreshes(
    served: World,
    party: RelyingParty,
    person: HumanUser,
    visit: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With PKCE and the secret in a Basic header; the client would treat a changed scope as an attack."""
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    discovery = served.client.discovery
    with requests_oauthlib.OAuth2Session(
        party.client_id, redirect_uri=CALLBACK, scope=["openid", "email", "offline_access"], pkce="S256"
    ) as session:
        url, _ = session.authorization_url(discovery["authorization_endpoint"], nonce="n")
        token = session.fetch_token(
            discovery["token_endpoint"], authorization_response=visit(url), client_secret=party.secret, timeout=10
        )
        assert session.get(discovery["userinfo_endpoint"], timeout=10).json()["sub"] == person.id
        refreshed = session.refresh_token(discovery["token_endpoint"], auth=(party.client_id, party.secret), timeout=10)
        assert refreshed["refresh_token"] != token["refresh_token"]
        assert session.get(discovery["userinfo_endpoint"], timeout=10).json()["sub"] == person.id


@pytest.fixture
def consumer(served: World, party: RelyingParty) -> oic.oic.Client:
    """pyoidc's client, configured from the discovery document and the key set."""
    client = oic.oic.Client(client_authn_method=CLIENT_AUTHN_METHOD)
    client.provider_config(served.issuer)
    client.store_registration_info(RegistrationResponse(client_id=party.client_id, client_secret=party.secret))
    client.redirect_uris = [CALLBACK]
    return client


def test_pyoidc_consumer_redeems_a_code(
    served: World, consumer: oic.oic.Client, person: HumanUser, visit: Callable[[str], str]
) -> None:
    """It verifies the ID token with the published keys."""
    request = consumer.construct_AuthorizationRequest(
        request_args={
            "response_type": "code",
            "scope": ["openid", "profile"],
            "redirect_uri": CALLBACK,
            "state": "some-state",
            "nonce": "some-nonce",
        }
    )
    query = urlsplit(visit(request.request(consumer.authorization_endpoint))).query
    answer = consumer.parse_response(AuthorizationResponse, info=query, sformat="urlencoded")
    assert (answer["state"], answer["iss"]) == ("some-state", served.issuer)
    tokens = consumer.do_access_token_request(
        state="some-state",
        request_args={"code": answer["code"], "redirect_uri": CALLBACK},
        authn_method="client_secret_basic",
    )
    assert tokens["id_token"]["sub"] == person.id
    assert tokens["id_token"]["nonce"] == "some-nonce"
    userinfo = consumer.do_user_info_request(state="some-state")
    assert (userinfo["sub"], userinfo["preferred_username"]) == (person.id, person.user_name)


@pytest.mark.thorough
def test_pyoidc_consumer_reads_tokens_from_the_fragment(
    served: World, consumer: oic.oic.Client, person: HumanUser, visit: Callable[[str], str]
) -> None:
    request = consumer.construct_AuthorizationRequest(
        request_args={
            "response_type": ["id_token", "token"],
            "scope": ["openid"],
            "redirect_uri": CALLBACK,
            "state": "some-state",
            "nonce": "some-nonce",
        }
    )
    fragment = urlsplit(visit(request.request(consumer.authorization_endpoint))).fragment
    answer = consumer.parse_response(AuthorizationResponse, info=fragment, sformat="urlencoded")
    assert answer["id_token"]["sub"] == person.id
    assert consumer.do_user_info_request(token=answer["access_token"])["sub"] == person.id


def test_pyoidc_s_consumer_reads_errors(consumer: oic.oic.Client, visit: Callable[[str], str]) -> None:
    request = consumer.construct_AuthorizationRequest(
        request_args={
            "response_type": "code",
            "scope": ["profile"],
            "redirect_uri": CALLBACK,
            "state": "some-state",
        }
    )
    query = urlsplit(visit(request.request(consumer.authorization_endpoint))).query
    answer = consumer.parse_response(AuthorizationResponse, info=query, sformat="urlencoded")
    assert (answer["error"], answer["state"]) == ("invalid_scope", "some-state")


def test_authlib_signs_people_in_on_devices(served: World, person: HumanUser) -> None:
    browser = signed_in_browser(served, person)
    client_id, discovery = (
        served.make_public_application(grant_types=GRANT_TYPES, response_types=frozenset()),
        served.client.discovery,
    )
    session = OAuth2Session(client_id, token_endpoint_auth_method="none", default_timeout=10)
    device = requests.post(
        discovery["device_authorization_endpoint"],
        data={"client_id": client_id, "scope": "openid offline_access"},
        timeout=10,
    ).json()
    served.client.secrets.add(device["device_code"])
    form = {"grant_type": DEVICE_CODE, "device_code": device["device_code"]}
    with pytest.raises(AuthlibBaseError, match="authorization_pending"):
        session.fetch_token(discovery["token_endpoint"], **form)
    enter_code(browser, device["user_code"])
    browser.submit(button=("decision", "approve"))
    token = session.fetch_token(discovery["token_endpoint"], **form)
    claims = jwt.decode(token["id_token"], published_keys(served)).claims
    assert (claims["sub"], claims["aud"]) == (person.id, client_id)
    assert session.refresh_token(discovery["token_endpoint"], token["refresh_token"])["access_token"]


@pytest.mark.thorough
def test_authlib_exchanges_a_token(served: World) -> None:
    """RFC 8693, with an actor token of its own."""
    organization = served.make_organization()
    project, person = served.make_project(organization), served.make_human_user(organization)
    page = served.make_web_application(project.id)
    api = served.make_application(project.id, grant_types=frozenset({TOKEN_EXCHANGE, "client_credentials"}))
    received = served.obtain_tokens(page, served.make_browser_session(person), scope="openid email")["access_token"]
    token_type = "urn:ietf:params:oauth:token-type:access_token"
    with OAuth2Session(api.client_id, api.secret, token_endpoint_auth_method="client_secret_basic") as client:
        url = served.client.discovery["token_endpoint"]
        for_itself = client.fetch_token(url, grant_type="client_credentials")["access_token"]
        token = client.fetch_token(
            url,
            grant_type=TOKEN_EXCHANGE,
            subject_token=received,
            subject_token_type=token_type,
            actor_token=for_itself,
            actor_token_type=token_type,
            scope="openid",
        )
        assert (token["issued_token_type"], token["scope"]) == (token_type, "openid")
        answer = client.introspect_token(served.client.discovery["introspection_endpoint"], token["access_token"])
    served.client.secrets |= {for_itself, token["access_token"]}
    assert answer.json()["act"] == {"sub": api.client_id}
    assert answer.json()["sub"] == person.id
