"""Connections of a user: what applications hold of the person, and the end of that."""

from collections.abc import Mapping

from identity.domain.tokens import Connection
from identity.domain.words import say
from identity.http import targets
from identity.plugins.console.confirm_page import ConfirmPage
from identity.plugins.console.console_page import pick
from identity.plugins.console.places import Place
from identity.plugins.console.sections import Table
from identity.plugins.console.things import OfUser


def connections_section(page: OfUser) -> Table | None:
    """What has access to the account, for whoever may see that."""
    if not page.may("session.read"):
        return None
    ui, may_end = page.ui, page.may("session.delete")
    rows = []
    for one in page.services.users.connections(page.thing.id):
        name, href = one.client.application.name, f"{page.href}/connections/{one.client.id}"
        end = page.buttons(href, name, remove=say("Disconnect …"), change=False) if may_end else ""
        bold = ui.bold(name)
        rows.append(
            (ui.named(bold, sub=one.client.organization.name), ui.when(one.since), ui.ago(one.last_used_at), end)
        )
    return Table(
        "connections",
        say("Applications"),
        say("What has access to the account, or may have it without asking the person again."),
        columns=(say("Application"), say("Since"), say("Last used")),
        rows=rows,
        actions=True,
        empty=say("No application has access to the account."),
    )


class EndConnection(OfUser, ConfirmPage):
    """Asks before the application loses its access, and what the person agreed to is forgotten."""

    below = "#connections"

    danger = False
    title = say("Disconnect {application} from {name}?")
    effects = (say("It loses access to the account at once, and has to ask the person again."),)
    label = say("Disconnect application")

    @property
    def connection(self) -> Connection:
        """Which one. Raises NotFound."""
        held = self.services.users.connections(self.thing.id)
        connection: Connection = pick(self, held, "application", by="client.id")
        return connection

    @property
    def names(self) -> Mapping[str, object]:
        return {"application": self.connection.client.application.name, "name": self.name}

    def act(self) -> None:
        self.services.users.end_connection(self.thing.id, self.connection.client.id, by=self.principal)


PLACES = (Place("/users/{user}/connections/{application}/delete", EndConnection, "session.delete", targets.user),)
