"""Management API: export and import of organizations."""

import json
from typing import Any

import pytest

from identity.domain.permissions import Resource
from identity.testing.fixtures import WorldFactory
from identity.testing.response_checks import check_api_error
from identity.testing.world import World
from tests.plugins.management.api_fixture_data import ApiClient, ApiFixtureData, make_fixture_data

IMPORT = "/organizations/import"
NEW_IDS = f"{IMPORT}?keep_ids=false"


@pytest.fixture
def api(world: World) -> ApiClient:
    return ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))


@pytest.fixture
def estate(world: World) -> ApiFixtureData:
    return make_fixture_data(world)


def exported(api: ApiClient, organization_id: str) -> Any:
    return api.post(f"/organizations/{organization_id}/export", status=200)


def from_other_instance(document: Any, domain: str) -> Any:
    """A document as from another instance, with this primary domain."""
    organization = {**document["organization"], "primary_domain": domain}
    return {**document, "instance": "01980000-0000-7000-8000-000000000000", "organization": organization}


def make_document(**members: Any) -> Any:
    head = {"format": "identity-organization", "version": 1, "instance": "01980000-0000-7000-8000-000000000000"}
    return {**head, "organization": {"name": "New", **members}}


def names(organization: Any) -> Any:
    """The names, which stay the same with new ids."""
    projects = [
        (item["name"], item["roles"], [application["name"] for application in item["applications"]])
        for item in organization["projects"]
    ]
    users = [item["user_name"] for kind in ("users", "service_users") for item in organization[kind]]
    keys = [key["public_key"] for item in organization["service_users"] for key in item["keys"]]
    return organization["name"], projects, users, keys


def test_export_is_imported_as_new_organization(world: World, api: ApiClient, estate: ApiFixtureData) -> None:
    document = exported(api, estate.organization.id)
    domain = f"copy-of-{estate.organization.primary_domain}"
    answer = api.ask("POST", IMPORT, from_other_instance(document, domain))
    created = answer.json
    assert (answer.status_int, created["primary_domain"], created["state"]) == (201, domain, "active")
    assert answer.headers["Location"] == f"{world.client.management_url}/organizations/{created['id']}"
    assert created["id"] != estate.organization.id
    again = exported(api, created["id"])
    assert names(again["organization"]) == names(document["organization"])
    users = api.list(f"/organizations/{created['id']}/users")
    assert [user["user_name"] for user in users] == [item["user_name"] for item in document["organization"]["users"]]


@pytest.mark.parametrize("query", ["", "?keep_ids=true", "?keep_ids=false"])
def test_import_keeps_ids_on_request(api: ApiClient, estate: ApiFixtureData, query: str) -> None:
    document = exported(api, estate.organization.id)
    api.delete(f"/organizations/{estate.organization.id}")
    created = api.post(f"{IMPORT}{query}", document)["id"]
    assert (created == estate.organization.id) == ("false" not in query)
    users = exported(api, created)["organization"]["users"]
    assert (users == document["organization"]["users"]) == ("false" not in query)


def test_export_contains_no_secret(world: World, api: ApiClient, estate: ApiFixtureData) -> None:
    text = json.dumps(exported(api, estate.organization.id))
    assert "PUBLIC KEY" in text
    assert not [secret for secret in world.client.secrets if secret in text]
    for marker in ("PRIVATE", "digest", "hash"):
        assert marker not in text


def test_export_and_import_are_audited(world: World, api: ApiClient, estate: ApiFixtureData) -> None:
    document = exported(api, estate.organization.id)
    created = api.post(IMPORT, from_other_instance(document, f"audited-{estate.organization.primary_domain}"))
    assert world.audit_events(event="organization.exported", object_id=estate.organization.id)
    assert world.audit_events(event="organization.imported", object_id=created["id"])


def test_repeated_import_runs_once(world: World, api: ApiClient) -> None:
    document = make_document(primary_domain=f"once-{world.make_organization().primary_domain}")
    created = api.post(IMPORT, document, Idempotency_Key="once")
    assert api.post(IMPORT, document, Idempotency_Key="once") == created
    check_api_error(api.ask("POST", NEW_IDS, document, Idempotency_Key="once"), 409, "conflict")


def test_invalid_import_lists_all_problems_and_creates_nothing(world: World, api: ApiClient) -> None:
    domain = f"wrong-{world.make_organization().primary_domain}"
    application = {"name": "Web", "type": "web", "redirect_uris": ["ftp://x"]}
    desk = {"name": "Desk", "type": "desktop"}
    project = {"name": "Shop", "applications": [desk, application], "user_grants": [{"user": "nobody"}]}
    answer = api.ask("POST", IMPORT, make_document(primary_domain=domain, projects=[project]))
    fields = check_api_error(answer, 422, "invalid")["fields"]
    assert fields["organization.projects[0].applications[0].type"] == "Choose from web, native, browser, api."
    assert set(fields) == {
        "organization.projects[0].applications[0].type",
        "organization.projects[0].applications[1].redirect_uris",
        "organization.projects[0].user_grants[0].user",
    }
    with world.read_only_services() as services:
        assert services.storage.organizations.find_by_domain(domain) is None


def test_import_reports_type_and_rule_problems_together(api: ApiClient) -> None:
    document = make_document(registration="yes", colour="red", users=[{"user_name": "x"}, 5], projects=[{"roles": {}}])
    fields = check_api_error(api.ask("POST", IMPORT, document), 422, "invalid")["fields"]
    assert set(fields) == {
        "organization.registration",
        "organization.colour",
        "organization.users[0].given_name",
        "organization.users[0].family_name",
        "organization.users[1]",
        "organization.projects[0].name",
        "organization.projects[0].roles",
    }
    assert fields["organization.registration"] == "This must be true or false."


def test_import_refuses_invalid_parameters(api: ApiClient) -> None:
    for query in ("keep_ids=yes", "keep_ids=", "keep_ids=true&keep_ids=false", "other=1"):
        answer = api.ask("POST", f"{IMPORT}?{query}", make_document())
        assert set(check_api_error(answer, 422, "invalid")["fields"]) == {query.partition("=")[0]}


@pytest.mark.thorough
def test_import_has_its_own_size_limit(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.import_limit": "1"})
    api = ApiClient.for_user(world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE))
    users = [{"user_name": f"u{number}", "given_name": "A" * 50, "family_name": "B"} for number in range(1000)]
    created = api.post(IMPORT, make_document(users=users, primary_domain="large.localhost"))
    assert len(exported(api, created["id"])["organization"]["users"]) == 1000
    answer = check_api_error(api.ask("POST", IMPORT, make_document(users=users * 10)), 413, "too_large")
    assert "1048576 bytes" in answer["message"]


def test_import_problems_are_truncated_and_counted(api: ApiClient) -> None:
    users = [{"user_name": f"u{number}", "given_name": "A"} for number in range(1500)]
    fields = check_api_error(api.ask("POST", IMPORT, make_document(users=users)), 422, "invalid")["fields"]
    assert len(fields) == 101
    assert fields["organization.users[99].family_name"] == "This is required."
    assert fields["more"] == "1400 more places need a change."
    twice = [{"user_name": f"u{number % 20}", "given_name": "A", "family_name": "B"} for number in range(150)]
    fields = check_api_error(api.ask("POST", IMPORT, make_document(users=twice)), 422, "invalid")["fields"]
    assert fields.pop("more") == "30 more places need a change."
    assert set(fields) == {f"organization.users[{number}].user_name" for number in range(20, 120)}


def test_truncated_document_is_refused(api: ApiClient, world: World) -> None:
    whole = json.dumps(make_document(primary_domain=f"cut-{world.make_organization().primary_domain}", users=[]))
    for part in (whole[:-1], whole[: len(whole) // 2], whole + "x"):
        answer = api.ask("POST", IMPORT, body=part.encode())
        assert "is not valid JSON" in check_api_error(answer, 400, "invalid")["message"]


def test_export_needs_full_read_access(world: World) -> None:
    for role in ("ORG_OWNER", "ORG_OWNER_VIEWER"):
        robot = world.make_manager_program(role)
        assert exported(ApiClient.for_user(robot), robot.organization.id)["organization"]["id"] == robot.organization.id


def test_partial_reader_cannot_export(world: World) -> None:
    for role in ("ORG_USER_MANAGER", "ORG_SETTINGS_MANAGER", "ORG_PROJECT_CREATOR"):
        robot = world.make_manager_program(role)
        answer = ApiClient.for_user(robot).ask("POST", f"/organizations/{robot.organization.id}/export")
        check_api_error(answer, 403, "forbidden")
        assert not world.audit_events(event="organization.exported", object_id=robot.organization.id)


def test_export_of_foreign_organization_looks_unknown(world: World, estate: ApiFixtureData) -> None:
    api = ApiClient.for_user(world.make_manager_program("ORG_OWNER"))
    for identifier in (estate.organization.id, "01980000-0000-7000-8000-000000000000"):
        check_api_error(api.ask("POST", f"/organizations/{identifier}/export"), 404, "not_found")


def test_import_needs_create_permission(world: World) -> None:
    for role in ("ORG_OWNER", "IAM_USER_MANAGER", "IAM_OWNER_VIEWER"):
        robot = world.make_manager_program(role, resource=Resource.INSTANCE if role.startswith("IAM") else None)
        check_api_error(ApiClient.for_user(robot).ask("POST", IMPORT, make_document()), 403, "forbidden")


def test_keeping_ids_needs_instance_owner(world: World, api: ApiClient, estate: ApiFixtureData) -> None:
    document = exported(api, estate.organization.id)
    api.delete(f"/organizations/{estate.organization.id}")
    manager = ApiClient.for_user(world.make_manager_program("IAM_ORG_MANAGER", resource=Resource.INSTANCE))
    for path in (IMPORT, f"{IMPORT}?keep_ids=true"):
        check_api_error(manager.ask("POST", path, document), 403, "forbidden")
    # The domain is still in use by the original organization.
    domain = f"again-{estate.organization.primary_domain}"
    named = {**document, "organization": {**document["organization"], "primary_domain": domain}}
    # Such a manager cannot turn off consent, either.
    check_api_error(manager.ask("POST", NEW_IDS, named), 403, "forbidden")
    asking = json.loads(json.dumps(named).replace('"consent": "never"', '"consent": "always"'))
    assert manager.post(NEW_IDS, asking)["id"] != estate.organization.id
