"""Granted projects: what other organizations let this one use."""

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
    """One row a project, newest grant first."""

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

    def fetch_page(self, asked: PageRequest) -> ResultPage[ProjectGrant]:
        return self.services.project_grants.page_received(self.context.entity.id, asked, by=self.principal)

    def build_rows(self, found: Sequence[ProjectGrant]) -> Sequence[Cells]:
        storage = self.services.storage
        projects = storage.projects.find_many({one.project_id for one in found})
        owners = storage.organizations.find_many({one.organization_id for one in projects.values()})
        return [
            (
                self.template_macros.named(projects[one.project_id].name, project_grant_path(one)),
                owners[projects[one.project_id].organization_id].name,
                self.render_role_names(one.roles) or self.render_placeholder(gettext_lazy("None")),
                self.render_badge(state_badge(one.active, self.translator)),
                self.template_macros.when(one.created_at),
            )
            for one in found
            if one.project_id in projects and projects[one.project_id].organization_id in owners
        ]


ROUTES = (
    ConsoleRoute(
        "/organizations/{organization}/granted-projects",
        GrantedProjectListPage,
        "project_grant.read",
        route_contexts.organization_or_child_context,
    ),
)
