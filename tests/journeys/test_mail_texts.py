"""Own texts of mails: they surround what the service says, and never change or hide its link."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from identity.domain.errors import Denied, Invalid
from identity.domain.mail_texts import (
    MailKind,
    MailText,
    mail_text_errors,
    normalize_mail_text,
)
from identity.domain.messages import LANGUAGES
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.pages.mail_rendering import render_mail_content, render_mail_html
from identity.pages.page_branding import DEFAULT_PAGE_BRANDING
from identity.pages.rendering import PageRenderer
from identity.pages.translation import LOCALE_DIR
from identity.services.access_control import Principal
from identity.services.commands.mail_texts import ChangeMailTexts
from identity.services.desired_state.apply import apply_desired_state, parse_desired_state
from identity.services.organization_transfer import OrganizationTransfer
from identity.testing.fixtures import WorldFactory
from identity.testing.world import World
from tests.journeys.test_branded_mail import drawn, letter_of_reset, make_user_with_password
from tests.mail_server import ReceivingMailServer, extract_one_time_link, message_text

pytestmark = pytest.mark.storages("memory")


@pytest.fixture
def world(mailing: World) -> World:
    return mailing


@pytest.fixture
def organization(world: World) -> Organization:
    return world.make_organization(registration=True)


def change(
    world: World,
    organization: Organization | None,
    texts: dict[str, Any],
    principal: Principal = Principal.OPERATOR,
) -> Any:
    with world.transaction_services() as services:
        command = ChangeMailTexts.decode({"texts": texts})
        return services.mail_texts.change(organization, command, principal=principal)


def refusal(world: World, organization: Organization | None, **text: str) -> dict[str, str]:
    with pytest.raises(Invalid) as refused:
        change(world, organization, {"password_reset": {"en": text}})
    return {name.removeprefix("texts.password_reset.en."): str(item) for name, item in refused.value.fields.items()}


# --- mails ------------------------------------------------------------------------------------------------------------


def test_text_surrounds_what_the_service_says(
    world: World, post: ReceivingMailServer, organization: Organization
) -> None:
    custom = {
        "subject": "Hello {name}",
        "intro": "Dear {name},\n\nyou are {login_name}.",
        "closing": "Your {service} team",
    }
    change(world, organization, {"password_reset": {"en": custom}})
    login_name = make_user_with_password(world, organization)
    letter = letter_of_reset(world, post, login_name)
    person = str(letter["Subject"]).removeprefix("Hello ")
    text, link = message_text(letter), extract_one_time_link(letter)
    assert text.startswith(f"Dear {person},\n\nyou are {login_name}.\n\nSomebody, probably you,")
    assert f"\n\n{link}\n\n" in text
    assert "If it was not you, do nothing" in text
    assert text.endswith("\n\nYour Identity team\n")
    assert [element.attrib["href"] for element in drawn(letter).iter("a")] == [link]


def test_only_the_language_of_the_text_changes(
    world: World, post: ReceivingMailServer, organization: Organization
) -> None:
    change(world, organization, {"password_reset": {"de": {"intro": "Guten Tag,"}}})
    english = letter_of_reset(world, post, make_user_with_password(world, organization))
    assert message_text(english).startswith("Somebody, probably you,")
    german = letter_of_reset(world, post, make_user_with_password(world, organization, "de-CH"))
    assert message_text(german).startswith("Guten Tag,\n\n")


def test_organization_text_replaces_that_of_the_instance(make_world: WorldFactory, post: ReceivingMailServer) -> None:
    world = make_world(**post.settings)
    organization = world.make_organization()
    change(world, None, {"password_reset": {"en": {"subject": "Ours", "intro": "See https://help.example/"}}})
    change(world, organization, {"password_reset": {"en": {"intro": "Theirs."}}})
    letters = [
        letter_of_reset(world, post, make_user_with_password(world, owner))
        for owner in (organization, world.make_organization())
    ]
    assert [str(letter["Subject"]) for letter in letters] == ["Choose a new password", "Ours"]
    assert message_text(letters[0]).startswith("Theirs.\n\nSomebody, probably you,")
    # An address in a text of the instance stays text: only the service's links are buttons.
    assert "help.example" in message_text(letters[1])
    assert all("help.example" not in element.attrib["href"] for element in drawn(letters[1]).iter("a"))


def test_every_template_is_a_known_mail() -> None:
    folder = LOCALE_DIR.parent / "templates" / "mails"
    assert {path.stem for path in folder.glob("*.txt")} == {kind.value for kind in MailKind}


# --- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example",
        "evil.example",
        "Visit www.evil today",
        "a@evil.example",
        "evil\uff0eexample",
        "{organization}.com",
        "evil.{name}",
        "//evil",
        "\\\\evil\\share",
    ],
)
def test_organizations_cannot_lead_elsewhere(world: World, organization: Organization, text: str) -> None:
    assert refusal(world, organization, intro=text, closing=text, subject=text).keys() == {
        "intro",
        "closing",
        "subject",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Dear {surname}", "Use only these placeholders: {service}, {organization}, {login_name}, {name}."),
        ("Dear {name", "Use only these placeholders"),
        ("Dear x{name}", "Put a space"),
        ("{login_name}x", "Put a space"),
        ("a\u202eb", "printable"),
        ("a\u200bb", "printable"),
        ("Hello\n-- \nthe end", "mail programs hide"),
        ("> Hello", "mail programs hide"),
        ("x\n" * 25 + "x", "at most 25 lines"),
        ("x" * 1501, "at most 1500 characters"),
    ],
)
def test_unfit_texts_are_refused_everywhere(world: World, organization: Organization, text: str, message: str) -> None:
    for owner in (organization, None):
        assert message in refusal(world, owner, intro=text)["intro"]


def test_mails_to_strangers_have_no_name(world: World, organization: Organization) -> None:
    with pytest.raises(Invalid, match="placeholders"):
        change(world, organization, {"registration_link": {"en": {"intro": "Dear {name},"}}})
    with pytest.raises(Invalid, match="Only the instance"):
        change(world, organization, {"password_reset_accounts": {"en": {"intro": "Hello"}}})


def test_texts_need_permission(world: World, organization: Organization) -> None:
    other_users = world.make_organization()
    for owner, manages in ((None, organization), (organization, other_users)):
        with world.transaction_services() as services:
            manager = world.make_manager_program("ORG_OWNER", resource=Resource.of_organization(manages.id))
            subject = services.storage.users.find_subject(manager.id)
            assert subject is not None
            principal = services.access_control.load_principal(subject)
        with pytest.raises(Denied):
            change(world, owner, {"invitation": {"en": {"intro": "Welcome."}}}, principal)


_ALPHABET = st.sampled_from([*list("ab .{}/:@-_>\\\n"), "www", "{name}", "{organization}", "com", "。", "é"])
_TEXTS = st.lists(_ALPHABET, max_size=25).map("".join)
#: What mail programs make a link of.
_SEEN_AS_LINK = re.compile(r"[a-z]+://\S+|www\.\S+|(?<![\w@.])[\w-]+(\.[\w-]+)*\.[a-z]{2,}\b", re.IGNORECASE)
_LINK = "https://id.example.com/password/reset/abcdef"


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much])
@given(intro=_TEXTS, closing=_TEXTS, subject=_TEXTS, name=_TEXTS, organization_name=_TEXTS)
def test_accepted_text_leaves_the_only_link_visible(
    world: World, intro: str, closing: str, subject: str, name: str, organization_name: str
) -> None:
    pages: PageRenderer = world.app.registry.pages
    text = normalize_mail_text(MailText(subject=subject, intro=intro, closing=closing))
    assume(not mail_text_errors(MailKind.PASSWORD_RESET, text, allows_links=False))
    translator = pages.catalogs.translator(LANGUAGES[0])
    values = {
        "login_name": "anna@localhost",
        "person_name": name,
        "organization": organization_name,
        "link": _LINK,
        "works_once": "It works once.",
    }
    content = render_mail_content(pages, "password_reset", values, translator, DEFAULT_PAGE_BRANDING, text)
    paragraphs = content.text.split("\n\n")
    assert _LINK in paragraphs
    assert [found[0] for found in _SEEN_AS_LINK.finditer(content.text)] == [_LINK]
    assert not _SEEN_AS_LINK.search(content.subject)
    assert "\n" not in content.subject
    html = render_mail_html(pages, content, translator)
    assert re.findall(r'href="([^"]*)"', html) == [_LINK]
    assert html.count(_LINK) == 2
    assert "If it was not you, do nothing" in html


# --- documents --------------------------------------------------------------------------------------------------------


def test_texts_are_applied_exported_and_deleted(world: World, organization: Organization) -> None:
    custom = {"invitation": {"en": {"intro": "Welcome."}}}
    document = {
        "version": 1,
        "organizations": [
            {"name": organization.name, "primary_domain": organization.primary_domain, "mail_texts": {"texts": custom}}
        ],
    }
    for expected in (1, 0):
        with world.transaction_services() as services:
            result = apply_desired_state(services, parse_desired_state(document), principal=Principal.OPERATOR)
            assert len(result.state_changes) == expected
    with world.transaction_services() as services:
        exported = OrganizationTransfer(services).export_document(organization.id, principal=Principal.OPERATOR)
        assert json.loads("".join(exported))["organization"]["mail_texts"] == {"texts": custom}
        services.organizations.remove(organization.id, principal=Principal.OPERATOR)
        assert not services.mail_texts.get(organization).texts


def test_empty_text_brings_the_usual_one_back(world: World, organization: Organization) -> None:
    first = change(world, organization, {"invitation": {"en": {"intro": "Welcome."}, "de": {"intro": "Hallo."}}})
    assert first.version == 1
    assert change(world, organization, {"invitation": {"en": {"intro": " Welcome. "}}}).version == 1
    after = change(world, organization, {"invitation": {"en": None, "de": {"intro": " "}}})
    assert (after.version, after.texts) == (2, {})
    [event, _first] = world.audit_events(event="mail_text.changed", object_id=organization.id)
    assert event.detail["invitation.en"] == {"before": {"intro": "Welcome."}, "after": {}}
