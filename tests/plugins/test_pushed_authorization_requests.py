"""Pushed authorization requests (RFC 9126)."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import pytest

from identity.testing.browser import Browser, set_password
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import RelyingParty, SentAuthorizationRequest
from identity.testing.response_checks import check_oauth_error, check_page
from identity.testing.world import World

pytestmark = pytest.mark.storages("memory", "sqlite")


def push(party: RelyingParty, parameters: Mapping[str, Any], **changes: str | None) -> Any:
    """The response to a pushed request; ``changes`` override parameters, None leaves one out."""
    form = {name: value for name, value in {**parameters, **changes}.items() if value is not None}
    headers = {} if party.secret is None else {"Authorization": party.credentials.header}
    return party.client.post(party.client.discovery["pushed_authorization_request_endpoint"], form, headers)


def pushed_url(party: RelyingParty, authorization: SentAuthorizationRequest, **more: str) -> str:
    """The URL that refers to the request, which is pushed now."""
    answer = push(party, authorization.parameters)
    assert answer.status_int == 201
    query = {"client_id": party.client_id, "request_uri": answer.json["request_uri"], **more}
    return f"{authorization.endpoint}?{urlencode(query)}"


def test_pushed_request_is_answered_like_one_in_the_address(browser: Browser, party: RelyingParty) -> None:
    """RFC 9126 §2.2 and §4."""
    authorization = party.new_request()
    answer = push(party, authorization.parameters)
    assert (answer.status_int, answer.headers["Cache-Control"]) == (201, "no-store")
    assert set(answer.json) == {"request_uri", "expires_in"}
    assert answer.json["request_uri"].startswith("urn:ietf:params:oauth:request_uri:")
    assert answer.json["expires_in"] == 60
    query = urlencode({"client_id": party.client_id, "request_uri": answer.json["request_uri"]})
    page = browser.open(f"{authorization.endpoint}?{query}", initiator=party.origin)
    party.obtain_tokens(page, authorization)


def test_parameters_beside_the_reference_are_ignored(browser: Browser, party: RelyingParty) -> None:
    authorization = party.new_request()
    beside = {"scope": "profile", "state": "other", "redirect_uri": "https://evil.example/", "prompt": "none"}
    page = browser.open(pushed_url(party, authorization, **beside), initiator=party.origin)
    party.obtain_tokens(page, authorization)


def test_request_uri_can_be_used_once(browser: Browser, party: RelyingParty) -> None:
    authorization = party.new_request()
    url = pushed_url(party, authorization)
    party.extract_code(browser.open(url, initiator=party.origin), authorization)
    page = check_page(browser.open(url, initiator=party.origin), 400)
    assert "request_uri is unknown, was used or has expired" in page.main.get_text()


def test_request_uri_expires(world: World, browser: Browser, party: RelyingParty) -> None:
    url = pushed_url(party, party.new_request())
    world.clock.advance(60)
    check_page(browser.open(url, initiator=party.origin), 400)


def test_another_clients_request_uri_is_refused_and_stays_usable(
    world: World, browser: Browser, party: RelyingParty
) -> None:
    authorization, other = party.new_request(), RelyingParty.register(world)
    url = pushed_url(party, authorization)
    check_page(browser.open(url.replace(party.client_id, other.client_id)), 400)
    party.obtain_tokens(browser.open(url, initiator=party.origin), authorization)


def test_pushed_request_is_validated_like_one_in_the_address(party: RelyingParty) -> None:
    """RFC 9126 §2.3: errors are those of the token endpoint."""
    right = party.new_request().parameters
    for changes, error in (
        ({"redirect_uri": "https://evil.example/"}, "invalid_request"),
        ({"redirect_uri": None}, "invalid_request"),
        ({"scope": "profile"}, "invalid_scope"),
        ({"response_type": "none"}, "unsupported_response_type"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"prompt": "none login"}, "invalid_request"),
        ({"request_uri": "urn:ietf:params:oauth:request_uri:x"}, "invalid_request"),
        ({"request": "a.b.c"}, "request_not_supported"),
    ):
        check_oauth_error(push(party, right, **changes), error)


def test_client_has_to_authenticate(world: World, party: RelyingParty) -> None:
    """RFC 9126 §2: as at the token endpoint."""
    parameters = party.new_request().parameters
    endpoint = world.client.discovery["pushed_authorization_request_endpoint"]
    check_oauth_error(world.client.post(endpoint, parameters), "invalid_client", status=401)
    check_oauth_error(push(RelyingParty.register(world), parameters), "invalid_request")
    service_user = world.make_service_user_secret(world.make_service_user_program())
    form = {**parameters, "client_id": service_user.client_id}
    answer = world.client.post(endpoint, form, {"Authorization": service_user.header})
    check_oauth_error(answer, "unauthorized_client")


def test_public_client_can_push(world: World, browser: Browser) -> None:
    party = RelyingParty.register(world, authentication_method="none")
    authorization = party.new_request()
    party.obtain_tokens(browser.open(pushed_url(party, authorization), initiator=party.origin), authorization)


def test_application_that_requires_pushed_requests_refuses_others(world: World, browser: Browser) -> None:
    """RFC 9126 §5."""
    party = RelyingParty.register(world, require_pushed_authorization_requests=True)
    party.expect_error_at_once(browser, "invalid_request")
    authorization = party.new_request()
    party.obtain_tokens(browser.open(pushed_url(party, authorization), initiator=party.origin), authorization)


def test_user_signs_in_after_a_pushed_request(world: World, party: RelyingParty) -> None:
    """The reference is used up by the first request; the pending sign-in goes on without it."""
    browser, authorization = Browser(world), party.new_request()
    browser.open(pushed_url(party, authorization), initiator=party.origin)
    party.obtain_tokens(browser.sign_in(set_password(world, world.make_human_user())), authorization)


def test_client_credentials_are_not_stored(world: World) -> None:
    """They belong to the pushed request, not to the authorization request that waits for its user."""
    party = RelyingParty.register(world, authentication_method="client_secret_post")
    form = {**party.new_request().parameters, "client_secret": party.secret}
    answer = world.client.post(world.client.discovery["pushed_authorization_request_endpoint"], form)
    query = urlencode({"client_id": party.client_id, "request_uri": answer.json["request_uri"]})
    browser = Browser(world)
    browser.open(f"{world.client.discovery['authorization_endpoint']}?{query}", initiator=party.origin)
    request_id = browser.path.split("/")[2]
    with world.transaction_services() as services:
        stored = services.storage.authorization_requests.find(request_id)
    assert stored is not None
    assert "state" in stored.parameters
    assert "client_secret" not in stored.parameters


def test_oversized_request_is_refused(party: RelyingParty) -> None:
    parameters = {**party.new_request().parameters, **{f"x{number}": "\x01" * 900 for number in range(60)}}
    check_oauth_error(push(party, parameters), "invalid_request", status=413)


@pytest.mark.storages("memory", "sqlite", "postgresql", "mariadb")
def test_one_of_a_hundred_concurrent_uses_succeeds(make_world: WorldFactory) -> None:
    world = make_world()
    party = RelyingParty.register(world)
    person, authorization = world.make_human_user(), party.new_request()
    url = pushed_url(party, authorization)

    def use(_: int) -> bool:
        browser = Browser(world)
        browser.start_session(person)
        return bool(browser.open(url, initiator=party.origin).status_int == 303)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(use, range(100))) == 1
