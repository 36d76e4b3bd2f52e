"""Branding in the console: editing, preview, colours with too little contrast, and the logo."""

import io
from typing import Any

import pytest
from PIL import Image
from webtest import Upload

from identity.domain.organizations import Organization
from identity.testing.browser import Browser
from identity.testing.relying_party import RelyingParty
from identity.testing.world import World
from tests.plugins.console.conftest import SignIn

DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 4" onload="alert(1)"><path d="M0 0h9v4z"/></svg>'


@pytest.fixture
def party(world: World, organization: Organization) -> RelyingParty:
    return RelyingParty.register(world, name="Invoices", project_id=world.make_project(organization).id)


@pytest.fixture
def of_organization(organization: Organization) -> str:
    return f"/console/organizations/{organization.id}"


@pytest.fixture
def of_application(party: RelyingParty) -> str:
    return f"/console/applications/{party.client_id}"


def preview(browser: Browser, **fields: str) -> Any:
    return browser.submit(fields, button=("preview", "yes"), form="page-form")


def test_branding_form_stores_branding(world: World, owner: Browser, of_organization: str) -> None:
    owner.open(f"{of_organization}/branding")
    page = owner.click("Change Branding")
    assert page.html.h1.text.startswith("Branding of ")
    page = owner.submit(
        {"display_name": "Acme", "accent": "#0B5A3C", "login_title_de": "Willkommen", "mail_footer_en": "One\r\nTwo"},
        form="page-form",
    )
    assert "The changes are saved." in page
    assert page.html.find(id="looks").find("dd").text.strip() == "Acme"
    assert "#0b5a3c" in page.html.find(id="looks").text
    assert "Deutsch" in page.html.find(id="looks").text
    form = owner.open(f"{of_organization}/branding/edit").forms["page-form"]
    values = {name: form[name].value for name in ("display_name", "accent", "login_title_de", "login_title_en")}
    assert values == {"display_name": "Acme", "accent": "#0b5a3c", "login_title_de": "Willkommen", "login_title_en": ""}
    assert form["mail_footer_en"].value == "One\nTwo"


def test_branding_preview_saves_nothing(
    world: World, owner: Browser, organization: Organization, of_organization: str
) -> None:
    owner.open(f"{of_organization}/branding/edit")
    page = preview(
        owner,
        display_name="Acme",
        accent="#0b5a3c",
        accent_dark="#8fdcb8",
        login_title_de="Willkommen",
        mail_sender_de="Acme Konten",
        mail_intro_de="Guten Tag,",
        support="help@acme.example",
        preview_language="de",
    )
    assert page.status_int == 200
    preview_element = page.html.find(id="preview")
    assert preview_element.link["href"] == "/preview/0b5a3c-8fdcb8.css"
    assert [item.text for item in preview_element.select(".looks__title")] == ["Willkommen"] * 2
    assert {item.text.strip() for item in preview_element.select(".brand")} == {"Acme"}
    assert "Acme Konten" in preview_element.text
    assert preview_element.select(".mail p")[1].text == "Guten Tag,"
    assert "Neues Passwort wählen" in preview_element.text
    assert not preview_element.select("a[href], input, [id]:not(#preview):not(#preview-title)")
    # The form keeps its values.
    assert owner.find_form("page-form")["login_title_de"].value == "Willkommen"
    with world.read_only_services() as services:
        found = services.storage.organizations.find(organization.id)
        assert found is not None
        assert not found.branded
        assert found.version == organization.version
    assert "The changes are saved." in owner.submit(form="page-form")


def test_preview_stylesheet_has_light_and_dark_colours(world: World) -> None:
    answer = world.client.get(f"{world.identity.settings.login_url}/preview/0b5a3c-8fdcb8.css")
    assert (answer.status_int, answer.content_type) == (200, "text/css")
    light, dark = answer.text.split(".looks--dark {")
    assert light.startswith(".looks--light {")
    assert "--color-page: #f4f5fa;" in light
    assert "--color-page: #0e111b;" in dark
    assert light.rindex("--color-accent: #0b5a3c;") > light.rindex("--color-accent: #2c41b8;")
    assert "--color-accent: #8fdcb8;" in dark
    assert ".mail .mail__button" in dark


def test_invalid_branding_shows_field_errors_and_previews_the_rest(owner: Browser, of_organization: str) -> None:
    owner.open(f"{of_organization}/branding/edit")
    wrong = {"accent": "#ffcc00", "mail_sender_fr": "a@b", "login_title_zh": "x" * 101, "terms_url": "acme"}
    for send in (preview, lambda browser, **fields: browser.submit(fields, form="page-form")):
        page = send(owner, display_name="Acme", **wrong)
        assert page.status_int == 422
        assert "The closest readable colour is #856a00." in page.html.find(id="error-accent").text
        assert all(page.html.find(id=f"error-{name}") for name in wrong)
        assert {item.text.strip() for item in page.html.select("#preview .brand")} == {"Acme"}
        assert page.html.find(id="preview").link["href"].startswith("/preview/2c41b8-")
        # Groups with an error are open.
        assert [item.summary.text for item in page.html.select("main details[open]")] == ["Français", "中文"]
        form = owner.find_form("page-form")
        assert {name: form[name].value for name in wrong} == wrong


def test_concurrent_branding_change_is_refused(owner: Browser, sign_in: SignIn, of_organization: str) -> None:
    browser = sign_in()
    for item in (owner, browser):
        item.open(f"{of_organization}/branding/edit")
    owner.submit({"display_name": "First"}, form="page-form")
    page = browser.submit({"display_name": "Second"}, form="page-form")
    assert page.status_int == 409
    assert "First" in page.html.find(id="saved-display_name").text
    assert "The changes are saved." in browser.submit(form="page-form")


def test_logo_upload_and_removal(world: World, owner: Browser, of_organization: str, of_application: str) -> None:
    for page_of in (of_organization, of_application):
        owner.open(f"{page_of}/branding/logo")
        assert owner.submit(form="page-form").status_int == 422
        page = owner.submit({"logo": Upload("logo.svg", DRAWING)}, form="page-form")
        assert "The changes are saved." in page
        [picture] = page.html.select("#looks img")
        answer = owner.open(picture["src"])
        assert (answer.content_type, b"onload" in answer.body) == ("image/svg+xml", False)
        page = owner.open(f"{page_of}/branding/edit")
        assert {item["src"] for item in page.html.select("#preview img")} == {picture["src"]}
        owner.open(f"{page_of}/branding/logo")
        page = owner.submit(button=("remove", "yes"), form="page-form")
        assert not page.html.select("#looks img")


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (b"GIF89a" + bytes(99), 422, "Choose a PNG, WebP or SVG file."),
        (b'<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>', 422, "entities"),
        (bytes(530_000), 422, "larger than 512 KiB"),
        (bytes(600_000), 413, "larger than 512 KiB"),
    ],
)
def test_invalid_logo_is_refused(
    owner: Browser, of_organization: str, content: bytes, status: int, message: str
) -> None:
    owner.open(f"{of_organization}/branding/logo")
    page = owner.submit({"logo": Upload("logo.png", content)}, form="page-form")
    assert page.status_int == status
    assert message in page.html.find(id="error-logo").text


def test_large_logo_is_scaled_down(owner: Browser, of_organization: str) -> None:
    image = io.BytesIO()
    Image.effect_noise((600, 200), 80).save(image, "PNG")
    owner.open(f"{of_organization}/branding/logo")
    page = owner.submit({"logo": Upload("logo.png", image.getvalue())}, form="page-form")
    answer = owner.open(page.html.select_one("#looks img")["src"])
    assert answer.content_type == "image/webp"
    assert len(answer.body) <= 40 * 1024


def test_application_preview_inherits_organization_logo(
    owner: Browser, of_organization: str, of_application: str
) -> None:
    owner.open(f"{of_organization}/branding/logo")
    page = owner.submit({"logo": Upload("logo.svg", DRAWING)}, form="page-form")
    logo = page.html.select_one("#looks img")["src"]
    page = owner.open(f"{of_application}/branding/edit")
    assert {item["src"] for item in page.html.select("#preview img")} == {logo}
    assert "to continue to Invoices" in page.html.find(id="preview").text


def test_viewer_has_no_branding_buttons(sign_in: SignIn, of_organization: str, of_application: str) -> None:
    viewer = sign_in("ORG_OWNER_VIEWER")
    for page in (of_organization, of_application):
        assert viewer.open(f"{page}/branding").html.find(id="looks")
        assert not viewer.page.html.select("#looks a")
        assert viewer.open(f"{page}/branding/edit").status_int == 403
        assert viewer.open(f"{page}/branding/logo").status_int == 403


def test_branding_change_event_is_labelled(owner: Browser, of_organization: str) -> None:
    owner.open(f"{of_organization}/branding/edit")
    page = owner.submit({"login_title_de": "Willkommen", "mail_footer_en": "<b>Acme</b>"}, form="page-form")
    page = owner.open(page.html.select_one(".notice a")["href"])
    assert page.html.h1.text.startswith("Branding changed")
    assert "Willkommen" in page.html.main.text
    assert "<b>Acme</b>" in page.html.main.text
