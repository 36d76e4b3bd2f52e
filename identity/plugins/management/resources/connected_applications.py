"""Connections: which applications hold access to a person's account, or may have it without asking again."""

from identity.domain import tokens
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation


class ConnectedApplicationRepresentation(Representation):
    """The access of an application to a person's account, and what the person agreed to; the id is the client id.
    `offline` if it stays connected without a session.
    """

    id: str
    application: str
    organization: str
    scope: tuple[str, ...]
    offline: bool
    since: DateTime
    last_used_at: DateTime


def _represent(
    _call: OperationCall, connected_application: tokens.ConnectedApplication
) -> ConnectedApplicationRepresentation:
    client = connected_application.client
    name, organization = client.application.name, client.organization.name
    return ConnectedApplicationRepresentation.from_value(
        connected_application, id=client.id, application=name, organization=organization
    )


_CONNECTIONS = ApiResource(
    kind="connection",
    representation=ConnectedApplicationRepresentation,
    path="/users/{user}/connections/{application}",
    context_factory=route_contexts.user_context,
    permission_subject="session",
    service="users",
    represent=_represent,
)

OPERATIONS = (
    _CONNECTIONS.list_operation(
        "Lists the applications that hold access to a person's account, last used first.",
        lambda call: call.services.users.list_connected_applications(call.entity.id),
        paged=False,
    ),
    _CONNECTIONS.delete_operation(
        "Takes from an application all that it holds of a person, and what they agreed to.",
        _CONNECTIONS.child_handler("disconnect_application_as_manager"),
        verb="end",
    ),
)
