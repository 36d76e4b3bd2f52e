"""A page of the console: who of an organization has chosen a code for the door."""

from typing import Any

from identity.api.entities import Organization, User
from identity.api.pages import NavigationItem, gettext_lazy
from identity.plugins.console.api import (
    CONSOLE_PATH,
    Cells,
    ConsoleRoute,
    ListPage,
    PageRequest,
    ResultPage,
    UserKind,
    organization_context,
)
from sample_plugin.page import CODES


class DoorPinListPage(ListPage):
    """One row per person. The codes are never shown."""

    title = gettext_lazy("Door codes")
    lead = gettext_lazy("Who has chosen a code for the door of the department.")
    columns = (gettext_lazy("User"), gettext_lazy("Code"))
    sort_orders = (("user_name", gettext_lazy("User")),)
    empty_title = gettext_lazy("No users yet")
    empty_text = gettext_lazy("People choose a code when they sign in for the first time.")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[Any]:
        """The people of the organization that the address names."""
        return self.services.storage.users.page(self.context.entity.id, UserKind.HUMAN, page_request)

    def build_cells(self, user: User) -> Cells:
        """Name and state of one of them."""
        record = self.services.record_service(self.request.registry.sample_record_namespace).find(CODES, user.id)
        chosen = (
            self.render_placeholder(gettext_lazy("None yet"))
            if record is None
            else self.template_macros.when(record.created_at)
        )
        return (self.template_macros.named(user.display_name, f"{CONSOLE_PATH}/users/{user.id}"), chosen)


def navigation_item(organization: Organization) -> NavigationItem:
    """Its place in the navigation of an organization."""
    return NavigationItem(label="Door codes", href=f"{CONSOLE_PATH}/organizations/{organization.id}/doors", icon="key")


ROUTES = (ConsoleRoute("/organizations/{organization}/doors", DoorPinListPage, "user.read", organization_context),)
