"""Language negotiation, and language changes on forms."""

from typing import Any

import pytest

from identity.domain.messages import Message, gettext_lazy, ngettext_lazy
from identity.http.language_negotiation import LANGUAGES, choose_language
from identity.pages.translation import MessageCatalog, MessageCatalogs, Translator

from .conftest import PageBrowser, SamplePage


def test_language_negotiation() -> None:
    for ui_locales, language in {
        "de-CH": "de",
        "xx fr-CA de": "fr",
        "zh-Hans": "zh",
        "ZH": "zh",
        "deutsch": "en",
    }.items():
        assert choose_language(ui_locales, accept_language="") == language
    assert choose_language("de" * 5000, accept_language="") == "en"
    assert choose_language("de", accept_language="fr") == "de"
    assert choose_language("xx", accept_language="it") == "it"
    for header, language in {
        "": "en",
        "de-DE,de;q=0.9,en;q=0.8": "de",
        "en;q=0.1, es;q=0.9": "es",
        "de;q=0, fr;q=0.2": "fr",
        "xx, *": "en",
        "de;q=nonsense, it;q=0.1": "it",
        ";;;,,=": "en",
    }.items():
        assert choose_language("", accept_language=header) == language


@pytest.mark.parametrize("language", LANGUAGES)
def test_html_has_lang_attribute(browser: PageBrowser, language: str) -> None:
    assert f'<html lang="{language}">' in browser.get(f"/one?ui_locales={language}").text
    assert f'<html lang="{language}">' in browser.get("/nowhere", accept_language=language).text


def test_language_button_keeps_input(browser: PageBrowser) -> None:
    answer = browser.send("/things/new", {"name": "Kept", "ui_locales": "de"})
    assert answer.status_int == 200
    assert '<html lang="de">' in answer.text
    form = answer.forms["page-form"]
    assert form["name"].value == "Kept"
    assert form.action == "/things/new?ui_locales=de"
    assert SamplePage.submitted == []
    assert '<html lang="de">' in browser.post(form.action, {"name": "Kept"}).text


def test_unknown_language_is_ignored(browser: PageBrowser) -> None:
    answer = browser.send("/things/new", {"name": "Kept", "ui_locales": "tlh"})
    assert '<html lang="en">' in answer.text
    assert answer.forms["page-form"]["name"].value == "Kept"


def test_language_links(browser: PageBrowser) -> None:
    """Buttons on pages with a form, otherwise links that keep other parameters."""
    answer = browser.get("/one")
    assert answer.text.count('form="page-form" name="ui_locales"') == len(LANGUAGES) - 1
    assert 'href="?a=%26&amp;ui_locales=de"' in browser.get("/nowhere?a=%26&ui_locales=fr").text


def german_translator(**messages: Any) -> Translator:
    return Translator("de", MessageCatalog({key.replace("_", " "): value for key, value in messages.items()}))


def test_translation_escapes_values() -> None:
    german = Translator("de", MessageCatalog({"Use {n} of {name}.": ("Von {name} <b> nur {n}.",)}))
    message = gettext_lazy("Use {n} of {name}.", n=3, name="<x>")
    assert str(message) == "Use 3 of <x>."
    assert german.gettext(message) == "Von &lt;x&gt; &lt;b&gt; nur 3."
    assert german.gettext("Use {n} of {name}.", n=1, name="y") == "Von y &lt;b&gt; nur 1."
    assert german.gettext("Not there {x}.", x="<") == "Not there &lt;."


def test_translation_keeps_markup_values() -> None:
    from markupsafe import Markup

    assert german_translator().gettext("Go to {link}.", link=Markup("<a>b</a>")) == "Go to <a>b</a>."


def test_lazy_plural_follows_language() -> None:
    """Babel's rules: French counts 0 as one, Chinese has one form."""
    expected = {
        language: [
            MessageCatalogs()
            .translator(language)
            .gettext(ngettext_lazy("Try again in {n} second.", "Try again in {n} seconds.", n))
            for n in (1, 2)
        ]
        for language in LANGUAGES
    }
    assert expected["en"] == ["Try again in 1 second.", "Try again in 2 seconds."]
    assert expected["de"] == [
        "Versuchen Sie es in 1 Sekunde noch einmal.",
        "Versuchen Sie es in 2 Sekunden noch einmal.",
    ]
    assert expected["fr"] == ["Réessayez dans 1 seconde.", "Réessayez dans 2 secondes."]
    assert expected["zh"] == ["请在 1 秒后重试。", "请在 2 秒后重试。"]
    assert str(ngettext_lazy("{n} key", "{n} keys", 1)) == "1 key"


def test_plural_forms() -> None:
    english, polish = (
        Translator("en", MessageCatalog()),
        Translator("pl", MessageCatalog({"one": ("1", "2-4 {n}", "5 {n}")}, lambda n: min(n, 2))),
    )
    assert [english.ngettext("{n} key", "{n} keys", n) for n in (0, 1, 2)] == ["0 keys", "1 key", "2 keys"]
    assert polish.ngettext("one", "many", 2) == "5 2"


def test_lazy_message_is_a_string() -> None:
    message = gettext_lazy("Hello {name}.", name="Ada")
    assert message == "Hello Ada."
    assert isinstance(message, (str, Message))
    assert (message.template, message.values) == ("Hello {name}.", {"name": "Ada"})
    assert gettext_lazy("No {places} filled.").template == "No {places} filled."


def test_catalogs_are_read_at_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    from identity.pages import translation

    read = []
    monkeypatch.setattr(translation, "read_catalog", lambda path, language: read.append(language) or MessageCatalog())
    catalogs = MessageCatalogs()
    catalogs.translator("en")
    assert read == []
    catalogs.translator("de")
    catalogs.translator("de")
    assert read in ([], ["de"])
