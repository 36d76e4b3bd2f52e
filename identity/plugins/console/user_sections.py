"""UserSection: a section that a plugin adds to the page of a user, such as second factors."""

from dataclasses import dataclass

from markupsafe import Markup

from identity.pages.layout import NavigationItem
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.page_sections import ActionSection


@dataclass(frozen=True, kw_only=True)
class UserSectionRow:
    """``action`` is a button that links to a page of the plugin."""

    name: str
    note: str = ""
    action: NavigationItem | None = None


@dataclass(frozen=True, kw_only=True)
class UserSection:
    """Translated texts and rows. ``id`` is the HTML id; ``empty`` is the text without rows."""

    id: str
    title: str
    lead: str = ""
    empty: str = ""
    rows: tuple[UserSectionRow, ...] = ()
    action: NavigationItem | None = None

    def to_page_section(self, page: ConsolePage) -> ActionSection:
        def button(item: NavigationItem | None, **look: object) -> Markup:
            return Markup() if item is None else page.button_link(item.label, item.href, **look)  # type: ignore[arg-type]

        rows = [(row.name, row.note, button(row.action, hidden_label=row.name, small=True)) for row in self.rows]
        return ActionSection(self.id, self.title, self.lead, button(self.action), rows=rows, empty=self.empty)
