"""Project grants: a project, with some of its roles, granted to another organization."""

from identity.domain import projects
from identity.http import route_contexts
from identity.plugins.management.api_resource import ApiResource
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.storage.paging import ResultPage


@representation_fields(projects.ProjectGrant)
class ProjectGrantRepresentation(Representation):
    """A project grant. The organization may give on the granted roles, and no others.

    It is accepted once somebody who gives roles in that organization has made it, or has given a role from it. Until
    then people of the organization are asked before an application of the project learns who they are.

    `project_name` and `owner_name` are all that the organization learns of the one that owns the project.
    """

    has_volatile_members = True

    project_name: str
    owner_name: str


def _represent(call: OperationCall, grant: projects.ProjectGrant) -> ProjectGrantRepresentation:
    project = call.services.projects.get(grant.project_id)
    owner = call.services.organizations.get(project.organization_id)
    return ProjectGrantRepresentation.from_value(grant, project_name=project.name, owner_name=owner.name)


def _represent_page(
    call: OperationCall, grants: ResultPage[projects.ProjectGrant]
) -> ResultPage[ProjectGrantRepresentation]:
    storage = call.services.storage
    granted = storage.projects.find_many({grant.project_id for grant in grants})
    owners = storage.organizations.find_many({project.organization_id for project in granted.values()})
    return grants.with_items(
        ProjectGrantRepresentation.from_value(grant, project_name=project.name, owner_name=owner.name)
        for grant in grants
        if (project := granted.get(grant.project_id)) and (owner := owners.get(project.organization_id))
    )


_GRANTS = ApiResource(
    kind="project_grant",
    representation=ProjectGrantRepresentation,
    path="/project-grants/{project_grant}",
    list_path="/projects/{project}/grants",
    context_factory=route_contexts.project_grant_context,
    parent_context_factory=route_contexts.project_context,
    represent=_represent,
)

OPERATIONS = (
    _GRANTS.list_operation(
        "Lists the grants of a project, newest first.",
        lambda call: _represent_page(
            call, call.filter_page(call.services.storage.project_grants.page("project_id", call.entity.id, call.page))
        ),
    ),
    _GRANTS.list_operation(
        "Lists the project grants that an organization holds, newest first.",
        lambda call: _represent_page(
            call, call.services.project_grants.page_received(call.entity.id, call.page, principal=call.principal)
        ),
        name="list_granted_projects",
        path="/organizations/{organization}/granted-projects",
        owner=route_contexts.organization_or_child_context,
    ),
    _GRANTS.create_operation(
        "add",
        "Grants a project, with the roles named, to another organization.",
        AddProjectGrant,
        lambda call: call.services.project_grants.add(call.entity.id, call.command, principal=call.principal),
    ),
    _GRANTS.get_operation("Shows a project grant."),
    _GRANTS.update_operation(
        "Replaces the roles of a project grant: users lose what is no longer granted.", ChangeProjectGrant
    ),
    _GRANTS.deactivate_operation("Deactivates a project grant: the organization loses access until it is reactivated."),
    _GRANTS.reactivate_operation("Reactivates a project grant."),
    _GRANTS.delete_operation("Withdraws a project grant: what derives from it is gone at once.", verb="withdraw"),
)
