"""Translation catalogs: complete, with the same placeholders, without obsolete messages."""

import itertools
import re
import string
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from identity.http.language_negotiation import LANGUAGES
from identity.pages.translation import CATALOG_FILE, LOCALE_DIR, MessageCatalogs, read_catalog
from tests.pages import catalog_update
from tests.pages.catalog_update import extract_messages, update_catalog, write_catalog

TRANSLATED_LANGUAGES = LANGUAGES[1:]


def several(text: Any) -> tuple[str, ...]:
    return tuple(text) if isinstance(text, (tuple, list)) else (text or "",)


def read(language: str) -> Any:
    with (LOCALE_DIR / language / CATALOG_FILE).open("rb") as file:
        return read_po(file, locale=language)


def ids(catalog: Any) -> set[tuple[str, ...]]:
    return {several(item.id) for item in catalog if item.id}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.fixture(scope="module")
def source() -> Any:
    return extract_messages()


@pytest.mark.thorough
@pytest.mark.parametrize("language", TRANSLATED_LANGUAGES)
def test_catalog_matches_code_and_templates(language: str, source: Any) -> None:
    """If it fails, run python -m tests.pages.catalog_update."""
    catalog = read(language)
    assert ids(catalog) == ids(source)
    assert not catalog.obsolete
    assert not [item.id for item in catalog if item.id and item.fuzzy]


@pytest.mark.parametrize("language", TRANSLATED_LANGUAGES)
def test_every_message_is_translated(language: str) -> None:
    assert [item.id for item in read(language) if item.id and not all(several(item.string))] == []


@pytest.mark.parametrize("language", TRANSLATED_LANGUAGES)
def test_translation_placeholders_match_source(language: str) -> None:
    """A singular may write "one" instead of the number; all other placeholders must match."""
    for item in read(language):
        texts = several(item.id) if item.id else ()
        for translated in several(item.string) if texts else ():
            may_lack = {"n"} if len(texts) > 1 else set()
            assert (
                placeholders(texts[-1]) - may_lack <= placeholders(translated) <= set().union(*map(placeholders, texts))
            ), item.id


@pytest.mark.parametrize("language", TRANSLATED_LANGUAGES)
def test_catalogs_can_be_compiled(language: str) -> None:
    catalog = read_catalog(LOCALE_DIR / language / CATALOG_FILE, language)
    for forms in catalog.messages.values():
        assert len(forms) in (1, 2)
    assert MessageCatalogs().translator(language).ngettext("{n} day ago", "{n} days ago", 3).count("3") == 1


@pytest.mark.parametrize("language", TRANSLATED_LANGUAGES)
def test_plural_forms_match_language(language: str) -> None:
    catalog = read(language)
    assert catalog.num_plurals == (1 if language == "zh" else 2)
    for item in catalog:
        assert len(several(item.string)) == (catalog.num_plurals if len(several(item.id)) > 1 else 1), item.id


#: Words that are frequent in one language and rare in the others.
TELLING = {
    "en": "the and is are your you not with this which nothing has been",
    "de": "der das dem und nicht ist sind wird werden eine einen ihre ihrer sie von mit auf für keine kein",
    "fr": "est vous votre vos sont cette avec aux dans n’est ses pas une pour",
    "es": "los las sus usted han está están puede cuando otra estos para una",
    "it": "gli della delle è sono questo questa nella può viene alla una di che",
}
#: Names, which are the same in every language.
UNTRANSLATED = {"OpenID Connect", "Services ID"}
#: Messages of several words that are the same in English and the language.
ALIKE = {
    "de": {"Version {version}", "{number} ms"},
    "zh": set(),
    "fr": {
        *("Version {version}", "{number} ms"),
        *("{n} application", "{n} applications", "{n} minute", "{n} minutes", "{n} session", "{n} sessions"),
    },
    "es": {"{n} roles", "{number} ms"},
    "it": {"scope {scope}", "{number} ms"},
}
#: Abbreviations that Chinese writes in Latin letters.
NAMES = {"API", "JWT", "TXT", "UTC", "OPENID", "CONNECT", "SERVICES", "ID", "STARTTLS", "MS", "WEBHOOK", "WEBHOOKS"}


def words_of(text: str) -> list[str]:
    """The words of a message without placeholders and literal quotations."""
    return re.findall(r"[^\W\d_]+(?:[’'][^\W\d_]+)*", re.sub(r"\{\w*\}|“[^”]*”|«[^»]*»|„[^“]*“", " ", text).lower())


def identical_translations(languages: dict[str, dict[str, str]]) -> list[tuple[str, str, str]]:
    """Messages of at least three words with the same translation in two languages."""
    found = []
    for left, right in itertools.combinations(languages, 2):
        for key, text in languages[left].items():
            if text == languages[right][key] and len(words_of(text)) > 2:
                found.append((left, right, text))
    return found


def foreign(language: str, text: str) -> list[str]:
    """The words of a message that belong to another language."""
    mine = set(TELLING.get(language, "").split())
    foreign_words = set(" ".join(texts for item, texts in TELLING.items() if item != language).split()) - mine
    return [token for token in words_of(text) if token in foreign_words]


def in_its_script(language: str, text: str) -> bool:
    """True if the letters fit the language: Chinese characters only in Chinese, umlauts only in German."""
    if language != "zh":
        return not re.search(r"[\u3400-\u9fff]" if language == "de" else r"[\u3400-\u9fffßäÄöÖ]", text)
    return bool(re.search(r"[\u3400-\u9fff]", text)) or not {item.upper() for item in words_of(text)} - NAMES


def sentences_by_id(language: str) -> dict[str, str]:
    """Translations by message: singular forms by the singular, plural forms by the plural."""
    found = {}
    for item in read(language):
        if item.id:
            texts, forms = several(item.id), several(item.string)
            found |= {text: forms[min(number, len(forms) - 1)] for number, text in enumerate(texts)}
    return found


def test_translations_differ_between_languages() -> None:
    """Regression: German sentences were once in the catalogs of all languages."""
    assert identical_translations({language: sentences_by_id(language) for language in TRANSLATED_LANGUAGES}) == []


@pytest.mark.parametrize("language", TRANSLATED_LANGUAGES)
def test_translations_differ_from_english(language: str) -> None:
    texts = sentences_by_id(language).items()
    assert {text for text, form in texts if text == form and " " in text and words_of(text)} == UNTRANSLATED | ALIKE[
        language
    ]


@pytest.mark.parametrize("language", TRANSLATED_LANGUAGES)
def test_translations_are_in_their_language(language: str) -> None:
    texts = sentences_by_id(language).values()
    assert [(text, foreign(language, text)) for text in texts if foreign(language, text)] == []
    assert [text for text in texts if not in_its_script(language, text)] == []


def test_foreign_translation_is_detected() -> None:
    german = "Die IDs des Dokuments behalten"
    assert identical_translations({"fr": {"a": german}, "it": {"a": german}}) == [("fr", "it", german)]
    assert foreign("it", "Das ist kein UTF-8.")
    assert foreign("de", "Nothing was saved.")
    assert not in_its_script("es", "Das ist zu groß")
    assert not in_its_script("zh", "Sitzung beenden")
    assert in_its_script("zh", "{n} 个 JWT")
    assert in_its_script("zh", "JWT")


def test_extraction_finds_code_and_templates(source: Any) -> None:
    known = ids(source)
    assert ("Use at most {length} characters.",) in known
    assert ("Skip to the content",) in known
    assert ("{n} day ago", "{n} days ago") in known


def test_messages_follow_style_rules(source: Any) -> None:
    """pages §6: no exclamation marks, no "please", no "oops"; one sentence never begins with a space."""
    for item in source:
        for text in several(item.id) if item.id else ():
            assert not re.search(r"!|\bplease\b|\boops\b|^\s|\s$|<", text, re.IGNORECASE), text


def test_catalog_update_keeps_and_drops_translations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Catalog()
    for text in ("Cancel", "Save", ("{n} day ago", "{n} days ago")):
        before.add(text)
    write_catalog(update_catalog("de", before, tmp_path), tmp_path / "de" / CATALOG_FILE)
    updated = update_catalog("de", before, tmp_path)
    updated["Cancel"].string = "Abbrechen"
    updated.add("Gone.", "Weg.")
    write_catalog(updated, tmp_path / "de" / CATALOG_FILE)
    after = update_catalog("de", before, tmp_path)
    assert after["Cancel"].string == "Abbrechen"
    assert "Gone." not in after
    assert not after.obsolete
    write_catalog(after, tmp_path / "de" / CATALOG_FILE)
    text = (tmp_path / "de" / CATALOG_FILE).read_text()
    write_catalog(update_catalog("de", before, tmp_path), tmp_path / "de" / CATALOG_FILE)
    assert (tmp_path / "de" / CATALOG_FILE).read_text() == text, "an update without news changes nothing"
    monkeypatch.setattr(catalog_update, "LOCALE_DIR", tmp_path)
    monkeypatch.setattr(catalog_update, "extract_messages", lambda: before)
    assert catalog_update.main() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(TRANSLATED_LANGUAGES)


@pytest.mark.parametrize(
    ("language", "text"), [("en", "1,000 in all"), ("de", "1.000 insgesamt"), ("zh", "共 1,000 项")]
)
def test_numbers_have_the_separators_of_the_language(language: str, text: str) -> None:
    translator = MessageCatalogs().translator(language)
    assert translator.ngettext("{n} in all", "{n} in all", 1000) == text
    assert translator.ngettext("{n} in all", "{n} in all", 7) == text.replace(translator.format_number(1000), "7")
