"""Manager roles: what there is to be given, and what it brings."""

from identity.domain.permissions import Level
from identity.http import targets
from identity.http.security import ANY_MANAGER
from identity.plugins.management.representation import Representation, Words
from identity.plugins.management.resource import Resource


class Role(Representation):
    """A manager role, held at a resource of its level; its permissions count there and on everything below."""

    name: str
    level: Level
    description: str
    permissions: Words


_ROLES = Resource(kind="role", answers=Role, path="", list_path="/roles", target=targets.instance)

OPERATIONS = (
    _ROLES.lists(
        "Lists the manager roles with their levels and permissions.",
        lambda call: call.roles.values(),
        paged=False,
        permission=ANY_MANAGER,
    ),
)
