"""Roles of a project."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from pyramid.response import Response

from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.domain.projects import ProjectRole
from identity.domain.search import search_text, text_matches
from identity.http import route_contexts
from identity.pages.forms import FieldValue, Form
from identity.plugins.console.action_page import ActionPage
from identity.plugins.console.console_page import Breadcrumbs, find_child
from identity.plugins.console.fields.project_roles import PROJECT_ROLE_FIELDS
from identity.plugins.console.form_fields import form_fields
from identity.plugins.console.form_page import ConsoleFormPage
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.resource_page import ProjectResourcePage
from identity.plugins.console.resources.project_grants import load_holder_names
from identity.plugins.console.routes import ConsoleRoute
from identity.plugins.console.user_display import display_users
from identity.services.commands.projects import AddProjectRole, ChangeProjectRole
from identity.storage.paging import PageCursor, PageRequest, ResultPage, RowTotal, build_page

#: Limits of the names shown and of the grants loaded to find them.
_MAX_LISTED_NAMES = 5
_IMPACT_PAGE = PageRequest(limit=200)


class ProjectRoleListPage(ProjectResourcePage, ListPage):
    back_path_suffix = "/roles"

    title = gettext_lazy("Roles")
    lead = gettext_lazy("Roles reach applications as claims.")
    columns = (gettext_lazy("Role key"), gettext_lazy("Display name"), gettext_lazy("Group"))
    has_row_buttons = True
    has_state_filter = False
    empty_title = gettext_lazy("No roles yet")
    empty_text = gettext_lazy("Roles reach applications as claims. Add one, then give it to users.")
    read_permission, create_permission, entity_label = "project_role.read", "project_role.write", gettext_lazy("role")
    section_id, all_link_label = "roles", gettext_lazy("All roles …")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[ProjectRole]:
        fitting = [
            project_role
            for project_role in sorted(self.services.projects.list_roles(self.entity.id), key=lambda role: role.key)
            if text_matches(page_request.query, search_text(project_role.key, project_role.display_name))
        ]
        after = "" if page_request.cursor is None else page_request.cursor.id
        rest = [project_role for project_role in fitting if project_role.key > after]
        return build_page(
            rest,
            page_request.limit,
            lambda project_role: PageCursor(project_role.key, project_role.key),
            RowTotal(len(fitting)),
        )

    def build_cells(self, role: ProjectRole) -> Cells:
        href = f"{self.list_path}/{quote(role.key, safe='')}"
        return (
            self.template_macros.code(role.key),
            role.display_name,
            role.group or self.render_placeholder(gettext_lazy("None")),
            self.row_buttons(href, role.key, remove=gettext_lazy("Delete …"))
            if self.has_permission("project_role.write")
            else "",
        )


class ProjectRoleSubpage(ProjectResourcePage):
    back_path_suffix = "/roles"

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return [*super().breadcrumbs, (ProjectRoleListPage.title, self.cancel_path)]


_FIELDS = form_fields(ProjectRole, PROJECT_ROLE_FIELDS)


class ProjectRoleCreatePage(ProjectRoleSubpage, ConsoleFormPage):
    form_fields = _FIELDS
    is_creation = True
    title = gettext_lazy("New role")
    submit_label = gettext_lazy("Add")

    def submit(self, form: Form) -> Response:
        command = self.decode_command(AddProjectRole, self.parse_form(form))
        self.redeem_submission_id(form)
        self.services.projects.add_role(self.entity.id, command)
        return self.redirect(self.path_with_flash(self.cancel_path))


class ProjectRoleResourcePage(ProjectRoleSubpage):
    @property
    def role(self) -> ProjectRole:
        """Raises NotFound."""
        role: ProjectRole = find_child(self, self.services.projects.list_roles(self.entity.id), "role", "key", "key")
        return role

    @property
    def message_values(self) -> Mapping[str, object]:
        return {"key": self.role.key, "project": self.entity.name}


class ProjectRoleEditPage(ProjectRoleResourcePage, ConsoleFormPage):
    """The key cannot be changed."""

    form_fields = tuple(field for field in _FIELDS if field.name in ChangeProjectRole.model_fields)
    title = gettext_lazy("Change the role {key}")

    def initial_values(self) -> Mapping[str, FieldValue]:
        return self.entity_values(self.role)

    def submit(self, form: Form) -> Response:
        command = self.decode_command(ChangeProjectRole, self.parse_form(form))
        version = form.version()
        self.services.projects.change_role(self.entity.id, self.role.key, command, expected_version=version)
        return self.redirect(self.path_with_flash(self.cancel_path))


class DeleteProjectRolePage(ProjectRoleResourcePage, ActionPage):
    title = gettext_lazy("Delete the role {key} of {project}?")
    submit_label = gettext_lazy("Delete role")

    @property
    def impact(self) -> Sequence[str]:
        """Some affected users and organizations by name, all by number."""
        falls = self.services.storage.deletion_impact.count_role_grants(self.entity.id, self.role.key)
        grants, users = falls.project_grants, falls.user_grants
        if not grants and not users:
            return [gettext_lazy("No grant holds it. This cannot be undone.")]
        lines: list[str] = [gettext_lazy("Those who hold it lose it at once. This cannot be undone.")]
        if grants:
            names = _abbreviate_names(self._grantee_organizations(), grants)
            lines.append(
                ngettext_lazy(
                    "{n} project grant loses it: {names}", "{n} project grants lose it: {names}", grants, names=names
                )
            )
        if users:
            names = _abbreviate_names(self._grantee_users(), users)
            lines.append(
                ngettext_lazy(
                    "{n} user grant loses it: {names}", "{n} user grants lose it: {names}", users, names=names
                )
            )
        return lines

    def perform(self) -> None:
        self.services.projects.remove_role(self.entity.id, self.role.key)

    def _grantee_organizations(self) -> Sequence[str]:
        """Organizations whose project grant has the role; empty if the caller may not read them."""
        if not self.has_permission("project_grant.read"):
            return []
        grants = self.filter_page(self.services.storage.project_grants.page("project_id", self.entity.id, _IMPACT_PAGE))
        some = [grant for grant in grants if self.role.key in grant.roles][:_MAX_LISTED_NAMES]
        names = load_holder_names(self, some)
        return [
            names[project_grant.organization_id] for project_grant in some if project_grant.organization_id in names
        ]

    def _grantee_users(self) -> Sequence[str]:
        """Users whose grant has the role; empty if the caller may not read them."""
        if not self.has_permission("user_grant.read"):
            return []
        grants = self.filter_page(self.services.storage.user_grants.page("project_id", self.entity.id, _IMPACT_PAGE))
        some = [grant for grant in grants if self.role.key in grant.roles][:_MAX_LISTED_NAMES]
        users = display_users(self, some)
        return [users[user_grant.user_id].name for user_grant in some if user_grant.user_id in users]


def _abbreviate_names(names: Sequence[str], n: int) -> str:
    return ", ".join([*names, *(["…"] if len(names) < n else [])])


_LIST = "/projects/{project}/roles"
# Keys may contain slashes.
_ROLE_PATH = f"{_LIST}/{{key:.+}}"

ROUTES = (
    ConsoleRoute(_LIST, ProjectRoleListPage, "project_role.read", route_contexts.project_context),
    ConsoleRoute(f"{_LIST}/new", ProjectRoleCreatePage, "project_role.write", route_contexts.project_context),
    ConsoleRoute(f"{_ROLE_PATH}/edit", ProjectRoleEditPage, "project_role.write", route_contexts.project_context),
    ConsoleRoute(f"{_ROLE_PATH}/delete", DeleteProjectRolePage, "project_role.write", route_contexts.project_context),
)
