"""Granted projects: projects of other organizations that this one may use."""

from collections.abc import Sequence
from dataclasses import replace

from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.domain.projects import ProjectGrant
from identity.http import route_contexts
from identity.plugins.console.badges import state_badge
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.resource_types import ORGANIZATION, PROJECT_GRANT


def _rows(page: ConsolePage, grants: Sequence[ProjectGrant]) -> Sequence[Cells]:
    storage = page.services.storage
    projects = storage.projects.find_many({grant.project_id for grant in grants})
    owners = storage.organizations.find_many({project.organization_id for project in projects.values()})
    rows = []
    for grant in grants:
        project = projects.get(grant.project_id)
        if project is not None and project.organization_id in owners:
            rows.append(
                (
                    page.template_macros.named(project.name, PROJECT_GRANT.path_of(grant)),
                    owners[project.organization_id].name,
                    page.render_role_names(grant.roles) or page.render_placeholder(_("None")),
                    page.render_badge(state_badge(grant.active, page.translator)),
                    page.template_macros.when(grant.created_at),
                )
            )
    return rows


#: One row per project, newest grant first.
GRANTED_PROJECTS = ResourceList(
    path="/granted-projects",
    permission="project_grant.read",
    section="granted-projects",
    title=_("Granted projects"),
    lead=_("Projects of other organizations, with the roles that you can grant to your own users."),
    columns=(_("Project"), _("Owner"), _("Roles"), _("State"), _("Since")),
    fetch=lambda page, request: page.services.project_grants.page_received(
        page.entity_of(Organization).id, request, principal=page.principal
    ),
    rows=_rows,
    empty_title=_("No granted projects"),
    empty_text=_("No other organization has granted you a project."),
)

ROUTES = (
    replace(list_route(GRANTED_PROJECTS, ORGANIZATION), context_factory=route_contexts.organization_or_child_context),
)
