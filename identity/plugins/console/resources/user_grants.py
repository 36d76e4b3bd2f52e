"""User grants of a project or project grant, and the pages of a single grant. A grant's page is linked from its user
and from its project. Links from the user carry a query parameter, so that the page leads back there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyramid.response import Response

from identity.api.plugins import cached_property
from identity.domain.errors import NotFound
from identity.domain.messages import gettext_lazy
from identity.domain.permissions import ManagerLevel
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.users import HumanUser, ServiceUser, Subject
from identity.http import route_contexts
from identity.pages.forms import Form
from identity.plugins.console.action_page import ResourceActionPage
from identity.plugins.console.badges import Badge, EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, Breadcrumbs, ConsolePage
from identity.plugins.console.form_page import EditPage
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.resource_page import (
    ProjectGrantResourcePage,
    ProjectResourcePage,
    ResourcePage,
    ServiceUserResourcePage,
    UserResourcePage,
    resource_routes,
)
from identity.plugins.console.role_selection import RoleOptions, RolesFormPage, SelectUserThenRolesPage, role_options
from identity.plugins.console.routes import ConsoleRoute
from identity.plugins.console.user_display import display_user, display_users
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.storage.paging import PageRequest, ResultPage

ORIGIN_PARAM, USER_ORIGIN = "of", "user"


class UserGrantListPage(ListPage):
    title = gettext_lazy("User grants")
    has_row_buttons = True
    empty_title = gettext_lazy("No user grants yet")
    read_permission, create_permission, entity_label = "user_grant.read", "user_grant.write", gettext_lazy("user grant")
    all_link_label = gettext_lazy("All user grants …")

    def grant_cells(self, grant: UserGrant, named: EntityLink, query: str = "") -> Cells:
        href = f"{CONSOLE_PATH}/user-grants/{grant.id}"
        role_names = self.render_role_names(grant.roles) or self.render_placeholder(gettext_lazy("None"))
        return (
            self.entity_cell(named),
            role_names
            if grant.active
            else role_names + " " + self.render_badge(Badge(self.translator.gettext("Deactivated"))),
            self.template_macros.when(grant.created_at),
            self.row_buttons(href, named.name, remove=gettext_lazy("Remove …"), query=query)
            if self.has_permission("user_grant.write")
            else "",
        )


class GrantSourcePage(ResourcePage[Any]):
    back_path_suffix = "/user-grants"

    def can_add_grant(self) -> bool:
        """True if the caller may see users to whom roles can be granted."""
        value = self.entity
        sees: bool = self.services.access_control.can_see_organization(self.principal, value.organization_id)
        return sees and self.has_permission("user_grant.write") and (isinstance(value, Project) or value.active)


class SourceGrantListPage(GrantSourcePage, UserGrantListPage):
    lead = gettext_lazy("Users with roles of the project, which applications receive as claims.")
    columns = (gettext_lazy("User"), gettext_lazy("Roles"), gettext_lazy("Since"))
    empty_text = gettext_lazy("Select a user and choose the roles that applications are to receive.")
    section_id = "user-grants"

    def fetch_page(self, page_request: PageRequest) -> ResultPage[UserGrant]:
        grants, key = self.services.user_grants, self.resource.key
        fetch = grants.page_by_project_grant if key.level is ManagerLevel.PROJECT_GRANT else grants.page_by_project
        page: ResultPage[UserGrant] = fetch(key.id, page_request, principal=self.principal)
        return page

    def build_rows(self, found: Sequence[UserGrant]) -> Sequence[Cells]:
        """Users whom the caller may not see have no name."""
        users = display_users(self, found)
        return [
            self.grant_cells(user_grant, users[user_grant.user_id])
            for user_grant in found
            if user_grant.user_id in users
        ]

    def can_create(self) -> bool:
        return self.can_add_grant()


class GrantUserPage(GrantSourcePage, SelectUserThenRolesPage):
    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return [*super().breadcrumbs, (UserGrantListPage.title, self.list_path)]

    @property
    def title_suffix(self) -> str:
        return self.entity_name

    @property
    def lead(self) -> str:
        return source_project(self, self.entity).name

    def is_selectable(self, subject: Subject) -> bool:
        return subject.organization.id == self.entity.organization_id and self.can_add_grant()

    def candidates(self, page_request: PageRequest) -> ResultPage:  # type: ignore[type-arg]
        return super().candidates(page_request) if self.can_add_grant() else ResultPage(())

    @property
    def search_organization_id(self) -> str | None:
        organization_id: str = self.entity.organization_id
        return organization_id

    def role_options(self) -> RoleOptions:
        return source_role_options(self, self.entity)

    @property
    def success_path(self) -> str:
        return f"{self.resource_path}#user-grants"

    def submit(self, form: Form) -> Response:
        return add_user_grant(self, form, self.selected_subject.user.id, source_project(self, self.entity).id)


def add_user_grant(page: RolesFormPage, form: Form, user_id: str, project_id: str) -> Response:
    """Grant the selected roles and redirect to the page that shows them."""
    command = page.decode_command(AddUserGrant, {"user_id": user_id, "project_id": project_id, **page.parse_form(form)})
    page.redeem_submission_id(form)
    page.services.user_grants.add(command, principal=page.principal)
    return page.redirect(page.path_with_flash(page.success_path))


def source_project(page: ConsolePage, source: Project | ProjectGrant) -> Project:
    return source if isinstance(source, Project) else page.services.projects.get(source.project_id)


def source_role_options(page: ConsolePage, source: Project | ProjectGrant) -> RoleOptions:
    """The roles of the project, or those that were granted with it."""
    if isinstance(source, ProjectGrant):
        return role_options(page, source.project_id, source.roles)
    return role_options(page, source.id)


class UserGrantResourcePage(ResourcePage[UserGrant]):
    path, context_factory = "/user-grants/{user_grant}", route_contexts.user_grant_context
    permission_subject, service_name = "user_grant", "user_grants"
    permission_verb = "write"

    @property
    def project(self) -> Project:
        return self.services.projects.get(self.entity.project_id)

    @property
    def source(self) -> Project | ProjectGrant:
        """The project, or the project grant that the roles derive from."""
        if self.entity.project_grant_id is None:
            return self.project
        return self.services.project_grants.get(self.entity.project_grant_id)

    @cached_property
    def grantee(self) -> Subject:
        """Raises NotFound."""
        subject: Subject | None = self.services.storage.users.find_subject(self.entity.user_id)
        if subject is None:
            raise NotFound("user", self.entity.user_id)
        return subject

    @property
    def entity_name(self) -> str:
        return display_user(self, self.grantee).name

    @property
    def message_values(self) -> Mapping[str, object]:
        roles = ", ".join(sorted(self.entity.roles))
        return {"name": self.entity_name, "project": self.project.name, "roles": roles}

    @cached_property
    def is_opened_from_user(self) -> bool:
        return bool(self.request.GET.get(ORIGIN_PARAM) == USER_ORIGIN and display_user(self, self.grantee).href)

    @cached_property
    def origin_entity(self) -> ResourcePage[Any]:
        """The entity whose page linked here: user, project or project grant."""
        entity: Any = self.grantee.user if self.is_opened_from_user else self.source
        page: ResourcePage[Any] = _KINDS[type(entity)](route_contexts.RouteContext(self.resource, entity), self.request)
        page.organization = self.grantee.organization if self.is_opened_from_user else self.organization
        return page

    @property
    def section(self) -> str:
        return self.origin_entity.section

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return self.origin_entity.breadcrumbs

    @property
    def cancel_path(self) -> str:
        return f"{self.origin_entity.resource_path}#{'grants' if self.is_opened_from_user else 'user-grants'}"


_KINDS: Mapping[type, type[ResourcePage[Any]]] = {
    HumanUser: UserResourcePage,
    ServiceUser: ServiceUserResourcePage,
    Project: ProjectResourcePage,
    ProjectGrant: ProjectGrantResourcePage,
}


class UserGrantEditPage(UserGrantResourcePage, RolesFormPage, EditPage):
    title = gettext_lazy("Choose roles for {name}")
    command = ChangeUserGrant

    @property
    def lead(self) -> str:
        return self.project.name

    def role_options(self) -> RoleOptions:
        return source_role_options(self, self.source)


class RemoveUserGrantPage(UserGrantResourcePage, ResourceActionPage):
    path_suffix = "/delete"
    title = gettext_lazy("Remove the user grant of {name} in {project}?")
    submit_label = gettext_lazy("Remove user grant")

    @property
    def impact(self) -> Sequence[str]:
        return [gettext_lazy("{name} loses {roles} in {project} at once.")] if self.entity.roles else []

    def perform(self) -> None:
        self.services.user_grants.remove(self.entity.id, principal=self.principal)


_SOURCES = (ProjectResourcePage, ProjectGrantResourcePage)
USER_GRANTS = {kind: SourceGrantListPage.for_resource(kind) for kind in _SOURCES}

ROUTES = (
    *(
        ConsoleRoute(f"{source.path}/user-grants", USER_GRANTS[source], "user_grant.read", source.context_factory)
        for source in _SOURCES
    ),
    *(
        ConsoleRoute(
            f"{source.path}/user-grants/new",
            GrantUserPage.for_resource(source),
            "user_grant.write",
            source.context_factory,
        )
        for source in _SOURCES
    ),
    *resource_routes(UserGrantEditPage, RemoveUserGrantPage),
)
