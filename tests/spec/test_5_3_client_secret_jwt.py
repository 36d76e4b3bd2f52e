"""Client authentication client_secret_jwt (OpenID Connect Core §9): assertions that are signed with the secret."""

from typing import Any

import pytest
from authlib.oauth2.rfc7523 import client_secret_jwt_sign
from joserfc.jwk import OctKey

from identity.domain.permissions import Resource
from identity.domain.records import CORE_NAMESPACE
from identity.services.commands.applications import ChangeApplication
from identity.testing.assembled_service import DEFAULT_PLUGINS
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import OMITTED, hs256, no_signature, sign_assertion
from identity.testing.response_checks import check_oauth_error
from identity.testing.service_test_client import Credentials
from identity.testing.world import World
from tests.spec.test_5_3_private_key_jwt import FAILED, TYPE, SigningClient, key_set

pytestmark = pytest.mark.storages("memory", "sqlite")


@pytest.fixture
def world(make_world: WorldFactory, storage_name: str) -> World:
    storage = "sql" if storage_name != "memory" else "memory"
    return make_world(**{"identity.plugins": f"{storage} {DEFAULT_PLUGINS} client_secret_jwt"})


def register(world: World, method: str = "client_secret_jwt") -> Credentials:
    return world.make_application(authentication_method=method, grant_types=frozenset({"client_credentials"}))


def assertion(world: World, client_id: str, secret: str, jti: str, **changed: Any) -> str:
    now, options = world.clock.seconds, {"header": {"alg": "HS256"}, "sign": hs256(secret.encode())}
    for name in ("header", "sign"):
        options[name] = changed.pop(name, options[name])
    claims = {"iss": client_id, "sub": client_id, "aud": world.issuer, "exp": now + 60, "iat": now, "jti": jti}
    return sign_assertion(claims | changed, world.key_pool.next(), key_id=OMITTED, **options)


def ask(world: World, text: str) -> Any:
    form = {"grant_type": "client_credentials", "client_assertion_type": TYPE, "client_assertion": text}
    return world.client.post(world.client.discovery["token_endpoint"], form)


def sealed_texts(world: World, client_id: str) -> list[bytes]:
    with world.read_only_services() as services:
        found = services.storage.records.list_for_owner(CORE_NAMESPACE, "client_secret", application_id=client_id)
    return [record.sealed for record in found]


def test_secret_signs_until_it_is_revoked(world: World) -> None:
    """Tokens that the application got with it end with it."""
    client = register(world)
    tokens = [ask(world, assertion(world, client.client_id, client.secret, "1")).json["access_token"]]
    _, second = world.operator_services.applications.add_secret(client.client_id)
    tokens.append(ask(world, assertion(world, client.client_id, second, "2")).json["access_token"])
    [first_secret, _] = world.operator_services.applications.list_secrets(client.client_id)
    world.operator_services.applications.remove_secret(client.client_id, first_secret.id)
    check_oauth_error(ask(world, assertion(world, client.client_id, client.secret, "3")), "invalid_client", status=401)
    with world.read_only_services() as services:
        live = [services.tokens.find_live_access_token(token) is not None for token in tokens]
    assert live == [False, True]
    assert ask(world, assertion(world, client.client_id, second, "4")).status_int == 200


def test_assertion_of_authlib_authenticates(world: World) -> None:
    client, endpoint = register(world), world.client.discovery["token_endpoint"]
    assert (
        ask(world, client_secret_jwt_sign(OctKey.import_key(client.secret), client.client_id, endpoint)).status_int
        == 200
    )


def test_assertion_obeys_the_rules_of_private_key_jwt(world: World) -> None:
    client = register(world)
    used = assertion(world, client.client_id, client.secret, "used")
    assert ask(world, used).status_int == 200
    for text in (
        used,
        assertion(world, client.client_id, client.secret, "1", aud="https://other.example"),
        assertion(world, client.client_id, client.secret, "2", exp=world.clock.seconds - 60),
        assertion(world, client.client_id, client.secret, "3", sub="other"),
    ):
        answer = ask(world, text)
        check_oauth_error(answer, "invalid_client", status=401)
        assert answer.json["error_description"] != FAILED


def test_other_signatures_are_refused_alike(world: World) -> None:
    """No key of one method counts for the other, and no digest for a secret."""
    client, basic = register(world), register(world, "client_secret_basic")
    signer = SigningClient(world, world.key_pool.next()).register()
    jwks, digest = key_set(("one", signer.key)), sealed_texts(world, client.client_id)[0]
    for text in (
        assertion(world, client.client_id, "wrong", "1"),
        assertion(world, client.client_id, "", "2"),
        assertion(world, "unknown", client.secret, "3"),
        assertion(world, basic.client_id, basic.secret, "4"),
        assertion(world, signer.client_id, jwks, "5"),
        assertion(world, client.client_id, client.secret, "6", sign=hs256(digest)),
        assertion(world, client.client_id, client.secret, "7", header={"alg": "HS512"}),
        assertion(world, client.client_id, client.secret, "8", header={"alg": "none"}, sign=no_signature),
        signer.assertion(iss=client.client_id, sub=client.client_id),
        "rubbish",
    ):
        answer = ask(world, text)
        check_oauth_error(answer, "invalid_client", status=401)
        assert answer.json["error_description"] == FAILED
    # Both methods work beside each other.
    assert signer.ask().status_int == 200
    answer = ask(world, assertion(world, client.client_id, client.secret, "9"))
    assert answer.status_int == 200
    form = {"grant_type": "client_credentials"}
    answer = world.client.post(world.client.discovery["token_endpoint"], form, {"Authorization": client.header})
    check_oauth_error(answer, "invalid_client", status=401)


def test_text_of_a_secret_is_stored_for_this_method_alone(world: World) -> None:
    """Sealed; secrets from before cannot sign, and the console says so."""
    basic, client = register(world, "client_secret_basic"), register(world)
    assert not sealed_texts(world, basic.client_id)
    [sealed] = sealed_texts(world, client.client_id)
    assert client.secret.encode() not in sealed
    for client_id, method in ((basic.client_id, "client_secret_jwt"), (client.client_id, "client_secret_basic")):
        command = ChangeApplication.decode({"authentication_method": method})
        world.operator_services.applications.change(client_id, command)
    assert not sealed_texts(world, client.client_id)
    assert ask(world, assertion(world, basic.client_id, basic.secret, "1")).status_int == 401
    manager = world.make_human_user()
    world.assign_manager_role(manager, "IAM_OWNER", resource=Resource.INSTANCE)
    headers = world.make_browser_session(manager).headers
    for client_id, is_warned in ((basic.client_id, True), (client.client_id, False)):
        page = world.client.get(f"{world.issuer}/console/applications/{client_id}/secrets", headers)
        assert ("cannot sign" in page.text) is is_warned
    world.operator_services.applications.remove(client.client_id)
    assert not sealed_texts(world, client.client_id)


def test_discovery_lists_the_algorithm_of_secrets_only_with_the_plugin(world: World, isolated_world: World) -> None:
    name = "token_endpoint_auth_signing_alg_values_supported"
    assert "HS256" in world.client.discovery[name]
    assert "HS256" not in isolated_world.client.discovery[name]
