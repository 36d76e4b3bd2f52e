"""Connections: which applications hold access to a person's account, or may have it without asking again."""

from identity.domain import tokens
from identity.http import targets
from identity.plugins.management.operation import Call, Operation
from identity.plugins.management.representation import Moment, Representation
from identity.storage.paging import Page


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


def _shown(one: tokens.Connection) -> Connection:
    client = one.client
    name, organization = client.application.name, client.organization.name
    return Connection.of(one, id=client.id, application=name, organization=organization)


def _list(call: Call) -> Page[Connection]:
    return Page(tuple(map(_shown, call.services.users.connections(call.value.id))))


def _end(call: Call) -> None:
    call.services.users.end_connection(call.value.id, call.names["application"], by=call.by)


_LIST = "/users/{user}/connections"

OPERATIONS = (
    Operation(
        name="list_connections",
        method="GET",
        path=_LIST,
        summary="Lists the applications that hold access to a person's account, last used first.",
        permission="session.read",
        target=targets.user,
        handle=_list,
        answers=Connection,
        many=True,
    ),
    Operation(
        name="end_connection",
        method="DELETE",
        path=f"{_LIST}/{{application}}",
        summary="Takes from an application all that it holds of a person, and what they agreed to.",
        permission="session.delete",
        target=targets.user,
        handle=_end,
    ),
)
