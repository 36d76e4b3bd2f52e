"""A page of the console: who of an organization has chosen a code for the door."""

from typing import Any

from identity.domain.organizations import Organization
from identity.domain.users import User
from identity.domain.words import say
from identity.http import targets
from identity.pages.frame import Item
from identity.plugins.console.console_page import CONSOLE
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.places import Place
from identity.storage.paging import Page, PageRequest
from identity.storage.stores.users import UserKind
from sample_plugin.page import CODES


class DoorList(ListPage):
    """One row a person. The codes themselves are nobody's business."""

    title = say("Door codes")
    lead = say("Who has chosen a code for the door of the department.")
    columns = (say("User"), say("Code"))
    orders = (("user_name", say("User")),)
    empty_title = say("No users yet")
    empty_text = say("People choose a code when they sign in for the first time.")

    def fetch(self, asked: PageRequest) -> Page[Any]:
        """The people of the organization that the address names."""
        return self.services.storage.users.page(self.context.value.id, UserKind.HUMAN, asked)

    def cells(self, one: User) -> Cells:
        """Name and state of one of them."""
        kept = self.services.records(self.request.registry.sample_name_space).find(CODES, one.id)
        chosen = self.faint(say("None yet")) if kept is None else self.ui.when(kept.created_at)
        return (self.ui.named(one.display_name, f"{CONSOLE}/users/{one.id}"), chosen)


def menu_item(organization: Organization) -> Item:
    """Its place in the navigation of an organization."""
    return Item(label="Door codes", href=f"{CONSOLE}/organizations/{organization.id}/doors", icon="key")


PLACES = (Place("/organizations/{organization}/doors", DoorList, "user.read", targets.organization),)
