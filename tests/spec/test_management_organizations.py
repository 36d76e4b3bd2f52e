"""Management API: organizations."""

import pytest

from identity.domain.permissions import INSTANCE, project_resource
from identity.testing.responses import check_api_error
from identity.testing.world import World
from tests.plugins.management.estate import Api


@pytest.fixture
def api(world: World) -> Api:
    return Api.of(world.a_manager("IAM_OWNER", resource=INSTANCE))


def test_an_organization_from_its_beginning_to_its_end(world: World, api: Api) -> None:
    name = world.an_organization().name + " GmbH"
    made = api.post("/organizations", {"name": name})
    path = f"/organizations/{made['id']}"
    assert made["primary_domain"].endswith(".id.example.com")
    assert (made["registration"], made["state"]) == (True, "active")
    assert api.get(path) == made
    changed = api.patch(path, {"name": f"{name} & Co", "registration": False})
    assert (changed["name"], changed["registration"], changed["version"]) == (f"{name} & Co", False, 2)
    assert api.post(f"{path}/deactivate", status=200)["state"] == "deactivated"
    assert api.post(f"{path}/reactivate", status=200)["state"] == "active"
    api.delete(path)
    check_api_error(api.ask("GET", path), 404, "not_found")
    told = {event.event for event in world.audit_events(object_id=made["id"])}
    assert told == {f"organization.{verb}" for verb in ("created", "changed", "deactivated", "reactivated", "removed")}


def test_a_primary_domain_is_unique(world: World, api: Api) -> None:
    taken = world.an_organization().primary_domain
    answer = api.ask("POST", "/organizations", {"name": "Other", "primary_domain": taken})
    assert set(check_api_error(answer, 422, "invalid")["fields"]) == {"primary_domain"}
    answer = api.ask("PATCH", f"/organizations/{world.an_organization().id}", {"primary_domain": taken})
    assert set(check_api_error(answer, 422, "invalid")["fields"]) == {"primary_domain"}
    answer = api.ask("POST", "/organizations", {"name": "Other", "primary_domain": "No Domain"})
    assert "Enter a domain" in check_api_error(answer, 422, "invalid")["fields"]["primary_domain"]


def test_the_own_organization_has_to_stay(world: World, api: Api) -> None:
    path = f"/organizations/{world.instance.organization_id}"
    check_api_error(api.ask("POST", f"{path}/deactivate"), 409, "conflict")
    check_api_error(api.ask("DELETE", path), 409, "conflict")


def test_owners_of_the_instance_see_all_in_pages(world: World, api: Api) -> None:
    prefix = world.an_organization().name
    made = [api.post("/organizations", {"name": f"{prefix}-{letter}"})["id"] for letter in "BAC"]
    page = api.get(f"/organizations?q={prefix}-&limit=2")
    following = api.get(f"/organizations?q={prefix}-&limit=2&cursor={page['next_cursor']}")
    found = [one["id"] for one in page["items"] + following["items"]]
    assert found == [made[1], made[0], made[2]]
    assert following["next_cursor"] is None


def test_others_see_those_in_which_they_manage_anything(world: World) -> None:
    robot = world.a_manager("ORG_OWNER")
    elsewhere = world.a_project()
    world.make_manager(robot, "PROJECT_OWNER", resource=project_resource(elsewhere))
    world.an_organization()
    api = Api.of(robot)
    assert {one["id"] for one in api.list("/organizations")} == {robot.organization.id, elsewhere.organization_id}
    assert [one["id"] for one in api.list(f"/organizations?q={robot.organization.name}")] == [robot.organization.id]
    assert api.list("/organizations?state=deactivated") == []


def test_an_owner_of_an_organization_creates_none(world: World) -> None:
    api = Api.of(world.a_manager("ORG_OWNER"))
    answer = check_api_error(api.ask("POST", "/organizations", {"name": "Mine"}), 403, "forbidden")
    assert "organization.create" in answer["message"]
