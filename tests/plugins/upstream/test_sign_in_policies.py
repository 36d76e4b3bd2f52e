"""Sign-in policies and upstream sign-in: it is one method and counts as one factor."""

from identity.domain.policies import SecondFactorRule
from identity.services.commands.policies import ChangePolicy
from tests.plugins.factors.authenticator_app import app_on
from tests.plugins.upstream.conftest import UpstreamScenario


def policy(scene: UpstreamScenario, **rules: object) -> None:
    with scene.world.transaction_services() as services:
        services.policies.change(scene.organization.id, ChangePolicy.build(**rules))


def test_policy_allows_or_forbids_upstream_sign_in(scene: UpstreamScenario) -> None:
    """Also for users who have already signed in by the provider."""
    scene.ask()
    scene.sign_in()
    assert scene.browser.session_cookies
    scene.ask(prompt="login")
    back = scene.fake_provider.approve(scene.go())
    policy(scene, factors=("password", "totp"))
    page = scene.back(back)
    assert (page.status_int, "does not allow this sign-in method" in page.text) == (403, True)
    authorization = scene.ask(prompt="none")
    scene.party.check_error_response(scene.browser.page, authorization, "login_required")
    scene.ask(prompt="login")
    assert scene.button not in scene.browser.page.text
    policy(scene, factors=("upstream", "password"))
    authorization = scene.ask(prompt="none")
    assert scene.party.obtain_tokens(scene.browser.page, authorization).claims["sub"]


def test_upstream_sign_in_with_totp_counts_as_two_factors(scene: UpstreamScenario) -> None:
    """A user without a password can enrol an app, which is then required."""
    policy(scene, second_factor=SecondFactorRule.REQUIRED)
    scene.ask()
    scene.sign_in()
    assert scene.browser.sign_in_step == "factors/new"
    scene.browser.submit(button=("factor", "totp"))
    app = app_on(scene.browser)
    scene.browser.submit({"code": app.code()})
    assert scene.browser.external_redirect is not None
    scene.world.clock.advance(seconds=30)
    authorization = scene.ask(prompt="login")
    scene.sign_in()
    assert scene.browser.sign_in_step == "totp"
    claims = scene.party.obtain_tokens(scene.browser.submit({"code": app.code()}), authorization).claims
    assert (claims["amr"], claims["acr"]) == (["otp", "mfa"], "urn:service:iam:acr:2")


def test_users_without_other_methods_are_sent_to_provider(scene: UpstreamScenario) -> None:
    scope = f"openid urn:service:iam:org:id:{scene.organization.id}"
    scene.party.open_request(scene.browser, scope=scope)
    assert scene.browser.sign_in_step == "", "they can choose"
    for factors, at_once in (
        (("upstream", "totp"), True),
        (("upstream", "password"), False),
        (("upstream", "passkeys"), False),
    ):
        policy(scene, factors=factors)
        scene.party.open_request(scene.browser, scope=scope)
        assert (scene.browser.sign_in_step == "upstream" or scene.browser.external_redirect is not None) == at_once, (
            factors
        )
