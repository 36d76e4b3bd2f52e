"""Roles of a project."""

from collections.abc import Sequence
from urllib.parse import quote

from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.projects import Project, ProjectGrant, ProjectRole, UserGrant
from identity.domain.search import search_text, text_matches
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.console_page import ConsolePage, find_child
from identity.plugins.console.entity_forms import CreateForm, EditForm, create_route, edit_route
from identity.plugins.console.fields.project_roles import PROJECT_ROLE_FIELDS
from identity.plugins.console.form_fields import form_fields
from identity.plugins.console.lists import Cells, ResourceList
from identity.plugins.console.resource_types import PROJECT, ResourceType
from identity.plugins.console.resources.project_grants import load_holder_names
from identity.plugins.console.user_display import display_users
from identity.services.commands.projects import AddProjectRole, ChangeProjectRole
from identity.storage.paging import PageCursor, PageRequest, ResultPage, RowTotal, build_page

#: Limits of the names shown and of the grants loaded to find them.
_MAX_LISTED_NAMES = 5
_IMPACT_PAGE = PageRequest(limit=200)


def _roles(page: ConsolePage) -> Sequence[ProjectRole]:
    return page.services.projects.list_roles(page.entity_of(Project).id)


def _roles_path(page: ConsolePage) -> str:
    return f"{PROJECT.path_of(page.entity_of(Project))}/roles"


def _fetch(page: ConsolePage, request: PageRequest) -> ResultPage[ProjectRole]:
    fitting = [
        role
        for role in sorted(_roles(page), key=lambda role: role.key)
        if text_matches(request.query, search_text(role.key, role.display_name))
    ]
    after = "" if request.cursor is None else request.cursor.id
    rest = [role for role in fitting if role.key > after]
    return build_page(rest, request.limit, lambda role: PageCursor(role.key, role.key), RowTotal(len(fitting)))


def _rows(page: ConsolePage, roles: Sequence[ProjectRole]) -> Sequence[Cells]:
    path, may_write = _roles_path(page), page.has_permission("project_role.write")
    return [
        (
            page.template_macros.code(role.key),
            role.display_name,
            role.group or page.render_placeholder(_("None")),
            page.row_buttons(f"{path}/{quote(role.key, safe='')}", role.key, remove=_("Delete …")) if may_write else "",
        )
        for role in roles
    ]


ROLES = ResourceList(
    path="/roles",
    permission="project_role.read",
    title=_("Roles"),
    lead=_("Roles reach applications as claims."),
    columns=(_("Role key"), _("Display name"), _("Group")),
    has_row_buttons=True,
    has_state_filter=False,
    fetch=_fetch,
    rows=_rows,
    empty_title=_("No roles yet"),
    empty_text=_("Roles reach applications as claims. Add one, then grant it to users."),
    create="project_role.write",
    entity_label=_("role"),
    all_label=_("All roles …"),
)

_ROLE = ResourceType(
    model=ProjectRole,
    path="/projects/{project}/roles/{key:.+}",
    context=PROJECT.context,
    permission_prefix="project_role",
    section="projects",
    message_values=lambda page, role: {"key": role.key, "project": page.entity_of(Project).name},
    parents=lambda page, role: [*PROJECT.breadcrumbs(page, page.entity_of(Project)), (ROLES.title, _roles_path(page))],
    has_page=False,
    find=lambda page: find_child(page, _roles(page), "key", lambda role: role.key, kind="role"),
)

_FIELDS = form_fields(ProjectRole, PROJECT_ROLE_FIELDS)


def _create(page: ConsolePage, command: AddProjectRole) -> str:
    page.services.projects.add_role(page.entity_of(Project).id, command)
    return _roles_path(page)


_CREATE = CreateForm(title=_("New role"), fields=_FIELDS, command=AddProjectRole, create=_create, submit_label=_("Add"))
#: The key cannot be changed.
_EDIT = EditForm[ProjectRole, ChangeProjectRole](
    title=_("Change the role {key}"),
    fields=tuple(field for field in _FIELDS if field.name in ChangeProjectRole.model_fields),
    command=ChangeProjectRole,
    change=lambda page, role, command, version: page.services.projects.change_role(
        page.entity_of(Project).id, role.key, command, expected_version=version
    ),
)


def _impact(page: ConsolePage, role: ProjectRole) -> Sequence[str]:
    """Some affected users and organizations by name, all by number."""
    project = page.entity_of(Project)
    falls = page.services.storage.deletion_impact.count_role_grants(project.id, role.key)
    grants, users = falls.project_grants, falls.user_grants
    if not grants and not users:
        return [_("No grant includes it. This cannot be undone.")]
    lines: list[str] = [_("Users who have it lose it at once. This cannot be undone.")]
    if grants:
        names = _abbreviate_names(_grantee_organizations(page, project, role), grants)
        lines.append(
            ngettext_lazy(
                "{n} project grant loses it: {names}", "{n} project grants lose it: {names}", grants, names=names
            )
        )
    if users:
        names = _abbreviate_names(_grantee_users(page, project, role), users)
        lines.append(
            ngettext_lazy("{n} user grant loses it: {names}", "{n} user grants lose it: {names}", users, names=names)
        )
    return lines


def _grantee_organizations(page: ConsolePage, project: Project, role: ProjectRole) -> Sequence[str]:
    """Organizations whose project grant has the role; empty if the caller may not read them."""
    if not page.has_permission("project_grant.read"):
        return []
    grants: ResultPage[ProjectGrant] = page.services.storage.project_grants.page("project_id", project.id, _IMPACT_PAGE)
    some = [grant for grant in page.filter_page(grants) if role.key in grant.roles][:_MAX_LISTED_NAMES]
    names = load_holder_names(page, some)
    return [names[grant.organization_id] for grant in some if grant.organization_id in names]


def _grantee_users(page: ConsolePage, project: Project, role: ProjectRole) -> Sequence[str]:
    """Users whose grant has the role; empty if the caller may not read them."""
    if not page.has_permission("user_grant.read"):
        return []
    grants: ResultPage[UserGrant] = page.services.storage.user_grants.page("project_id", project.id, _IMPACT_PAGE)
    some = [grant for grant in page.filter_page(grants) if role.key in grant.roles][:_MAX_LISTED_NAMES]
    users = display_users(page, some)
    return [users[grant.user_id].name for grant in some if grant.user_id in users]


def _abbreviate_names(names: Sequence[str], n: int) -> str:
    return ", ".join([*names, *(["…"] if len(names) < n else [])])


_DELETE = Action[ProjectRole](
    path="/delete",
    run=lambda page, role: page.services.projects.remove_role(page.entity_of(Project).id, role.key),
    title=_("Delete the role {key} of {project}?"),
    submit_label=_("Delete role"),
    impact=_impact,
)

ROUTES = (
    create_route(_CREATE, ROLES, PROJECT),
    edit_route(_ROLE, _EDIT),
    *action_routes(_ROLE, _DELETE),
)
