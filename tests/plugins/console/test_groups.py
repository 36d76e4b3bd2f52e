"""Groups in the console: list, members, roles and their ends."""

from datetime import timedelta

from identity.domain.groups import Group, GroupMember
from identity.domain.organizations import Organization
from identity.domain.permissions import project_resource
from identity.services.access_control import Principal
from identity.services.commands.groups import AddGroup, AddGroupGrant, AddGroupMember, ChangeGroupMember
from identity.testing.browser import Browser
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn


def _list(organization: Organization) -> str:
    return f"/console/organizations/{organization.id}/groups"


def _group(world: World, organization: Organization, name: str = "Sales") -> Group:
    with world.transaction_services() as services:
        return services.groups.add(organization.id, AddGroup(name=name), principal=Principal.OPERATOR)


def _member(world: World, group: Group, user_id: str) -> GroupMember:
    with world.transaction_services() as services:
        return services.group_members.add(group.id, AddGroupMember(user_id=user_id), principal=Principal.OPERATOR)


def test_group_with_member_and_project_roles_is_made_in_the_console(
    world: World, owner: Browser, organization: Organization
) -> None:
    project = world.make_project(organization, roles=("reader",))
    person = world.make_human_user(organization)
    assert "No groups yet" in owner.open(_list(organization))
    owner.click("group")
    page = owner.submit({"name": "Sales", "description": "Sells."}, form="page-form")
    assert page.html.h1.text == "Sales"
    assert "No members yet" in page
    path = owner.path
    owner.click("Add member")
    owner.open(f"{owner.path}?user_id={person.id}")
    page = owner.submit({"until": "2027-01-31"}, form="page-form")
    assert "The user is a member of the group." in page
    assert person.display_name in page.html.main.text
    assert "2027" in page.html.main.text
    owner.open(f"{path}/roles")
    owner.click("Add project roles")
    owner.click(project.name)
    page = owner.submit({"role": ["reader"]}, form="page-form")
    assert "reader" in page.html.main.text
    with world.read_only_services() as services:
        [(group, _member)] = services.groups.list_of_user(person.id)
        [grant] = services.group_grants.page(group.id).items
    assert (grant.project_id, grant.roles) == (project.id, frozenset({"reader"}))
    assert "Sells." in owner.open(_list(organization))


def test_manager_roles_are_given_at_a_project_and_removed(
    world: World, owner: Browser, organization: Organization
) -> None:
    group, project = _group(world, organization), world.make_project(organization)
    owner.open(f"/console/groups/{group.id}/managers/new")
    owner.click(project.name)
    page = owner.submit({"role": ["PROJECT_OWNER"]}, form="page-form")
    assert page.status_int == 200
    assert "PROJECT_OWNER" in page.html.main.text
    with world.read_only_services() as services:
        [manager] = services.group_managers.page(group.id).items
    assert manager.resource.id == project.id
    owner.open(f"/console/group-managers/{manager.id}/edit")
    assert owner.submit({"until": "2027-01-31"}, form="page-form").status_int == 200
    with world.read_only_services() as services:
        assert str(services.group_managers.get(manager.id).until).startswith("2027-01-31")
    owner.open(f"/console/group-managers/{manager.id}/delete")
    assert "No manager roles yet" in owner.submit(form="page-form")


def test_resources_of_other_organizations_cannot_be_selected(
    world: World, owner: Browser, organization: Organization
) -> None:
    group = _group(world, organization)
    foreign = world.make_project(world.make_organization())
    path = f"/console/groups/{group.id}/managers/new"
    assert foreign.name not in owner.open(path)
    for selection in (f"project:{foreign.id}", "instance:", "project:", "nothing", f"organization:{foreign.id}"):
        assert owner.open(f"{path}?resource={selection}").status_int == 404


def test_users_of_other_organizations_cannot_be_members(
    world: World, owner: Browser, organization: Organization
) -> None:
    group = _group(world, organization)
    foreign = world.make_human_user(world.make_organization())
    assert owner.open(f"/console/groups/{group.id}/members/new?user_id={foreign.id}").status_int == 404


def test_membership_ends_and_is_removed(world: World, owner: Browser, organization: Organization) -> None:
    group, person = _group(world, organization), world.make_human_user(organization)
    member = _member(world, group, person.id)
    owner.open(f"/console/group-members/{member.id}/edit")
    assert "Until 2027-01-31" in owner.submit({"until": "2027-01-31"}, form="page-form").html.main.text
    owner.open(f"/console/group-members/{member.id}/edit")
    assert owner.submit({"until": "2001-01-31"}, form="page-form").status_int == 422
    owner.open(f"/console/group-members/{member.id}/delete")
    assert "No members yet" in owner.submit(form="page-form")


def test_group_is_deactivated_reactivated_and_removed(world: World, owner: Browser, organization: Organization) -> None:
    group, person = _group(world, organization), world.make_human_user(organization)
    _member(world, group, person.id)
    page = owner.open(f"/console/groups/{group.id}/deactivate")
    assert "1 member loses its roles at once." in page
    assert "Deactivated" in owner.submit(form="page-form").html.main.text
    owner.open(f"/console/groups/{group.id}/reactivate")
    assert "Its members have its roles again." in owner.submit(form="page-form")
    owner.open(f"/console/groups/{group.id}/delete")
    assert owner.submit({"confirm_name": "another"}, form="page-form").status_int == 422
    assert "No groups yet" in owner.submit({"confirm_name": "Sales"}, form="page-form")


def test_activity_has_what_happened_to_the_group_its_members_and_roles(
    world: World, owner: Browser, sign_in: SignIn, organization: Organization
) -> None:
    group, person = _group(world, organization), world.make_human_user(organization)
    other, project = _group(world, organization, "Other"), world.make_project(organization, roles=("reader",))
    with world.transaction_services() as services:
        for at in (group, other):
            member = AddGroupMember(user_id=person.id)
            member_id = services.group_members.add(at.id, member, principal=Principal.OPERATOR).id
            grant = AddGroupGrant(project_id=project.id, roles=frozenset({"reader"}))
            services.group_grants.add(at.id, grant, principal=Principal.OPERATOR)
        change = ChangeGroupMember(until=world.clock() + timedelta(days=9))
        services.group_members.change(member_id, change, principal=Principal.OPERATOR)
        services.group_members.remove(member_id, principal=Principal.OPERATOR)
    path = f"/console/groups/{group.id}/activity"
    entries = [entry.get_text(" ", strip=True) for entry in owner.open(path).html.select(".timeline li")]
    assert len(entries) == 3
    assert person.display_name in " ".join(entries)
    assert len(owner.open(f"{path}?kind=members").html.select(".timeline li")) == 1
    # Of a changed and removed membership, too, and the person's own page names the group.
    assert len(owner.open(f"/console/groups/{other.id}/activity?kind=members").html.select(".timeline li")) == 3
    assert "Other" in owner.open(f"/console/users/{person.id}/activity").html.find(id="activity").text
    manager = sign_in("ORG_USER_MANAGER")
    assert manager.open(path).status_int == 403
    assert not [tab for tab in manager.open(f"/console/groups/{group.id}").html.select("a") if tab["href"] == path]


def test_taken_name_is_refused_beside_the_field(world: World, owner: Browser, organization: Organization) -> None:
    _group(world, organization)
    owner.open(f"{_list(organization)}/new")
    page = owner.submit({"name": "sales"}, form="page-form")
    assert page.status_int == 422
    assert "The organization already has a group with this name." in page


def test_manager_roles_are_offered_where_the_caller_may_grant_them(world: World, organization: Organization) -> None:
    group, person, browser = _group(world, organization), world.make_human_user(organization), Browser(world)
    granted, other = world.make_project(organization), world.make_project(organization)
    world.assign_manager_role(person, "ORG_USER_MANAGER")
    world.assign_manager_role(person, "PROJECT_OWNER", resource=project_resource(granted))
    browser.start_session(person)
    page = browser.open(f"/console/groups/{group.id}/managers/new")
    assert granted.name in page.html.main.text
    assert other.name not in page.html.main.text
