"""Management API: attributes of an organization's people, and their values."""

from typing import Any

import pytest

from identity.domain.attributes import MAX_ATTRIBUTES
from identity.testing.response_checks import check_api_error
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient

ADA = {"user_name": "ada", "given_name": "Ada", "family_name": "Lovelace", "email": "ada@example.com"}
DEPARTMENT = {"key": "department", "label": "Department"}
SHIRT = {"key": "shirt", "label": "Shirt size", "type": "choice", "choices": ["S", "M", "L"]}


@pytest.fixture
def organization(owner: ServiceUserProgram) -> str:
    return f"/organizations/{owner.organization.id}"


@pytest.fixture
def attributes(organization: str) -> str:
    return f"{organization}/attributes"


@pytest.fixture
def user(api: ApiClient, organization: str) -> str:
    """The path of a person."""
    return f"/users/{api.post(f'{organization}/users', ADA)['id']}"


def refused(api: ApiClient, method: str, path: str, body: dict[str, Any]) -> dict[str, str]:
    """The fields of the refusal."""
    answer = api.ask(method, path, body)
    check_api_error(answer, 422, "invalid")
    fields: dict[str, str] = answer.json["fields"]
    return fields


def test_attribute_life_cycle(world: World, api: ApiClient, attributes: str) -> None:
    created = api.post(attributes, DEPARTMENT)
    assert created["type"] == "text"
    assert (created["visible_to"], created["editable_by"]) == ("managers", "managers")
    assert not any(created[name] for name in ("required", "confidential", "in_tokens", "claim", "choices", "hint"))
    path = f"/attributes/{created['id']}"
    assert api.get(path) == created
    assert api.list(attributes) == [created]
    changed = api.patch(path, {"label": "Team", "in_tokens": True, "claim": "team", "visible_to": "person"})
    assert (changed["label"], changed["claim"], changed["version"]) == ("Team", "team", 2)
    assert "key" in refused(api, "PATCH", path, {"key": "team"})
    api.delete(path)
    check_api_error(api.ask("GET", path), 404, "not_found")
    events = {event.event for event in world.audit_events(object_id=created["id"])}
    assert events == {f"attribute.{verb}" for verb in ("created", "changed", "removed")}


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"key": "Department"}, "key"),
        ({"label": " "}, "label"),
        ({"type": "list"}, "type"),
        ({"type": "choice"}, "choices"),
        ({"type": "choice", "choices": ["a", "a"]}, "choices"),
        ({"type": "choice", "choices": [""]}, "choices"),
        ({"type": "choice", "choices": [str(number) for number in range(101)]}, "choices"),
        ({"claim": "department"}, "claim"),
        ({"in_tokens": True, "claim": "sub"}, "claim"),
        ({"in_tokens": True, "claim": "roles"}, "claim"),
        ({"in_tokens": True, "claim": "urn:service:iam:org:project:roles"}, "claim"),
        ({"editable_by": "person"}, "editable_by"),
        ({"visible_to": "everyone"}, "visible_to"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_invalid_attribute_is_refused(api: ApiClient, attributes: str, members: dict[str, Any], field: str) -> None:
    assert list(refused(api, "POST", attributes, {**DEPARTMENT, **members})) == [field]
    assert api.list(attributes) == []


def test_keys_and_claims_are_unique_in_an_organization(api: ApiClient, attributes: str) -> None:
    api.post(attributes, {**DEPARTMENT, "in_tokens": True, "claim": "team"})
    assert "key" in refused(api, "POST", attributes, DEPARTMENT)
    other = {"key": "team", "label": "Team", "in_tokens": True, "claim": "team"}
    assert "claim" in refused(api, "POST", attributes, other)
    team = api.post(attributes, {**other, "claim": ""})
    assert "claim" in refused(api, "PATCH", f"/attributes/{team['id']}", {"claim": "team"})


def test_number_of_attributes_is_limited(world: World, api: ApiClient, owner: ServiceUserProgram) -> None:
    path = f"/organizations/{owner.organization.id}/attributes"
    for number in range(MAX_ATTRIBUTES):
        world.make_attribute(owner.organization, f"key_{number}")
    assert "key" in refused(api, "POST", path, DEPARTMENT)


def test_values_are_set_changed_and_emptied(world: World, api: ApiClient, attributes: str, user: str) -> None:
    api.post(attributes, DEPARTMENT)
    api.post(attributes, SHIRT)
    api.post(attributes, {"key": "floor", "label": "Floor", "type": "number"})
    assert api.get(user)["attributes"] == {}
    before = api.get(user)["version"]
    changed = api.patch(user, {"attributes": {"department": " Sales ", "floor": 3.0, "shirt": "M"}})
    assert changed["attributes"] == {"department": "Sales", "floor": 3, "shirt": "M"}
    assert changed["version"] == before + 1
    changed = api.patch(user, {"attributes": {"department": None, "floor": 4}, "nickname": "Ada"})
    assert (changed["attributes"], changed["nickname"]) == ({"floor": 4, "shirt": "M"}, "Ada")
    assert api.get(user) == changed
    # Nothing changes: neither version nor event.
    assert api.patch(user, {"attributes": {"floor": 4.0, "department": ""}})["version"] == changed["version"]
    last, first, *_ = world.audit_events(event="user.changed", object_id=user.removeprefix("/users/"))
    assert first.detail["attributes"] == {
        "before": {"department": None, "floor": None, "shirt": None},
        "after": {"department": "Sales", "floor": 3, "shirt": "M"},
    }
    assert last.detail["attributes"] == {
        "before": {"department": "Sales", "floor": 3},
        "after": {"department": None, "floor": 4},
    }


def test_all_wrong_values_are_reported_and_nothing_is_stored(api: ApiClient, attributes: str, user: str) -> None:
    api.post(attributes, {**DEPARTMENT, "required": True})
    api.post(attributes, SHIRT)
    api.post(attributes, {"key": "floor", "label": "Floor", "type": "number"})
    values = {"department": "", "shirt": "XL", "floor": "3", "desk": 1}
    fields = refused(api, "PATCH", user, {"attributes": values, "nickname": "Ada"})
    assert sorted(fields) == [f"attributes.{key}" for key in sorted(values)]
    assert (api.get(user)["attributes"], api.get(user)["nickname"]) == ({}, "")


@pytest.mark.parametrize("values", [[], "x", {"department": ["x"]}, {"department": {"a": 1}}])
def test_malformed_values_are_refused(api: ApiClient, attributes: str, user: str, values: object) -> None:
    api.post(attributes, DEPARTMENT)
    assert list(refused(api, "PATCH", user, {"attributes": values})) == ["attributes"]


def test_required_attribute_is_asked_for_new_people_only(
    api: ApiClient, organization: str, attributes: str, user: str
) -> None:
    api.post(attributes, {**DEPARTMENT, "required": True})
    assert api.patch(user, {"nickname": "Ada"})["nickname"] == "Ada"
    grace = {**ADA, "user_name": "grace", "email": ""}
    assert list(refused(api, "POST", f"{organization}/users", grace)) == ["attributes.department"]
    created = api.post(f"{organization}/users", {**grace, "attributes": {"department": "Navy"}})
    assert created["attributes"] == {"department": "Navy"}
    assert [item["attributes"] for item in api.list(f"{organization}/users")] == [{}, {"department": "Navy"}]


def test_confidential_values_are_not_in_the_audit_trail(
    world: World, api: ApiClient, organization: str, attributes: str
) -> None:
    api.post(attributes, DEPARTMENT)
    api.post(attributes, {"key": "tax_id", "label": "Tax id", "confidential": True})
    created = api.post(f"{organization}/users", {**ADA, "attributes": {"tax_id": "DE-8812734", "department": "A"}})
    api.patch(f"/users/{created['id']}", {"attributes": {"tax_id": "DE-9912734"}})
    events = [
        event for event in world.audit_events(object_id=created["id"]) if "confidential_attributes" in event.detail
    ]
    assert [(event.event, event.detail["confidential_attributes"]) for event in events] == [
        ("user.changed", ["tax_id"]),
        ("user.created", ["tax_id"]),
    ]
    assert "12734" not in str(events)
    assert events[1].detail["attributes"] == {"department": "A"}


def test_choice_in_use_stays(api: ApiClient, attributes: str, user: str) -> None:
    shirt = f"/attributes/{api.post(attributes, SHIRT)['id']}"
    api.patch(user, {"attributes": {"shirt": "M"}})
    fields = refused(api, "PATCH", shirt, {"choices": ["S", "L"]})
    assert fields == {"choices": "1 person has a choice that you removed: M. Change the value first."}
    assert api.patch(shirt, {"choices": ["M", "L", "XL"]})["choices"] == ["M", "L", "XL"]
    assert api.get(user)["attributes"] == {"shirt": "M"}


def test_type_changes_if_every_value_fits(api: ApiClient, attributes: str, user: str) -> None:
    path = f"/attributes/{api.post(attributes, DEPARTMENT)['id']}"
    api.patch(user, {"attributes": {"department": "12"}})
    assert api.patch(path, {"type": "number"})["type"] == "number"
    assert api.get(user)["attributes"] == {"department": 12}
    assert "type" in refused(api, "PATCH", path, {"type": "date"})
    assert "type" in refused(api, "PATCH", path, {"type": "choice", "choices": ["11"]})
    changed = api.patch(path, {"type": "choice", "choices": ["11", "12"]})
    assert changed["choices"] == ["11", "12"]
    assert api.patch(path, {"type": "text"})["choices"] == []
    assert api.get(user)["attributes"] == {"department": "12"}


def test_values_go_with_their_attribute(api: ApiClient, attributes: str, user: str) -> None:
    path = f"/attributes/{api.post(attributes, DEPARTMENT)['id']}"
    api.patch(user, {"attributes": {"department": "Sales"}})
    api.delete(path)
    api.post(attributes, DEPARTMENT)
    assert api.get(user)["attributes"] == {}


def test_stale_version_is_refused(api: ApiClient, attributes: str) -> None:
    path = f"/attributes/{api.post(attributes, DEPARTMENT)['id']}"
    api.patch(path, {"label": "Team"})
    answer = api.ask("PATCH", path, {"label": "Group"}, If_Match='"1"')
    assert answer.status_int == 412


def test_user_manager_fills_in_attributes_and_does_not_define_them(world: World, owner: ServiceUserProgram) -> None:
    world.make_attribute(owner.organization, "department")
    manager = world.make_service_user_program(owner.organization)
    world.assign_manager_role(manager, "ORG_USER_MANAGER")
    api = ApiClient.for_user(manager)
    path = f"/organizations/{owner.organization.id}"
    [definition] = api.list(f"{path}/attributes")
    created = api.post(f"{path}/users", {**ADA, "attributes": {"department": "Sales"}})
    assert created["attributes"] == {"department": "Sales"}
    check_api_error(api.ask("POST", f"{path}/attributes", DEPARTMENT), 403, "forbidden")
    check_api_error(api.ask("DELETE", f"/attributes/{definition['id']}"), 403, "forbidden")


def test_attributes_of_other_organizations_are_unknown(world: World, api: ApiClient) -> None:
    other = world.make_organization()
    definition = world.make_attribute(other, "department")
    check_api_error(api.ask("GET", f"/attributes/{definition.id}"), 404, "not_found")
    check_api_error(api.ask("GET", f"/organizations/{other.id}/attributes"), 404, "not_found")
