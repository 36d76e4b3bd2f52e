"""Service users in the console (service description §2.1, §2.2, §5.1 step 1)."""

import base64
import json
from datetime import UTC, datetime, time, timedelta
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from identity.domain.organizations import Organization
from identity.domain.service_user_keys import KeyFile
from identity.testing.browser import Browser
from identity.testing.jwt_assertions import sign_assertion
from identity.testing.response_checks import check_token_response
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.console.conftest import SignIn

_RIGHT = {"user_name": "ci-runner", "display_name": "CI runner", "description": "Deploys.", "access_token_type": "jwt"}


@pytest.fixture
def robot(world: World, organization: Organization) -> ServiceUserProgram:
    """A service user of the organization, with a key."""
    return world.make_service_user_program(organization)


def _list(organization: Organization) -> str:
    return f"/console/organizations/{organization.id}/service-users"


def _new(owner: Browser, organization: Organization, **fields: str) -> Browser:
    owner.open(f"{_list(organization)}/new")
    owner.submit({**_RIGHT, **fields}, form="page-form")
    return owner


@pytest.mark.shows("2.1.1", "2.1.2", "2.1.3", "2.2.2", "2.2.9", "5.1.1")
def test_service_user_with_key_gets_token(world: World, owner: Browser, organization: Organization) -> None:
    """New → user name, display name → KEYS → New → expiration date → Add; the downloaded key obtains a token."""
    assert "No service users yet" in owner.open(_list(organization))
    owner.click("service user")
    page = owner.submit({"user_name": "ci-runner", "display_name": "CI runner"}, form="page-form")
    assert "Service user created. Add a key so that a program can sign in." in page
    assert page.html.h1.text == "CI runner"
    owner.click("New key")
    last_day = world.clock().date() + timedelta(days=17)
    page = owner.submit({"expiration_date": str(last_day)}, form="page-form")
    assert page.status_int == 200
    assert "no-store" in page.headers["Cache-Control"]
    link = page.html.find(id="key-file")
    assert link["href"].startswith("data:application/json;base64,")
    content = base64.b64decode(link["href"].partition(",")[2]).decode()
    assert content == page.html.find(id="key-file-text").text
    file = json.loads(content)
    assert set(file) == {"type", "keyId", "key", "userId"}
    assert link["download"] == f"ci-runner-{file['keyId'][:8]}.json"
    world.client.secrets.add(file["key"])
    key = KeyFile.from_json(content)
    now = world.clock.seconds
    claims = {"iss": key.user_id, "sub": key.user_id, "aud": world.issuer, "iat": now, "exp": now + 60}
    check_token_response(
        world.client.exchange_assertion(sign_assertion(claims, _private_key(key), key_id=key.key_id), "openid")
    )
    page = owner.click("I have saved the file")
    assert file["keyId"] in page
    with world.read_only_services() as services:
        [stored] = services.service_users.page_keys(key.user_id).items
    assert stored.expires_at == datetime.combine(last_day, time(23, 59, 59), UTC)


def test_service_user_form_keeps_input(owner: Browser, organization: Organization) -> None:
    page = _new(owner, organization, user_name="", display_name="x" * 300).page
    assert page.status_int == 422
    assert page.html.title.text.startswith("Error:")
    assert "Enter a user name." in page
    assert "Use at most 200 characters." in page
    assert {link["href"] for link in page.html.find(id="errors").find_all("a")} == {
        "#field-user_name",
        "#field-display_name",
    }
    form = owner.find_form("page-form")
    assert form["display_name"].value == "x" * 300
    assert form["description"].value == "Deploys."
    assert form["access_token_type"].value == "jwt"


def test_invalid_expiration_date_is_refused(owner: Browser, robot: ServiceUserProgram) -> None:
    for typed, message in (
        ("", "Choose an expiration date, or tick “No expiration date”."),
        ("tomorrow", "Enter a date such as 2027-12-31."),
        ("2020-01-01", "Choose an expiration date in the future."),
    ):
        owner.open(f"/console/service-users/{robot.id}/keys/new")
        page = owner.submit({"expiration_date": typed}, form="page-form")
        assert page.status_int == 422
        assert page.html.find(id="error-expiration_date").text.strip().endswith(message)
        assert owner.find_form("page-form")["expiration_date"].value == typed


def test_key_expires_at_the_end_of_its_day(world: World, owner: Browser, robot: ServiceUserProgram) -> None:
    """A key works until the end of its day, and without a date forever."""
    owner.open(f"/console/service-users/{robot.id}/keys/new")
    form = owner.find_form("page-form")
    sent = {name: form[name].value for name in ("csrf_token", "once")} | {"expiration_date": "2030-05-17"}
    owner.post_form(owner.url, sent, initiator=world.issuer)
    owner.open(f"/console/service-users/{robot.id}/keys/new")
    owner.submit({"expiration_date": "", "no_expiration": True}, form="page-form")
    page = owner.open(f"/console/service-users/{robot.id}/keys")
    assert 'datetime="2030-05-17T23:59:59Z"' in page
    assert "No expiration date" in page


def test_public_key_upload(owner: Browser, robot: ServiceUserProgram) -> None:
    path = f"/console/service-users/{robot.id}/keys/new"
    owner.open(path)
    page = owner.submit({"source": "upload", "public_key": "no key"}, form="page-form")
    assert page.status_int == 422
    assert page.html.find(id="error-public_key")
    assert owner.find_form("page-form")["public_key"].value == "no key"
    page = owner.submit({"source": "upload", "public_key": _public_pem(robot), "algorithm": "EdDSA"}, form="page-form")
    assert page.html.find(id="error-algorithm")
    page = owner.submit({"algorithm": "PS256"}, form="page-form")
    assert "PS256" in page
    assert "Key added." in page


def test_key_removal_lists_impact(world: World, owner: Browser, robot: ServiceUserProgram) -> None:
    robot.access_token()
    page = owner.open(f"/console/service-users/{robot.id}/keys/{robot.key_id}/delete")
    assert f"Remove the key {robot.key_id} of" in page.html.h1.text
    assert "its 1 live token stops working" in page
    page = owner.submit(form="page-form")
    assert "Key removed. Its tokens no longer work." in page
    assert robot.request_token().status_int == 400


def test_client_secret_is_shown_once(world: World, owner: Browser, robot: ServiceUserProgram) -> None:
    owner.open(f"/console/service-users/{robot.id}/secrets/new")
    page = owner.submit(form="page-form")
    secret = page.html.find(id="secret-value").text
    world.client.secrets.add(secret)
    assert robot.id in page
    page = owner.click("I have saved it")
    assert secret not in page
    owner.click("End …")
    page = owner.submit(form="page-form")
    assert "Client secret revoked." in page


def test_personal_access_token_works_until_removed(world: World, owner: Browser, robot: ServiceUserProgram) -> None:
    owner.open(f"/console/service-users/{robot.id}/personal-access-tokens/new")
    assert owner.submit({"name": ""}, form="page-form").status_int == 422
    page = owner.submit({"name": "Nightly backup"}, form="page-form")
    token = page.html.find(id="secret-value").text
    world.client.secrets.add(token)
    assert world.client.fetch_userinfo(token).status_int == 200
    page = owner.click("I have saved it")
    assert "Nightly backup" in page
    owner.open(f"{owner.url.partition('#')[0]}/personal-access-tokens")
    owner.click("Remove")
    page = owner.submit(form="page-form")
    assert "Personal access token removed." in page
    assert world.client.fetch_userinfo(token).status_int == 401


def test_key_of_higher_privileged_service_user_is_refused(
    world: World, sign_in: SignIn, robot: ServiceUserProgram
) -> None:
    """Security 14.4: it would be a privilege escalation."""
    world.assign_manager_role(robot, "ORG_OWNER")
    clerk = sign_in("ORG_USER_MANAGER")
    clerk.open(f"/console/service-users/{robot.id}/keys/new")
    page = clerk.submit(form="page-form")
    assert page.status_int == 403
    assert "manager roles beyond your own" in page


def test_key_badges_show_expiry(world: World, owner: Browser, organization: Organization) -> None:
    key_ends = world.clock() + timedelta(days=5, hours=1)
    robot = world.make_service_user_program(organization, expires_at=key_ends)
    assert "Expires in 5 days" in owner.open(f"/console/service-users/{robot.id}")
    assert "Expires in 5 days" in owner.open(_list(organization))


def test_list_is_filtered_by_kind_and_owner(
    world: World, owner: Browser, organization: Organization, robot: ServiceUserProgram
) -> None:
    ada, stranger = world.make_human_user(organization), world.make_human_user()
    agent, other = world.make_agent(ada), world.make_agent(world.make_human_user(organization))
    world.make_agent(stranger)

    def listed(**fields: str) -> set[str]:
        page = owner.open(f"{_list(organization)}?{urlencode(fields)}")
        return {link["href"].rpartition("/")[2] for link in page.html.select("a.table__name")}

    assert listed() == {robot.id, agent.id, other.id}
    assert listed(kind="service") == {robot.id}
    assert listed(kind="agent") == {agent.id, other.id}
    assert listed(owner=ada.id) == {agent.id}
    assert owner.page.html.find(id="field-owner")["value"] == ada.id
    assert listed(kind="service", owner=ada.id) == set()
    assert "No results match this search." in owner.page
    assert listed(owner=stranger.id) == set()
    with world.read_only_services() as services:
        names = {user.id: services.storage.users.find_subject(user.id).login_name for user in (ada, stranger)}
    assert listed(owner=names[ada.id]) == {agent.id}
    assert listed(owner=names[stranger.id]) == set()
    assert owner.page.status_int == 422
    assert "There is no such user." in owner.page.html.find(id="error-owner").text
    assert owner.open(f"{_list(organization)}?kind=human").status_int == 422


def _public_pem(robot: ServiceUserProgram) -> str:
    return robot.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _private_key(file: KeyFile) -> RSAPrivateKey:
    key = load_pem_private_key(file.key.encode(), None)
    assert isinstance(key, RSAPrivateKey)
    return key


def test_federated_credential_is_added_from_a_template_and_removed(
    world: World, owner: Browser, robot: ServiceUserProgram
) -> None:
    owner.open(f"/console/service-users/{robot.id}/federated-credentials/new")
    assert f"need the audience {world.issuer}." in owner.page.html.main.get_text()
    page = owner.click("GitHub Actions")
    assert "https://token.actions.githubusercontent.com" in page
    page = owner.submit({"conditions": "repository = acme/app"}, form="page-form")
    assert "Add a condition on" in page, "the claim is no immutable id"
    page = owner.submit({"conditions": "sub = repo:acme/app:*\nrepository_id = 74"}, form="page-form")
    assert "Federated credential added." in page
    assert "repo:acme/app:*" in page
    [credential] = world.operator_services.federated_credentials.page(robot.id).items
    assert credential.conditions == ("sub = repo:acme/app:*", "repository_id = 74")
    assert not credential.instance_managed
    owner.open(f"/console/service-users/{robot.id}/federated-credentials/{credential.id}/delete")
    assert "Its tokens no longer work." in owner.submit(form="page-form")
