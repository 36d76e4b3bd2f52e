"""Project grants: a project, with some of its roles, granted to another organization."""

from typing import Any

from identity.domain.projects import ProjectGrant
from identity.plugins.management.api_resource import EntityApiResource
from identity.plugins.management.entity_paths import ORGANIZATION_OR_CHILD, PROJECT, PROJECT_GRANT
from identity.plugins.management.operation import OperationCall
from identity.plugins.management.representation import Representation, representation_fields
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.storage.paging import ResultPage


@representation_fields(ProjectGrant)
class ProjectGrantRepresentation(Representation):
    """A project grant. The organization may grant these roles to its users, and no others.

    It is accepted once a manager who grants roles in that organization has created it, or has granted a role from
    it. Until then people of the organization are asked for consent before an application of the project receives
    their data.

    It ends by itself at the moment `until`, with all user grants and manager roles that derive from it; null means that
    it has no end.

    `project_name` and `owner_name` are all that the organization learns about the owner of the project.
    """

    has_volatile_members = True

    project_name: str
    owner_name: str


def _represent(call: OperationCall[Any], grant: ProjectGrant) -> ProjectGrantRepresentation:
    project = call.services.projects.get(grant.project_id)
    owner = call.services.organizations.get(project.organization_id)
    return ProjectGrantRepresentation.from_value(grant, project_name=project.name, owner_name=owner.name)


def _represent_page(
    call: OperationCall[Any], grants: ResultPage[ProjectGrant]
) -> ResultPage[ProjectGrantRepresentation]:
    storage = call.services.storage
    granted = storage.projects.find_many({grant.project_id for grant in grants})
    owners = storage.organizations.find_many({project.organization_id for project in granted.values()})
    return grants.with_items(
        ProjectGrantRepresentation.from_value(grant, project_name=project.name, owner_name=owner.name)
        for grant in grants
        if (project := granted.get(grant.project_id)) and (owner := owners.get(project.organization_id))
    )


_GRANTS = EntityApiResource(
    "project_grant",
    ProjectGrantRepresentation,
    _represent,
    at=PROJECT_GRANT,
    change_command=ChangeProjectGrant,
    service=lambda services: services.project_grants,
)

OPERATIONS = (
    _GRANTS.list(
        PROJECT / "grants",
        "Lists the grants of a project, newest first.",
        lambda call: _represent_page(
            call, call.filter_page(call.services.storage.project_grants.page("project_id", call.entity.id, call.page))
        ),
    ),
    _GRANTS.list(
        ORGANIZATION_OR_CHILD / "granted-projects",
        "Lists the project grants that an organization holds, newest first.",
        lambda call: _represent_page(
            call, call.services.project_grants.page_received(call.entity.id, call.page, principal=call.principal)
        ),
        name="list_granted_projects",
    ),
    _GRANTS.create(
        "add_project_grant",
        PROJECT / "grants",
        "Grants a project, with the given roles, to another organization.",
        AddProjectGrant,
        lambda call, command: call.services.project_grants.add(call.entity.id, command, principal=call.principal),
        location="/project-grants/{id}",
    ),
    _GRANTS.show("Shows a project grant."),
    _GRANTS.update("Replaces the roles of a project grant, or its end: users lose what is no longer granted."),
    _GRANTS.deactivate("Deactivates a project grant: the organization loses access until it is reactivated."),
    _GRANTS.reactivate("Reactivates a project grant."),
    _GRANTS.remove("Withdraws a project grant: everything derived from it is removed at once.", verb="withdraw"),
)
