"""Figures per day, and the log of an application."""

from typing import Any

import pytest

from identity.domain.permissions import Resource
from identity.testing.browser import Browser, set_password
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_api_error, check_oauth_error
from identity.testing.service_test_client import Credentials
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ApiClient

pytestmark = pytest.mark.every_storage


@pytest.fixture
def reader(world: World) -> ApiClient:
    return ApiClient.for_user(world.make_manager_program("IAM_OWNER_VIEWER", resource=Resource.INSTANCE))


@pytest.fixture
def client(world: World) -> Credentials:
    """An application of its own organization."""
    return world.make_web_application(world.make_project(world.make_organization()).id)


def organization_of(world: World, client: Credentials) -> str:
    with world.read_only_services() as services:
        project_id = services.applications.get(client.client_id).project_id
        return services.projects.get(project_id).organization_id


def read_figures(world: World, reader: ApiClient, organization_id: str | None, days: int = 1) -> Any:
    """The figures, with everything written that was counted."""
    world.identity.background_jobs.flush_activity()
    path = "/instance" if organization_id is None else f"/organizations/{organization_id}"
    return reader.get(f"{path}/figures?days={days}")


def read_log(world: World, reader: ApiClient, client: Credentials) -> list[dict[str, Any]]:
    world.identity.background_jobs.flush_activity()
    items: list[dict[str, Any]] = reader.get(f"/applications/{client.client_id}/log")["items"]
    return items


def outcomes(log: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(item["endpoint"], item["grant_type"], item["error"]) for item in log]


def test_token_responses_are_counted_by_application_and_day(
    world: World, reader: ApiClient, client: Credentials
) -> None:
    organization_id, whole = organization_of(world, client), read_figures(world, reader, None)["days"][0]["tokens"]
    issued = world.obtain_tokens(client)
    world.refresh(issued["refresh_token"], client)
    check_oauth_error(world.refresh("unknown", client), "invalid_grant")
    found = read_figures(world, reader, organization_id)
    assert [(item["client_kind"], item["client_id"], item["tokens"]) for item in found["clients"]] == [
        ("application", client.client_id, 2)
    ]
    assert found["days"][0]["tokens"] == 2
    assert read_figures(world, reader, None)["days"][0]["tokens"] - whole >= 2
    world.clock.advance(days=1)
    later = ApiClient.for_user(world.make_manager_program("IAM_OWNER_VIEWER", resource=Resource.INSTANCE))
    assert [day["tokens"] for day in read_figures(world, later, organization_id, 3)["days"]] == [0, 2, 0]


def test_tokens_of_service_users_are_counted(world: World, reader: ApiClient) -> None:
    robot = world.make_service_user_program()
    robot.access_token()
    found = read_figures(world, reader, robot.organization.id)
    assert [(item["client_kind"], item["client_id"], item["tokens"]) for item in found["clients"]] == [
        ("service_user", robot.id, 1)
    ]


def test_sign_ins_refusals_and_new_people_are_counted(world: World, reader: ApiClient) -> None:
    person = world.make_human_user(world.make_organization())
    name = set_password(world, person)
    browser = Browser(world)
    browser.open("/account")
    browser.sign_in(name, "wrong password")
    browser.sign_in(name)
    [day] = read_figures(world, reader, person.organization_id)["days"]
    assert (day["sign_ins"], day["refused_sign_ins"], day["new_people"]) == (1, 1, 1)


def test_refusals_of_unknown_people_count_for_the_instance(world: World, reader: ApiClient) -> None:
    before = read_figures(world, reader, None)["days"][0]["refused_sign_ins"]
    browser = Browser(world)
    browser.open("/account")
    for _ in range(3):
        browser.sign_in("nobody@nowhere.example", "wrong password")
    assert read_figures(world, reader, None)["days"][0]["refused_sign_ins"] == before + 3


def test_people_are_counted_by_the_job(world: World, reader: ApiClient) -> None:
    person = world.make_human_user(world.make_organization())
    [day] = read_figures(world, reader, person.organization_id)["days"]
    assert (day["people"], day["active_people"]) == (None, None)
    world.identity.background_jobs.count_people()
    [day] = read_figures(world, reader, person.organization_id)["days"]
    assert (day["people"], day["active_people"], day["people_with_second_factor"]) == (1, 0, 0)
    world.make_browser_session(person)
    world.identity.background_jobs.count_people()
    [day] = read_figures(world, reader, person.organization_id)["days"]
    assert (day["people"], day["active_people"]) == (1, 1)


@pytest.mark.parametrize("days", ["0", "401", "x", "-1", ""])
def test_period_is_validated(world: World, reader: ApiClient, days: str) -> None:
    check_api_error(reader.ask("GET", f"/instance/figures?days={days}"), 422, "invalid")


def test_log_shows_how_requests_went_without_what_they_sent(
    world: World, reader: ApiClient, client: Credentials
) -> None:
    session = world.make_browser_session()
    code = world.make_code(client, session, scope="openid offline_access", state="state-of-the-client")
    world.redeem(code, client)
    check_oauth_error(world.redeem(code, client), "invalid_grant")
    log = read_log(world, reader, client)
    assert outcomes(log) == [
        ("token", "authorization_code", "invalid_grant"),
        ("token", "authorization_code", ""),
        ("authorize", "", ""),
    ]
    assert [item["user_id"] for item in log] == [None, session.user.id, session.user.id]
    assert log[0]["reason"]
    assert not any(secret in str(log) for secret in (code.text, client.secret, "state-of-the-client"))


def test_log_shows_wrong_secrets_only_for_known_applications(
    world: World, reader: ApiClient, client: Credentials
) -> None:
    check_oauth_error(world.refresh("token", Credentials(client.client_id, "wrong")), "invalid_client", status=401)
    check_oauth_error(world.refresh("token", Credentials("f" * 32, "wrong")), "invalid_client", status=401)
    [refused] = read_log(world, reader, client)
    assert (refused["error"], refused["grant_type"]) == ("invalid_client", "refresh_token")


def test_log_shows_unregistered_redirect_uris_and_refused_scopes(
    world: World, reader: ApiClient, client: Credentials
) -> None:
    session = world.make_browser_session()
    session.authorize(client, redirect_uri="https://elsewhere.example/callback")
    session.authorize(client, scope="profile")
    session.authorize(client, response_type="unknown")
    log = read_log(world, reader, client)
    assert [item["error"] for item in log] == ["unsupported_response_type", "invalid_scope", "invalid_request"]
    assert "redirect_uri" in log[2]["reason"]
    assert "elsewhere" not in str(log)


def test_log_does_not_show_introspection_unless_refused(world: World, reader: ApiClient, client: Credentials) -> None:
    world.client.introspect("unknown", client)
    assert read_log(world, reader, client) == []
    world.client.introspect("unknown", Credentials(client.client_id, "wrong"))
    assert outcomes(read_log(world, reader, client)) == [("introspect", "", "invalid_client")]


def test_log_shows_refused_passwords_without_naming_people(world: World, reader: ApiClient) -> None:
    party = RelyingParty.register(world)
    client = party.credentials
    person = world.make_human_user()
    name = set_password(world, person)
    browser = Browser(world)
    party.open_request(browser)
    browser.sign_in(name, "wrong password")
    browser.sign_in(name)
    log = read_log(world, reader, client)
    assert outcomes(log) == [
        ("authorize.resume", "", ""),
        ("sign-in", "", "access_denied"),
        ("authorize", "", ""),
    ]
    assert [item["user_id"] for item in log] == [person.id, None, None]
    for name in ("nobody@nowhere.example", set_password(world, world.make_human_user())):
        stranger = Browser(world)
        party.open_request(stranger)
        stranger.sign_in(name, "wrong password")
    refused = [item["reason"] for item in read_log(world, reader, client) if item["endpoint"] == "sign-in"]
    assert set(refused) == {"wrong login name or password"}, "the log does not tell which accounts exist"
