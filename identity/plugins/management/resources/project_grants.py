"""Project grants: a project, with some of its roles, granted to another organization."""

from identity.domain import projects
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

    `project_name` and `owner_name` are all that the organization learns of the one that owns the project.
    """

    moves = True

    project_name: str
    owner_name: str


def _shown(call: Call, grant: projects.ProjectGrant) -> ProjectGrant:
    project = call.services.projects.get(grant.project_id)
    owner = call.services.organizations.get(project.organization_id)
    return ProjectGrant.of(grant, project_name=project.name, owner_name=owner.name)


def _listed(call: Call, grants: Page[projects.ProjectGrant]) -> Page[ProjectGrant]:
    storage = call.services.storage
    granted = storage.projects.find_many({one.project_id for one in grants})
    owners = storage.organizations.find_many({one.organization_id for one in granted.values()})
    return grants.showing(
        ProjectGrant.of(one, project_name=project.name, owner_name=owner.name)
        for one in grants
        if (project := granted.get(one.project_id)) and (owner := owners.get(project.organization_id))
    )


_GRANTS = Resource(
    kind="project_grant",
    answers=ProjectGrant,
    path="/project-grants/{project_grant}",
    list_path="/projects/{project}/grants",
    target=targets.project_grant,
    owner=targets.project,
    show=_shown,
)

OPERATIONS = (
    _GRANTS.lists(
        "Lists the grants of a project, newest first.",
        lambda call: _listed(
            call, call.listed(call.services.storage.project_grants.page("project_id", call.value.id, call.page))
        ),
    ),
    _GRANTS.lists(
        "Lists the project grants that an organization holds, newest first.",
        lambda call: _listed(call, call.services.project_grants.page_held(call.value.id, call.page, by=call.by)),
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
