"""The grant type passes the contract, and issues tokens for service users."""

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from sample_plugin.grant_type import GRANT_TYPE, REFUSED
from sample_plugin.storage import SampleBackend

from identity.api.testing import (
    GrantTypeContract,
    ValidTokenRequest,
    World,
    WorldFactory,
    check_oauth_error,
    check_token_response,
)


@pytest.fixture
def delegation_request(world: World) -> Callable[[], ValidTokenRequest]:
    """Makes a valid token request of an application for a service user of the same organization."""
    organization = world.make_organization()
    application = world.make_application(world.make_project(organization).id, grant_types=frozenset({GRANT_TYPE}))
    robot = world.make_service_user_program(organization)
    return lambda: ValidTokenRequest({"service_user": robot.id}, {"Authorization": application.header})


class TestDelegation(GrantTypeContract):
    grant_type = GRANT_TYPE

    @pytest.fixture
    def valid_request(self, delegation_request: Callable[[], ValidTokenRequest]) -> Callable[[], ValidTokenRequest]:
        """Overrides the fixture of the contract."""
        return delegation_request


def test_service_user_of_another_organization_is_refused(
    world: World, delegation_request: Callable[[], ValidTokenRequest]
) -> None:
    stranger = world.make_service_user_program()
    form = {"grant_type": GRANT_TYPE, "scope": "openid", "service_user": stranger.id}
    check_oauth_error(
        world.client.request_token(form, delegation_request().headers), "invalid_grant", description=REFUSED
    )


def test_preview_matches_the_issued_token(world: World) -> None:
    manager = world.make_manager_program()
    organization = manager.organization
    application = world.make_application(world.make_project(organization).id, grant_types=frozenset({GRANT_TYPE}))
    robot = world.make_service_user_program(organization)
    query = urlencode({"user_id": robot.id, "application_id": application.client_id, "scope": "openid department"})
    path = f"/organizations/{organization.id}/token-preview?{query}"
    token_of_manager = manager.access_token(f"openid {world.audience_scope()}")
    [method] = world.client.call_management_api(path, token_of_manager).json["ways"]
    assert (method["grant_type"], method["refusal"]) == (GRANT_TYPE, None)
    form = {"grant_type": GRANT_TYPE, "scope": "openid department", "service_user": robot.id}
    token = check_token_response(world.client.request_token(form, {"Authorization": application.header}))
    assert " ".join(method["scope"]) == token["scope"]
    [userinfo] = [item for item in method["carried"] if item["carrier"] == "userinfo"]
    real = world.client.fetch_userinfo(token["access_token"]).json
    assert {claim["name"]: claim["value"] for claim in userinfo["claims"]} == real


def test_scope_adds_the_claim(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.plugin.sample.department": "Logistics"})
    robot = world.make_service_user_program()
    token = check_token_response(robot.request_token("openid department"))
    assert token["scope"] == "openid department"
    assert world.client.fetch_userinfo(token["access_token"]).json["department"] == "Logistics"
    assert "department" not in world.client.fetch_userinfo(robot.access_token("openid")).json


def test_discovery_shows_scope_and_claim(world: World) -> None:
    assert "department" in world.client.discovery["scopes_supported"]
    assert "department" in world.client.discovery["claims_supported"]


def test_tests_use_the_sample_backend(world: World) -> None:
    backend = world.identity.backend
    assert isinstance(backend, SampleBackend)
    before = backend.writings
    world.make_service_user_program().access_token()
    assert backend.writings > before
