"""The scope …:user:metadata: attributes that an organization releases in tokens."""

from typing import Any

import pytest

from identity.domain.organizations import Organization
from identity.domain.users import HumanUser
from identity.services.access_control import Principal
from identity.services.commands.attributes import ChangeAttribute
from identity.services.lookup import Lookup
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.service_test_client import Credentials
from identity.testing.world import BrowserSession, World
from tests.plugins.management.api_fixture_data import ApiClient

METADATA = "urn:service:iam:user:metadata"


@pytest.fixture
def organization(world: World) -> Organization:
    organization = world.make_organization()
    world.make_attribute(organization, "department", in_tokens=True)
    world.make_attribute(organization, "level", type="number", in_tokens=True, claim="https://acme.example/level")
    world.make_attribute(organization, "salary", type="number")
    world.make_attribute(organization, "remote", type="boolean", in_tokens=True)
    return organization


@pytest.fixture
def person(world: World, organization: Organization) -> HumanUser:
    return world.set_attributes(world.make_human_user(organization), department="Röntgen 株", level=3.5, salary=1)


@pytest.fixture
def session(world: World, person: HumanUser) -> BrowserSession:
    return world.make_browser_session(person)


EXPECTED = {METADATA: {"department": "Röntgen 株", "level": 3.5}, "https://acme.example/level": 3.5}


def released(claims: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in claims.items() if name in EXPECTED}


def test_attributes_in_tokens_are_released_with_the_scope(
    world: World, client: Credentials, session: BrowserSession
) -> None:
    """In userinfo and introspection; not in an ID token that an access token comes with. Values of other attributes
    are in neither."""
    members = world.obtain_tokens(client, session, scope=f"openid {METADATA}")
    assert members["scope"] == f"openid {METADATA}"
    for answer in (
        world.client.fetch_userinfo(members["access_token"]),
        world.client.introspect(members["access_token"], client),
    ):
        assert released(answer.json) == EXPECTED
        assert "salary" not in answer.text
    assert released(decode_jwt_unverified(members["id_token"])[1]) == {}


def test_application_can_have_attributes_in_id_token(world: World, session: BrowserSession) -> None:
    client = world.make_web_application(id_token_userinfo_assertion=True)
    members = world.obtain_tokens(client, session, scope=f"openid {METADATA}")
    assert released(decode_jwt_unverified(members["id_token"])[1]) == EXPECTED


def test_attributes_need_the_scope(world: World, client: Credentials, session: BrowserSession) -> None:
    members = world.obtain_tokens(client, session, scope="openid profile email")
    claims = world.client.fetch_userinfo(members["access_token"]).json
    assert released(claims) == {}


def test_attributes_are_not_read_without_the_scope(
    world: World, client: Credentials, session: BrowserSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No statement is added to requests that do not need it."""
    scopes: list[str] = []
    read = Lookup.list_token_attributes
    monkeypatch.setattr(Lookup, "list_token_attributes", lambda *arguments: scopes.append("") or read(*arguments))
    members = world.obtain_tokens(client, session, scope="openid profile urn:service:iam:user:resourceowner")
    world.client.fetch_userinfo(members["access_token"])
    world.client.introspect(members["access_token"], client)
    assert scopes == []
    members = world.obtain_tokens(client, session, scope=f"openid {METADATA}")
    world.client.fetch_userinfo(members["access_token"])
    assert scopes


def test_preview_names_the_scope_of_each_attribute(world: World, person: HumanUser, organization: Organization) -> None:
    manager = world.make_service_user_program(organization)
    world.assign_manager_role(manager, "ORG_OWNER")
    client = world.make_web_application(world.make_project(organization).id)
    query = f"user_id={person.id}&application_id={client.client_id}&scope=openid%20{METADATA}"
    preview = ApiClient.for_user(manager).get(f"/organizations/{organization.id}/token-preview?{query}")
    carried = [item for grant in preview["ways"] for item in grant["carried"]]
    [userinfo, *_] = [item["claims"] for item in carried if item["carrier"] == "userinfo"]
    reasons = {claim["name"]: claim["why"] for claim in userinfo}
    assert reasons[METADATA] == reasons["https://acme.example/level"] == f"scope {METADATA}"


def test_own_claim_is_not_released_by_the_claims_parameter(
    world: World, client: Credentials, session: BrowserSession
) -> None:
    requested = '{"userinfo": {"https://acme.example/level": {"essential": true}, "' + METADATA + '": null}}'
    code = world.make_code(client, session, scope="openid", claims=requested)
    members = world.redeem(code, client).json
    assert released(world.client.fetch_userinfo(members["access_token"]).json) == {}


def test_new_value_is_in_the_next_answer(
    world: World, client: Credentials, session: BrowserSession, person: HumanUser
) -> None:
    token = world.obtain_tokens(client, session, scope=f"openid {METADATA}")["access_token"]
    world.set_attributes(person, department=None, level=4)
    assert released(world.client.fetch_userinfo(token).json) == {
        METADATA: {"level": 4},
        "https://acme.example/level": 4,
    }


def test_deleted_and_withheld_attributes_leave_tokens(
    world: World, client: Credentials, session: BrowserSession, organization: Organization
) -> None:
    token = world.obtain_tokens(client, session, scope=f"openid {METADATA}")["access_token"]
    with world.transaction_services() as services:
        definitions = {item.key: item for item in services.attributes.list_definitions(organization.id)}
        services.attributes.remove(definitions["department"].id, principal=Principal.OPERATOR)
        withheld = ChangeAttribute.build(in_tokens=False, claim="")
        services.attributes.change(definitions["level"].id, withheld, principal=Principal.OPERATOR)
    assert METADATA not in world.client.fetch_userinfo(token).json


def test_attributes_beyond_the_limit_are_left_out(
    world: World, client: Credentials, organization: Organization
) -> None:
    """Nobody is kept from signing in by long values."""
    for number in range(10):
        world.make_attribute(organization, f"long_{number}", in_tokens=True)
    person = world.make_human_user(organization)
    world.set_attributes(person, department="Sales", **{f"long_{number}": "株" * 300 for number in range(10)})
    members = world.obtain_tokens(client, world.make_browser_session(person), scope=f"openid {METADATA}")
    claims = world.client.fetch_userinfo(members["access_token"]).json[METADATA]
    assert claims["department"] == "Sales"
    assert list(claims) == ["department", "long_0", "long_1"]


@pytest.mark.storages("memory")  # a setting
def test_scope_is_known_in_every_namespace(make_world: WorldFactory) -> None:
    world = make_world(**{"identity.urn_namespaces": "urn:service:iam urn:zitadel:iam"})
    organization = world.make_organization()
    world.make_attribute(organization, "department", in_tokens=True)
    person = world.set_attributes(world.make_human_user(organization), department="Sales")
    client = world.make_web_application()
    scope = "openid urn:zitadel:iam:user:metadata"
    members = world.obtain_tokens(client, world.make_browser_session(person), scope=scope)
    claims = world.client.fetch_userinfo(members["access_token"]).json
    assert claims["urn:zitadel:iam:user:metadata"] == {"department": "Sales"}
    assert METADATA not in claims


@pytest.mark.parametrize("scope", [":user:metadata", f"{METADATA}:x", "urn:other:iam:user:metadata"])
def test_other_shapes_of_the_scope_are_dropped(
    world: World, client: Credentials, session: BrowserSession, scope: str
) -> None:
    assert world.obtain_tokens(client, session, scope=f"openid {scope}")["scope"] == "openid"


def test_service_users_have_no_attributes(world: World, organization: Organization) -> None:
    robot = world.make_service_user_program(organization)
    claims = world.client.fetch_userinfo(robot.access_token(f"openid {METADATA}")).json
    assert METADATA not in claims
