"""``python -m tests.pages.catalog_update`` updates the catalogs from the messages in code and templates.

Translations of existing messages are kept, obsolete ones are dropped, new messages are empty.
"""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract, extract_python
from babel.messages.pofile import read_po, write_po
from jinja2.ext import babel_extract

import identity
from identity.domain.messages import LANGUAGES
from identity.pages.translation import CATALOG_FILE, LOCALE_DIR

SOURCE = Path(identity.__file__).parent
KEYWORDS = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_plain": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "t": None,
    "tn": (1, 2),
}

#: These packages have no messages for browsers.
_EXCLUDED_PACKAGES = ("testing", "storage", "crypto", "cli")
_JINJA_OPTIONS = {"trim_blocks": "true", "lstrip_blocks": "true", "silent": "false"}
#: A date that changes with every run would change every catalog.
_FIXED_CREATION_DATE = datetime(2026, 1, 1, tzinfo=UTC)


def extract_messages() -> Catalog:
    """Every message id of the service, without translations."""
    found = Catalog(project="identity", charset="utf-8", fuzzy=False)
    for path in _source_files():
        is_python = path.suffix == ".py"
        method: Any = extract_python if is_python else babel_extract
        options = {} if is_python else _JINJA_OPTIONS
        with path.open("rb") as file:
            for _, message, _, _ in extract(method, file, keywords=KEYWORDS, options=options):
                found.add(message)
    return found


def _source_files() -> Iterator[Path]:
    templates = (path for path in SOURCE.rglob("templates/**/*") if path.suffix in (".html", ".txt"))
    for path in sorted([*SOURCE.rglob("*.py"), *templates]):
        if path.relative_to(SOURCE).parts[0] not in _EXCLUDED_PACKAGES:
            yield path


def update_catalog(language: str, source: Catalog, folder: Path = LOCALE_DIR) -> Catalog:
    """The language's catalog with exactly the messages of ``source``."""
    path = folder / language / CATALOG_FILE
    catalog = Catalog(locale=language, project="identity", charset="utf-8", fuzzy=False)
    if path.exists():
        with path.open("rb") as file:
            catalog = read_po(file, locale=language)
    catalog.update(source, no_fuzzy_matching=True)
    catalog.obsolete.clear()
    return catalog


def write_catalog(catalog: Catalog, path: Path) -> None:
    """Write the catalog so that a diff shows only changed translations."""
    catalog.header_comment = f"# {catalog.locale_identifier}: what pages say. Values stand in {{braces}}; keep them."
    catalog.creation_date = catalog.revision_date = _FIXED_CREATION_DATE
    catalog.version, catalog.last_translator, catalog.language_team = "1", "", ""
    catalog.msgid_bugs_address = ""
    catalog.fuzzy = False
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, catalog, width=110, no_location=True, sort_output=True, omit_header=False)


def main() -> int:
    """Update every catalog and print which messages still need a translation."""
    source = extract_messages()
    for language in LANGUAGES[1:]:
        catalog = update_catalog(language, source)
        write_catalog(catalog, LOCALE_DIR / language / CATALOG_FILE)
        missing = len([item for item in catalog if item.id and not _is_translated(item.string)])
        sys.stdout.write(f"{language}: {len(catalog)} sentences, {missing} to be translated\n")
    return 0


def _is_translated(string: str | tuple[str, ...] | list[str] | None) -> bool:
    return all(string) if isinstance(string, (tuple, list)) else bool(string)


if __name__ == "__main__":
    sys.exit(main())
