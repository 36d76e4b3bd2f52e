"""Texts of mails in the console: list, form, preview and test mail."""

from identity.domain.mail_texts import INSTANCE_ONLY_KINDS, MailKind
from identity.domain.organizations import Organization
from identity.testing.browser import Browser
from identity.testing.world import World


def test_text_is_previewed_saved_and_reset(world: World, owner: Browser, organization: Organization) -> None:
    path = f"/console/organizations/{organization.id}"
    owner.open(f"{path}/branding")
    owner.click("Change Texts of mails")
    page = owner.click("Invitation to a new account")
    assert "Your new account" in page.html.find(id="preview").text
    page = owner.submit({"intro": "Dear {name},"}, button=("action", "preview"), form="page-form")
    preview = page.html.find(id="preview").text
    assert "Dear Anna Example," in preview
    assert "Open this link to choose a password:" in preview
    with world.read_only_services() as services:
        assert not services.mail_texts.get(organization).texts
    page = owner.submit({"intro": "Visit evil.example"}, form="page-form")
    assert "Leave out addresses of web pages" in page
    page = owner.submit({"intro": "Dear {name},"}, form="page-form")
    assert "The changes are saved." in page
    assert "English" in page.html.find(id="mails").text
    page = owner.click("Invitation to a new account")
    assert page.forms["page-form"]["intro"].value == "Dear {name},"
    page = owner.submit({}, button=("action", "reset"), form="page-form")
    assert "English" not in page.html.find(id="mails").text


def test_unknown_mails_have_no_page(owner: Browser, organization: Organization) -> None:
    path = f"/console/organizations/{organization.id}/mail-texts"
    for missing in ("nothing/en", "invitation/xx", "password_reset_accounts/en", "impersonated/en"):
        assert owner.open(f"{path}/{missing}").status_int == 404


def test_every_mail_has_a_preview(owner: Browser, organization: Organization) -> None:
    path = f"/console/organizations/{organization.id}/mail-texts"
    for kind in set(MailKind) - INSTANCE_ONLY_KINDS:
        page = owner.open(f"{path}/{kind}/de")
        assert page.html.select_one("#preview .mail__title").text, kind


def test_markup_in_a_text_is_shown_as_text(owner: Browser, organization: Organization) -> None:
    owner.open(f"/console/organizations/{organization.id}/mail-texts/password_reset/en")
    page = owner.submit({"intro": "<b>Hello</b> & welcome"}, form="page-form", button=("action", "preview"))
    assert page.status_int == 200
    mail = page.html.select_one(".mail")
    assert "<b>Hello</b> & welcome" in mail.get_text()
    assert not [bold for bold in mail.find_all("b") if bold.get_text() == "Hello"]
