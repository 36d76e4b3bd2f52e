"""Security 7.4, 18.4: no node's cache outlives a change by another node, or responds for another client."""

from collections.abc import Callable, Iterator

import pytest

from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.container import Services
from identity.testing.assembled_service import RsaKeyPool
from identity.testing.service_test_client import Credentials
from identity.testing.world import BrowserSession, ServiceUserProgram, World

pytestmark = [pytest.mark.storages("sqlite", "postgresql"), pytest.mark.thorough]  # memory belongs to one node


class TwoNodeScenario:
    """Two nodes of one service. The first has just seen every request succeed, and could have cached that."""

    def __init__(self, world: World, other: World) -> None:
        self.world, self.other = world, other
        self.robot: ServiceUserProgram = world.make_manager_program()
        self.project = world.make_project(self.robot.organization)
        self.client: Credentials = world.make_web_application(self.project.id)
        self.resource: Credentials = world.make_application(self.project.id)
        self.person: HumanUser = world.make_human_user(self.robot.organization)
        self.session: BrowserSession = world.make_browser_session(self.person)
        tokens = world.obtain_tokens(self.client, self.session, scope="openid profile offline_access")
        self.token, self.refresh_token = tokens["access_token"], tokens["refresh_token"]
        self.managing = self.robot.management_token()
        assert self.node_states() == dict.fromkeys(self.node_states(), True)

    def node_states(self) -> dict[str, bool]:
        """What the first node accepts."""
        client = self.world.client
        return {
            "userinfo": client.fetch_userinfo(self.token).status_int == 200,
            "introspection": client.introspect(self.token, self.resource).json.get("active") is True,
            "session": "code=" in self.session.authorize(self.client, prompt="none").headers.get("Location", ""),
            "assertion": self.robot.request_token("openid").status_int == 200,
            "management": client.call_management_api("/organizations", self.managing).status_int == 200,
        }


@pytest.fixture
def scene(key_pool: RsaKeyPool, make_world: Callable[..., World]) -> Iterator[TwoNodeScenario]:
    world = make_world()
    other = World(world.settings, clock=world.clock, key_pool=key_pool)
    yield TwoNodeScenario(world, other)
    other.close()


def _end_sessions(scene: TwoNodeScenario, services: Services) -> None:
    services.users.end_sessions(scene.person.id, principal=Principal.OPERATOR)


def _remove_key(scene: TwoNodeScenario, services: Services) -> None:
    [key] = services.service_users.page_keys(scene.robot.id)
    services.service_users.remove_key(scene.robot.id, key.id, principal=Principal.OPERATOR)


def _remove_manager(scene: TwoNodeScenario, services: Services) -> None:
    [manager] = services.storage.managers.list_for_user(scene.robot.id)
    services.managers.remove(manager.id, principal=Principal.OPERATOR)


#: Each change, and what it ends.
CHANGES: dict[str, tuple[Callable[[TwoNodeScenario, Services], object], set[str]]] = {
    "person deactivated": (
        lambda scene, services: services.users.deactivate(scene.person.id, principal=Principal.OPERATOR),
        {"userinfo", "introspection", "session"},
    ),
    "person removed": (
        lambda scene, services: services.users.remove(scene.person.id, principal=Principal.OPERATOR),
        {"userinfo", "introspection", "session"},
    ),
    "sessions ended": (_end_sessions, {"userinfo", "introspection", "session"}),
    "application deactivated": (
        lambda scene, services: services.applications.deactivate(scene.client.client_id, principal=Principal.OPERATOR),
        {"userinfo", "introspection", "session"},
    ),
    "resource server deactivated": (
        lambda scene, services: services.applications.deactivate(
            scene.resource.client_id, principal=Principal.OPERATOR
        ),
        {"introspection"},
    ),
    "project deactivated": (
        lambda scene, services: services.projects.deactivate(scene.project.id, principal=Principal.OPERATOR),
        {"userinfo", "introspection", "session"},
    ),
    "organization deactivated": (
        lambda scene, services: services.organizations.deactivate(
            scene.robot.organization.id, principal=Principal.OPERATOR
        ),
        {"userinfo", "introspection", "session", "assertion", "management"},
    ),
    "key removed": (_remove_key, {"assertion", "management"}),
    "service user deactivated": (
        lambda scene, services: services.service_users.deactivate(scene.robot.id, principal=Principal.OPERATOR),
        {"assertion", "management"},
    ),
    "manager removed": (_remove_manager, {"management"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_change_on_one_node_applies_to_the_next_request_on_another(scene: TwoNodeScenario, change: str) -> None:
    act, ends = CHANGES[change]
    with scene.other.transaction_services() as services:
        act(scene, services)
    assert {name for name, passes in scene.node_states().items() if not passes} == ends


def test_cached_introspection_is_not_shared_between_clients(scene: TwoNodeScenario) -> None:
    """The same token right after a success: another client, another token of the same user, and back again."""
    world, stranger = scene.world, scene.world.make_application()
    narrow = world.obtain_tokens(scene.client, scene.session, scope="openid")["access_token"]
    for _ in range(2):
        assert world.client.introspect(scene.token, scene.resource).json["scope"] == "openid profile offline_access"
        assert world.client.introspect(scene.token, stranger).json == {"active": False}
        assert world.client.introspect(narrow, scene.resource).json["scope"] == "openid"
        assert "name" in world.client.fetch_userinfo(scene.token).json
        assert "name" not in world.client.fetch_userinfo(narrow).json
        assert world.client.call_management_api("/me", scene.managing).status_int == 200
        assert world.client.call_management_api("/me", narrow).status_int == 401


def test_new_signing_key_is_known_to_every_node_in_half_a_minute(scene: TwoNodeScenario) -> None:
    """Decisions, lifetimes: nodes may cache the key set for 30 seconds."""
    scene.world.client.fetch_jwks()
    with scene.other.transaction_services() as services:
        services.signing_keys.rotate()
    scene.world.clock.advance(31)
    known = [{key["kid"] for key in node.client.fetch_jwks().json["keys"]} for node in (scene.world, scene.other)]
    assert known[0] == known[1]
    assert len(known[0]) == 2
