from typing import Any

import pytest

from identity.domain.errors import Invalid
from identity.domain.users import ServiceUser
from identity.services.commands.service_users import ChangeServiceUser, CreateServiceUser
from identity.testing.world import ServiceUserProgram, World


def create(world: World, organization_id: str, **values: Any) -> ServiceUser:
    return world.operator_services.service_users.create(organization_id, CreateServiceUser.decode(values))


@pytest.mark.shows("2.1.1", "2.1.2")
@pytest.mark.parametrize("field", ["user_name", "display_name"])
def test_names_are_validated(field: str) -> None:
    names = {"user_name": "robot", "display_name": "Robot"}
    with pytest.raises(Invalid) as refusal:
        CreateServiceUser.decode({name: value for name, value in names.items() if name != field})
    assert refusal.value.fields == {field: "This is required."}
    for value in ("", "   ", "x" * 201, "a\0b", "a\nb", 7, None):
        with pytest.raises(Invalid) as refusal:
            CreateServiceUser.decode(names | {field: value})
        assert list(refusal.value.fields) == [field]


@pytest.mark.parametrize("user_name", ["robot@acme", "ro bot", "acme/robot", "acme\\robot"])
def test_user_name_excludes_login_name_separators(user_name: str) -> None:
    with pytest.raises(Invalid):
        CreateServiceUser.decode({"user_name": user_name, "display_name": "Robot"})


def test_userinfo_returns_names(world: World) -> None:
    robot = world.make_service_user_program(display_name="Nachtläufer №1")
    userinfo = world.client.fetch_userinfo(robot.access_token()).json
    assert userinfo["name"] == "Nachtläufer №1"
    assert userinfo["preferred_username"] == robot.user.user_name


def test_user_name_is_unique_case_insensitively(world: World) -> None:
    organization = world.make_organization()
    create(world, organization.id, user_name="Robot", display_name="First")
    for spelling in ("Robot", "robot", "ROBOT"):
        with pytest.raises(Invalid) as refusal:
            create(world, organization.id, user_name=spelling, display_name="Second")
        assert list(refusal.value.fields) == ["user_name"]


def test_organizations_can_share_user_name(world: World) -> None:
    first = create(world, world.make_organization().id, user_name="robot", display_name="Robot")
    second = create(world, world.make_organization().id, user_name="robot", display_name="Robot")
    assert first.id != second.id


def test_display_name_change_keeps_token_live(world: World, robot: ServiceUserProgram) -> None:
    token = robot.access_token()
    world.operator_services.service_users.change(robot.id, ChangeServiceUser(display_name="Renamed"))
    assert world.client.fetch_userinfo(token).json["name"] == "Renamed"
