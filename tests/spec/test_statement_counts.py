"""The endpoints that programs call all the time send few statements, also for organizations with webhooks."""

from collections.abc import Callable

import pytest

from identity.domain.organizations import Organization
from identity.testing.world import World
from tests.spec.anonymous_requests import work

pytestmark = pytest.mark.every_storage

Request = Callable[[], object]


def _token(world: World, organization: Organization) -> Request:
    return world.make_service_user_program(organization).access_token


def _introspection(world: World, organization: Organization) -> Request:
    token = world.make_service_user_program(organization).access_token()
    return lambda: world.client.introspect(token, world.introspector)


def _userinfo(world: World, organization: Organization) -> Request:
    session = world.make_browser_session(world.make_human_user(organization))
    token = world.obtain_tokens(world.make_web_application(), session)["access_token"]
    return lambda: world.client.fetch_userinfo(token)


def _keys(world: World, organization: Organization) -> Request:
    return world.client.fetch_jwks


@pytest.mark.parametrize(
    ("make_request", "tables"),
    [
        (_token, ["service_user_keys", "access_tokens"]),
        (_introspection, ["applications", "access_tokens"]),
        (_userinfo, ["access_tokens"]),
        (_keys, []),
    ],
)
def test_request_sends_no_further_statement(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    make_request: Callable[[World, Organization], Request],
    tables: list[str],
) -> None:
    if world.identity.backend.name != "sql":
        pytest.skip("it has no statements")
    organization = world.make_organization()
    world.make_webhook(organization)
    request = make_request(world, organization)
    for _ in range(2):
        request()
    with work(monkeypatch) as done:
        request()
    assert len(done.statements) == len(tables), done.statements
    for statement, table in zip(done.statements, tables, strict=True):
        assert table in statement
