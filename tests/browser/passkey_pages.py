"""Passkey pages, each with a function that opens it."""

from identity.crypto import base64url
from identity.services.commands.policies import ChangePolicy
from tests.browser.devtools_authenticator import DevToolsAuthenticator
from tests.browser.page_scenarios import BrowserScenario, page

#: A stored passkey without private key.
NOBODYS = {
    "id": base64url.encode(bytes(32)),
    "public_key": "",
    "sign_count": 0,
    "backup_eligible": True,
    "backed_up": True,
    "transports": ["internal"],
    "aaguid": "",
    "user_handle": base64url.encode(bytes(32)),
    "user_verified": True,
}


def _sent_without_an_answer(scene: BrowserScenario) -> None:
    """Submit as a browser without script."""
    with scene.tab.leaving():
        scene.tab.run("document.getElementById('page-form').submit()")


@page("/login/1/passkeys/new", main=True, names=True)
def add_a_passkey(scene: BrowserScenario) -> None:
    scene.sign_in()
    scene.open("/login?target=/account/security&enrol=passkeys")


@page("/login/1/passkeys/new", status=422)
def add_a_passkey_errors(scene: BrowserScenario) -> None:
    add_a_passkey(scene)
    _sent_without_an_answer(scene)


@page("/login/1/passkeys/new")
def add_a_passkey_that_is_there(scene: BrowserScenario) -> None:
    """The script's message below the form."""
    device = DevToolsAuthenticator(scene.tab)
    add_a_passkey(scene)
    scene.tab.send()
    device.present(False)
    add_a_passkey(scene)
    device.present(True)
    scene.tab.find(".button--primary").click()
    scene.tab.wait(lambda: "already has a passkey for your account" in scene.tab.text)


@page("/login/1/passkeys", main=True, names=True)
def confirm_with_a_passkey(scene: BrowserScenario) -> None:
    user_id = scene.person.user.id
    with scene.site.world.transaction_services() as services:
        subject = services.storage.users.find_subject(user_id)
        assert subject is not None
        services.factors.enrol(subject, "passkeys", NOBODYS, name="My laptop", key=f"nobody's {user_id}")
    scene.ask_with_name()
    scene.tab.send(password=scene.person.password)


@page("/login/1/passkeys", status=422)
def confirm_with_a_passkey_errors(scene: BrowserScenario) -> None:
    confirm_with_a_passkey(scene)
    _sent_without_an_answer(scene)


@page("/login/1/passkeys/alone", main=True, names=True)
def sign_in_with_a_passkey(scene: BrowserScenario) -> None:
    scene.ask()
    scene.open(f"{scene.tab.url.removeprefix(scene.site.url)}/passkeys/alone")


@page("/login/1/passkeys/alone", status=422)
def sign_in_with_a_passkey_errors(scene: BrowserScenario) -> None:
    sign_in_with_a_passkey(scene)
    _sent_without_an_answer(scene)


@page("/login/1/passkeys/alone", script=False)
def sign_in_with_a_passkey_without_script(scene: BrowserScenario) -> None:
    sign_in_with_a_passkey(scene)


@page("/login/1/passkeys/upgrade", script=False, main=True, names=True)
def save_a_passkey_after_a_password(scene: BrowserScenario) -> None:
    """Without script, since it goes on by itself otherwise."""
    organization_id = scene.person.user.organization_id
    with scene.site.world.transaction_services() as services:
        services.policies.change(organization_id, ChangePolicy(passkey_upgrade=True))
    scene.ask_with_name()
    scene.tab.send(password=scene.person.password)
