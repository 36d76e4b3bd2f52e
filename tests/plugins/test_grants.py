"""The grants that come with the service pass the contract; what each accepts in detail is tested in tests/spec."""

import pytest

from identity.testing.grant_contract import GrantContract, MakeCall, TokenCall
from identity.testing.service_client import JWT_BEARER
from identity.testing.world import World


class TestAuthorizationCode(GrantContract):
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


class TestAuthorizationCodeOfPublicClients(TestAuthorizationCode):
    """They have no header to leave out: the client_id stands in the form."""

    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        client = world.a_public_application()
        session = world.a_session()
        return lambda: TokenCall({"client_id": client, **world.a_code(client, session).form()})


class TestRefreshToken(GrantContract):
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


class TestJwtBearer(GrantContract):
    grant_type = JWT_BEARER

    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        robot = world.a_robot()
        return lambda: TokenCall({"assertion": robot.assertion()})


class TestClientCredentials(GrantContract):
    grant_type = "client_credentials"
    openid_required = False
    default_scope = ""

    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        client = world.an_application(grant_types=frozenset({"client_credentials"}))
        return lambda: TokenCall({}, {"Authorization": client.header})


class TestClientCredentialsOfServiceUsers(TestClientCredentials):
    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        service_user = world.a_secret(world.a_robot())
        return lambda: TokenCall({}, {"Authorization": service_user.header})


class TestClientCredentialsOfServiceUsersInTheForm(TestClientCredentialsOfServiceUsers):
    @pytest.fixture
    def right(self, world: World) -> MakeCall:
        service_user = world.a_secret(world.a_robot(), in_form=True)
        return lambda: TokenCall({"client_id": service_user.client_id, "client_secret": service_user.secret})
