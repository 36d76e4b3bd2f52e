"""The plugin client_credentials and its grant; what it accepts in detail is tested in tests/spec."""

import pytest

from identity.testing.grant_contract import GrantContract, MakeCall, TokenCall
from identity.testing.plugin_contract import PluginContract
from identity.testing.world import World


class TestPlugin(PluginContract):
    name = "client_credentials"


class TestGrantForApplications(GrantContract):
    grant_type = "client_credentials"
    openid_required = False
    default_scope = ""

    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        client = world.an_application(grant_types=frozenset({"client_credentials"}))
        return lambda: TokenCall({}, {"Authorization": client.header})


class TestGrantForServiceUsers(GrantContract):
    grant_type = "client_credentials"
    openid_required = False
    default_scope = ""

    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        service_user = world.a_secret(world.a_robot())
        return lambda: TokenCall({}, {"Authorization": service_user.header})


class TestGrantForServiceUsersInTheForm(TestGrantForServiceUsers):
    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        service_user = world.a_secret(world.a_robot(), in_form=True)
        return lambda: TokenCall({"client_id": service_user.client_id, "client_secret": service_user.secret})
