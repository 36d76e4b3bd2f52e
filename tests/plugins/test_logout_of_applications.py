"""Notices about the end of sessions (OpenID Connect Back-Channel Logout 1.0 and Front-Channel Logout 1.0)."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlencode

import pytest
from joserfc import jwk, jwt

from identity.domain.users import HumanUser, Subject
from identity.services.access_control import Principal
from identity.services.outbox import OutboxService
from identity.testing.browser import Browser
from identity.testing.fixtures import WorldFactory
from identity.testing.relying_party import ReceivedTokens, RelyingParty
from identity.testing.world import World
from tests.logout_receiver import LogoutReceiver

EVENT = "http://schemas.openid.net/event/backchannel-logout"


@pytest.fixture
def receiver() -> Iterator[LogoutReceiver]:
    with closing(LogoutReceiver()) as receiver:
        yield receiver


@pytest.fixture
def world(make_world: WorldFactory) -> World:
    return make_world(**{"identity.outgoing_networks": "127.0.0.0/8"})


@pytest.fixture
def person(world: World) -> HumanUser:
    return world.make_human_user()


@pytest.fixture
def party(world: World, receiver: LogoutReceiver) -> RelyingParty:
    return RelyingParty.register(world, backchannel_logout_uri=receiver.url)


def sign_in(world: World, party: RelyingParty, person: HumanUser) -> tuple[Browser, ReceivedTokens]:
    browser = Browser(world)
    browser.start_session(person)
    return browser, party.sign_in_silently(browser, scope="openid")


def deliver(world: World) -> None:
    world.identity.senders["back-channel logout"].send_due()


def verified(world: World, text: str) -> dict[str, Any]:
    """As an application verifies it."""
    token = jwt.decode(text, jwk.KeySet.import_key_set(world.client.fetch_jwks().json))
    assert token.header["typ"] == "logout+jwt"
    return token.claims


def subject(world: World, person: HumanUser) -> Subject:
    with world.read_only_services() as services:
        found = services.storage.users.find_subject(person.id)
    assert found is not None
    return found


def test_discovery_has_both(world: World) -> None:
    document = world.client.discovery
    for channel in ("backchannel", "frontchannel"):
        assert document[f"{channel}_logout_supported"] is True
        assert document[f"{channel}_logout_session_supported"] is True


def test_sign_out_sends_a_logout_token(
    world: World, party: RelyingParty, person: HumanUser, receiver: LogoutReceiver
) -> None:
    browser, tokens = sign_in(world, party, person)
    sign_in(world, RelyingParty.register(world), person)
    browser.open("/sign-out")
    browser.submit()
    deliver(world)
    (text,) = receiver.tokens
    claims = verified(world, text)
    assert claims.pop("jti")
    assert claims == {
        "iss": world.issuer,
        "aud": party.client_id,
        "iat": world.clock.seconds,
        "exp": world.clock.seconds + 120,
        "sub": person.id,
        "sid": tokens.claims["sid"],
        "events": {EVENT: {}},
    }


def test_logout_token_names_the_person_as_the_application_does(
    world: World, person: HumanUser, receiver: LogoutReceiver
) -> None:
    party = RelyingParty.register(world, backchannel_logout_uri=receiver.url, subject_type="pairwise")
    browser, tokens = sign_in(world, party, person)
    browser.open("/sign-out")
    browser.submit()
    deliver(world)
    (text,) = receiver.tokens
    assert verified(world, text)["sub"] == tokens.claims["sub"] != person.id


def test_application_with_only_an_id_token_is_notified(
    world: World, party: RelyingParty, person: HumanUser, receiver: LogoutReceiver
) -> None:
    browser = Browser(world)
    browser.start_session(person)
    tokens = party.sign_in_silently(browser, "id_token")
    browser.open("/sign-out")
    browser.submit()
    deliver(world)
    (text,) = receiver.tokens
    assert verified(world, text)["sid"] == tokens.claims["sid"]


Ending = Callable[[World, HumanUser], None]


def _end_all(world: World, person: HumanUser) -> None:
    world.operator_services.users.end_sessions(person.id)


def _deactivate(world: World, person: HumanUser) -> None:
    world.operator_services.users.deactivate(person.id)


def _remove(world: World, person: HumanUser) -> None:
    world.operator_services.users.remove(person.id)


def _report(world: World, person: HumanUser) -> None:
    with world.transaction_services() as services:
        services.account_recovery.report_compromise(subject(world, person))


def _reset(world: World, person: HumanUser) -> None:
    with world.transaction_services() as services:
        services.users.set_one_time_password(person.id, principal=Principal.OPERATOR)


@pytest.mark.parametrize("end", [_end_all, _deactivate, _remove, _report, _reset])
def test_each_decision_that_ends_sessions_sends_one(
    world: World, party: RelyingParty, person: HumanUser, receiver: LogoutReceiver, end: Ending
) -> None:
    first, second = (sign_in(world, party, person)[1].claims["sid"] for _ in range(2))
    end(world, person)
    deliver(world)
    assert {verified(world, text)["sid"] for text in receiver.tokens} == {first, second}
    assert len(receiver.tokens) == 2


def test_sessions_that_end_in_one_second_are_distinguished(
    world: World, party: RelyingParty, person: HumanUser, receiver: LogoutReceiver
) -> None:
    ids = [sign_in(world, party, person)[1].claims["sid"] for _ in range(2)]
    for session_id in ids:
        world.operator_services.users.end_session(person.id, session_id)
    deliver(world)
    assert sorted(verified(world, text)["sid"] for text in receiver.tokens) == sorted(ids)


def test_expiry_sends_none(world: World, party: RelyingParty, person: HumanUser, receiver: LogoutReceiver) -> None:
    sign_in(world, party, person)
    world.clock.advance(days=8)
    sign_in(world, party, person)
    deliver(world)
    assert receiver.tokens == []


def test_failures_are_retried_with_new_tokens_and_logged(
    world: World, party: RelyingParty, person: HumanUser, receiver: LogoutReceiver
) -> None:
    receiver.statuses = [400]
    sign_in(world, party, person)
    _end_all(world, person)
    deliver(world)
    deliver(world)
    assert len(receiver.tokens) == 1
    world.clock.advance(seconds=10)
    deliver(world)
    first, second = (verified(world, text) for text in receiver.tokens)
    assert second["iat"] == first["iat"] + 10
    assert second["jti"] != first["jti"]
    with world.read_only_services() as services:
        logged = [
            (item.error, item.reason)
            for item in services.figures.list_application_requests(party.client_id)
            if item.endpoint == "back-channel logout"
        ]
    assert logged == [("", ""), ("not_delivered", "the application answered 400")]


@pytest.mark.parametrize("crashes", [False, True])
def test_revoked_organization_notifies_of_every_session_step_by_step(
    world: World, party: RelyingParty, receiver: LogoutReceiver, monkeypatch: pytest.MonkeyPatch, crashes: bool
) -> None:
    """However many sessions end, one message is queued with them. An interrupted step is done again as a whole."""
    monkeypatch.setattr("identity.services.sessions._PEOPLE_AT_ONCE", 2)
    organization, sent = world.make_organization(), []
    people = [world.make_human_user(organization) for _ in range(5)]
    ended = {sign_in(world, party, person)[1].claims["sid"] for person in (*people, people[0])}
    sign_in(world, party, world.make_human_user())
    with world.transaction_services() as services:
        assert services.access_revocations.revoke_organization(organization.id, principal=Principal.OPERATOR).sessions
    queue, calls = OutboxService.queue, []

    def crash_once(*arguments: Any, **options: Any) -> None:
        queue(*arguments, **options)
        calls.append(arguments)
        if len(calls) == 2:
            raise ConnectionResetError

    if crashes:
        monkeypatch.setattr(OutboxService, "queue", crash_once)
    sender = world.identity.senders["back-channel logout"]
    for _ in range(20):
        with world.read_only_services() as services:
            pending = services.storage.outbox.list_pending(sender.name.removeprefix("outbox: "), world.clock(), 100)
        assert len(pending) <= 6, "more than a step is queued"
        sent.append(sender.send_due())
        world.clock.advance(seconds=10)
    assert sorted(verified(world, text)["sid"] for text in receiver.tokens) == sorted(ended)
    assert sum(sent) == len(ended) + 3


def test_internal_addresses_are_not_reached(make_world: WorldFactory, receiver: LogoutReceiver) -> None:
    world = make_world()
    party, person = RelyingParty.register(world, backchannel_logout_uri=receiver.url), world.make_human_user()
    sign_in(world, party, person)
    _end_all(world, person)
    deliver(world)
    assert receiver.tokens == []


def test_removed_address_gets_nothing(
    world: World, party: RelyingParty, person: HumanUser, receiver: LogoutReceiver
) -> None:
    sign_in(world, party, person)
    _end_all(world, person)
    with world.transaction_services() as services:
        services.applications.remove(party.client_id, principal=Principal.OPERATOR)
    deliver(world)
    assert receiver.tokens == []


# --- front channel ----------------------------------------------------------------------------------------------------


def frames_of(browser: Browser) -> list[str]:
    return [item["src"] for item in browser.page.html.find_all("iframe")]


def test_sign_out_page_frames_the_addresses(world: World, person: HumanUser) -> None:
    party = RelyingParty.register(world, frontchannel_logout_uri="https://shop.example:8443/logout?x=1")
    _, other = sign_in(world, party, person)
    browser, tokens = sign_in(world, party, person)
    world.operator_services.users.end_session(person.id, other.claims["sid"])
    browser.open("/sign-out")
    browser.submit()
    sent = {"iss": world.issuer, "sid": tokens.claims["sid"]}
    assert frames_of(browser) == [f"https://shop.example:8443/logout?x=1&{urlencode(sent)}"]
    assert browser.page.headers["Content-Security-Policy"].endswith("; frame-src https://shop.example:8443")
    browser.click("Continue")
    assert browser.path == "/signed-out"


def test_application_s_sign_out_passes_the_frames_and_returns(world: World, person: HumanUser) -> None:
    party = RelyingParty.register(world, frontchannel_logout_uri="https://shop.example/logout")
    browser, tokens = sign_in(world, party, person)
    assert party.post_logout_redirect_uri is not None
    parameters = {
        "id_token_hint": tokens.id_token or "",
        "post_logout_redirect_uri": party.post_logout_redirect_uri,
        "state": "7",
    }
    browser.open(f"/oauth/v2/endsession?{urlencode(parameters)}", initiator="https://app.example")
    assert len(frames_of(browser)) == 1
    back = f"{party.post_logout_redirect_uri}?state=7"
    assert browser.page.headers["Refresh"] == f"3; url={back}"
    assert back in {item["href"] for item in browser.page.html.find_all("a", href=True)}
    other = Browser(world)
    other.open(browser.url)
    assert other.path == "/signed-out"


@pytest.mark.parametrize(
    "uri",
    ["http://shop.example/", "javascript:alert(1)", "https://a.example;script-src/", "https://a,b/", "https://*/", "x"],
)
def test_addresses_are_plain(world: World, uri: str) -> None:
    for channel in ("backchannel", "frontchannel"):
        with pytest.raises(Exception, match=r"address|https|characters"):
            RelyingParty.register(world, **{f"{channel}_logout_uri": uri})
