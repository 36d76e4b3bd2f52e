"""Manager roles: what there is to be given, and what it brings."""

from identity.domain.permissions import Level
from identity.http import targets
from identity.http.security import ANY_MANAGER
from identity.plugins.management.operation import Call, Operation, shown
from identity.plugins.management.representation import Representation, Words
from identity.storage.paging import Page


class Role(Representation):
    """A manager role, held at a resource of its level; its permissions count there and on everything below."""

    name: str
    level: Level
    description: str
    permissions: Words


def _list(call: Call) -> Page[Role]:
    return shown(Role, call.roles.values())


OPERATIONS = (
    Operation(
        name="list_roles",
        method="GET",
        path="/roles",
        summary="Lists the manager roles with their levels and permissions.",
        permission=ANY_MANAGER,
        target=targets.instance,
        handle=_list,
        answers=Role,
        many=True,
    ),
)
