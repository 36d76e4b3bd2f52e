"""Pages of second factors, each with the way to it."""

import pyotp

from identity.domain.policies import Policy, SecondFactor
from tests.browser.scene import Scene, page


def _required(scene: Scene) -> None:
    with scene.site.world.transaction() as services:
        services.policies.change(scene.organization.id, Policy(second_factor=SecondFactor.REQUIRED))


def _with_an_app(scene: Scene) -> str:
    """The person has an authenticator app; its secret."""
    secret = pyotp.random_base32()
    with scene.site.world.transaction() as services:
        subject = services.storage.users.find_subject(scene.person.user.id)
        assert subject is not None
        services.factors.add(subject, "totp", {"secret": secret, "step": 0}, name="My phone")
    return secret


def _past_the_password(scene: Scene) -> None:
    scene.ask_with_name()
    scene.tab.send(password=scene.person.password)


@page("/login/1/factors/new", main=True, names=True)
def choose_a_new_factor(scene: Scene) -> None:
    _required(scene)
    _past_the_password(scene)


@page("/login/1/totp/new", main=True, names=True)
def set_up_an_app(scene: Scene) -> None:
    scene.sign_in()
    scene.open("/login?target=/account/security&enrol=totp")


@page("/login/1/totp/new", main=True, status=422)
def set_up_an_app_errors(scene: Scene) -> None:
    set_up_an_app(scene)
    scene.tab.send(code="123", name="")


@page("/login/1/totp", main=True, names=True)
def code_of_an_app(scene: Scene) -> None:
    _with_an_app(scene)
    _past_the_password(scene)


@page("/login/1/totp", status=422)
def code_of_an_app_wrong(scene: Scene) -> None:
    code_of_an_app(scene)
    scene.tab.send(code="12345")
