"""Management API (decisions): bodies, parameters, conditional requests, paging, errors."""

import json

import pytest

from identity.testing.response_checks import check_api_error, format_response
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient

# --- bodies -----------------------------------------------------------------------------------------------------------


def test_create_response_has_location_and_version(world: World, api: ApiClient, projects: str) -> None:
    answer = api.ask("POST", projects, {"name": "Billing", "check_roles": True})
    assert answer.status_int == 201, format_response(answer)
    members = answer.json
    assert (members["name"], members["check_roles"], members["version"]) == ("Billing", True, 1)
    assert answer.headers["Location"] == f"{world.client.management_url}/projects/{members['id']}"
    assert answer.headers["ETag"] == '"1"'
    assert answer.headers["Cache-Control"] == "no-store"
    path = answer.headers["Location"].removeprefix(world.client.management_url)
    assert api.get(path) == members


def test_times_are_utc_and_whole_seconds(world: World, api: ApiClient, projects: str) -> None:
    created_at = api.post(projects, {"name": "Billing"})["created_at"]
    assert created_at == world.clock().strftime("%Y-%m-%dT%H:%M:%SZ")


def test_malformed_body_is_refused(api: ApiClient, projects: str) -> None:
    for body, message in (
        (b"{", "is not valid JSON"),
        (b'{"name": "a", "name": "b"}', "appears twice"),
        (b'{"name": NaN}', "not a number"),
        (b'{"name": 1e999999999}', ""),
        (b'{"name": ' + b"1" * 5000 + b"}", ""),
        (b"[" * 20_000 + b"]" * 20_000, ""),
        (b'{"name": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", ""),
        (b'["name"]', "must be a JSON object"),
        (b'"name"', "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'{"name": "\xff"}', "not UTF-8"),
        ('{"name": "Billing"}'.encode("utf-16"), ""),
        (b"\xef\xbb\xbf{}", ""),
        (b'{"name": "\\ud800"}', "not UTF-8"),
        (b'{"name": "a\\u0000b"}', "NUL"),
    ):
        answer = api.ask("POST", projects, body=body)
        assert answer.status_int in (400, 422), format_response(answer)
        error = check_api_error(answer, answer.status_int, "invalid")
        assert message in error["message"]
        if message:
            assert answer.status_int == 400


def test_media_type_other_than_json_is_refused(api: ApiClient, projects: str) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "text/json", ""):
        answer = api.ask("POST", projects, {"name": "Billing"}, content_type=content_type)
        assert "application/json" in check_api_error(answer, 415, "unsupported")["message"]


def test_media_type_parameter_is_ignored(api: ApiClient, projects: str) -> None:
    answer = api.ask("POST", projects, {"name": "Billing"}, content_type="Application/JSON; charset=utf-8")
    assert answer.status_int == 201, format_response(answer)


def test_too_large_body_is_refused(api: ApiClient, projects: str) -> None:
    answer = api.ask("POST", projects, {"name": "a" * 70_000})
    check_api_error(answer, 413, "too_large")


@pytest.mark.shows("7.10")
def test_invalid_fields_are_named(api: ApiClient, projects: str) -> None:
    for members, fields in (
        ({}, {"name": "This is required."}),
        ({"name": ""}, {"name": "Enter a name."}),
        ({"name": None}, {"name": "This must be a text."}),
        ({"name": 7}, {"name": "This must be a text."}),
        ({"name": "x" * 201}, {"name": "Use at most 200 characters."}),
        ({"name": "a", "assert_roles": "true"}, {"assert_roles": "This must be true or false."}),
        ({"name": "a", "assert_roles": 1}, {"assert_roles": "This must be true or false."}),
        ({"name": "a", "colour": "red"}, {"colour": "This is not known here."}),
        ({"colour": 1, "check_roles": {}}, {"name", "colour", "check_roles"}),
    ):
        error = check_api_error(api.ask("POST", projects, members), 422, "invalid")["fields"]
        assert error == fields if isinstance(fields, dict) else set(error) == fields


def test_missing_body_is_an_empty_object(api: ApiClient, projects: str) -> None:
    check_api_error(api.ask("POST", projects), 422, "invalid")
    project = api.post(projects, {"name": "Billing"})
    path = f"/projects/{project['id']}"
    assert api.post(f"{path}/deactivate", status=200)["state"] == "deactivated"
    assert api.post(f"{path}/reactivate", {}, status=200)["state"] == "active"
    answer = api.ask("POST", f"{path}/deactivate", {"really": True})
    assert check_api_error(answer, 422, "invalid")["fields"] == {"really": "This is not known here."}


# --- addresses --------------------------------------------------------------------------------------------------------


def test_invalid_parameters_are_named(api: ApiClient, projects: str) -> None:
    for query, fields in (
        ("colour=red", {"colour": "This is not known here."}),
        ("access_token=x", {"access_token": "This is not known here."}),
        ("limit=5&limit=6", {"limit": "Give this only once."}),
        ("limit=0", {"limit": "Choose between 1 and 200."}),
        ("limit=201", {"limit": "Choose between 1 and 200."}),
        ("limit=ten", {"limit": "Choose between 1 and 200."}),
        ("state=gone", {"state": "Choose one of the values offered."}),
        ("q=" + "x" * 201, {"q": "Use at most 200 characters."}),
        ("q=%00", {"q": "Use printable characters only."}),
        ("cursor=x", {"cursor": "This list has changed. Start from the beginning."}),
    ):
        assert check_api_error(api.ask("GET", f"{projects}?{query}"), 422, "invalid")["fields"] == fields


def test_changes_take_no_parameters(api: ApiClient, projects: str) -> None:
    answer = api.ask("POST", f"{projects}?name=Billing", {"name": "Billing"})
    assert check_api_error(answer, 422, "invalid")["fields"] == {"name": "This is not known here."}
    assert api.list(projects) == []


def test_malformed_id_is_not_found(api: ApiClient) -> None:
    for identifier in ("nothing", "%00", "a%2Fb", "%F0%9F%A6%84", "x" * 3000, ".", "'--"):
        for path in (f"/projects/{identifier}", f"/users/{identifier}/grants", f"/audit-events/{identifier}"):
            answer = api.ask("GET", path)
            assert answer.status_int == 404, format_response(answer)
            check_api_error(answer, 404, "not_found")


def test_unsupported_method_lists_allowed_ones(api: ApiClient, projects: str) -> None:
    answer = api.ask("PUT", projects, {})
    check_api_error(answer, 405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD, POST"


def test_head_is_get_without_body(api: ApiClient, projects: str) -> None:
    answer = api.ask("HEAD", projects)
    assert (answer.status_int, answer.body) == (200, b"")
    assert answer.headers["ETag"] == api.ask("GET", projects).headers["ETag"]


# --- pages of lists ---------------------------------------------------------------------------------------------------


def test_list_pages_end_without_cursor(api: ApiClient, projects: str) -> None:
    names = [f"Project {number:02}" for number in range(7)]
    for name in reversed(names):
        api.post(projects, {"name": name})
    listed_names, address = [], f"{projects}?limit=3"
    for count in (3, 3, 1):
        page = api.get(address)
        assert len(page["items"]) == count
        listed_names += [item["name"] for item in page["items"]]
        address = f"{projects}?limit=3&cursor={page['next_cursor']}"
    assert page["next_cursor"] is None
    assert listed_names == names


def test_cursor_of_other_list_is_refused(world: World, api: ApiClient, projects: str) -> None:
    """Security 14.2."""
    for name in ("Billing", "Shipping"):
        api.post(projects, {"name": name})
    cursor = api.get(f"{projects}?limit=1")["next_cursor"]
    program = world.make_manager_program("ORG_OWNER")
    other_list = f"/organizations/{program.organization.id}/projects?cursor={cursor}"
    check_api_error(ApiClient.for_user(program).ask("GET", other_list), 422, "invalid")
    check_api_error(api.ask("GET", f"{projects}?cursor={cursor}&state=active"), 422, "invalid")
    check_api_error(api.ask("GET", f"{projects}?cursor={cursor[:-4]}AAAA"), 422, "invalid")


def test_lists_are_searched_and_filtered(api: ApiClient, projects: str) -> None:
    billing, shipping = (api.post(projects, {"name": name}) for name in ("Billing", "Shipping"))
    api.post(f"/projects/{shipping['id']}/deactivate", status=200)
    assert [item["id"] for item in api.list(f"{projects}?q=bILL")] == [billing["id"]]
    assert [item["id"] for item in api.list(f"{projects}?state=deactivated")] == [shipping["id"]]
    assert [item["id"] for item in api.list(f"{projects}?state=active&q=ship")] == []


def test_lists_have_totals_and_orders(api: ApiClient, projects: str) -> None:
    for name in ("billing", "Äpfel", "Shipping"):
        api.post(projects, {"name": name})
    page_totals = {"total": 3, "total_is_exact": True}
    for query in ("", "?limit=1", "?limit=1&sort=-name", "?q=i&state=active"):
        answer = api.get(f"{projects}{query}")
        assert {name: answer[name] for name in page_totals} == {**page_totals, "total": 2 if "q=" in query else 3}, (
            query
        )
    for sort, names in (
        ("name", ["billing", "Shipping", "Äpfel"]),
        ("-name", ["Äpfel", "Shipping", "billing"]),
    ):
        assert [item["name"] for item in api.list(f"{projects}?sort={sort}")] == names
        listed_names, cursor = [], ""
        while cursor is not None:
            page = api.get(f"{projects}?sort={sort}&limit=1{cursor and f'&cursor={cursor}'}")
            listed_names += [item["name"] for item in page["items"]]
            cursor = page["next_cursor"]
        assert listed_names == names


def test_cursor_of_other_order_is_refused(api: ApiClient, projects: str) -> None:
    for name in ("Billing", "Shipping"):
        api.post(projects, {"name": name})
    cursor = api.get(f"{projects}?limit=1&sort=created_at")["next_cursor"]
    for sort in ("", "&sort=name", "&sort=-created_at"):
        check_api_error(api.ask("GET", f"{projects}?cursor={cursor}{sort}"), 422, "invalid")


def test_unknown_order_is_refused(api: ApiClient, projects: str) -> None:
    for sort in ("", "-", "id", "--name", "name,created_at", "email", "search_text", "%00"):
        check_api_error(api.ask("GET", f"{projects}?sort={sort}"), 422, "invalid")


# --- conditions -------------------------------------------------------------------------------------------------------


def test_stale_change_is_refused(api: ApiClient, projects: str) -> None:
    path = f"/projects/{api.post(projects, {'name': 'Billing'})['id']}"
    tag = api.ask("GET", path).headers["ETag"]
    answer = api.ask("PATCH", path, {"name": "Invoices"}, If_Match=tag)
    assert (answer.status_int, answer.headers["ETag"]) == (200, '"2"')
    for method, address, members in (
        ("PATCH", path, {"name": "Too late"}),
        ("POST", f"{path}/deactivate", None),
        ("DELETE", path, None),
    ):
        answer = api.ask(method, address, members, If_Match=tag)
        assert "Read it again" in check_api_error(answer, 412, "precondition_failed")["message"]
    assert api.get(path)["name"] == "Invoices"
    assert api.patch(path, {"name": "Accounts"}, If_Match='"7", "2"')["version"] == 3
    assert api.patch(path, {"name": "Ledgers"}, If_Match="*")["version"] == 4
    assert api.patch(path, {"name": "Books"})["version"] == 5
    api.delete(path, If_Match='"5"')


def test_etag_without_version_is_a_digest(api: ApiClient, projects: str) -> None:
    project = api.post(projects, {"name": "Billing"})
    api.post(f"/projects/{project['id']}/roles", {"key": "reader", "display_name": "Reader"})
    path = f"/projects/{project['id']}/roles/reader"
    tag = api.ask("GET", path).headers["ETag"]
    assert api.patch(path, {"display_name": "Readers"}, If_Match=tag)["display_name"] == "Readers"
    check_api_error(api.ask("PATCH", path, {"group": "x"}, If_Match=tag), 412, "precondition_failed")
    check_api_error(api.ask("DELETE", path, If_Match=tag), 412, "precondition_failed")


def test_weak_etag_does_not_match_for_changes(api: ApiClient, projects: str) -> None:
    """RFC 9110 §13.1.1."""
    path = f"/projects/{api.post(projects, {'name': 'Billing'})['id']}"
    check_api_error(api.ask("PATCH", path, {"name": "x"}, If_Match='W/"1"'), 412, "precondition_failed")


def test_malformed_etag_is_refused(api: ApiClient, projects: str) -> None:
    for header in ("1", '"1', "", '"1" "2"', '"1",', "W/1", '"\x7f"', '"' + "1" * 3000 + '"'):
        path = f"/projects/{api.post(projects, {'name': 'Billing'})['id']}"
        check_api_error(api.ask("PATCH", path, {"name": "x"}, If_Match=header), 400, "invalid")
        check_api_error(api.ask("GET", path, If_None_Match=header), 400, "invalid")


def test_matching_if_none_match_is_not_modified(api: ApiClient, projects: str) -> None:
    path = f"/projects/{api.post(projects, {'name': 'Billing'})['id']}"
    for header in ('"1"', 'W/"1"', '"7", "1"', "*"):
        answer = api.ask("GET", path, If_None_Match=header)
        assert (answer.status_int, answer.body, answer.headers["ETag"]) == (304, b"", '"1"')
    assert api.ask("GET", path, If_None_Match='"2"').status_int == 200
    listed = api.ask("GET", f"{projects}?limit=1").headers["ETag"]
    assert api.ask("GET", f"{projects}?limit=1", If_None_Match=listed).status_int == 304
    api.post(projects, {"name": "Accounts"})
    assert api.ask("GET", f"{projects}?limit=1", If_None_Match=listed).status_int == 200


def test_secret_response_has_no_etag(world: World, owner: ServiceUserProgram, api: ApiClient) -> None:
    answer = api.ask("POST", f"/service-users/{owner.id}/secrets")
    assert answer.status_int == 201
    assert "ETag" not in answer.headers


# --- audit ------------------------------------------------------------------------------------------------------------


def test_refused_change_records_only_the_refusal(world: World, owner: ServiceUserProgram, api: ApiClient) -> None:
    before = len(world.audit_events(organization_id=owner.organization.id))
    answer = api.ask(
        "POST", f"/organizations/{owner.organization.id}/managers", {"user_id": owner.id, "roles": ["IAM_OWNER"]}
    )
    check_api_error(answer, 422, "invalid")
    assert len(world.audit_events(organization_id=owner.organization.id)) == before


@pytest.mark.shows("7.10")
def test_errors_are_json_for_any_accept_header(api: ApiClient) -> None:
    answer = api.ask("GET", "/projects/nothing", Accept="text/html")
    assert json.loads(answer.body)["error"] == "not_found"
