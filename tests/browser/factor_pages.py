"""Second factor pages, each with a function that opens it."""

import pyotp

from identity.domain.policies import SecondFactorRule
from identity.services.commands.policies import ChangePolicy
from tests.browser.page_scenarios import BrowserScenario, page


def _required(scene: BrowserScenario) -> None:
    """Require a second factor in the user's organization."""
    strict = scene.site.world.make_organization()
    scene.person = scene.make_user(organization=strict)
    with scene.site.world.transaction_services() as services:
        services.policies.change(strict.id, ChangePolicy.build(second_factor=SecondFactorRule.REQUIRED))


def _with_an_app(scene: BrowserScenario) -> str:
    """Enrol an authenticator app; returns its secret."""
    secret, user_id = pyotp.random_base32(), scene.person.user.id
    with scene.site.world.transaction_services() as services:
        subject = services.storage.users.find_subject(user_id)
        assert subject is not None
        services.factors.enrol(subject, "totp", {"secret": secret, "step": 0}, name="My phone")
    return secret


def _past_the_password(scene: BrowserScenario) -> None:
    scene.ask_with_name()
    scene.tab.send(password=scene.person.password)


@page("/login/1/factors/new", main=True, names=True)
def choose_a_new_factor(scene: BrowserScenario) -> None:
    _required(scene)
    _past_the_password(scene)


@page("/login/1/totp/new", main=True, names=True)
def set_up_an_app(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/login?target=/account/security&enrol=totp")


@page("/login/1/totp/new", main=True, status=422)
def set_up_an_app_errors(scene: BrowserScenario) -> None:
    set_up_an_app(scene)
    scene.tab.send(code="123", name="")


@page("/login/1/totp", main=True, names=True)
def code_of_an_app(scene: BrowserScenario) -> None:
    _with_an_app(scene)
    _past_the_password(scene)


@page("/login/1/totp", status=422)
def code_of_an_app_wrong(scene: BrowserScenario) -> None:
    code_of_an_app(scene)
    scene.tab.send(code="12345")


def _has_address(scene: BrowserScenario) -> None:
    """Give the user a verified email address."""
    user_id = scene.person.user.id
    with scene.site.world.transaction_services() as services:
        link = services.users.issue_email_link(user_id, scene.site.make_email_address())
        services.users.verify_email(link.rsplit("/", 1)[1], user_id)


def _has(scene: BrowserScenario, factor: str, value: dict[str, object]) -> None:
    user_id = scene.person.user.id
    with scene.site.world.transaction_services() as services:
        subject = services.storage.users.find_subject(user_id)
        assert subject is not None
        services.factors.enrol(subject, factor, value)


@page("/login/1/email_code/new", mailing=True, main=True, names=True)
def set_up_codes_by_email(scene: BrowserScenario) -> None:
    _has_address(scene)
    scene.sign_in()
    scene.open("/login?target=/account/security&enrol=email_code")
    scene.site.code_in_mail()


@page("/login/1/email_code", mailing=True, main=True, names=True)
def code_by_email(scene: BrowserScenario) -> None:
    _has_address(scene)
    _has(scene, "email_code", {})
    _past_the_password(scene)
    scene.site.code_in_mail()


@page("/login/1/email_code", mailing=True)
def code_by_email_sent_again(scene: BrowserScenario) -> None:
    code_by_email(scene)
    scene.tab.press("Send another code")
    scene.site.code_in_mail()


@page("/login/1/email_code")
def code_by_email_without_mail(scene: BrowserScenario) -> None:
    _has(scene, "email_code", {})
    _past_the_password(scene)


def _has_recovery_codes(scene: BrowserScenario) -> None:
    _with_an_app(scene)
    _has(scene, "recovery_codes", {"codes": {}})


@page("/login/1/factors", main=True, names=True)
def choose_a_factor(scene: BrowserScenario) -> None:
    _has_recovery_codes(scene)
    _past_the_password(scene)
    scene.tab.follow("Use another method")


@page("/login/1/recovery_codes", main=True, names=True)
def recovery_code(scene: BrowserScenario) -> None:
    choose_a_factor(scene)
    scene.tab.press("Recovery codes")


@page("/login/1/recovery_codes/new", main=True, names=True)
def make_recovery_codes(scene: BrowserScenario) -> None:
    secret = _with_an_app(scene)
    scene.open("/login?target=/account/security&enrol=recovery_codes")
    scene.tab.send(login_name=scene.person.login_name)
    scene.tab.send(password=scene.person.password)
    scene.tab.send(code=pyotp.TOTP(secret).at(scene.site.world.clock()))


@page("/login/1/recovery_codes/new", main=True, names=True)
def recovery_codes_made(scene: BrowserScenario) -> None:
    make_recovery_codes(scene)
    scene.tab.send()
