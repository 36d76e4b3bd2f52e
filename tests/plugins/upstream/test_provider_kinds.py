"""Provider quirks: GitHub supports only OAuth, Apple responds with a form post."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from identity.crypto import jwt
from identity.crypto.jwk_sets import JwkPublicKey
from identity.domain.upstream_providers import UpstreamKind
from identity.outbound_http import OutboundResponse
from identity.testing.browser import Browser
from tests.plugins.upstream.conftest import UpstreamScenario
from tests.plugins.upstream.fake_provider import CLIENT_ID, SECRET

APPLE = "https://appleid.apple.com"


class GitHub:
    """A fake GitHub: the token endpoint and two API endpoints."""

    def __init__(self) -> None:
        self.user: dict[str, Any] = {"id": 583231, "login": "octocat", "name": "Mona Lisa", "email": "shown@x.example"}
        self.emails: Any = [
            {"email": "other@x.example", "primary": False, "verified": True},
            {"email": "mona@x.example", "primary": True, "verified": True},
        ]
        self.forms: list[dict[str, str]] = []

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        seconds: float | None = None,
    ) -> OutboundResponse:
        if url == "https://github.com/login/oauth/access_token":
            self.forms.append(dict(parse_qsl((body or b"").decode())))
            return OutboundResponse(200, b'{"access_token":"gho_x","token_type":"bearer","scope":"read:user"}')
        assert headers["Authorization"] == "Bearer gho_x"
        answers = {"https://api.github.com/user": self.user, "https://api.github.com/user/emails": self.emails}
        return OutboundResponse(200, json.dumps(answers[url]).encode())


@pytest.fixture
def github(scene: UpstreamScenario) -> GitHub:
    scene.provider = scene.world.make_upstream_provider(
        scene.organization,
        kind=UpstreamKind.GITHUB,
        issuer="",
        client_id=CLIENT_ID,
        client_secret=SECRET,
        create_accounts=True,
    )
    git_hub = GitHub()
    scene.world.app.registry.upstream._http_client._transport = git_hub
    return git_hub


def github_redirect(url: str, **parameters: str) -> str:
    """The redirect URL of GitHub."""
    auth_request = dict(parse_qsl(urlsplit(url).query))
    return f"{auth_request['redirect_uri']}?code=1234&state={auth_request['state']}"


def test_github_sign_in(scene: UpstreamScenario, github: GitHub) -> None:
    subjects = []
    for _ in range(2):
        scene.browser = Browser(scene.world)
        authorization = scene.ask()
        url = scene.go()
        assert url.startswith("https://github.com/login/oauth/authorize?")
        answer = scene.browser.open(github_redirect(url), initiator="https://github.com")
        subjects.append(scene.party.obtain_tokens(answer, authorization).claims["sub"])
    assert subjects[0] == subjects[1]
    person = scene.world.operator_services.users.get(subjects[0])
    assert (person.user_name, person.profile.name, person.profile.email) == ("octocat", "Mona Lisa", "mona@x.example")
    assert github.forms[0]["client_secret"] == SECRET
    assert github.forms[0]["code_verifier"]


@pytest.mark.parametrize("user", [{}, {"id": "583231"}, {"id": True}, {"id": None}])
def test_github_requires_user_id(scene: UpstreamScenario, github: GitHub, user: dict[str, Any]) -> None:
    github.user = user
    scene.ask()
    assert scene.browser.open(github_redirect(scene.go()), initiator="https://github.com").status_int == 400


@pytest.mark.thorough
@pytest.mark.parametrize("emails", [[], {}, [{"email": "a@x.example", "primary": True, "verified": False}], ["x"]])
def test_unverified_github_email_is_ignored(scene: UpstreamScenario, github: GitHub, emails: Any) -> None:
    github.emails = emails
    authorization = scene.ask()
    answer = scene.browser.open(github_redirect(scene.go()), initiator="https://github.com")
    person = scene.world.operator_services.users.get(scene.party.obtain_tokens(answer, authorization).claims["sub"])
    assert person.profile.email == ""


def test_apple_sign_in(scene: UpstreamScenario) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    scene.provider = scene.world.make_upstream_provider(
        scene.organization,
        kind=UpstreamKind.APPLE,
        issuer="",
        client_id=CLIENT_ID,
        client_secret=pem,
        team_id="TEAM",
        key_id="KEY",
        create_accounts=True,
    )
    scene.fake_provider.issuer = APPLE
    scene.fake_provider.metadata = {"authorization_response_iss_parameter_supported": False, "userinfo_endpoint": ""}
    scene.fake_provider.claims = {"email": "ada@x.example", "email_verified": "true"}
    authorization = scene.ask()
    url = scene.go()
    sent = dict(parse_qsl(urlsplit(url).query))
    assert (sent["response_mode"], sent["scope"]) == ("form_post", "openid name email")
    back, _, query = scene.fake_provider.approve(url, iss=None).partition("?")
    user = {"name": {"firstName": "Ada", "lastName": "Lovelace"}, "email": "ada@x.example"}
    answer = scene.browser.post_form(back, {**dict(parse_qsl(query)), "user": json.dumps(user)}, initiator=APPLE)
    person = scene.world.operator_services.users.get(scene.party.obtain_tokens(answer, authorization).claims["sub"])
    assert person.profile.name == "Ada Lovelace"
    [(_, _, form, headers)] = [item for item in scene.fake_provider.requests if item[1] == "/token"]
    token = jwt.UnverifiedToken.parse(form["client_secret"])
    assert token.header["kid"] == "KEY"
    public = JwkPublicKey("KEY", frozenset({"ES256"}), key.public_key())
    claims = token.verify_with_jwk(public, algorithm="ES256")
    assert (claims["iss"], claims["sub"], claims["aud"]) == ("TEAM", CLIENT_ID, APPLE)
    assert "Authorization" not in headers
