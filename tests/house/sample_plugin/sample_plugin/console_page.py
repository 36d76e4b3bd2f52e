"""A console page: which users of an organization have chosen a code for the door."""

from collections.abc import Sequence
from typing import Any

from identity.api.entities import Organization, User
from identity.api.pages import NavigationItem, gettext_lazy
from identity.plugins.console.api import (
    CONSOLE_PATH,
    ORGANIZATION,
    Cells,
    ConsolePage,
    PageRequest,
    ResourceList,
    ResultPage,
    UserKind,
    list_route,
)
from sample_plugin.page import CODES


def _fetch(page: ConsolePage, request: PageRequest) -> ResultPage[Any]:
    """A page of the users of the organization in the URL."""
    return page.services.storage.users.page(page.entity_of(Organization).id, UserKind.HUMAN, request)


def _rows(page: ConsolePage, users: Sequence[User]) -> Sequence[Cells]:
    """The cells of each row: the user's name and when the code was chosen."""
    records = page.services.record_service(page.request.registry.sample_record_namespace)
    ui, rows = page.template_macros, []
    for user in users:
        record = records.find(CODES, user.id)
        chosen = page.render_placeholder(gettext_lazy("None yet")) if record is None else ui.when(record.created_at)
        rows.append((ui.named(user.display_name, f"{CONSOLE_PATH}/users/{user.id}"), chosen))
    return rows


#: One row per person. The codes are never shown.
DOOR_PINS = ResourceList(
    path="/doors",
    permission="user.read",
    section="doors",
    title=gettext_lazy("Door codes"),
    lead=gettext_lazy("Who has chosen a code for the door of the department."),
    columns=(gettext_lazy("User"), gettext_lazy("Code")),
    sort_orders=(("user_name", gettext_lazy("User")),),
    fetch=_fetch,
    rows=_rows,
    empty_title=gettext_lazy("No users yet"),
    empty_text=gettext_lazy("People choose a code when they sign in for the first time."),
)


def navigation_item(organization: Organization) -> NavigationItem:
    """The page's entry in the navigation of an organization."""
    return NavigationItem(label="Door codes", href=f"{CONSOLE_PATH}/organizations/{organization.id}/doors", icon="key")


ROUTES = (list_route(DOOR_PINS, ORGANIZATION),)
