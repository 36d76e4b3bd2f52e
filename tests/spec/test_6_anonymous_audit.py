"""Anonymous clients can neither write texts into the audit trail nor flood it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any
from urllib.parse import urlencode

import pytest

from identity.domain.audit import AuditEvent
from identity.provider.errors import InvalidScope
from identity.services.audit import MAX_ANONYMOUS_REFUSALS
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.jwt_assertions import sign_assertion
from identity.testing.service_test_client import Credentials
from identity.testing.world import CALLBACK_URI, CODE_CHALLENGE, CredentialsOrClientId, World

NUMBERS = count()
TIMES = 12
#: Maximum rows per kind of attempt and minute.
MOST_OF_ONE_KIND = 2


def random_text() -> str:
    """A new random text for each call."""
    return f"mallory{next(NUMBERS)}"


@pytest.fixture
def world(make_world: WorldFactory) -> Iterator[World]:
    """An isolated world, because anonymous events are counted for the whole service."""
    return make_world()


def authorize(world: World, client: Credentials | None = None, /, **parameters: str) -> Any:
    """An authorization request of a known or unknown client."""
    query = {
        "client_id": random_text() if client is None else client.client_id,
        "redirect_uri": CALLBACK_URI,
        "response_type": "code",
        "scope": "openid",
        "code_challenge": CODE_CHALLENGE,
        "code_challenge_method": "S256",
        **parameters,
    }
    return Browser(world).open(f"/oauth/v2/authorize?{urlencode(query)}")


def redeem(world: World, client: CredentialsOrClientId) -> Any:
    form = {"grant_type": "authorization_code", "code": random_text(), "redirect_uri": CALLBACK_URI}
    return world.post_token_request(client, form)


def ask_for(scope: str) -> Callable[[World, Credentials], object]:
    """A token request with a random additional scope."""
    return lambda world, client: authorize(world, client, scope=f"openid {scope.format(random_text())}")


def opened(address: str) -> Callable[[World, Credentials], object]:
    """A GET request of this URL, with a new random text each time."""
    return lambda world, client: Browser(world).open(address.format(random_text(), client.client_id))


def assertion(world: World, **overrides: Any) -> Any:
    robot = world.make_service_user_program()
    header = {"kid": overrides.pop("kid", robot.key_id)}
    return world.client.exchange_assertion(
        sign_assertion(robot.claims(**overrides), robot.key, key_id=robot.key_id, header=header)
    )


def sign_in(world: World, client: Credentials) -> None:
    browser = Browser(world)
    browser.open("/login")
    browser.submit({"login_name": random_text()})
    browser.submit({"password": random_text()})


#: Unauthenticated requests, each with a random text in a different part.
ATTEMPTS: dict[str, Callable[[World, Credentials], object]] = {
    "unknown client": lambda world, client: authorize(world),
    "unknown client by POST": lambda world, client: Browser(world).post_form(
        "/oauth/v2/authorize", {"client_id": random_text()}, initiator="https://evil.example"
    ),
    "client twice": opened("/oauth/v2/authorize?client_id={0}&client_id={0}"),
    "redirect URI": lambda world, client: authorize(world, client, redirect_uri=f"https://{random_text()}.example/"),
    **{
        name: lambda world, client, name=name: authorize(world, client, **{name: random_text()})
        for name in ("response_type", "response_mode", "prompt", "scope", "code_challenge", "claims", "id_token_hint")
    },
    "long parameter": lambda world, client: authorize(world, client, state=random_text() * 500),
    "parameter's name, twice": opened(
        f"/oauth/v2/authorize?client_id={{1}}&{urlencode({'redirect_uri': CALLBACK_URI})}&{{0}}=1&{{0}}=2"
    ),
    "request object": lambda world, client: authorize(world, client, request=random_text()),
    "project": ask_for("urn:service:iam:org:project:id:{}:aud"),
    "organization": ask_for("urn:service:iam:org:id:{}"),
    "domain": ask_for("urn:service:iam:org:domain:primary:{}.example"),
    "role": ask_for("urn:service:iam:org:project:role:{}"),
    "client at the token endpoint": lambda world, client: redeem(world, Credentials(random_text(), random_text())),
    "public client": lambda world, client: redeem(world, random_text()),
    "secret": lambda world, client: redeem(world, Credentials(client.client_id, random_text())),
    "code": redeem,
    "grant type": lambda world, client: world.post_token_request(client, {"grant_type": random_text()}),
    "assertion": lambda world, client: world.client.exchange_assertion(random_text()),
    "assertion's kid": lambda world, client: assertion(world, kid=random_text()),
    "assertion's issuer": lambda world, client: assertion(world, iss=random_text()),
    "introspecting client": lambda world, client: world.client.introspect(
        random_text(), Credentials(random_text(), random_text())
    ),
    "userinfo": lambda world, client: world.client.fetch_userinfo(random_text()),
    "management API": lambda world, client: world.client.call_management_api("/me", random_text()),
    "address": opened("/{0}"),
    "login name": sign_in,
    "logout": opened("/oauth/v2/endsession?id_token_hint={0}&client_id={0}&state={0}"),
    "cookie": lambda world, client: world.client.get(
        "/account", {"Cookie": f"__Host-session-{random_text()}={random_text()}"}
    ),
}


def rows(world: World) -> list[AuditEvent]:
    return list(world.all_audit_events())


@pytest.mark.thorough
def test_anonymous_input_is_not_audited(world: World, client: Credentials) -> None:
    for case, attempt in ATTEMPTS.items():
        world.clock.advance(minutes=1)
        before = len(rows(world))
        for _ in range(TIMES):
            attempt(world, client)
        events = rows(world)
        # The application's managers may see the unregistered URI, but nothing else.
        audit_events = [replace(event, detail={**event.detail, "redirect_uri": ""}) for event in events]
        assert not [event for event in audit_events if "mallory" in repr(event)], case
        refused = [event for event in events[: len(events) - before] if event.result == "refused"]
        assert len(refused) <= MOST_OF_ONE_KIND, (case, refused)


def test_password_reset_of_unknown_names_is_not_audited(make_world: WorldFactory) -> None:
    world = make_world(
        **{"identity.smtp.host": "127.0.0.1", "identity.smtp.sender": "Identity <no-reply@id.example.com>"}
    )
    before = len(rows(world))
    for _ in range(TIMES):
        browser = Browser(world)
        browser.open("/password/reset")
        browser.submit({"login_name": random_text()})
        assert browser.path == "/password/reset/sent"
    events = rows(world)
    assert len(events) - before == 1
    assert "mallory" not in repr(events)


def test_long_reasons_are_truncated(world: World, client: Credentials, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin can put input of any length into a reason."""
    from identity.provider.endpoints import authorization as endpoint

    def refuse(*args: object, **kwargs: object) -> None:
        raise InvalidScope("no", reason=random_text())

    monkeypatch.setattr(endpoint, "parse_authorization_request", refuse)
    for _ in range(MAX_ANONYMOUS_REFUSALS + 10):
        authorize(world, client)
    events = [event for event in rows(world) if event.object_id == client.client_id and event.result == "refused"]
    assert len(events) == MAX_ANONYMOUS_REFUSALS
    # Events of other actors and objects are recorded.
    world.make_service_user_program()
    sign_in(world, client)
    assert [event for event in rows(world) if event.event == "authentication.refused"]
    world.clock.advance(minutes=1)
    authorize(world, client)
    events = [event for event in rows(world) if event.object_id == client.client_id and event.result == "refused"]
    assert len(events) == MAX_ANONYMOUS_REFUSALS + 1
