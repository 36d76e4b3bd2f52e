"""Projects: list, make, look at, change, deactivate and delete."""

from collections.abc import Sequence
from typing import Any

from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.domain.words import say
from identity.http import targets
from identity.plugins.console.badges import state_badge
from identity.plugins.console.confirm_page import LATER, DeactivatePage, DeletePage, ReactivatePage
from identity.plugins.console.console_form import ChangePage, NewPage
from identity.plugins.console.console_page import CONSOLE
from identity.plugins.console.fields import fields_of
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.own_project import audience_scope
from identity.plugins.console.pages.applications import ApplicationList
from identity.plugins.console.pages.managers import ManagerList
from identity.plugins.console.pages.project_grants import ProjectGrantList
from identity.plugins.console.pages.project_roles import RoleList
from identity.plugins.console.pages.user_grants import USER_GRANTS
from identity.plugins.console.places import Place, of_things
from identity.plugins.console.sections import FactList, Facts, Note, Section
from identity.plugins.console.show_page import ShowPage
from identity.plugins.console.things import OfProject
from identity.services.commands.projects import ChangeProject, CreateProject
from identity.storage.paging import Page, PageRequest


class ProjectList(ListPage):
    """One row a project, by name; who manages single ones sees these alone."""

    section = "projects"
    title = say("Projects")
    lead = say("What belongs together: applications, the roles that they know, and who has them.")
    columns = (say("Name"), say("Applications"), say("Roles"), say("State"), say("Created"))
    orders = (("name", say("Name")), ("created_at", say("Created")))
    empty_title = say("No projects yet")
    empty_text = say("A project holds applications, roles and who has them. Create one, then register an application.")
    writing, what = "project.create", say("project")

    def fetch(self, asked: PageRequest) -> Page[Any]:
        return self.services.projects.page(self.context.value.id, asked, by=self.principal)

    def rows(self, found: Sequence[Project]) -> Sequence[Cells]:
        counts = self.services.storage.projects.counts([one.id for one in found])
        return [
            (
                self.ui.named(one.name, f"{CONSOLE}/projects/{one.id}"),
                *(number or self.faint("0") for number in counts[one.id]),
                self.badge(state_badge(one.active, self.words)),
                self.ui.when(one.created_at),
            )
            for one in found
            if one.id in counts
        ]


_FIELDS = fields_of(Project)


class NewProject(NewPage):
    """Makes one, and leads to its page."""

    section, under = "projects", say("Projects")
    title = say("New project")
    inputs = _FIELDS
    command = CreateProject
    pages_at = "projects"

    def make(self, command: CreateProject) -> Any:
        organization: Organization = self.context.value
        return self.services.projects.create(organization.id, command, by=self.principal)


_DEEDS = (
    DeactivatePage.of(
        OfProject,
        title=say("Deactivate the project “{name}”?"),
        offer=say("Its applications stop working at once. You can reactivate it later."),
        effects=(say("Nobody signs in to its applications, and no token is issued for it."), LATER),
        label=say("Deactivate project"),
    ),
    ReactivatePage.of(
        OfProject,
        title=say("Reactivate the project “{name}”?"),
        offer=say("Its applications work again."),
        effects=(say("Its applications work again, but for those that are deactivated themselves."),),
        label=say("Reactivate project"),
    ),
    DeletePage.of(
        OfProject,
        title=say("Delete the project “{name}”?"),
        offer=say("Removes the project, its applications, roles and grants for ever."),
        undone=say("This cannot be undone. Nobody signs in to its applications any more."),
        label=say("Delete project"),
    ),
)


class ProjectPage(OfProject, ShowPage):
    """All about one: facts, applications, roles, who has them, who manages it."""

    deeds = _DEEDS

    @property
    def lead(self) -> Sequence[str]:
        return [say("Project"), *([] if self.organization is None else [self.organization.name])]

    @property
    def facts(self) -> Facts:
        return [
            (say("Project id"), self.ui.identifier(self.thing.id)),
            (say("Audience scope"), self.ui.identifier(audience_scope(self, self.thing.id))),
            (say("Created"), self.ui.when(self.thing.created_at, relative=True)),
        ]

    @property
    def sections(self) -> Sequence[Section | Note | None]:
        return [
            ApplicationList.on(self).as_section(),
            RoleList.on(self).as_section(),
            ProjectGrantList.on(self).as_section(),
            USER_GRANTS[OfProject].on(self).as_section(lead=say("Users with roles in the project.")),
            ManagerList.on(self).as_section(lead=say("Users who manage this project.")),
            FactList("settings", say("Settings"), facts=self.settings(self.thing)),
        ]

    def last_section(self) -> Section | Note | None:
        if self.services.projects.is_own(self.thing.id):
            return Note(say("This project stands for the service itself. It cannot be deactivated or deleted."), True)
        return super().last_section()


_LIST = "/organizations/{organization}/projects"

PLACES = (
    Place(_LIST, ProjectList, "project.read", targets.organization_or_part),
    Place(f"{_LIST}/new", NewProject, "project.create", targets.organization),
    *of_things(ProjectPage, ChangePage.of(OfProject, inputs=_FIELDS, command=ChangeProject), *_DEEDS),
)
