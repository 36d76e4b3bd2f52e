"""Service description §8, and the limits of security 12.2."""

import pytest

from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.service_test_client import FORM_CONTENT_TYPE
from identity.testing.world import ServiceUserProgram, World


@pytest.mark.parametrize(
    "endpoint", ["token_endpoint", "introspection_endpoint", "revocation_endpoint", "userinfo_endpoint"]
)
def test_endpoints_refuse_more_than_64_kilobytes(world: World, endpoint: str) -> None:
    headers = {"Content-Type": FORM_CONTENT_TYPE, "Authorization": world.introspector.header}
    address = world.client.discovery[endpoint]
    check_oauth_error(
        world.client.request("POST", address, headers=headers, body=b"a" * 65537), "invalid_request", status=413
    )


def test_assertion_over_8_kilobytes_is_refused(world: World, robot: ServiceUserProgram) -> None:
    """Security 2.7."""
    length = len(robot.assertion(filler=""))
    # Three bytes of claims become four characters of the assertion.
    fitting = robot.assertion(filler="x" * ((8192 - length) // 4 * 3))
    assert 8186 <= len(fitting) <= 8192
    check_token_response(world.client.exchange_assertion(fitting))
    check_oauth_error(world.client.exchange_assertion(robot.assertion(filler="x" * 6200)), "invalid_grant")


def test_many_scopes_are_handled(world: World, robot: ServiceUserProgram) -> None:
    scope = " ".join(["openid", *(f"s{number}" for number in range(3000))])
    assert check_token_response(robot.request_token(scope[:16000]))["scope"] == "openid"


def test_many_audience_projects_are_handled(world: World, robot: ServiceUserProgram) -> None:
    projects = [world.make_project(robot.organization).id for _ in range(20)]
    scope = " ".join(["openid", *(world.audience_scope(project) for project in projects)])
    token = robot.access_token(scope)
    client = world.make_application(projects[-1])
    assert world.client.introspect(token, client).json["aud"] == projects
