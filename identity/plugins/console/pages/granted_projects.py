"""Granted projects: projects of other organizations that this one may use."""

from collections.abc import Sequence

from identity.domain.messages import gettext_lazy
from identity.domain.projects import ProjectGrant
from identity.http import route_contexts
from identity.plugins.console.badges import state_badge
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.resource_page import project_grant_path
from identity.plugins.console.routes import ConsoleRoute
from identity.storage.paging import PageRequest, ResultPage


class GrantedProjectListPage(ListPage):
    """One row per project, newest grant first."""

    section = "granted-projects"
    title = gettext_lazy("Granted projects")
    lead = gettext_lazy("Projects of other organizations, with the roles that you can give to your own users.")
    columns = (
        gettext_lazy("Project"),
        gettext_lazy("Owner"),
        gettext_lazy("Roles"),
        gettext_lazy("State"),
        gettext_lazy("Since"),
    )
    empty_title = gettext_lazy("No granted projects")
    empty_text = gettext_lazy("No other organization has granted you a project.")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[ProjectGrant]:
        return self.services.project_grants.page_received(
            self.context.entity.id, page_request, principal=self.principal
        )

    def build_rows(self, found: Sequence[ProjectGrant]) -> Sequence[Cells]:
        storage = self.services.storage
        projects = storage.projects.find_many({project_grant.project_id for project_grant in found})
        owners = storage.organizations.find_many({project.organization_id for project in projects.values()})
        return [
            (
                self.template_macros.named(projects[project_grant.project_id].name, project_grant_path(project_grant)),
                owners[projects[project_grant.project_id].organization_id].name,
                self.render_role_names(project_grant.roles) or self.render_placeholder(gettext_lazy("None")),
                self.render_badge(state_badge(project_grant.active, self.translator)),
                self.template_macros.when(project_grant.created_at),
            )
            for project_grant in found
            if project_grant.project_id in projects and projects[project_grant.project_id].organization_id in owners
        ]


ROUTES = (
    ConsoleRoute(
        "/organizations/{organization}/granted-projects",
        GrantedProjectListPage,
        "project_grant.read",
        route_contexts.organization_or_child_context,
    ),
)
