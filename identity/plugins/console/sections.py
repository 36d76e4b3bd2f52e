"""Sections of pages, declared: a table, facts, things that one can do, a few words. Words are drawn by the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup

#: How many rows a section shows before it leads to the whole list.
FEW = 5

#: Words and value of each; what has no value is left out.
Facts = Sequence[tuple[str, object]]


@dataclass(frozen=True)
class Section:
    """``id`` is what addresses link to."""

    shape: ClassVar[str]

    id: str
    title: str
    lead: str = ""
    action: Markup = Markup()


@dataclass(frozen=True)
class Table(Section):
    """Rows with a cell for each column, and with ``actions`` one for buttons.

    ``empty`` is said where there is none; ``rest`` are words and address of a link to all.
    """

    shape = "table"

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    actions: bool = False
    empty: str = ""
    rest: tuple[str, str] | None = None


@dataclass(frozen=True)
class FactList(Section):
    """Facts under a heading of their own."""

    shape = "facts"

    facts: Facts = ()


@dataclass(frozen=True)
class Panel(Section):
    """What one can do: heading, sentence and button of each; ``empty`` is said where there is none."""

    shape = "panel"

    rows: Sequence[tuple[str, str, Markup]] = ()
    empty: str = ""


@dataclass(frozen=True)
class Note:
    """A sentence between sections; ``faint`` if it only explains."""

    shape = "note"

    text: str
    faint: bool = False
