"""Branded mails: the organization's texts, as plain text and as HTML that loads nothing."""

import re
from typing import Any
from xml.etree.ElementTree import Element

import html5lib
import pytest

from identity.domain.organizations import Organization
from identity.services.access_control import Principal
from identity.services.commands.branding import ChangeBranding
from identity.services.commands.users import ChangeProfile
from identity.testing.browser import Browser, set_password
from identity.testing.world import World
from tests.mail_server import ReceivingMailServer, extract_one_time_link, message_html, message_text

pytestmark = pytest.mark.storages("memory")

HOSTILE = "<img src=https://evil.example/x onerror=alert(1)></p><script>alert(1)</script>{{ 7*7 }}"


@pytest.fixture
def world(mailing: World) -> World:
    return mailing


@pytest.fixture
def organization(world: World) -> Organization:
    return world.make_organization(registration=True)


def brand(world: World, organization: Organization, **members: Any) -> None:
    with world.transaction_services() as services:
        services.branding.change(organization, ChangeBranding.build(**members), principal=Principal.OPERATOR)


def make_user_with_password(world: World, organization: Organization, locale: str = "") -> str:
    person = world.make_human_user(organization)
    with world.transaction_services() as services:
        services.users.change_profile(person.id, ChangeProfile(email="ada@acme.example", locale=locale))
    return set_password(world, person)


def letter_of_reset(world: World, post: ReceivingMailServer, login_name: str) -> Any:
    browser = Browser(world)
    browser.open("/password/reset")
    browser.submit({"login_name": login_name}, form="page-form")
    world.identity.senders["mail"].send_due()
    return post.pop_only_message() if post.received_messages else None


def drawn(letter: Any) -> Element:
    """The parsed HTML; raises ParseError if it is not strict HTML."""
    tree: Element = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(message_html(letter))
    return tree


def words_of(tree: Element) -> list[str]:
    body = tree.find("body")
    assert body is not None
    return " ".join(body.itertext()).split()


def test_mail_has_equal_text_and_html_parts(
    world: World, post: ReceivingMailServer, organization: Organization
) -> None:
    login_name = make_user_with_password(world, organization)
    letter = letter_of_reset(world, post, login_name)
    assert letter.get_content_type() == "multipart/alternative"
    assert [iter_part.get_content_type() for iter_part in letter.iter_parts()] == ["text/plain", "text/html"]
    tree, text = drawn(letter), message_text(letter)
    assert [element.attrib["href"] for element in tree.iter("a")] == [extract_one_time_link(letter)]
    # The HTML adds the organization's name, the subject and the label of the button.
    assert sorted(words_of(tree)) == sorted(f"Identity Choose a new password Open the link {text}".split())
    assert tree.findtext(".//title") == letter["Subject"] == "Choose a new password"
    # It loads nothing when it is opened.
    assert not re.search(r"<(img|link|script|iframe)|url\(|@import|src=", message_html(letter))
    assert "prefers-color-scheme: dark" in message_html(letter)
    assert letter["From"] == "Identity <no-reply@id.example.com>"


def test_mail_has_the_branding_of_the_organization(
    world: World, post: ReceivingMailServer, organization: Organization
) -> None:
    brand(
        world,
        organization,
        display_name="Acme",
        accent="#0b5a3c",
        support="help@acme.example",
        mail_sender={"en": "Acme Köln", "de": "Konten bei Acme"},
        mail_intro={"en": "Dear customer,"},
        mail_footer={"en": "Acme Ltd\nLondon", "de": "Acme GmbH"},
        login_title={"en": "x"},
    )
    login_name = make_user_with_password(world, organization)
    letter = letter_of_reset(world, post, login_name)
    assert str(letter["From"]) == "Acme Köln <no-reply@id.example.com>"
    text = message_text(letter)
    assert text.startswith("Dear customer,\n\nSomebody, probably you,")
    assert text.endswith("\n\nAcme Ltd\nLondon\n\nDo you need help? help@acme.example\n")
    tree = drawn(letter)
    assert "background: #0b5a3c" in message_html(letter)
    assert words_of(tree)[0] == "Acme"
    assert {"London", "help@acme.example"} <= set(words_of(tree))

    german = make_user_with_password(world, organization, "de-CH")
    letter = letter_of_reset(world, post, german)
    assert str(letter["From"]) == "Konten bei Acme <no-reply@id.example.com>"
    assert "Dear customer" not in message_text(letter)
    assert "Acme GmbH" in message_text(letter)


def test_notices_have_the_branding(world: World, post: ReceivingMailServer, organization: Organization) -> None:
    brand(world, organization, mail_sender={"en": "Acme"}, mail_intro={"en": "Dear customer,"})
    login_name = make_user_with_password(world, organization)
    reader = Browser(world)
    reader.open(extract_one_time_link(letter_of_reset(world, post, login_name)))
    new = "a new and longer password"
    reader.submit({"new_password": new, "new_password_again": new}, form="page-form")
    world.identity.senders["mail"].send_due()
    letter = post.pop_only_message()
    assert letter["Subject"] == "Your password was changed"
    assert str(letter["From"]) == "Acme <no-reply@id.example.com>"
    assert message_text(letter).startswith("Dear customer,\n\n")
    assert "Dear" in words_of(drawn(letter))


def test_hostile_words_stay_words(world: World, post: ReceivingMailServer, organization: Organization) -> None:
    brand(
        world,
        organization,
        display_name=HOSTILE,
        mail_intro={"en": HOSTILE},
        mail_footer={"en": HOSTILE},
        support="https://acme.example/&lt;",
    )
    letter = letter_of_reset(world, post, make_user_with_password(world, organization))
    tree = drawn(letter)
    assert not [*tree.iter("img"), *tree.iter("script")]
    assert message_text(letter).count(HOSTILE) == 2
    assert "".join(tree.itertext()).count(HOSTILE) == 3
    assert [element.attrib["href"] for element in tree.iter("a")] == [extract_one_time_link(letter)]


def test_unknown_login_name_takes_the_same_work(
    world: World, post: ReceivingMailServer, organization: Organization
) -> None:
    brand(world, organization, mail_intro={"en": "Dear customer,"})
    known = make_user_with_password(world, organization)
    requested: list[list[str]] = []
    with world.read_only_services() as services:
        store = type(services.storage.records)
    find = store.find

    def watched(self: Any, plugin: str, kind: str, key: bytes) -> Any:
        requested[-1].append(kind)
        return find(self, plugin, kind, key)

    for name in (known, f"nobody@{organization.primary_domain}"):
        requested.append([])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "find", watched)
            browser = Browser(world)
            browser.open("/password/reset")
            browser.submit({"login_name": name}, form="page-form")
    assert requested[0] == requested[1]
    assert requested[0].count("branding") == 1
    world.identity.senders["mail"].send_due()
    assert post.recipients == ["ada@acme.example"]
