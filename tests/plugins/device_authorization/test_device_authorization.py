"""Device authorization (RFC 8628): what the device and the person see, and who can gain nothing by it."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from identity.domain.applications import ConsentRule
from identity.domain.attempts import MAX_CODE_GUESSES_PER_USER
from identity.domain.records import RecordNamespace
from identity.plugins.device_authorization.device_requests import DeviceRequestStore
from identity.testing.browser import Browser, set_password
from identity.testing.jwt_assertions import decode_jwt_unverified
from identity.testing.response_checks import check_oauth_error, check_token_response
from identity.testing.world import World
from tests.plugins.device_authorization.device import (
    DEVICE_CODE,
    GRANT_TYPES,
    Device,
    decide,
    enter_code,
    signed_in_browser,
)


@pytest.fixture
def device(world: World) -> Device:
    return Device(world, world.make_public_application(grant_types=GRANT_TYPES, response_types=frozenset()))


def refuses(device: Device, error: str) -> None:
    check_oauth_error(device.poll(), error)


def test_request_answers_codes_and_addresses(world: World, device: Device) -> None:
    answer = device.start().answer
    assert re.fullmatch(r"[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", answer["user_code"])
    page = f"{world.identity.settings.login_url}/device"
    assert answer["verification_uri"] == page
    assert answer["verification_uri_complete"] == f"{page}?user_code={answer['user_code']}"
    assert (answer["expires_in"], answer["interval"]) == (600, 5)
    assert DEVICE_CODE in world.client.discovery["grant_types_supported"]


def test_person_signs_in_and_approves(world: World, device: Device) -> None:
    person = world.make_human_user()
    set_password(world, person)
    device.start("openid offline_access")
    refuses(device, "authorization_pending")
    browser = Browser(world)
    browser.open(device.answer["verification_uri_complete"])
    browser.sign_in(person.user_name)
    assert browser.find_form()["user_code"].value == device.answer["user_code"]
    browser.submit()
    text = browser.page.html.main.get_text()
    assert device.answer["user_code"] in text
    assert "Only continue if you started this on a device in front of you." in text
    assert "stays connected until you disconnect it" in text
    browser.submit(button=("decision", "approve"))
    assert browser.path == "/device/approved"
    tokens = check_token_response(device.poll())
    _, claims = decode_jwt_unverified(tokens["id_token"])[:2]
    assert (claims["sub"], claims["aud"]) == (person.id, device.client)
    assert tokens["scope"] == "openid offline_access"
    check_token_response(world.refresh(tokens["refresh_token"], device.client))


def test_page_is_displayed_again_after_consent(world: World, device: Device) -> None:
    browser = signed_in_browser(world)
    for _ in range(2):
        device.start()
        enter_code(browser, device.answer["user_code"])
        assert browser.path.startswith("/device/requests/")
        refuses(device, "authorization_pending")
        browser.submit(button=("decision", "approve"))
        check_token_response(device.poll())


def test_code_is_read_without_case_spaces_and_dashes(world: World, device: Device) -> None:
    code = device.start().answer["user_code"].lower().replace("-", " ")
    browser = signed_in_browser(world)
    enter_code(browser, f" {code} ")
    assert browser.path.startswith("/device/requests/")


def test_denial_is_final(world: World, device: Device) -> None:
    browser = signed_in_browser(world)
    decide(browser, device.start(), "deny")
    assert browser.path == "/device/denied"
    refuses(device, "access_denied")
    enter_code(browser, device.answer["user_code"])
    assert browser.path == "/device"
    refuses(device, "access_denied")


def test_device_code_expires_after_ten_minutes(world: World, device: Device) -> None:
    device.start()
    browser = signed_in_browser(world)
    enter_code(browser, device.answer["user_code"])
    world.clock.advance(minutes=10)
    browser.submit(button=("decision", "approve"))
    assert browser.path == "/device/expired"
    refuses(device, "expired_token")
    world.clock.advance(minutes=10)
    refuses(device, "invalid_grant")


def test_polling_too_fast_slows_down_for_good(world: World, device: Device) -> None:
    device.start()
    refuses(device, "authorization_pending")
    refuses(device, "slow_down")
    world.clock.advance(seconds=9)
    refuses(device, "slow_down")
    world.clock.advance(seconds=15)
    refuses(device, "authorization_pending")
    world.clock.advance(seconds=14)
    refuses(device, "slow_down")


def test_other_client_cannot_poll(world: World, device: Device) -> None:
    other = world.make_public_application(grant_types=GRANT_TYPES, response_types=frozenset())
    decide(signed_in_browser(world), device.start())
    check_oauth_error(device.poll(other), "invalid_grant")
    check_token_response(device.poll())


def test_device_code_is_no_authorization_code(world: World) -> None:
    client = world.make_web_application(grant_types=GRANT_TYPES | {"authorization_code"})
    device = Device(world, client)
    decide(signed_in_browser(world), device.start())
    for redirect_uri in ("", "https://app.example.com/cb"):
        form = {"grant_type": "authorization_code", "code": device.answer["device_code"], "redirect_uri": redirect_uri}
        assert world.post_token_request(client, form).status_int == 400
    code = world.make_code(client)
    check_oauth_error(device.poll(device_code=code.text), "invalid_grant")


def test_replayed_device_code_revokes_its_tokens(world: World, device: Device) -> None:
    decide(signed_in_browser(world), device.start("openid offline_access"))
    tokens = check_token_response(device.poll())
    refuses(device, "invalid_grant")
    check_oauth_error(world.refresh(tokens["refresh_token"], device.client), "invalid_grant")


def test_application_needs_the_grant_type(world: World) -> None:
    check_oauth_error(Device(world, world.make_web_application()).request(), "unauthorized_client")


@pytest.mark.parametrize("scope", ["profile", 'openid "quoted"', "openid urn:service:iam:org:id:unknown"])
def test_scopes_are_checked_as_in_an_authorization_request(device: Device, scope: str) -> None:
    check_oauth_error(device.request(scope), "invalid_scope")


def test_member_of_other_organization_cannot_approve(world: World, device: Device) -> None:
    organization = world.make_organization()
    device.start(f"openid urn:service:iam:org:id:{organization.id}")
    browser = signed_in_browser(world)
    enter_code(browser, device.answer["user_code"])
    assert "cannot be used with this account" in browser.page.text
    refuses(device, "authorization_pending")
    member = signed_in_browser(world, world.make_human_user(organization))
    decide(member, device)
    check_token_response(device.poll())


def test_approval_is_the_consent(world: World) -> None:
    """Refreshing asks for the stored consent, which the person can withdraw."""
    client = world.make_public_application(
        grant_types=GRANT_TYPES, response_types=frozenset(), consent=ConsentRule.ALWAYS
    )
    device = Device(world, client)
    browser = signed_in_browser(world)
    decide(browser, device.start("openid offline_access"))
    tokens = check_token_response(device.poll())
    browser.open(f"/account/applications/{client}/disconnect")
    browser.submit()
    check_oauth_error(world.refresh(tokens["refresh_token"], client), "invalid_grant")


def test_ended_session_ends_an_approval(world: World, device: Device) -> None:
    person = world.make_human_user()
    browser = signed_in_browser(world, person)
    decide(browser, device.start())
    with world.transaction_services() as services:
        subject = services.storage.users.find_subject(person.id)
        assert subject is not None
        services.sessions.end_all(subject)
    refuses(device, "invalid_grant")


def test_wrong_codes_are_limited_per_account(world: World, device: Device) -> None:
    device.start()
    person = world.make_human_user()
    for _ in range(MAX_CODE_GUESSES_PER_USER):
        browser = signed_in_browser(world, person)
        assert enter_code(browser, "BBBB-BBBB").status_int == 422
    browser = signed_in_browser(world, person)
    assert enter_code(browser, device.answer["user_code"]).status_int == 429
    other = signed_in_browser(world)
    assert enter_code(other, device.answer["user_code"]).status_int == 200


def test_right_codes_are_not_counted(world: World, device: Device) -> None:
    device.start()
    browser = signed_in_browser(world)
    for _ in range(MAX_CODE_GUESSES_PER_USER + 1):
        assert enter_code(browser, device.answer["user_code"]).status_int == 200


def test_wrong_codes_are_limited_over_all_accounts(
    world: World, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("identity.services.attempts.MAX_CODE_GUESSES", 2)
    device.start()
    for _ in range(2):
        enter_code(signed_in_browser(world), "BBBB-BBBB")
    assert enter_code(signed_in_browser(world), device.answer["user_code"]).status_int == 429
    world.clock.advance(minutes=9)
    device.start()
    world.clock.advance(minutes=2)
    assert enter_code(signed_in_browser(world), device.answer["user_code"]).status_int == 200


def test_public_clients_are_limited_per_address(world: World, device: Device) -> None:
    answers = [device.request() for _ in range(world.identity.settings.attempts_per_address + 1)]
    assert {answer.status_int for answer in answers[:-1]} == {200}
    assert answers[-1].status_int == 429


def test_decisions_are_audited(world: World, device: Device) -> None:
    person = world.make_human_user()
    browser = signed_in_browser(world, person)
    decide(browser, device.start())
    decide(browser, device.start(), "deny")
    events = [event for event in world.audit_events(event="device") if event.detail["user_id"] == person.id]
    assert {event.event for event in events} == {"device.approved", "device.denied"}
    assert {event.actor.id for event in events} == {person.id}
    assert {event.detail["device_address"] for event in events} == {device.address}


def test_person_disconnects_one_of_two_devices(world: World, device: Device) -> None:
    browser = signed_in_browser(world)
    other = Device(world, device.client)
    for item in (device, other):
        decide(browser, item.start("openid offline_access"))
    tokens, other_tokens = check_token_response(device.poll()), check_token_response(other.poll())
    browser.open("/account/applications")
    assert device.address in browser.page.text
    (form,) = (item for item in browser.page.forms.values() if device.address in item.text)
    browser.submit(form=form.id or next(key for key, item in browser.page.forms.items() if item is form))
    assert "The device is disconnected." in browser.page.text
    assert device.address not in browser.page.html.main.get_text()
    check_oauth_error(world.refresh(tokens["refresh_token"], device.client), "invalid_grant")
    check_token_response(world.refresh(other_tokens["refresh_token"], device.client))


def test_devices_of_others_are_404(world: World, device: Device) -> None:
    browser, stranger = signed_in_browser(world), signed_in_browser(world)
    decide(browser, device.start("openid offline_access"))
    tokens = check_token_response(device.poll())
    browser.open("/account/applications")
    (form,) = (item for item in browser.page.forms.values() if device.address in item.text)
    decide(stranger, Device(world, device.client).start("openid offline_access"))
    stranger.open("/account/applications")
    token = next(iter(stranger.page.forms.values()))["csrf_token"].value
    sent = {"device": form["device"].value, "csrf_token": token}
    assert stranger.post_form("/account/applications", sent, initiator=stranger.login_url).status_int == 404
    check_token_response(world.refresh(tokens["refresh_token"], device.client))


@pytest.mark.storages("memory", "sqlite", "postgresql", "mariadb")
@pytest.mark.thorough
def test_one_of_many_polls_gets_tokens(world: World, device: Device) -> None:
    """Security 5.2: a hundred at once."""
    decide(signed_in_browser(world), device.start())
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: device.poll(), range(100)))
    assert sorted({answer.status_int for answer in answers}) == [200, 400]
    assert [answer.status_int for answer in answers].count(200) == 1
    assert {answer.json["error"] for answer in answers if answer.status_int == 400} == {"invalid_grant"}


def test_second_decision_does_not_count(world: World, device: Device) -> None:
    """Both were made from a page that was open before either."""
    browser = signed_in_browser(world)
    enter_code(browser, device.start().answer["user_code"])
    request_id = browser.path.rpartition("/")[2]
    with world.transaction_services() as services:
        requests = DeviceRequestStore(services, RecordNamespace("device_authorization"))
        request = requests.find(request_id)
        assert request is not None
        assert [requests.decide(request, deny=deny) for deny in (True, False)] == [True, False]
    refuses(device, "access_denied")


@pytest.mark.storages("memory", "sqlite", "postgresql", "mariadb")
@pytest.mark.thorough
def test_one_of_many_decisions_counts(world: World, device: Device) -> None:
    """Security 5.2: a hundred at once."""
    device.start()
    browsers = [signed_in_browser(world) for _ in range(100)]
    for browser in browsers:
        enter_code(browser, device.answer["user_code"])
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda browser: browser.submit(button=("decision", "approve")), browsers))
    assert sorted(browser.path for browser in browsers) == ["/device/approved"] + 99 * ["/device/expired"]
    check_token_response(device.poll())
