"""Applications that a user is connected to, and disconnecting them."""

from identity.domain.messages import gettext_lazy as _
from identity.domain.tokens import ConnectedApplication
from identity.domain.users import HumanUser
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.console_page import ConsolePage, find_child
from identity.plugins.console.page_sections import TableSection
from identity.plugins.console.resource_types import USER


def connected_applications_section(page: ConsolePage, user: HumanUser) -> TableSection | None:
    """None if the caller may not see them."""
    if not page.has_permission("session.read"):
        return None
    ui, may_end = page.template_macros, page.has_permission("session.delete")
    rows = []
    for connection in page.services.users.list_connected_applications(user.id):
        name, path = connection.client.application.name, f"{USER.path_of(user)}/connections/{connection.client.id}"
        rows.append(
            (
                ui.named(ui.bold(name), sub=connection.client.organization.name),
                ui.when(connection.since),
                ui.ago(connection.last_used_at),
                page.row_buttons(path, name, remove=_("Disconnect …"), change=False) if may_end else "",
            )
        )
    return TableSection(
        "connections",
        _("Applications"),
        _("Applications that have access to the account, or can get it without asking the person again."),
        columns=(_("Application"), _("Since"), _("Last used")),
        rows=rows,
        has_row_buttons=True,
        empty=_("No application has access to the account."),
    )


def _find_connection(page: ConsolePage) -> ConnectedApplication:
    """Raises NotFound."""
    connections = page.services.users.list_connected_applications(page.entity_of(HumanUser).id)
    return find_child(page, connections, "application", lambda connection: connection.client.id)


_CONNECTION = USER.child(
    "/connections/{application}",
    ConnectedApplication,
    permission_prefix="session",
    message_values=lambda page, connection: {
        "application": connection.client.application.name,
        "name": page.entity_of(HumanUser).display_name,
    },
    find=_find_connection,
)

#: Revokes the application's access and forgets the person's consent.
_DISCONNECT = Action[ConnectedApplication](
    path="/delete",
    permission="delete",
    run=lambda page, connection: page.services.users.disconnect_application_as_manager(
        page.entity_of(HumanUser).id, connection.client.id, principal=page.principal
    ),
    title=_("Disconnect {application} from {name}?"),
    impact=(_("It loses access to the account at once and must ask the person again."),),
    submit_label=_("Disconnect application"),
    back="#connections",
    is_destructive=False,
)

ROUTES = action_routes(_CONNECTION, _DISCONNECT)
