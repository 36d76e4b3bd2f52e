"""The tab Activity of a user: what happened by day, who did it, and what changed."""

from typing import Any

from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.projects import Project
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.user_grants import AddUserGrant
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


def make_person_without_role(world: World, organization: Organization) -> HumanUser:
    """A person from whom a role was taken."""
    person = world.make_human_user(organization)
    project: Project = world.make_project(organization, roles=["buyer"])
    with world.identity.transaction() as services:
        command = AddUserGrant(user_id=person.id, project_id=project.id, roles=frozenset({"buyer"}))
        grant = services.user_grants.add(command, principal=Principal.OPERATOR)
        services.user_grants.remove(grant.id, principal=Principal.OPERATOR)
    return person


def items(page: Any) -> list[Any]:
    return list(page.html.select(".timeline > li"))


def test_activity_shows_who_took_a_role(world: World, owner: Browser, organization: Organization) -> None:
    person = make_person_without_role(world, organization)
    page = owner.open(f"/console/users/{person.id}/activity")
    removed = items(page)[0]
    assert "by the operator" in removed.get_text()
    assert "buyer" in removed.select_one("del").get_text()
    added = items(page)[1]
    assert "buyer" in " ".join(item.get_text() for item in added.select("ins"))


def test_activity_is_filtered_by_kind(world: World, owner: Browser, organization: Organization) -> None:
    person = make_person_without_role(world, organization)
    path = f"/console/users/{person.id}/activity"
    assert len(items(owner.open(f"{path}?kind=roles"))) == 2
    assert items(owner.open(f"{path}?kind=refused")) == []
    assert len(items(owner.open(f"{path}?kind=unknown"))) == len(items(owner.open(path)))


def test_activity_has_more_pages(world: World, owner: Browser, organization: Organization) -> None:
    person = make_person_without_role(world, organization)
    page = owner.open(f"/console/users/{person.id}/activity?kind=roles&limit=1")
    first = items(page)[0].get_text()
    older = owner.open(page.html.select_one("a[rel=next]")["href"])
    assert items(older)[0].get_text() != first


def test_activity_needs_the_permission_to_read_audit_events(
    world: World, sign_in: SignIn, owner: Browser, organization: Organization
) -> None:
    path = f"/console/users/{make_person_without_role(world, organization).id}/activity"
    assert owner.open(path).status_int == 200
    assert sign_in("ORG_USER_MANAGER").open(path).status_int == 403


def test_activity_shows_no_event_of_another_organization(
    world: World, owner: Browser, instance_owner: Browser, organization: Organization
) -> None:
    person = make_person_without_role(world, organization)
    other = world.make_organization()
    world.assign_manager_role(person, "ORG_OWNER", resource=Resource.of_organization(other.id))
    path = f"/console/users/{person.id}/activity"
    assert len(items(instance_owner.open(path))) == len(items(owner.open(path))) + 1
