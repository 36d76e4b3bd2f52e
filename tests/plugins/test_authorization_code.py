"""The plugin authorization_code and its grant; what it accepts in detail is tested in tests/spec."""

import pytest

from identity.testing.grant_contract import GrantContract, MakeCall, TokenCall
from identity.testing.plugin_contract import PluginContract
from identity.testing.world import World


class TestPlugin(PluginContract):
    name = "authorization_code"


class TestGrant(GrantContract):
    grant_type = "authorization_code"
    required = frozenset({"code", "redirect_uri"})
    reads_scope = False
    single_use = True
    unforgiving = frozenset({"redirect_uri", "code_verifier"})

    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        client = world.a_web_application()
        session = world.a_session()
        return lambda: TokenCall(world.a_code(client, session).form(), {"Authorization": client.header})


class TestGrantOfPublicClients(TestGrant):
    """They have no header to leave out: the client_id stands in the form."""

    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        client = world.a_public_application()
        session = world.a_session()
        return lambda: TokenCall({"client_id": client, **world.a_code(client, session).form()})
