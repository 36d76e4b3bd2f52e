"""Ways to projects and project grants: the pages above a page, and what these are called."""

from collections.abc import Sequence

from identity.domain.organizations import Organization
from identity.domain.permissions import organization_resource
from identity.domain.projects import Project, ProjectGrant
from identity.domain.words import say
from identity.plugins.console.console_page import CONSOLE, ConsolePage

Trail = Sequence[tuple[str, str]]


def grant_href(grant: ProjectGrant) -> str:
    """The address of a project grant's page."""
    return f"{CONSOLE}/project-grants/{grant.id}"


def grant_name(project: Project, holder: Organization) -> str:
    """What a project grant is called."""
    return say("{project} for {organization}", project=project.name, organization=holder.name)


def held_here(page: ConsolePage, grant: ProjectGrant) -> bool:
    """True if the page is drawn for the organization that holds the grant, not for the one that gave it."""
    return page.organization is not None and page.organization.id == grant.organization_id


def project_trail(page: ConsolePage, project: Project) -> Trail:
    """List of projects and, below it, the project."""
    return [(say("Projects"), f"{page.root}/projects"), (project.name, f"{CONSOLE}/projects/{project.id}")]


def grant_trail(page: ConsolePage, project: Project, grant: ProjectGrant) -> Trail:
    """The list in which whoever looks finds the grant; nothing for those who manage the grant alone."""
    access, principal = page.services.access, page.principal
    if held_here(page, grant):
        holder = organization_resource(grant.organization_id)
        if access.may(principal, "project_grant.read", holder):
            return [(say("Granted projects"), f"{page.root}/granted-projects")]
    elif page.may("project.read"):
        return [*project_trail(page, project), (say("Project grants"), f"{CONSOLE}/projects/{project.id}/grants")]
    return []
