"""Project grants: a project, with some of its roles, granted to another organization."""

from typing import Any

from identity.domain import projects
from identity.domain.permissions import Level
from identity.http import targets
from identity.plugins.management.operation import Call
from identity.plugins.management.representation import Representation, showing
from identity.plugins.management.resource import Resource
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.storage.paging import Page


@showing(projects.ProjectGrant)
class ProjectGrant(Representation):
    """A project grant. The organization may give on the granted roles, and no others.

    It is accepted once somebody who gives roles in that organization has made it, or has given a role from it. Until
    then people of the organization are asked before an application of the project learns who they are.
    """


def _list(call: Call) -> Page[Any]:
    return call.listed(call.services.storage.project_grants.page("project_id", call.value.id, call.page))


def _list_held(call: Call) -> Page[Any]:
    parts = call.services.access.parts(call.by, "project_grant.read", call.resource)
    stored = call.services.storage.project_grants
    if parts is None:
        return call.listed(stored.page("organization_id", call.value.id, call.page))
    managed = stored.find_many([part.id for part in parts if part.level is Level.PROJECT_GRANT]).values()
    own = [one for one in managed if one.organization_id == call.value.id and call.page.active in (None, one.active)]
    return call.listed(Page(tuple(sorted(own, key=lambda one: one.id, reverse=True))))


_GRANTS = Resource(
    kind="project_grant",
    answers=ProjectGrant,
    path="/project-grants/{project_grant}",
    list_path="/projects/{project}/grants",
    target=targets.project_grant,
    owner=targets.project,
)

OPERATIONS = (
    _GRANTS.lists("Lists the grants of a project, newest first.", _list),
    _GRANTS.lists(
        "Lists the project grants that an organization holds, newest first.",
        _list_held,
        name="list_granted_projects",
        path="/organizations/{organization}/granted-projects",
        owner=targets.organization_or_part,
    ),
    _GRANTS.makes(
        "add",
        "Grants a project, with the roles named, to another organization.",
        AddProjectGrant,
        lambda call: call.services.project_grants.add(call.value.id, call.command, by=call.by),
    ),
    _GRANTS.shows("Shows a project grant."),
    _GRANTS.changes("Replaces the roles of a project grant: users lose what is no longer granted.", ChangeProjectGrant),
    _GRANTS.deactivates("Deactivates a project grant: the organization loses access until it is reactivated."),
    _GRANTS.reactivates("Reactivates a project grant."),
    _GRANTS.removes("Withdraws a project grant: what derives from it is gone at once.", verb="withdraw"),
)
