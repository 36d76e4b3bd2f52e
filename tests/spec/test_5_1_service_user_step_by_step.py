"""Service description §5.1: service user, step by step."""

from identity.testing.world import World


def test_first(world: World) -> None:
    robot = world.a_robot()
    token = robot.access_token()
    assert world.client.userinfo(token).json["sub"] == robot.id
    assert world.client.introspect(token, world.introspector).json == {"active": False}
