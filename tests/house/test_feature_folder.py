"""A feature is one folder with endpoint, page, template, operation, records and settings; the ini file enables it."""

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from identity.domain.permissions import Resource
from identity.plugin_host import ENTRY_POINT_GROUP
from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory")  # the plugins matter, not the storage

FOLDER = Path(__file__).parent / "feature_folder"


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    point = EntryPoint("badges", "badges:BadgesPlugin", ENTRY_POINT_GROUP)
    shipped = list(entry_points(group=ENTRY_POINT_GROUP))
    monkeypatch.setattr("identity.plugin_host.entry_points", lambda group: [*shipped, point])
    monkeypatch.syspath_prepend(FOLDER)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "badges"]:
        del sys.modules[name]


def make_feature_world(make_world: WorldFactory, *, on: bool, without: str = "") -> World:
    plugins = [name for name in DEFAULT_PLUGINS.split() if name != without] + (["badges"] if on else [])
    settings = {"identity.plugin.badges.prefix": "★"} if on else {}
    return make_world(**{"identity.plugins": f"memory {' '.join(plugins)}", **settings})


def test_folder_brings_the_whole_feature(make_world: WorldFactory) -> None:
    world = make_feature_world(make_world, on=True)
    person = world.make_human_user()
    at_home = Resource.of_organization(person.organization_id)
    robot = world.make_manager_program("ORG_OWNER", resource=at_home)
    headers = {"Authorization": f"Bearer {robot.management_token()}"}
    url = f"{world.issuer}/management/v1/users/{person.id}/badge"
    answer = world.client.app.post_json(url, {"text": "Ada"}, headers=headers)
    assert answer.json == {"text": "★Ada"}
    document = world.client.get(f"{world.issuer}/management/v1/openapi.json").json
    assert document["paths"]["/users/{user}/badge"]["post"]["tags"] == ["Badges"]
    assert {"name": "Badges", "description": "What people wear."} in document["tags"]
    endpoint = world.client.discovery["badge_endpoint"]
    credentials = {"Authorization": world.introspector.header}
    assert world.client.post(endpoint, {"user_id": person.id}, credentials).json == {"badge": "★Ada"}
    browser = Browser(world)
    browser.start_session(person)
    assert "★Ada" in browser.open("/account/badge")


def test_unlisted_feature_leaves_nothing(make_world: WorldFactory) -> None:
    world = make_feature_world(make_world, on=False)
    assert "badge" not in world.client.get(f"{world.issuer}/.well-known/openid-configuration").text
    assert "badge" not in world.client.get(f"{world.issuer}/management/v1/openapi.json").text
    for method, path in (("POST", "/oauth/v2/badge"), ("GET", "/account/badge")):
        assert world.client.request(method, world.issuer + path).status_int == 404


def test_feature_works_without_the_plugin_that_it_extends(make_world: WorldFactory) -> None:
    world = make_feature_world(make_world, on=True, without="management")
    credentials = {"Authorization": world.introspector.header}
    answer = world.client.post(world.client.discovery["badge_endpoint"], {"user_id": "x"}, credentials)
    assert answer.json == {"badge": None}
