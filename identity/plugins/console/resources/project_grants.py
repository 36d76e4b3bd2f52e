"""Project grants: a project, with some of its roles, granted to another organization."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.deletion_impact import DeletionTarget
from identity.domain.messages import gettext_lazy, ngettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.projects import ProjectGrant
from identity.http import route_contexts
from identity.pages.forms import Form
from identity.plugins.console.action_page import REACTIVATION_HINT, DeactivatePage, ReactivatePage, ResourceActionPage
from identity.plugins.console.badges import EntityLink, state_badge
from identity.plugins.console.console_page import CONSOLE_PATH, Breadcrumbs, ConsolePage
from identity.plugins.console.detail_page import ResourceDetailPage
from identity.plugins.console.form_page import EditPage
from identity.plugins.console.list_page import Cells, ListPage
from identity.plugins.console.page_sections import Descriptions, NoteSection, PageSection
from identity.plugins.console.resource_page import (
    ProjectGrantResourcePage,
    ProjectResourcePage,
    project_grant_path,
    resource_routes,
)
from identity.plugins.console.resources.managers import ManagerListPage
from identity.plugins.console.resources.organizations import fetch_visible_organizations
from identity.plugins.console.resources.user_grants import USER_GRANTS
from identity.plugins.console.role_selection import (
    RoleOptions,
    RolesFormPage,
    SelectionCandidate,
    SelectThenRolesPage,
    role_options,
)
from identity.plugins.console.routes import ConsoleRoute
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.storage.paging import PageRequest, ResultPage


def load_holder_names(page: ConsolePage, grants: Sequence[ProjectGrant]) -> Mapping[str, str]:
    """By organization id."""
    holders = page.services.storage.organizations.find_many({grant.organization_id for grant in grants})
    return {key: organization.name for key, organization in holders.items()}


class ProjectGrantListPage(ProjectResourcePage, ListPage):
    back_path_suffix = "/grants"

    title = gettext_lazy("Project grants")
    lead = gettext_lazy("Organizations that may give roles of the project to their own users.")
    columns = (gettext_lazy("Organization"), gettext_lazy("Roles"), gettext_lazy("State"), gettext_lazy("Since"))
    empty_title = gettext_lazy("No project grants yet")
    empty_text = gettext_lazy(
        "Grant the project to another organization, so that its managers give the roles to their users."
    )
    read_permission, create_permission, entity_label = (
        "project_grant.read",
        "project_grant.write",
        gettext_lazy("project grant"),
    )
    section_id, all_link_label = "grants", gettext_lazy("All project grants …")

    def fetch_page(self, page_request: PageRequest) -> ResultPage[ProjectGrant]:
        return self.filter_page(self.services.storage.project_grants.page("project_id", self.entity.id, page_request))

    def build_rows(self, found: Sequence[ProjectGrant]) -> Sequence[Cells]:
        names = load_holder_names(self, found)
        return [
            (
                self.template_macros.named(names[project_grant.organization_id], project_grant_path(project_grant)),
                self.render_role_names(project_grant.roles) or self.render_placeholder(gettext_lazy("None")),
                self.render_badge(state_badge(project_grant.active, self.translator)),
                self.template_macros.when(project_grant.created_at),
            )
            for project_grant in found
            if project_grant.organization_id in names
        ]


class ProjectGrantCreatePage(ProjectResourcePage, SelectThenRolesPage):
    """Step 1: select an organization. Step 2: choose the roles that it may grant."""

    back_path_suffix = "/grants"

    selection_param = "organization_id"
    selection_title = gettext_lazy("Select an organization")
    reselect_label = gettext_lazy("Select another organization")
    requires_role = False
    hint = gettext_lazy("Managers of the organization can give these roles to their users, and no others.")
    no_options_message = gettext_lazy(
        "The project has no roles yet. Users of the organization can sign in to it all the same."
    )
    submit_label = gettext_lazy("Grant project")

    @property
    def breadcrumbs(self) -> Breadcrumbs:
        return [*super().breadcrumbs, (ProjectGrantListPage.title, self.cancel_path)]

    @property
    def lead(self) -> str:
        return self.entity.name

    @property
    def selected_name(self) -> str:
        return self.selected_organization.name

    @property
    def selected_organization(self) -> Organization:
        """The organization of step 2. Raises NotFound."""
        return self.services.organizations.get(self.selected_id)

    @property
    def facts(self) -> Descriptions:
        return [
            (gettext_lazy("Organization"), self.selected_organization.name),
            (gettext_lazy("Primary domain"), self.selected_organization.primary_domain),
        ]

    @property
    def search_hint(self) -> str:
        if self.services.access_control.visible_organization_ids(self.principal) is None:
            return gettext_lazy("Any part of its name or primary domain, or its whole id.")
        return gettext_lazy("Its whole primary domain or id; of organizations that you manage, any part of the name.")

    def candidates(self, page_request: PageRequest) -> ResultPage[SelectionCandidate]:
        """Visible organizations by name; others only by an identifier that the caller must already know."""
        page = fetch_visible_organizations(self, page_request)
        organizations = self.services.storage.organizations
        named = organizations.find_by_domain(page_request.query.lower()) or organizations.find(page_request.query)
        every = {item.id: item for item in (*([named] if named is not None else []), *page)}
        every.pop(self.entity.organization_id, None)
        candidates = (
            SelectionCandidate(item.name, item.primary_domain, "organization", self.selection_path(item.id))
            for item in every.values()
        )
        return ResultPage(tuple(candidates), page.next_cursor)

    def empty_search_message(self, page_request: PageRequest) -> str:
        if page_request.query:
            return gettext_lazy("There is no such organization.")
        return gettext_lazy(
            "Enter the primary domain of the organization, for example {example}.", example="acme.example"
        )

    def role_options(self) -> RoleOptions:
        return role_options(self, self.entity.id)

    def submit(self, form: Form) -> Response:
        values = {"organization_id": self.selected_id, "roles": self.selected_roles(form)}
        command = self.decode_command(AddProjectGrant, values)
        self.redeem_submission_id(form)
        grant = self.services.project_grants.add(self.entity.id, command, principal=self.principal)
        return self.redirect(self.path_with_flash(project_grant_path(grant)))


class ProjectGrantEditPage(ProjectGrantResourcePage, RolesFormPage, EditPage):
    requires_role = False
    title = gettext_lazy("Choose roles for {name}")
    hint = gettext_lazy("Users of the organization lose a role at once that is not granted any more.")
    command = ChangeProjectGrant

    @property
    def lead(self) -> str:
        return self.project.name

    def role_options(self) -> RoleOptions:
        return role_options(self, self.entity.project_id)


def _access_loss_message(page: ProjectGrantResourcePage) -> str:
    """How many users lose access."""
    return ngettext_lazy(
        "{n} user of {organization} loses access at once.",
        "{n} users of {organization} lose access at once.",
        page.services.deletion_impact(DeletionTarget.PROJECT_GRANT, page.entity.id).users,
        organization=page.holder_organization.name,
    )


class WithdrawProjectGrantPage(ProjectGrantResourcePage, ResourceActionPage):
    path_suffix, permission_verb = "/delete", "delete"
    action_labels = (gettext_lazy("Withdraw"), gettext_lazy("Withdraw …"))
    title = gettext_lazy("Withdraw the grant of {project} to {organization}?")
    description = gettext_lazy("Removes the grant, its user grants and its managers for ever.")
    submit_label = gettext_lazy("Withdraw project grant")

    @property
    def impact(self) -> Sequence[str]:
        return [_access_loss_message(self), gettext_lazy("Its user grants and managers are removed for ever.")]

    def perform(self) -> str:
        self.services.project_grants.remove(self.entity.id, principal=self.principal)
        return f"{CONSOLE_PATH}/projects/{self.entity.project_id}/grants"


_ACTIONS = (
    DeactivatePage.for_resource(
        ProjectGrantResourcePage,
        title=gettext_lazy("Deactivate the grant of {project} to {organization}?"),
        description=gettext_lazy("Its users lose access at once. You can reactivate it later."),
        impact=lambda page: [_access_loss_message(page), REACTIVATION_HINT],
        submit_label=gettext_lazy("Deactivate project grant"),
    ),
    ReactivatePage.for_resource(
        ProjectGrantResourcePage,
        title=gettext_lazy("Reactivate the grant of {project} to {organization}?"),
        description=gettext_lazy("Its users have their roles again."),
        impact=(gettext_lazy("Users of {organization} have their roles in the project again."),),
        submit_label=gettext_lazy("Reactivate project grant"),
    ),
    WithdrawProjectGrantPage,
)


_MANAGERS_LEAD = gettext_lazy(
    "Users who give the granted roles to users of the organization. Each of the two organizations sees its own."
)


class ProjectGrantDetailPage(ProjectGrantResourcePage, ResourceDetailPage):
    lead = (gettext_lazy("Project grant"),)
    actions = _ACTIONS
    actions_title = gettext_lazy("Deactivate or withdraw")

    @property
    def descriptions(self) -> Descriptions:
        grant, holder, project = self.entity, self.holder_organization, self.project
        reads_project, of_holder = self.has_permission("project.read"), Resource.of_organization(holder.id)
        reads_holder = self.services.access_control.is_permitted(self.principal, "organization.read", of_holder)
        consent = gettext_lazy(
            "Users of the organization are asked before they use the project's applications, until one of its managers"
            " has given a role here."
        )
        if grant.accepted:
            consent = gettext_lazy(
                "Users of the organization are not asked whether they want to use the project's applications."
            )
        return [
            (gettext_lazy("Project grant id"), self.template_macros.identifier(grant.id)),
            (gettext_lazy("Project"), self._resource_link(project.name, "projects", project.id, reads_project)),
            (gettext_lazy("Owner"), self.services.organizations.get(project.organization_id).name),
            (gettext_lazy("Granted to"), self._resource_link(holder.name, "organizations", holder.id, reads_holder)),
            (gettext_lazy("Roles"), self.render_role_names(grant.roles) or gettext_lazy("None")),
            (gettext_lazy("Consent"), consent),
            (gettext_lazy("Managers of the other organization"), self._other_managers),
            (gettext_lazy("Since"), self.template_macros.when(grant.created_at, relative=True)),
        ]

    @property
    def _other_managers(self) -> str:
        """The number of managers on the other side, who are visible to their own organization only."""
        row_total = self.services.managers.count_hidden(self.resource, principal=self.principal)
        if not row_total.count and row_total.is_exact:
            return ""
        return str(row_total.count) if row_total.is_exact else gettext_lazy("More than {n}", n=row_total.count)

    def _resource_link(self, name: str, pages: str, identifier: str, reads: bool) -> Markup:
        return self.entity_link(EntityLink(name, f"{CONSOLE_PATH}/{pages}/{identifier}" if reads else ""))

    @property
    def sections(self) -> Sequence[PageSection | NoteSection | None]:
        users = USER_GRANTS[ProjectGrantResourcePage].bind_to_page(self)
        return [
            users.build_section(lead=gettext_lazy("Users of the organization with roles of the project.")),
            ManagerListPage.bind_to_page(self).build_section(lead=_MANAGERS_LEAD),
        ]


_LIST = "/projects/{project}/grants"

ROUTES = (
    ConsoleRoute(_LIST, ProjectGrantListPage, "project_grant.read", route_contexts.project_context),
    ConsoleRoute(f"{_LIST}/new", ProjectGrantCreatePage, "project_grant.write", route_contexts.project_context),
    *resource_routes(ProjectGrantDetailPage, ProjectGrantEditPage, *_ACTIONS),
)
