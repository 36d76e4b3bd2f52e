"""What a user holds: manager roles and project roles, as sections of user pages show them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from identity.domain.managers import Manager
from identity.domain.permissions import Level, ResourceKey
from identity.domain.projects import UserGrant
from identity.domain.words import say
from identity.plugins.console.console_page import CONSOLE, ConsolePage
from identity.plugins.console.project_ways import grant_href, grant_name

#: How many rows a section of a page shows before it leads to the whole list.
FEW = 5


@dataclass(frozen=True)
class Named:
    """A thing with the words that people know it by, and the address of its page."""

    name: str
    href: str


@dataclass(frozen=True)
class HeldRole:
    """The manager roles at one resource."""

    id: str
    resource: Named
    level: str
    roles: tuple[str, ...]
    since: datetime


@dataclass(frozen=True)
class HeldGrant:
    """The roles in one project."""

    id: str
    project: Named
    roles: tuple[str, ...]
    active: bool
    since: datetime


_LEVELS = {
    Level.INSTANCE: say("Instance"),
    Level.ORGANIZATION: say("Organization"),
    Level.PROJECT: say("Project"),
    Level.PROJECT_GRANT: say("Project grant"),
}


def held_roles(page: ConsolePage, user_id: str) -> list[HeldRole]:
    """The user's manager roles anywhere that whoever looks may know of, newest first."""
    access = page.services.access
    held: list[Manager] = [
        one
        for one in access.visible(page.principal, page.services.storage.managers.of_user(user_id))
        if one.organization_id is None or access.sees(page.principal, one.organization_id)
    ]
    names = resource_names(page, {one.resource for one in held})
    return [
        HeldRole(
            id=one.id,
            resource=names[one.resource],
            level=page.words.t(_LEVELS[one.resource.level]),
            roles=tuple(sorted(one.roles)),
            since=one.created_at,
        )
        for one in sorted(held, key=lambda manager: manager.created_at, reverse=True)
        if one.resource in names
    ]


def held_grants(page: ConsolePage, grants: Iterable[UserGrant]) -> list[HeldGrant]:
    """User grants with the names of their projects."""
    grants = list(grants)
    projects = page.services.storage.projects.find_many({one.project_id for one in grants})
    return [
        HeldGrant(
            id=one.id,
            project=Named(
                projects[one.project_id].name if one.project_id in projects else one.project_id,
                f"{CONSOLE}/projects/{one.project_id}"
                if one.project_grant_id is None
                else f"{CONSOLE}/project-grants/{one.project_grant_id}",
            ),
            roles=tuple(sorted(one.roles)),
            active=one.active,
            since=one.created_at,
        )
        for one in grants
    ]


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
