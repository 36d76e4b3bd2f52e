"""Project grants: a project, with some of its roles, granted to another organization."""

from typing import Any

from identity.domain.permissions import Level
from identity.http import targets
from identity.plugins.management.operation import PAGED, STATES, Call, Operation
from identity.plugins.management.representation import State, Versioned, Words
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.storage.paging import Page


class ProjectGrant(Versioned):
    """A project grant. The organization may give on the granted roles, and no others.

    It is accepted once somebody who gives roles in that organization has made it, or has given a role from it. Until
    then people of the organization are asked before an application of the project learns who they are.
    """

    project_id: str
    organization_id: str
    roles: Words
    accepted: bool
    state: State


def _list(call: Call) -> Page[ProjectGrant]:
    return call.listed(ProjectGrant, call.services.storage.project_grants.page(call.value.id, call.page))


def _list_held(call: Call) -> Page[ProjectGrant]:
    parts = call.services.access.parts(call.by, "project_grant.read", call.resource)
    stored = call.services.storage.project_grants
    if parts is None:
        return call.listed(ProjectGrant, stored.page_held(call.value.id, call.page))
    managed = stored.find_many([part.id for part in parts if part.level is Level.PROJECT_GRANT]).values()
    own = [one for one in managed if one.organization_id == call.value.id and call.page.active in (None, one.active)]
    return call.listed(ProjectGrant, Page(tuple(sorted(own, key=lambda one: one.id, reverse=True))))


def _add(call: Call) -> ProjectGrant:
    return ProjectGrant.of(call.services.project_grants.add(call.value.id, call.command, by=call.by))


def _show(call: Call) -> ProjectGrant:
    return ProjectGrant.of(call.value)


def _change(call: Call) -> ProjectGrant:
    changed = call.services.project_grants.change(call.value.id, call.command, expected_version=call.expected_version)
    return ProjectGrant.of(changed)


def _deactivate(call: Call) -> ProjectGrant:
    return ProjectGrant.of(call.services.project_grants.deactivate(call.value.id))


def _reactivate(call: Call) -> ProjectGrant:
    return ProjectGrant.of(call.services.project_grants.reactivate(call.value.id))


def _withdraw(call: Call) -> None:
    call.services.project_grants.remove(call.value.id)


_LIST = "/projects/{project}/grants"
_PATH = "/project-grants/{project_grant}"
_WRITE: dict[str, Any] = {"permission": "project_grant.write", "target": targets.project_grant}

OPERATIONS = (
    Operation(
        name="list_project_grants",
        method="GET",
        path=_LIST,
        summary="Lists the grants of a project, newest first.",
        permission="project_grant.read",
        target=targets.project,
        handle=_list,
        answers=ProjectGrant,
        many=True,
        parameters=(*PAGED, STATES),
    ),
    Operation(
        name="list_granted_projects",
        method="GET",
        path="/organizations/{organization}/granted-projects",
        summary="Lists the project grants that an organization holds, newest first.",
        permission="project_grant.read",
        target=targets.organization_or_part,
        handle=_list_held,
        answers=ProjectGrant,
        many=True,
        parameters=(*PAGED, STATES),
    ),
    Operation(
        name="add_project_grant",
        method="POST",
        path=_LIST,
        summary="Grants a project, with the roles named, to another organization.",
        permission="project_grant.write",
        target=targets.project,
        handle=_add,
        command=AddProjectGrant,
        answers=ProjectGrant,
        location="/project-grants/{id}",
    ),
    Operation(
        name="show_project_grant",
        method="GET",
        path=_PATH,
        summary="Shows a project grant.",
        permission="project_grant.read",
        target=targets.project_grant,
        handle=_show,
        answers=ProjectGrant,
    ),
    Operation(
        name="change_project_grant",
        method="PATCH",
        path=_PATH,
        summary="Replaces the roles of a project grant: users lose what is no longer granted.",
        handle=_change,
        command=ChangeProjectGrant,
        answers=ProjectGrant,
        **_WRITE,
    ),
    Operation(
        name="deactivate_project_grant",
        method="POST",
        path=f"{_PATH}/deactivate",
        summary="Deactivates a project grant: the organization loses access until it is reactivated.",
        handle=_deactivate,
        answers=ProjectGrant,
        **_WRITE,
    ),
    Operation(
        name="reactivate_project_grant",
        method="POST",
        path=f"{_PATH}/reactivate",
        summary="Reactivates a project grant.",
        handle=_reactivate,
        answers=ProjectGrant,
        **_WRITE,
    ),
    Operation(
        name="withdraw_project_grant",
        method="DELETE",
        path=_PATH,
        summary="Withdraws a project grant: what derives from it is gone at once.",
        permission="project_grant.delete",
        target=targets.project_grant,
        handle=_withdraw,
    ),
)
