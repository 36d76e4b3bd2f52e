"""User grants as users show them: one row a project, and one more in two steps."""

from collections.abc import Iterator, Sequence
from typing import Any

from pyramid.response import Response

from identity.domain.errors import NotFound
from identity.domain.names import name_key
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.search import is_found
from identity.domain.words import say
from identity.http.lists import MOST
from identity.pages.forms import Form
from identity.plugins.console.badges import Named
from identity.plugins.console.console_page import CONSOLE, Trail
from identity.plugins.console.list_page import Cells
from identity.plugins.console.pages.user_grants import OF, USER, GrantList, give, source_options
from identity.plugins.console.places import Place
from identity.plugins.console.roles_form import Candidate, Choices, SelectFirst
from identity.plugins.console.sections import Facts
from identity.plugins.console.things import OfServiceUser, OfThing, OfUser
from identity.storage.paging import Page, PageRequest


class HeldGrantList(OfThing[Any], GrantList):
    """One row a project."""

    below = "/grants"

    lead = say("Roles in projects, which applications receive as claims.")
    columns = (say("Project"), say("Roles"), say("Since"))
    empty_text = say("Select a project and choose the roles that its applications are to receive.")
    id, leads_on, section_empty = "grants", True, say("None")

    def fetch(self, asked: PageRequest) -> Page[UserGrant]:
        return self.listed(self.services.storage.user_grants.page("user_id", self.thing.id, asked))

    def rows(self, found: Sequence[UserGrant]) -> Sequence[Cells]:
        projects = self.services.storage.projects.find_many({one.project_id for one in found})
        return [self.grant_cells(one, self._named(one, projects.get(one.project_id)), f"?{OF}={USER}") for one in found]

    def _named(self, grant: UserGrant, project: Project | None) -> Named:
        of = f"projects/{grant.project_id}"
        if grant.project_grant_id is not None:
            of = f"project-grants/{grant.project_grant_id}"
        return Named(grant.project_id if project is None else project.name, f"{CONSOLE}/{of}")


class SelectProject(OfThing[Any], SelectFirst):
    """Step 1: select a project. Step 2: choose roles of it."""

    parameter = "project_id"
    select = say("Select a project")
    select_another = say("Select another project")
    choose = say("Choose roles of {project}")
    search_hint = say("Any part of its name.")

    @property
    def trail(self) -> Trail:
        return [*super().trail, (GrantList.title, f"{self.href}/grants")]

    @property
    def parent(self) -> str:
        return self.name

    @property
    def about(self) -> str:
        return self.name

    @property
    def chosen_name(self) -> str:
        return self.chosen.name

    @property
    def chosen(self) -> Project:
        """The project of step 2. Raises NotFound for one that the user's organization neither owns nor was granted."""
        project: Project | None = self.services.storage.projects.find(self.selected)
        if project is None or (project.organization_id != self.thing.organization_id and self._grant is None):
            raise NotFound("project", self.selected)
        return project

    @property
    def _grant(self) -> ProjectGrant | None:
        """The active grant of the project that the user's organization holds."""
        stored = self.services.storage.project_grants
        grant: ProjectGrant | None = stored.find_for(self.selected, self.thing.organization_id)
        return grant if grant is not None and grant.active else None

    @property
    def facts(self) -> Facts:
        owner = self.services.organizations.get(self.chosen.organization_id)
        return [(say("Project"), self.chosen.name), (say("Owner"), owner.name)]

    def candidates(self, asked: PageRequest) -> Page[Candidate]:
        owner = self.services.organizations.get(self.thing.organization_id)
        own = self.listed(self.services.storage.projects.page(owner.id, asked))
        found = [Candidate(one.name, owner.name, "project", self.href_of(one.id)) for one in own.items]
        return Page((*found, *self._granted(asked)), own.next)

    def nothing_found(self, asked: PageRequest) -> str:
        if asked.query:
            return super().nothing_found(asked)
        return say("There is no project to choose yet. Create one first.")

    def _granted(self, asked: PageRequest) -> Iterator[Candidate]:
        storage = self.services.storage
        every = PageRequest(limit=MOST, active=True)
        held = self.listed(storage.project_grants.page("organization_id", self.thing.organization_id, every))
        projects = storage.projects.find_many({one.project_id for one in held})
        owners = storage.organizations.find_many({one.organization_id for one in projects.values()})
        for project in sorted(projects.values(), key=lambda one: name_key(one.name)):
            if is_found(asked.query, project) and project.organization_id in owners:
                yield Candidate(project.name, owners[project.organization_id].name, "grant", self.href_of(project.id))

    def options(self) -> Choices:
        own = self.chosen.organization_id == self.thing.organization_id
        return source_options(self, (None if own else self._grant) or self.chosen)

    @property
    def done_at(self) -> str:
        return f"{self.back}#grants"

    def submit(self, form: Form) -> Response:
        return give(self, form, self.thing.id, self.chosen.id)


_USERS = (OfUser, OfServiceUser)
HELD_GRANTS = {kind: HeldGrantList.of(kind) for kind in _USERS}

PLACES = (
    *(Place(f"{one.path}/grants", HELD_GRANTS[one], "user_grant.read", one.target) for one in _USERS),
    *(Place(f"{one.path}/grants/new", SelectProject.of(one), "user_grant.write", one.target) for one in _USERS),
)
