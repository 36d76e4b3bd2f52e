"""identity_client and the service understand each other: sign-in, tokens of service users, JWT and introspection."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from identity_client import IdentityClient, InvalidToken, ServiceUser

from identity.domain.users import TokenFormat
from identity.testing.browser import Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.response_checks import check_token_response
from identity.testing.world import World

CALLBACK = "http://localhost:8000/callback"


@pytest.fixture(autouse=True)
def bridge(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of the clients go to the service, and both have the same time."""

    monkeypatch.setattr(IdentityClient, "send", _send_to(world))
    monkeypatch.setattr(time, "time", lambda: world.clock().timestamp())


def _send_to(world: World) -> Callable[[IdentityClient, httpx.Request], httpx.Response]:
    def send(_: IdentityClient, request: httpx.Request) -> httpx.Response:
        response = world.client.request(
            request.method, str(request.url), headers=dict(request.headers), body=request.read()
        )
        return httpx.Response(
            response.status_int, headers=response.headers.items(), content=response.body, request=request
        )

    return send


@pytest.mark.parametrize("token_format", list(TokenFormat))
def test_service_user_calls_an_api(world: World, tmp_path: Path, token_format: TokenFormat) -> None:
    organization = world.make_organization()
    project, other = world.make_project(organization, roles=["reader"]), world.make_project(organization)
    robot = world.make_service_user_program(organization, token_format=token_format)
    world.make_user_grant(robot.user, project, "reader")
    pem = robot.key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    key_file = tmp_path / "key.json"
    key_file.write_text(json.dumps({"type": "serviceaccount", "keyId": robot.key_id, "key": pem, "userId": robot.id}))
    token = ServiceUser(world.issuer, key_file, projects=[project.id]).token()
    world.client.secrets.add(token)

    credentials = world.make_application(project.id)
    api = IdentityClient(
        world.issuer,
        project_id=project.id,
        client_id=credentials.client_id,
        client_secret=credentials.secret,
        introspection_max_age=0,
    )
    checked = api.check_access_token(token)
    assert (checked.subject, checked.roles) == (robot.id, {"reader"})
    assert checked.has_role("reader", organization=organization.id)
    local = IdentityClient(world.issuer, project_id=project.id)
    if token_format is TokenFormat.JWT:
        assert local.check_access_token(token).subject == robot.id
    else:
        with pytest.raises(InvalidToken):
            local.check_access_token(token)
    with pytest.raises(InvalidToken):
        IdentityClient(world.issuer, project_id=other.id).check_access_token(token)
    world.clock.advance(3631)
    for client in (api, local):
        with pytest.raises(InvalidToken):
            client.check_access_token(token)


def test_tokens_that_the_service_signs_with_ed25519(make_world: WorldFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world(**{"identity.signing_algorithms": "EdDSA RS256"})
    world.identity.background_jobs.rotate_signing_key_if_due()
    world.clock.advance(360)
    monkeypatch.setattr(IdentityClient, "send", _send_to(world))
    monkeypatch.setattr(time, "time", lambda: world.clock().timestamp())
    organization = world.make_organization()
    robot = world.make_service_user_program(organization, token_format=TokenFormat.JWT)
    project = world.make_project(organization)
    scope = f"openid urn:service:iam:org:project:id:{project.id}:aud"
    members = check_token_response(robot.request_token(scope=scope))
    client = IdentityClient(world.issuer, project_id=project.id, client_id=robot.id, algorithms=("Ed25519",))
    assert client.check_access_token(members["access_token"]).subject == robot.id


@pytest.mark.parametrize("is_public", [False, True], ids=["web", "native"])
def test_person_signs_in_and_out(world: World, is_public: bool) -> None:
    project, person = world.make_project(roles=["reader"]), world.make_human_user()
    world.make_user_grant(person, project, "reader")
    members = {
        "redirect_uris": [CALLBACK],
        "post_logout_redirect_uris": ["http://localhost:8000/"],
        "development": True,
    }
    if is_public:
        client_id, secret = world.make_public_application(project.id, **members), ""
    else:
        credentials = world.make_web_application(project.id, **members)
        client_id, secret = credentials.client_id, credentials.secret
    scopes = ["profile", "urn:service:iam:org:projects:roles"]
    client = IdentityClient(
        world.issuer, client_id=client_id, client_secret=secret, project_id=project.id, scopes=scopes
    )
    session: dict[str, object] = {}
    browser = Browser(world)
    browser.open(client.begin_sign_in(session, CALLBACK, "/notes"))
    browser.sign_in(set_password(world, person))
    assert browser.external_redirect is not None
    parameters = {name: values[0] for name, values in parse_qs(urlsplit(browser.external_redirect).query).items()}
    signed_in = client.finish_sign_in(session, parameters)
    world.client.secrets |= {signed_in.id_token, signed_in.tokens["access_token"], parameters["code"]}
    assert (signed_in.user.id, signed_in.user.name) == (person.id, "Ada Lovelace")
    assert signed_in.user.roles == {"reader"}
    assert signed_in.return_to == "/notes"
    browser.open(client.sign_out_url("http://localhost:8000/", signed_in.id_token))
    assert browser.external_redirect == "http://localhost:8000/"
    browser.open(client.begin_sign_in(session, CALLBACK))
    assert browser.sign_in_step is not None, "the session at the service ended too"
