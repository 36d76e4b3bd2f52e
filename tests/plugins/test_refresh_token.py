"""The plugin refresh_token and its grant; what it accepts in detail is tested in tests/spec."""

import pytest

from identity.testing.grant_contract import GrantContract, MakeCall, TokenCall
from identity.testing.plugin_contract import PluginContract
from identity.testing.world import World


class TestPlugin(PluginContract):
    name = "refresh_token"


class TestGrant(GrantContract):
    grant_type = "refresh_token"
    default_scope = "openid offline_access"
    drops_unknown_scopes = False
    single_use = True

    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        client = world.a_web_application()
        session = world.a_session()

        def call() -> TokenCall:
            refresh_token = world.tokens(client, session)["refresh_token"]
            return TokenCall({"refresh_token": refresh_token}, {"Authorization": client.header})

        return call
