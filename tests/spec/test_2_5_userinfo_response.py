"""Service description §2.5: the userinfo response."""

import pytest

from identity.services.commands.service_users import ChangeServiceUser
from identity.testing.world import ServiceUserProgram, World


@pytest.mark.shows("1.5", "2.5.1", "5.1.4")
@pytest.mark.parametrize(
    "scope",
    ["openid", "openid profile", "openid email phone address", None],
    ids=["openid", "profile", "others", "none"],
)
def test_service_user_reads_names_with_any_scope(world: World, robot: ServiceUserProgram, scope: str | None) -> None:
    answer = world.client.fetch_userinfo(robot.access_token(scope))
    assert answer.json == {
        "sub": robot.id,
        "name": robot.user.display_name,
        "preferred_username": robot.user.user_name,
        "updated_at": int(robot.user.changed_at.timestamp()),
    }
    assert type(answer.json["updated_at"]) is int


def test_updated_at_follows_profile_change(world: World, robot: ServiceUserProgram) -> None:
    token = robot.access_token()
    world.clock.advance(minutes=5)
    world.operator_services.service_users.change(robot.id, ChangeServiceUser(display_name="Renamed"))
    assert world.client.fetch_userinfo(token).json["updated_at"] == world.clock.seconds


def test_key_use_keeps_updated_at(world: World, robot: ServiceUserProgram) -> None:
    world.clock.advance(minutes=5)
    userinfo = world.client.fetch_userinfo(robot.access_token()).json
    assert userinfo["updated_at"] == int(robot.user.changed_at.timestamp())


@pytest.mark.shows("2.5.2")
def test_userinfo_follows_granted_scopes(world: World) -> None:
    """For other users the content depends on the granted scopes."""
    client = world.make_application()
    person = world.make_human_user()

    def claim_names(*scope: str) -> set[str]:
        token = world.make_authorization(person, client, scope=("openid", *scope)).access_token
        members = world.client.fetch_userinfo(token).json
        assert members.pop("sub") == person.id
        return set(members)

    assert claim_names() == set()
    assert claim_names("email") == set()  # this user has no email address
    assert claim_names("profile") == {"name", "given_name", "family_name", "preferred_username", "updated_at"}
