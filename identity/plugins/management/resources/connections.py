"""Connections: which applications hold access to a person's account, or may have it without asking again."""

from identity.domain import tokens
from identity.http import targets
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Moment, Representation
from identity.plugins.management.resource import Resource


class Connection(Representation):
    """What an application holds of a person, and what the person agreed to; the id is the client id. `offline` if it
    stays connected without a session."""

    id: str
    application: str
    organization: str
    scope: tuple[str, ...]
    offline: bool
    since: Moment
    last_used_at: Moment


def _shown(_call: Call, one: tokens.Connection) -> Connection:
    client = one.client
    name, organization = client.application.name, client.organization.name
    return Connection.of(one, id=client.id, application=name, organization=organization)


_CONNECTIONS = Resource(
    kind="connection",
    answers=Connection,
    path="/users/{user}/connections/{application}",
    target=targets.user,
    of="session",
    use_cases="users",
    show=_shown,
)

OPERATIONS = (
    _CONNECTIONS.lists(
        "Lists the applications that hold access to a person's account, last used first.",
        lambda call: call.services.users.connections(call.value.id),
        paged=False,
    ),
    _CONNECTIONS.removes(
        "Takes from an application all that it holds of a person, and what they agreed to.",
        _CONNECTIONS.of_part("end_connection"),
        verb="end",
    ),
)
