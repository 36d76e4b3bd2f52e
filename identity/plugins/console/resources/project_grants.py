"""Project grants: a project, with some of its roles, granted to another organization, as both organizations see it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from markupsafe import Markup
from pyramid.response import Response

from identity.domain.deletion_impact import DeletionTarget
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.organizations import Organization
from identity.domain.permissions import Resource
from identity.domain.projects import Project, ProjectGrant
from identity.http import route_contexts
from identity.pages.forms import Form
from identity.plugins.console.actions import REACTIVATION_HINT, Action, Deactivation, Reactivation
from identity.plugins.console.badges import EntityLink, state_badge
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.entity_forms import EditForm, EditPage, edit_route
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.page_sections import DescriptionListSection, Descriptions
from identity.plugins.console.resource_pages import (
    DetailPage,
    ResourcePages,
    ResourceTab,
    Sections,
    active_badge,
    list_tab,
)
from identity.plugins.console.resource_types import (
    ORGANIZATION,
    PROJECT,
    PROJECT_GRANT,
    ResourcePage,
    holder_organization,
)
from identity.plugins.console.resources.managers import MANAGERS
from identity.plugins.console.resources.organizations import fetch_visible_organizations
from identity.plugins.console.resources.user_grants import USER_GRANTS
from identity.plugins.console.role_selection import (
    RoleOptions,
    RolesFormPage,
    SelectionCandidate,
    SelectThenRolesPage,
    role_options,
)
from identity.services.commands.projects import AddProjectGrant, ChangeProjectGrant
from identity.storage.paging import PageRequest, ResultPage


def load_holder_names(page: ConsolePage, grants: Sequence[ProjectGrant]) -> Mapping[str, str]:
    """By organization id."""
    holders = page.services.storage.organizations.find_many({grant.organization_id for grant in grants})
    return {key: organization.name for key, organization in holders.items()}


def _rows(page: ConsolePage, grants: Sequence[ProjectGrant]) -> Sequence[Cells]:
    ui, names = page.template_macros, load_holder_names(page, grants)
    return [
        (
            page.components.named(names[grant.organization_id], PROJECT_GRANT.path_of(grant), square=True),
            page.render_role_names(grant.roles) or page.render_placeholder(_("None")),
            page.render_badge(state_badge(grant.active, page.translator)) + page.render_end(grant),
            ui.when(grant.created_at),
        )
        for grant in grants
        if grant.organization_id in names
    ]


PROJECT_GRANTS = ResourceList(
    path="/grants",
    permission="project_grant.read",
    title=_("Project grants"),
    lead=_("Organizations that can grant roles of the project to their own users."),
    columns=(_("Organization"), _("Roles"), _("State"), _("Since")),
    fetch=lambda page, request: page.filter_page(
        page.services.storage.project_grants.page("project_id", page.entity_of(Project).id, request)
    ),
    rows=_rows,
    empty_title=_("No project grants yet"),
    empty_text=_("Grant the project to another organization, so that its managers can grant the roles to their users."),
    create="project_grant.write",
    entity_label=_("project grant"),
    all_label=_("All project grants …"),
)


_GRANT_UNTIL_HINT = _(
    "The last day of the grant, in UTC. Everything that derives from it ends with it. Leave it empty for no end."
)


class ProjectGrantCreatePage(ResourcePage[Project], SelectThenRolesPage):
    """Step 1: select an organization. Step 2: choose the roles that it may grant."""

    selection_param = "organization_id"
    selection_title = _("Select an organization")
    reselect_label = _("Select another organization")
    requires_role = False
    hint = _("Managers of the organization can grant these roles to their users, and no others.")
    no_options_message = _("The project has no roles yet. The organization's users can still sign in to it.")
    submit_label = _("Grant project")
    until_hint = _GRANT_UNTIL_HINT
    list_breadcrumb = (PROJECT_GRANTS.title, PROJECT_GRANTS.path)

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
            (_("Organization"), self.selected_organization.name),
            (_("Primary domain"), self.selected_organization.primary_domain),
        ]

    @property
    def search_hint(self) -> str:
        if self.services.access_control.visible_organization_ids(self.principal) is None:
            return _("Any part of its name or primary domain, or its whole id.")
        return _("Its whole primary domain or id; of organizations that you manage, any part of the name.")

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
            return _("There is no such organization.")
        return _("Enter the primary domain of the organization, for example {example}.", example="acme.example")

    def role_options(self) -> RoleOptions:
        return role_options(self, self.entity.id)

    def submit(self, form: Form) -> Response:
        command = self.build_command(AddProjectGrant, form, organization_id=self.selected_id)
        self.redeem_submission_id(form)
        grant = self.services.project_grants.add(self.entity.id, command, principal=self.principal)
        return self.redirect(self.path_with_flash(PROJECT_GRANT.path_of(grant)))


class ProjectGrantEditPage(RolesFormPage, EditPage[ProjectGrant]):
    requires_role = False
    hint = _("Users of the organization immediately lose a role that is no longer granted.")
    until_hint = _GRANT_UNTIL_HINT

    @property
    def current_until(self) -> datetime | None:
        return self.entity.until

    @property
    def lead(self) -> str:
        return self.services.projects.get(self.entity.project_id).name

    def role_options(self) -> RoleOptions:
        return role_options(self, self.entity.project_id)


_EDIT = EditForm[ProjectGrant, ChangeProjectGrant](
    title=_("Choose roles for {name}"),
    command=ChangeProjectGrant,
    change=lambda page, grant, command, version: page.services.project_grants.change(
        grant.id, command, expected_version=version, principal=page.principal
    ),
)


def _access_loss_message(page: ConsolePage, grant: ProjectGrant) -> str:
    """How many users lose access."""
    return ngettext_lazy(
        "{n} user of {organization} loses access at once.",
        "{n} users of {organization} lose access at once.",
        page.services.deletion_impact(DeletionTarget.PROJECT_GRANT, grant.id).users,
        organization=holder_organization(page, grant).name,
    )


_ACTIONS = (
    Deactivation[ProjectGrant](
        run=lambda page, grant: page.services.project_grants.deactivate(grant.id, principal=page.principal),
        title=_("Deactivate the grant of {project} to {organization}?"),
        description=_("Its users lose access at once. You can reactivate it later."),
        impact=lambda page, grant: [_access_loss_message(page, grant), REACTIVATION_HINT],
        submit_label=_("Deactivate project grant"),
    ),
    Reactivation[ProjectGrant](
        run=lambda page, grant: page.services.project_grants.reactivate(grant.id, principal=page.principal),
        title=_("Reactivate the grant of {project} to {organization}?"),
        description=_("Its users have their roles again."),
        impact=(_("Users of {organization} have their roles in the project again."),),
        submit_label=_("Reactivate project grant"),
    ),
    Action[ProjectGrant](
        path="/delete",
        permission="delete",
        run=lambda page, grant: page.services.project_grants.remove(grant.id, principal=page.principal),
        done=lambda page, grant: f"{CONSOLE_PATH}/projects/{grant.project_id}/grants",
        label=_("Withdraw"),
        button=_("Withdraw …"),
        title=_("Withdraw the grant of {project} to {organization}?"),
        description=_("Permanently removes the grant, its user grants and its managers."),
        impact=lambda page, grant: [
            _access_loss_message(page, grant),
            _("Its user grants and managers are permanently removed."),
        ],
        submit_label=_("Withdraw project grant"),
    ),
)


def _descriptions(page: DetailPage[ProjectGrant], grant: ProjectGrant) -> Descriptions:
    return [(_("Since"), page.template_macros.when(grant.created_at, relative=True))]


def _sections(page: DetailPage[ProjectGrant], grant: ProjectGrant) -> Sections:
    holder, project = holder_organization(page, grant), page.services.projects.get(grant.project_id)
    reads_project, of_holder = page.has_permission("project.read"), Resource.of_organization(holder.id)
    reads_holder = page.services.access_control.is_permitted(page.principal, "organization.read", of_holder)
    consent = _(
        "Users of the organization are asked for consent before they use the project's "
        "applications, until one of its managers grants a role here."
    )
    if grant.accepted:
        consent = _("Users of the organization are not asked for consent to use the project's applications.")
    facts = [
        (_("Project grant id"), page.template_macros.identifier(grant.id)),
        (_("Project"), _resource_link(page, project.name, "projects", project.id, reads_project)),
        (_("Owner"), page.services.organizations.get(project.organization_id).name),
        (_("Granted to"), _resource_link(page, holder.name, "organizations", holder.id, reads_holder)),
        (_("Roles"), page.render_role_names(grant.roles) or _("None")),
        (_("Until"), _("No end") if grant.until is None else page.template_macros.when(grant.until, relative=True)),
        (_("Consent"), consent),
        (_("Managers of the other organization"), _other_managers(page)),
    ]
    return [
        DescriptionListSection("settings", _("Settings"), facts=facts),
        page.list_section(USER_GRANTS, lead=_("Users of the organization with roles of the project.")),
    ]


def _other_managers(page: ConsolePage) -> str:
    """The number of managers on the other side, who are visible to their own organization only."""
    total = page.services.managers.count_hidden(page.resource, principal=page.principal)
    if not total.count and total.is_exact:
        return ""
    return str(total.count) if total.is_exact else _("More than {n}", n=total.count)


def _resource_link(page: ConsolePage, name: str, pages: str, identifier: str, reads: bool) -> Markup:
    return page.entity_link(EntityLink(name, f"{CONSOLE_PATH}/{pages}/{identifier}" if reads else ""))


_PAGES = ResourcePages(
    type=PROJECT_GRANT,
    lead=lambda page, grant: [_("Project grant")],
    badges=active_badge,
    descriptions=_descriptions,
    tabs=(
        ResourceTab(label=_("Overview"), sections=_sections),
        list_tab(USER_GRANTS),
        list_tab(MANAGERS),
    ),
    actions=_ACTIONS,
)


def _received_rows(page: ConsolePage, grants: Sequence[ProjectGrant]) -> Sequence[Cells]:
    storage = page.services.storage
    projects = storage.projects.find_many({grant.project_id for grant in grants})
    owners = storage.organizations.find_many({project.organization_id for project in projects.values()})
    rows = []
    for grant in grants:
        project = projects.get(grant.project_id)
        if project is not None and project.organization_id in owners:
            rows.append(
                (
                    page.components.named(project.name, PROJECT_GRANT.path_of(grant), square=True),
                    owners[project.organization_id].name,
                    page.render_role_names(grant.roles) or page.render_placeholder(_("None")),
                    page.render_badge(state_badge(grant.active, page.translator)) + page.render_end(grant),
                    page.template_macros.when(grant.created_at),
                )
            )
    return rows


#: One row per project, newest grant first.
GRANTED_PROJECTS = ResourceList(
    path="/granted-projects",
    permission="project_grant.read",
    section="granted-projects",
    title=_("Granted projects"),
    lead=_("Projects of other organizations, with the roles that you can grant to your own users."),
    columns=(_("Project"), _("Owner"), _("Roles"), _("State"), _("Since")),
    fetch=lambda page, request: page.services.project_grants.page_received(
        page.entity_of(Organization).id, request, principal=page.principal
    ),
    rows=_received_rows,
    empty_title=_("No granted projects"),
    empty_text=_("No other organization has granted you a project."),
)

ROUTES = (
    PROJECT.page_route("/grants/new", ProjectGrantCreatePage, "project_grant.write"),
    edit_route(PROJECT_GRANT, _EDIT, ProjectGrantEditPage),
    *_PAGES.routes(),
    replace(list_route(GRANTED_PROJECTS, ORGANIZATION), context_factory=route_contexts.organization_or_child_context),
)
