"""The plugin jwt_bearer and its grant; what it accepts in detail is tested in tests/spec."""

import pytest

from identity.testing.grant_contract import GrantContract, MakeCall, TokenCall
from identity.testing.plugin_contract import PluginContract
from identity.testing.service_client import JWT_BEARER
from identity.testing.world import World


class TestPlugin(PluginContract):
    name = "jwt_bearer"


class TestGrant(GrantContract):
    grant_type = JWT_BEARER

    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        robot = world.a_robot()
        return lambda: TokenCall({"assertion": robot.assertion()})
