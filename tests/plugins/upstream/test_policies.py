"""Policies and whoever signs in elsewhere: it is one of the ways, and one factor, whatever it was there."""

from identity.domain.policies import SecondFactor
from identity.services.commands.policies import ChangePolicy
from tests.plugins.factors.app import app_on
from tests.plugins.upstream.conftest import Scene


def policy(scene: Scene, **rules: object) -> None:
    with scene.world.transaction() as services:
        services.policies.change(scene.organization.id, ChangePolicy.of(**rules))


def test_it_is_one_of_the_ways_that_a_policy_allows(scene: Scene) -> None:
    """Also for whoever came in that way before."""
    scene.ask()
    scene.sign_in()
    assert scene.browser.session_cookies
    scene.ask(prompt="login")
    back = scene.elsewhere.approve(scene.go())
    policy(scene, factors=("password", "totp"))
    page = scene.back(back)
    assert (page.status_int, "does not let people sign in in this way" in page.text) == (403, True)
    asked = scene.ask(prompt="none")
    scene.party.refused(scene.browser.page, asked, "login_required")
    scene.ask(prompt="login")
    assert scene.button not in scene.browser.page.text
    policy(scene, factors=("upstream", "password"))
    asked = scene.ask(prompt="none")
    assert scene.party.tokens(scene.browser.page, asked).claims["sub"]


def test_a_code_after_it_makes_two_factors(scene: Scene) -> None:
    """Whoever has no password here sets up an app all the same, and is asked for it from then on."""
    policy(scene, second_factor=SecondFactor.REQUIRED)
    scene.ask()
    scene.sign_in()
    assert scene.browser.step == "factors/new"
    scene.browser.submit(press=("factor", "totp"))
    app = app_on(scene.browser)
    scene.browser.submit({"code": app.code()})
    assert scene.browser.left_for is not None
    scene.world.clock.advance(seconds=30)
    asked = scene.ask(prompt="login")
    scene.sign_in()
    assert scene.browser.step == "totp"
    claims = scene.party.tokens(scene.browser.submit({"code": app.code()}), asked).claims
    assert (claims["amr"], claims["acr"]) == (["otp", "mfa"], "urn:service:iam:acr:2")


def test_people_who_have_no_other_way_in_are_sent_there_at_once(scene: Scene) -> None:
    scope = f"openid urn:service:iam:org:id:{scene.organization.id}"
    scene.party.opened(scene.browser, scope=scope)
    assert scene.browser.step == "", "they can choose"
    for factors, at_once in (
        (("upstream", "totp"), True),
        (("upstream", "password"), False),
        (("upstream", "passkeys"), False),
    ):
        policy(scene, factors=factors)
        scene.party.opened(scene.browser, scope=scope)
        assert (scene.browser.step == "upstream" or scene.browser.left_for is not None) == at_once, factors
