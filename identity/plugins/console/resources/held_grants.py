"""User grants on the page of their user: one row per project, and granting a project in two steps."""

from collections.abc import Iterator, Sequence
from typing import Any

from pyramid.response import Response

from identity.domain.errors import NotFound
from identity.domain.groups import GroupGrant
from identity.domain.messages import gettext_lazy as _
from identity.domain.names import name_key
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.search import matches_query
from identity.http.list_parameters import MAX_PAGE_SIZE
from identity.pages.forms import Form
from identity.plugins.console.badges import EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.page_sections import Descriptions
from identity.plugins.console.resource_types import SERVICE_USER, USER, AnyResourceType, EntityTitledPage
from identity.plugins.console.resources.user_grants import (
    GRANTS_TITLE,
    ORIGIN_PARAM,
    USER_ORIGIN,
    add_user_grant,
    grant_cells,
    source_role_options,
)
from identity.plugins.console.role_selection import RoleOptions, SelectionCandidate, SelectThenRolesPage
from identity.storage.paging import PageRequest, ResultPage


def _rows(page: ConsolePage, grants: Sequence[UserGrant]) -> Sequence[Cells]:
    projects = page.services.storage.projects.find_many({grant.project_id for grant in grants})
    query = f"?{ORIGIN_PARAM}={USER_ORIGIN}"
    return [grant_cells(page, grant, project_link(grant, projects.get(grant.project_id)), query) for grant in grants]


def project_link(grant: UserGrant | GroupGrant, project: Project | None) -> EntityLink:
    path = f"projects/{grant.project_id}"
    if grant.project_grant_id is not None:
        path = f"project-grants/{grant.project_grant_id}"
    return EntityLink(grant.project_id if project is None else project.name, f"{CONSOLE_PATH}/{path}")


#: Of a person or a service user.
HELD_GRANTS = ResourceList(
    path="/grants",
    permission="user_grant.read",
    title=GRANTS_TITLE,
    lead=_("Roles in projects, which applications receive as claims."),
    columns=(_("Project"), _("Roles"), _("Since")),
    has_row_buttons=True,
    fetch=lambda page, request: page.filter_page(
        page.services.storage.user_grants.page("user_id", page.context.entity.id, request)
    ),
    rows=_rows,
    empty_title=_("No user grants yet"),
    empty_text=_("Select a project and choose the roles that its applications receive."),
    create="user_grant.write",
    entity_label=_("user grant"),
    all_label=_("All user grants …"),
    section_empty=_("None"),
    always_links_to_list=True,
)


class GrantProjectPage(EntityTitledPage[Any], SelectThenRolesPage):
    """``entity`` is the user, or something else with roles."""

    selection_param = "project_id"
    selection_title = _("Select a project")
    reselect_label = _("Select another project")
    roles_title = _("Choose roles of {project}")
    search_hint = _("Any part of its name.")
    list_breadcrumb = (HELD_GRANTS.title, HELD_GRANTS.path)

    @property
    def roles_organization_id(self) -> str:
        """The organization whose projects, own and granted, are offered."""
        return str(self.entity.organization_id)

    @property
    def selected_name(self) -> str:
        return self.selected_project.name

    @property
    def selected_project(self) -> Project:
        """The project of step 2. Raises NotFound unless the user's organization owns it or was granted it."""
        project: Project | None = self.services.storage.projects.find(self.selected_id)
        if project is None or (
            project.organization_id != self.roles_organization_id and self._find_project_grant is None
        ):
            raise NotFound("project", self.selected_id)
        return project

    @property
    def _find_project_grant(self) -> ProjectGrant | None:
        """The active project grant to the user's organization."""
        stored = self.services.storage.project_grants
        grant: ProjectGrant | None = stored.find_for_organization(self.selected_id, self.roles_organization_id)
        return grant if grant is not None and grant.active else None

    @property
    def facts(self) -> Descriptions:
        owner = self.services.organizations.get(self.selected_project.organization_id)
        return [(_("Project"), self.selected_project.name), (_("Owner"), owner.name)]

    def candidates(self, page_request: PageRequest) -> ResultPage[SelectionCandidate]:
        owner = self.services.organizations.get(self.roles_organization_id)
        page = self.filter_page(self.services.storage.projects.page(owner.id, page_request))
        selection_candidates = [
            SelectionCandidate(project.name, owner.name, "project", self.selection_path(project.id))
            for project in page.items
        ]
        return ResultPage((*selection_candidates, *self._search_granted_projects(page_request)), page.next_cursor)

    def empty_search_message(self, page_request: PageRequest) -> str:
        if page_request.query:
            return super().empty_search_message(page_request)
        return _("There are no projects to choose from yet. Create one first.")

    def _search_granted_projects(self, page_request: PageRequest) -> Iterator[SelectionCandidate]:
        storage = self.services.storage
        every = PageRequest(limit=MAX_PAGE_SIZE, active=True)
        page = self.filter_page(storage.project_grants.page("organization_id", self.roles_organization_id, every))
        projects = storage.projects.find_many({project_grant.project_id for project_grant in page})
        owners = storage.organizations.find_many({project.organization_id for project in projects.values()})
        for project in sorted(projects.values(), key=lambda project: name_key(project.name)):
            if matches_query(page_request.query, project) and project.organization_id in owners:
                yield SelectionCandidate(
                    project.name, owners[project.organization_id].name, "grant", self.selection_path(project.id)
                )

    def role_options(self) -> RoleOptions:
        is_owner = self.selected_project.organization_id == self.roles_organization_id
        return source_role_options(self, (None if is_owner else self._find_project_grant) or self.selected_project)

    @property
    def cancel_path(self) -> str:
        return self.resource_path

    @property
    def success_path(self) -> str:
        return f"{self.resource_path}/access#access"

    def submit(self, form: Form) -> Response:
        return add_user_grant(self, form, self.entity.id, self.selected_project.id)


_USERS: tuple[AnyResourceType, ...] = (USER, SERVICE_USER)

ROUTES = (
    *(list_route(HELD_GRANTS, user) for user in _USERS),
    *(user.page_route("/grants/new", GrantProjectPage, "user_grant.write") for user in _USERS),
)
