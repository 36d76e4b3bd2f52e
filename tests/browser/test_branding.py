"""Branding in a browser: colour schemes, inert logos, and the live preview."""

import base64
from dataclasses import fields
from pathlib import Path

import pytest
from PIL import Image

from identity.domain.branding import DEFAULT_BRANDING
from identity.services.access_control import Principal
from identity.services.commands.branding import ChangeBranding
from tests.browser.branding_pages import BRANDING, MARK, branded
from tests.browser.chromium import ChromiumProfile
from tests.browser.example_company import ExampleCompany
from tests.browser.page_scenarios import BrowserScenario
from tests.browser.tab import Tab
from tests.mail_server import message_html

_COLOUR = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
GREEN, LIGHT_GREEN = "rgb(11, 90, 60)", "rgb(143, 220, 184)"


@pytest.fixture
def scene(site: ExampleCompany, profile: ChromiumProfile, tab: Tab) -> BrowserScenario:
    return BrowserScenario(site, profile, tab)


@pytest.mark.thorough
def test_sign_in_shows_organization_branding(scene: BrowserScenario) -> None:
    site, tab = scene.site, scene.tab
    site.ask(tab, site.make_application("Invoices", branded(scene)))
    assert tab.heading == "Welcome to Northwind"
    for dark, colour in ((False, GREEN), (True, LIGHT_GREEN)):
        tab.look(dark=dark)
        assert tab.run(_COLOUR, ".button--primary", "backgroundColor") == colour
    logo = tab.find(".brand__logo")
    assert tab.run("return arguments[0].complete && arguments[0].naturalWidth > 0", logo)
    assert logo.size["height"] == 40
    # Opened directly, the logo is a document whose scripts do not run.
    tab.open(str(logo.get_property("src")))
    assert tab.run("return document.documentElement.localName") == "svg"
    assert tab.run("return document.querySelectorAll('script, [onload]').length") == 0


@pytest.mark.thorough
def test_logo_is_visible_on_dark_pages(scene: BrowserScenario) -> None:
    """On a light background, unless there is a logo for dark pages, which needs none."""
    site, tab = scene.site, scene.tab
    organization = branded(scene)
    party = site.make_application("Invoices", organization)
    tab.look(dark=True)
    site.ask(tab, party)
    assert tab.run(_COLOUR, ".brand__logo", "backgroundColor") == "rgb(255, 255, 255)"
    light = tab.run("return arguments[0].currentSrc", tab.find(".brand__logo"))
    with site.world.transaction_services() as services:
        command = ChangeBranding(logo_dark=base64.b64encode(MARK.replace("#12261d", "#ffffff").encode()).decode())
        services.branding.change(organization, command, principal=Principal.OPERATOR)
    for dark in (True, False):
        tab.look(dark=dark)
        tab.reload()
        logo = tab.find(".brand__logo")
        assert tab.run("return arguments[0].complete && arguments[0].naturalWidth > 0", logo)
        assert (tab.run("return arguments[0].currentSrc", logo) != light) is dark
        assert tab.run(_COLOUR, ".brand__logo", "backgroundColor") == "rgba(0, 0, 0, 0)"


@pytest.mark.thorough
def test_logo_upload(scene: BrowserScenario, tmp_path: Path) -> None:
    site, tab = scene.site, scene.tab
    organization = site.world.make_organization()
    site.start_session(scene.profile, site.make_manager(organization=organization))
    file = tmp_path / "logo.png"
    Image.effect_noise((1500, 300), 90).save(file)
    tab.open(f"{site.url}/console/organizations/{organization.id}/branding/edit")
    tab.follow("Logo", inside="main")
    tab.field("logo").send_keys(str(file))
    with tab.leaving():
        tab.press("Upload")
    assert tab.run("return arguments[0].naturalHeight", tab.find("#looks .brand__logo")) in (48, 72, 96, 144, 192)
    # An oversized file is refused with a page before it is parsed.
    file.write_bytes(bytes(3_000_000))
    tab.follow("Change", inside="#looks")
    tab.follow("Logo", inside="main")
    tab.field("logo").send_keys(str(file))
    with tab.leaving():
        tab.press("Upload")
    assert "The picture is larger than 512 KiB." in tab.text_of("#error-logo")


@pytest.mark.thorough
def test_branding_preview_follows_input(scene: BrowserScenario) -> None:
    site, tab = scene.site, scene.tab
    organization = branded(scene)
    site.start_session(scene.profile, site.make_manager(organization=organization))
    tab.open(f"{site.url}/console/organizations/{organization.id}/branding/edit")
    button = ".looks--light .looks__button"
    assert tab.run(_COLOUR, button, "backgroundColor") == GREEN
    assert tab.run(_COLOUR, ".looks--dark .looks__button", "backgroundColor") == LIGHT_GREEN
    tab.fill(accent="#6d1247", display_name="Southwind")
    tab.wait(lambda: tab.run(_COLOUR, button, "backgroundColor") == "rgb(109, 18, 71)")
    tab.wait(lambda: "Southwind" in tab.text_of("#preview .mail__name"))
    # Invalid values do not change the preview, and nothing is saved.
    tab.fill(accent="#ffcc0")
    tab.fill(accent_dark="#ffffff")
    tab.wait(lambda: tab.run(_COLOUR, ".looks--dark .looks__button", "backgroundColor") == "rgb(255, 255, 255)")
    assert tab.run(_COLOUR, button, "backgroundColor") == GREEN
    with site.world.read_only_services() as services:
        assert services.branding.own_branding(organization).accent == "#0b5a3c"


@pytest.mark.thorough
def test_mail_is_readable_in_light_and_dark(
    mailing_site: ExampleCompany, tab: Tab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    site = mailing_site
    assert site.post is not None
    organization = site.world.make_organization()
    with site.world.transaction_services() as services:
        services.branding.change(organization, BRANDING, principal=Principal.OPERATOR)
    person = site.make_user(organization=organization, email=site.make_email_address())
    tab.open(f"{site.url}/password/reset")
    tab.send(login_name=person.login_name)
    site.world.identity.senders["mail"].send_due()
    page = tmp_path_factory.mktemp("mail") / "mail.html"
    page.write_text(message_html(site.post.pop_only_message()))
    tab.open(page.as_uri())
    for dark, colour, ground in ((False, GREEN, "rgb(244, 245, 250)"), (True, LIGHT_GREEN, "rgb(14, 17, 27)")):
        tab.look(dark=dark)
        assert tab.run(_COLOUR, ".mail__button", "backgroundColor") == colour
        assert tab.run(_COLOUR, "body", "backgroundColor") == ground
    tab.size(320, 640)
    assert tab.run("return document.documentElement.scrollWidth <= 320")
    assert tab.run("return performance.getEntriesByType('resource').length") == 0


def test_branding_reset_removes_everything(scene: BrowserScenario) -> None:
    site, tab = scene.site, scene.tab
    organization = branded(scene)
    party = site.make_application("Invoices", organization)
    with site.world.transaction_services() as services:
        nothing = ChangeBranding.build(
            **{field.name: getattr(DEFAULT_BRANDING, field.name) for field in fields(DEFAULT_BRANDING)}
        )
        services.branding.change(organization, nothing, principal=Principal.OPERATOR)
    site.ask(tab, party)
    assert tab.heading == "Sign in"
    assert tab.find(".brand__name").text == "Identity"
    assert not tab.all("link[href^='/branding/']")
