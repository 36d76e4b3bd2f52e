"""Project roles: what applications of a project understand."""

from typing import Any

from identity.domain import projects
from identity.http import targets
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Representation, showing
from identity.plugins.management.resource import Resource
from identity.services.commands.projects import AddProjectRole, ChangeProjectRole


@showing(projects.ProjectRole, without={"project_id"})
class ProjectRole(Representation):
    """A role of a project. Its key never changes."""


def _change(call: Call) -> Any:
    project_id, key = call.value.id, call.names["role"]
    return call.services.projects.change_role(project_id, key, call.command, expected_version=call.expected_version)


_ROLES = Resource(
    kind="project_role",
    answers=ProjectRole,
    # Keys may hold slashes.
    path="/projects/{project}/roles/{role:.+}",
    target=targets.project,
    delete="write",
)

OPERATIONS = (
    _ROLES.lists(
        "Lists the roles of a project, by key.",
        lambda call: call.services.storage.projects.roles(call.value.id),
        paged=False,
    ),
    _ROLES.makes(
        "add",
        "Adds a role to a project.",
        AddProjectRole,
        lambda call: call.services.projects.add_role(call.value.id, call.command),
        location="/projects/{project}/roles/{key}",
    ),
    _ROLES.shows(
        "Shows a role of a project.",
        lambda call: _ROLES.pick(call, call.services.storage.projects.roles(call.value.id), by="key"),
    ),
    _ROLES.does(
        "change", "PATCH", "Changes a role's display name and group.", _change, at="", command=ChangeProjectRole
    ),
    _ROLES.removes(
        "Removes a role from a project: whoever has it loses it.",
        lambda call: call.services.projects.remove_role(call.value.id, call.names["role"]),
        verb="remove",
    ),
)
