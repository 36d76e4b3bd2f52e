"""UserSection: what a plugin adds to the page of a user, such as second factors."""

from dataclasses import dataclass

from markupsafe import Markup

from identity.pages.frame import Item
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.sections import Panel


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

    def panel(self, page: ConsolePage) -> Panel:
        """The section as the page draws it."""

        def button(item: Item | None, **look: object) -> Markup:
            return Markup() if item is None else page.link(item.label, item.href, **look)  # type: ignore[arg-type]

        rows = [(one.name, one.note, button(one.action, what=one.name, small=True)) for one in self.rows]
        return Panel(self.id, self.title, self.lead, button(self.action), rows=rows, empty=self.empty)
