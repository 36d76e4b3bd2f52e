"""Project roles: what applications of a project understand."""

from identity.domain.errors import NotFound
from identity.http import targets
from identity.plugins.management.operation import Call, Operation, shown
from identity.plugins.management.representation import Representation
from identity.services.commands.projects import AddProjectRole, ChangeProjectRole
from identity.storage.paging import Page


class ProjectRole(Representation):
    """A role of a project. Its key never changes."""

    key: str
    display_name: str
    group: str
    version: int


def _list(call: Call) -> Page[ProjectRole]:
    return shown(ProjectRole, call.services.storage.projects.roles(call.value.id))


def _add(call: Call) -> ProjectRole:
    return ProjectRole.of(call.services.projects.add_role(call.value.id, call.command))


def _show(call: Call) -> ProjectRole:
    key = call.names["role"]
    for role in call.services.storage.projects.roles(call.value.id):
        if role.key == key:
            return ProjectRole.of(role)
    raise NotFound("role", key)


def _change(call: Call) -> ProjectRole:
    changed = call.services.projects.change_role(
        call.value.id, call.names["role"], call.command, expected_version=call.expected_version
    )
    return ProjectRole.of(changed)


def _remove(call: Call) -> None:
    call.services.projects.remove_role(call.value.id, call.names["role"])


_LIST = "/projects/{project}/roles"
# Keys may hold slashes.
_PATH = "/projects/{project}/roles/{role:.+}"

OPERATIONS = (
    Operation(
        name="list_project_roles",
        method="GET",
        path=_LIST,
        summary="Lists the roles of a project, by key.",
        permission="project_role.read",
        target=targets.project,
        handle=_list,
        answers=ProjectRole,
        many=True,
    ),
    Operation(
        name="add_project_role",
        method="POST",
        path=_LIST,
        summary="Adds a role to a project.",
        permission="project_role.write",
        target=targets.project,
        handle=_add,
        command=AddProjectRole,
        answers=ProjectRole,
        location="/projects/{project}/roles/{key}",
    ),
    Operation(
        name="show_project_role",
        method="GET",
        path=_PATH,
        summary="Shows a role of a project.",
        permission="project_role.read",
        target=targets.project,
        handle=_show,
        answers=ProjectRole,
    ),
    Operation(
        name="change_project_role",
        method="PATCH",
        path=_PATH,
        summary="Changes a role's display name and group.",
        permission="project_role.write",
        target=targets.project,
        handle=_change,
        command=ChangeProjectRole,
        answers=ProjectRole,
    ),
    Operation(
        name="remove_project_role",
        method="DELETE",
        path=_PATH,
        summary="Removes a role from a project: whoever has it loses it.",
        permission="project_role.write",
        target=targets.project,
        handle=_remove,
    ),
)
