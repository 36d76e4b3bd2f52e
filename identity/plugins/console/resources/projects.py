"""Projects: list, create, detail page, edit, deactivate and delete."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from identity.domain.deletion_impact import DeletionTarget
from identity.domain.entity import EntityField
from identity.domain.messages import gettext_lazy as _
from identity.domain.organizations import Organization
from identity.domain.projects import ClientRegistration, Project
from identity.http import route_contexts
from identity.plugins.console.actions import REACTIVATION_HINT, Deactivation, Deletion, Reactivation
from identity.plugins.console.audience_scopes import project_audience_scope
from identity.plugins.console.badges import state_badge
from identity.plugins.console.console_page import ConsolePage
from identity.plugins.console.entity_forms import CreateForm, EditForm, create_route, edit_route
from identity.plugins.console.field_labels import FieldLabel
from identity.plugins.console.fields.projects import PROJECT_FIELDS
from identity.plugins.console.form_fields import form_fields
from identity.plugins.console.lists import Cells, ResourceList, list_route
from identity.plugins.console.page_sections import DescriptionListSection, Descriptions, NoteSection
from identity.plugins.console.resource_pages import (
    DetailPage,
    ResourcePages,
    ResourceTab,
    Sections,
    active_badge,
    format_value,
    list_tab,
)
from identity.plugins.console.resource_types import ORGANIZATION, PROJECT
from identity.plugins.console.resources.applications import APPLICATIONS
from identity.plugins.console.resources.managers import MANAGERS
from identity.plugins.console.resources.project_grants import PROJECT_GRANTS
from identity.plugins.console.resources.project_roles import ROLES
from identity.plugins.console.resources.user_grants import USER_GRANTS
from identity.services.commands.projects import ChangeProject, CreateProject


def _rows(page: ConsolePage, projects: Sequence[Project]) -> Sequence[Cells]:
    ui, counts = page.template_macros, page.services.storage.projects.count_children([item.id for item in projects])
    return [
        (
            page.components.named(project.name, PROJECT.path_of(project), square=True),
            *(number or page.render_placeholder("0") for number in counts[project.id]),
            page.render_badge(state_badge(project.active, page.translator)),
            ui.when(project.created_at),
        )
        for project in projects
        if project.id in counts
    ]


#: By name; managers of single projects see these only.
PROJECTS = ResourceList(
    path="/projects",
    permission="project.read",
    section="projects",
    title=_("Projects"),
    lead=_("Groups applications with their roles and the users who have them."),
    columns=(_("Name"), _("Applications"), _("Roles"), _("State"), _("Created")),
    sort_orders=(("name", _("Name")), ("created_at", _("Created"))),
    fetch=lambda page, request: page.services.projects.page(
        page.entity_of(Organization).id, request, principal=page.principal
    ),
    rows=_rows,
    empty_title=_("No projects yet"),
    empty_text=_(
        "A project holds applications, roles and the users who have them. Create one, then register an application."
    ),
    create="project.create",
    entity_label=_("project"),
)

_FIELDS = form_fields(Project, PROJECT_FIELDS)


_CREATE = CreateForm(
    title=_("New project"),
    fields=_FIELDS,
    command=CreateProject,
    create=lambda page, command: PROJECT.path_of(
        page.services.projects.create(page.entity_of(Organization).id, command, principal=page.principal)
    ),
)
_EDIT = EditForm[Project, ChangeProject](
    fields=_FIELDS,
    command=ChangeProject,
    change=lambda page, project, command, version: page.services.projects.change(
        project.id, command, expected_version=version, principal=page.principal
    ),
)

_ACTIONS = (
    Deactivation[Project](
        run=lambda page, project: page.services.projects.deactivate(project.id, principal=page.principal),
        title=_("Deactivate the project “{name}”?"),
        description=_("Its applications stop working at once. You can reactivate it later."),
        impact=(_("People cannot sign in to its applications, and no token is issued for it."), REACTIVATION_HINT),
        submit_label=_("Deactivate project"),
    ),
    Reactivation[Project](
        run=lambda page, project: page.services.projects.reactivate(project.id, principal=page.principal),
        title=_("Reactivate the project “{name}”?"),
        description=_("Its applications work again."),
        impact=(_("Its applications work again, except those that are deactivated themselves."),),
        submit_label=_("Reactivate project"),
    ),
    Deletion[Project](
        run=lambda page, project: page.services.projects.remove(project.id, principal=page.principal),
        target=DeletionTarget.PROJECT,
        title=_("Delete the project “{name}”?"),
        description=_("Permanently removes the project, its applications, roles and grants."),
        impact=(_("This cannot be undone. People can no longer sign in to its applications."),),
        submit_label=_("Delete project"),
    ),
)


def _descriptions(page: DetailPage[Project], project: Project) -> Descriptions:
    ui = page.template_macros
    return [
        (_("Project id"), ui.identifier(project.id)),
        (_("Audience scope"), ui.identifier(project_audience_scope(page, project.id))),
        (_("Created"), ui.when(project.created_at)),
    ]


def _sections(page: DetailPage[Project], project: Project) -> Sections:
    return [
        page.list_section(APPLICATIONS),
        DescriptionListSection(
            "settings", _("Settings"), facts=page.field_descriptions(project, _used_labels(project))
        ),
    ]


def _used_labels(project: Project) -> Mapping[str, FieldLabel]:
    """Without the terms of a registration if nobody may register."""
    if project.client_registration is not ClientRegistration.OFF:
        return PROJECT_FIELDS
    return {name: label for name, label in PROJECT_FIELDS.items() if not name.startswith("registration_")}


def _format_value(page: DetailPage[Project], project: Project, setting: EntityField, value: object) -> object:
    match setting.name, value:
        case "registration_token_minutes", int(n):
            return page.translator.ngettext("{n} minute", "{n} minutes", n)
        case "registration_unused_days", int(n):
            return page.translator.ngettext("{n} day", "{n} days", n)
        case "registration_grant_types", value if not value:
            return page.render_placeholder(_("Codes and refresh tokens"))
        case "registration_redirect_hosts", value if not value:
            return page.render_placeholder(_("None: no client can register"))
    return format_value(page, project, setting, value)


def _own_project_note(page: DetailPage[Project], project: Project) -> NoteSection | None:
    if not page.services.projects.is_own_project(project.id):
        return None
    stays = _("This project represents the service itself. It cannot be deactivated or deleted.")
    return NoteSection(stays, is_secondary=True)


_PAGES = ResourcePages(
    type=PROJECT,
    lead=lambda page, project: [_("Project"), *([page.organization.name] if page.organization else [])],
    badges=active_badge,
    descriptions=_descriptions,
    tabs=(
        ResourceTab(label=_("Overview"), sections=_sections),
        list_tab(ROLES),
        list_tab(PROJECT_GRANTS),
        list_tab(USER_GRANTS),
        list_tab(MANAGERS),
    ),
    avatar=lambda page, project: project.name,
    actions=_ACTIONS,
    format_value=_format_value,
    note=_own_project_note,
)

ROUTES = (
    replace(list_route(PROJECTS, ORGANIZATION), context_factory=route_contexts.organization_or_child_context),
    create_route(_CREATE, PROJECTS, ORGANIZATION),
    edit_route(PROJECT, _EDIT),
    *_PAGES.routes(),
)
