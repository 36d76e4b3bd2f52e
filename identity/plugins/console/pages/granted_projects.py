"""Granted projects: what other organizations let this one use."""

from collections.abc import Sequence

from identity.domain.projects import ProjectGrant
from identity.domain.words import say
from identity.http import targets
from identity.plugins.console.badges import state_badge
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.places import Place
from identity.plugins.console.things import grant_href
from identity.storage.paging import Page, PageRequest


class GrantedProjectList(ListPage):
    """One row a project, newest grant first."""

    section = "granted-projects"
    title = say("Granted projects")
    lead = say("Projects of other organizations, with the roles that you can give to your own users.")
    columns = (say("Project"), say("Owner"), say("Roles"), say("State"), say("Since"))
    empty_title = say("No granted projects")
    empty_text = say("No other organization has granted you a project.")

    def fetch(self, asked: PageRequest) -> Page[ProjectGrant]:
        return self.services.project_grants.page_held(self.context.value.id, asked, by=self.principal)

    def rows(self, found: Sequence[ProjectGrant]) -> Sequence[Cells]:
        storage = self.services.storage
        projects = storage.projects.find_many({one.project_id for one in found})
        owners = storage.organizations.find_many({one.organization_id for one in projects.values()})
        return [
            (
                self.ui.named(projects[one.project_id].name, grant_href(one)),
                owners[projects[one.project_id].organization_id].name,
                self.roles(one.roles) or self.faint(say("None")),
                self.badge(state_badge(one.active, self.words)),
                self.ui.when(one.created_at),
            )
            for one in found
            if one.project_id in projects and projects[one.project_id].organization_id in owners
        ]


PLACES = (
    Place(
        "/organizations/{organization}/granted-projects",
        GrantedProjectList,
        "project_grant.read",
        targets.organization_or_part,
    ),
)
