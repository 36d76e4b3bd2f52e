"""Decisions, "Project grants, seen from the holder": neither organization sees the other one's users."""

import json
from dataclasses import dataclass

import pytest

from identity.domain.permissions import Resource, project_grant_resource, project_resource
from identity.domain.projects import Project, ProjectGrant
from identity.domain.users import HumanUser, User
from identity.services.commands.users import CreateHumanUser
from identity.testing.browser import Browser
from identity.testing.response_checks import check_api_error
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.console.test_authorization import CELLS as PAGES
from tests.plugins.management.api_fixture_data import ROLE, ApiClient, ApiFixtureData, make_fixture_data
from tests.spec.test_management_authorization import CELLS

NOTHING = "01980000-0000-7000-8000-000000000000"


@dataclass(frozen=True)
class ProjectGrantScenario:
    """A project grant with managers on both sides, each of whom has made a change."""

    world: World
    estate: ApiFixtureData
    #: The first of each pair manages the organization, the second only the grant.
    owner: tuple[HumanUser, HumanUser]
    holder: tuple[HumanUser, HumanUser]
    robots: dict[str, ServiceUserProgram]
    grantee: HumanUser

    @property
    def grant(self) -> ProjectGrant:
        return self.estate.grant

    @property
    def project(self) -> Project:
        return self.estate.project

    def api(self, side: str) -> ApiClient:
        return ApiClient.for_user(self.robots[side])

    def people(self, side: str) -> tuple[User, ...]:
        return (*(self.owner if side == "owner" else self.holder), self.robots[side].user)

    def other(self, side: str) -> str:
        return "holder" if side == "owner" else "owner"

    def private_texts(self, side: str) -> set[str]:
        """Texts that only that side may read: ids, user names, names and email addresses of its users."""
        private_texts = set()
        for item in self.people(side):
            private_texts |= {item.id, item.user_name, item.display_name}
            if isinstance(item, HumanUser):
                private_texts.add(item.profile.email)
        # The owner's applications know users by id only.
        private_texts |= {self.grantee.user_name, self.grantee.display_name} if side == "holder" else set()
        return {item for item in private_texts if item}


@pytest.fixture
def shared(world: World) -> ProjectGrantScenario:
    estate = make_fixture_data(world)
    at_grant = project_grant_resource(estate.grant, estate.project)
    sides = {"owner": estate.organization, "holder": estate.holder}
    people: dict[str, list[HumanUser]] = {}
    robots = {}
    for side, home in sides.items():
        robots[side] = world.make_service_user_program(home, display_name=f"Robot-of-{side}")
        world.assign_manager_role(robots[side], "ORG_OWNER")
        people[side] = [make_named_user(world, home.id, f"{side}-{name}") for name in ("ursula", "viktor", "wilma")]
        world.assign_manager_role(people[side][0], "ORG_OWNER")
    world.assign_manager_role(robots["holder"], "PROJECT_GRANT_OWNER", resource=at_grant)
    project_grant_scenario = ProjectGrantScenario(
        world,
        estate,
        (people["owner"][0], people["owner"][1]),
        (people["holder"][0], people["holder"][1]),
        robots,
        people["holder"][2],
    )
    for side in sides:
        api = project_grant_scenario.api(side)
        manager = {"user_id": people[side][1].id, "roles": ["PROJECT_GRANT_OWNER_VIEWER"]}
        added = api.post(f"/project-grants/{estate.grant.id}/managers", manager)
        api.patch(f"/managers/{added['id']}", {"roles": ["PROJECT_GRANT_OWNER"]})
    path = f"/project-grants/{estate.grant.id}/user-grants"
    grant = project_grant_scenario.api("holder").post(
        path, {"user_id": project_grant_scenario.grantee.id, "roles": [ROLE]}
    )
    project_grant_scenario.api("owner").patch(f"/user-grants/{grant['id']}", {"roles": []})
    project_grant_scenario.api("owner").post(f"/project-grants/{estate.grant.id}/deactivate", status=200)
    project_grant_scenario.api("owner").post(f"/project-grants/{estate.grant.id}/reactivate", status=200)
    return project_grant_scenario


def make_named_user(world: World, organization_id: str, name: str) -> HumanUser:
    side, role = name.split("-")
    command = CreateHumanUser(
        user_name=name, given_name=role.capitalize(), family_name=f"of {side}", email=f"{role}@{side}.example"
    )
    with world.transaction_services() as services:
        return services.users.create(organization_id, command)


SIDES = ["owner", "holder"]


@pytest.mark.thorough
@pytest.mark.parametrize("side", SIDES)
def test_api_hides_users_of_other_side(shared: ProjectGrantScenario, side: str) -> None:
    """Every list and resource of the own and the other organization, and of the grant."""
    private_texts, grant = shared.private_texts(shared.other(side)), shared.grant.id
    organization = shared.estate.organization if side == "owner" else shared.estate.holder
    other = shared.estate.holder if side == "owner" else shared.estate.organization
    for robot in (shared.robots[side], grant_manager(shared, side)):
        api = ApiClient.for_user(robot)
        addresses = [cell.path.format_map(shared.estate.path_values) for cell in CELLS if cell.method == "GET"]
        for organization_id in (organization.id, other.id):
            below = ("managers", "users", "audit-events", "projects", "granted-projects", "overview")
            addresses += [f"/organizations/{organization_id}/{item}" for item in below]
        for person in shared.people(shared.other(side)):
            addresses += [
                f"/organizations/{organization.id}/audit-events?actor_id={person.id}",
                f"/users/{person.id}/grants",
            ]
        addresses += [f"/project-grants/{grant}/{item}" for item in ("managers", "user-grants")]
        for address in addresses:
            answer = api.ask("GET", address)
            # The response may repeat the request.
            response_text = f"{answer.text}{dict(answer.headers)}".replace(
                address.rpartition("/users/")[2].partition("/")[0], ""
            )
            assert not [text for text in private_texts if text in response_text], address
    for person in shared.people(shared.other(side)):
        assert shared.api(side).list(f"/organizations/{organization.id}/audit-events?actor_id={person.id}") == []


def grant_manager(shared: ProjectGrantScenario, side: str) -> ServiceUserProgram:
    """A service user of that side who manages only the grant."""
    home = shared.estate.organization if side == "owner" else shared.estate.holder
    robot = shared.world.make_service_user_program(home, display_name=f"Grant-robot-of-{side}")
    resource = project_grant_resource(shared.grant, shared.project)
    shared.world.assign_manager_role(robot, "PROJECT_GRANT_OWNER", resource=resource)
    return robot


@pytest.mark.thorough
@pytest.mark.parametrize("side", SIDES)
def test_console_hides_users_of_other_side(shared: ProjectGrantScenario, side: str) -> None:
    """Including pickers, searched by full names, addresses and ids."""
    world, grant = shared.world, shared.grant.id
    private_texts = shared.private_texts(shared.other(side))
    organization = shared.estate.organization if side == "owner" else shared.estate.holder
    for person in shared.owner if side == "owner" else shared.holder:
        browser = Browser(world)
        browser.start_session(person)
        path_values = {**shared.estate.path_values, "organization": organization.id}
        pages = {"/console" + cell.path.replace("{key:.+}", ROLE).format_map(path_values) for cell in PAGES}
        with world.read_only_services() as services:
            trail = services.storage.audit.list_after(0, 1000)
        pages |= {f"/console/audit-events/{event.id}" for event in trail}
        for page in sorted(pages):
            assert not leaked(browser, page, private_texts), page
        for query in sorted(private_texts | {f"{item}@" for item in private_texts}):
            for collection in ("managers", "user-grants"):
                page = f"/console/project-grants/{grant}/{collection}/new?q={query}"
                assert not leaked(browser, page, private_texts, echoed=query.rstrip("@")), page
                assert not browser.page.html.select("a.choice") or "@" not in query, page
        for other in shared.people(shared.other(side)):
            answers = [
                browser.open(f"/console/project-grants/{grant}/managers/new?user_id={item}")
                for item in (other.id, NOTHING)
            ]
            assert {answer.status_int for answer in answers} <= {403, 404}


def leaked(browser: Browser, page: str, private_texts: set[str], *, echoed: str = "") -> list[str]:
    """Private texts on the page, except echoed input."""
    text = browser.open(page).text.partition("<main")[2]
    text = text.replace(echoed, "") if echoed else text
    return [private_text for private_text in private_texts if private_text in text]


@pytest.mark.parametrize("side", SIDES)
def test_each_side_lists_its_managers_and_counts_others(shared: ProjectGrantScenario, side: str) -> None:
    api, path = shared.api(side), f"/project-grants/{shared.grant.id}"
    listed = api.get(f"{path}/managers")
    expected = {shared.owner[1].id} if side == "owner" else {shared.holder[1].id, shared.robots["holder"].id}
    # The estate has a viewer at every resource.
    found = {item["user_id"] for item in listed["items"]}
    assert expected <= found
    assert not found & {item.id for item in shared.people(shared.other(side))}
    assert listed["total"] == len(found)
    assert api.get(f"{path}/other-managers") == {
        "count": len(shared.api(shared.other(side)).list(f"{path}/managers")),
        "count_is_exact": True,
    }
    with shared.world.read_only_services() as services:
        every = services.storage.managers.page(project_grant_resource(shared.grant, shared.project).key).items
    for manager in every:
        path = f"/managers/{manager.id}"
        if manager.user_id in found:
            assert api.get(path)["user_id"] == manager.user_id
            continue
        unknown = check_api_error(api.ask("GET", f"/managers/{NOTHING}"), 404, "not_found")["message"]
        for method, members in (("GET", None), ("PATCH", {"roles": ["PROJECT_GRANT_OWNER_VIEWER"]}), ("DELETE", None)):
            refused = check_api_error(api.ask(method, path, members), 404, "not_found")
            assert refused["message"].replace(manager.id, NOTHING) == unknown


def test_grant_managers_are_chosen_from_own_users(shared: ProjectGrantScenario) -> None:
    path = f"/project-grants/{shared.grant.id}/managers"
    manager, third = shared.people("owner")[1], shared.world.make_service_user_program()
    for side in SIDES:
        for user_id in (shared.people(shared.other(side))[1].id, third.id, NOTHING):
            answer = shared.api(side).ask("POST", path, {"user_id": user_id, "roles": ["PROJECT_GRANT_OWNER"]})
            assert check_api_error(answer, 422, "invalid")["fields"] == {"user_id": "There is no such user."}
    boss = ApiClient.for_user(shared.world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    answer = boss.ask("POST", path, {"user_id": third.id, "roles": ["PROJECT_GRANT_OWNER"]})
    assert "organization that owns the project" in check_api_error(answer, 422, "invalid")["fields"]["user_id"]
    answer = boss.ask("POST", path, {"user_id": manager.id, "roles": ["PROJECT_GRANT_OWNER"]})
    assert "already" in check_api_error(answer, 422, "invalid")["fields"]["user_id"]


def test_project_grant_names_project_and_owner(shared: ProjectGrantScenario) -> None:
    path = f"/project-grants/{shared.grant.id}"
    for api in (shared.api("holder"), ApiClient.for_user(grant_manager(shared, "holder"))):
        project_grant = api.get(path)
        assert (project_grant["project_name"], project_grant["owner_name"]) == (
            shared.project.name,
            shared.estate.organization.name,
        )
        assert api.list(f"/organizations/{shared.estate.holder.id}/granted-projects") == [project_grant]
        for hidden in (f"/projects/{shared.project.id}", f"/organizations/{shared.estate.organization.id}"):
            check_api_error(api.ask("GET", hidden), 404, "not_found")


def test_grant_events_are_in_both_audit_trails(shared: ProjectGrantScenario) -> None:
    homes = {"owner": shared.estate.organization.id, "holder": shared.estate.holder.id}
    for side in SIDES:
        other = homes[shared.other(side)]
        path = f"/organizations/{homes[side]}/audit-events"
        events = [
            item
            for event in ("manager", "project_grant", "user_grant")
            for item in shared.api(side).list(f"{path}?event={event}&limit=100")
            if "other_organization_id" in item["detail"]
        ]
        assert {item["event"] for item in events} >= {
            *("manager.added", "manager.changed", "project_grant.added", "project_grant.deactivated"),
            *("project_grant.reactivated", "user_grant.added", "user_grant.changed"),
        }
        assert {item["detail"]["other_organization_id"] for item in events} == {other}
        actors = {item["actor"]["id"] for item in events if item["actor"]["kind"] == "user"}
        assert actors == {shared.robots[side].id, None}
        for item in events:
            if item["actor"] == {**item["actor"], "kind": "user", "id": None}:
                assert {
                    item["actor"][name] for name in ("client_id", "session_id", "client_address", "request_id")
                } == {None}
        added = [item for item in events if item["event"] == "manager.added"]
        assert {item["object_id"] is None for item in added} == {True, False}
        assert all(("user_id" in item["detail"]) == (item["object_id"] is not None) for item in added)


@pytest.mark.thorough
def test_manager_of_both_sides_is_visible_on_both(shared: ProjectGrantScenario) -> None:
    """A manager of the project from the grantee's organization is named in the owner's audit trail."""
    robot = shared.world.make_service_user_program(shared.estate.holder)
    shared.world.assign_manager_role(robot, "PROJECT_OWNER", resource=project_resource(shared.project))
    ApiClient.for_user(robot).patch(f"/project-grants/{shared.grant.id}", {"roles": []})
    path = f"/organizations/{shared.estate.organization.id}/audit-events?event=project_grant.changed"
    assert [item["actor"]["id"] for item in shared.api("owner").list(path)] == [robot.id]


def test_owner_export_omits_grantee_managers(shared: ProjectGrantScenario) -> None:
    address = f"/organizations/{shared.estate.organization.id}/export"
    exported = json.dumps(shared.api("owner").post(address, status=200))
    assert not [text for text in shared.private_texts("holder") if text in exported]
    assert shared.owner[1].id in exported


def test_instance_managers_see_both_sides(shared: ProjectGrantScenario) -> None:
    boss = shared.world.make_manager_program("IAM_OWNER_VIEWER", resource=Resource.INSTANCE)
    path = f"/project-grants/{shared.grant.id}"
    found = {item["user_id"] for item in ApiClient.for_user(boss).list(f"{path}/managers")}
    assert {shared.owner[1].id, shared.holder[1].id} <= found
    assert ApiClient.for_user(boss).get(f"{path}/other-managers")["count"] == 0


def test_manager_of_both_organizations_sees_both_sides(shared: ProjectGrantScenario) -> None:
    robot = shared.world.make_service_user_program(shared.estate.holder)
    for home in (shared.estate.organization, shared.estate.holder):
        shared.world.assign_manager_role(robot, "ORG_OWNER", resource=Resource.of_organization(home.id))
    found = {item["user_id"] for item in ApiClient.for_user(robot).list(f"/project-grants/{shared.grant.id}/managers")}
    assert {shared.owner[1].id, shared.holder[1].id} <= found


def test_user_page_lists_managed_project_grant(shared: ProjectGrantScenario) -> None:
    for side, people in (("owner", shared.owner), ("holder", shared.holder)):
        browser = Browser(shared.world)
        browser.start_session(people[0])
        section = browser.open(f"/console/users/{people[1].id}/access").html.find(id="access")
        assert shared.project.name in section.text, side
