"""The plugin client_credentials and its grant; what it accepts in detail is tested in tests/spec."""

import pytest

from identity.testing.grant_contract import GrantContract, MakeCall, TokenCall
from identity.testing.plugin_contract import PluginContract
from identity.testing.world import World


class TestPlugin(PluginContract):
    name = "client_credentials"


class TestGrant(GrantContract):
    grant_type = "client_credentials"
    openid_required = False
    default_scope = ""

    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        client = world.an_application(grant_types=frozenset({"client_credentials"}))
        return lambda: TokenCall({}, {"Authorization": client.header})
