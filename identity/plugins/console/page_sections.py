"""Sections of pages as data: tables, descriptions, actions and notes. The page renders them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup

#: Rows of a section that links to the whole list.
PREVIEW_ROWS = 5

#: Label and value; rows without a value are left out.
Descriptions = Sequence[tuple[str, object]]


@dataclass(frozen=True)
class PageSection:
    """``id`` is the HTML id."""

    template_macro: ClassVar[str]

    id: str
    title: str
    lead: str = ""
    action: Markup = Markup()


@dataclass(frozen=True)
class TableSection(PageSection):
    """``has_row_buttons`` adds a column for buttons. ``empty`` is the text without rows, ``all_link`` label and path
    of the link to the whole list.
    """

    template_macro = "table"

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    has_row_buttons: bool = False
    empty: str = ""
    all_link: tuple[str, str] | None = None


@dataclass(frozen=True)
class DescriptionListSection(PageSection):
    template_macro = "facts"

    facts: Descriptions = ()


@dataclass(frozen=True)
class TextSection(PageSection):
    """A text of another system or a document, shown as it is."""

    template_macro = "text"

    text: str = ""


@dataclass(frozen=True)
class ActionSection(PageSection):
    """Heading, text and button of each action; ``empty`` is the text without any."""

    template_macro = "panel"

    rows: Sequence[tuple[str, str, Markup]] = ()
    empty: str = ""


@dataclass(frozen=True)
class NoteSection:
    """A note between sections; ``is_secondary`` mutes it."""

    template_macro: ClassVar[str] = "note"

    text: str
    is_secondary: bool = False
