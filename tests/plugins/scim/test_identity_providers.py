"""The request sequences that Microsoft Entra and Okta document for SCIM, rebuilt from their documentation:
"Develop a SCIM endpoint" (Entra) and "SCIM 2.0 protocol reference" (Okta)."""

import pytest

from tests.plugins.scim.scim_client import ENTERPRISE_SCHEMA, GROUP_SCHEMA, USER_SCHEMA, ScimClient, check_scim_error

# The exchange does not depend on the storage.
pytestmark = pytest.mark.storages("memory")


def test_entra_users(scim: ScimClient) -> None:
    assert scim.get("/Users?filter=userName+eq+%22Test_User%40contoso.example%22")["totalResults"] == 0
    created = scim.create_user(
        "Test_User@contoso.example",
        schemas=[USER_SCHEMA, ENTERPRISE_SCHEMA],
        externalId="0a21f0f2",
        active=True,
        emails=[{"primary": True, "type": "work", "value": "Test_User@contoso.example"}],
        meta={"resourceType": "User"},
        name={"formatted": "Test User", "familyName": "User", "givenName": "Test"},
        roles=[],
    )
    path = f"/Users/{created['id']}"
    assert scim.get(path)["name"]["formatted"] == "Test User"
    check_scim_error(scim.ask("GET", "/Users/5171a35d82074e068ce2"), 404)
    changed = scim.patch(
        path,
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "updated@contoso.example"},
        {"op": "Replace", "path": "name.familyName", "value": "Updated"},
        {"op": "Add", "path": 'phoneNumbers[type eq "mobile"].value', "value": "555 123"},
        {"op": "Add", "path": f"{ENTERPRISE_SCHEMA}:manager", "value": "00aa"},
        {"op": "Replace", "path": f"{ENTERPRISE_SCHEMA}:department", "value": "Sales"},
        {"op": "Add", "path": "unknownAttribute", "value": "ignored"},
    )
    assert [email["value"] for email in changed["emails"]] == ["updated@contoso.example"]
    assert changed["name"]["familyName"] == "Updated"
    assert changed["phoneNumbers"] == [{"type": "mobile", "value": "555 123"}]
    assert changed[ENTERPRISE_SCHEMA] == {"department": "Sales", "manager": {"value": "00aa"}}
    scim.patch(path, {"op": "Replace", "path": "userName", "value": "5b50642d@contoso.example"})
    assert scim.patch(path, {"op": "Replace", "path": "active", "value": "False"})["active"] is False
    assert scim.find("Users", 'externalId eq "0a21f0f2"', excludedAttributes="groups") == [created["id"]]
    assert scim.ask("DELETE", path).status_int == 204


def test_entra_groups(scim: ScimClient) -> None:
    user = scim.create_user("member@contoso.example")["id"]
    body = {"schemas": [GROUP_SCHEMA], "externalId": "8aa1a0c0", "displayName": "displayName"}
    created = scim.ask("POST", "/Groups", {**body, "meta": {"resourceType": "Group"}}).json
    path = f"/Groups/{created['id']}"
    assert "members" not in scim.get(f"{path}?excludedAttributes=members")
    by_name = 'displayName eq "displayName"'
    assert scim.find("Groups", by_name, excludedAttributes="members") == [created["id"]]
    scim.patch(path, {"op": "Replace", "path": "displayName", "value": "1879db59"})
    members = [{"$ref": None, "value": user}]
    assert len(scim.patch(path, {"op": "Add", "path": "members", "value": members})["members"]) == 1
    assert "members" not in scim.patch(path, {"op": "Remove", "path": "members", "value": members})
    assert scim.ask("DELETE", path).status_int == 204


def test_okta_users(scim: ScimClient) -> None:
    assert (
        scim.get("/Users?filter=userName%20eq%20%22test.user%40okta.local%22&startIndex=1&count=100")["totalResults"]
        == 0
    )
    created = scim.create_user(
        "test.user@okta.local",
        name={"givenName": "Test", "familyName": "User"},
        emails=[{"primary": True, "value": "test.user@okta.local", "type": "work"}],
        displayName="Test User",
        locale="en-US",
        externalId="00ujl29u0le5T6Aj10h7",
        groups=[],
        password="1mz050nq",
        active=True,
    )
    path = f"/Users/{created['id']}"
    updated = scim.put(path, {**created, "name": {"givenName": "Another", "middleName": "", "familyName": "User"}})
    assert (updated["name"], updated["locale"]) == ({"givenName": "Another", "familyName": "User"}, "en-US")
    assert scim.patch(path, {"op": "replace", "value": {"active": False}})["active"] is False
    assert scim.patch(path, {"op": "replace", "value": {"active": True}})["active"] is True
    assert [item["id"] for item in scim.get("/Users?startIndex=1&count=100")["Resources"]] == [created["id"]]


def test_okta_groups(scim: ScimClient) -> None:
    first, second = (scim.create_user(f"{name}@okta.local")["id"] for name in ("first", "second"))
    assert scim.get("/Groups?startIndex=1&count=100")["totalResults"] == 0
    body = {"schemas": [GROUP_SCHEMA], "displayName": "Test SCIMv2", "members": []}
    path = f"/Groups/{scim.ask('POST', '/Groups', body).json['id']}"
    id = path.rpartition("/")[2]
    scim.patch(path, {"op": "replace", "value": {"id": id, "displayName": "Test SCIMv2.0"}})
    new = [{"value": first, "display": "first@okta.local"}, {"value": second, "display": "second@okta.local"}]
    assert len(scim.patch(path, {"op": "add", "path": "members", "value": new})["members"]) == 2
    [left] = scim.patch(path, {"op": "remove", "path": f'members[value eq "{first}"]'})["members"]
    assert left["value"] == second
    [left] = scim.patch(path, {"op": "replace", "path": "members", "value": new[:1]})["members"]
    assert left["value"] == first
    members = {"schemas": [GROUP_SCHEMA], "id": id, "displayName": "Test SCIMv2", "members": new}
    assert len(scim.put(path, members)["members"]) == 2
    assert scim.ask("DELETE", path).status_int == 204
