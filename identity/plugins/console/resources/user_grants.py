"""User grants of a project or project grant, and the pages of a single grant. A grant's page is linked from its user
and from its project. Links from the user carry a query parameter, so that the page leads back there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyramid.response import Response

from identity.domain.errors import NotFound
from identity.domain.messages import gettext_lazy as _
from identity.domain.messages import ngettext_lazy
from identity.domain.permissions import ManagerLevel
from identity.domain.projects import Project, ProjectGrant, UserGrant
from identity.domain.users import HumanUser, Subject
from identity.http import route_contexts
from identity.http.route_contexts import RouteContext
from identity.pages.forms import Form
from identity.plugins.console.actions import Action, action_routes
from identity.plugins.console.badges import Badge, EntityLink
from identity.plugins.console.bulk_actions import BulkAction, BulkActions, deactivation, reactivation
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.entity_forms import EditForm, EditPage, edit_route
from identity.plugins.console.lists import Cells, OptionalColumn, ResourceList
from identity.plugins.console.resource_types import (
    PROJECT,
    PROJECT_GRANT,
    SERVICE_USER,
    USER,
    AnyResourceType,
    EntityTitledPage,
    ResourcePage,
    ResourceType,
)
from identity.plugins.console.role_selection import RoleOptions, RolesFormPage, SelectUserThenRolesPage, role_options
from identity.plugins.console.selected_rows import selected_rows_routes
from identity.plugins.console.user_display import display_user, display_users
from identity.services.commands.user_grants import AddUserGrant, ChangeUserGrant
from identity.storage.paging import PageRequest, ResultPage

ORIGIN_PARAM, USER_ORIGIN = "of", "user"
GRANTS_TITLE = _("User grants")


def grant_cells(page: ConsolePage, grant: UserGrant, named: EntityLink, query: str = "") -> Cells:
    roles = page.render_role_names(grant.roles) or page.render_placeholder(_("None"))
    if not grant.active:
        roles += " " + page.render_badge(Badge(page.translator.gettext("Deactivated")))
    roles += page.render_end(grant)
    buttons = page.row_buttons(f"{CONSOLE_PATH}/user-grants/{grant.id}", named.name, remove=_("Remove …"), query=query)
    return (
        # The list of a user names projects.
        page.entity_cell(named, is_person=not query),
        roles,
        page.template_macros.when(grant.created_at),
        buttons if page.has_permission("user_grant.write") else "",
    )


def _fetch(page: ConsolePage, request: PageRequest) -> ResultPage[UserGrant]:
    grants, key = page.services.user_grants, page.resource.key
    if key.level is ManagerLevel.PROJECT_GRANT:
        return grants.page("project_grant_id", key.id, request, principal=page.principal)
    return grants.page("project_id", key.id, request, principal=page.principal)


def _rows(page: ConsolePage, grants: Sequence[UserGrant]) -> Sequence[Cells]:
    """Users whom the caller may not see have no name."""
    links = _user_links(page, grants)
    return [grant_cells(page, grant, link) for grant, link in zip(grants, links, strict=True)]


def _user_links(page: ConsolePage, grants: Sequence[UserGrant]) -> Sequence[EntityLink]:
    users = display_users(page, grants)
    return [users.get(grant.user_id, EntityLink(grant.user_id)) for grant in grants]


def _find_grants(page: ConsolePage, ids: Sequence[str]) -> Sequence[UserGrant]:
    """Those of the project or project grant."""
    found, key = page.services.storage.user_grants.find_many(ids), page.resource.key
    grants = [found[identifier] for identifier in ids if identifier in found]
    in_list = [grant for grant in grants if key.id in (grant.project_id, grant.project_grant_id)]
    return tuple(page.services.access_control.filter_visible(page.principal, in_list))


_BULK_ACTIONS = BulkActions[UserGrant](
    find=_find_grants,
    links=_user_links,
    actions=(
        deactivation(
            lambda page, grant: page.services.user_grants.deactivate(grant.id, principal=page.principal),
            "user_grant.write",
            lambda n: ngettext_lazy("Deactivate {n} user grant?", "Deactivate {n} user grants?", n),
            _("The users lose these roles at once. You can reactivate the grants later."),
        ),
        reactivation(
            lambda page, grant: page.services.user_grants.reactivate(grant.id, principal=page.principal),
            "user_grant.write",
            lambda n: ngettext_lazy("Reactivate {n} user grant?", "Reactivate {n} user grants?", n),
            _("The users have these roles again, unless they have ended."),
        ),
        BulkAction[UserGrant](
            path="delete",
            permission="user_grant.write",
            label=_("Remove"),
            title=lambda n: ngettext_lazy("Remove {n} user grant?", "Remove {n} user grants?", n),
            lead=_("The users lose these roles at once."),
            submit_label=_("Remove"),
            done=_("Removed"),
            run=lambda page, grant, values: page.services.user_grants.remove(grant.id, principal=page.principal),
            is_destructive=True,
        ),
    ),
)


def _can_add_grant(page: ConsolePage) -> bool:
    """True if the caller may see users to whom roles of the project or project grant can be granted."""
    source: Project | ProjectGrant = page.context.entity
    sees = page.services.access_control.can_see_organization(page.principal, source.organization_id)
    return sees and page.has_permission("user_grant.write") and (isinstance(source, Project) or source.active)


#: Of a project or a project grant.
USER_GRANTS = ResourceList(
    path="/user-grants",
    permission="user_grant.read",
    title=GRANTS_TITLE,
    lead=_("Users with roles of the project, which applications receive as claims."),
    columns=(_("User"), _("Roles"), _("Since")),
    optional_columns=lambda page: [
        OptionalColumn(
            "changed", _("Changed"), lambda page, items: [page.template_macros.when(item.changed_at) for item in items]
        ),
        OptionalColumn(
            "user_id", _("User id"), lambda page, items: [page.template_macros.code(item.user_id) for item in items]
        ),
    ],
    has_row_buttons=True,
    fetch=_fetch,
    rows=_rows,
    empty_title=_("No user grants yet"),
    empty_text=_("Select a user and choose the roles that applications receive."),
    create="user_grant.write",
    bulk=_BULK_ACTIONS,
    entity_label=_("user grant"),
    can_create=_can_add_grant,
    all_label=_("All user grants …"),
)


class GrantUserPage(EntityTitledPage[Any], SelectUserThenRolesPage):
    """``entity`` is the project or the project grant."""

    list_breadcrumb = (USER_GRANTS.title, USER_GRANTS.path)

    @property
    def lead(self) -> str:
        return _source_project(self, self.entity).name

    def is_selectable(self, subject: Subject) -> bool:
        return subject.organization.id == self.entity.organization_id and _can_add_grant(self)

    def candidates(self, page_request: PageRequest) -> ResultPage:  # type: ignore[type-arg]
        return super().candidates(page_request) if _can_add_grant(self) else ResultPage(())

    @property
    def search_organization_id(self) -> str | None:
        return str(self.entity.organization_id)

    def role_options(self) -> RoleOptions:
        return source_role_options(self, self.entity)

    @property
    def success_path(self) -> str:
        return f"{self.resource_path}{USER_GRANTS.path}"

    def submit(self, form: Form) -> Response:
        return add_user_grant(self, form, self.selected_subject.user.id, _source_project(self, self.entity).id)


def add_user_grant(page: RolesFormPage, form: Form, user_id: str, project_id: str) -> Response:
    """Grant the selected roles and redirect to the page that shows them."""
    command = page.build_command(AddUserGrant, form, user_id=user_id, project_id=project_id)
    page.redeem_submission_id(form)
    page.services.user_grants.add(command, principal=page.principal)
    return page.redirect(page.path_with_flash(page.success_path))


def _source_project(page: ConsolePage, source: Project | ProjectGrant) -> Project:
    return source if isinstance(source, Project) else page.services.projects.get(source.project_id)


def source_role_options(page: ConsolePage, source: Project | ProjectGrant) -> RoleOptions:
    """The roles of the project, or those that were granted with it."""
    if isinstance(source, ProjectGrant):
        return role_options(page, source.project_id, source.roles)
    return role_options(page, source.id)


@dataclass(frozen=True)
class _OpenedGrant:
    """A grant with what its pages show. ``source`` is the project or the project grant that the roles derive from;
    ``origin`` is the page from which the grant was opened, ``origin_path`` the section there.
    """

    grant: UserGrant
    name: str
    project: Project
    source: Project | ProjectGrant
    origin: ResourcePage[Any]
    origin_path: str


def _open_grant(page: ConsolePage) -> _OpenedGrant:
    """Raises NotFound."""
    grant = page.entity_of(UserGrant)
    project = page.services.projects.get(grant.project_id)
    source: Project | ProjectGrant = project
    if grant.project_grant_id is not None:
        source = page.services.project_grants.get(grant.project_grant_id)
    grantee = page.services.storage.users.find_subject(grant.user_id)
    if grantee is None:
        raise NotFound("user", grant.user_id)
    user = display_user(page, grantee)
    if page.request.GET.get(ORIGIN_PARAM) == USER_ORIGIN and user.href:
        kind: AnyResourceType = USER if isinstance(grantee.user, HumanUser) else SERVICE_USER
        origin, section = _origin_page(page, kind, grantee.user), "/access#access"
        origin.organization = grantee.organization
    else:
        origin = _origin_page(page, PROJECT if isinstance(source, Project) else PROJECT_GRANT, source)
        origin.organization, section = page.organization, USER_GRANTS.path
    return _OpenedGrant(grant, user.name, project, source, origin, f"{origin.resource_path}{section}")


def _origin_page(page: ConsolePage, kind: AnyResourceType, entity: object) -> ResourcePage[Any]:
    return ResourcePage(RouteContext(page.resource, entity), page.request, resource_type=kind)


_USER_GRANT = ResourceType(
    model=_OpenedGrant,
    path="/user-grants/{user_grant}",
    context=route_contexts.user_grant_context,
    permission_prefix="user_grant",
    section=lambda page, opened: opened.origin.section,
    message_values=lambda page, opened: {
        "name": opened.name,
        "project": opened.project.name,
        "roles": ", ".join(sorted(opened.grant.roles)),
    },
    parents=lambda page, opened: opened.origin.breadcrumbs,
    has_page=False,
    find=_open_grant,
)


class UserGrantEditPage(RolesFormPage, EditPage[_OpenedGrant]):
    def initial_values(self) -> dict[str, Any]:
        return self.entity_values(self.entity.grant)

    @property
    def current_until(self) -> datetime | None:
        return self.entity.grant.until

    @property
    def lead(self) -> str:
        return self.entity.project.name

    @property
    def cancel_path(self) -> str:
        return self.entity.origin_path

    def role_options(self) -> RoleOptions:
        return source_role_options(self, self.entity.source)


_EDIT = EditForm[_OpenedGrant, ChangeUserGrant](
    title=_("Choose roles for {name}"),
    command=ChangeUserGrant,
    change=lambda page, opened, command, version: page.services.user_grants.change(
        opened.grant.id, command, expected_version=version, principal=page.principal
    ),
)

_REMOVE = Action[_OpenedGrant](
    path="/delete",
    run=lambda page, opened: page.services.user_grants.remove(opened.grant.id, principal=page.principal),
    title=_("Remove the user grant of {name} in {project}?"),
    submit_label=_("Remove user grant"),
    impact=lambda page, opened: [_("{name} loses {roles} in {project} at once.")] if opened.grant.roles else [],
    back=lambda page, opened: opened.origin_path,
)

_SOURCES: tuple[AnyResourceType, ...] = (PROJECT, PROJECT_GRANT)

ROUTES = (
    *(source.page_route("/user-grants/new", GrantUserPage, "user_grant.write") for source in _SOURCES),
    *(route for source in _SOURCES for route in selected_rows_routes(USER_GRANTS, source)),
    edit_route(_USER_GRANT, _EDIT, UserGrantEditPage),
    *action_routes(_USER_GRANT, _REMOVE),
)
