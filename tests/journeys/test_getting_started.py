"""Organization, project, web application and service user of a newcomer: by the console alone, and by the API alone.

Finally a script with the key file reads its organization over the management API. The same by ``identity apply`` is
in tests/cli/test_apply.py, and in a real browser in tests/browser/test_console.py.
"""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from identity.domain.permissions import Resource
from identity.domain.service_user_keys import KeyFile
from identity.testing.browser import Browser
from identity.testing.jwt_assertions import sign_assertion
from identity.testing.response_checks import check_token_response
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ApiClient

pytestmark = pytest.mark.every_storage

CALLBACK = "https://shop.example/callback"


@pytest.fixture
def owner(world: World) -> Browser:
    """A browser of a user with IAM_OWNER, like the first owner."""
    person = world.make_human_user()
    world.assign_manager_role(person, "IAM_OWNER", resource=Resource.INSTANCE)
    browser = Browser(world)
    browser.start_session(person)
    return browser


def choose(browser: Browser, section: str) -> None:
    """Follow a navigation link, which is on the page twice: phones show it as a menu."""
    link = next(item for item in browser.page.html.select(".rail a") if item.get_text().strip() == section)
    browser.open(link["href"])


def read_organization(world: World, key_file: str, organization_id: str) -> dict[str, object]:
    """The response to the newcomer's script, which has only the downloaded file and the service's URL."""
    file = KeyFile.from_json(key_file)
    world.client.secrets.add(file.key)
    private_key = load_pem_private_key(file.key.encode(), None)
    assert isinstance(private_key, RSAPrivateKey)
    now = world.clock.seconds
    claims = {"iss": file.user_id, "sub": file.user_id, "aud": world.issuer, "iat": now, "exp": now + 300}
    assertion = sign_assertion(claims, private_key, key_id=file.key_id)
    scope = "openid urn:service:iam:org:project:id:service:aud"
    token = check_token_response(world.client.exchange_assertion(assertion, scope))["access_token"]
    found: dict[str, object] = ApiClient(world, token).get(f"/organizations/{organization_id}")
    return found


@pytest.mark.thorough
def test_getting_started_in_the_console(world: World, owner: Browser) -> None:
    owner.open("/console")
    choose(owner, "Organizations")
    owner.click("New organization")
    owner.submit({"name": "Handmade"}, form="page-form")
    organization_id = owner.path.rpartition("/")[2]
    choose(owner, "Projects")
    owner.click("New project")
    owner.submit({"name": "Shop"}, form="page-form")
    project = owner.path
    owner.open(f"{project}/applications/new?type=web")
    page = owner.submit({"name": "Shop", "redirect_uris": CALLBACK}, form="page-form")
    world.client.secrets.add(page.html.find(id="secret-value").get_text())
    choose(owner, "Service users")
    owner.click("New service user")
    owner.submit({"user_name": "ci-runner", "display_name": "CI runner"}, form="page-form")
    robot_id = owner.path.rpartition("/")[2]
    owner.click("New key")
    page = owner.submit(form="page-form")
    key_file = page.html.find(id="key-file-text").get_text()
    owner.click("I have saved the file")
    owner.open(f"/console/organizations/{organization_id}/managers/new?user_id={robot_id}")
    owner.find_form("page-form").get("role", index=0).checked = True
    owner.submit(form="page-form")
    found = read_organization(world, key_file, organization_id)
    assert (found["id"], found["name"], found["state"]) == (organization_id, "Handmade", "active")


def test_getting_started_with_the_api(world: World) -> None:
    api = ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    organization = api.post("/organizations", {"name": "Newcomer"})
    root = f"/organizations/{organization['id']}"
    project = api.post(f"{root}/projects", {"name": "Shop"})
    application = {"name": "Shop", "type": "web", "redirect_uris": [CALLBACK]}
    created = api.post(f"/projects/{project['id']}/applications", application)
    assert created["client_secret"]
    robot = api.post(f"{root}/service-users", {"user_name": "ci-runner", "display_name": "CI runner"})
    key = api.post(f"/service-users/{robot['id']}/keys", {"expires_at": "2030-01-31T23:59:59Z"})
    api.post(f"{root}/managers", {"user_id": robot["id"], "roles": ["ORG_OWNER"]})
    file = key["key_file"] if isinstance(key["key_file"], str) else json.dumps(key["key_file"])
    assert read_organization(world, file, organization["id"])["name"] == "Newcomer"
