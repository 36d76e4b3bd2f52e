"""Granted projects: what other organizations let this one use."""

from collections.abc import Sequence

from identity.domain.projects import ProjectGrant
from identity.domain.search import is_found
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
        """The grants that the organization holds; those alone that whoever looks may read."""
        grants = self.services.storage.project_grants
        parts = self.services.access.parts(self.principal, "project_grant.read", self.resource)
        if parts is None:
            return self.listed(grants.page("organization_id", self.context.value.id, asked))
        held = [one for one in grants.find_many({part.id for part in parts}).values() if self._fits(one, asked)]
        return self.listed(Page(tuple(sorted(held, key=lambda one: one.created_at, reverse=True))))

    def _fits(self, grant: ProjectGrant, asked: PageRequest) -> bool:
        project = self.services.storage.projects.find(grant.project_id)
        mine = grant.organization_id == self.context.value.id and asked.active in (None, grant.active)
        return mine and project is not None and is_found(asked.query, project)

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
