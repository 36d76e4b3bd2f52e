"""SCIM requests: filters and pages, bulk, errors in the format of SCIM, and organizations that do not know each
other."""

import json
from urllib.parse import urlencode

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from identity.domain.names import user_name_error
from identity.plugins.scim.users import derive_user_name
from identity.testing.world import World
from tests.plugins.scim.scim_client import GROUP_SCHEMA, USER_SCHEMA, ScimClient, check_scim_error

BULK = "urn:ietf:params:scim:api:messages:2.0:BulkRequest"

ATTRIBUTES = st.sampled_from(
    ["userName", "displayName", "emails", "emails.value", "name", "name.givenName", "active", "meta.created", "members"]
)
OPERATORS = st.sampled_from(["eq", "ne", "co", "sw", "ew", "gt", "le"])
VALUES = st.sampled_from(['"ada"', "true", "null", "7", "1e999", "-0.5", r'"\ud800"', '"2026-01-01T00:00:00Z"', '""'])
#: Filters and paths that mostly have the syntax of RFC 7644, and other texts.
TEXTS = st.text(max_size=20) | st.recursive(
    st.builds("{} {} {}".format, ATTRIBUTES, OPERATORS, VALUES) | st.builds("{} pr".format, ATTRIBUTES) | ATTRIBUTES,
    lambda part: st.one_of(
        *(st.builds(form.format, part, part) for form in ("{} and {}", "({}) or {}", "not ({})", "emails[{}].value")),
        *(st.builds(form.format, part) for form in ("members[{}]", "emails[{}]", "urn:x:{}", "{}.value")),
    ),
    max_leaves=4,
)


def test_filters(scim: ScimClient) -> None:
    ada = scim.create_user("ada", displayName="Ada", emails=[{"value": "ada@mail.example", "type": "work"}])["id"]
    bob = scim.create_user("bob", displayName="Bob", active=False, title="Boss")["id"]
    for scim_filter, found in (
        ('userName eq "ADA"', {ada}),
        ('userName ne "ada"', {bob}),
        ('userName sw "b" or userName ew "da"', {ada, bob}),
        ("title pr and not (active eq true)", {bob}),
        ('displayName gt "Ada"', {bob}),
        ('displayName le "ada"', {ada}),
        ('emails[type eq "work" and value co "mail"]', {ada}),
        ('emails.value eq "ADA@mail.example" and active eq true', {ada}),
        ('emails eq "ada@mail.example" or id eq "' + bob + '"', {ada, bob}),
        ('meta.created gt "2020-01-01T00:00:00Z"', {ada, bob}),
        ('externalId eq "none"', set()),
        (r'userName eq "\u0000" or id eq "\ud800"', set()),
        (f'urn:ietf:params:scim:schemas:core:2.0:User:id eq "{ada}"', {ada}),
    ):
        assert set(scim.find("Users", scim_filter)) == found, scim_filter
    for scim_filter in ("userName", 'userName xx "a"', 'nope eq "a"', "active gt true", "(" * 60, "a" * 3000):
        check_scim_error(scim.ask("GET", f"/Users?{urlencode({'filter': scim_filter})}"), 400, "invalidFilter")


def test_pages_and_order(scim: ScimClient) -> None:
    for name in ("c", "a", "b"):
        scim.create_user(name)
    page = scim.get("/Users?sortBy=userName&sortOrder=descending&startIndex=2&count=1&attributes=userName")
    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (3, 2, 1)
    [found] = page["Resources"]
    assert (found["userName"], set(found)) == ("b", {"schemas", "id", "userName"})
    assert scim.get("/Users?count=0")["totalResults"] == 3
    scim.create_group("Team")
    searched = json.loads(scim.ask("POST", "/.search", {"filter": 'displayName eq "team" or userName eq "a"'}).body)
    assert [item["meta"]["resourceType"] for item in searched["Resources"]] == ["User", "Group"]


def test_bulk_operations_refer_to_each_other(scim: ScimClient) -> None:
    user = {"schemas": [USER_SCHEMA], "userName": "ada"}
    group = {"schemas": [GROUP_SCHEMA], "displayName": "Team", "members": [{"value": "bulkId:ada"}]}
    operations = [
        {"method": "POST", "path": "/Groups", "bulkId": "team", "data": group},
        {"method": "POST", "path": "/Users", "bulkId": "ada", "data": user},
        {"method": "POST", "path": "/Users", "bulkId": "again", "data": user},
        {"method": "DELETE", "path": "/Users/none"},
        {"method": "DELETE", "path": "/Users/bulkId:nobody"},
    ]
    answer = scim.ask("POST", "/Bulk", {"schemas": [BULK], "Operations": operations})
    results = json.loads(answer.body)["Operations"]
    assert [result["status"] for result in results] == ["201", "201", "409", "404", "409"]
    assert results[2]["response"]["scimType"] == "uniqueness"
    [member] = scim.get("/Groups")["Resources"][0]["members"]
    assert member["$ref"] == results[1]["location"]
    answer = scim.ask("POST", "/Bulk", {"schemas": [BULK], "failOnErrors": 1, "Operations": operations[2:]})
    assert len(json.loads(answer.body)["Operations"]) == 1
    check_scim_error(scim.ask("POST", "/Bulk", {"Operations": [{}] * 101}), 413)
    answer = scim.ask("POST", "/Bulk", {"Operations": [{"bulkId": [], "method": {}, "path": 7, "data": "bulkId:x"}]})
    assert json.loads(answer.body)["Operations"][0]["status"] == "400"


def test_errors_have_the_format_of_scim(world: World, scim: ScimClient) -> None:
    check_scim_error(ScimClient(world, "wrong", scim.organization_id).ask("GET", "/Users"), 401)
    check_scim_error(ScimClient(world, scim.token, "nowhere").ask("GET", "/Users"), 404)
    check_scim_error(scim.ask("GET", "/Nothing"), 404)
    check_scim_error(scim.ask("PUT", "/Users"), 405)
    check_scim_error(scim.ask("GET", "/Me"), 501)
    check_scim_error(scim.ask("GET", '/Schemas?filter=name+eq+"x"'), 403)
    check_scim_error(scim.ask("POST", "/Users", {"schemas": [USER_SCHEMA], "title": "x" * 70_000}), 413)
    check_scim_error(scim.ask("POST", "/Users", {"schemas": [USER_SCHEMA]}), 400, "invalidValue")
    check_scim_error(scim.ask("POST", "/Users", []), 400, "invalidSyntax")
    email = {"schemas": [USER_SCHEMA], "userName": "x", "emails": [{"value": "nowhere"}]}
    assert "emails.value" in check_scim_error(scim.ask("POST", "/Users", email), 400, "invalidValue")


def test_organizations_do_not_see_each_other(world: World, scim: ScimClient) -> None:
    """Security 14.2."""
    other = ScimClient.for_program(world.make_manager_program("ORG_USER_PROVISIONER"))
    user, group = other.create_user("ada", externalId="1"), other.create_group("Sales", externalId="1")
    check_scim_error(ScimClient(world, scim.token, other.organization_id).ask("GET", "/Users"), 404)
    for path in (f"/Users/{user['id']}", f"/Groups/{group['id']}"):
        for method in ("GET", "DELETE"):
            check_scim_error(scim.ask(method, path), 404)
        check_scim_error(scim.ask_patch(path, {"op": "add", "path": "externalId", "value": "2"}), 404)
    assert scim.get("/Users")["totalResults"] == scim.get("/Groups")["totalResults"] == 0
    for endpoint, scim_filter in (
        ("Users", 'userName eq "ada"'),
        ("Users", f'id eq "{user["id"]}"'),
        ("Groups", 'externalId eq "1"'),
        ("Groups", f'id eq "{group["id"]}"'),
    ):
        assert scim.find(endpoint, scim_filter) == []
    scim.create_user("ada", externalId="1")


def test_roles_limit_what_a_token_does(world: World) -> None:
    viewer = ScimClient.for_program(world.make_manager_program("ORG_OWNER_VIEWER"))
    assert viewer.get("/Users")["totalResults"] == 0
    check_scim_error(viewer.ask("POST", "/Users", {"schemas": [USER_SCHEMA], "userName": "x"}), 403)
    check_scim_error(viewer.ask("POST", "/Groups", {"schemas": [GROUP_SCHEMA], "displayName": "x"}), 403)
    settings_manager = ScimClient.for_program(world.make_manager_program("ORG_SETTINGS_MANAGER"))
    check_scim_error(settings_manager.ask("GET", "/Users"), 403)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, value=st.none() | st.booleans() | st.text(max_size=5) | st.lists(st.just({"value": "x"})))
def test_no_filter_or_path_causes_a_server_error(scim: ScimClient, text: str, value: object) -> None:
    """ScimClient refuses 5xx."""
    for endpoint, name in (("/Users", "ada"), ("/Groups", "Team")):
        scim.ask("GET", f"{endpoint}?{urlencode({'filter': text, 'sortBy': text[:20]})}")
        found = scim.get(f"{endpoint}?count=1").get("Resources")
        [resource] = found or [scim.create_user(name) if endpoint == "/Users" else scim.create_group(name)]
        for op in ("add", "replace", "remove"):
            scim.ask_patch(f"{endpoint}/{resource['id']}", {"op": op, "path": text, "value": value})


@given(text=st.text(max_size=300))
def test_derived_user_names_are_valid(text: str) -> None:
    for number in (1, 2, 49):
        assert user_name_error(derive_user_name(text, number)) is None
