"""The catalogs: each language says every sentence, with the same places, and nothing else."""

import re
import string
from pathlib import Path
from typing import Any

import pytest
from babel.messages.pofile import read_po

from identity.http.locale import LANGUAGES
from identity.pages import catalogs
from identity.pages.catalogs import sentences, updated, write
from identity.pages.translation import FILE, FOLDER, Catalogs, read_catalog

OTHERS = LANGUAGES[1:]


def several(text: Any) -> tuple[str, ...]:
    return tuple(text) if isinstance(text, (tuple, list)) else (text or "",)


def read(language: str) -> Any:
    with (FOLDER / language / FILE).open("rb") as file:
        return read_po(file, locale=language)


def ids(catalog: Any) -> set[tuple[str, ...]]:
    return {several(one.id) for one in catalog if one.id}


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.fixture(scope="module")
def source() -> Any:
    return sentences()


@pytest.mark.parametrize("language", OTHERS)
def test_a_catalog_has_exactly_the_sentences_of_code_and_templates(language: str, source: Any) -> None:
    """Otherwise: python -m identity.pages.catalogs"""
    catalog = read(language)
    assert ids(catalog) == ids(source)
    assert not catalog.obsolete
    assert not [one.id for one in catalog if one.id and one.fuzzy]


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_is_translated(language: str) -> None:
    assert [one.id for one in read(language) if one.id and not all(several(one.string))] == []


@pytest.mark.parametrize("language", OTHERS)
def test_places_agree(language: str) -> None:
    for one in read(language):
        for translated in several(one.string):
            if one.id and translated:
                assert places(translated) <= set().union(*map(places, several(one.id))), one.id
                assert places(several(one.id)[-1]) <= places(translated) | {"n"}, one.id


@pytest.mark.parametrize("language", OTHERS)
def test_translations_are_read(language: str) -> None:
    catalog = read_catalog(FOLDER / language / FILE, language)
    for forms in catalog.messages.values():
        assert len(forms) in (1, 2)
    assert Catalogs().words(language).tn("{n} day ago", "{n} days ago", 3).count("3") == 1


def test_sentences_are_found_in_code_and_templates(source: Any) -> None:
    known = ids(source)
    assert ("Use at most {length} characters.",) in known
    assert ("Skip to the content",) in known
    assert ("{n} day ago", "{n} days ago") in known


def test_sentences_are_plain(source: Any) -> None:
    """pages §6: no exclamation marks, no "please", no "oops"; one sentence never begins with a space."""
    for one in source:
        for text in several(one.id) if one.id else ():
            assert not re.search(r"!|\bplease\b|\boops\b|^\s|\s$|<", text, re.IGNORECASE), text


def test_an_update_keeps_and_drops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sentences()
    write(updated("de", before, tmp_path), tmp_path / "de" / FILE)
    kept = updated("de", before, tmp_path)
    kept["Cancel"].string = "Abbrechen"
    kept.add("Gone.", "Weg.")
    write(kept, tmp_path / "de" / FILE)
    after = updated("de", before, tmp_path)
    assert after["Cancel"].string == "Abbrechen"
    assert "Gone." not in after
    assert not after.obsolete
    write(after, tmp_path / "de" / FILE)
    text = (tmp_path / "de" / FILE).read_text()
    write(updated("de", before, tmp_path), tmp_path / "de" / FILE)
    assert (tmp_path / "de" / FILE).read_text() == text, "an update without news changes nothing"
    monkeypatch.setattr(catalogs, "FOLDER", tmp_path)
    assert catalogs.main() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(OTHERS)
