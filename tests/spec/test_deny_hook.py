"""Resources that a plugin denies (identity_deny) do not appear in lists, searches, choices and exports."""

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from identity.domain.permissions import ManagerLevel, Resource, ResourceKey
from identity.plugins.management.operation_table import OPERATIONS
from identity.services.access_control import Principal
from identity.services.lookup import Lookup
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.plugins.console.test_authorization import PAGES
from tests.plugins.management.api_fixture_data import ApiClient, ApiFixtureData, make_fixture_data


@dataclass(frozen=True)
class DenyHookScenario:
    """``hidden`` maps levels to id and name of a resource of the estate or beside it."""

    world: World
    estate: ApiFixtureData
    api: ApiClient
    browser: Browser
    hidden: dict[ManagerLevel, tuple[str, ...]]

    def exposed_in(self, level: ManagerLevel) -> set[str]:
        """Paths whose response contains a text of the hidden resource; its own paths do not count."""
        return {address for address, text in self._answers() if any(hidden in text for hidden in self.hidden[level])}

    def _answers(self) -> Iterable[tuple[str, str]]:
        for path in (operation.path for operation in OPERATIONS if operation.method == "GET"):
            yield f"GET {path}", self.api.ask("GET", self._address(path)).text
        export = "/organizations/{organization}/export"
        yield f"POST {export}", self.api.ask("POST", self._address(export)).text
        for path in {path for paths in PAGES.values() for path in paths}:
            yield f"console{path}", self.browser.open(f"/console{self._address(path)}").text

    def _address(self, path: str) -> str:
        # Role keys may contain slashes.
        return self.estate.address(path.replace(":.+", ""))


@pytest.fixture
def scene(make_world: WorldFactory) -> DenyHookScenario:
    world = make_world()
    estate = make_fixture_data(world)
    organization, project = world.make_organization(), world.make_project(estate.organization, roles=["reader"])
    grant = world.make_project_grant(estate.project, organization, roles=["reader"])
    person = world.operator_services.users.get(estate.path_values["user"])
    derived = world.make_project_grant(project, estate.holder, roles=["reader"])
    application = world.make_application(project.id)
    user_grant = world.make_user_grant(person, project, "reader")
    boss = world.make_human_user(estate.organization)
    world.assign_manager_role(boss, "IAM_OWNER", resource=Resource.INSTANCE)
    browser = Browser(world)
    browser.start_session(boss)
    hidden = {
        ManagerLevel.ORGANIZATION: (organization.id, organization.name, organization.primary_domain),
        ManagerLevel.PROJECT: (project.id, project.name, application.client_id, user_grant.id, derived.id),
        ManagerLevel.PROJECT_GRANT: (grant.id,),
    }
    return DenyHookScenario(
        world,
        estate,
        ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE)),
        browser,
        hidden,
    )


#: Paths that name the hidden resource but are authorized at a level above: events belong to the organization, and a
#: grant of a readable project names its grantee.
ABOVE = {
    ManagerLevel.ORGANIZATION: {
        "GET /audit-events",
        "GET /projects/{project}/grants",
        "POST /organizations/{organization}/export",
        "console/projects/{project}",
        "console/projects/{project}/grants",
        "console/projects/{project}/delete",
        "console/organizations/{organization}/audit-events",
        "GET /organizations/{organization}/audit-events",
    },
    ManagerLevel.PROJECT: {
        "GET /audit-events",
        "GET /organizations/{organization}/audit-events",
        "console/audit-events",
        "console/organizations/{organization}/audit-events",
    },
    ManagerLevel.PROJECT_GRANT: {
        "GET /audit-events",
        "GET /organizations/{organization}/audit-events",
        "console/audit-events",
        "console/organizations/{organization}/audit-events",
    },
}


@pytest.mark.parametrize("level", [ManagerLevel.ORGANIZATION, ManagerLevel.PROJECT, ManagerLevel.PROJECT_GRANT])
def test_denied_resources_are_not_listed(scene: DenyHookScenario, level: ManagerLevel) -> None:
    key = ResourceKey(level, scene.hidden[level][0])
    statements: list[str] = []

    def deny(principal: Principal, permission: str, resource: Resource, lookup: Lookup) -> str | None:
        statements.append(permission)
        return "Hidden." if key in resource.lineage else None

    assert scene.exposed_in(level) - ABOVE[level], "it would be seen"
    scene.world.identity.process_state.deny_hook = deny
    assert scene.exposed_in(level) - ABOVE[level] == set()
    assert statements


def test_totals_omit_denied_rows(scene: DenyHookScenario) -> None:
    path_values = scene.estate.path_values
    paths = [
        "/organizations",
        f"/organizations/{path_values['organization']}/projects",
        f"/projects/{path_values['project']}/grants",
    ]
    before = [scene.api.get(path)["total"] for path in paths]
    keys = {ResourceKey(level, hidden[0]) for level, hidden in scene.hidden.items()}
    scene.world.identity.process_state.deny_hook = lambda principal, permission, resource, lookup: (
        "Hidden." if keys & set(resource.lineage) else None
    )
    for path, all_of_them in zip(paths, before, strict=True):
        found = scene.api.get(path)
        assert found["total"] == len(found["items"]) == all_of_them - 1
        first = scene.api.get(f"{path}?limit=1")
        assert first.get("total") is None


@pytest.mark.parametrize("reason", ["At most 100% of it.", "Not {this} one, %s.", "<b>Closed</b> on Sundays."])
def test_denial_reason_is_returned_verbatim(scene: DenyHookScenario, reason: str) -> None:
    scene.world.identity.process_state.deny_hook = lambda principal, permission, resource, lookup: reason
    path = f"/organizations/{scene.estate.organization.id}"
    page = scene.browser.open(f"/console{path}")
    assert page.status_int == 403
    assert reason in page.html.find("dl").text
    answer = scene.api.ask("GET", path)
    assert (answer.status_int, answer.json["message"]) == (403, reason)


def test_instance_events_omit_denied_organization(scene: DenyHookScenario) -> None:
    hidden = scene.hidden[ManagerLevel.ORGANIZATION][0]
    assert hidden in {item["organization_id"] for item in scene.api.list("/audit-events")}
    scene.world.identity.process_state.deny_hook = lambda principal, permission, resource, lookup: (
        "Hidden." if resource.organization_id == hidden else None
    )
    found = {item["organization_id"] for item in scene.api.list("/audit-events")}
    assert found
    assert hidden not in found


def test_hook_without_denial_hides_nothing(scene: DenyHookScenario) -> None:
    listed = scene.api.list("/organizations")
    scene.world.identity.process_state.deny_hook = lambda principal, permission, resource, lookup: None
    assert scene.api.list("/organizations") == listed
