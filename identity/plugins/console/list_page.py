"""ListPage: a table that can be searched and leafed through; empty, it says what to do."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlencode

from identity.domain.words import say
from identity.http.lists import CURSOR, STATE, asked_page, next_cursor
from identity.plugins.console.console_page import ConsolePage, Link
from identity.storage.paging import Page, PageRequest


class ListPage(ConsolePage):
    """Subclasses say what to fetch and how a row is shown; their template fills the block ``row``."""

    #: The heading, and one sentence below it.
    heading: ClassVar[str]
    lead: ClassVar[str] = ""
    columns: ClassVar[tuple[str, ...]]
    #: True if the last column holds buttons.
    actions: ClassVar[bool] = False
    searchable: ClassVar[bool] = True
    #: True if rows have a state by which one may choose.
    has_state: ClassVar[bool] = True
    empty_title: ClassVar[str]
    empty_text: ClassVar[str]

    def title(self) -> str:
        """The heading."""
        return self.heading

    def fetch(self, asked: PageRequest) -> Page[Any]:
        """The rows that are asked for."""
        raise NotImplementedError

    def rows(self, found: Sequence[Any]) -> Sequence[Any]:
        """What the template shows of each; whatever else it needs is looked up here, for all rows at once."""
        return found

    def new(self) -> Link | None:
        """The way to make one more, for whoever may."""
        return None

    def filters(self) -> Mapping[str, object]:
        """Further variables of the search form; see ``extra_filters`` of the template."""
        return {}

    def show(self) -> Mapping[str, object]:
        """One page of the list. Raises Invalid for a search that cannot be."""
        asked = asked_page(self.request)
        found = self.fetch(asked)
        given = {name: value for name, value in self.request.GET.items() if name != CURSOR}
        searched = bool(asked.query or asked.active is not None or self.filtered())
        return {
            "lead": self.words.t(self.lead) if self.lead else "",
            "columns": [self.words.t(one) for one in self.columns],
            "actions": self.actions,
            "rows": self.rows(found.items),
            "q": asked.query,
            "state": self.request.GET.get(STATE, ""),
            "searchable": self.searchable,
            "has_state": self.has_state,
            "searched": searched,
            "nothing_found": self.words.t(self.nothing_found(asked)),
            "show_all": self.request.path,
            "empty_title": self.words.t(self.empty_title),
            "empty_text": self.words.t(self.empty_text),
            "new": self.new(),
            "first": self._address(given) if asked.cursor is not None else "",
            "next": self._next(found, given),
            **self.filters(),
        }

    def filtered(self) -> bool:
        """True if something other than search and state narrows the list."""
        return False

    def nothing_found(self, asked: PageRequest) -> str:
        """What is said where a search found nothing."""
        if asked.query:
            return say("Nothing starts with “{q}”.", q=asked.query)
        return say("Nothing fits this search.")

    def _next(self, found: Page[Any], given: Mapping[str, str]) -> str:
        cursor = next_cursor(self.request, found.next)
        return "" if cursor is None else self._address({**given, CURSOR: cursor})

    def _address(self, given: Mapping[str, str]) -> str:
        path: str = self.request.path
        return f"{path}?{urlencode(given)}" if given else path
