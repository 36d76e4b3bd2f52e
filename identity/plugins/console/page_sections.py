"""Sections of pages, declared: a table, facts, things that one can do, a few words. Words are drawn by the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup

#: How many rows a section shows before it leads to the whole list.
PREVIEW_ROWS = 5

#: Words and value of each; what has no value is left out.
Descriptions = Sequence[tuple[str, object]]


@dataclass(frozen=True)
class PageSection:
    """``id`` is what addresses link to."""

    template_macro: ClassVar[str]

    id: str
    title: str
    lead: str = ""
    action: Markup = Markup()


@dataclass(frozen=True)
class TableSection(PageSection):
    """Rows with a cell for each column, and with ``has_row_buttons`` one for buttons.

    ``empty`` is said where there is none; ``all_link`` are words and address of a link to all.
    """

    template_macro = "table"

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    has_row_buttons: bool = False
    empty: str = ""
    all_link: tuple[str, str] | None = None


@dataclass(frozen=True)
class DescriptionListSection(PageSection):
    """Facts under a heading of their own."""

    template_macro = "facts"

    facts: Descriptions = ()


@dataclass(frozen=True)
class ActionSection(PageSection):
    """What one can do: heading, sentence and button of each; ``empty`` is said where there is none."""

    template_macro = "panel"

    rows: Sequence[tuple[str, str, Markup]] = ()
    empty: str = ""


@dataclass(frozen=True)
class NoteSection:
    """A sentence between sections; ``is_secondary`` if it only explains."""

    template_macro: ClassVar[str] = "note"

    text: str
    is_secondary: bool = False
