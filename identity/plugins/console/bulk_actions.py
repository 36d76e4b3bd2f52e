"""BulkAction: what can be done with selected rows of a list; selected_rows.py has the pages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from identity.domain.errors import DomainError
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.plugins.console.badges import EntityLink
from identity.plugins.console.console_page import ConsolePage

RowT = TypeVar("RowT")

#: A sentence for this number of rows.
CountedText = Callable[[int], str]


@dataclass(frozen=True, kw_only=True)
class BulkAction(Generic[RowT]):
    """``path`` is the last part of the address of its page, ``permission`` the whole name of what changing a single row
    takes; it is checked on the page's resource, and the service judges each row again.

    ``run`` changes one row with the values of the form. It raises DomainError with the reason why not, and returns
    False if there was nothing to change. ``page`` is the class of a page that asks for more than a confirmation.
    ``confirms_by_name`` asks to type the name of the entity to which the list belongs.
    """

    path: str
    permission: str
    label: str
    title: CountedText
    lead: str = ""
    submit_label: str = ""
    done: str = _("Done")
    run: Callable[[ConsolePage, RowT, Mapping[str, Any]], object] = lambda page, row, values: None
    is_destructive: bool = False
    confirms_by_name: bool = False
    page: type[Any] | None = None


@dataclass(frozen=True, kw_only=True)
class BulkActions(Generic[RowT]):
    """Actions on rows of one list. ``find`` returns those of the list with these ids, as far as the caller may see them
    there; ``links`` are their names."""

    find: Callable[[ConsolePage, Sequence[str]], Sequence[RowT]]
    links: Callable[[ConsolePage, Sequence[RowT]], Sequence[EntityLink]]
    actions: Sequence[BulkAction[RowT]]

    def available(self, page: ConsolePage) -> Sequence[BulkAction[RowT]]:
        """Those that the caller has the permission for."""
        return [action for action in self.actions if page.has_permission(action.permission)]


def deactivation(
    run: Callable[[ConsolePage, RowT], object], permission: str, title: CountedText, lead: str
) -> BulkAction[RowT]:
    return BulkAction(
        path="deactivate",
        permission=permission,
        label=_("Deactivate"),
        title=title,
        lead=lead,
        submit_label=_("Deactivate"),
        done=_("Deactivated"),
        run=lambda page, row, values: run(page, row),
        is_destructive=True,
    )


def reactivation(
    run: Callable[[ConsolePage, RowT], object], permission: str, title: CountedText, lead: str
) -> BulkAction[RowT]:
    return BulkAction(
        path="reactivate",
        permission=permission,
        label=_("Reactivate"),
        title=title,
        lead=lead,
        submit_label=_("Reactivate"),
        done=_("Reactivated"),
        run=lambda page, row, values: run(page, row),
    )


def deletion(
    run: Callable[[ConsolePage, RowT], object], permission: str, title: CountedText, lead: str
) -> BulkAction[RowT]:
    """Refuses the caller's own row, which needs the page of that account."""

    def run_for_others(page: ConsolePage, row: RowT, _values: Mapping[str, Any]) -> None:
        if page.principal.id == getattr(row, "id", None):
            raise DomainError(_("This is your account. Delete it on its page."))
        run(page, row)

    return BulkAction(
        path="delete",
        permission=permission,
        label=_("Delete"),
        title=title,
        lead=lead,
        submit_label=_("Delete"),
        done=_("Deleted"),
        run=run_for_others,
        is_destructive=True,
        confirms_by_name=True,
    )


def count_done(done: int, total: int) -> str:
    return ngettext_lazy("{n} of {total} is done", "{n} of {total} are done", done, total=total)
