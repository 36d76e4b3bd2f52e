"""The tab Access of people and service users: what they can do, through what, and what a token would say."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup, escape

from identity.api.plugins import cached_property
from identity.domain.effective_access import AccessEntry, AccessKind, AccessProblem
from identity.domain.errors import Invalid
from identity.domain.messages import gettext_lazy as _
from identity.domain.permissions import ManagerLevel
from identity.domain.users import Agent, HumanUser, Subject
from identity.http.endpoint_routes import request_context
from identity.http.token_previews import APPLICATION_PARAM, USER_PARAM, build_token_preview, find_application
from identity.plugins.console.audience_scopes import project_audience_scope
from identity.plugins.console.badges import Badge
from identity.plugins.console.console_page import CONSOLE_PATH
from identity.plugins.console.lists import Cells
from identity.plugins.console.page_sections import NoteSection, TableSection
from identity.plugins.console.preview_results import SCOPE_FIELD, preview_variables
from identity.plugins.console.query_page import QueryPage
from identity.plugins.console.resource_pages import DetailPage
from identity.plugins.console.resource_types import GROUP
from identity.plugins.console.resources.held_grants import HELD_GRANTS
from identity.plugins.console.resources.user_grants import ORIGIN_PARAM, USER_ORIGIN
from identity.provider.scope import Scope
from identity.provider.token_preview import TokenPreviewResult
from identity.storage.paging import PageRequest

ACCESS_PATH = "/access"
#: Further user grants are in the list of them.
_MAX_GRANTS = 25
#: Further applications are offered by the token preview of the organization.
_MAX_APPLICATIONS, _MAX_PROJECTS = 50, 20

_LEVEL_LABELS = {
    ManagerLevel.INSTANCE: _("Instance"),
    ManagerLevel.ORGANIZATION: _("Organization"),
    ManagerLevel.PROJECT: _("Project"),
    ManagerLevel.PROJECT_GRANT: _("Project grant"),
}
_RESOURCE_PATHS = {
    ManagerLevel.ORGANIZATION: "organizations",
    ManagerLevel.PROJECT: "projects",
    ManagerLevel.PROJECT_GRANT: "project-grants",
}
_PROBLEMS = {
    AccessProblem.ENDED: _("The roles have ended."),
    AccessProblem.DEACTIVATED: _("The user grant is deactivated."),
    AccessProblem.NO_ROLES: _("No roles are given."),
    AccessProblem.GROUP_DEACTIVATED: _("The group is deactivated."),
    AccessProblem.PROJECT_GRANT_ENDED: _("The project grant has ended."),
    AccessProblem.PROJECT_GRANT_DEACTIVATED: _("The project grant is deactivated."),
    AccessProblem.PROJECT_DEACTIVATED: _("The project is deactivated."),
    AccessProblem.OWNER_DEACTIVATED: _("The organization that owns the project is deactivated."),
    AccessProblem.USER_DEACTIVATED: _("The account or its organization is deactivated."),
    AccessProblem.LIMITED_BY_OWNER: _("The owner of the agent does not have these roles."),
}


class AccessPage(QueryPage, DetailPage[Any]):
    """``entity`` is the user."""

    template = "console/access.html"
    fields: tuple[str, ...] = (APPLICATION_PARAM, SCOPE_FIELD)

    @cached_property
    def entries(self) -> tuple[AccessEntry, ...]:
        organization = self.services.organizations.get(self.entity.organization_id)
        subject = Subject(self.entity, organization)
        entries: tuple[AccessEntry, ...] = self.services.effective_access.list_entries(
            subject, _MAX_GRANTS, principal=self.principal
        )
        return entries

    def query(self) -> Mapping[str, str]:
        return {**({} if SCOPE_FIELD in self.request.GET else {SCOPE_FIELD: Scope.OPENID}), **super().query()}

    def template_variables(self) -> Mapping[str, object]:
        parameters, is_person = self.query(), isinstance(self.entity, HumanUser)
        preview = self._build_preview(parameters) if SCOPE_FIELD in self.request.GET else None
        options = self._application_options(parameters.get(APPLICATION_PARAM, ""))
        chosen = {name: parameters[name] for name in self.fields if parameters.get(APPLICATION_PARAM)}
        # Without an application the page of the preview asks for all of it.
        query = f"?{urlencode({USER_PARAM: self.entity.id, **chosen})}" if chosen else ""
        return {
            **super().template_variables(),
            "access": self._table(),
            "notes": () if is_person else self._audience_notes(),
            "applications": options if is_person else [("", "–"), *options],
            "may_preview": bool(options) or not is_person,
            "more_path": f"{self.base_path}/token-preview{query}" if self.has_permission("user.read") else "",
            "needs_application": is_person,
            **preview_variables(self, preview),
        }

    def _build_preview(self, parameters: Mapping[str, str]) -> TokenPreviewResult | None:
        """None if a parameter is invalid."""
        try:
            return build_token_preview(
                request_context(self.request),
                self.principal,
                user=self.entity.id,
                application=parameters.get(APPLICATION_PARAM, ""),
                scope=parameters.get(SCOPE_FIELD, ""),
                response_type="code",
            )
        except Invalid as refused:
            visible = {USER_PARAM: APPLICATION_PARAM}
            self.problems.update({visible.get(name, name): text for name, text in refused.fields.items()})
            return None

    def _application_options(self, chosen: str) -> list[tuple[str, str]]:
        """The chosen application, those of projects in which the user has roles, and of the user's organization."""
        found: dict[str, str] = {}
        named = find_application(request_context(self.request), self.principal, chosen)
        if named is not None:
            found[named.id] = f"{named.application.name} ({named.project.name})"
        found |= dict(islice(self._applications(), _MAX_APPLICATIONS))
        return list(found.items())

    def _applications(self) -> Iterator[tuple[str, str]]:
        storage, organization_id = self.services.storage, self.entity.organization_id
        projects = {
            entry.resource.id: entry.resource_name
            for entry in self.entries
            if entry.kind is AccessKind.PROJECT_ROLES and entry.owner_id == organization_id
        }
        direct = self.filter_page(storage.projects.page(organization_id, PageRequest(limit=_MAX_PROJECTS, active=True)))
        projects |= {project.id: project.name for project in direct}
        if self.has_permission("application.read"):
            for project_id, name in islice(projects.items(), _MAX_PROJECTS):
                for application in self.filter_page(storage.applications.page(project_id)):
                    yield application.id, f"{application.name} ({name})"

    def _audience_notes(self) -> Sequence[NoteSection]:
        scope = project_audience_scope(self)
        if not scope or not any(entry.kind is AccessKind.MANAGER_ROLES for entry in self.entries):
            return ()
        asks = self.translator.gettext(
            "To use the management API, the program requests its token with the scope {scope}",
            scope=self.template_macros.identifier(f"openid {scope}"),
        )
        return [NoteSection(asks)]

    def _table(self) -> TableSection:
        path = f"{self.resource_path}{HELD_GRANTS.path}"
        may_read = self.has_permission(HELD_GRANTS.permission)
        return TableSection(
            "access",
            _("What {name} can do"),
            _("All roles that count, and those that have no effect, with the reason."),
            HELD_GRANTS.create_button(self, path, ""),
            columns=(_("Where"), _("Roles"), _("Through"), _("Until")),
            rows=[self._cells(entry) for entry in self.entries],
            has_row_buttons=True,
            empty=_("Nothing yet. Give roles of a project here. Managers are added on the page of what they manage."),
            all_link=(HELD_GRANTS.all_label, path) if may_read else None,
        )

    def _cells(self, entry: AccessEntry) -> Cells:
        return (
            self._describe_resource(entry),
            self._roles(entry),
            self._source(entry),
            self._end(entry),
            self._buttons(entry),
        )

    def _describe_resource(self, entry: AccessEntry) -> Markup:
        level, t = entry.resource.level, self.translator.gettext
        name = entry.resource_name or t("Instance")
        kind, id = _RESOURCE_PATHS.get(level), entry.resource.id
        if entry.kind is AccessKind.PROJECT_ROLES and entry.project_grant_id is not None:
            kind, id = "project-grants", entry.project_grant_id
        note = t(_LEVEL_LABELS[level]) if entry.kind is AccessKind.MANAGER_ROLES else escape(entry.owner_name)
        href = f"{CONSOLE_PATH}/instance" if kind is None else f"{CONSOLE_PATH}/{kind}/{id}"
        named: Markup = self.components.named(name, href, note, square=True)
        return named

    def _roles(self, entry: AccessEntry) -> Markup:
        ui, t = self.template_macros, self.translator.gettext
        drawn = Markup()
        for role in entry.roles:
            is_manager_role = entry.kind is AccessKind.MANAGER_ROLES
            name = self.translate(role.name) if is_manager_role and role.name else escape(role.name)
            key = ui.code(role.key)
            drawn += (
                Markup("<div>{} {}</div>").format(name, ui.below(key)) if name else Markup("<div>{}</div>").format(key)
            )
        if entry.withheld_roles:
            names = ", ".join(entry.withheld_roles)
            if isinstance(self.entity, Agent):
                drawn += ui.below(t("The owner of the agent lacks: {names}", names=names))
            else:
                drawn += ui.below(t("Not in the project grant: {names}", names=names))
        if entry.problem is not None:
            badge = self.render_badge(Badge(t("No effect"), "warning"))
            drawn += Markup("<div>{} {}</div>").format(badge, ui.below(t(_PROBLEMS[entry.problem])))
        return drawn

    def _source(self, entry: AccessEntry) -> Markup:
        t = self.translator.gettext
        if entry.group is not None:
            return t("Group {name}", name=self.template_macros.link(entry.group.name, GROUP.path_of(entry.group)))
        if entry.kind is AccessKind.MANAGER_ROLES or entry.project_grant_id is None:
            return t("Given directly")
        return t("Project grant of {organization}", organization=entry.owner_name)

    def _end(self, entry: AccessEntry) -> Markup:
        return self.render_end(entry) or self.render_placeholder(_("No end"))

    def _buttons(self, entry: AccessEntry) -> Markup:
        name = entry.resource_name or self.translator.gettext("Instance")
        if entry.group is not None:
            return Markup()
        if entry.kind is AccessKind.PROJECT_ROLES:
            path, query = f"{CONSOLE_PATH}/user-grants/{entry.id}", f"?{ORIGIN_PARAM}={USER_ORIGIN}"
            is_permitted = self.has_permission("user_grant.write")
        else:
            path, query, access = f"{CONSOLE_PATH}/managers/{entry.id}", "", self.services.access_control
            is_permitted = access.is_permitted(
                self.principal, f"{entry.resource.level}_manager.write", access.get_resource(entry.resource)
            )
        return self.row_buttons(path, name, remove=_("Remove …"), query=query) if is_permitted else Markup()
