"""Changes without effect (security 9.2) create neither event nor version, in the API, console and state files.

The cases come from the route tables of the API and the console, so that new routes are covered.
"""

import re
from typing import Any
from uuid import uuid4

import pytest

from identity.domain.permissions import Resource
from identity.plugins.console.pages import _MODULES
from identity.plugins.management.operation import Operation
from identity.plugins.management.operation_table import OPERATIONS
from identity.services.access_control import Principal
from identity.services.desired_state.apply import apply_desired_state, parse_desired_state
from identity.testing.browser import Browser
from identity.testing.response_checks import format_response
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ROLE, ApiClient, ApiFixtureData, make_fixture_data

pytestmark = pytest.mark.storages("memory")

PATCHES = [operation for operation in OPERATIONS if operation.method == "PATCH"]
STATES = [operation for operation in OPERATIONS if operation.path.endswith(("/deactivate", "/reactivate"))]
FORMS = [route for module in _MODULES for route in module.ROUTES if route.path.endswith("/edit")]

#: Mappings act with the rights of who saved them last, so saving the one of another is a change.
EDITED = ("/group-mappings/", "/attribute-mappings/")


@pytest.fixture
def estate(world: World) -> ApiFixtureData:
    return make_fixture_data(world)


@pytest.fixture
def api(world: World) -> ApiClient:
    return ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))


def named(operation: Operation) -> str:
    return operation.name


def address(estate: ApiFixtureData, path: str) -> str:
    """The path with its parameters replaced."""
    return re.sub(r"\{(\w+)[^}]*\}", lambda found: {**estate.path_values, "key": ROLE}[found[1]], path)


def latest(world: World) -> int | None:
    """The number of the newest event."""
    return world.audit_events()[0].sequence


def _members(command: Any, resource: dict[str, Any]) -> dict[str, Any]:
    """The current values of everything the command can change."""
    settings = resource.get("own", resource)
    return {name: settings[name] for name in command.model_fields if name in settings}


@pytest.mark.parametrize("operation", PATCHES, ids=named)
def test_patch_without_change_is_no_op(
    world: World, api: ApiClient, estate: ApiFixtureData, operation: Operation
) -> None:
    path = address(estate, operation.path)
    if path.startswith(EDITED):
        api.ask("PATCH", path, {})
    before = api.ask("GET", path)
    members = _members(operation.command, before.json)
    assert members, "the test sends nothing"
    last = latest(world)
    answer = api.ask("PATCH", path, members, If_Match=before.headers["ETag"])
    assert answer.status_int == 200, format_response(answer)
    assert (answer.json, answer.headers["ETag"]) == (before.json, before.headers["ETag"])
    assert api.get(path) == before.json
    assert latest(world) == last


@pytest.mark.parametrize("operation", STATES, ids=named)
def test_state_request_without_change_is_no_op(
    world: World, api: ApiClient, estate: ApiFixtureData, operation: Operation
) -> None:
    path = address(estate, operation.path)
    first = api.post(path, status=200)
    last = latest(world)
    assert api.post(path, status=200) == first
    assert latest(world) == last


@pytest.mark.parametrize("route", FORMS, ids=lambda route: route.path)
def test_unchanged_console_form_is_no_op(world: World, estate: ApiFixtureData, route: Any) -> None:
    person = world.make_human_user()
    world.assign_manager_role(person, "IAM_OWNER", resource=Resource.INSTANCE)
    browser = Browser(world)
    browser.start_session(person)
    path = f"/console{address(estate, route.path)}"
    page = browser.open(path)
    assert page.status_int == 200, page
    if route.path.startswith(EDITED):
        browser.submit()
        browser.open(path)
    before = latest(world)
    answer = browser.submit()
    assert answer.status_int == 200, answer
    assert browser.answers[0].status_int == 303, "the form was drawn again"
    assert latest(world) == before


def test_unchanged_profile_form_is_no_op(world: World) -> None:
    person = world.make_human_user()
    browser = Browser(world)
    browser.start_session(person)
    browser.open("/account/profile")
    before = latest(world)
    browser.submit()
    assert browser.answers[0].status_int == 303
    assert latest(world) == before
    with world.read_only_services() as services:
        assert services.users.get(person.id).version == person.version


def test_repeated_state_file_is_no_op(world: World) -> None:
    state = parse_desired_state(
        {
            "version": 1,
            "organizations": [
                {
                    "name": "Narwhal",
                    "primary_domain": f"{uuid4().hex}.example",
                    "users": [{"user_name": "ada", "given_name": "Ada", "family_name": "Lovelace"}],
                    "service_users": [{"user_name": "robot", "display_name": "Robot", "generated_key": {}}],
                    "projects": [
                        {
                            "name": "Ocean",
                            "roles": [{"key": "reader", "display_name": "Reader"}],
                            "applications": [{"name": "API", "type": "api"}],
                            "user_grants": [{"user": "ada", "roles": ["reader"]}],
                            "managers": [{"user": "ada", "roles": ["PROJECT_OWNER"]}],
                        }
                    ],
                    "managers": [{"user": "ada", "roles": ["ORG_OWNER"]}],
                }
            ],
        }
    )
    with world.transaction_services() as services:
        assert apply_desired_state(services, state, principal=Principal.OPERATOR, with_secrets=True).state_changes
    before = latest(world)
    with world.transaction_services() as services:
        assert apply_desired_state(services, state, principal=Principal.OPERATOR, with_secrets=True).state_changes == ()
    assert latest(world) == before
