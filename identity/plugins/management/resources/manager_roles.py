"""Manager roles: which ones can be granted, and their permissions."""

from identity.domain.permissions import ManagerLevel
from identity.http import route_contexts
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.representation import Representation, SortedTexts


class ManagerRoleRepresentation(Representation):
    """A manager role, held at a resource of its level; its permissions count there and on everything below."""

    name: str
    level: ManagerLevel
    description: str
    permissions: SortedTexts


_ROLES = ApiResource(
    kind="role",
    representation=ManagerRoleRepresentation,
    path="",
    list_path="/roles",
    context_factory=route_contexts.instance_context,
)

OPERATIONS = (
    _ROLES.list_operation(
        "Lists the manager roles with their levels and permissions.",
        lambda call: call.roles.values(),
        paged=False,
        permission=ANY_MANAGER_PERMISSION,
    ),
)
