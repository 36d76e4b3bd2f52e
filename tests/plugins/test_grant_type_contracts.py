"""The service's own grants pass the contract. tests/spec tests in detail what each accepts."""

import pytest

from identity.plugins.token_exchange import ACCESS_TOKEN
from identity.testing.grant_type_contract import GrantTypeContract, TokenRequestFactory, ValidTokenRequest
from identity.testing.service_test_client import JWT_BEARER, TOKEN_EXCHANGE
from identity.testing.world import World
from tests.plugins.device_authorization.device import DEVICE_CODE, GRANT_TYPES, Device, decide, signed_in_browser


class TestAuthorizationCode(GrantTypeContract):
    grant_type = "authorization_code"
    required = frozenset({"code", "redirect_uri"})
    reads_scope = False
    is_single_use = True
    consuming_errors = frozenset({"redirect_uri", "code_verifier"})

    @pytest.fixture
    def valid_request(self, world: World) -> TokenRequestFactory:
        client = world.make_web_application()
        session = world.make_browser_session()
        return lambda: ValidTokenRequest(world.make_code(client, session).form(), {"Authorization": client.header})


class TestAuthorizationCodeOfPublicClients(TestAuthorizationCode):
    """Public clients send no Authorization header that a test could omit: client_id is in the form."""

    @pytest.fixture
    def valid_request(self, world: World) -> TokenRequestFactory:
        client = world.make_public_application()
        session = world.make_browser_session()
        return lambda: ValidTokenRequest({"client_id": client, **world.make_code(client, session).form()})


class TestRefreshToken(GrantTypeContract):
    grant_type = "refresh_token"
    default_scope = "openid offline_access"
    drops_unknown_scopes = False
    is_single_use = True

    @pytest.fixture
    def valid_request(self, world: World) -> TokenRequestFactory:
        client = world.make_web_application()
        session = world.make_browser_session()

        def call() -> ValidTokenRequest:
            refresh_token = world.obtain_tokens(client, session)["refresh_token"]
            return ValidTokenRequest({"refresh_token": refresh_token}, {"Authorization": client.header})

        return call


class TestJwtBearer(GrantTypeContract):
    grant_type = JWT_BEARER

    @pytest.fixture
    def valid_request(self, world: World) -> TokenRequestFactory:
        robot = world.make_service_user_program()
        return lambda: ValidTokenRequest({"assertion": robot.assertion()})


class TestDeviceCode(GrantTypeContract):
    grant_type = DEVICE_CODE
    reads_scope = False
    is_single_use = True

    @pytest.fixture
    def valid_request(self, world: World) -> TokenRequestFactory:
        client = world.make_web_application(grant_types=GRANT_TYPES)
        browser = signed_in_browser(world)

        def call() -> ValidTokenRequest:
            device = Device(world, client).start()
            decide(browser, device)
            return ValidTokenRequest({"device_code": device.answer["device_code"]}, {"Authorization": client.header})

        return call


class TestTokenExchange(GrantTypeContract):
    grant_type = TOKEN_EXCHANGE
    required = frozenset({"subject_token", "subject_token_type"})
    drops_unknown_scopes = False

    @pytest.fixture
    def valid_request(self, world: World) -> TokenRequestFactory:
        """With a token that was issued to another application of the same project."""
        organization = world.make_organization()
        project, session = (
            world.make_project(organization),
            world.make_browser_session(world.make_human_user(organization)),
        )
        page = world.make_web_application(project.id)
        client = world.make_application(project.id, grant_types=frozenset({TOKEN_EXCHANGE}))

        def call() -> ValidTokenRequest:
            token = world.obtain_tokens(page, session, scope="openid")["access_token"]
            form = {"subject_token": token, "subject_token_type": ACCESS_TOKEN}
            return ValidTokenRequest(form, {"Authorization": client.header})

        return call


class TestClientCredentials(GrantTypeContract):
    grant_type = "client_credentials"
    openid_required = False
    default_scope = ""

    @pytest.fixture
    def valid_request(self, world: World) -> TokenRequestFactory:
        client = world.make_application(grant_types=frozenset({"client_credentials"}))
        return lambda: ValidTokenRequest({}, {"Authorization": client.header})


class TestClientCredentialsOfServiceUsers(TestClientCredentials):
    @pytest.fixture
    def valid_request(self, world: World) -> TokenRequestFactory:
        service_user = world.make_service_user_secret(world.make_service_user_program())
        return lambda: ValidTokenRequest({}, {"Authorization": service_user.header})


class TestClientCredentialsOfServiceUsersInTheForm(TestClientCredentialsOfServiceUsers):
    @pytest.fixture
    def valid_request(self, world: World) -> TokenRequestFactory:
        service_user = world.make_service_user_secret(world.make_service_user_program(), in_form=True)
        return lambda: ValidTokenRequest({"client_id": service_user.client_id, "client_secret": service_user.secret})
