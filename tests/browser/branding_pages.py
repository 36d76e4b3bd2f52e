"""Branded pages and branding pages of the console, each with a function that opens it."""

import base64

from identity.domain.organizations import Organization
from identity.services.access_control import Principal
from identity.services.commands.branding import ChangeBranding
from identity.testing.relying_party import RelyingParty
from tests.browser.console_pages import APPLICATION, ORGANIZATION, enter, keep, sent, show_page
from tests.browser.page_scenarios import LONG, LONG_WORD, BrowserScenario, page

#: A wide, dark word mark with a script that the sanitizer must remove.
MARK = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="220" height="40" onload="alert(1)"><script>alert(1)</script>'
    '<defs><linearGradient id="a"><stop offset="0" stop-color="#0b5a3c"/><stop offset="1" stop-color="#1d9a6c"/>'
    '</linearGradient></defs><rect width="40" height="40" rx="20" fill="url(#a)"/>'
    '<text x="52" y="29" font-size="26" font-weight="700" fill="#12261d">Northwind</text></svg>'
)

BRANDING = ChangeBranding.build(
    display_name="Northwind",
    accent="#0b5a3c",
    accent_dark="#8fdcb8",
    support="help@northwind.example",
    terms_url="https://northwind.example/terms",
    privacy_url="https://northwind.example/privacy",
    login_title={"en": "Welcome to Northwind", "de": "Willkommen bei Northwind"},
    mail_sender={"en": "Northwind accounts"},
    mail_intro={"en": "Dear customer of Northwind,"},
    mail_footer={"en": "Northwind Traders Ltd, 1 Sea Road, London\nRegistered in England, number 12345678"},
    logo=base64.b64encode(MARK.encode()).decode(),
)

#: The longest allowed texts.
LONG_BRANDING = ChangeBranding.build(
    display_name=LONG,
    accent="#0b5a3c",
    support=f"https://{'a' * 60}.example/{LONG_WORD}",
    terms_url=f"https://northwind.example/{LONG_WORD}",
    privacy_url=f"https://northwind.example/{LONG_WORD}",
    login_title={"en": LONG[:100], "de": LONG_WORD[:100]},
)


def branded(scene: BrowserScenario) -> Organization:
    """A new organization with branding."""
    site = scene.site
    organization: Organization = site.world.make_organization()
    with site.world.transaction_services() as services:
        command = LONG_BRANDING if scene.long else BRANDING
        services.branding.change(organization, command, principal=Principal.OPERATOR)
        found = services.storage.organizations.find(organization.id)
    assert found is not None
    return found


def make_branded_application(scene: BrowserScenario) -> RelyingParty:
    """An application of a branded organization."""
    return scene.site.make_application(LONG_WORD if scene.long else "Invoices", branded(scene))


@page("/login/1", main=True, names=True)
def branded_login_name(scene: BrowserScenario) -> None:
    scene.site.ask(scene.tab, make_branded_application(scene), scope="openid profile email")


@page("/login/1/password", names=True)
def branded_password(scene: BrowserScenario) -> None:
    scene.site.ask(scene.tab, make_branded_application(scene), scope="openid profile email")
    scene.tab.send(login_name=scene.person.login_name)


@page("/password/reset/1", names=True)
def branded_reset(scene: BrowserScenario) -> None:
    person = scene.site.make_user(organization=branded(scene))
    with scene.site.world.transaction_services() as services:
        link = services.passwords.issue_reset_link(person.user.id)
    scene.tab.open(link)


# --- the console ------------------------------------------------------------------------------------------------------

_ORGANIZATION, _APPLICATION = f"{ORGANIZATION}/branding/edit", f"{APPLICATION}/branding/edit"

show_page("console-branding-tab", f"{ORGANIZATION}/branding", names=True)
show_page("console-application-branding-tab", f"{APPLICATION}/branding", names=True)

show_page("console-branding", _ORGANIZATION, main=True, names=True)
show_page("console-application-branding", _APPLICATION, names=True)
sent("console-branding-refused", _ORGANIZATION, accent="#ffcc00", accent_dark="#2540ad", support="nobody")
show_page("console-mail-texts", f"{ORGANIZATION}/mail-texts", names=True)
show_page("console-mail-text", f"{ORGANIZATION}/mail-texts/invitation/en", main=True, names=True)
show_page("console-instance-mail-texts", "/instance/mail-texts")
show_page("console-instance-mail-text", "/instance/mail-texts/invitation/de")
show_page("console-logo", f"{ORGANIZATION}/branding/logo")
show_page("console-application-logo", f"{APPLICATION}/branding/logo")
show_page("console-logo-dark", f"{ORGANIZATION}/branding/logo-dark")
show_page("console-application-logo-dark", f"{APPLICATION}/branding/logo-dark")
sent("console-logo-missing", f"{ORGANIZATION}/branding/logo")


def _previewed(scene: BrowserScenario) -> None:
    enter(scene, _ORGANIZATION)
    tab = scene.tab
    tab.fill(display_name="Northwind", accent="#6d1247", accent_dark="#f0b8d6", support="help@northwind.example")
    with tab.leaving():
        tab.find("button[name=preview]").click()


keep("console-branding-preview", _previewed, _ORGANIZATION, main=True)
