"""Expiration of keys and personal access tokens (decisions, "Service user keys") at every entry point.

The default is one year. "never" must be requested and is returned as such.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import pytest

from identity.domain.permissions import Resource
from identity.domain.personal_access_tokens import PersonalAccessToken
from identity.domain.service_user_keys import ServiceUserKey
from identity.services.access_control import Principal
from identity.services.desired_state.apply import apply_desired_state, parse_desired_state
from identity.services.instance_bootstrap import ensure_key
from identity.storage.paging import iterate_rows
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.response_checks import check_api_error
from identity.testing.service_test_client import Credentials
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient, make_public_key

YEAR = timedelta(days=365)
Expiring = ServiceUserKey | PersonalAccessToken


@dataclass(frozen=True)
class Doors:
    """Every way to create a key or personal access token; ``expires_at`` is the requested expiration, None for the
    default.
    """

    world: World

    @cached_property
    def robot(self) -> ServiceUserProgram:
        return self.world.make_service_user_program()

    @cached_property
    def api(self) -> ApiClient:
        return ApiClient.for_user(self.world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))

    def api_key(self, expires_at: str | None) -> Expiring:
        return self._of_api("keys", {}, expires_at)

    def api_public_key(self, expires_at: str | None) -> Expiring:
        return self._of_api("keys", {"public_key": make_public_key(self.world)}, expires_at)

    def api_token(self, expires_at: str | None) -> Expiring:
        return self._of_api("personal-access-tokens", {"name": "CI"}, expires_at)

    def console_key(self, expires_at: str | None) -> Expiring:
        return self._of_console("keys", {"source": "generate"}, expires_at)

    def console_public_key(self, expires_at: str | None) -> Expiring:
        return self._of_console("keys", {"source": "upload", "public_key": make_public_key(self.world)}, expires_at)

    def console_token(self, expires_at: str | None) -> Expiring:
        return self._of_console("personal-access-tokens", {"name": "CI"}, expires_at)

    def state_file_key(self, expires_at: str | None) -> Expiring:
        return self._of_state({"keys": [{"public_key": make_public_key(self.world)} | _expiration(expires_at)]})

    def state_file_generated_key(self, expires_at: str | None) -> Expiring:
        return self._of_state({"generated_key": _expiration(expires_at)})

    def imported_key(self, expires_at: str | None) -> Expiring:
        path = f"/organizations/{self.robot.organization.id}/export"
        document = self.api.post(path, status=200)
        [robot] = document["organization"]["service_users"]
        robot["keys"] = [{"public_key": make_public_key(self.world)} | _expiration(expires_at)]
        document["organization"] |= {"name": f"Copy of {path}", "primary_domain": None, "managers": []}
        imported = self.api.post("/organizations/import?keep_ids=false", document)
        return self._newest(self.api.list(f"/organizations/{imported['id']}/service-users")[0]["id"])

    def bootstrapped_key(self, expires_at: str | None) -> Expiring:
        if expires_at is not None:
            pytest.skip("nothing can be said here")
        robot = self.robot
        with self.world.transaction_services() as services:
            ensure_key(services, services.service_users.get(robot.id), None)
        return self._newest(robot.id)

    def _of_api(self, kind: str, members: dict[str, Any], expires_at: str | None) -> Expiring:
        path = f"/service-users/{self.robot.id}/{kind}"
        created = self.api.post(path, members | _expiration(expires_at))
        read_expiration = self.api.get(f"{path}/{created['id']}")["expires_at"]
        assert read_expiration == created["expires_at"] == self.api.list(path)[0]["expires_at"]
        found = self._newest(self.robot.id, kind)
        assert read_expiration == (
            "never" if expires_at == "never" else found.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        )
        return found

    def _of_console(self, kind: str, fields: dict[str, str], expires_at: str | None) -> Expiring:
        person, browser = self.world.make_human_user(self.robot.organization), Browser(self.world)
        self.world.assign_manager_role(person, "ORG_OWNER")
        browser.start_session(person)
        path = f"/console/service-users/{self.robot.id}/{kind}"
        browser.open(f"{path}/new")
        dated = {} if expires_at in (None, "never") else {"expiration_date": str(expires_at)[:10]}
        ticked = {"no_expiration": True} if expires_at == "never" else {}
        answer = browser.submit({**fields, **dated, **ticked})
        assert answer.status_int == 200, answer
        found = self._newest(self.robot.id, kind)
        listed = browser.open(path).html.select("tbody tr")[0].get_text(" ", strip=True)
        ends = found.expires_at
        label = (
            "No expiration date" if expires_at == "never" else f"{ends:%b} {ends.day}, {ends.year} 11:59\u202fPM UTC"
        )
        assert label in listed
        assert "9999" not in listed
        return found

    def _of_state(self, members: dict[str, Any]) -> Expiring:
        robot = self.world.operator_services.service_users.get(self.robot.id)
        home = self.world.operator_services.organizations.get(robot.organization_id)
        described = {"user_name": robot.user_name, "display_name": robot.display_name, "keys": [], **members}
        if "generated_key" in members:
            self.world.operator_services.service_users.remove_key(robot.id, self.robot.key_id)
        organization = {"name": home.name, "primary_domain": home.primary_domain, "service_users": [described]}
        state = parse_desired_state({"version": 1, "organizations": [organization]})
        for changes in (1, 0):
            with self.world.transaction_services() as services:
                assert len(apply_desired_state(services, state, principal=Principal.OPERATOR).state_changes) == changes
        return self._newest(robot.id)

    def _newest(self, user_id: str, kind: str = "keys") -> Expiring:
        with self.world.read_only_services() as services:
            users = services.service_users
            fetch: Callable[..., Any] = users.page_keys if kind == "keys" else users.page_personal_access_tokens
            found: list[Expiring] = list(iterate_rows(lambda request: fetch(user_id, request)))
        return max(found, key=lambda item: item.id)


def _expiration(expires_at: str | None) -> dict[str, str]:
    return {} if expires_at is None else {"expires_at": expires_at}


DOORS = [name for name in vars(Doors) if name.endswith(("_key", "_token"))]


@pytest.fixture
def doors(world: World) -> Doors:
    return Doors(world)


@pytest.mark.sampled(6)
@pytest.mark.shows("2.2.10")
@pytest.mark.parametrize("door", DOORS)
def test_default_expiration_is_a_year(doors: Doors, door: str) -> None:
    credential = getattr(doors, door)(None)
    end = doors.world.clock() + YEAR
    # The console takes a date and stores its last second.
    assert credential.expires_at == (end.replace(hour=23, minute=59, second=59) if "console" in door else end)


@pytest.mark.parametrize("door", DOORS)
def test_never_expiration_is_stored_and_returned(doors: Doors, door: str) -> None:
    credential = getattr(doors, door)("never")
    assert credential.never_expires
    [added] = doors.world.audit_events(object_id=credential.id)
    assert added.detail["expires_at"] == "never"


@pytest.mark.parametrize("door", DOORS)
def test_expiration_date_is_stored(doors: Doors, door: str) -> None:
    if door == "bootstrapped_key":
        pytest.skip("nothing can be said here")
    day = (doors.world.clock() + timedelta(days=10)).strftime("%Y-%m-%dT23:59:59Z")
    credential = getattr(doors, door)(day)
    assert credential.expires_at == datetime.fromisoformat(day).astimezone(UTC)


@pytest.mark.shows("8.4")
@pytest.mark.storages("memory")  # a setting, checked before any storage
def test_settings_limit_expiration(make_world: WorldFactory) -> None:
    short = make_world(**{"identity.service_user_key_lifetime": "90d"})
    limited = make_world(**{"identity.service_user_key_max_age": "90d"})
    for door in DOORS:
        credential = getattr(Doors(short), door)(None)
        assert timedelta(days=90) <= credential.expires_at - short.clock() < timedelta(days=91), door
        credential = getattr(Doors(limited), door)(None)
        assert timedelta(days=89) <= credential.expires_at - limited.clock() <= timedelta(days=90), door


@pytest.mark.parametrize("expires_at", ["Never", "", "for ever", "9999", 0, 253402300799, True])
def test_invalid_expiration_is_refused(doors: Doors, expires_at: object) -> None:
    for kind, members in (("keys", {}), ("personal-access-tokens", {"name": "CI"})):
        answer = doors.api.ask("POST", f"/service-users/{doors.robot.id}/{kind}", {**members, "expires_at": expires_at})
        assert set(check_api_error(answer, 422, "invalid")["fields"]) == {"expires_at"}


def test_exported_key_keeps_never_expiration(doors: Doors) -> None:
    credential = doors.api_key("never")
    document = doors.api.post(f"/organizations/{doors.robot.organization.id}/export", status=200)
    [robot] = document["organization"]["service_users"]
    exported = {key["id"]: key["expires_at"] for key in robot["keys"]}
    assert exported[credential.id] == "never"
    assert "9999" not in "".join(exported.values())


def test_openapi_documents_expiration(world: World) -> None:
    schemas = world.client.get(f"{world.client.management_url}/openapi.json").json["components"]["schemas"]
    for name in ("NewKey", "AddPersonalAccessToken", "ServiceUserKey", "PersonalAccessToken", "DescribedKey"):
        options = schemas[name]["properties"]["expires_at"]["anyOf"]
        assert {"type": "string", "const": "never"} in options, name
        assert {"type": "string", "format": "date-time"} in options, name


def test_introspection_omits_exp_of_unlimited_token(world: World, doors: Doors) -> None:
    """RFC 7662 §2.2: exp is optional."""
    client: Credentials = world.introspector
    texts = [
        doors.api.post(
            f"/service-users/{doors.robot.id}/personal-access-tokens", {"name": "CI"} | _expiration(expires_at)
        )
        for expires_at in ("never", None)
    ]
    never, year = (world.client.introspect(text["token"], client).json for text in texts)
    assert (never["active"], "exp" in never) == (True, False)
    assert year["exp"] == int((world.clock() + YEAR).timestamp())
