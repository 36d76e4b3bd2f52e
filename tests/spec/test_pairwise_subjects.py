"""Pairwise subject identifiers (OpenID Connect Core §8): applications neither learn ids of users nor share them."""

import json
from typing import Any

import pytest

from identity.crypto.jwt import unverified_claims
from identity.domain.applications import ApplicationOrigin
from identity.domain.errors import Invalid
from identity.domain.users import HumanUser
from identity.outbound_http import OutboundResponse
from identity.services.commands.applications import ChangeApplication
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_token_response
from identity.testing.service_test_client import TOKEN_EXCHANGE
from identity.testing.world import World
from tests.spec.test_token_exchange import ACCESS_TOKEN, ID_TOKEN, exchange, exchanged

pytestmark = pytest.mark.storages("memory")

LIST = "https://sector.example/uris.json"
GRANT_TYPES = ("authorization_code", "refresh_token", TOKEN_EXCHANGE)


@pytest.fixture
def person(world: World) -> HumanUser:
    return world.make_human_user()


@pytest.fixture
def browser(world: World, person: HumanUser) -> Browser:
    browser = Browser(world)
    browser.start_session(person)
    return browser


def register(world: World, host: str = "app.example", **members: Any) -> RelyingParty:
    return RelyingParty.register(world, redirect_uri=f"https://{host}/cb", **{"subject_type": "pairwise", **members})


def subject(party: RelyingParty, browser: Browser) -> str:
    return str(party.sign_in_silently(browser).claims["sub"])


def test_applications_of_one_sector_and_organization_share_identifiers(
    world: World, person: HumanUser, browser: Browser
) -> None:
    project = world.make_project()
    hosts = ("a.example", "a.example", "b.example")
    first, same, host = (register(world, name, project_id=project.id) for name in hosts)
    foreign = register(world, "a.example")
    found = [subject(party, browser) for party in (first, same, host, foreign)]
    assert found[0] == found[1] == subject(first, browser)
    assert len({*found, person.id}) == 4


def test_client_that_registered_itself_shares_no_identifiers_with_applications_of_the_organization(
    world: World, person: HumanUser
) -> None:
    project = world.make_project()
    managed, dynamic = (
        register(world, project_id=project.id, origin=origin)
        for origin in (ApplicationOrigin.MANAGER, ApplicationOrigin.REGISTRATION)
    )
    with world.read_only_services() as services:
        clients = [services.applications.find_client(party.client_id) for party in (managed, dynamic)]
        assert len({services.subject_identifiers.identify(person.id, client) for client in clients}) == 2


def test_no_output_contains_the_id_of_the_user(world: World, person: HumanUser, browser: Browser) -> None:
    party = register(
        world,
        access_token_type="jwt",
        id_token_userinfo_assertion=True,
        access_token_userinfo_assertion=True,
        assert_roles_in_id_token=True,
        grant_types=GRANT_TYPES,
    )
    scope = "openid profile email phone address offline_access urn:service:iam:org:projects:roles"
    tokens = party.sign_in_silently(browser, scope=scope)
    refreshed = check_token_response(party.refresh(tokens.refresh_token))
    exchanged = [
        check_token_response(exchange(world, party.credentials, token, kind=kind))
        for token, kind in ((tokens.access_token, ACCESS_TOKEN), (tokens.id_token, ID_TOKEN))
    ]
    outputs = [
        world.client.fetch_userinfo(tokens.access_token).json,
        world.client.introspect(tokens.access_token, party.credentials).json,
        *(
            unverified_claims(members[name])
            for members in (tokens.members, refreshed, *exchanged)
            for name in ("access_token", "id_token")
            if name in members
        ),
    ]
    assert {output["sub"] for output in outputs} == {tokens.claims["sub"]}
    assert person.id not in json.dumps(outputs)


def test_tokens_of_other_clients_are_introspected_with_its_identifier(world: World) -> None:
    organization = world.make_organization()
    project, person, browser = world.make_project(organization), world.make_human_user(organization), Browser(world)
    browser.start_session(person)
    party, public = (register(world, project_id=project.id, subject_type=kind) for kind in ("pairwise", "public"))
    tokens = public.sign_in_silently(browser)
    assert tokens.claims["sub"] == person.id
    answer = world.client.introspect(tokens.access_token, party.credentials).json
    assert answer["sub"] == subject(party, browser)


def test_actors_are_named_by_the_identifiers_of_the_application(world: World) -> None:
    """In tokens of other applications, and in those that it exchanges."""
    organization = world.make_organization()
    project = world.make_project(organization)
    public, pairwise = (
        world.make_web_application(project.id, grant_types=GRANT_TYPES, subject_type=kind)
        for kind in ("public", "pairwise")
    )
    people = [world.make_human_user(organization) for _ in range(2)]
    tokens = [world.obtain_tokens(public, world.make_browser_session(person))["access_token"] for person in people]
    actor = {"actor_token": tokens[1], "actor_token_type": ACCESS_TOKEN}
    delegated = exchanged(world, public, tokens[0], **actor)
    found = [
        world.client.introspect(token, pairwise).json
        for token in (delegated, exchanged(world, pairwise, delegated), exchanged(world, pairwise, tokens[0], **actor))
    ]
    assert len({(item["sub"], item["act"]["sub"]) for item in found}) == 1
    assert not any(person.id in json.dumps(found) for person in people)
    assert world.client.introspect(delegated, public).json["act"] == {"sub": people[1].id}


def test_hint_and_claims_name_the_user_by_the_identifier_of_the_application(
    world: World, person: HumanUser, browser: Browser
) -> None:
    party = register(world)
    tokens = party.sign_in_silently(browser)
    claims = [json.dumps({"id_token": {"sub": {"value": value}}}) for value in (tokens.claims["sub"], person.id)]
    right, wrong = {"id_token_hint": tokens.id_token, "claims": claims[0]}, {"claims": claims[1]}
    assert party.sign_in_silently(browser, prompt="none", **right).claims["sub"] == tokens.claims["sub"]
    party.expect_error_at_once(browser, "login_required", prompt="none", **wrong)
    other = Browser(world)
    other.start_session(world.make_human_user())
    party.expect_error_at_once(other, "login_required", prompt="none", **right)


def test_several_hosts_need_a_list_that_the_sector_publishes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    uris = ("https://app.example/cb", "https://other.example/cb")
    bodies = [json.dumps(uris[:1])]

    def send(method: str, url: str, **_: Any) -> Any:
        assert url == LIST
        return OutboundResponse(200, bodies[-1].encode(), "")

    monkeypatch.setattr(world.identity.process_state.documents.transport, "send", send)
    for members in ({}, {"sector_identifier_uri": LIST}):
        with pytest.raises(Invalid) as refusal:
            register(world, redirect_uris=uris, **members)
        assert set(refusal.value.fields) == {"sector_identifier_uri"}
    for wrong in ("{}", "[1]", "["):
        bodies.append(wrong)
        with pytest.raises(Invalid):
            register(world, redirect_uris=uris, sector_identifier_uri=LIST)
    bodies.append(json.dumps(uris))
    party = register(world, redirect_uris=uris, sector_identifier_uri=LIST)
    change = ChangeApplication.decode({"redirect_uris": [*uris, "https://third.example/"]})
    with pytest.raises(Invalid):
        world.operator_services.applications.change(party.client_id, change)


def test_application_that_manages_has_public_identifiers(world: World) -> None:
    with pytest.raises(Invalid) as refusal:
        register(world, may_manage=True)
    assert set(refusal.value.fields) == {"subject_type"}
