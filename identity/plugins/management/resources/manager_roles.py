"""Manager roles: which ones can be granted, and their permissions."""

from identity.domain.managers import ManagerRole
from identity.domain.permissions import ManagerLevel
from identity.http.security_policy import ANY_MANAGER_PERMISSION
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import INSTANCE
from identity.plugins.management.representation import Representation, SortedTexts


class ManagerRoleRepresentation(Representation):
    """A manager role, held at a resource of its level; its permissions count there and on everything below."""

    name: str
    level: ManagerLevel
    description: str
    permissions: SortedTexts


OPERATIONS = (
    ApiResource[ManagerRole]("role", ManagerRoleRepresentation).list(
        INSTANCE / "roles",
        "Lists the manager roles with their levels and permissions.",
        lambda call: call.request.registry.application.process_state.manager_roles.values(),
        is_paged=False,
        permission=ANY_MANAGER_PERMISSION,
    ),
)
