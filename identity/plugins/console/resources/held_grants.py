"""User grants on the page of their user: one row per project, and granting a project in two steps."""

from collections.abc import Iterator, Sequence
from typing import Any

from pyramid.response import Response

from identity.domain.errors import NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.names import name_key
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.search import matches_query
from identity.http.list_parameters import MAX_PAGE_SIZE
from identity.pages.forms import Form
from identity.plugins.console.badges import EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, Breadcrumbs
from identity.plugins.console.list_page import Cells
from identity.plugins.console.page_sections import Descriptions
from identity.plugins.console.resource_page import ResourcePage, ServiceUserResourcePage, UserResourcePage
from identity.plugins.console.resources.user_grants import (
    ORIGIN_PARAM,
    USER_ORIGIN,
    UserGrantListPage,
    add_user_grant,
    source_role_options,
)
from identity.plugins.console.role_selection import RoleOptions, SelectionCandidate, SelectThenRolesPage
from identity.plugins.console.routes import ConsoleRoute
from identity.storage.paging import PageRequest, ResultPage


class GranteeGrantListPage(ResourcePage[Any], UserGrantListPage):
    back_path_suffix = "/grants"

    lead = gettext_lazy("Roles in projects, which applications receive as claims.")
    columns = (gettext_lazy("Project"), gettext_lazy("Roles"), gettext_lazy("Since"))
    empty_text = gettext_lazy("Select a project and choose the roles that its applications are to receive.")
    section_id, always_links_to_list, section_empty = "grants", True, gettext_lazy("None")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[UserGrant]:
        return self.filter_page(self.services.storage.user_grants.page("user_id", self.entity.id, page_request))

    def build_rows(self, found: Sequence[UserGrant]) -> Sequence[Cells]:
        projects = self.services.storage.projects.find_many({user_grant.project_id for user_grant in found})
        return [
            self.grant_cells(
                user_grant,
                self._project_link(user_grant, projects.get(user_grant.project_id)),
                f"?{ORIGIN_PARAM}={USER_ORIGIN}",
            )
            for user_grant in found
        ]

    def _project_link(self, grant: UserGrant, project: Project | None) -> EntityLink:
        path = f"projects/{grant.project_id}"
        if grant.project_grant_id is not None:
            path = f"project-grants/{grant.project_grant_id}"
        return EntityLink(grant.project_id if project is None else project.name, f"{CONSOLE_PATH}/{path}")


class GrantProjectToUserPage(ResourcePage[Any], SelectThenRolesPage):
    selection_param = "project_id"
    selection_title = gettext_lazy("Select a project")
    reselect_label = gettext_lazy("Select another project")
    roles_title = gettext_lazy("Choose roles of {project}")
    search_hint = gettext_lazy("Any part of its name.")

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return [*super().breadcrumbs, (UserGrantListPage.title, f"{self.resource_path}/grants")]

    @property
    def title_suffix(self) -> str:
        return self.entity_name

    @property
    def lead(self) -> str:
        return self.entity_name

    @property
    def selected_name(self) -> str:
        return self.selected_project.name

    @property
    def selected_project(self) -> Project:
        """The project of step 2. Raises NotFound unless the user's organization owns it or was granted it."""
        project: Project | None = self.services.storage.projects.find(self.selected_id)
        if project is None or (
            project.organization_id != self.entity.organization_id and self._find_project_grant is None
        ):
            raise NotFound("project", self.selected_id)
        return project

    @property
    def _find_project_grant(self) -> ProjectGrant | None:
        """The active project grant to the user's organization."""
        stored = self.services.storage.project_grants
        grant: ProjectGrant | None = stored.find_for_organization(self.selected_id, self.entity.organization_id)
        return grant if grant is not None and grant.active else None

    @property
    def facts(self) -> Descriptions:
        owner = self.services.organizations.get(self.selected_project.organization_id)
        return [(gettext_lazy("Project"), self.selected_project.name), (gettext_lazy("Owner"), owner.name)]

    def candidates(self, page_request: PageRequest) -> ResultPage[SelectionCandidate]:
        owner = self.services.organizations.get(self.entity.organization_id)
        page = self.filter_page(self.services.storage.projects.page(owner.id, page_request))
        selection_candidates = [
            SelectionCandidate(project.name, owner.name, "project", self.selection_path(project.id))
            for project in page.items
        ]
        return ResultPage((*selection_candidates, *self._search_granted_projects(page_request)), page.next_cursor)

    def empty_search_message(self, page_request: PageRequest) -> str:
        if page_request.query:
            return super().empty_search_message(page_request)
        return gettext_lazy("There is no project to choose yet. Create one first.")

    def _search_granted_projects(self, page_request: PageRequest) -> Iterator[SelectionCandidate]:
        storage = self.services.storage
        every = PageRequest(limit=MAX_PAGE_SIZE, active=True)
        page = self.filter_page(storage.project_grants.page("organization_id", self.entity.organization_id, every))
        projects = storage.projects.find_many({project_grant.project_id for project_grant in page})
        owners = storage.organizations.find_many({project.organization_id for project in projects.values()})
        for project in sorted(projects.values(), key=lambda project: name_key(project.name)):
            if matches_query(page_request.query, project) and project.organization_id in owners:
                yield SelectionCandidate(
                    project.name, owners[project.organization_id].name, "grant", self.selection_path(project.id)
                )

    def role_options(self) -> RoleOptions:
        is_owner = self.selected_project.organization_id == self.entity.organization_id
        return source_role_options(self, (None if is_owner else self._find_project_grant) or self.selected_project)

    @property
    def success_path(self) -> str:
        return f"{self.cancel_path}#grants"

    def submit(self, form: Form) -> Response:
        return add_user_grant(self, form, self.entity.id, self.selected_project.id)


_USERS = (UserResourcePage, ServiceUserResourcePage)
HELD_GRANTS = {kind: GranteeGrantListPage.for_resource(kind) for kind in _USERS}

ROUTES = (
    *(
        ConsoleRoute(f"{user.path}/grants", HELD_GRANTS[user], "user_grant.read", user.context_factory)
        for user in _USERS
    ),
    *(
        ConsoleRoute(
            f"{user.path}/grants/new",
            GrantProjectToUserPage.for_resource(user),
            "user_grant.write",
            user.context_factory,
        )
        for user in _USERS
    ),
)
