"""SCIM groups are the groups of the organization. SCIM gives no roles that its token lacks, and removes the
memberships that it added."""

from identity.domain.groups import Group
from identity.services.access_control import Principal
from identity.services.commands.groups import AddGroupGrant, AddGroupMember
from identity.testing.world import World
from tests.plugins.scim.scim_client import GROUP_SCHEMA, ScimClient, check_scim_error


def members_of(scim: ScimClient, id: str) -> set[str]:
    with scim.world.read_only_services() as services:
        return {member.user_id for member in services.storage.group_members.page(id)}


def add_role(scim: ScimClient, group_id: str) -> None:
    """The group gives a role of a project from now on."""
    with scim.world.read_only_services() as services:
        organization = services.organizations.get(scim.organization_id)
    project = scim.world.make_project(organization, roles=["reader"])
    with scim.world.transaction_services() as services:
        command = AddGroupGrant(project_id=project.id, roles=frozenset({"reader"}))
        services.group_grants.add(group_id, command, principal=Principal.OPERATOR)


def test_group_life_cycle(scim: ScimClient) -> None:
    ada, bob = (scim.create_user(name)["id"] for name in ("ada", "bob"))
    group = scim.create_group("Sales", ada, externalId="g1")
    path = f"/Groups/{group['id']}"
    assert group["members"][0]["value"] == ada
    assert scim.get(f"/Users/{ada}?attributes=groups")["groups"][0]["value"] == group["id"]
    scim.patch(path, {"op": "Add", "path": "members", "value": [{"value": bob}]})
    assert members_of(scim, group["id"]) == {ada, bob}
    scim.patch(path, {"op": "Remove", "path": f'members[value eq "{ada}"]'})
    scim.patch(path, {"op": "replace", "value": {"id": group["id"], "displayName": "Support"}})
    assert members_of(scim, group["id"]) == {bob}
    assert scim.find("Groups", 'displayName eq "support"') == [group["id"]]
    assert scim.find("Groups", 'externalId eq "g1"') == [group["id"]]
    assert scim.find("Groups", f'id eq "{group["id"]}" and members eq "{bob}"') == [group["id"]]
    assert scim.find("Groups", f'members.value eq "{ada}"') == []
    assert "members" not in scim.get(f"{path}?excludedAttributes=members")
    for members in ({"displayName": "SUPPORT"}, {"displayName": "Other", "externalId": "g1"}):
        answer = scim.ask("POST", "/Groups", {"schemas": [GROUP_SCHEMA], **members})
        check_scim_error(answer, 409, "uniqueness")
    assert scim.ask("DELETE", path).status_int == 204
    assert scim.create_group("Support", externalId="g1")["id"] != group["id"]


def test_members_get_no_roles_that_the_token_lacks(scim: ScimClient) -> None:
    """Service description §14.4."""
    ada, bob = (scim.create_user(name)["id"] for name in ("ada", "bob"))
    group = scim.create_group("Readers", ada)
    add_role(scim, group["id"])
    path, new = f"/Groups/{group['id']}", {"op": "add", "path": "members", "value": [{"value": bob}]}
    for answer in (
        scim.ask_patch(path, new),
        scim.ask_patch(path, {"op": "remove", "path": "members"}),
        scim.ask("DELETE", path),
    ):
        assert "user_grant.write" in check_scim_error(answer, 403)
    assert members_of(scim, group["id"]) == {ada}
    scim.patch(path, {"op": "replace", "path": "displayName", "value": "Everyone"})


def test_role_that_grants_lets_token_fill_the_group(world: World) -> None:
    robot = world.make_manager_program("ORG_USER_MANAGER")
    scim = ScimClient.for_program(robot)
    group = scim.create_group("Readers")
    add_role(scim, group["id"])
    ada = scim.create_user("ada")["id"]
    scim.patch(f"/Groups/{group['id']}", {"op": "add", "path": "members", "value": [{"value": ada}]})
    assert members_of(scim, group["id"]) == {ada}


def test_memberships_of_managers_stay(scim: ScimClient) -> None:
    ada, bob = (scim.create_user(name)["id"] for name in ("ada", "bob"))
    group = scim.create_group("Sales", bob)
    path = f"/Groups/{group['id']}"
    with scim.world.transaction_services() as services:
        services.group_members.add(group["id"], AddGroupMember(user_id=ada), principal=Principal.OPERATOR)
    removal = {"op": "remove", "path": f'members[value eq "{ada}"]'}
    check_scim_error(scim.ask_patch(path, removal), 400, "mutability")
    replaced = scim.put(path, {"schemas": [GROUP_SCHEMA], "displayName": "Sales", "members": []})
    assert [member["value"] for member in replaced["members"]] == [ada]
    assert members_of(scim, group["id"]) == {ada}


def test_only_people_of_the_organization_are_members(world: World, scim: ScimClient) -> None:
    group: Group | dict[str, str] = scim.create_group("Sales")
    stranger, robot = world.make_human_user().id, world.make_service_user_program()
    for value in ({"value": stranger}, {"value": "nobody"}, {"value": robot.id}, {"type": "Group", "value": "x"}):
        operation = {"op": "add", "path": "members", "value": [value]}
        check_scim_error(scim.ask_patch(f"/Groups/{group['id']}", operation), 400, "invalidValue")
    assert members_of(scim, group["id"]) == set()
