"""Project roles: what applications of a project understand."""

from typing import Any

from identity.domain import projects
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.projects import AddProjectRole, ChangeProjectRole


@representation_fields(projects.ProjectRole, without={"project_id"})
class ProjectRoleRepresentation(Representation):
    """A role of a project. Its key never changes."""


def _change(call: OperationCall) -> Any:
    project_id, key = call.entity.id, call.path_values["role"]
    return call.services.projects.change_role(project_id, key, call.command, expected_version=call.expected_version)


_ROLES = ApiResource(
    kind="project_role",
    representation=ProjectRoleRepresentation,
    # Keys may contain slashes.
    path="/projects/{project}/roles/{role:.+}",
    context_factory=route_contexts.project_context,
    delete_permission="write",
)

OPERATIONS = (
    _ROLES.list_operation(
        "Lists the roles of a project, by key.",
        lambda call: call.services.storage.projects.list_roles(call.entity.id),
        paged=False,
    ),
    _ROLES.create_operation(
        "add",
        "Adds a role to a project.",
        AddProjectRole,
        lambda call: call.services.projects.add_role(call.entity.id, call.command),
        location="/projects/{project}/roles/{key}",
    ),
    _ROLES.get_operation(
        "Shows a role of a project.",
        lambda call: _ROLES.find_child(
            call, call.services.storage.projects.list_roles(call.entity.id), attribute="key"
        ),
    ),
    _ROLES.action_operation(
        "change", "PATCH", "Changes a role's display name and group.", _change, at="", command=ChangeProjectRole
    ),
    _ROLES.delete_operation(
        "Removes a role from a project: whoever has it loses it.",
        lambda call: call.services.projects.remove_role(call.entity.id, call.path_values["role"]),
        verb="remove",
    ),
)
