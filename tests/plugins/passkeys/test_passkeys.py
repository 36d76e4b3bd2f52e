"""Passkeys: enrolment, second factor, and sign-in without password (security 19.2)."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from identity.crypto import base64url
from identity.domain.policies import SecondFactorRule
from identity.plugins.passkeys.pages import ceremony
from identity.plugins.passkeys.verification import verify_authentication
from identity.services.access_control import Principal
from identity.services.commands.branding import ChangeBranding
from identity.services.commands.policies import ChangePolicy
from identity.testing.browser import PASSWORD, Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.passkeys.conftest import PasskeyUser, options_of
from tests.plugins.passkeys.software_authenticator import BACKED_UP, ELIGIBLE, PRESENT, VERIFIED, SoftwareAuthenticator

PHR = "urn:service:iam:acr:phr"
REFUSED = "This passkey was not accepted. Try again, or use another method."
STALE = "This page was open for too long."


# --- enrolment --------------------------------------------------------------------------------------------------------


def test_creation_options(world: World, ada: PasskeyUser) -> None:
    options = ada.to_add()
    assert options["rp"] == {"id": "id.example.com", "name": ada.organization.name}
    with world.transaction_services() as services:
        services.branding.change(ada.organization, ChangeBranding(display_name="Acme"), principal=Principal.OPERATOR)
    assert ada.to_add()["rp"]["name"] == "Acme"
    assert options["user"]["name"] == ada.login_name
    assert len(base64url.decode(options["challenge"])) == 32
    assert len(base64url.decode(options["user"]["id"])) == 32
    assert options["attestation"] == "none"
    assert options["authenticatorSelection"]["residentKey"] == "preferred"
    assert options["excludeCredentials"] == []


def test_passkeys_share_user_handle_with_unique_names(ada: PasskeyUser) -> None:
    first = ada.add(transports=["usb"])
    options = ada.to_add()
    assert [item["id"] for item in options["excludeCredentials"]] == [first.value["id"]]
    assert options["user"]["id"] == first.value["user_handle"]
    assert ada.user.id not in base64url.decode(options["user"]["id"]).hex()
    ada.browser.submit({"answer": ada.device.create(options, transports=["usb", "nfc"])})
    assert {enrolment.name for enrolment in ada.passkeys} == {"Security key", "Security key 2"}


def test_passkey_is_named_after_user_agent(ada: PasskeyUser) -> None:
    assert ada.add().name == "Firefox on Linux"


def test_passkey_is_named_after_its_provider(world: World) -> None:
    ada = PasskeyUser(world, aaguid=bytes.fromhex("bada5566a7aa401fbd9645619a55120d"))
    assert ada.add().name == "1Password"


def test_passkey_belongs_to_one_user(world: World, ada: PasskeyUser) -> None:
    """Credential ids are unique in the instance."""
    enrolment = ada.add()
    user = PasskeyUser(world)
    user.browser.open("/account")
    answer = user.device.create(user.to_add(), id=base64url.decode(enrolment.value["id"]))
    user.browser.submit({"answer": answer})
    check_page(user.browser.page, 409, "Add a passkey")
    assert "This is already set up." in user.browser.page.text
    assert user.passkeys == ()
    assert [passkey.id for passkey in ada.passkeys] == [enrolment.id]


def test_second_passkey_requires_the_first(ada: PasskeyUser) -> None:
    """Enrolment requires the strongest factor of the account."""
    ada.add()
    ada.forget_browser()
    ada.browser.open("/login?target=/account/security&enrol=passkeys")
    ada.browser.sign_in(ada.login_name, PASSWORD)
    assert ada.browser.sign_in_step == "passkeys"
    ada.browser.open(f"{ada.browser.path}/new")
    assert ada.browser.sign_in_step == "passkeys"


# --- second factor ----------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("flags", "methods"),
    [
        (PRESENT, ["pwd", "hwk", "user", "mfa"]),
        (PRESENT | VERIFIED, ["pwd", "hwk", "user", "mfa"]),
        (PRESENT | ELIGIBLE, ["pwd", "swk", "user", "mfa"]),
        (PRESENT | ELIGIBLE | BACKED_UP, ["pwd", "swk", "user", "mfa"]),
    ],
)
def test_passkey_is_a_second_factor(world: World, party: RelyingParty, flags: int, methods: list[str]) -> None:
    ada = PasskeyUser(world, flags=flags)
    ada.add()
    ada.forget_browser()
    authorization = ada.to_prove(party)
    options = options_of(ada.browser)
    assert options["userVerification"] == "preferred"
    assert [item["transports"] for item in options["allowCredentials"]] == [["internal"]]
    claims = party.obtain_tokens(ada.answer(), authorization).claims
    assert (claims["amr"], claims["acr"]) == (methods, PHR)
    (enrolment,) = ada.passkeys
    assert enrolment.last_used_at is not None
    assert enrolment.value["sign_count"] == 2


def test_security_key_may_omit_user_handle(world: World, party: RelyingParty) -> None:
    ada = PasskeyUser(world)
    ada.add()
    ada.forget_browser()
    authorization = ada.to_prove(party)
    party.obtain_tokens(ada.answer(user_handle=None), authorization)


# --- passkey alone ----------------------------------------------------------------------------------------------------


def test_passkey_signs_in_without_password(ada: PasskeyUser, party: RelyingParty) -> None:
    ada.add()
    ada.forget_browser()
    authorization = ada.to_alone(party, acr_values=PHR)
    options = options_of(ada.browser)
    assert (options["userVerification"], options["allowCredentials"]) == ("required", [])
    claims = party.obtain_tokens(ada.answer(), authorization).claims
    assert (claims["sub"], claims["amr"], claims["acr"]) == (ada.user.id, ["hwk", "user", "mfa"], PHR)
    assert claims["auth_time"] == ada.world.clock.seconds


def test_sign_in_pages_offer_passkey(ada: PasskeyUser, party: RelyingParty) -> None:
    authorization = party.new_request()
    ada.browser.open(authorization.url, initiator=party.origin)
    for heading in ("Sign in", "Enter your password"):
        check_page(ada.browser.page, 200, heading)
        (form,) = [item for item in ada.browser.page.forms.values() if "answer" in item.fields]
        assert form.action == f"{ada.browser.path.removesuffix('/password')}/passkeys/alone"
        assert form["csrf_token"].value == ada.browser.find_form("page-form")["csrf_token"].value
        if heading == "Sign in":
            ada.browser.submit({"login_name": ada.login_name}, form="page-form")


def test_passkey_page_explains_missing_script(ada: PasskeyUser, party: RelyingParty) -> None:
    ada.to_alone(party)
    ada.browser.submit()
    check_page(ada.browser.page, 422, "Sign in with a passkey")
    assert "Passkeys need JavaScript" in ada.browser.page.text


def test_passkey_satisfies_prompt_login(ada: PasskeyUser, party: RelyingParty) -> None:
    ada.add()
    ada.forget_browser()
    ada.browser.start_session(ada.user)
    ada.world.clock.advance(minutes=5)
    authorization = ada.to_alone(party, prompt="login")
    assert party.obtain_tokens(ada.answer(), authorization).claims["auth_time"] == ada.world.clock.seconds


@pytest.mark.thorough
@pytest.mark.parametrize(
    "rule", [ChangePolicy(second_factor=SecondFactorRule.OFF), ChangePolicy(factors=("password", "totp"))]
)
def test_policy_forbids_passkey_alone(isolated_world: World, rule: ChangePolicy) -> None:
    party = RelyingParty.register(isolated_world, name="Invoices")
    ada = PasskeyUser(isolated_world)
    ada.add()
    ada.forget_browser()
    ada.to_alone(party)
    with isolated_world.transaction_services() as services:
        services.policies.change("instance", rule)
    ada.answer()
    check_page(ada.browser.page, 422, "Sign in with a passkey")
    assert f"{ada.organization.name} does not allow signing in with a passkey." in ada.browser.page.text
    authorization = party.new_request()
    ada.browser.open(authorization.url, initiator=party.origin)
    assert "passkey" not in ada.browser.page.text


def test_passkey_of_another_organization_is_refused(world: World, ada: PasskeyUser, party: RelyingParty) -> None:
    ada.add()
    ada.forget_browser()
    organization = world.make_organization()
    ada.to_alone(party, scope=f"openid urn:service:iam:org:id:{organization.id}")
    ada.answer()
    assert f"Invoices needs an account of {organization.name}." in ada.browser.page.text


def test_passkey_of_deactivated_user_is_refused_as_unknown(world: World, ada: PasskeyUser, party: RelyingParty) -> None:
    ada.add()
    ada.forget_browser()
    world.operator_services.users.deactivate(ada.user.id)
    ada.to_alone(party)
    ada.answer()
    known = ada.browser.page.text
    stranger = SoftwareAuthenticator()
    stranger.credentials = ada.device.credentials
    stranger.credentials[0].id = b"nobody's"
    ada.to_alone(party)
    ada.answer()
    assert REFUSED in known
    assert REFUSED in ada.browser.page.text
    assert ada.browser.page.status_int == 422


# --- invalid responses ------------------------------------------------------------------------------------------------

WRONG: dict[str, dict[str, Any]] = {
    "another origin": {"origin": "https://id.example.com.evil.example"},
    "an origin below": {"origin": "https://a.id.example.com"},
    "plain http": {"origin": "http://id.example.com"},
    "a port": {"origin": "https://id.example.com:8443"},
    "another rp id": {"rp_id": "example.com"},
    "the origin as rp id": {"rp_id": "https://id.example.com"},
    "a challenge of its own": {"challenge": base64url.encode(bytes(32))},
    "no challenge": {"challenge": ""},
    "another ceremony": {"type": "webauthn.create"},
    "a payment": {"type": "payment.get"},
    "within a page of another": {"client": {"crossOrigin": True}},
    "a page of another around it": {"client": {"crossOrigin": False, "topOrigin": "https://evil.example"}},
    "nobody present": {"flags": VERIFIED},
    "a tampered signature": {"signature": bytes(70)},
    "no signature": {"signature": b""},
    "now copied to other devices": {"flags": PRESENT | VERIFIED | ELIGIBLE},
    "backed up without being able to": {"flags": PRESENT | VERIFIED | BACKED_UP},
    "somebody else's user handle": {"user_handle": bytes(32)},
}
ALONE = {
    "without user verification": {"flags": PRESENT},
    "without a user handle": {"user_handle": None},
    "with an empty user handle": {"user_handle": b""},
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("wrong", WRONG)
def test_invalid_assertion_is_no_second_factor(ada: PasskeyUser, party: RelyingParty, wrong: str) -> None:
    ada.add()
    ada.forget_browser()
    authorization = ada.to_prove(party)
    ada.answer(**WRONG[wrong])
    check_page(ada.browser.page, 422, "Confirm with your passkey")
    assert REFUSED in ada.browser.page.text
    assert ada.events[0] == ("authentication.refused", "wrong factor")
    # The redisplayed page works.
    party.obtain_tokens(ada.answer(), authorization)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("wrong", [*WRONG, *ALONE])
def test_invalid_assertion_does_not_sign_in(ada: PasskeyUser, party: RelyingParty, wrong: str) -> None:
    ada.add()
    ada.forget_browser()
    authorization = ada.to_alone(party)
    ada.answer(**{**WRONG, **ALONE}[wrong])
    check_page(ada.browser.page, 422, "Sign in with a passkey")
    assert REFUSED in ada.browser.page.text
    assert ada.events[0] == ("authentication.refused", "wrong factor")
    party.obtain_tokens(ada.answer(), authorization)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "wrong", [name for name in WRONG if not name.endswith(("signature", "user handle", "devices"))]
)
def test_invalid_attestation_is_not_added(ada: PasskeyUser, wrong: str) -> None:
    otherwise = {"flags": WRONG[wrong]["flags"] | 64} if "flags" in WRONG[wrong] else WRONG[wrong]
    if wrong == "another ceremony":
        otherwise = {"type": "webauthn.get"}
    options = ada.to_add()
    ada.browser.submit({"answer": ada.device.create(options, **otherwise)})
    check_page(ada.browser.page, 422, "Add a passkey")
    assert "This passkey could not be added. Try again." in ada.browser.page.text
    assert ada.passkeys == ()


def test_passkey_of_another_user_is_no_second_factor(world: World, ada: PasskeyUser, party: RelyingParty) -> None:
    bert = PasskeyUser(world)
    for user in (ada, bert):
        user.add()
        user.forget_browser()
    ada.to_prove(party)
    software_credential, credential = bert.device.credentials[0], ada.device.credentials[0]
    for handle in (software_credential.user_handle, credential.user_handle):
        ada.answer(credential=software_credential, user_handle=handle)
        assert REFUSED in ada.browser.page.text
    # The user's own credential id, with the key of another user.
    ada.browser.submit(
        {
            "answer": bert.device.get(options_of(ada.browser), credential=software_credential).replace(
                base64url.encode(software_credential.id), base64url.encode(credential.id)
            )
        }
    )
    assert REFUSED in ada.browser.page.text


def test_swapped_user_handles_are_refused(world: World, ada: PasskeyUser, party: RelyingParty) -> None:
    bert = PasskeyUser(world)
    for user in (ada, bert):
        user.add()
        user.forget_browser()
    for user, passkey_user in ((ada, bert), (bert, ada)):
        user.to_alone(party)
        user.answer(user_handle=passkey_user.device.credentials[0].user_handle)
        assert REFUSED in user.browser.page.text


# --- challenges -------------------------------------------------------------------------------------------------------


def test_challenge_is_single_use(ada: PasskeyUser, party: RelyingParty) -> None:
    ada.add()
    ada.forget_browser()
    ada.to_alone(party)
    ticket = ada.browser.find_form()["ticket"].value
    answer = ada.device.get(options_of(ada.browser), count=9)
    refused = ada.device.get(options_of(ada.browser), signature=b"")
    ada.browser.submit({"answer": refused})
    assert REFUSED in ada.browser.page.text
    # The refused response consumed it, too.
    ada.browser.submit({"answer": answer, "ticket": ticket})
    check_page(ada.browser.page, 422, "Sign in with a passkey")
    assert STALE in ada.browser.page.text
    assert ada.passkeys[0].value["sign_count"] == 1


def test_assertion_replay_is_refused(ada: PasskeyUser, party: RelyingParty) -> None:
    """In another tab of the same pending sign-in."""
    ada.add()
    ada.forget_browser()
    ada.to_prove(party, prompt="login")
    tab = ada.browser.tab()
    tab.open(ada.browser.path)
    ticket = ada.browser.find_form()["ticket"].value
    answer = ada.device.get(options_of(ada.browser))
    ada.browser.submit({"answer": answer})
    assert ada.browser.external_redirect is not None
    tab.submit({"answer": answer, "ticket": ticket})
    assert tab.external_redirect is None


def test_challenge_expires_after_five_minutes(ada: PasskeyUser, party: RelyingParty) -> None:
    ada.add()
    ada.forget_browser()
    for seconds, good in ((301, False), (299, True)):
        ada.to_alone(party)
        ada.world.clock.advance(seconds=seconds)
        ada.answer()
        assert (ada.browser.external_redirect is not None) == good
        assert good or STALE in ada.browser.page.text


def test_challenge_is_bound_to_sign_in_and_ceremony(ada: PasskeyUser, party: RelyingParty) -> None:
    ada.add()
    ada.forget_browser()
    ada.to_alone(party)
    tickets = [(ada.browser.find_form()["ticket"].value, options_of(ada.browser))]
    ada.to_prove(party)
    tickets.append((ada.browser.find_form()["ticket"].value, options_of(ada.browser)))
    ada.forget_browser()
    ada.to_prove(party)
    for ticket, options in tickets:
        ada.browser.submit({"answer": ada.device.get(options), "ticket": ticket})
        assert STALE in ada.browser.page.text
    for nonsense in ("", "nonsense", tickets[0][0][:-1], tickets[0][0] + "A"):
        ada.browser.submit({"answer": ada.device.get(options_of(ada.browser)), "ticket": nonsense})
        assert STALE in ada.browser.page.text


def test_challenge_is_bound_to_ceremony_within_a_sign_in(world: World, ada: PasskeyUser, party: RelyingParty) -> None:
    """A challenge is bound to one ceremony, and to the user if known."""
    bert = PasskeyUser(world)
    for user in (ada, bert):
        user.add()
    browser = ada.browser = bert.browser = Browser(world)
    ada.to_alone(party)
    root = browser.path.removesuffix("/passkeys/alone")

    def form_ticket_and_options() -> tuple[str, dict[str, Any]]:
        return browser.find_form()["ticket"].value, options_of(browser)

    def is_stale(person: PasskeyUser, ticket: str, options: dict[str, Any]) -> bool:
        browser.submit({"answer": person.device.get(options), "ticket": ticket})
        return STALE in browser.page.text

    alone = form_ticket_and_options()
    browser.open(root)
    browser.sign_in(ada.login_name, PASSWORD)
    hers = form_ticket_and_options()
    assert is_stale(ada, *alone)
    browser.open(f"{root}/passkeys/alone")
    assert is_stale(ada, *hers)
    browser.open(root)
    browser.sign_in(bert.login_name, PASSWORD)
    assert browser.sign_in_step == "passkeys"
    assert is_stale(bert, hers[0], {**hers[1], "allowCredentials": []})


# --- cloned authenticators --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alone", [True, False])
def test_sign_count_regression_is_refused_and_notified(ada: PasskeyUser, party: RelyingParty, *, alone: bool) -> None:
    ada.add()
    ada.forget_browser()
    (ada.to_alone if alone else ada.to_prove)(party)
    ada.answer(count=7)
    ada.forget_browser()
    for count in (7, 3, 0):
        authorization = (ada.to_alone if alone else ada.to_prove)(party)
        ada.answer(count=count)
        assert ada.browser.page.status_int == 422
        assert "a copy of it seems to exist" in ada.browser.page.text
        assert ("factor.suspected", None) in ada.events[:3]
        assert ada.passkeys[0].value["sign_count"] == 7
        if alone:
            ada.forget_browser()
    if not alone:
        ada.forget_browser()
    authorization = (ada.to_alone if alone else ada.to_prove)(party)
    party.obtain_tokens(ada.answer(count=8), authorization)


def test_wrong_signature_reports_no_cloned_authenticator(ada: PasskeyUser, party: RelyingParty) -> None:
    ada.add()
    ada.forget_browser()
    ada.to_alone(party)
    ada.answer(count=0, signature=bytes(64))
    assert REFUSED in ada.browser.page.text
    assert "factor.suspected" not in {event for event, _ in ada.events}


def test_zero_sign_count_reports_no_cloned_authenticator(world: World, party: RelyingParty) -> None:
    ada = PasskeyUser(world, counts=False)
    ada.add()
    for _ in range(2):
        ada.forget_browser()
        authorization = ada.to_alone(party)
        party.obtain_tokens(ada.answer(), authorization)


# --- attempts ---------------------------------------------------------------------------------------------------------


def test_passkey_attempts_are_rate_limited(ada: PasskeyUser, party: RelyingParty) -> None:
    ada.add()
    ada.forget_browser()
    ada.to_alone(party)
    for _ in range(6):
        ada.answer(signature=b"")
    assert ada.browser.page.status_int == 429
    assert "Too many attempts." in ada.browser.page.text
    ada.answer()
    assert ada.browser.page.status_int == 429
    ada.world.clock.advance(minutes=1)
    authorization = ada.to_alone(party)
    party.obtain_tokens(ada.answer(), authorization)


@pytest.mark.thorough
def test_unknown_passkeys_are_rate_limited_by_address(isolated_world: World) -> None:
    ada, party = PasskeyUser(isolated_world), RelyingParty.register(isolated_world, name="Invoices")
    ada.to_alone(party)
    stranger = SoftwareAuthenticator()
    stranger.create({"user": {"id": "AAAA"}, "rp": {"id": "id.example.com"}, "challenge": "AAAA"})
    ada.device = stranger
    statuses = [ada.answer().status_int for _ in range(101)]
    assert set(statuses[:100]) == {422}
    assert statuses[100] == 429


# --- concurrency ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("happens", ["used", "removed", "deactivated"])
def test_concurrent_change_invalidates_assertion(
    ada: PasskeyUser, party: RelyingParty, monkeypatch: pytest.MonkeyPatch, happens: str
) -> None:
    """A commit separates reading the passkey from the result."""
    enrolment = ada.add()
    ada.forget_browser()
    ada.to_alone(party)

    def change() -> None:
        with ada.world.transaction_services() as services:
            subject = services.storage.users.find_subject(ada.user.id)
            assert subject is not None
            if happens == "used":
                services.factors.update_after_use(enrolment, {**enrolment.value, "sign_count": 9})
            elif happens == "removed":
                services.factors.remove(subject, enrolment.id)
            else:
                services.users.deactivate(ada.user.id, principal=Principal.OPERATOR)

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        with ThreadPoolExecutor(1) as executor:
            executor.submit(change).result()
        return verify_authentication(*arguments, **options)

    monkeypatch.setattr(ceremony, "verify_authentication", meanwhile)
    ada.answer()
    assert ada.browser.external_redirect is None
    if happens != "deactivated":
        assert REFUSED in ada.browser.page.text
    else:
        assert ada.browser.sign_in_step == ""


@pytest.mark.every_storage
def test_concurrent_assertions_sign_in_once(world: World, ada: PasskeyUser, party: RelyingParty) -> None:
    """The same response to the same challenge, sent from ten tabs concurrently."""
    ada.add()
    ada.forget_browser()
    ada.to_alone(party)
    root = ada.browser.path
    form = dict(ada.browser.find_form().submit_fields())
    form["answer"] = ada.device.get(options_of(ada.browser))
    tabs = [ada.browser.tab() for _ in range(10)]
    for tab in tabs:
        tab.open(root)

    def go(tab: Browser) -> bool:
        filled = tab.find_form()
        filled["ticket"] = form["ticket"]
        filled["answer"] = form["answer"]
        tab.submit()
        return tab.external_redirect is not None

    with ThreadPoolExecutor(10) as threads:
        assert sum(threads.map(go, tabs)) == 1
    assert ada.passkeys[0].value["sign_count"] == 2
