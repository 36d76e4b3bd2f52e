"""Applications that a user is connected to, and disconnecting them."""

from collections.abc import Mapping

from identity.domain.messages import gettext_lazy
from identity.domain.tokens import ConnectedApplication
from identity.http import route_contexts
from identity.plugins.console.action_page import ActionPage
from identity.plugins.console.console_page import find_child
from identity.plugins.console.page_sections import TableSection
from identity.plugins.console.resource_page import UserResourcePage
from identity.plugins.console.routes import ConsoleRoute


def connected_applications_section(page: UserResourcePage) -> TableSection | None:
    """None if the caller may not see them."""
    if not page.has_permission("session.read"):
        return None
    ui, may_end = page.template_macros, page.has_permission("session.delete")
    rows = []
    for connected_application in page.services.users.list_connected_applications(page.entity.id):
        name, href = (
            connected_application.client.application.name,
            f"{page.resource_path}/connections/{connected_application.client.id}",
        )
        end = page.row_buttons(href, name, remove=gettext_lazy("Disconnect …"), change=False) if may_end else ""
        bold = ui.bold(name)
        rows.append(
            (
                ui.named(bold, sub=connected_application.client.organization.name),
                ui.when(connected_application.since),
                ui.ago(connected_application.last_used_at),
                end,
            )
        )
    return TableSection(
        "connections",
        gettext_lazy("Applications"),
        gettext_lazy("What has access to the account, or may have it without asking the person again."),
        columns=(gettext_lazy("Application"), gettext_lazy("Since"), gettext_lazy("Last used")),
        rows=rows,
        has_row_buttons=True,
        empty=gettext_lazy("No application has access to the account."),
    )


class DisconnectApplicationConsolePage(UserResourcePage, ActionPage):
    """Revokes the application's access and forgets the person's consent."""

    back_path_suffix = "#connections"

    is_destructive = False
    title = gettext_lazy("Disconnect {application} from {name}?")
    impact = (gettext_lazy("It loses access to the account at once, and has to ask the person again."),)
    submit_label = gettext_lazy("Disconnect application")

    @property
    def connection(self) -> ConnectedApplication:
        """Raises NotFound."""
        connected_applications = self.services.users.list_connected_applications(self.entity.id)
        connection: ConnectedApplication = find_child(
            self, connected_applications, "application", attribute="client.id"
        )
        return connection

    @property
    def message_values(self) -> Mapping[str, object]:
        return {"application": self.connection.client.application.name, "name": self.entity_name}

    def perform(self) -> None:
        self.services.users.disconnect_application_as_manager(
            self.entity.id, self.connection.client.id, principal=self.principal
        )


ROUTES = (
    ConsoleRoute(
        "/users/{user}/connections/{application}/delete",
        DisconnectApplicationConsolePage,
        "session.delete",
        route_contexts.user_context,
    ),
)
