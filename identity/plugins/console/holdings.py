"""What users hold: manager roles and project roles, as sections of their pages show them."""

from collections.abc import Collection, Mapping

from identity.domain.managers import Manager
from identity.domain.permissions import Level, ResourceKey
from identity.domain.words import say
from identity.plugins.console.badges import Named
from identity.plugins.console.console_page import CONSOLE, ConsolePage
from identity.plugins.console.sections import Table
from identity.plugins.console.things import grant_href, grant_name

_LEVELS = {
    Level.INSTANCE: say("Instance"),
    Level.ORGANIZATION: say("Organization"),
    Level.PROJECT: say("Project"),
    Level.PROJECT_GRANT: say("Project grant"),
}


def held_roles_section(page: ConsolePage, user_id: str) -> Table:
    """The user's manager roles anywhere that whoever looks may know of, newest first."""
    access = page.services.access
    held: list[Manager] = [
        one
        for one in access.visible(page.principal, page.services.storage.managers.of_user(user_id))
        if one.organization_id is None or _may_know(page, one)
    ]
    names = resource_names(page, {one.resource for one in held})
    rows = [
        (
            page.named(names[one.resource]),
            page.words.t(_LEVELS[one.resource.level]),
            page.roles(one.roles),
            page.ui.when(one.created_at),
        )
        for one in sorted(held, key=lambda manager: manager.created_at, reverse=True)
        if one.resource in names
    ]
    return Table(
        "managers",
        say("Manager roles"),
        say("What they allow in this console and in the management API."),
        columns=(say("Where"), say("Level"), say("Roles"), say("Since")),
        rows=rows,
        empty=say("None. Managers are added on the page of an organization or project."),
    )


def _may_know(page: ConsolePage, manager: Manager) -> bool:
    """True for what lies in an organization that whoever looks sees, or in a project grant that it holds."""
    access = page.services.access
    if manager.resource.level is Level.PROJECT_GRANT:
        return bool(access.reaches(page.principal, access.resource(manager.resource)))
    return bool(access.sees(page.principal, manager.organization_id))


def resource_names(page: ConsolePage, keys: Collection[ResourceKey]) -> Mapping[ResourceKey, Named]:
    """Name and page of each resource; what is gone is left out."""
    storage = page.services.storage

    def of(level: Level) -> set[str]:
        return {key.id for key in keys if key.level is level}

    found = {key: Named(page.words.t("Instance"), f"{CONSOLE}/instance") for key in keys if key.level is Level.INSTANCE}
    for one in storage.organizations.find_many(of(Level.ORGANIZATION)).values():
        found[ResourceKey(Level.ORGANIZATION, one.id)] = Named(one.name, f"{CONSOLE}/organizations/{one.id}")
    grants = storage.project_grants.find_many(of(Level.PROJECT_GRANT))
    holders = storage.organizations.find_many({one.organization_id for one in grants.values()})
    projects = storage.projects.find_many(of(Level.PROJECT) | {one.project_id for one in grants.values()})
    for key in keys:
        if key.level is Level.PROJECT and key.id in projects:
            found[key] = Named(projects[key.id].name, f"{CONSOLE}/projects/{key.id}")
        elif key.level is Level.PROJECT_GRANT and key.id in grants:
            grant = grants[key.id]
            if grant.project_id in projects and grant.organization_id in holders:
                name = grant_name(projects[grant.project_id], holders[grant.organization_id])
                found[key] = Named(page.words.plain(name), grant_href(grant))
    return found
