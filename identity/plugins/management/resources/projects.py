"""Projects: what applications and roles belong to."""

from identity.http import targets
from identity.plugins.management.operation import PAGED, SEARCH, STATES, Call, Operation, shown, sorted_by
from identity.plugins.management.representation import State, Versioned
from identity.services.commands.projects import ChangeProject, CreateProject
from identity.storage.paging import Page
from identity.storage.stores.projects import ORDERS


class Project(Versioned):
    """A project. `assert_roles` puts users' roles into userinfo unasked, `check_roles` refuses users without any."""

    organization_id: str
    name: str
    assert_roles: bool
    check_roles: bool
    state: State


def _list(call: Call) -> Page[Project]:
    return shown(Project, call.services.projects.page(call.value.id, call.page, by=call.by))


def _create(call: Call) -> Project:
    return Project.of(call.services.projects.create(call.value.id, call.command, by=call.by))


def _show(call: Call) -> Project:
    return Project.of(call.value)


def _change(call: Call) -> Project:
    changed = call.services.projects.change(call.value.id, call.command, expected_version=call.expected_version)
    return Project.of(changed)


def _deactivate(call: Call) -> Project:
    return Project.of(call.services.projects.deactivate(call.value.id))


def _reactivate(call: Call) -> Project:
    return Project.of(call.services.projects.reactivate(call.value.id))


def _delete(call: Call) -> None:
    call.services.projects.remove(call.value.id)


_LIST = "/organizations/{organization}/projects"
_PATH = "/projects/{project}"

OPERATIONS = (
    Operation(
        name="list_projects",
        method="GET",
        path=_LIST,
        summary="Lists the projects of an organization, by name unless said otherwise.",
        description="Who manages single projects gets these alone.",
        permission="project.read",
        target=targets.organization_or_part,
        handle=_list,
        answers=Project,
        many=True,
        parameters=(*PAGED, SEARCH, STATES, sorted_by(ORDERS)),
    ),
    Operation(
        name="create_project",
        method="POST",
        path=_LIST,
        summary="Creates a project.",
        description="Who may create projects and no more becomes its PROJECT_OWNER.",
        permission="project.create",
        target=targets.organization,
        handle=_create,
        command=CreateProject,
        answers=Project,
        location="/projects/{id}",
    ),
    Operation(
        name="show_project",
        method="GET",
        path=_PATH,
        summary="Shows a project.",
        permission="project.read",
        target=targets.project,
        handle=_show,
        answers=Project,
    ),
    Operation(
        name="change_project",
        method="PATCH",
        path=_PATH,
        summary="Changes a project's name and settings.",
        permission="project.write",
        target=targets.project,
        handle=_change,
        command=ChangeProject,
        answers=Project,
    ),
    Operation(
        name="deactivate_project",
        method="POST",
        path=f"{_PATH}/deactivate",
        summary="Deactivates a project: its applications stop working until it is reactivated.",
        permission="project.write",
        target=targets.project,
        handle=_deactivate,
        answers=Project,
    ),
    Operation(
        name="reactivate_project",
        method="POST",
        path=f"{_PATH}/reactivate",
        summary="Reactivates a project.",
        permission="project.write",
        target=targets.project,
        handle=_reactivate,
        answers=Project,
    ),
    Operation(
        name="delete_project",
        method="DELETE",
        path=_PATH,
        summary="Deletes a project with its applications, roles and grants.",
        permission="project.delete",
        target=targets.project,
        handle=_delete,
    ),
)
