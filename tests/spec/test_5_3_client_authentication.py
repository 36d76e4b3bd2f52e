"""Service description §5.3: client authentication with client_id and client_secret in a Basic header.

Applications can be registered with another method: secret in the form, or none (decisions, authorization endpoint).
"""

from typing import Any
from urllib.parse import quote_plus

import pytest

from identity.crypto.secrets import new_id, token_digest
from identity.domain.applications import ClientSecret
from identity.testing.response_checks import (
    check_inactive_token,
    check_oauth_error,
    check_token_response,
    comparable_headers,
)
from identity.testing.service_test_client import Credentials, basic_auth_header
from identity.testing.world import World

ENDPOINTS = ["introspection_endpoint", "revocation_endpoint"]


def ask(world: World, header: str | None, endpoint: str = "introspection_endpoint", **parameters: str) -> Any:
    """The response to a client with this Authorization header."""
    headers = {} if header is None else {"Authorization": header}
    return world.client.post(world.client.discovery[endpoint], {"token": "unknown", **parameters}, headers)


def check_unauthenticated(answer: Any) -> None:
    """HTTP 401, error invalid_client, and the authentication scheme (RFC 6749 §5.2)."""
    check_oauth_error(answer, "invalid_client", status=401)
    assert answer.headers["WWW-Authenticate"].startswith('Basic realm="')


@pytest.fixture
def client(world: World) -> Credentials:
    """An application."""
    return world.make_application()


@pytest.mark.shows("4.4.3", "4.6.3", "5.3.4")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_client_secret_basic_is_accepted(world: World, client: Credentials, endpoint: str) -> None:
    assert ask(world, client.header, endpoint).status_int == 200


def test_generated_credentials_are_alphanumeric(world: World, client: Credentials) -> None:
    """Security 3.1 and 3.2: clients need not encode them."""
    for text in (client.client_id, client.secret):
        assert text.isascii()
        assert text.isalnum()
    assert len(client.secret) >= 43


def test_scheme_is_case_insensitive(world: World, client: Credentials) -> None:
    _, _, encoded = client.header.partition(" ")
    for scheme in ("Basic", "basic", "BASIC", "Basic  "):
        assert ask(world, f"{scheme} {encoded}").status_int == 200


def test_basic_credentials_can_be_form_encoded(world: World, client: Credentials) -> None:
    """RFC 6749 §2.3.1: encoding is accepted even if it is unnecessary."""

    def encode(text: str) -> str:
        return "".join(f"%{ord(character):02x}" for character in text)

    assert ask(world, basic_auth_header(f"{encode(client.client_id)}:{encode(client.secret)}")).status_int == 200


@pytest.mark.parametrize("secret", ["a:b", ":", "a b", "ü€", "100%", "%zz", 'quo"ted', "a&b=c"])
def test_any_secret_is_accepted_encoded_and_raw(world: World, client: Credentials, secret: str) -> None:
    """Split at the first colon; decisions: form-encoded or raw."""
    stored = ClientSecret(id=new_id(), digest=token_digest(secret), created_at=world.clock())
    world.operator_services.storage.applications.add_secret(client.client_id, stored)
    assert ask(world, basic_auth_header(f"{client.client_id}:{quote_plus(secret)}")).status_int == 200
    assert ask(world, basic_auth_header(f"{client.client_id}:{secret}")).status_int == 200
    assert ask(world, basic_auth_header(f"{client.client_id}:{secret}x")).status_int == 401


def wrong(client: Credentials) -> tuple[str | None, ...]:
    """Headers that authenticate no client: wrong format, wrong encoding, wrong secret."""
    good, name, secret = client.header.removeprefix("Basic "), client.client_id, client.secret
    return (
        None, "", f"Digest {good}", good, "Basic", "Basic ", "Basic !!!!", f"Basic {good[:8]} {good[8:]}",
        f"Basic {good[:-1]}", basic_auth_header("a?>:ü~~~").replace("/", "_").replace("+", "-"),
        "Basic \xfc\xfc\xfc\xfc", f"{client.header}, {client.header}",
        *map(basic_auth_header, (
            name, ":", f"{name}:", f":{secret}", f"{name}:wrong", f"{name}:{secret[:-1]}", f"{name}:{secret}x",
            f"{name}:{secret.swapcase()}", f"nobody:{secret}", f"{name.upper()}:{secret}x", f"{secret}:{name}",
            b"\xff\xfe:\xff", f"{name}:%ff", f"{name}\0:{secret}", f"{name}:%00", f"{name}:{secret}\n", "a" * 20000,
        )),
    )  # fmt: skip


@pytest.mark.shows("4.4.7", "7.6")
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_malformed_authorization_header_is_401(world: World, client: Credentials, endpoint: str) -> None:
    """Security 3.1."""
    for header in wrong(client):
        check_unauthenticated(ask(world, header, endpoint))


def test_unknown_client_looks_like_wrong_secret(world: World, client: Credentials) -> None:
    answers = [
        ask(world, basic_auth_header(f"{client.client_id}:wrong")),
        ask(world, basic_auth_header("nobody:wrong")),
        ask(world, basic_auth_header("rubbish")),
    ]
    assert len({answer.body for answer in answers}) == 1
    assert comparable_headers(answers[0]) == comparable_headers(answers[1]) == comparable_headers(answers[2])


def test_service_user_key_is_no_client_secret(world: World) -> None:
    """A service user with a secret can revoke its tokens, but only applications can introspect."""
    robot = world.make_service_user_program()
    secret = world.make_service_user_secret(robot)
    for endpoint in ENDPOINTS:
        check_unauthenticated(ask(world, basic_auth_header(f"{robot.id}:"), endpoint))
        check_unauthenticated(ask(world, basic_auth_header(f"{robot.id}:{robot.key_id}"), endpoint))
        check_unauthenticated(ask(world, basic_auth_header(f"{robot.id}:{secret.secret}x"), endpoint))
    check_unauthenticated(ask(world, secret.header))
    assert ask(world, secret.header, "revocation_endpoint").status_int == 200


def test_secret_of_other_client_is_refused(world: World, client: Credentials) -> None:
    credentials = world.make_application()
    check_unauthenticated(ask(world, basic_auth_header(f"{client.client_id}:{credentials.secret}")))


def test_repeated_client_id_must_match(world: World, client: Credentials) -> None:
    """Security 3.3."""
    check_inactive_token(ask(world, client.header, client_id=client.client_id))
    check_oauth_error(ask(world, client.header, client_id="another"), "invalid_request")


def test_several_authentication_methods_are_refused(world: World, client: Credentials) -> None:
    """RFC 6749 §2.3."""
    for name in ("client_secret", "client_assertion"):
        check_oauth_error(ask(world, client.header, **{name: client.secret}), "invalid_request")


# --- other methods ----------------------------------------------------------------------------------------------------


@pytest.fixture
def posting(world: World) -> Credentials:
    """An application that sends its secret in the form."""
    return world.make_application(authentication_method="client_secret_post")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_client_secret_post_is_accepted(world: World, posting: Credentials, endpoint: str) -> None:
    """RFC 6749 §2.3.1, for applications that are registered with it."""
    answer = ask(world, None, endpoint, client_id=posting.client_id, client_secret=posting.secret)
    assert answer.status_int == 200


def test_form_failures_equal_header_failures(world: World, posting: Credentials) -> None:
    credentials = world.make_application(authentication_method="client_secret_post")
    in_header = ask(world, basic_auth_header("nobody:wrong"))
    wrong_secrets = ("wrong", posting.secret[:-1], posting.secret.swapcase(), credentials.secret)
    for form in (
        *({"client_id": posting.client_id, "client_secret": secret} for secret in wrong_secrets),
        {"client_id": "nobody", "client_secret": posting.secret},
        {"client_secret": posting.secret},
    ):
        answer = ask(world, None, **form)
        check_unauthenticated(answer)
        assert (answer.body, comparable_headers(answer)) == (in_header.body, comparable_headers(in_header))


def test_public_client_sends_client_id(world: World) -> None:
    """It needs no authentication: it can revoke tokens, but not introspect them (RFC 7662 §2.1)."""
    client = world.make_public_application()
    assert ask(world, None, "revocation_endpoint", client_id=client).status_int == 200
    check_unauthenticated(ask(world, None, client_id=client))


def test_application_must_use_registered_method(world: World, client: Credentials, posting: Credentials) -> None:
    """A client id alone does not authenticate a confidential client."""
    public = world.make_public_application()
    for endpoint in ENDPOINTS:
        check_unauthenticated(ask(world, posting.header, endpoint))
        check_unauthenticated(ask(world, basic_auth_header(f"{public}:"), endpoint))
        check_unauthenticated(ask(world, basic_auth_header(f"{public}:secret"), endpoint))
        for form in (
            {"client_id": client.client_id, "client_secret": client.secret},
            {"client_id": public, "client_secret": "secret"},
            {"client_id": client.client_id},
            {"client_id": posting.client_id},
            {"client_id": "nobody"},
        ):
            check_unauthenticated(ask(world, None, endpoint, **form))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_authentication_methods_cannot_be_mixed(
    world: World, client: Credentials, posting: Credentials, endpoint: str
) -> None:
    """Security 3.3: whichever of them is correct."""
    in_form = {"client_id": posting.client_id, "client_secret": posting.secret}
    for header in (client.header, posting.header, basic_auth_header("nobody:wrong"), "Basic"):
        check_oauth_error(ask(world, header, endpoint, **in_form), "invalid_request")
    for assertion in ("x", world.make_service_user_program().assertion()):
        check_oauth_error(ask(world, client.header, endpoint, client_assertion=assertion), "invalid_request")
        check_oauth_error(ask(world, None, endpoint, **in_form, client_assertion=assertion), "invalid_request")


def test_client_id_beside_other_header_is_refused(world: World) -> None:
    """The client sent the header deliberately, so it is not ignored."""
    for header in ("Bearer token", "Digest x", "Basi", "x"):
        client = world.make_public_application()
        check_unauthenticated(ask(world, header, "revocation_endpoint", client_id=client))


def test_client_assertion_is_not_supported(world: World) -> None:
    """Decisions: basic, post, none."""
    client = world.make_public_application()
    check_unauthenticated(ask(world, None, "revocation_endpoint", client_id=client, client_assertion="x"))


@pytest.mark.shows("5.3.3")
def test_service_user_assertion_needs_no_client_authentication(world: World) -> None:
    """Decisions: a client_id beside the assertion is ignored."""
    robot = world.make_service_user_program()
    for client_id in (
        "anything",
        "\u2603",
        robot.id,
        world.make_public_application(),
        world.make_application().client_id,
    ):
        check_token_response(world.client.exchange_assertion(robot.assertion(), client_id=client_id))


def test_discovery_lists_authentication_methods(world: World) -> None:
    methods = ["client_secret_basic", "client_secret_post", "private_key_jwt", "none"]
    assert world.client.discovery["token_endpoint_auth_methods_supported"] == methods
    assert world.client.discovery["revocation_endpoint_auth_methods_supported"] == methods
    assert world.client.discovery["introspection_endpoint_auth_methods_supported"] == methods[:3]


# --- refused with every method ----------------------------------------------------------------------------------------


def test_credentials_in_query_are_refused(world: World, client: Credentials) -> None:
    """Security 3.3."""
    address = world.client.discovery["introspection_endpoint"]
    query = f"client_id={client.client_id}&client_secret={client.secret}"
    check_oauth_error(world.client.post(f"{address}?{query}", {"token": "x"}), "invalid_request")


def test_token_endpoint_refuses_secrets_in_query(world: World) -> None:
    """Security 3.3: even with correct credentials in the header."""
    for name in ("code", "refresh_token", "client_secret", "code_verifier", "token"):
        client = world.make_web_application()
        address = f"{world.client.discovery['token_endpoint']}?{name}=x"
        form = {"grant_type": "authorization_code", **world.make_code(client).form()}
        check_oauth_error(world.client.post(address, form, {"Authorization": client.header}), "invalid_request")


def test_refused_client_is_audited_once_a_minute(isolated_world: World) -> None:
    """Security 9.2; decisions, tokens."""
    isolated_world.make_application()

    def events() -> int:
        return len(isolated_world.audit_events(event="authentication.refused"))

    for _ in range(3):
        ask(isolated_world, basic_auth_header("nobody:wrong"))
    assert events() == 1
    isolated_world.clock.advance(60)
    ask(isolated_world, basic_auth_header("nobody:wrong"))
    assert events() == 2
    ask(isolated_world, basic_auth_header("rubbish"))
    assert events() == 3
