"""Projects: list, create, detail page, edit, deactivate and delete."""

from collections.abc import Sequence
from typing import Any

from identity.domain.messages import gettext_lazy
from identity.domain.organizations import Organization
from identity.domain.projects import Project
from identity.http import route_contexts
from identity.plugins.console.action_page import REACTIVATION_HINT, DeactivatePage, DeletePage, ReactivatePage
from identity.plugins.console.audience_scopes import project_audience_scope
from identity.plugins.console.badges import state_badge
from identity.plugins.console.console_page import CONSOLE_PATH
from identity.plugins.console.detail_page import ResourceDetailPage
from identity.plugins.console.form_fields import form_fields
from identity.plugins.console.form_page import CreatePage, EditPage
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.page_sections import DescriptionListSection, Descriptions, NoteSection, PageSection
from identity.plugins.console.resource_page import ProjectResourcePage
from identity.plugins.console.resources.applications import ApplicationListPage
from identity.plugins.console.resources.managers import ManagerListPage
from identity.plugins.console.resources.project_grants import ProjectGrantListPage
from identity.plugins.console.resources.project_roles import ProjectRoleListPage
from identity.plugins.console.resources.user_grants import USER_GRANTS
from identity.plugins.console.routes import ConsoleRoute, resource_routes
from identity.services.commands.projects import ChangeProject, CreateProject
from identity.storage.paging import PageRequest, ResultPage


class ProjectListPage(ListPage):
    """By name; managers of single projects see these only."""

    section = "projects"
    title = gettext_lazy("Projects")
    lead = gettext_lazy("What belongs together: applications, the roles that they know, and who has them.")
    columns = (
        gettext_lazy("Name"),
        gettext_lazy("Applications"),
        gettext_lazy("Roles"),
        gettext_lazy("State"),
        gettext_lazy("Created"),
    )
    sort_orders = (("name", gettext_lazy("Name")), ("created_at", gettext_lazy("Created")))
    empty_title = gettext_lazy("No projects yet")
    empty_text = gettext_lazy(
        "A project holds applications, roles and who has them. Create one, then register an application."
    )
    create_permission, entity_label = "project.create", gettext_lazy("project")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[Any]:
        return self.services.projects.page(self.context.entity.id, page_request, principal=self.principal)

    def build_rows(self, found: Sequence[Project]) -> Sequence[Cells]:
        counts = self.services.storage.projects.count_children([project.id for project in found])
        return [
            (
                self.template_macros.named(project.name, f"{CONSOLE_PATH}/projects/{project.id}"),
                *(number or self.render_placeholder("0") for number in counts[project.id]),
                self.render_badge(state_badge(project.active, self.translator)),
                self.template_macros.when(project.created_at),
            )
            for project in found
            if project.id in counts
        ]


_FIELDS = form_fields(Project)


class ProjectCreatePage(CreatePage):
    section, section_label = "projects", gettext_lazy("Projects")
    title = gettext_lazy("New project")
    form_fields = _FIELDS
    command = CreateProject
    resource_path = "projects"

    def create(self, command: CreateProject) -> Any:
        organization: Organization = self.context.entity
        return self.services.projects.create(organization.id, command, principal=self.principal)


_ACTIONS = (
    DeactivatePage.for_resource(
        ProjectResourcePage,
        title=gettext_lazy("Deactivate the project “{name}”?"),
        description=gettext_lazy("Its applications stop working at once. You can reactivate it later."),
        impact=(gettext_lazy("Nobody signs in to its applications, and no token is issued for it."), REACTIVATION_HINT),
        submit_label=gettext_lazy("Deactivate project"),
    ),
    ReactivatePage.for_resource(
        ProjectResourcePage,
        title=gettext_lazy("Reactivate the project “{name}”?"),
        description=gettext_lazy("Its applications work again."),
        impact=(gettext_lazy("Its applications work again, but for those that are deactivated themselves."),),
        submit_label=gettext_lazy("Reactivate project"),
    ),
    DeletePage.for_resource(
        ProjectResourcePage,
        title=gettext_lazy("Delete the project “{name}”?"),
        description=gettext_lazy("Removes the project, its applications, roles and grants for ever."),
        undone=gettext_lazy("This cannot be undone. Nobody signs in to its applications any more."),
        submit_label=gettext_lazy("Delete project"),
    ),
)


class ProjectDetailPage(ProjectResourcePage, ResourceDetailPage):
    actions = _ACTIONS

    @property
    def lead(self) -> Sequence[str]:
        return [gettext_lazy("Project"), *([] if self.organization is None else [self.organization.name])]

    @property
    def descriptions(self) -> Descriptions:
        return [
            (gettext_lazy("Project id"), self.template_macros.identifier(self.entity.id)),
            (
                gettext_lazy("Audience scope"),
                self.template_macros.identifier(project_audience_scope(self, self.entity.id)),
            ),
            (gettext_lazy("Created"), self.template_macros.when(self.entity.created_at, relative=True)),
        ]

    @property
    def sections(self) -> Sequence[PageSection | NoteSection | None]:
        return [
            ApplicationListPage.bind_to_page(self).build_section(),
            ProjectRoleListPage.bind_to_page(self).build_section(),
            ProjectGrantListPage.bind_to_page(self).build_section(),
            USER_GRANTS[ProjectResourcePage]
            .bind_to_page(self)
            .build_section(lead=gettext_lazy("Users with roles in the project.")),
            ManagerListPage.bind_to_page(self).build_section(lead=gettext_lazy("Users who manage this project.")),
            DescriptionListSection("settings", gettext_lazy("Settings"), facts=self.field_descriptions(self.entity)),
        ]

    def actions_section(self) -> PageSection | NoteSection | None:
        if self.services.projects.is_own_project(self.entity.id):
            return NoteSection(
                gettext_lazy("This project stands for the service itself. It cannot be deactivated or deleted."), True
            )
        return super().actions_section()


_LIST = "/organizations/{organization}/projects"

ROUTES = (
    ConsoleRoute(_LIST, ProjectListPage, "project.read", route_contexts.organization_or_child_context),
    ConsoleRoute(f"{_LIST}/new", ProjectCreatePage, "project.create", route_contexts.organization_context),
    *resource_routes(
        ProjectDetailPage,
        EditPage.for_resource(ProjectResourcePage, form_fields=_FIELDS, command=ChangeProject),
        *_ACTIONS,
    ),
)
