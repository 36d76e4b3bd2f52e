"""Project roles: what applications of a project understand."""

from identity.domain.projects import Project, ProjectRole
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.entity_paths import PROJECT
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.projects import AddProjectRole, ChangeProjectRole


@representation_fields(ProjectRole, without={"project_id"})
class ProjectRoleRepresentation(Representation):
    """A role of a project. Its key never changes."""


def _find_role(call: OperationCall[Project]) -> ProjectRole:
    roles = call.services.storage.projects.list_roles(call.entity.id)
    return call.find_child("role", roles, lambda role: role.key)


_ROLES = ApiResource[ProjectRole]("project_role", ProjectRoleRepresentation)
_LIST = PROJECT / "roles"
#: Keys may contain slashes.
_ROLE = _LIST / "{role:.+}"

OPERATIONS = (
    _ROLES.list(
        _LIST,
        "Lists the roles of a project, by key.",
        lambda call: call.services.storage.projects.list_roles(call.entity.id),
        is_paged=False,
    ),
    _ROLES.create(
        "add_project_role",
        _LIST,
        "Adds a role to a project.",
        AddProjectRole,
        lambda call, command: call.services.projects.add_role(call.entity.id, command),
        location="/projects/{project}/roles/{key}",
    ),
    _ROLES.get(_ROLE, "Shows a role of a project.", _find_role),
    _ROLES.change(
        _ROLE,
        "Changes a role's display name and group.",
        ChangeProjectRole,
        lambda call, command: call.services.projects.change_role(
            call.entity.id, call.child_id, command, expected_version=call.expected_version
        ),
    ),
    _ROLES.delete(
        "remove_project_role",
        _ROLE,
        "Removes a role from a project: users who have it lose it.",
        lambda call: call.services.projects.remove_role(call.entity.id, call.child_id),
        permission="project_role.write",
    ),
)
