"""SCIM users are the people of the organization, with the rules of accounts."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from identity.domain.users import EmailVerifier, HumanUser
from identity.plugins.scim.users import UserCollection
from identity.services.access_control import Principal
from identity.services.commands.organizations import AddDomain
from identity.services.commands.users import ChangeHumanUser
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.plugins.account.test_data_export import download_export
from tests.plugins.scim.scim_client import ENTERPRISE_SCHEMA, USER_SCHEMA, ScimClient, check_scim_error
from tests.spec.test_erasure import tables_that_name

ADA = {
    "name": {"givenName": "Ada", "familyName": "Lovelace", "honorificPrefix": "Countess"},
    "emails": [{"value": "ada@mail.example", "type": "work", "primary": True}, {"value": "al@home.example"}],
    "externalId": "00u1",
    "title": "Analyst",
    "timezone": "Mars/Olympus",
    "phoneNumbers": [{"value": "+44 20 1234", "type": "work"}],
    ENTERPRISE_SCHEMA: {"department": "Engines", "manager": {"value": "42"}},
}


def stored(scim: ScimClient, id: str) -> HumanUser:
    with scim.world.read_only_services() as services:
        return services.users.get(id)


def change(scim: ScimClient, id: str, **members: object) -> None:
    with scim.world.transaction_services() as services:
        services.users.change(id, ChangeHumanUser.build(**members), principal=Principal.OPERATOR)


def test_user_is_stored_in_account_and_returned_as_sent(scim: ScimClient) -> None:
    created = scim.create_user("Ada.Lovelace@Mail.Example", **ADA)
    assert {name: created[name] for name in ADA} == ADA
    assert (created["userName"], created["active"]) == ("Ada.Lovelace@Mail.Example", True)
    assert scim.get(f"/Users/{created['id']}") == created
    user = stored(scim, created["id"])
    assert (user.user_name, user.profile.name) == ("ada.lovelace", "Ada Lovelace")
    assert (user.profile.email, user.profile.phone, user.profile.zoneinfo) == ("ada@mail.example", "+44 20 1234", "")
    assert not user.profile.email_verified
    events = scim.world.audit_events(object_id=user.id)
    assert [event.event for event in events] == ["user.created"]


def test_user_names_are_unique_and_derived_ones_numbered(scim: ScimClient) -> None:
    first = scim.create_user("ada@one.example", externalId="1")
    second = scim.create_user("ada@two.example", externalId="2")
    assert [stored(scim, user["id"]).user_name for user in (first, second)] == ["ada", "ada2"]
    for members in ({"userName": "ADA@one.example"}, {"userName": "other", "externalId": "1"}):
        answer = scim.ask("POST", "/Users", {"schemas": [USER_SCHEMA], **members})
        check_scim_error(answer, 409, "uniqueness")
    answer = scim.ask_patch(f"/Users/{second['id']}", {"op": "replace", "path": "userName", "value": "ada@one.example"})
    check_scim_error(answer, 409, "uniqueness")
    scim.patch(f"/Users/{first['id']}", {"op": "replace", "path": "userName", "value": "a/b c@one.example"})
    assert stored(scim, first["id"]).user_name == "a.b.c"
    assert scim.create_user("ada@one.example")["id"] != first["id"], "the former name is free"


def test_racing_creations_of_one_user_name_give_one_user(scim: ScimClient, monkeypatch: pytest.MonkeyPatch) -> None:
    # As if each had looked before the first one was committed, which some storages prevent.
    monkeypatch.setattr(UserCollection, "_refuse_taken_name", lambda *_: None)
    body = {"schemas": [USER_SCHEMA], "userName": "race@mail.example"}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: scim.ask("POST", "/Users", body).status_int, range(100)))
    assert Counter(answers) == {201: 1, 409: 99}
    assert len(scim.find("Users", 'userName eq "race@mail.example"')) == 1


def test_existing_account_is_found_by_its_login_name(scim: ScimClient) -> None:
    with scim.world.read_only_services() as services:
        organization = services.organizations.get(scim.organization_id)
    person = scim.world.make_human_user(organization)
    user_name = f"{person.user_name}@{organization.primary_domain}"
    assert scim.find("Users", f'userName eq "{user_name.upper()}"') == [person.id]
    answer = scim.ask("POST", "/Users", {"schemas": [USER_SCHEMA], "userName": user_name})
    check_scim_error(answer, 409, "uniqueness")
    scim.patch(f"/Users/{person.id}", {"op": "add", "path": "externalId", "value": "linked"})
    assert scim.find("Users", 'externalId eq "linked"') == [person.id]


def test_changes_of_the_person_appear_and_stay(scim: ScimClient) -> None:
    id = scim.create_user("ada", **ADA)["id"]
    change(scim, id, zoneinfo="Europe/London", email="new@mail.example", given_name="Augusta")
    found = scim.patch(f"/Users/{id}", {"op": "replace", "path": "title", "value": "Countess"})
    assert (found["timezone"], found["emails"][0]["value"]) == ("Europe/London", "new@mail.example")
    assert found["emails"][1:] == ADA["emails"][1:]
    assert (stored(scim, id).profile.given_name, found["title"]) == ("Augusta", "Countess")


def test_deactivated_user_cannot_sign_in(scim: ScimClient) -> None:
    id = scim.create_user("ada", active=False)["id"]
    assert not stored(scim, id).active
    assert scim.patch(f"/Users/{id}", {"op": "Replace", "path": "active", "value": "True"})["active"] is True
    assert scim.patch(f"/Users/{id}", {"op": "replace", "value": {"active": False}})["active"] is False
    check_scim_error(scim.ask_patch(f"/Users/{id}", {"op": "remove", "path": "active"}), 400, "mutability")


def test_passwords_are_never_set(scim: ScimClient) -> None:
    id = scim.create_user("ada", password="correct horse battery")["id"]
    with scim.world.read_only_services() as services:
        assert services.storage.users.find_password(id) is None
    for operation in (
        {"op": "replace", "path": "password", "value": "x"},
        {"op": "replace", "value": {"password": "x"}},
    ):
        check_scim_error(scim.ask_patch(f"/Users/{id}", operation), 400, "invalidValue")
    members = {"schemas": [USER_SCHEMA], "userName": "ada", "password": "x"}
    check_scim_error(scim.ask("PUT", f"/Users/{id}", members), 400, "invalidValue")


def test_stale_version_is_refused(scim: ScimClient) -> None:
    created = scim.create_user("ada")
    path, version = f"/Users/{created['id']}", created["meta"]["version"]
    title = {"op": "replace", "path": "title", "value": "Analyst"}
    assert scim.ask("GET", path, If_None_Match=version).status_int == 304
    changed = scim.ask_patch(path, title, If_Match=version)
    assert changed.status_int == 200
    assert changed.headers["ETag"] != version
    check_scim_error(scim.ask_patch(path, title, If_Match=version), 412)
    check_scim_error(scim.ask("DELETE", path, If_Match=version), 412)
    assert scim.ask("DELETE", path, If_Match=changed.headers["ETag"]).status_int == 204
    check_scim_error(scim.ask("GET", path), 404)


def test_users_with_more_rights_are_not_changed(scim: ScimClient) -> None:
    """Service description §14.4."""
    id = scim.create_user("ada")["id"]
    scim.world.assign_manager_role(stored(scim, id), "ORG_SETTINGS_MANAGER")
    before = stored(scim, id)
    for answer in (
        scim.ask_patch(f"/Users/{id}", {"op": "replace", "path": "active", "value": False}),
        scim.ask_patch(f"/Users/{id}", {"op": "replace", "path": "emails", "value": [{"value": "me@evil.example"}]}),
        scim.ask("PUT", f"/Users/{id}", {"schemas": [USER_SCHEMA], "userName": "eve"}),
        scim.ask("DELETE", f"/Users/{id}"),
    ):
        assert "beyond your own" in check_scim_error(answer, 403)
    assert stored(scim, id) == before


@pytest.mark.parametrize("verifies", [True, False])
def test_only_proven_domains_are_verified_and_only_if_set(make_world: WorldFactory, *, verifies: bool) -> None:
    world = make_world(**{"identity.plugin.scim.verify_emails": str(verifies).lower()})
    scim = ScimClient.for_program(world.make_manager_program("ORG_USER_PROVISIONER"))
    with world.transaction_services() as services:
        services.domains.add(scim.organization_id, AddDomain(domain="acme.example"))
        services.domains.assert_domain(scim.organization_id, "acme.example", principal=Principal.OPERATOR)
    ids = [
        scim.create_user(f"user{number}", emails=[{"value": address}])["id"]
        for number, address in enumerate(("ada@acme.example", "ADA@acme.example", "ada@other.example"))
    ]
    found = [stored(scim, id).email_verified_by for id in ids]
    assert found == [EmailVerifier.MANAGER if verifies else None, None, None]
    scim.patch(f"/Users/{ids[2]}", {"op": "replace", "path": "emails", "value": [{"value": "eve@acme.example"}]})
    assert stored(scim, ids[2]).profile.email_verified is verifies


@pytest.mark.storages("sqlite", "postgresql")  # memory has no tables
def test_records_are_exported_and_deleted_with_the_person(make_world: WorldFactory) -> None:
    world: World = make_world()
    scim = ScimClient.for_program(world.make_manager_program("ORG_USER_PROVISIONER"))
    id = scim.create_user("ada", **{**ADA, "title": "A title to find"})["id"]
    browser = Browser(world)
    browser.start_session(stored(scim, id))
    [record] = download_export(browser)["scim"]
    assert (record["title"], record[ENTERPRISE_SCHEMA]["department"]) == ("A title to find", "Engines")
    assert tables_that_name(world, "A title to find") == {"records"}
    assert scim.ask("DELETE", f"/Users/{id}").status_int == 204
    assert tables_that_name(world, "A title to find") == set()
    assert scim.create_user("ada", externalId="00u1")["id"] != id
