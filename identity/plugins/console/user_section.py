"""UserSection: what a plugin adds to the page of a user, such as second factors."""

from dataclasses import dataclass

from identity.pages.frame import Item


@dataclass(frozen=True, kw_only=True)
class SectionRow:
    """A line of a section; ``action`` is a button-like link to a page of the plugin."""

    name: str
    note: str = ""
    action: Item | None = None


@dataclass(frozen=True, kw_only=True)
class UserSection:
    """Translated words and rows. ``id`` is what addresses link to; ``empty`` is said where there is no row."""

    id: str
    title: str
    lead: str = ""
    empty: str = ""
    rows: tuple[SectionRow, ...] = ()
    action: Item | None = None
