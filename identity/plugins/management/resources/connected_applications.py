"""Connections: which applications have access to a person's account, or can get it without asking again."""

from typing import Any

from identity.domain.applications import client_id_from_path
from identity.domain.tokens import ConnectedApplication
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import USER
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import DateTime, Representation


class ConnectedDeviceRepresentation(Representation):
    """A device on which the person signed in by a code, and its network address at that time."""

    id: str
    address: str
    since: DateTime
    last_used_at: DateTime


class ConnectedApplicationRepresentation(Representation):
    """The access of an application to a person's account, and what the person agreed to; the id is the client id.
    `offline` if it stays connected without a session. `devices` are those that the person signed in on by a code.
    """

    id: str
    application: str
    organization: str
    scope: tuple[str, ...]
    offline: bool
    since: DateTime
    last_used_at: DateTime
    devices: tuple[ConnectedDeviceRepresentation, ...]


def _represent(_call: OperationCall[Any], connected: ConnectedApplication) -> ConnectedApplicationRepresentation:
    client = connected.client
    name, organization = client.application.name, client.organization_name
    return ConnectedApplicationRepresentation.from_value(
        connected,
        id=client.id,
        application=name,
        organization=organization,
        devices=tuple(map(ConnectedDeviceRepresentation.from_value, connected.devices)),
    )


_CONNECTIONS = ApiResource("connection", ConnectedApplicationRepresentation, _represent, permission_subject="session")

OPERATIONS = (
    _CONNECTIONS.list(
        USER / "connections",
        "Lists the applications with access to a person's account, last used first.",
        lambda call: call.services.users.list_connected_applications(call.entity.id),
        is_paged=False,
    ),
    _CONNECTIONS.delete(
        "end_connection",
        USER / "connections/{application}",
        "Removes an application's access to a person's account, and the person's consent.",
        lambda call: call.services.users.disconnect_application_as_manager(
            call.entity.id, client_id_from_path(call.child_id), principal=call.principal
        ),
    ),
)
