"""The grant type passes the contract and does what it is for."""

from urllib.parse import urlencode

import pytest
from sample_plugin.grant import GRANT_TYPE, REFUSED
from sample_plugin.storage import SampleBackend

from identity.testing.fixtures import MakeWorld
from identity.testing.grant_contract import GrantContract, MakeCall, TokenCall
from identity.testing.responses import check_granted, check_refused
from identity.testing.world import World


@pytest.fixture
def right(world: World) -> MakeCall:
    """Makes a right request: an application and a service user of one organization."""
    organization = world.an_organization()
    application = world.an_application(world.a_project(organization).id, grant_types=frozenset({GRANT_TYPE}))
    robot = world.a_robot(organization)
    return lambda: TokenCall({"service_user": robot.id}, {"Authorization": application.header})


class TestDelegation(GrantContract):
    grant_type = GRANT_TYPE

    @pytest.fixture
    def right(self, right: MakeCall) -> MakeCall:
        """The fixture above, in place of the contract's own."""
        return right


def test_a_service_user_of_another_organization_is_refused(world: World, right: MakeCall) -> None:
    stranger = world.a_robot()
    form = {"grant_type": GRANT_TYPE, "scope": "openid", "service_user": stranger.id}
    check_refused(world.client.token(form, right().headers), "invalid_grant", description=REFUSED)


def test_the_preview_tells_what_really_comes_out(world: World) -> None:
    manager = world.a_manager()
    organization = manager.organization
    application = world.an_application(world.a_project(organization).id, grant_types=frozenset({GRANT_TYPE}))
    robot = world.a_robot(organization)
    query = urlencode({"user_id": robot.id, "application_id": application.client_id, "scope": "openid department"})
    path = f"/organizations/{organization.id}/token-preview?{query}"
    token_of_manager = manager.access_token(f"openid {world.audience_scope()}")
    [way] = world.client.management(path, token_of_manager).json["ways"]
    assert (way["grant_type"], way["refusal"]) == (GRANT_TYPE, None)
    form = {"grant_type": GRANT_TYPE, "scope": "openid department", "service_user": robot.id}
    token = check_granted(world.client.token(form, {"Authorization": application.header}))
    assert " ".join(way["scope"]) == token["scope"]
    [userinfo] = [one for one in way["carried"] if one["carrier"] == "userinfo"]
    real = world.client.userinfo(token["access_token"]).json
    assert {claim["name"]: claim["value"] for claim in userinfo["claims"]} == real


def test_the_scope_opens_the_claim(make_world: MakeWorld) -> None:
    world = make_world(**{"identity.plugin.sample.department": "Logistics"})
    robot = world.a_robot()
    token = check_granted(robot.token("openid department"))
    assert token["scope"] == "openid department"
    assert world.client.userinfo(token["access_token"]).json["department"] == "Logistics"
    assert "department" not in world.client.userinfo(robot.access_token("openid")).json


def test_discovery_shows_scope_and_claim(world: World) -> None:
    assert "department" in world.client.discovery["scopes_supported"]
    assert "department" in world.client.discovery["claims_supported"]


def test_the_backend_is_the_one_in_use(world: World) -> None:
    backend = world.identity.backend
    assert isinstance(backend, SampleBackend)
    before = backend.writings
    world.a_robot().access_token()
    assert backend.writings > before
