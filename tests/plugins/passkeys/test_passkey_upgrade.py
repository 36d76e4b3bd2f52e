"""The policy rule passkey_upgrade: browsers may save a passkey after a sign-in with a password."""

import pytest

from identity.domain.policies import SecondFactorRule
from identity.services.commands.policies import ChangePolicy
from identity.testing.browser import PASSWORD, Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.pages.html_checks import check_page
from tests.plugins.passkeys.conftest import PasskeyUser, options_of
from tests.plugins.passkeys.software_authenticator import BACKED_UP, ELIGIBLE

UPGRADE = "passkeys/upgrade"
#: Password managers do not ask the user for a passkey that they create by themselves.
SILENT = ELIGIBLE | BACKED_UP


def set_policy(ada: PasskeyUser, **rules: object) -> None:
    with ada.world.transaction_services() as services:
        services.policies.change(ada.organization.id, ChangePolicy.build(**rules))


@pytest.fixture
def ada(world: World) -> PasskeyUser:
    user = PasskeyUser(world)
    set_policy(user, passkey_upgrade=True)
    return user


def sign_in(ada: PasskeyUser, party: RelyingParty) -> object:
    """In a new browser, as far as the step after the password; returns the authorization request."""
    ada.browser = Browser(ada.world)
    authorization = party.new_request()
    ada.browser.open(authorization.url, initiator=party.origin)
    ada.browser.sign_in(ada.login_name, PASSWORD)
    return authorization


def test_passkey_is_saved_without_presence(ada: PasskeyUser, party: RelyingParty) -> None:
    authorization = sign_in(ada, party)
    assert ada.browser.sign_in_step == UPGRADE
    check_page(ada.browser.page, 200, "You are signed in")
    options = options_of(ada.browser)
    assert (options["attestation"], options["authenticatorSelection"]["residentKey"]) == ("none", "required")
    answer = ada.browser.submit({"answer": ada.device.create(options, flags=SILENT | 64)})
    claims = party.obtain_tokens(answer, authorization).claims
    # It proved nothing in this sign-in.
    assert claims["amr"] == ["pwd"]
    (enrolment,) = ada.passkeys
    assert enrolment.name == "Firefox on Linux"
    assert ("factor.added", None) in ada.events


def test_saved_passkey_signs_in_alone(ada: PasskeyUser, party: RelyingParty) -> None:
    sign_in(ada, party)
    ada.browser.submit({"answer": ada.device.create(options_of(ada.browser))})
    ada.forget_browser()
    authorization = ada.to_alone(party)
    assert party.obtain_tokens(ada.answer(), authorization).claims["sub"] == ada.user.id
    # Still after its first use.
    assert ada.passkeys[0].value["is_automatic"] is True


def test_saved_passkey_is_no_required_second_factor(ada: PasskeyUser, party: RelyingParty) -> None:
    """Otherwise its user could not sign in elsewhere. Nor is another passkey saved without a proof of the first."""
    sign_in(ada, party)
    ada.browser.submit({"answer": ada.device.create(options_of(ada.browser))})
    authorization = sign_in(ada, party)
    assert ada.browser.sign_in_step is None or ada.browser.sign_in_step != UPGRADE
    party.obtain_tokens(ada.browser.page, authorization)
    set_policy(ada, second_factor=SecondFactorRule.REQUIRED)
    sign_in(ada, party)
    assert ada.browser.sign_in_step == "passkeys"


def test_passkey_that_was_added_stays_required(ada: PasskeyUser, party: RelyingParty) -> None:
    ada.add()
    sign_in(ada, party)
    assert ada.browser.sign_in_step == "passkeys"
    ada.answer()
    assert ada.browser.sign_in_step != UPGRADE


@pytest.mark.parametrize("answer", ["", "{}", "no JSON"])
def test_sign_in_goes_on_without_passkey(ada: PasskeyUser, party: RelyingParty, answer: str) -> None:
    authorization = sign_in(ada, party)
    party.obtain_tokens(ada.browser.submit({"answer": answer}), authorization)
    assert ada.passkeys == ()


def test_sign_in_goes_on_with_a_stale_challenge(ada: PasskeyUser, party: RelyingParty) -> None:
    authorization = sign_in(ada, party)
    answer = ada.device.create(options_of(ada.browser))
    ada.world.clock.advance(seconds=301)
    party.obtain_tokens(ada.browser.submit({"answer": answer}), authorization)
    assert ada.passkeys == ()


def test_presence_is_required_where_users_add_passkeys(ada: PasskeyUser) -> None:
    set_policy(ada, passkey_upgrade=False)
    answer = ada.device.create(ada.to_add(), flags=SILENT | 64)
    ada.browser.submit({"answer": answer})
    check_page(ada.browser.page, 422, "Add a passkey")
    assert ada.passkeys == ()


def test_off_by_default(world: World, party: RelyingParty) -> None:
    user = PasskeyUser(world)
    authorization = sign_in(user, party)
    party.obtain_tokens(user.browser.page, authorization)


def test_excluded_method_saves_no_passkey(ada: PasskeyUser, party: RelyingParty) -> None:
    set_policy(ada, factors=("password", "totp"))
    authorization = sign_in(ada, party)
    party.obtain_tokens(ada.browser.page, authorization)


def test_page_is_closed_to_other_steps(ada: PasskeyUser, party: RelyingParty) -> None:
    """A request before the password redirects to the current step."""
    ada.browser.open(party.new_request().url, initiator=party.origin)
    ada.browser.open(f"{ada.browser.path}/{UPGRADE}")
    assert ada.browser.sign_in_step != UPGRADE


def test_accounts_of_another_organization_are_unaffected(ada: PasskeyUser, party: RelyingParty) -> None:
    other = PasskeyUser(ada.world)
    authorization = sign_in(other, party)
    party.obtain_tokens(other.browser.page, authorization)
