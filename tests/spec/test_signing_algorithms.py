"""Several signing algorithms: one active key each; applications and service users choose by which they are signed."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from joserfc import jwk, jwt

from identity.domain.errors import Invalid
from identity.domain.permissions import Resource
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.domain.users import TokenFormat
from identity.services.commands.applications import ChangeApplication
from identity.services.commands.service_users import ChangeServiceUser
from identity.services.signing_keys import NoSigningKey
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty
from identity.testing.response_checks import check_token_response
from identity.testing.world import ServiceUserProgram, World
from tests.plugins.management.api_fixture_data import ApiClient

pytestmark = [
    pytest.mark.storages("memory"),
    pytest.mark.filterwarnings("ignore:EdDSA is deprecated"),
]

#: A JWKS max-age and a minute.
ANNOUNCEMENT = 360
#: The longest lifetime of any token, and the clock skew.
PUBLISHED_AFTER = 12 * 3600 + 30
ALL = "RS256 PS256 ES256 EdDSA"
HASHES = {"RS256": hashlib.sha256, "PS256": hashlib.sha256, "ES256": hashlib.sha256, "EdDSA": hashlib.sha512}


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    return switched_on(make_world(**{"identity.signing_algorithms": ALL}))


def switched_on(world: World) -> World:
    """The world after the announcement of the first keys."""
    world.identity.background_jobs.rotate_signing_key_if_due()
    world.clock.advance(ANNOUNCEMENT)
    return world


def published(world: World) -> list[str]:
    return [key["alg"] for key in world.client.fetch_jwks().json["keys"]]


def verified(world: World, text: str, algorithm: str) -> Mapping[str, Any]:
    """The claims, verified with the published key whose algorithm the header names."""
    keys = jwk.KeySet.import_key_set(world.client.fetch_jwks().json)
    token = jwt.decode(text, keys, algorithms=[algorithm])
    assert token.header["alg"] == algorithm
    return token.claims


def half_hash(text: str, algorithm: str) -> str:
    digest = HASHES[algorithm](text.encode()).digest()
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()


def choose(robot: ServiceUserProgram, algorithm: str | None) -> None:
    command = ChangeServiceUser.decode({"id_token_signed_response_alg": algorithm, "access_token_type": "jwt"})
    robot.world.operator_services.service_users.change(robot.id, command)


def token_algorithm(robot: ServiceUserProgram) -> str:
    text = check_token_response(robot.request_token())["id_token"]
    keys = jwk.KeySet.import_key_set(robot.world.client.fetch_jwks().json)
    return str(jwt.decode(text, keys, algorithms=ALL.split()).header["alg"])


@contextmanager
def restarted(world: World, algorithms: str) -> Iterator[World]:
    """The same service after a change of the setting."""
    settings = {**world.settings, "identity.signing_algorithms": algorithms}
    other = World(settings, clock=world.clock, key_pool=world.key_pool)
    try:
        yield other
    finally:
        other.close()


def program_of(robot: ServiceUserProgram, world: World) -> ServiceUserProgram:
    return ServiceUserProgram(world, robot.user, robot.organization, robot.key_id, robot.key)


def test_each_algorithm_has_one_key(world: World) -> None:
    assert sorted(published(world)) == sorted(ALL.split())
    discovery = world.client.discovery
    for member in ("id_token_signing_alg_values_supported", "userinfo_signing_alg_values_supported"):
        assert discovery[member] == ALL.split()


@pytest.mark.parametrize("algorithm", ALL.split())
def test_application_gets_tokens_by_its_algorithm(world: World, algorithm: str) -> None:
    party = RelyingParty.register(
        world,
        id_token_signed_response_alg=algorithm,
        userinfo_signed_response_alg=algorithm,
        access_token_type=TokenFormat.JWT,
        backchannel_logout_uri="https://app.example/logout",
    )
    browser = Browser(world)
    browser.start_session(world.make_human_user())
    authorization = party.open_request(browser)
    [code] = [value for name, value in party.read_response(browser.page, authorization, "query") if name == "code"]
    members = check_token_response(party.redeem(code, authorization))
    id_token = verified(world, members["id_token"], algorithm)
    assert id_token["at_hash"] == half_hash(members["access_token"], algorithm)
    assert verified(world, members["access_token"], algorithm)["sub"] == id_token["sub"]
    answer = world.client.fetch_userinfo(members["access_token"])
    assert answer.content_type == "application/jwt"
    claims = verified(world, answer.text, algorithm)
    assert (claims["iss"], claims["aud"], claims["sub"]) == (world.issuer, party.client_id, id_token["sub"])
    about = {"client_id": party.client_id, "sub": id_token["sub"], "sid": id_token["sid"]}
    with world.read_only_services() as services:
        delivery = world.identity.process_state.deliveries["back-channel logout"]
        message = json.loads(delivery.prepare(json.dumps(about).encode(), services) or b"{}")
    assert verified(world, message["logout_token"], algorithm)["sid"] == id_token["sid"]
    hint = {"id_token_hint": members["id_token"], "prompt": "none"}
    again = party.open_request(browser, **hint)
    assert "code" in dict(party.read_response(browser.page, again, "query"))


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA"])
def test_service_user_gets_tokens_by_its_algorithm(world: World, algorithm: str) -> None:
    robot = world.make_service_user_program()
    assert token_algorithm(robot) == "RS256"
    choose(robot, algorithm)
    members = check_token_response(robot.request_token())
    for name in ("id_token", "access_token"):
        assert verified(world, members[name], algorithm)["sub"] == robot.id
    assert world.client.fetch_userinfo(members["access_token"]).status_int == 200
    choose(robot, None)
    assert token_algorithm(robot) == "RS256"


def test_first_algorithm_is_the_default(make_world: WorldFactory) -> None:
    world = switched_on(make_world(**{"identity.signing_algorithms": "ES256 RS256"}))
    assert token_algorithm(world.make_service_user_program()) == "ES256"
    _, key = world.operator_services.signing_keys.current_signing_key(SignatureAlgorithm.RS256)
    assert key.algorithm == "RS256"


@pytest.mark.storages("sqlite")
def test_algorithm_that_is_switched_on_is_announced_before_it_signs(isolated_world: World) -> None:
    """Clients that chose it reject every other, so they can choose it only when its key is active."""
    robot = isolated_world.make_service_user_program()
    with restarted(isolated_world, "ES256 RS256") as world:
        robot = program_of(robot, world)
        world.identity.background_jobs.rotate_signing_key_if_due()
        assert sorted(published(world)) == ["ES256", "RS256"]
        assert token_algorithm(robot) == "RS256"
        # A node with the old setting, before its restart.
        isolated_world.identity.background_jobs.rotate_signing_key_if_due()
        assert not world.audit_events(event="signing_key.retired")
        with pytest.raises(Invalid) as refusal:
            choose(robot, "ES256")
        assert list(refusal.value.fields) == ["id_token_signed_response_alg"]
        world.clock.advance(ANNOUNCEMENT)
        world.identity.background_jobs.rotate_signing_key_if_due()
        assert sorted(published(world)) == ["ES256", "RS256"]
        assert token_algorithm(robot) == "ES256"
        choose(robot, "ES256")
        choose(robot, "RS256")
        assert token_algorithm(robot) == "RS256"


@pytest.mark.storages("sqlite")
def test_algorithm_that_is_switched_off_retires(isolated_world: World) -> None:
    """Its key stays published until its last token has ended. Clients that chose it get no token by another one."""
    robot = isolated_world.make_service_user_program()
    with restarted(isolated_world, "RS256 ES256") as world:
        switched_on(world)
        world.clock.advance(3600)
        choose(program_of(robot, world), "ES256")
        party = RelyingParty.register(world, userinfo_signed_response_alg="ES256")
        assert "signing algorithms" not in world.identity.system_checks.failures()
        token = check_token_response(program_of(robot, world).request_token())["access_token"]
    with restarted(isolated_world, "RS256") as world:
        world.identity.background_jobs.rotate_signing_key_if_due()
        assert sorted(published(world)) == ["ES256", "RS256"]
        assert world.client.fetch_userinfo(token).status_int == 200
        problem = world.identity.system_checks.failures()["signing algorithms"]
        assert robot.id in problem
        assert party.client_id in problem
        assert program_of(robot, world).request_token().status_int == 503
        [event] = world.audit_events(event="signing_key.retired")
        assert event.detail["algorithm"] == "ES256"
        world.clock.advance(PUBLISHED_AFTER)
        assert published(world) == ["RS256"]
    with restarted(isolated_world, "RS256 ES256") as world:
        switched_on(world)
        assert token_algorithm(program_of(robot, world)) == "ES256"


def test_algorithms_rotate_independently(world: World) -> None:
    keys = world.operator_services.signing_keys
    keys.rotate(SignatureAlgorithm.ES256)
    assert sorted(published(world)) == sorted([*ALL.split(), "ES256"])
    states = [(state.key.algorithm, str(state.state)) for state in keys.list_key_states()]
    assert sorted(states) == sorted([*((name, "active") for name in ALL.split()), ("ES256", "waiting")])


def test_withdrawal_replaces_only_the_key_of_its_algorithm(world: World) -> None:
    keys = world.operator_services.signing_keys
    robot = world.make_service_user_program()
    choose(robot, "ES256")
    token = check_token_response(robot.request_token())["access_token"]
    [elliptic] = [state.key for state in keys.list_key_states() if state.key.algorithm == "ES256"]
    impact = keys.withdrawal_impact(elliptic.id)
    assert (impact.live_tokens, impact.is_exact) == (1, True)
    [new] = keys.withdraw([elliptic.id])
    assert new.algorithm == "ES256"
    assert sorted(published(world)) == sorted(ALL.split())
    assert world.client.fetch_userinfo(token).status_int == 401
    assert token_algorithm(robot) == "ES256"


def test_console_and_api_choose_the_algorithm(world: World) -> None:
    owner = world.make_human_user()
    world.assign_manager_role(owner, "IAM_OWNER", resource=Resource.INSTANCE)
    browser = Browser(world)
    browser.start_session(owner)
    robot = world.make_service_user_program()
    browser.open(f"/console/service-users/{robot.id}/edit")
    browser.submit({"id_token_signed_response_alg": "ES256"}, form="page-form")
    assert token_algorithm(robot) == "ES256"
    browser.open(f"/console/service-users/{robot.id}/edit")
    browser.submit({"id_token_signed_response_alg": ""}, form="page-form")
    assert token_algorithm(robot) == "RS256"
    browser.open("/console/instance/signing-keys/rotate")
    browser.submit({"algorithm": "EdDSA"}, form="page-form")
    assert sorted(published(world)) == sorted([*ALL.split(), "EdDSA"])
    manager = world.make_manager_program("IAM_OWNER", resource=Resource.INSTANCE)
    api = ApiClient(world, manager.management_token())
    assert api.post("/instance/signing-keys/rotate", {"algorithm": "PS256"}, status=200)["algorithm"] == "PS256"
    api.patch(f"/service-users/{robot.id}", {"id_token_signed_response_alg": "PS256"})
    assert token_algorithm(robot) == "PS256"
    api.patch(f"/service-users/{robot.id}", {"id_token_signed_response_alg": None})
    assert token_algorithm(robot) == "RS256"


def test_algorithm_that_the_service_lacks_is_refused(make_world: WorldFactory) -> None:
    world = make_world()
    party = RelyingParty.register(world)
    for values in ({"id_token_signed_response_alg": "ES256"}, {"userinfo_signed_response_alg": "EdDSA"}):
        with pytest.raises(Invalid) as refusal:
            world.operator_services.applications.change(party.client_id, ChangeApplication.decode(values))
        assert list(refusal.value.fields) == list(values)
    with pytest.raises(Invalid):
        world.operator_services.signing_keys.rotate(SignatureAlgorithm.ES256)
    with pytest.raises(NoSigningKey):
        world.operator_services.signing_keys.current_signing_key(SignatureAlgorithm.ES256)


def test_signed_responses_have_algorithms_of_their_own(world: World) -> None:
    """JARM §3 and RFC 9701 §6; without one, that of the tokens."""
    for members, expected in (
        ({"id_token_signed_response_alg": "PS256"}, ("PS256", "PS256")),
        (
            {
                "authorization_signed_response_alg": "ES256",
                "introspection_signed_response_alg": "EdDSA",
            },
            ("ES256", "EdDSA"),
        ),
    ):
        party, browser = RelyingParty.register(world, **members), Browser(world)
        browser.start_session(world.make_human_user())
        sent = party.open_request(browser, response_mode="jwt")
        [(_, text)] = party.read_response(browser.page, sent, "query")
        assert verified(world, text, expected[0])["iss"] == world.issuer
        headers = {"Authorization": party.credentials.header, "Accept": "application/token-introspection+jwt"}
        answer = world.client.post(world.client.discovery["introspection_endpoint"], {"token": "unknown"}, headers)
        assert verified(world, answer.text, expected[1])["token_introspection"] == {"active": False}
