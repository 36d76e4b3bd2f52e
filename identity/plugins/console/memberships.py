"""Manager roles and project roles of users, as sections of their pages."""

from collections.abc import Collection, Mapping

from identity.domain.managers import Manager
from identity.domain.messages import gettext_lazy as _
from identity.domain.permissions import ManagerLevel, ResourceKey
from identity.plugins.console.badges import EntityLink
from identity.plugins.console.console_page import CONSOLE_PATH, ConsolePage
from identity.plugins.console.page_sections import TableSection
from identity.plugins.console.resource_types import PROJECT_GRANT, project_grant_name

_LEVEL_LABELS = {
    ManagerLevel.INSTANCE: _("Instance"),
    ManagerLevel.ORGANIZATION: _("Organization"),
    ManagerLevel.PROJECT: _("Project"),
    ManagerLevel.PROJECT_GRANT: _("Project grant"),
}


def manager_roles_section(page: ConsolePage, user_id: str) -> TableSection:
    """The user's manager roles that the caller may see, newest first."""
    access = page.services.access_control
    managers: list[Manager] = [
        manager
        for manager in access.filter_visible(page.principal, page.services.storage.managers.list_for_user(user_id))
        if manager.organization_id is None or _can_see_manager(page, manager)
    ]
    names = load_resource_links(page, {manager.resource for manager in managers})
    rows = [
        (
            page.entity_cell(names[item.resource]),
            page.translator.gettext(_LEVEL_LABELS[item.resource.level]),
            page.render_role_names(item.roles),
            page.template_macros.when(item.created_at),
        )
        for item in sorted(managers, key=lambda manager: manager.created_at, reverse=True)
        if item.resource in names
    ]
    return TableSection(
        "managers",
        _("Manager roles"),
        _("What they allow in this console and in the management API."),
        columns=(_("Where"), _("Level"), _("Roles"), _("Since")),
        rows=rows,
        empty=_("None. Managers are added on the page of an organization or project."),
    )


def _can_see_manager(page: ConsolePage, manager: Manager) -> bool:
    """Managers of a project grant are visible with the grant, others with their organization."""
    access = page.services.access_control
    if manager.resource.level is ManagerLevel.PROJECT_GRANT:
        return bool(access.can_see_resource(page.principal, access.get_resource(manager.resource)))
    return bool(access.can_see_organization(page.principal, manager.organization_id))


def load_resource_links(page: ConsolePage, keys: Collection[ResourceKey]) -> Mapping[ResourceKey, EntityLink]:
    """Name and page of each resource; deleted ones are missing."""
    storage = page.services.storage

    def ids_at(level: ManagerLevel) -> set[str]:
        return {key.id for key in keys if key.level is level}

    found = {
        key: EntityLink(page.translator.gettext("Instance"), f"{CONSOLE_PATH}/instance")
        for key in keys
        if key.level is ManagerLevel.INSTANCE
    }
    for organization in storage.organizations.find_many(ids_at(ManagerLevel.ORGANIZATION)).values():
        found[ResourceKey(ManagerLevel.ORGANIZATION, organization.id)] = EntityLink(
            organization.name, f"{CONSOLE_PATH}/organizations/{organization.id}"
        )
    grants = storage.project_grants.find_many(ids_at(ManagerLevel.PROJECT_GRANT))
    holders = storage.organizations.find_many({grant.organization_id for grant in grants.values()})
    projects = storage.projects.find_many(
        ids_at(ManagerLevel.PROJECT) | {grant.project_id for grant in grants.values()}
    )
    for key in keys:
        if key.level is ManagerLevel.PROJECT and key.id in projects:
            found[key] = EntityLink(projects[key.id].name, f"{CONSOLE_PATH}/projects/{key.id}")
        elif key.level is ManagerLevel.PROJECT_GRANT and key.id in grants:
            grant = grants[key.id]
            if grant.project_id in projects and grant.organization_id in holders:
                name = project_grant_name(projects[grant.project_id], holders[grant.organization_id])
                found[key] = EntityLink(page.translator.gettext_plain(name), PROJECT_GRANT.path_of(grant))
    return found
